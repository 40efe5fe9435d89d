//! Any `Serialize` to a value, without a tree in between.
//!
//! Data takes the shape that serde_json gives it: `None` and `()` are null, newtypes are transparent, variants
//! are tagged from outside, bytes are arrays of integers, keys are text. Its `RawValue` is written as what its
//! text says.

mod error;
mod heads;
mod key;
#[cfg(test)]
pub(super) mod tests;

use alloc::vec::Vec;

use serde::ser::{self, Serialize};

pub use self::error::Error;
use self::heads::Heads;
use self::key::KeySerializer;
use super::number::{self, Number};
use super::transcode::Transcoder;
use super::{Table, encode, tag};
use crate::limits::MAX_VALUE_DEPTH;

/// How serde_json hands over a number when some crate has its feature `arbitrary_precision` on: a struct of
/// this name, whose one member of the same name is the number's text.
const NUMBER: &str = "$serde_json::private::Number";

/// The same for a `RawValue`, whose text may be any document.
const RAW: &str = "$serde_json::private::RawValue";

/// Serializes to a new buffer.
///
/// # Errors
/// As [`to_buf`].
pub fn to_vec<T: ?Sized + Serialize>(value: &T) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    to_buf(value, &mut out)?;
    Ok(out)
}

/// Appends a value to a buffer, which after an error is as it was before.
///
/// # Errors
/// For integers outside of `i64`, floats that are not finite, keys that are no text, and nesting above
/// [`MAX_VALUE_DEPTH`].
pub fn to_buf<T: ?Sized + Serialize>(value: &T, out: &mut Vec<u8>) -> Result<(), Error> {
    Options::new().to_buf(value, out)
}

/// How to serialize, where that is not as [`to_buf`] does it.
#[derive(Debug, Default)]
pub struct Options<'t> {
    table: Option<&'t mut Table>,
    canonical: bool,
}

impl<'t> Options<'t> {
    /// Starts with what [`to_buf`] does.
    pub const fn new() -> Self {
        Self { table: None, canonical: false }
    }

    /// Uses the words of a session too.
    #[must_use]
    pub const fn with_table(mut self, table: &'t mut Table) -> Self {
        self.table = Some(table);
        self
    }

    /// Writes whole floats inside `i64` as integers, as the published implementations do: `1.0` becomes `1`.
    /// Negative zero stays a float.
    #[must_use]
    pub const fn with_canonical_numbers(mut self) -> Self {
        self.canonical = true;
        self
    }

    /// Appends a value to a buffer, which after an error is as it was before.
    ///
    /// # Errors
    /// As [`to_buf`](to_buf()).
    pub fn to_buf<T: ?Sized + Serialize>(self, value: &T, out: &mut Vec<u8>) -> Result<(), Error> {
        let start = out.len();
        let Self { table, canonical } = self;
        let mut serializer = Serializer { out, table, canonical, depth: 0, heads: Heads::new() };
        match value.serialize(&mut serializer) {
            Ok(()) => {
                serializer.heads.finish(serializer.out);
                Ok(())
            }
            Err(error) => {
                out.truncate(start);
                Err(error)
            }
        }
    }
}

/// The serde `Serializer`; use it through [`Options`], which looks after what has to be done at the end.
#[derive(Debug)]
struct Serializer<'b> {
    out: &'b mut Vec<u8>,
    table: Option<&'b mut Table>,
    canonical: bool,
    depth: usize,
    heads: Heads,
}

/// An array or object whose members are being written.
struct Compound<'s, 'b> {
    serializer: &'s mut Serializer<'b>,
    /// Where the count stands.
    at: usize,
    announced: usize,
    count: usize,
    /// Whether this is the content of a variant, so inside of an object of its own.
    nested: bool,
}

/// A struct, or what stands for something else of serde_json's: its one member's value is JSON text.
enum Fields<'s, 'b> {
    Object(Compound<'s, 'b>),
    Number(&'s mut Serializer<'b>),
    Raw(&'s mut Serializer<'b>),
}

