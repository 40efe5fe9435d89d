//! F0: what every floor above stands on.

pub mod limits;
#[cfg(feature = "alloc")]
pub(crate) mod plain;
mod port;
mod time;

mod reason;

#[cfg(feature = "alloc")]
mod machine;

#[cfg(feature = "alloc")]
pub use machine::{Action, ChildEvent, Exit, Input, Machine, OpenError, OpenErrorKind, Signal, Transmit};
pub use port::Port;
pub use reason::{Fault, Reason};
pub use time::Instant;
