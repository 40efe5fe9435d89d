//! lumen-tokio.
