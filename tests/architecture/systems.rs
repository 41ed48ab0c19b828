//! Differences between operating systems are in one crate, `src/system`.

use std::path::{Path, PathBuf};

/// Files that may name a system nevertheless: for features that only Linux has, and for features that a library lacks
/// on other systems.
const ELSEWHERE: &[(&str, &str)] = &[
    ("src/cli/commands/mod.rs", "a mount namespace"),
    (
        "src/http/transport.rs",
        "the HTTP library has no Unix sockets on Windows",
    ),
    ("src/packages/packed.rs", "mount options"),
    ("src/packed.rs", "programs run from memory"),
    ("src/plugins/lib.rs", "a mount namespace"),
    ("src/plugins/private_tmp.rs", "a mount namespace"),
    ("src/plugins/spawner.rs", "the end of a process with its parent"),
];

/// Texts that only code for one family of systems contains.
const WORDS: &[&str] = &[
    "std::os::",
    "target_os",
    "cfg(unix)",
    "cfg(windows)",
    "cfg(not(unix))",
    "cfg(not(windows))",
    "cfg!(unix)",
    "cfg!(windows)",
    "tokio::net::unix",
    "tokio::net::windows",
    "tokio::signal::",
    "rustix::",
    "nix::",
    "windows_sys::",
];

#[test]
fn no_other_crate_names_a_system_but_for_what_is_listed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    for dir in ["src", "builtin-plugins"] {
        sources(&root.join(dir), &mut found);
    }
    let named: Vec<String> = found
        .iter()
        .filter_map(|path| {
            let text = std::fs::read_to_string(path).expect("a source file");
            let relative = path.strip_prefix(root).expect("below the root").to_string_lossy();
            // Unit tests are not searched, because they may create links and set modes.
            let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
            let is_named = WORDS.iter().any(|word| code.contains(word));
            (is_named && !relative.starts_with("src/system/")).then(|| relative.into_owned())
        })
        .collect();
    let mut listed: Vec<&str> = ELSEWHERE.iter().map(|(path, _)| *path).collect();
    listed.sort_unstable();
    let mut named: Vec<&str> = named.iter().map(String::as_str).collect();
    named.sort_unstable();
    assert_eq!(named, listed, "move it to src/system, or give the reason here");
}

/// Collects the source files below a directory, without tests.
fn sources(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_test = name == "tests" || name == "recorded.rs" || name.ends_with("tests.rs") || name == "examples";
        if is_test {
            continue;
        }
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            out.push(path);
        }
    }
}
