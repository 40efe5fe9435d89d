//! F2: frames.
