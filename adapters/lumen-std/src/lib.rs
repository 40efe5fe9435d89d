//! lumen-std.
