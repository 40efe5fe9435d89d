//! What a document asks of its receiver, and which receivers can give it.

use crate::limits::MAX_VALUE_DEPTH;

#[expect(clippy::cast_possible_truncation, reason = "128, and more would not be what others take")]
const MAX_DEPTH: u16 = MAX_VALUE_DEPTH as u16;

/// What a receiver must be able to take to get the same document, gathered while the document is walked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The most members in one container.
    pub members: u32,
    /// The deepest nesting of containers; 0 for a lone scalar.
    pub depth: u16,
    /// Whether there is an integer outside of 32 bits.
    pub wide_ints: bool,
    /// Whether there is a float that other encoders would write as an integer.
    pub whole_floats: bool,
    /// Whether there is a negative zero.
    pub negative_zero: bool,
    /// Whether a string or key starts with U+FEFF, which a `TextDecoder` of JavaScript takes for a byte order mark.
    pub leading_bom: bool,
    /// Whether there is a key `__proto__`, which an assignment in JavaScript does not store.
    pub proto_key: bool,
    /// Whether there is an id of the session dictionary, which means nothing elsewhere.
    pub session_ids: bool,
}

/// What one kind of receiver takes: a row of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The most members it takes in one container.
    pub members: u32,
    /// The deepest nesting it takes.
    pub depth: u16,
    /// Whether it keeps integers outside of 32 bits.
    pub wide_ints: bool,
    /// Whether it tells `1.0` from `1`.
    pub whole_floats: bool,
    /// Whether it tells `-0.0` from `0`.
    pub negative_zero: bool,
    /// Whether it keeps U+FEFF at the start of strings.
    pub leading_bom: bool,
    /// Whether it keeps a key `__proto__`.
    pub proto_key: bool,
    /// Whether it has the same session dictionary.
    pub session_ids: bool,
}

impl Profile {
    /// This implementation, known by its capability "exact".
    pub const EXACT: Self = Self {
        members: u32::MAX,
        depth: MAX_DEPTH,
        wide_ints: true,
        whole_floats: true,
        negative_zero: true,
        leading_bom: true,
        proto_key: true,
        session_ids: false,
    };
    /// The reference implementation in Rust.
    pub const RS: Self =
        Self { members: 1024, depth: 32, whole_floats: false, negative_zero: false, ..Self::EXACT };
    /// The published Python package.
    pub const PY: Self = Self::RS;
    /// The published TypeScript package.
    pub const TS: Self = Self { wide_ints: false, leading_bom: false, proto_key: false, ..Self::RS };

    /// Returns whether this receiver gets the same document out of one with these needs.
    pub const fn takes(&self, needs: &Needs) -> bool {
        needs.members <= self.members
            && needs.depth <= self.depth
            && (self.wide_ints || !needs.wide_ints)
            && (self.whole_floats || !needs.whole_floats)
            && (self.negative_zero || !needs.negative_zero)
            && (self.leading_bom || !needs.leading_bom)
            && (self.proto_key || !needs.proto_key)
            && (self.session_ids || !needs.session_ids)
    }
}

impl Needs {
    #[inline(always)]
    pub(super) fn on_container(&mut self, members: usize, depth: usize) {
        self.members = self.members.max(u32::try_from(members).unwrap_or(u32::MAX));
        self.depth = self.depth.max(u16::try_from(depth).unwrap_or(u16::MAX));
    }

    #[inline(always)]
    pub(super) const fn on_int(&mut self, value: i64) {
        self.wide_ints |= value < i32::MIN as i64 || value > i32::MAX as i64;
    }

    /// Looks at a string that is not in the static dictionary.
    #[inline(always)]
    pub(super) fn on_str(&mut self, text: &[u8]) {
        self.leading_bom |= text.first() == Some(&0xef) && text.starts_with("\u{feff}".as_bytes());
    }

    /// Looks at a key that is not in the static dictionary.
    #[inline(always)]
    pub(super) fn on_key(&mut self, key: &[u8]) {
        self.on_str(key);
        self.proto_key |= key == b"__proto__";
    }

    #[inline(always)]
    pub(super) const fn on_float(&mut self, value: f64) {
        if value == 0.0 && value.is_sign_negative() {
            self.negative_zero = true;
        } else {
            self.whole_floats |= is_whole(value);
        }
    }
}

/// Returns whether `value` is the same number as an i64; other encoders write it as one.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the cast saturates, and going back shows whether it lost anything"
)]
const fn is_whole(value: f64) -> bool {
    const TWO_63: f64 = 9_223_372_036_854_775_808.0;
    value < TWO_63 && (value as i64) as f64 == value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_float(value: f64) -> Needs {
        let mut needs = Needs::default();
        needs.on_float(value);
        needs
    }

    #[test]
    fn floats_that_others_write_as_integers() {
        for value in [0.0, 1.0, -1.0, 1e18, -9_223_372_036_854_775_808.0, 9_223_372_036_854_774_784.0] {
            assert_eq!(of_float(value), Needs { whole_floats: true, ..Needs::default() }, "{value}");
        }
        for value in [0.5, -1.5, 9_223_372_036_854_775_808.0, 1e300, -9_223_372_036_854_777_856.0, 5e-324] {
            assert_eq!(of_float(value), Needs::default(), "{value}");
        }
        assert_eq!(of_float(-0.0), Needs { negative_zero: true, ..Needs::default() });
    }

    #[test]
    fn integers_beyond_32_bits() {
        for (value, wide) in [
            (i64::from(i32::MAX), false),
            (i64::from(i32::MAX) + 1, true),
            (i64::from(i32::MIN), false),
            (i64::from(i32::MIN) - 1, true),
        ] {
            let mut needs = Needs::default();
            needs.on_int(value);
            assert_eq!(needs.wide_ints, wide, "{value}");
        }
    }

    #[test]
    fn each_need_is_judged_on_its_own() {
        let none = Needs::default();
        // The need, and which of exact, RS, PY, TS take it.
        let table = [
            (none, [true; 4]),
            (Needs { members: 1024, depth: 32, ..none }, [true; 4]),
            (Needs { members: 1025, ..none }, [true, false, false, false]),
            (Needs { depth: 33, ..none }, [true, false, false, false]),
            (Needs { depth: 128, ..none }, [true, false, false, false]),
            (Needs { depth: 129, ..none }, [false; 4]),
            (Needs { wide_ints: true, ..none }, [true, true, true, false]),
            (Needs { whole_floats: true, ..none }, [true, false, false, false]),
            (Needs { negative_zero: true, ..none }, [true, false, false, false]),
            (Needs { leading_bom: true, ..none }, [true, true, true, false]),
            (Needs { proto_key: true, ..none }, [true, true, true, false]),
            (Needs { session_ids: true, ..none }, [false; 4]),
        ];
        for (needs, taken) in table {
            let profiles = [Profile::EXACT, Profile::RS, Profile::PY, Profile::TS];
            assert_eq!(profiles.map(|profile| profile.takes(&needs)), taken, "{needs:?}");
        }
        let direct = Profile { session_ids: true, ..Profile::EXACT };
        assert!(direct.takes(&Needs { session_ids: true, ..none }));
    }
}
