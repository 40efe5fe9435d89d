//! What comes back in one exchange.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::string::String;
use core::time::Duration;

use bytes::{Bytes, BytesMut};

use super::failure::beginning;
use super::{Cause, Failure};
use crate::limits;
use crate::sse::{Reader, Step};

/// The headers of a response that count.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Head<'a> {
    pub(super) status: u16,
    media_type: Option<&'a str>,
    coding: Option<&'a str>,
    retry_after: Option<&'a str>,
    pub(super) session: Option<&'a str>,
}

impl<'a> Head<'a> {
    pub(super) fn new(status: u16, headers: &[(&'a str, &'a str)]) -> Self {
        let mut head = Self { status, ..Self::default() };
        for &(name, value) in headers {
            match name {
                "content-type" => head.media_type = Some(value),
                "content-encoding" => head.coding = Some(value),
                "retry-after" => head.retry_after = Some(value),
                "mcp-session-id" => head.session = Some(value),
                _ => {}
            }
        }
        head
    }
}

/// A response, as far as it has come.
#[derive(Debug)]
pub(super) struct Response {
    status: u16,
    retry_after: Option<String>,
    body: Body,
}

#[derive(Debug)]
enum Body {
    /// One JSON text.
    Json(BytesMut),
    Stream(Box<Reader>),
    /// Of a refusal: perhaps an error answer, else to be quoted.
    Refusal(BytesMut),
    /// To be quoted.
    Foreign {
        cause: Cause,
        said: BytesMut,
    },
    /// Nobody wants to know.
    Ignored,
}

impl Response {
    /// Starts to read a response. `is_asked`: an answer is expected in it, or a stream.
    pub(super) fn new(head: &Head<'_>, is_asked: bool) -> Self {
        let media_type = head.media_type.unwrap_or_default();
        let media_type = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let coding = head
            .coding
            .map(str::trim)
            .filter(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case("identity"));
        let is_success = (200..300).contains(&head.status);
        let body = if let Some(coding) = coding.filter(|_| is_asked || !is_success) {
            let coding = beginning(coding, limits::MAX_EXCERPT).to_owned();
            Body::Foreign { cause: Cause::ContentEncoding(coding), said: BytesMut::new() }
        } else if !is_success {
            Body::Refusal(BytesMut::new())
        } else if media_type == "text/event-stream" {
            Body::Stream(Box::new(Reader::with_limit(limits::MAX_MESSAGE)))
        } else if !is_asked {
            Body::Ignored
        } else if media_type.is_empty() || media_type == "application/json" || media_type.ends_with("+json") {
            Body::Json(BytesMut::new())
        } else {
            let cause = Cause::ContentType(beginning(&media_type, limits::MAX_EXCERPT).to_owned());
            Body::Foreign { cause, said: BytesMut::new() }
        };
        let retry_after =
            head.retry_after.filter(|text| text.len() <= limits::MAX_EXCERPT).map(str::to_owned);
        Self { status: head.status, retry_after, body }
    }

    /// Takes bytes from the front of `chunk`: all of them, or up to the end of one event of a stream.
    ///
    /// # Errors
    /// What is wrong with the response, which need not be read any further.
    pub(super) fn push(&mut self, chunk: &mut &[u8]) -> Result<Option<Step>, Failure> {
        let bytes = match &mut self.body {
            Body::Stream(reader) => return Ok(reader.feed(chunk)),
            _ => core::mem::take(chunk),
        };
        match &mut self.body {
            Body::Json(body) if body.len() + bytes.len() > limits::MAX_MESSAGE => {
                let len = (body.len() + bytes.len()) as u64;
                return Err(Failure { status: Some(self.status), ..Failure::new(Cause::TooLong(len)) });
            }
            Body::Json(body) => body.extend_from_slice(bytes),
            Body::Refusal(body) => {
                let is_error = looks_like_json(body).or(looks_like_json(bytes)).unwrap_or(true);
                let max = if is_error { limits::MAX_ERROR_BODY } else { limits::MAX_QUOTE };
                if quote(body, bytes, max) {
                    return Err(self.failure(Cause::Status));
                }
            }
            Body::Foreign { said, cause } => {
                // A coded body says nothing that can be read.
                let max = if let Cause::ContentEncoding(_) = cause { 0 } else { limits::MAX_QUOTE };
                if quote(said, bytes, max) {
                    let cause = cause.clone();
                    return Err(self.failure(cause));
                }
            }
            Body::Ignored | Body::Stream(_) => {}
        }
        Ok(None)
    }

    /// Returns the whole body, if it may be a message.
    pub(super) fn take_text(&mut self) -> Option<Bytes> {
        match &mut self.body {
            Body::Json(body) | Body::Refusal(body) => Some(core::mem::take(body).freeze()),
            _ => None,
        }
    }

    /// Ends a stream; returns what no empty line has ended.
    pub(super) fn finish(&mut self) -> Option<Step> {
        match &mut self.body {
            Body::Stream(reader) => reader.finish(),
            _ => None,
        }
    }

