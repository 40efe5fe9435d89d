//! The relay in the simulated world: negotiation, failures, bounds, and the same result however bytes are cut.

mod bounds;
mod failures;
mod negotiation;
mod orders;
mod rechunk;
mod reconnect;
mod stopping;
mod support;
