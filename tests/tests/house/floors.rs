//! The floors of lumen-proto: a file uses lower floors, or its own folder without a cycle.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{Tree, closed, is_word};

/// The folders (or single files) of each floor, lowest first.
const FLOORS: [&[&str]; 7] = [
    &["base"],
    &["varint"],
    &["frame"],
    &["value", "jsonrpc"],
    &["message", "negotiate", "sse", "mcp", "idmap", "backoff"],
    &["connection", "http", "mux", "supervisor"],
    &["endpoint"],
];

const SOURCES: &str = "lumen-proto/src/";

/// A module's path below the crate: `["frame", "header"]`; the crate's root is empty.
type Module = Vec<String>;

/// One path that code mentions, as written: `["super", "header", "Header"]`.
struct Mention {
    path: Vec<String>,
    /// The name a `use` gives it, `*` for a glob; `None` outside of `use`.
    name: Option<String>,
    /// Whether it is only handed on (`pub use`), not used here.
    handed_on: bool,
}

/// What one file says.
#[derive(Default)]
struct Names {
    file: String,
    /// The names of its items, and of their methods, which does no harm.
    defined: BTreeSet<String>,
    mentions: Vec<Mention>,
}

/// All shipped files of lumen-proto by module.
struct Crate(BTreeMap<Module, Names>);

pub fn upward(tree: &Tree) -> Vec<String> {
    let modules = Crate::read(tree);
    let mut problems = BTreeSet::new();
    for (module, Names { file, .. }) in modules.0.iter().filter(|(module, _)| !module.is_empty()) {
        let Some(own) = floor(module) else {
            problems.insert(format!("{file} is on no floor: give its folder one in {}", file!()));
            continue;
        };
        for (target, _) in modules.uses(module) {
            let below = floor(&target).is_some_and(|floor| floor < own);
            if target.first() != module.first() && !below {
                let target = modules.file(&target);
                problems.insert(format!("{file} (floor {own}) uses {target}, which is not below it"));
            }
        }
    }
    problems.into_iter().collect()
}

pub fn cycles(tree: &Tree) -> Vec<String> {
    let modules = Crate::read(tree);
    let mut edges: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
    for module in modules.0.keys().filter(|module| !module.is_empty()) {
        let used = modules.uses(module).into_iter().filter(|(target, handed_on)| {
            let to_users = *handed_on && target.starts_with(module);
            target.first() == module.first() && target != module && !to_users
        });
        edges.insert(module.clone(), used.map(|(target, _)| target).collect());
    }
    // What is left when everything that uses nothing more is taken away, again and again, is or leads to cycles.
    loop {
        let free: Vec<Module> =
            edges.iter().filter(|(_, used)| used.is_empty()).map(|(module, _)| module.clone()).collect();
        if free.is_empty() {
            break;
        }
        for module in &free {
            edges.remove(module);
        }
        for used in edges.values_mut() {
            used.retain(|target| !free.contains(target));
        }
    }
    // Walk on until a module comes again: one cycle is enough to see what is wrong.
    let Some(mut at) = edges.keys().next() else { return Vec::new() };
    let mut walk: Vec<&Module> = Vec::new();
    while !walk.contains(&at) {
        walk.push(at);
        at = edges[at].first().expect("modules without one were taken away");
    }
    let cycle: Vec<&str> =
        walk.iter().skip_while(|module| **module != at).map(|module| modules.file(module)).collect();
    vec![format!("{} -> {}", cycle.join(" -> "), modules.file(at))]
}

fn floor(module: &[String]) -> Option<usize> {
    let top = module.first()?;
    FLOORS.iter().position(|floor| floor.contains(&top.as_str()))
}

impl Crate {
    fn read(tree: &Tree) -> Self {
        let sources =
            tree.shipped().filter_map(|(path, code)| Some((path, path.strip_prefix(SOURCES)?, code)));
        Self(sources.map(|(path, below, code)| (module_of(below), Names::read(path, code))).collect())
    }

    fn file(&self, module: &Module) -> &str {
        self.0.get(module).map_or("?", |names| &names.file)
    }

    /// The modules that `module` uses, and whether it only hands that on.
    fn uses(&self, module: &Module) -> Vec<(Module, bool)> {
        let mentions = self.0[module].mentions.iter();
        mentions
            .filter_map(|mention| Some((self.resolve(module, &mention.path)?, mention.handed_on)))
            .collect()
    }

    /// Finds the module that defines what `path`, written in `module`, names; `None` if it is not in this crate.
    fn resolve(&self, module: &Module, path: &[String]) -> Option<Module> {
        self.follow(module, path, &mut BTreeSet::new())
    }

