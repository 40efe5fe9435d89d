//! Small trees that break each rule, and what the rules must not take for a breach.

use super::source::Tree;
use super::{floors, style};

const LIB: (&str, &str) = ("lumen-proto/src/lib.rs", "mod base;\npub mod frame;\npub use base::*;\n");
const BASE: (&str, &str) =
    ("lumen-proto/src/base/mod.rs", "mod port;\nmod time;\npub use port::Port;\npub use time::Instant;\n");
const PORT: (&str, &str) = ("lumen-proto/src/base/port.rs", "pub struct Port;\n");
const TIME: (&str, &str) = ("lumen-proto/src/base/time.rs", "pub struct Instant;\n");

/// The base and one more file.
fn with(path: &str, text: &str) -> Tree {
    Tree::of([LIB, BASE, PORT, TIME, ("lumen-proto/src/frame/mod.rs", "pub struct Frame;\n"), (path, text)])
}

#[track_caller]
fn assert_says(problems: &[String], what: &[&str]) {
    assert_eq!(problems.len(), 1, "{problems:?}");
    for what in what {
        assert!(problems[0].contains(what), "{what:?} is not in {problems:?}");
    }
}

#[test]
fn a_long_file_is_found() {
    let lines = "\n".repeat(style::LONGEST);
    assert!(style::too_long(&with("tests/src/long.rs", &lines)).is_empty());
    assert_says(&style::too_long(&with("tests/src/long.rs", &(lines + "\n"))), &["tests/src/long.rs", "601"]);
}

#[test]
fn downward_is_allowed() {
    for text in [
        "use crate::{Instant, Port, time::Instant};\nuse crate::frame::Frame;\nuse core::fmt;",
        "use super::super::Port;",
        "fn f() -> crate::Instant { crate::frame::Frame::new() }",
        "// use crate::endpoint::Relay;\n/* use crate::endpoint::Relay; */",
        "#[cfg(test)]\nmod tests {\n use crate::endpoint::Relay;\n}",
        "#[cfg(test)]\nuse crate::endpoint::{Relay, Peer};\npub use super::super::frame::Frame as F;",
    ] {
        assert_eq!(floors::upward(&with("lumen-proto/src/jsonrpc/line.rs", text)), [""; 0], "{text}");
    }
}

#[test]
fn upward_and_sideways_are_found() {
    for (path, text, target) in [
        ("lumen-proto/src/base/timers.rs", "use crate::frame::Frame;", "frame/mod.rs"),
        ("lumen-proto/src/base/timers.rs", "use crate::{Port, frame::{self, Frame as F}};", "frame/mod.rs"),
        ("lumen-proto/src/base/timers.rs", "use super::super::frame;", "frame/mod.rs"),
        ("lumen-proto/src/base/timers.rs", "fn f() { crate::frame::f(); }", "frame/mod.rs"),
        ("lumen-proto/src/base/timers.rs", "pub(crate) use crate::frame::*;", "frame/mod.rs"),
        ("lumen-proto/src/varint.rs", "use crate::frame::Frame;", "frame/mod.rs"),
        ("lumen-proto/src/frame/header.rs", "use crate::unknown::Thing;", "lib.rs"),
    ] {
        assert_says(&floors::upward(&with(path, text)), &[path, target]);
    }
    let same_floor = Tree::of([
        LIB,
        ("lumen-proto/src/mux/mod.rs", "pub struct Mux;"),
        ("lumen-proto/src/supervisor/mod.rs", "use crate::mux::Mux;"),
    ]);
    assert_says(&floors::upward(&same_floor), &["supervisor/mod.rs (floor 5)", "mux/mod.rs"]);
}

#[test]
fn a_name_handed_on_by_the_root_is_on_its_own_floor() {
    let tree = Tree::of([
        ("lumen-proto/src/lib.rs", "mod base;\nmod endpoint;\npub use base::*;\npub use endpoint::Relay;"),
        ("lumen-proto/src/base/mod.rs", "pub struct Port;"),
        ("lumen-proto/src/endpoint/mod.rs", "mod relay;\npub use relay::Relay;\nuse crate::Port;"),
        ("lumen-proto/src/endpoint/relay.rs", "pub struct Relay;"),
        ("lumen-proto/src/frame/mod.rs", "use crate::{Port, Relay};"),
    ]);
    assert_says(&floors::upward(&tree), &["frame/mod.rs (floor 2)", "endpoint/relay.rs"]);
}

#[test]
fn a_folder_without_a_floor_is_found() {
    let tree = with("lumen-proto/src/cellar/mod.rs", "");
    assert_says(&floors::upward(&tree), &["cellar/mod.rs is on no floor"]);
}

