//! lumen-driver.
