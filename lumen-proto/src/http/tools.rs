//! What is remembered of lists of tools: which arguments of a call go into headers as well.

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use super::sentinel;
use crate::jsonrpc::{Message, Span, decode_str, elements, find, members};
use crate::limits;

/// The deepest nesting of parameters that is looked at.
const MAX_NESTING: usize = 8;

/// Tools whose arguments go into headers, by name.
///
/// # Bounds
/// [`limits::MAX_TOOLS`] bytes of names, with what it takes to remember each. What does not fit is forgotten, and
/// learnt again when a call is refused for it.
#[derive(Debug, Default)]
pub(super) struct Tools {
    by_name: BTreeMap<String, Vec<Mirror>>,
    bytes: usize,
}

/// One argument that goes into a header.
#[derive(Debug, PartialEq, Eq)]
struct Mirror {
    /// Its keys below the arguments.
    path: Vec<String>,
    /// The header, in lower case.
    header: String,
}

/// What a map and its parts take for one name.
const COST: usize = 64;

impl Tools {
    /// Takes the answer to a `tools/list`: what it says of a tool replaces what was known of it.
    pub(super) fn remember(&mut self, answer: &Message) {
        let text = answer.bytes();
        let list = answer.envelope().result.and_then(|result| find(text, result, &["tools"]));
        for tool in list.into_iter().flat_map(|list| elements(text, list)) {
            let Some(name) = find(text, tool, &["name"]).and_then(|name| decode_str(name.of(text))) else {
                continue;
            };
            if let Some(old) = self.by_name.remove(&*name) {
                self.bytes -= cost(&name, &old);
            }
            let mut mirrors = Vec::new();
            if let Some(schema) = find(text, tool, &["inputSchema"]) {
                gather(text, schema, &mut Vec::new(), &mut mirrors);
            }
            let cost = cost(&name, &mirrors);
            if !mirrors.is_empty() && self.bytes + cost <= limits::MAX_TOOLS {
                self.bytes += cost;
                self.by_name.insert(name.into_owned(), mirrors);
            }
        }
    }

    /// Adds the headers for a `tools/call` with these parameters. An argument that is not there, or null, has none.
    pub(super) fn mirror(&self, text: &[u8], params: Span, headers: &mut Vec<(Cow<'static, str>, String)>) {
        let name = find(text, params, &["name"]).and_then(|name| decode_str(name.of(text)));
        let mirrors = name.and_then(|name| self.by_name.get(&*name));
        let Some(arguments) = find(text, params, &["arguments"]) else { return };
        for Mirror { path, header } in mirrors.into_iter().flatten() {
            let keys: Vec<&str> = path.iter().map(String::as_str).collect();
            let value = find(text, arguments, &keys).and_then(|value| spelled(value.of(text)));
            if let Some(value) = value {
                headers.push((Cow::Owned(header.clone()), sentinel::escape(value)));
            }
        }
    }
}

fn cost(name: &str, mirrors: &[Mirror]) -> usize {
    let parts = mirrors.iter().map(|mirror| {
        mirror.header.len() + COST + mirror.path.iter().map(|key| key.len() + COST).sum::<usize>()
    });
    name.len() + COST + parts.sum::<usize>()
}

/// Returns a simple value as a header has it: a string by what it says, anything else as it is written.
fn spelled(token: &[u8]) -> Option<Cow<'_, str>> {
    match token.first()? {
        b'"' => decode_str(token),
        b'{' | b'[' | b'n' => None,
        _ => core::str::from_utf8(token).ok().map(Cow::Borrowed),
    }
}

