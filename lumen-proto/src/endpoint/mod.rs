//! F6: the machines that a driver runs: [`Peer`], one end of a session, and [`Relay`], the hop in the middle.

mod bridge;
mod client_leg;
mod event;
mod ids;
mod peer;
mod ready;
mod relay;
mod server_leg;
#[cfg(test)]
mod tests;

pub use bridge::{Bridge, BridgeEvent};
pub use event::{Event, Outcome, Why};
pub use peer::{Peer, SendError};
pub use relay::Relay;
pub use server_leg::ServerConfig;