    fn follow(&self, module: &Module, path: &[String], seen: &mut BTreeSet<Vec<String>>) -> Option<Module> {
        let (first, mut rest) = path.split_first()?;
        let mut target = match first.as_str() {
            "crate" => Vec::new(),
            "self" => module.clone(),
            "super" => module[..module.len().checked_sub(1)?].to_vec(),
            _ => Some(child(module, first)).filter(|child| self.0.contains_key(child))?,
        };
        while let Some((next, after)) = rest.split_first() {
            if next == "super" {
                target.pop();
            } else if self.0.contains_key(&child(&target, next)) {
                target.push(next.clone());
            } else {
                break;
            }
            rest = after;
        }
        let origin = rest.first().and_then(|name| self.origin(&target, name, seen));
        Some(origin.unwrap_or(target))
    }

    /// The module that `name` in `module` comes from, through whatever hands it on.
    fn origin(&self, module: &Module, name: &str, seen: &mut BTreeSet<Vec<String>>) -> Option<Module> {
        let names = self.0.get(module)?;
        let below = child(module, name);
        if self.0.contains_key(&below) {
            return Some(below);
        }
        if names.defined.contains(name) || !seen.insert(below) {
            return Some(module.clone());
        }
        names.mentions.iter().find_map(|mention| match mention.name.as_deref()? {
            "*" => {
                let source = self.follow(module, &mention.path[..mention.path.len() - 1], seen)?;
                self.origin(&source, name, seen)
            }
            given if given == name => self.follow(module, &mention.path, seen),
            _ => None,
        })
    }
}

impl Names {
    /// Reads definitions and paths out of code: the paths of `use`, and those with `::` in them elsewhere.
    fn read(file: &str, code: &str) -> Self {
        let mut names = Self { file: file.to_owned(), ..Self::default() };
        let bytes = code.as_bytes();
        let (mut at, mut before) = (0, "");
        while at < bytes.len() {
            if !is_word(bytes[at]) {
                if before == "pub" && bytes[at] == b'(' {
                    at = closed(code, at);
                    continue;
                }
                if !bytes[at].is_ascii_whitespace() {
                    before = "";
                }
                at += 1;
                continue;
            }
            let end = path_end(bytes, at);
            let text = &code[at..end];
            at = end;
            if text == "use" && !code[end..].starts_with('<') {
                at = code[end..].find(';').map_or(code.len(), |length| end + length);
                branches(&code[end..at], &[], before == "pub", &mut names.mentions);
            } else if text.contains("::") {
                names.mentions.push(Mention { path: split(text), name: None, handed_on: false });
            } else if ["struct", "enum", "trait", "fn", "const", "static", "type", "union"].contains(&before)
            {
                names.defined.insert(text.to_owned());
            }
            before = text;
        }
        names
    }
}

fn child(module: &[String], name: &str) -> Module {
    [module, &[name.to_owned()]].concat()
}

fn module_of(below: &str) -> Module {
    let path = below.trim_end_matches(".rs");
    let path = path.strip_suffix("/mod").unwrap_or(path);
    if path == "lib" { Vec::new() } else { path.split('/').map(str::to_owned).collect() }
}

/// The end of `a::b::c` that starts at `at`.
fn path_end(bytes: &[u8], mut at: usize) -> usize {
    loop {
        while at < bytes.len() && is_word(bytes[at]) {
            at += 1;
        }
        let goes_on = bytes[at..].starts_with(b"::") && bytes.get(at + 2).copied().is_some_and(is_word);
        if !goes_on {
            return at;
        }
        at += 2;
    }
}

/// Reads the tree of a `use`: `a::{b, c::{d, self}, e as f, g::*}`.
fn branches(text: &str, prefix: &[String], handed_on: bool, found: &mut Vec<Mention>) {
    let text = text.trim();
    if let Some(open) = text.find('{') {
        let prefix = [prefix, &split(&text[..open])].concat();
        let inner = &text[open + 1..closed(text, open).saturating_sub(1)];
        let mut start = 0;
        let mut depth = 0_i32;
        for (at, byte) in inner.bytes().chain([b',']).enumerate() {
            match byte {
                b'{' => depth += 1,
                b'}' => depth -= 1,
                b',' if depth == 0 => {
                    branches(&inner[start..at], &prefix, handed_on, found);
                    start = at + 1;
                }
                _ => {}
            }
        }
    } else if !text.is_empty() {
        let (path, alias) = text.split_once(" as ").map_or((text, None), |(path, alias)| (path, Some(alias)));
        let mut path = [prefix, &split(path)].concat();
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let name = alias.map_or_else(|| path.last().cloned(), |alias| Some(alias.trim().to_owned()));
        found.push(Mention { path, name, handed_on });
    }
}

fn split(path: &str) -> Vec<String> {
    path.split("::").map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}
