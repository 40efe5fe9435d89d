//! Examples live beside this file, one folder a runtime.
