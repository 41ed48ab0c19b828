//! Circular dependencies between files. Crates cannot depend on each other in a circle; this test requires the same of the files in a
//! crate.
//!
//! A dependency is a `use` of another file's item, or a path through `crate::` to it. If a file re-exports an item, the use counts as one
//! of the file that defines the item. The `mod.rs` of a directory and the files beside it count as separate files. Unit tests do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Circles that are allowed: the crate, its files, and the reason.
const CIRCLES: &[(&str, &[&str], &str)] = &[(
    "src/cty",
    &["set", "value"],
    "the elements of a set are values in canonical order, and the order of values decides which of them are equal",
)];

/// A file, as the path of its module inside the crate.
type Module = Vec<String>;

fn rust_files(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("a directory").flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            // Directories with tests are skipped, and so are examples, which are crates of their own.
            if !matches!(&*name, "tests" | "fixture_tests" | "examples" | "target") {
                rust_files(&path, out);
            }
        } else if name.ends_with(".rs") && name != "tests.rs" {
            out.push(path);
        }
    }
}

fn module_of(root: &Path, file: &Path) -> Module {
    let path = file.strip_prefix(root).expect("a file of the crate").with_extension("");
    let mut parts: Module = path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if parts.last().is_some_and(|last| last == "mod" || last == "lib") {
        parts.pop();
    }
    parts
}

/// Returns the text of a file without comments and unit tests.
fn code(file: &Path) -> String {
    let text = fs::read_to_string(file).expect("a text");
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let line = |line: &str| line.split("//").next().unwrap_or_default().to_owned();
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Expands a tree such as `a::{b, c::{d, e}}` into its paths.
fn paths(prefix: &str, tree: &str, out: &mut Vec<String>) {
    let Some((head, rest)) = tree.split_once('{') else {
        out.push(format!("{prefix}{tree}"));
        return;
    };
    let inner = rest.rsplit_once('}').map_or(rest, |(inner, _)| inner);
    let (mut depth, mut begin) = (0, 0);
    for (at, c) in inner.char_indices().chain([(inner.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                paths(&format!("{prefix}{head}"), &inner[begin..at], out);
                begin = at + 1;
            }
            _ => {}
        }
    }
}

/// Returns the paths that a file uses: those of its `use` declarations, and those with `crate::` in its code.
fn named(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    for statement in text.split(';') {
        let begin = statement.rfind('\n').map_or(0, |at| at + 1);
        let whole = match statement
            .find("use crate")
            .or(statement.find("use super"))
            .or(statement.find("use self"))
        {
            Some(at) => &statement[at + "use ".len()..],
            None => statement[begin..].trim_start(),
        };
        if whole.starts_with("crate::") || whole.starts_with("super::") || whole.starts_with("self::") {
            let tree: String = whole.replace(" as ", " ").split(' ').map(str::trim).collect();
            paths("", &tree.replace(char::is_whitespace, ""), &mut out);
        }
    }
    for (at, _) in text.match_indices("crate::") {
        let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        out.push(text[at..].chars().take_while(|c| is_path(*c)).collect());
    }
    out
}

/// Items that a file re-exports from other files, and these files.
type Exports = BTreeMap<String, Module>;

/// Resolves `crate`, `self` and `super` in a path of the file `from`. Returns the path from the root of the crate.
fn absolute(path: &str, from: &Module) -> Module {
    let mut base: Option<Module> = None;
    for part in path.split("::").filter(|part| !part.is_empty()) {
        match part {
            "crate" => base = Some(Vec::new()),
            "self" if base.is_none() => base = Some(from.clone()),
            "super" => {
                base.get_or_insert_with(|| from.clone()).pop();
            }
            name => base.get_or_insert_default().push(name.to_owned()),
        }
    }
    base.unwrap_or_default()
}

/// Returns the items that a file re-exports with `pub use`, with the files that they are from.
fn exports(text: &str, from: &Module, modules: &BTreeSet<Module>) -> Exports {
    let mut found = Exports::new();
    for (at, _) in text.match_indices(" use ") {
        let line = text[..at].rfind('\n').map_or(0, |at| at + 1);
        if !text[line..at].trim_start().starts_with("pub") {
            continue;
        }
        let whole: String = text[at + " use ".len()..].chars().take_while(|c| *c != ';').collect();
        let mut trees = Vec::new();
        paths("", &whole.replace(char::is_whitespace, ""), &mut trees);
        for tree in trees {
            let relative = !["crate", "self", "super"].iter().any(|word| tree.starts_with(word));
            let path = match relative {
                true => absolute(&format!("self::{tree}"), from),
                false => absolute(&tree, from),
            };
            let file = (1..=path.len()).rev().find_map(|length| modules.get(&path[..length]));
            if let (Some(file), Some(item)) = (file.filter(|file| *file != from), path.last()) {
                found.insert(item.clone(), file.clone());
            }
        }
    }
    found
}

/// Returns the file that a path leads to: the longest part of the path that is a file or, for a re-exported item, the file that defines it.
fn target<'m>(
    path: &str,
    from: &Module,
    modules: &'m BTreeSet<Module>,
    exported: &BTreeMap<&Module, Exports>,
) -> Option<&'m Module> {
    let path = absolute(path, from);
    let file = (0..=path.len()).rev().find_map(|length| modules.get(&path[..length]))?;
    let item = path.get(file.len()).and_then(|item| exported.get(file)?.get(item));
    match item {
        Some(defined) => modules.get(defined),
        // Items in the root of the crate are used by all files, and count as no dependency.
        None => Some(file).filter(|file| !file.is_empty()),
    }
}

