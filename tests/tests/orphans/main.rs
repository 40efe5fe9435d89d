//! Whatever is killed, and whatever a server has started: nothing is left.

mod guard;
mod kills;
