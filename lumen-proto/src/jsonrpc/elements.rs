//! The elements of an array on demand.

use super::Span;
use super::cursor::Cursor;

/// Iterates over the elements of an array in their order; see [`elements`].
#[derive(Clone)]
pub struct Elements<'a> {
    cursor: Cursor<'a>,
    first: bool,
    done: bool,
}

/// Returns the elements of the array at `array`, with ranges in `text`. There are none if it is no array.
pub fn elements(text: &[u8], array: Span) -> Elements<'_> {
    let text = text.get(..array.end()).unwrap_or_default();
    let mut cursor = Cursor::new(text, array.start());
    let done = cursor.peek() != Some(b'[') || cursor.open(false).is_none();
    Elements { cursor, first: true, done }
}

impl Iterator for Elements<'_> {
    type Item = Span;

    fn next(&mut self) -> Option<Span> {
        if self.done {
            return None;
        }
        let mut step = || {
            if !self.cursor.next_element(self.first)? {
                return None;
            }
            let start = self.cursor.at;
            self.cursor.value()?;
            Some(Span::new(start, self.cursor.at))
        };
        let element = step();
        self.first = false;
        self.done = element.is_none();
        element
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        let whole = Span::new(0, text.len());
        elements(text.as_bytes(), whole)
            .map(|e| core::str::from_utf8(e.of(text.as_bytes())).unwrap())
            .collect()
    }

    #[test]
    fn elements_come_in_order_and_only_from_arrays() {
        assert_eq!(texts(r#"[1, "a,]" ,{"x":[2]},[ ] ]"#), ["1", r#""a,]""#, r#"{"x":[2]}"#, "[ ]"]);
        for none in ["[]", "{}", "1", "", "[", "[,", r#""[1]""#] {
            assert_eq!(texts(none), Vec::<&str>::new(), "{none}");
        }
        assert_eq!(texts("[1,2"), ["1", "2"], "a broken text gives what could be read");
    }
}
