//! F5: the life of one child process or outgoing connection, generation by generation.
//!
//! Owns no process: it takes facts, asks for actions and says when a generation is over.

mod fsm;
#[cfg(test)]
mod tests;

pub use fsm::{Behind, Ended, Ladder, Supervisor};
