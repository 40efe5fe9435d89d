//! What no error and no log may say, even if the server does: a page that lists the request's headers has the key in it.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use super::{Cause, Failure};

/// What stands in the place of a secret.
const HIDDEN: &str = "***";

/// A shorter text is no secret: it would be found everywhere.
const SHORTEST: usize = 4;

/// Texts that are never quoted. They are not shown by `Debug` either.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets(Vec<Box<str>>);

impl Secrets {
    /// Takes the texts; those below four bytes are no secrets.
    pub fn new<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut texts: Vec<Box<str>> =
            texts.into_iter().filter(|text| text.len() >= SHORTEST).map(Box::from).collect();
        // What is part of another one comes later: else the rest of that would be left.
        texts.sort_unstable_by_key(|text| core::cmp::Reverse(text.len()));
        Self(texts)
    }

    /// Hides them in what a failure quotes.
    pub(super) fn hide_in(&self, mut failure: Failure) -> Failure {
        self.hide(&mut failure.excerpt);
        if let Some(text) = &mut failure.retry_after {
            self.hide(text);
        }
        match &mut failure.cause {
            Cause::Transport(error) => self.hide(&mut error.text),
            Cause::ContentType(text) | Cause::ContentEncoding(text) => self.hide(text),
            _ => {}
        }
        failure
    }

    /// Hides them in a text that may have been cut anywhere: the beginning of one at its end is one too.
    pub(super) fn hide(&self, text: &mut String) {
        for secret in &self.0 {
            if text.contains(&**secret) {
                *text = text.replace(&**secret, HIDDEN);
            }
            let cut = (SHORTEST..secret.len()).rev().filter_map(|len| secret.get(..len));
            if let Some(cut) = { cut }.find(|cut| text.ends_with(*cut)) {
                text.truncate(text.len() - cut.len());
                text.push_str(HIDDEN);
            }
        }
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} secrets", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_hidden_also_if_it_is_cut_or_part_of_another() {
        let secrets = Secrets::new(["key-é1", "Bearer key-é1", "abc"]);
        for (text, hidden) in [
            ("", ""),
            ("authorization: Bearer key-é1, abc", "authorization: ***, abc"),
            ("key-é1key-é1", "******"),
            ("see key-é", "see ***"),
            ("see key-", "see ***"),
            ("see key", "see key"),
            ("Bearer k", "***"),
        ] {
            let mut text = String::from(text);
            secrets.hide(&mut text);
            assert_eq!(text, hidden);
        }
        assert!(!alloc::format!("{secrets:?}").contains("key"));
    }
}
