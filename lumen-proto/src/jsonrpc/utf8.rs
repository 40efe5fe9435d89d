//! UTF-8 validation, vectorised when the feature `simd` is on.

/// Checks that `text` is UTF-8; otherwise returns the offset of the first byte that is not.
pub(super) fn check(text: &[u8]) -> Result<(), usize> {
    #[cfg(feature = "simd")]
    if simdutf8::basic::from_utf8(text).is_ok() {
        return Ok(());
    }
    // Also after the fast check has failed: only this one knows where.
    core::str::from_utf8(text).map(|_| ()).map_err(|error| error.valid_up_to())
}