impl<'b> Serializer<'b> {
    #[inline]
    fn open<'s>(&'s mut self, tag: u8, len: Option<usize>) -> Result<Compound<'s, 'b>, Error> {
        self.enter()?;
        let announced = len.unwrap_or(0);
        let at = self.out.len() + 1;
        match tag {
            tag::ARRAY => encode::array(announced, self.out),
            _ => encode::object(announced, self.out),
        }
        Ok(Compound { serializer: self, at, announced, count: 0, nested: false })
    }

    /// Opens the object around the content of a variant.
    fn open_variant(&mut self, variant: &str) -> Result<(), Error> {
        self.enter()?;
        encode::object(1, self.out);
        self.key(variant);
        Ok(())
    }

    #[inline]
    fn enter(&mut self) -> Result<(), Error> {
        if self.depth == MAX_VALUE_DEPTH {
            return Err(Error::TooDeep);
        }
        self.depth += 1;
        Ok(())
    }

    #[inline]
    fn key(&mut self, text: &str) {
        match &mut self.table {
            None => encode::key(text, self.out),
            Some(table) => encode::key_in_session(text, table, self.out),
        }
    }

    #[inline]
    fn float(&mut self, value: f64) -> Result<(), Error> {
        if !value.is_finite() {
            return Err(Error::NotFinite);
        }
        match whole(value).filter(|_| self.canonical) {
            Some(whole) => encode::int(whole, self.out),
            None => encode::float(value, self.out),
        }
        Ok(())
    }

    /// Writes a number of serde_json's from its text.
    fn number(&mut self, text: &str) -> Result<(), Error> {
        match number::parse(text.as_bytes()) {
            Some((Number::Int(value), len)) if len == text.len() => {
                encode::int(value, self.out);
                Ok(())
            }
            Some((Number::Float(value), len)) if len == text.len() => self.float(value),
            _ => Err(Error::DoesNotFit),
        }
    }

    /// Writes what a JSON text says.
    fn raw(&mut self, text: &str) -> Result<(), Error> {
        match Transcoder::new().encode(text.as_bytes(), self.out) {
            Ok(needs) if self.depth + usize::from(needs.depth) > MAX_VALUE_DEPTH => Err(Error::TooDeep),
            // They would have to be integers here.
            Ok(needs) if self.canonical && needs.whole_floats => Err(Error::DoesNotFit),
            Ok(_) => Ok(()),
            Err(_) => Err(Error::DoesNotFit),
        }
    }
}

/// Returns the integer that equals `value`, if there is one in `i64` and it has the same sign.
#[inline]
fn whole(value: f64) -> Option<i64> {
    const TOP: f64 = 9_223_372_036_854_775_808.0;
    if !(-TOP..TOP).contains(&value) {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "that is what is looked for")]
    let whole = value as i64;
    (whole as f64 == value && (whole != 0 || value.is_sign_positive())).then_some(whole)
}

impl Compound<'_, '_> {
    #[inline]
    fn element<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Error> {
        self.count += 1;
        value.serialize(&mut *self.serializer)
    }

    #[inline]
    fn member<T: ?Sized + Serialize>(&mut self, key: &str, value: &T) -> Result<(), Error> {
        self.serializer.key(key);
        self.element(value)
    }

    #[inline]
    fn close(self) -> Result<(), Error> {
        let Serializer { heads, out, depth, .. } = self.serializer;
        if self.count != self.announced {
            heads.fix(self.at, self.announced, self.count, out);
        }
        *depth -= 1 + usize::from(self.nested);
        Ok(())
    }
}

macro_rules! integers {
    ($($method:ident($type:ty)),* $(,)?) => {
        $(#[inline]
        fn $method(self, value: $type) -> Result<(), Error> {
            let value = i64::try_from(value).map_err(|_| Error::DoesNotFit)?;
            encode::int(value, self.out);
            Ok(())
        })*
    };
}

