//! Texts for the benchmarks, made by code so that every run measures the same bytes.

use std::fmt::Write;

/// A small call: 177 bytes.
pub fn call_small() -> String {
    concat!(
        r#"{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"name":"read_file","arguments":"#,
        r#"{"path":"/home/user/project/main.rs","offset":0,"limit":20},"_meta":{"progressToken":1}}}"#,
    )
    .to_owned()
}

/// The answer to it: a few lines of text.
pub fn result_small() -> String {
    let lines = r#"fn main() {\n    println!(\"Hello, world!\");\n}\n"#;
    format!(
        r#"{{"jsonrpc":"2.0","id":17,"result":{{"content":[{{"type":"text","text":"{lines}"}}],"isError":false}}}}"#
    )
}

/// A list of 50 tools with their schemas, about 27 KB.
pub fn tools50() -> String {
    let mut text = r#"{"jsonrpc":"2.0","id":2,"result":{"tools":["#.to_owned();
    for n in 0..50 {
        let comma = if n == 0 { "" } else { "," };
        let _ = write!(
            text,
            concat!(
                r#"{}{{"name":"project_tool_{}","title":"Tool {}","description":"Reads the named part of the project "#,
                r#"and returns it as text, at most as many lines as were asked for. Names are relative to the root.","inputSchema":{{"type":"object","#,
                r#""properties":{{"path":{{"type":"string","description":"Where to look, from the root"}},"#,
                r#""limit":{{"type":"integer","minimum":1,"maximum":1000,"default":{}}},"recursive":"#,
                r#"{{"type":"boolean","default":false}}}},"required":["path"],"additionalProperties":false}},"#,
                r#""annotations":{{"readOnlyHint":true,"openWorldHint":false}}}}"#
            ),
            comma,
            n,
            n,
            n * 10 + 1
        );
    }
    text.push_str("]}}");
    text
}

/// An answer with one string of 1 MiB without escapes, some of it outside of ASCII.
pub fn text1m() -> String {
    answer(&"Plain words, one after the other; now and then an é or a 漢. ".repeat(16_645))
}

/// An answer with one string of 64 KiB in which every eighth character is escaped.
pub fn escapes64k() -> String {
    answer(&r"line on\nand \u00e9\t".repeat(3_120))
}

/// An answer with 1,000 numbers.
pub fn numbers1k() -> String {
    let mut text = r#"{"jsonrpc":"2.0","id":3,"result":{"structuredContent":{"values":["#.to_owned();
    for n in 0..1000_u32 {
        let comma = if n == 0 { "" } else { "," };
        let _ = match n % 3 {
            0 => write!(text, "{comma}{}", n * 7919),
            1 => write!(text, "{comma}-{n}.{}", n * 31),
            _ => write!(text, "{comma}{n}.5e-{}", n % 20),
        };
    }
    text.push_str("]}}}");
    text
}

/// All of them by the names of their rows.
pub fn rows() -> [(&'static str, String); 6] {
    [
        ("call_small", call_small()),
        ("result_small", result_small()),
        ("tools50", tools50()),
        ("text1m", text1m()),
        ("escapes64k", escapes64k()),
        ("numbers1k", numbers1k()),
    ]
}

fn answer(inside: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":3,"result":{{"content":[{{"type":"text","text":"{inside}"}}]}}}}"#)
}

#[cfg(test)]
mod tests {
    #[test]
    fn rows_are_messages_of_the_sizes_they_claim() {
        for (name, text) in super::rows() {
            let envelope = lumen_proto::jsonrpc::Envelope::parse(text.as_bytes());
            assert!(envelope.is_ok(), "{name}: {envelope:?}");
            let sizes = match name {
                "call_small" => 177..178,
                "result_small" => 100..300,
                "tools50" => 26_000..30_000,
                "text1m" => 1 << 20..(1 << 20) + 2000,
                "escapes64k" => 64 << 10..(64 << 10) + 300,
                _ => 5_000..20_000,
            };
            assert!(sizes.contains(&text.len()), "{name} has {} bytes", text.len());
        }
    }
}
