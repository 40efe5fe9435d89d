//! F3: JSON-RPC by the bytes.
