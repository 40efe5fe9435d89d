//! No runtime: lumen-uring, where the kernel lets it have a ring.

use lumen_uring::{Engine, Unavailable};

use crate::blocking::Makes;

pub struct Uring;

impl Makes for Uring {
    type Engine = Engine;

    const PEER: &str = "uring";

    fn is_here() -> bool {
        lumen_tests::ring::is_here()
    }

    fn made<T>(made: Result<T, Unavailable>) -> T {
        made.unwrap()
    }
}
