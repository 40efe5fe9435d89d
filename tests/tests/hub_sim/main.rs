//! The hub in the simulated world: many clients, servers that are strict about MCP, and everything that goes wrong
//! between them. Field cases have their numbers in the names of their tests.

mod bounds;
mod ending;
mod eras;
mod ids;
mod listens;
mod private;
mod rechunk;
mod restarts;
mod shares;
mod sharing;
mod support;
mod time;
mod visitors;
mod wires;
