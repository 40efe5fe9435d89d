//! lumen on io_uring: one thread, one ring, and no runtime.

mod error;
mod event_loop;
mod keeper;
mod ring;
mod stream;

pub use error::Unavailable;
pub use event_loop::Loop;
pub use keeper::MAX_ENDED;
pub use lumen_driver::Counters;
pub use stream::Stream;
