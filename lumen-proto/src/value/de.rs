//! A value to any `Deserialize`, with strings borrowed from the input.
//!
//! Types take the shapes that serde_json gives them; see [`ser`](super::ser).

mod error;
#[cfg(test)]
mod tests;
mod text;

use serde::de::{self, Deserialize, DeserializeSeed, Visitor};
use serde::forward_to_deserialize_any;

pub use self::error::Error;
use self::text::TextDeserializer;
use super::problem::{Invalid, Problem};
use super::read::{Reader, Text};
use super::{Table, tag};
use crate::limits::MAX_VALUE_DEPTH;

/// Deserializes the value that `bytes` are. One line feed may follow it.
///
/// # Errors
/// If `bytes` are no value, or none of this type.
///
/// # Bounds
/// Nests at most [`MAX_VALUE_DEPTH`] deep. Of all arrays and objects that are open at one time, no more members
/// are announced to the type than there are bytes.
pub fn from_slice<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Result<T, Error> {
    run(bytes, None)
}

/// Deserializes like [`from_slice`], with the words of a session.
///
/// # Errors
/// As [`from_slice`].
pub fn from_slice_in_session<'de, T: Deserialize<'de>>(bytes: &'de [u8], table: &Table) -> Result<T, Error> {
    run(bytes, Some(table))
}

fn run<'de, T: Deserialize<'de>>(bytes: &'de [u8], table: Option<&Table>) -> Result<T, Error> {
    let mut deserializer = Deserializer { reader: Reader::new(bytes), table, depth: 0, owed: 0 };
    let value = T::deserialize(&mut deserializer)?;
    deserializer.reader.end()?;
    Ok(value)
}

/// The serde `Deserializer`.
struct Deserializer<'de, 't> {
    reader: Reader<'de>,
    table: Option<&'t Table>,
    depth: usize,
    /// The bytes that the members announced so far must take at least.
    owed: usize,
}

impl<'de, 't> Deserializer<'de, 't> {
    #[inline]
    fn text(&self, text: Text<'de>) -> Result<TextDeserializer<'de, 't>, Invalid> {
        match text {
            Text::Static(word) => Ok(TextDeserializer::Lasting(word)),
            Text::Inline(text) => Ok(TextDeserializer::Lasting(text)),
            Text::Session(id) => match self.table.and_then(|table| table.word(id)) {
                Some(word) => Ok(TextDeserializer::Passing(word)),
                None => Err(self.reader.before(Problem::UnknownId(id))),
            },
        }
    }

    /// Takes the count of an array or object of which each member takes `least` bytes or more.
    #[inline]
    fn open(&mut self, least: usize) -> Result<Members<'_, 'de, 't>, Invalid> {
        if self.depth == MAX_VALUE_DEPTH {
            return Err(self.reader.before(Problem::TooDeep));
        }
        let offset = self.reader.offset();
        let left = if least == 1 { self.reader.array() } else { self.reader.object() }?;
        // The reader has seen that these fit what remains; so must those that come after them.
        let owed = self.owed + left * least;
        if owed > self.reader.remaining() {
            return Err(Invalid { offset, problem: Problem::TooMany });
        }
        self.owed = owed;
        self.depth += 1;
        Ok(Members { deserializer: self, left })
    }

    #[inline]
    fn array<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Error> {
        let mut members = self.open(1)?;
        let value = visitor.visit_seq(&mut members)?;
        members.close()?;
        Ok(value)
    }

    #[inline]
    fn object<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Error> {
        let mut members = self.open(2)?;
        let value = visitor.visit_map(&mut members)?;
        members.close()?;
        Ok(value)
    }

    #[inline]
    fn any<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Error> {
        match self.reader.byte()? {
            tag::NULL => visitor.visit_unit(),
            tag::BOOL => visitor.visit_bool(self.reader.bool()?),
            tag::FLOAT => visitor.visit_f64(self.reader.float()?),
            tag::INT => {
                let value = self.reader.int()?;
                match u64::try_from(value) {
                    Ok(value) => visitor.visit_u64(value),
                    Err(_) => visitor.visit_i64(value),
                }
            }
            tag::WORD => {
                let word = self.reader.word()?;
                self.text(word)?.visit(visitor)
            }
            tag::STR => visitor.visit_borrowed_str(self.reader.str()?),
            tag::ARRAY => self.array(visitor),
            tag::OBJECT => self.object(visitor),
            other => Err(self.reader.before(Problem::UnknownTag(other)).into()),
        }
    }
}