    /// Returns what is wrong with it although it has come to its end.
    pub(super) fn fault(&self) -> Option<Failure> {
        match &self.body {
            Body::Foreign { cause, .. } => Some(self.failure(cause.clone())),
            Body::Refusal(_) => Some(self.failure(Cause::Status)),
            _ => None,
        }
    }

    /// Makes a failure of this response that quotes it.
    pub(super) fn failure(&self, cause: Cause) -> Failure {
        let said: &[u8] = match &self.body {
            Body::Json(body) | Body::Refusal(body) | Body::Foreign { said: body, .. } => body,
            Body::Stream(_) | Body::Ignored => &[],
        };
        self.failure_with(cause, said)
    }

    /// Makes a failure of this response that quotes `said`.
    pub(super) fn failure_with(&self, cause: Cause, said: &[u8]) -> Failure {
        Failure {
            cause,
            status: Some(self.status),
            excerpt: excerpt(said),
            retry_after: self.retry_after.clone(),
        }
    }

    pub(super) const fn is_success(&self) -> bool {
        self.status >= 200 && self.status < 300
    }

    /// Returns whether all that was wanted of it was its status.
    pub(super) const fn is_ignored(&self) -> bool {
        matches!(self.body, Body::Ignored)
    }

    pub(super) const fn is_stream(&self) -> bool {
        matches!(self.body, Body::Stream(_))
    }

    pub(super) fn retry(&self) -> Option<Duration> {
        match &self.body {
            Body::Stream(reader) => reader.retry(),
            _ => None,
        }
    }

    /// Returns how many bytes are kept.
    pub(super) fn pending(&self) -> usize {
        match &self.body {
            Body::Json(body) | Body::Refusal(body) | Body::Foreign { said: body, .. } => body.len(),
            Body::Stream(reader) => reader.pending(),
            Body::Ignored => 0,
        }
    }
}

/// Keeps the beginning; returns whether there is more than `max`.
fn quote(said: &mut BytesMut, bytes: &[u8], max: usize) -> bool {
    let room = max.saturating_sub(said.len());
    said.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    bytes.len() > room
}

/// Tells by the first byte that is not blank.
fn looks_like_json(bytes: &[u8]) -> Option<bool> {
    bytes.iter().find(|byte| !byte.is_ascii_whitespace()).map(|&byte| byte == b'{' || byte == b'[')
}

/// Makes text of the beginning of what was said.
fn excerpt(said: &[u8]) -> String {
    let beginning = said.get(..limits::MAX_QUOTE).unwrap_or(said);
    // A character that was cut is left out.
    let whole = match core::str::from_utf8(beginning) {
        Err(error) if error.error_len().is_none() => beginning.get(..error.valid_up_to()).unwrap_or_default(),
        _ => beginning,
    };
    String::from_utf8_lossy(whole).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(status: u16, headers: &[(&str, &str)], body: &[u8], chunk: usize) -> Result<Response, Failure> {
        let mut response = Response::new(&Head::new(status, headers), true);
        for mut piece in body.chunks(chunk) {
            while !piece.is_empty() {
                response.push(&mut piece)?;
            }
        }
        response.fault().map_or(Ok(response), Err)
    }

    #[test]
    fn a_megabyte_of_html_is_quoted_and_not_read() {
        let body = "<html>\n".to_owned() + &"é".repeat(500_000);
        for chunk in [1, 7, 65536, 1_000_000] {
            let failure =
                read(502, &[("content-type", "text/html"), ("retry-after", "9")], body.as_bytes(), chunk);
            let failure = failure.unwrap_err();
            assert_eq!((failure.status, failure.retry_after.as_deref()), (Some(502), Some("9")));
            assert!(failure.excerpt.starts_with("<html>") && failure.excerpt.ends_with('é'), "{failure}");
            assert!(failure.excerpt.len() <= limits::MAX_QUOTE);
        }
    }

    #[test]
    fn media_types_are_told_apart() {
        let cause =
            |headers: &[(&str, &str)]| read(200, headers, b"{}", 9).err().map(|failure| failure.cause);
        for json in ["application/json", "Application/JSON; charset=utf-8", "application/problem+json", ""] {
            assert_eq!(cause(&[("content-type", json)]), None, "{json}");
        }
        assert_eq!(cause(&[]), None);
        assert_eq!(cause(&[("content-type", "text/html; x")]), Some(Cause::ContentType("text/html".into())));
        assert_eq!(cause(&[("content-encoding", "gzip")]), Some(Cause::ContentEncoding("gzip".into())));
        assert_eq!(cause(&[("content-encoding", "identity")]), None);
    }

    #[test]
    fn an_error_body_is_read_further_than_a_quote() {
        let body = alloc::format!(r#" {{"error":{{"message":"{}"}}}}"#, "x".repeat(100_000));
        let mut response = Response::new(&Head::new(400, &[]), true);
        for mut piece in body.as_bytes().chunks(1) {
            response.push(&mut piece).unwrap();
        }
        assert_eq!(response.take_text().unwrap(), body);
        assert!(read(400, &[], &[b'{'; limits::MAX_ERROR_BODY + 1], 4096).is_err());
    }
}
