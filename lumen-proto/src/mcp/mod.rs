//! F4: what MCP says, as data: which methods there are and what a hub does with each, where ids hide inside of
//! messages, protocol revisions and eras, log levels.
//!
//! Everything before revision 2026-07-28 is of the legacy era, in which a session begins with a handshake; since then
//! requests carry what they need themselves. Sources: the schemas of all five revisions.

mod level;
mod method;
pub mod paths;
mod revision;

pub use level::Level;
pub use method::{Capability, FromClient, FromServer, from_client, from_server, is_own};
pub use revision::{Era, Revision};

#[cfg(test)]
mod tests;
