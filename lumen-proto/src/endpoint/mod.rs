//! F6: the machines that a driver runs: [`Peer`], one end of a session, [`Relay`], the hop in the middle, and [`Hub`],
//! many clients on one server; [`Pool`] is one hub for all clients or one for each.

mod bridge;
mod client_leg;
mod event;
mod hub;
mod ids;
mod peer;
mod pool;
mod ready;
mod relay;
mod server_leg;
#[cfg(test)]
mod tests;

pub use bridge::{Bridge, BridgeEvent};
pub use event::{Event, Outcome, Unlike, Why};
pub use hub::{ClientStatus, Hub, HubConfig, HubEvent, Parted, Pending, ServerStatus};
pub use peer::{Peer, SendError};
pub use pool::Pool;
pub use relay::Relay;
pub use server_leg::ServerConfig;
