//! F5: the life of one child process or outgoing connection, generation by generation.
//!
//! Owns no process. [`Supervisor`] takes facts, asks for actions and says when a generation is over; [`Keeper`]
//! says whether and when there is a next one.

mod fsm;
mod keeper;
#[cfg(test)]
mod tests;

pub use fsm::{Behind, Ended, Ladder, Supervisor};
pub use keeper::{Keeper, Next, State};