#[test]
fn cycles_are_found() {
    let frame = |text| ("lumen-proto/src/frame/mod.rs", text);
    let header = |text| ("lumen-proto/src/frame/header.rs", text);
    let encode = |text| ("lumen-proto/src/frame/encode.rs", text);
    for (files, is_cycle) in [
        // Handing on is not using, and what is handed on belongs to who defines it.
        ([frame("pub use header::H;"), header("pub struct H;"), encode("use super::H;")], false),
        ([frame("pub use header::*;"), header("pub struct H;"), encode("use super::{H};")], false),
        ([frame("pub struct F;"), header("use super::F;"), encode("use super::header::H;")], false),
        (
            [frame("pub use header::H;\npub struct F;"), header("use super::F; pub struct H;"), encode("")],
            false,
        ),
        // Siblings.
        ([frame(""), header("use super::encode::E;"), encode("use crate::frame::header::H;")], true),
        (
            [
                frame("pub use encode::E;"),
                header("use super::E;"),
                encode("pub struct E; fn f(_: super::header::H) {}"),
            ],
            true,
        ),
        // Parent and child.
        ([frame("use header::H;\npub struct F;"), header("use super::F; pub struct H;"), encode("")], true),
        ([frame("pub struct F(header::H);"), header("use super::*; pub struct H;"), encode("")], true),
    ] {
        let tree = Tree::of([&[LIB][..], &files].concat());
        let found = floors::cycles(&tree);
        assert_eq!(!found.is_empty(), is_cycle, "{files:?}: {found:?}");
        if is_cycle {
            assert_says(&found, &["frame/header.rs -> "]);
        }
    }
}

#[test]
fn impurity_is_found() {
    let file = "lumen-proto/src/frame/header.rs";
    for text in [
        "use std::time::Duration;",
        "use std::{fs, net};",
        "fn f() { let t = Instant::now(); }",
        "async fn f() {}",
        "struct S(HashMap<u8, u8>);",
        "type T = hashbrown::HashSet<u8>;",
        "fn f() { unsafe { g() } }",
    ] {
        assert_eq!(style::impure(&with(file, text)).len(), 1, "{text}");
        assert_eq!(style::impure(&with("adapters/lumen-std/src/lib.rs", text)), [""; 0], "{text}");
    }
    for text in [
        "#[cfg(test)]\nextern crate std;\nfn f() {}",
        "/// Not `std::time`.\nfn f() { g(\"std::fs\", r#\"unsafe \" \"#, b'\\'', '\"'); }",
        "#![forbid(unsafe_code)] fn understd() {}",
        "#[cfg(test)]\nmod tests {\n    use std::fs;\n    fn f() { unsafe { } }\n}",
    ] {
        assert_eq!(style::impure(&with(file, text)), [""; 0], "{text}");
    }
    let text = "#[cfg(test)]\nfn f() { if true { } }\nfn g() { std::process::exit(1) }";
    assert_says(&style::impure(&with(file, text)), &["header.rs says `std`"]);
    let text = "fn f<'a>(_: &'a str) -> char { '{' }\n#[cfg(test)]\nmod tests {}\nuse std::env;";
    assert_says(&style::impure(&with(file, text)), &["header.rs says `std`"]);
    for (declared, is_test) in [("#[cfg(test)] mod oracle;", true), ("mod oracle;", false)] {
        let tree = Tree::of([
            ("lumen-proto/src/frame/mod.rs", declared),
            ("lumen-proto/src/frame/oracle.rs", "use std::fs;"),
            ("lumen-proto/src/frame/oracle/naive.rs", "use std::fs;"),
            ("lumen-proto/src/frame/oracles.rs", "use core::fmt;"),
        ]);
        assert_eq!(style::impure(&tree).is_empty(), is_test, "{declared}");
    }
}

#[test]
fn unsafe_is_found_in_tests_too() {
    let text = "#[cfg(test)]\nmod tests {\n    unsafe fn f() {}\n}";
    for path in ["adapters/lumen-uring/src/lib.rs", "tests/tests/any.rs", "benches/src/lib.rs"] {
        assert_says(&style::unsafe_outside(&with(path, text)), &[path]);
    }
    assert_eq!(style::unsafe_outside(&with("adapters/lumen-uring/src/ring/mod.rs", text)), [""; 0]);
    assert_eq!(style::unsafe_outside(&with("tests/src/lib.rs", "// unsafe\n#![deny(unsafe_code)]")), [""; 0]);
}

#[test]
fn unwraps_are_found() {
    let path = "adapters/lumen-os/src/child.rs";
    for text in [
        "fn f() { g().unwrap(); }",
        "fn f() { g().expect(\"always\"); }",
        "#[expect(clippy::unwrap_used, reason = \"..\")]\nfn f() { g().expect(\"always\"); }",
        "#![allow(clippy::unwrap_used)]",
    ] {
        assert_says(&style::unreasoned_unwrap(&with(path, text)), &[path]);
    }
    for text in [
        "#[expect(clippy::unwrap_used, reason = \"..\")]\nfn f() { g().unwrap(); }",
        "#[cfg(test)]\nmod tests {\n fn f() { g().unwrap(); }\n}",
        "fn f(&mut self) { self.expect(b'{'); g().unwrap_or(1) }",
        "// g().unwrap()",
    ] {
        assert_eq!(style::unreasoned_unwrap(&with(path, text)), [""; 0], "{text}");
    }
    assert_eq!(style::unreasoned_unwrap(&with("examples/std/hello.rs", "fn f() { g().unwrap() }")), [""; 0]);
}