/// Returns the files of each circle.
fn circles(root: &Path) -> Vec<BTreeSet<String>> {
    let mut files = Vec::new();
    rust_files(root, &mut files);
    let by_module: BTreeMap<Module, PathBuf> = files.into_iter().map(|file| (module_of(root, &file), file)).collect();
    let modules: BTreeSet<Module> = by_module.keys().cloned().collect();
    let mut reached: BTreeMap<&Module, BTreeSet<&Module>> = BTreeMap::new();
    let texts: BTreeMap<&Module, String> = by_module.iter().map(|(module, file)| (module, code(file))).collect();
    let exported: BTreeMap<&Module, Exports> = texts
        .iter()
        .map(|(module, text)| (*module, exports(text, module, &modules)))
        .collect();
    for (module, text) in texts {
        let found = named(&text);
        let found = found
            .iter()
            .filter_map(|path| target(path, module, &modules, &exported));
        reached.insert(module, found.filter(|other| *other != module).collect());
    }
    // The search is repeated until nothing is added, which is fast enough for so few files.
    loop {
        let before: usize = reached.values().map(BTreeSet::len).sum();
        for module in &modules {
            let next: BTreeSet<&Module> = reached[module]
                .iter()
                .flat_map(|other| reached[*other].clone())
                .collect();
            if let Some(all) = reached.get_mut(module) {
                all.extend(next);
            }
        }
        if reached.values().map(BTreeSet::len).sum::<usize>() == before {
            break;
        }
    }
    let circle = |module: &Module| -> BTreeSet<String> {
        let both = reached[module].iter().filter(|other| reached[**other].contains(module));
        both.map(|other| other.join("/")).collect()
    };
    let found: BTreeSet<BTreeSet<String>> = modules.iter().map(circle).collect();
    found.into_iter().filter(|circle| circle.len() > 1).collect()
}

fn crates() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for above in ["src", "builtin-plugins"] {
        for entry in fs::read_dir(root.join(above)).expect("a directory").flatten() {
            if entry.path().join("Cargo.toml").is_file() {
                found.push(format!("{above}/{}", entry.file_name().to_string_lossy()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn files_of_a_crate_use_each_other_in_no_circle_but_those_listed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for name in crates() {
        for circle in circles(&root.join(&name)) {
            found.push((name.clone(), circle));
        }
    }
    let listed: Vec<(String, BTreeSet<String>)> = CIRCLES
        .iter()
        .map(|(name, files, _)| {
            (
                (*name).to_owned(),
                files.iter().map(|file| (*file).to_owned()).collect(),
            )
        })
        .collect();
    found.sort();
    let mut expected = listed;
    expected.sort();
    assert_eq!(found, expected, "left: found; right: listed");
}

#[test]
fn a_circle_of_two_files_is_found() {
    let dir = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).expect("a file");
    write("lib.rs", "mod a;\nmod b;\nmod c;\n");
    write("a.rs", "use crate::{b::B, c};\npub struct A;\n");
    write(
        "b.rs",
        "pub struct B;\n\npub fn a() -> usize {\n    size_of::<crate::a::A>()\n}\n",
    );
    write("c.rs", "#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}\n");
    let expected: BTreeSet<String> = ["a".to_owned(), "b".to_owned()].into();
    assert_eq!(circles(dir.path()), [expected]);
}

#[test]
fn a_circle_through_an_item_that_the_root_exports_is_found() {
    let dir = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| fs::write(dir.path().join(name), text).expect("a file");
    write("lib.rs", "mod a;\nmod b;\n\npub use a::{A, Other};\n");
    write("a.rs", "use crate::b::B;\npub struct A;\n");
    write("b.rs", "use crate::A;\npub struct B;\n");
    let expected: BTreeSet<String> = ["a".to_owned(), "b".to_owned()].into();
    assert_eq!(circles(dir.path()), [expected]);
}