impl<'de> de::Deserializer<'de> for &mut Deserializer<'de, '_> {
    type Error = Error;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let offset = self.reader.offset();
        self.any(visitor).map_err(|error| error.at(offset))
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.reader.peek() == Some(tag::NULL) {
            self.reader.byte()?;
            visitor.visit_none()
        } else {
            visitor.visit_some(self)
        }
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.reader.peek() != Some(tag::STR) {
            return self.deserialize_any(visitor);
        }
        self.reader.byte()?;
        visitor.visit_borrowed_bytes(self.reader.str()?.as_bytes())
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let offset = self.reader.offset();
        let result = match self.reader.peek() {
            Some(tag::OBJECT) => {
                self.reader.byte()?;
                let mut members = self.open(2)?;
                if members.left == 1 {
                    visitor.visit_enum(&mut members).and_then(|value| members.close().map(|()| value))
                } else {
                    Err(de::Error::invalid_length(members.left, &"a variant: an object of one member"))
                }
            }
            // A string is a variant without content; the rest is refused with its own name.
            Some(tag::STR | tag::WORD) => {
                let text = match self.reader.byte()? {
                    tag::STR => Text::Inline(self.reader.str()?),
                    _ => self.reader.word()?,
                };
                visitor.visit_enum(self.text(text)?)
            }
            _ => self.any(visitor),
        };
        result.map_err(|error| error.at(offset))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

/// What is left of an array, an object, or the content of a variant.
struct Members<'s, 'de, 't> {
    deserializer: &'s mut Deserializer<'de, 't>,
    left: usize,
}

impl Members<'_, '_, '_> {
    /// Checks that the type took all of them.
    #[inline]
    fn close(self) -> Result<(), Error> {
        if self.left > 0 {
            return Err(de::Error::custom(format_args!("{} members more than expected", self.left)));
        }
        self.deserializer.depth -= 1;
        Ok(())
    }
}

impl<'de> de::SeqAccess<'de> for Members<'_, 'de, '_> {
    type Error = Error;

    #[inline]
    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        self.deserializer.owed -= 1;
        seed.deserialize(&mut *self.deserializer).map(Some)
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

impl<'de> de::MapAccess<'de> for Members<'_, 'de, '_> {
    type Error = Error;

    #[inline]
    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        self.deserializer.owed -= 1;
        let offset = self.deserializer.reader.offset();
        let key = self.deserializer.reader.key()?;
        let key = self.deserializer.text(key)?;
        seed.deserialize(key).map(Some).map_err(|error| error.at(offset))
    }

    #[inline]
    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        self.deserializer.owed -= 1;
        seed.deserialize(&mut *self.deserializer)
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

/// A variant with content: the one member of an object.
impl<'de> de::EnumAccess<'de> for &mut Members<'_, 'de, '_> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Error> {
        match de::MapAccess::next_key_seed(self, seed)? {
            Some(variant) => Ok((variant, self)),
            None => Err(de::Error::custom("expected a variant")),
        }
    }
}

impl<'de> de::VariantAccess<'de> for &mut Members<'_, 'de, '_> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        de::MapAccess::next_value(self)
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Error> {
        de::MapAccess::next_value_seed(self, seed)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Error> {
        self.deserializer.owed -= 1;
        de::Deserializer::deserialize_any(&mut *self.deserializer, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserializer.owed -= 1;
        de::Deserializer::deserialize_any(&mut *self.deserializer, visitor)
    }
}
