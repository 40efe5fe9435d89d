//! lumen on tokio.
//!
//! [`Driver`] drives any [`Machine`](lumen_proto::Machine) inside whatever task awaits
//! [`next_event`](Driver::next_event): over child processes, this process's own standard streams and sockets. It
//! spawns no task and asks for no `Send`; it is `Send` when its machine is. The runtime needs I/O and time enabled.

mod driver;
mod register;
mod stream;
mod world;

pub use driver::Driver;
pub use stream::Stream;
pub use world::MAX_ENDED;
