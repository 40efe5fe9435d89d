//! A range of bytes in a text.

/// The bytes from `start` up to but not including `end`.
///
/// 32 bits are enough: a text longer than 4 GiB is refused before it is described.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

impl Span {
    /// Makes a span of two offsets. Offsets beyond 32 bits become the largest, which is outside of every text.
    pub fn new(start: usize, end: usize) -> Self {
        let narrow = |offset| u32::try_from(offset).unwrap_or(u32::MAX);
        Self { start: narrow(start), end: narrow(end) }
    }

    /// Makes the empty span before the byte at `offset`.
    pub fn empty(offset: usize) -> Self {
        Self::new(offset, offset)
    }

    /// Returns the bytes of `text` in this span, or nothing when it does not lie in `text`.
    pub fn of<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        text.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// Returns the number of bytes.
    pub const fn len(&self) -> usize {
        self.end.saturating_sub(self.start) as usize
    }

    /// Returns whether there are no bytes in it.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_outside_of_the_text_is_empty() {
        assert_eq!(Span::new(1, 3).of(b"abcd"), b"bc");
        assert_eq!(Span::new(1, 5).of(b"abcd"), b"");
        assert_eq!(Span::new(3, 1).of(b"abcd"), b"");
        assert_eq!(Span::new(3, 1).len(), 0);
        assert_eq!(Span::new(0, usize::MAX).of(b"abcd"), b"");
    }
}
