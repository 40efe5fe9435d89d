//! The hub by hand: the smallest walks. The simulated world has the long ones.
