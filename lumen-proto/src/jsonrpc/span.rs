//! A range of bytes in a text.

use core::fmt;
use core::num::NonZeroU32;

/// The bytes from `start` up to but not including `end`.
///
/// 32 bits are enough: a longer text is refused before it is described.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Span {
    start: u32,
    /// One more than the end: a span that may be missing takes no more room than one that is there.
    past: NonZeroU32,
}

impl Span {
    /// What a text that is described must be shorter than, in bytes.
    pub(crate) const LIMIT: usize = u32::MAX as usize - 1;

    /// Makes a span of two offsets. Offsets that do not fit become the largest, which is outside of every text.
    #[inline]
    pub fn new(start: usize, end: usize) -> Self {
        let narrow = |offset: usize| u32::try_from(offset.min(Self::LIMIT)).unwrap_or(u32::MAX);
        Self { start: narrow(start), past: NonZeroU32::MIN.saturating_add(narrow(end)) }
    }

    /// Makes the empty span before the byte at `offset`.
    pub fn empty(offset: usize) -> Self {
        Self::new(offset, offset)
    }

    /// Returns the offset of the first byte.
    #[inline]
    pub const fn start(&self) -> usize {
        self.start as usize
    }

    /// Returns the offset after the last byte.
    #[inline]
    pub const fn end(&self) -> usize {
        self.past.get() as usize - 1
    }

    /// Returns the bytes of `text` in this span, or nothing when it does not lie in `text`.
    #[inline]
    pub fn of<'a>(&self, text: &'a [u8]) -> &'a [u8] {
        text.get(self.start()..self.end()).unwrap_or_default()
    }

    /// Returns the number of bytes.
    pub const fn len(&self) -> usize {
        self.end().saturating_sub(self.start())
    }

    /// Returns whether there are no bytes in it.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Default for Span {
    fn default() -> Self {
        Self::empty(0)
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.start()..self.end()).fmt(f)
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
        assert_eq!(Span::new(0, usize::MAX).end(), Span::LIMIT);
        assert_eq!((Span::empty(0).len(), Span::new(2, 4).end()), (0, 4));
        assert_eq!(size_of::<Option<Span>>(), 8);
    }
}
