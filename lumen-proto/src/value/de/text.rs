//! Keys of maps and names of variants: text that may stand for a number or a boolean, as in JSON.

use serde::de::{DeserializeSeed, EnumAccess, VariantAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::error::Error;

/// Deserializes a string that stands where only a string can.
#[derive(Clone, Copy)]
pub(super) enum TextDeserializer<'de, 't> {
    /// From the input, or static.
    Lasting(&'de str),
    /// From the session's table.
    Passing(&'t str),
}

impl<'de> TextDeserializer<'de, '_> {
    #[inline]
    pub(super) fn visit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self {
            Self::Lasting(text) => visitor.visit_borrowed_str(text),
            Self::Passing(text) => visitor.visit_str(text),
        }
    }

    #[inline]
    const fn text(&self) -> &str {
        match self {
            Self::Lasting(text) => text,
            Self::Passing(text) => text,
        }
    }
}

macro_rules! from_text {
    ($($method:ident => $visit:ident),* $(,)?) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            match self.text().parse() {
                Ok(value) => visitor.$visit(value),
                Err(_) => self.visit(visitor),
            }
        })*
    };
}

impl<'de> serde::Deserializer<'de> for TextDeserializer<'de, '_> {
    type Error = Error;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.visit(visitor)
    }

    from_text! {
        deserialize_bool => visit_bool,
        deserialize_i8 => visit_i8,
        deserialize_i16 => visit_i16,
        deserialize_i32 => visit_i32,
        deserialize_i64 => visit_i64,
        deserialize_i128 => visit_i128,
        deserialize_u8 => visit_u8,
        deserialize_u16 => visit_u16,
        deserialize_u32 => visit_u32,
        deserialize_u64 => visit_u64,
        deserialize_u128 => visit_u128,
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_enum(self)
    }

    forward_to_deserialize_any! {
        f32 f64 char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier
        ignored_any
    }
}

/// A variant without content.
impl<'de> EnumAccess<'de> for TextDeserializer<'de, '_> {
    type Error = Error;
    type Variant = Unit;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Unit), Error> {
        Ok((seed.deserialize(self)?, Unit))
    }
}

/// The content that a variant alone does not have.
pub(super) struct Unit;

impl Unit {
    fn missing<T>(self, what: &'static str) -> Result<T, Error> {
        Err(serde::de::Error::invalid_type(serde::de::Unexpected::UnitVariant, &what))
    }
}

impl<'de> VariantAccess<'de> for Unit {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _: T) -> Result<T::Value, Error> {
        self.missing("newtype variant")
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Error> {
        self.missing("tuple variant")
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], _: V) -> Result<V::Value, Error> {
        self.missing("struct variant")
    }
}