impl<'s, 'b> ser::Serializer for &'s mut Serializer<'b> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Compound<'s, 'b>;
    type SerializeTuple = Compound<'s, 'b>;
    type SerializeTupleStruct = Compound<'s, 'b>;
    type SerializeTupleVariant = Compound<'s, 'b>;
    type SerializeMap = Compound<'s, 'b>;
    type SerializeStruct = Fields<'s, 'b>;
    type SerializeStructVariant = Fields<'s, 'b>;

    integers! {
        serialize_i8(i8),
        serialize_i16(i16),
        serialize_i32(i32),
        serialize_i64(i64),
        serialize_i128(i128),
        serialize_u8(u8),
        serialize_u16(u16),
        serialize_u32(u32),
        serialize_u64(u64),
        serialize_u128(u128),
    }

    #[inline]
    fn serialize_bool(self, value: bool) -> Result<(), Error> {
        encode::bool(value, self.out);
        Ok(())
    }

    #[inline]
    fn serialize_f32(self, value: f32) -> Result<(), Error> {
        self.float(f64::from(value))
    }

    #[inline]
    fn serialize_f64(self, value: f64) -> Result<(), Error> {
        self.float(value)
    }

    #[inline]
    fn serialize_char(self, value: char) -> Result<(), Error> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    #[inline]
    fn serialize_str(self, text: &str) -> Result<(), Error> {
        match &mut self.table {
            None => encode::str(text, self.out),
            Some(table) => encode::str_in_session(text, table, self.out),
        }
        Ok(())
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<(), Error> {
        ser::Serializer::collect_seq(self, bytes)
    }

    #[inline]
    fn serialize_none(self) -> Result<(), Error> {
        self.serialize_unit()
    }

    #[inline]
    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    #[inline]
    fn serialize_unit(self) -> Result<(), Error> {
        encode::null(self.out);
        Ok(())
    }

    #[inline]
    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.serialize_unit()
    }

    #[inline]
    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Error> {
        self.serialize_str(variant)
    }

    #[inline]
    fn serialize_newtype_struct<T: ?Sized + Serialize>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        self.open_variant(variant)?;
        value.serialize(&mut *self)?;
        self.depth -= 1;
        Ok(())
    }

    #[inline]
    fn serialize_seq(self, len: Option<usize>) -> Result<Self::SerializeSeq, Error> {
        self.open(tag::ARRAY, len)
    }

    #[inline]
    fn serialize_tuple(self, len: usize) -> Result<Self::SerializeTuple, Error> {
        self.open(tag::ARRAY, Some(len))
    }

    #[inline]
    fn serialize_tuple_struct(
        self,
        _: &'static str,
        len: usize,
    ) -> Result<Self::SerializeTupleStruct, Error> {
        self.open(tag::ARRAY, Some(len))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeTupleVariant, Error> {
        self.open_variant(variant)?;
        Ok(Compound { nested: true, ..self.open(tag::ARRAY, Some(len))? })
    }

    #[inline]
    fn serialize_map(self, len: Option<usize>) -> Result<Self::SerializeMap, Error> {
        self.open(tag::OBJECT, len)
    }

    #[inline]
    fn serialize_struct(self, name: &'static str, len: usize) -> Result<Self::SerializeStruct, Error> {
        match name {
            NUMBER => Ok(Fields::Number(self)),
            RAW => Ok(Fields::Raw(self)),
            _ => self.open(tag::OBJECT, Some(len)).map(Fields::Object),
        }
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Self::SerializeStructVariant, Error> {
        self.open_variant(variant)?;
        Ok(Fields::Object(Compound { nested: true, ..self.open(tag::OBJECT, Some(len))? }))
    }
}

macro_rules! sequences {
    ($($trait:ident :: $method:ident),* $(,)?) => {
        $(impl ser::$trait for Compound<'_, '_> {
            type Ok = ();
            type Error = Error;

            #[inline]
            fn $method<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Error> {
                self.element(value)
            }

            #[inline]
            fn end(self) -> Result<(), Error> {
                self.close()
            }
        })*
    };
}

sequences! {
    SerializeSeq::serialize_element,
    SerializeTuple::serialize_element,
    SerializeTupleStruct::serialize_field,
    SerializeTupleVariant::serialize_field,
}

impl ser::SerializeMap for Compound<'_, '_> {
    type Ok = ();
    type Error = Error;

    #[inline]
    fn serialize_key<T: ?Sized + Serialize>(&mut self, key: &T) -> Result<(), Error> {
        key.serialize(KeySerializer(|text: &str| self.serializer.key(text)))
    }

    #[inline]
    fn serialize_value<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Error> {
        self.element(value)
    }

    #[inline]
    fn end(self) -> Result<(), Error> {
        self.close()
    }
}

macro_rules! structs {
    ($($trait:ident),* $(,)?) => {
        $(impl ser::$trait for Fields<'_, '_> {
            type Ok = ();
            type Error = Error;

            #[inline]
            fn serialize_field<T: ?Sized + Serialize>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<(), Error> {
                let mut result = Err(Error::DoesNotFit);
                match self {
                    Self::Object(object) => return object.member(key, value),
                    Self::Number(serializer) => {
                        value.serialize(KeySerializer(|text: &str| result = serializer.number(text)))?;
                    }
                    Self::Raw(serializer) => {
                        value.serialize(KeySerializer(|text: &str| result = serializer.raw(text)))?;
                    }
                }
                result
            }

            #[inline]
            fn end(self) -> Result<(), Error> {
                match self {
                    Self::Object(object) => object.close(),
                    Self::Number(_) | Self::Raw(_) => Ok(()),
                }
            }
        })*
    };
}

structs!(SerializeStruct, SerializeStructVariant);
