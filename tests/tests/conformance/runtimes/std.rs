//! No runtime: lumen-std.

use lumen_std::Engine;

use crate::blocking::Makes;

pub struct Std;

impl Makes for Std {
    type Engine = Engine;

    const PEER: &str = "std";

    fn made<T>(made: T) -> T {
        made
    }
}
