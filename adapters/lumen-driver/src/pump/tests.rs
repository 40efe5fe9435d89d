//! Tests of the pump.
