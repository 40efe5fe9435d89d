//! The codec's results on known documents, without the features of serde_json with which `tests/features` runs the same.

#[path = "../features/tests/documents/mod.rs"]
mod documents;
