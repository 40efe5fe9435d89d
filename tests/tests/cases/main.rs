//! Failures that MCP plumbing has in the field, by their numbers, on real processes and real pipes.
//!
//! Each runs through `connect`, through `wrap` with a client that speaks JSON, and where it adds something through
//! both, so that LUMEN frames flow between them.

mod argv;
mod bytes;
mod lifecycle;
mod noise;
mod support;
