//! The house's own rules, as far as a test can read them off the sources: size of files, floors of lumen-proto and
//! no cycles within one, purity of lumen-proto, where `unsafe` may be, no `unwrap` without a reason.
//!
//! Each rule takes a [`Tree`] and returns what is wrong with it, so that the tests in `broken.rs` can show each rule a
//! small tree that breaks it.

mod broken;
mod floors;
mod source;
mod style;

use source::Tree;

#[track_caller]
fn assert_none(problems: Vec<String>) {
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

#[test]
fn the_walk_finds_the_workspace() {
    let tree = Tree::workspace();
    for path in ["lumen-proto/src/lib.rs", "adapters/lumen-cli/src/main.rs", "tests/tests/house/main.rs"] {
        assert!(tree.file(path).is_some(), "{path} is not among {} files", tree.files().count());
    }
}

#[test]
fn no_file_is_too_long() {
    assert_none(style::too_long(&Tree::workspace()));
}

#[test]
fn lumen_proto_keeps_its_floors() {
    assert_none(floors::upward(&Tree::workspace()));
}

#[test]
fn no_folder_of_lumen_proto_has_a_cycle() {
    assert_none(floors::cycles(&Tree::workspace()));
}

#[test]
fn lumen_proto_is_pure() {
    assert_none(style::impure(&Tree::workspace()));
}

#[test]
fn unsafe_stays_in_its_room() {
    assert_none(style::unsafe_outside(&Tree::workspace()));
}

#[test]
fn no_unwrap_without_a_reason() {
    assert_none(style::unreasoned_unwrap(&Tree::workspace()));
}
