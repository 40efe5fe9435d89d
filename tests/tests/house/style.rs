//! The rules that look at one file at a time.

use super::source::{Tree, closed, has_phrase};

/// No file has more lines than this.
pub const LONGEST: usize = 600;

/// What lumen-proto must not name outside its tests: the world, and all whose order or time differs from run to run.
const IMPURE: [&str; 8] =
    ["std", "Instant::now", "SystemTime", "async", "await", "HashMap", "HashSet", "unsafe"];

/// Where `unsafe` may be: the ring, and allocators that count.
const MAY_BE_UNSAFE: [&str; 3] =
    ["adapters/lumen-uring/src/ring/", "benches/benches/allocations.rs", "tests/tests/frame_memory.rs"];

/// Whether the file is part of what users link or run.
fn is_product(path: &str) -> bool {
    path.starts_with("lumen-proto/src/") || path.starts_with("adapters/")
}

pub fn too_long(tree: &Tree) -> Vec<String> {
    let long = tree.files().filter(|(_, file)| file.lines > LONGEST);
    long.map(|(path, file)| format!("{path} has {} lines, more than {LONGEST}", file.lines)).collect()
}

pub fn impure(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    for (path, code) in tree.shipped().filter(|(path, _)| path.starts_with("lumen-proto/src/")) {
        let found = IMPURE.iter().filter(|word| has_phrase(code, word));
        problems.extend(found.map(|word| format!("{path} says `{word}`")));
    }
    problems
}

pub fn unsafe_outside(tree: &Tree) -> Vec<String> {
    let outside = tree.files().filter(|(path, _)| !MAY_BE_UNSAFE.iter().any(|room| path.starts_with(room)));
    outside
        .filter(|(_, file)| has_phrase(&file.code, "unsafe"))
        .map(|(path, _)| format!("{path} has unsafe code"))
        .collect()
}

/// `unwrap` and `expect` want an `#[expect(clippy::..)]` with its reason in the same file. Clippy sees to it that this is in
/// the right place; this sees to it that nobody switched clippy off instead.
pub fn unreasoned_unwrap(tree: &Tree) -> Vec<String> {
    let mut problems = Vec::new();
    for (path, code) in tree.shipped().filter(|(path, _)| is_product(path)) {
        let lints = [("unwrap", "clippy::unwrap_used"), ("expect", "clippy::expect_used")];
        for (method, lint) in lints {
            if attributes(code, "allow").any(|inside| has_phrase(inside, lint)) {
                problems.push(format!("{path} allows {lint}: expect it, with a reason"));
            } else if calls(code, method)
                && !attributes(code, "expect").any(|inside| has_phrase(inside, lint))
            {
                problems.push(format!("{path} calls `{method}` and does not say why it may"));
            }
        }
    }
    problems
}

/// What is in the parentheses of `#[name(..)]` and `#![name(..)]`.
fn attributes<'a>(code: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let open = format!("[{name}(");
    let starts: Vec<usize> = code.match_indices(&open).map(|(at, found)| at + found.len() - 1).collect();
    starts.into_iter().map(|at| &code[at..closed(code, at)])
}

/// Whether the method is called without arguments, as far as can be seen: literals are blank.
fn calls(code: &str, method: &str) -> bool {
    let open = format!(".{method}(");
    code.match_indices(&open).any(|(at, found)| code[at + found.len()..].trim_start().starts_with(')'))
}
