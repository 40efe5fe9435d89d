//! Source files as the rules see them: without comments, literals and test code.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::Path;

/// Paths relative to the workspace's root, and what is in the files.
pub struct Tree(BTreeMap<String, File>);

/// One file.
pub struct File {
    /// The number of lines as it is.
    pub lines: usize,
    /// All its code; comments and the insides of literals are blank.
    pub code: String,
    /// The same without items under `#[cfg(test)]`; `None` for a file of tests.
    pub shipped: Option<String>,
}

impl Tree {
    /// Reads this workspace.
    pub fn workspace() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ is in the workspace");
        let mut texts = Vec::new();
        walk(root, root, &mut texts);
        Self::of(texts.iter().map(|(path, text)| (path.as_str(), text.as_str())))
    }

    /// Makes a tree up.
    pub fn of<'a>(texts: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut files = BTreeMap::new();
        let mut test_modules = Vec::new();
        for (path, text) in texts {
            let code = blank(text);
            let (shipped, cut) = without_tests(&code);
            let folder = path.trim_end_matches(".rs");
            let folder =
                ["/mod", "/lib", "/main"].iter().find_map(|end| folder.strip_suffix(end)).unwrap_or(folder);
            let names = cut.iter().filter_map(|item| module_elsewhere(item));
            test_modules.extend(names.map(|name| format!("{folder}/{name}")));
            let shipped = Some(shipped).filter(|_| path.split('/').all(|part| part != "tests"));
            files.insert(path.to_owned(), File { lines: text.lines().count(), code, shipped });
        }
        for module in test_modules {
            for (path, file) in &mut files {
                let rest = path.strip_prefix(&module);
                if rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/')) {
                    file.shipped = None;
                }
            }
        }
        Self(files)
    }

    /// The files with the code that is not test code.
    pub fn shipped(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files().filter_map(|(path, file)| Some((path, file.shipped.as_deref()?)))
    }

    pub fn files(&self) -> impl Iterator<Item = (&str, &File)> {
        self.0.iter().map(|(path, file)| (path.as_str(), file))
    }

    pub fn file(&self, path: &str) -> Option<&File> {
        self.0.get(path)
    }
}

fn walk(root: &Path, folder: &Path, texts: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).expect("a folder of the workspace can be read") {
        let path = entry.expect("a folder of the workspace can be read").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() {
            if name != "target" && !name.starts_with('.') {
                walk(root, &path, texts);
            }
        } else if name.ends_with(".rs") {
            let text = fs::read_to_string(&path).expect("sources are UTF-8");
            let path = path.strip_prefix(root).expect("it was found below the root").to_string_lossy();
            texts.push((path.into_owned(), text));
        }
    }
}

/// Whether an identifier may go on with `byte`.
pub fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Finds `phrase` in `code` where it is not a piece of longer words.
pub fn has_phrase(code: &str, phrase: &str) -> bool {
    code.match_indices(phrase).any(|(at, _)| {
        let (before, after) = (code[..at].bytes().next_back(), code[at + phrase.len()..].bytes().next());
        !before.is_some_and(is_word) && !after.is_some_and(is_word)
    })
}

/// Replaces comments and the insides of literals by spaces, keeping every offset and line.
fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'/' if bytes[at..].starts_with(b"//") => at + find(&bytes[at..], b"\n"),
            b'/' if bytes[at..].starts_with(b"/*") => comment_end(bytes, at),
            b'"' => string_end(bytes, at),
            b'r' if !at
                .checked_sub(1)
                .is_some_and(|before| is_word(bytes[before]) && bytes[before] != b'b') =>
            {
                raw_string_end(bytes, at).unwrap_or(at)
            }
            b'\'' => char_end(bytes, at).unwrap_or(at),
            _ => at,
        };
        for byte in &mut code[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end.max(at + 1);
    }
    String::from_utf8(code).expect("whole literals and comments were replaced")
}

/// The offset of `what`, or the length of `bytes`.
fn find(bytes: &[u8], what: &[u8]) -> usize {
    bytes.windows(what.len()).position(|window| window == what).unwrap_or(bytes.len())
}

fn comment_end(bytes: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0);
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            (at, depth) = (at + 2, depth + 1);
        } else if bytes[at..].starts_with(b"*/") {
            (at, depth) = (at + 2, depth - 1);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    at
}

fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

fn raw_string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let hashes = bytes[start + 1..].iter().take_while(|byte| **byte == b'#').count();
    let open = start + 1 + hashes;
    let close = [&b"\""[..], &b"#".repeat(hashes)].concat();
    (bytes.get(open) == Some(&b'"'))
        .then(|| (open + 1 + find(&bytes[open + 1..], &close) + close.len()).min(bytes.len()))
}

/// The end of a character literal, or `None` if this is a lifetime.
fn char_end(bytes: &[u8], start: usize) -> Option<usize> {
    if bytes.get(start + 1) == Some(&b'\\') {
        return Some((start + 3 + find(bytes.get(start + 3..)?, b"'") + 1).min(bytes.len()));
    }
    let char = std::str::from_utf8(bytes.get(start + 1..)?).ok()?.chars().next()?;
    let end = start + 1 + char.len_utf8();
    (bytes.get(end) == Some(&b'\'')).then_some(end + 1)
}

/// Cuts out every item under `#[cfg(test)]` or `#[test]`; returns what is left, and what was cut out.
fn without_tests(code: &str) -> (String, Vec<&str>) {
    let (mut left, mut cut) = (code.to_owned(), Vec::new());
    let mut from = 0;
    while let Some(start) = code[from..].find("#[").map(|at| from + at) {
        let attribute = start + 1..closed(code, start + 1);
        from = attribute.end;
        if marks_test(&code[attribute]) {
            let item = from..item_end(code, from);
            from = item.end;
            blank_range(&mut left, start..from);
            cut.push(&code[item]);
        }
    }
    (left, cut)
}

/// The name in `mod name;`.
fn module_elsewhere(item: &str) -> Option<&str> {
    item.trim().strip_suffix(';')?.rsplit_once("mod ").map(|(_, name)| name.trim())
}

fn marks_test(attribute: &str) -> bool {
    attribute == "[test]" || attribute == "[cfg(test)]" || attribute.starts_with("[cfg(all(test,")
}

fn blank_range(code: &mut String, range: Range<usize>) {
    let spaces: String =
        code[range.clone()].chars().map(|char| if char == '\n' { '\n' } else { ' ' }).collect();
    code.replace_range(range, &spaces);
}

/// The end of the bracketed text that opens at `open`.
pub fn closed(code: &str, open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    code.len()
}

/// The end of the item that starts at `from`: its `;`, the end of its `{}` block, or that of what it is in.
fn item_end(code: &str, from: usize) -> usize {
    let bytes = code.as_bytes();
    let mut at = from;
    while at < bytes.len() {
        match bytes[at] {
            b';' => return at + 1,
            b'{' => return closed(code, at),
            b'(' | b'[' => at = closed(code, at),
            b')' | b']' | b'}' => return at,
            _ => at += 1,
        }
    }
    at
}
