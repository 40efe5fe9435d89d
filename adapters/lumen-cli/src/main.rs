//! The `lumen` command.

fn main() {}
