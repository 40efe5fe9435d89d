//! The members of a message, read with serde_json.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// The members of a message that matter.
pub struct Parts<'a> {
    pub id: Option<&'a RawValue>,
    pub method: Option<String>,
    pub params: Option<&'a RawValue>,
    pub result: Option<&'a RawValue>,
    pub error: Option<&'a RawValue>,
}

/// Members inside of those.
#[derive(Default)]
pub struct Inner<'a> {
    pub t: Option<u64>,
    pub mark: Option<u64>,
    pub from: Option<usize>,
    pub uri: Option<String>,
    pub level: Option<String>,
    pub request: Option<&'a RawValue>,
    pub token: Option<&'a RawValue>,
    pub asked_token: Option<&'a RawValue>,
    pub subscription: Option<&'a RawValue>,
    pub is_modern: bool,
    pub version: Option<String>,
    pub message: Option<String>,
    pub reason: Option<String>,
}

type Members<'a> = BTreeMap<String, &'a RawValue>;

fn members(text: Option<&RawValue>) -> Members<'_> {
    let object = text.filter(|text| text.get().starts_with('{'));
    object.map(|object| serde_json::from_str(object.get()).expect("an object")).unwrap_or_default()
}

fn read<T: serde::de::DeserializeOwned>(members: &Members<'_>, key: &str) -> Option<T> {
    members.get(key).and_then(|value| serde_json::from_str(value.get()).ok())
}

impl<'a> Parts<'a> {
    pub fn new(text: &'a str) -> Self {
        let all: Members<'_> = serde_json::from_str(text).expect("a message");
        let part = |key| all.get(key).copied();
        Self {
            id: part("id"),
            method: read(&all, "method"),
            params: part("params"),
            result: part("result"),
            error: part("error"),
        }
    }

    pub fn inner(part: Option<&RawValue>) -> Inner<'_> {
        let all = members(part);
        let meta = members(all.get("_meta").copied());
        let data = members(all.get("data").copied());
        Inner {
            t: read(&all, "t").or_else(|| read(&data, "t")),
            mark: read(&all, "mark").or_else(|| read(&data, "mark")),
            from: read(&all, "from").or_else(|| read(&data, "from")),
            uri: read(&all, "uri"),
            level: read(&all, "level"),
            request: all.get("requestId").copied(),
            token: all.get("progressToken").copied(),
            asked_token: meta.get("progressToken").copied(),
            subscription: meta.get("io.modelcontextprotocol/subscriptionId").copied(),
            is_modern: meta.contains_key("io.modelcontextprotocol/protocolVersion"),
            version: read(&all, "protocolVersion"),
            message: read(&all, "message"),
            reason: read(&data, "reason"),
        }
    }
}

pub fn raw(value: Option<&RawValue>) -> Option<String> {
    value.map(|value| value.get().to_owned())
}
