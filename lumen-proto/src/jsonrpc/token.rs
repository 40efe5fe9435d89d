//! JSON tokens that are kept: ids above all, which are short.

use core::fmt;
use core::ops::Deref;

use bytes::Bytes;

/// The JSON text of one value, kept apart from the message that it stood in. Cloning it allocates nothing, nor does
/// making one of [`INLINE`](Self::INLINE) bytes or fewer, which nearly all ids have.
#[derive(Clone)]
pub struct Token(Repr);

#[derive(Clone)]
enum Repr {
    Inline { len: u8, bytes: [u8; Token::INLINE] },
    Shared(Bytes),
}

impl Token {
    /// What is kept without an allocation, in bytes.
    pub const INLINE: usize = 22;

    /// Makes an empty one, which is no JSON.
    pub const fn new() -> Self {
        Self(Repr::Inline { len: 0, bytes: [0; Self::INLINE] })
    }
}

impl Default for Token {
    fn default() -> Self {
        Self::new()
    }
}

impl From<&[u8]> for Token {
    fn from(token: &[u8]) -> Self {
        let mut bytes = [0; Self::INLINE];
        match (bytes.get_mut(..token.len()), u8::try_from(token.len())) {
            (Some(room), Ok(len)) => {
                room.copy_from_slice(token);
                Self(Repr::Inline { len, bytes })
            }
            _ => Self(Repr::Shared(Bytes::copy_from_slice(token))),
        }
    }
}

impl From<&str> for Token {
    fn from(token: &str) -> Self {
        token.as_bytes().into()
    }
}

impl From<Bytes> for Token {
    fn from(token: Bytes) -> Self {
        if token.len() <= Self::INLINE { (&token[..]).into() } else { Self(Repr::Shared(token)) }
    }
}

impl From<Token> for Bytes {
    fn from(token: Token) -> Self {
        match token.0 {
            Repr::Inline { .. } => Self::copy_from_slice(&token),
            Repr::Shared(bytes) => bytes,
        }
    }
}

impl Deref for Token {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Repr::Inline { len, bytes } => bytes.get(..usize::from(*len)).unwrap_or_default(),
            Repr::Shared(bytes) => bytes,
        }
    }
}

impl PartialEq for Token {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Token {}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&alloc::string::String::from_utf8_lossy(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_its_length_it_is_what_it_was_made_of() {
        for len in [0, 1, Token::INLINE, Token::INLINE + 1, 300] {
            let text = alloc::vec![b'7'; len];
            let token = Token::from(&text[..]);
            assert_eq!(*token, text[..]);
            assert_eq!(token, Token::from(Bytes::from(text.clone())));
            assert_eq!(Bytes::from(token.clone()), text);
            assert_ne!(token, Token::from("8"));
        }
        assert_eq!(Token::default(), Token::from(""));
        assert!(size_of::<Token>() <= size_of::<Bytes>());
    }
}
