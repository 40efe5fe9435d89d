//! lumen-os.
