//! Shared generators for the benchmarks.