/// Gathers what is marked in a schema. Only properties of properties count: anywhere else a mark means nothing.
fn gather(text: &[u8], schema: Span, path: &mut Vec<String>, mirrors: &mut Vec<Mirror>) {
    if path.len() >= MAX_NESTING {
        return;
    }
    let Some(properties) = find(text, schema, &["properties"]) else { return };
    for property in members(text, properties) {
        let Some(key) = decode_str(property.key.of(text)) else { continue };
        path.push(key.into_owned());
        let mark = find(text, property.value, &["x-mcp-header"]);
        if let Some(mark) = mark.and_then(|mark| decode_str(mark.of(text))).filter(|mark| is_token(mark)) {
            let header = alloc::format!("mcp-param-{}", mark.to_ascii_lowercase());
            if mirrors.iter().all(|other| other.header != header) {
                mirrors.push(Mirror { path: path.clone(), header });
            }
        }
        gather(text, property.value, path, mirrors);
        path.pop();
    }
}

/// Returns whether `name` can be a part of a header's name.
fn is_token(name: &str) -> bool {
    let is_one = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.len() <= limits::MAX_EXCERPT && name.bytes().all(is_one)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> Message {
        Message::copy_from(text.as_bytes()).unwrap()
    }

    fn headers(tools: &Tools, params: &str) -> Vec<(String, String)> {
        let mut headers = Vec::new();
        tools.mirror(params.as_bytes(), Span::new(0, params.len()), &mut headers);
        headers.into_iter().map(|(name, value)| (name.into_owned(), value)).collect()
    }

    fn list(properties: &str) -> Message {
        message(&alloc::format!(
            r#"{{"id":1,"result":{{"tools":[{{"name":"plain"}},{{"name":"sql","inputSchema":{{"type":"object","properties":{properties}}}}}]}}}}"#
        ))
    }

    #[test]
    fn marked_arguments_go_into_headers() {
        let mut tools = Tools::default();
        tools.remember(&list(
            r#"{"region":{"type":"string","x-mcp-header":"Region"},"deep":{"type":"object","properties":
            {"n":{"type":"integer","x-mcp-header":"N"}}},"flag":{"type":"boolean","x-mcp-header":"Flag"},"q":{"type":"string"},
            "bad":{"x-mcp-header":"a b"},"twin":{"x-mcp-header":"REGION"},"list":{"items":{"x-mcp-header":"I"}}}"#,
        ));
        let params = r#"{"name":"sql","arguments":{"region":"us\u002dwest","deep":{"n":42},"flag":true,"q":"x","bad":"b","twin":"t"}}"#;
        let expected = [("mcp-param-region", "us-west"), ("mcp-param-n", "42"), ("mcp-param-flag", "true")];
        assert_eq!(headers(&tools, params), expected.map(|(name, value)| (name.into(), value.into())));
        let params = r#"{"name":"sql","arguments":{"region":null,"flag":"é","deep":{}}}"#;
        assert_eq!(headers(&tools, params), [("mcp-param-flag".into(), "=?base64?w6k=?=".into())]);
        assert_eq!(headers(&tools, r#"{"name":"plain","arguments":{"region":"x"}}"#), []);
        assert_eq!(headers(&tools, r#"{"name":"sql"}"#), []);
    }

    #[test]
    fn a_newer_list_replaces_what_was_known() {
        let mut tools = Tools::default();
        tools.remember(&list(r#"{"region":{"x-mcp-header":"Old"}}"#));
        tools.remember(&list(r#"{"region":{"x-mcp-header":"New"}}"#));
        let params = r#"{"name":"sql","arguments":{"region":"x"}}"#;
        assert_eq!(headers(&tools, params), [("mcp-param-new".into(), "x".into())]);
        tools.remember(&list("{}"));
        assert_eq!((headers(&tools, params), tools.bytes), (Vec::new(), 0));
    }

    #[test]
    fn what_does_not_fit_is_forgotten() {
        let mut tools = Tools::default();
        for n in 0..3000 {
            tools.remember(&message(&alloc::format!(
                r#"{{"id":1,"result":{{"tools":[{{"name":"{n}","inputSchema":{{"properties":{{"{}":{{"x-mcp-header":"A"}}}}}}}}]}}}}"#,
                "k".repeat(1000)
            )));
        }
        assert!(tools.bytes <= limits::MAX_TOOLS && tools.by_name.len() > 500);
    }
}
