//! Allowed dependencies between crates. A new edge is a decision, and is made here first.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking"
)]

mod ci;
mod circles;
mod materials;
mod systems;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Dependencies that each crate may have. Every crate below the plugins may use `addrs` and `versions`, and every crate `system`.
const ALLOWED: &[(&str, &[&str])] = &[
    ("monoform-addrs", &["gotext"]),
    ("monoform-versions", &[]),
    ("monoform-cty", &["gotext"]),
    ("monoform-deflate", &[]),
    ("monoform-files", &[]),
    ("monoform-openssh", &[]),
    ("monoform-proto", &[]),
    ("monoform-gotext", &[]),
    ("monoform-syntax", &["cty", "gotext"]),
    ("monoform-system", &[]),
    ("monoform-schema", &["cty"]),
    (
        "monoform-lang",
        &["schema", "syntax", "cty", "deflate", "files", "gotext", "openssh"],
    ),
    ("monoform-config", &["lang", "schema", "syntax", "cty", "files"]),
    ("monoform-provider", &["schema", "syntax", "cty"]),
    ("monoform-locks", &["cty", "gotext"]),
    ("monoform-state", &["cty", "files", "locks"]),
    (
        "monoform-encryption",
        &[
            "config", "state", "lang", "schema", "syntax", "cty", "http", "proxies", "trust", "process", "files",
        ],
    ),
    ("monoform-archive", &["files"]),
    (
        "monoform-authors",
        &[
            "engine", "testing", "config", "packages", "oci", "plugins", "proto", "provider", "lang", "schema",
            "syntax", "cty", "files", "process",
        ],
    ),
    ("monoform-pack", &["archive", "files"]),
    ("monoform-trust", &[]),
    ("monoform-proxies", &[]),
    ("monoform-http", &["trust", "proxies", "files"]),
    ("monoform-server", &["files"]),
    ("monoform-net", &["http", "proxies", "files"]),
    ("monoform-oci", &["net", "files"]),
    ("monoform-tfe", &["net", "files"]),
    (
        "monoform-modules",
        &[
            "config", "oci", "net", "http", "archive", "pack", "syntax", "files", "gotext",
        ],
    ),
    (
        "monoform-packages",
        &["oci", "net", "archive", "pack", "server", "syntax", "files"],
    ),
    (
        "monoform-plugins",
        &["provider", "proto", "schema", "syntax", "cty", "files"],
    ),
    (
        "monoform-engine",
        &["provider", "config", "state", "lang", "schema", "syntax", "cty"],
    ),
    (
        "monoform-testing",
        &[
            "engine", "config", "provider", "state", "lang", "schema", "syntax", "cty",
        ],
    ),
    (
        "monoform-views",
        &[
            "engine", "testing", "config", "state", "provider", "lang", "schema", "syntax", "cty",
        ],
    ),
    (
        "monoform-stores",
        &[
            "plugins", "engine", "config", "state", "provider", "lang", "schema", "syntax", "cty", "files",
        ],
    ),
    (
        "monoform-hosted",
        &[
            "stores", "views", "tfe", "net", "engine", "config", "state", "provider", "lang", "schema", "syntax",
            "cty", "files",
        ],
    ),
    (
        "monoform-cli",
        &[
            "authors",
            "views",
            "stores",
            "hosted",
            "engine",
            "encryption",
            "testing",
            "config",
            "modules",
            "state",
            "packages",
            "pack",
            "plugins",
            "provider",
            "net",
            "server",
            "tfe",
            "traces",
            "lang",
            "schema",
            "syntax",
            "cty",
            "files",
            "gotext",
        ],
    ),
    ("monoform-traces", &["http", "proxies", "trust", "files"]),
    ("monoform-sdk-derive", &[]),
    ("monoform-process", &[]),
    ("monoform-sdk", &["sdk-derive", "cty", "gotext", "locks", "process"]),
    ("monoform-sdk-server", &["sdk", "proto", "gotext"]),
    // This crate tests plugins: any plugin may use it as a development dependency, and none as a normal one.
    ("monoform-sdk-testing", &["sdk"]),
    ("monoform-connection", &["sdk", "trust", "gotext", "openssh"]),
    // Both plugins build the same cloud-init user data, so this one uses the code of the other. `lang` and `syntax` evaluate templates.
    (
        "monoform-provider-template",
        &["sdk", "provider-cloudinit", "lang", "syntax"],
    ),
    ("monoform-provider-terraform", &["sdk", "lang", "syntax"]),
    // State stores that use HTTP share this crate, and every store may use it. Its own dependencies are crates that every plugin may use.
    ("monoform-store-client", &["sdk", "http", "trust", "proxies"]),
    // Key providers for cloud services. They get credentials by the code of the state stores for the same clouds.
    (
        "monoform-key-providers",
        &["sdk", "state-azurerm", "state-gcs", "state-s3"],
    ),
    // The command line uses `tfe`, too. This plugin reads tokens and service addresses from the CLI configuration, which needs the other
    // crates.
    (
        "monoform-state-remote",
        &["sdk", "cty", "tfe", "net", "packages", "addrs"],
    ),
    // Test support: any crate may use it as a development dependency, and none as a normal one.
    ("monoform-support", &[]),
    ("monoform", &["cli", "packages", "pack", "sdk", "sdk-server"]),
];

/// Crates that core and plugins share: every plugin may use them. Code that two plugins would otherwise copy belongs here.
const COMMON: &[&str] = &[
    "deflate", "files", "gotext", "http", "locks", "openssh", "proxies", "trust",
];

#[test]
fn crates_use_only_what_stands_below_them() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let allowed: BTreeMap<&str, BTreeSet<String>> = ALLOWED
        .iter()
        .map(|(name, uses)| (*name, uses.iter().map(|u| format!("monoform-{u}")).collect()))
        .collect();
    let mut wrong = Vec::new();
    for package in metadata["packages"].as_array().expect("packages") {
        let name = package["name"].as_str().expect("a name");
        let is_store = |name: &str| name.starts_with("monoform-state-");
        let is_plugin = |name: &str| {
            let kinds = ["monoform-provider-", "monoform-provisioner-", "monoform-key-providers"];
            kinds.iter().any(|kind| name.starts_with(kind)) || is_store(name)
        };
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let used = dependency["name"].as_str().expect("a name");
            let internal = used.starts_with("monoform-") && used != "monoform-system" && dependency["kind"] != "dev";
            if !internal || (matches!(used, "monoform-addrs" | "monoform-versions") && !is_plugin(name)) {
                continue;
            }
            let is_common = is_plugin(name) && COMMON.iter().any(|name| used == format!("monoform-{name}"));
            let fine = is_common
                || match allowed.get(name) {
                    Some(allowed) => allowed.contains(used) || (name == "monoform" && is_plugin(used)),
                    None => {
                        is_store(name) && used == "monoform-store-client"
                            || is_plugin(name)
                                && matches!(used, "monoform-sdk" | "monoform-cty" | "monoform-connection")
                    }
                };
            if !fine {
                wrong.push(format!("{name} -> {used}"));
            }
        }
    }
    assert!(wrong.is_empty(), "these edges are not allowed: {wrong:?}");
}

/// For each crate: dependencies that it must not have, directly or not, and one that it has, to prove that the search works. The engine and
/// the views of its data must not depend on I/O crates; state stores may use the plugin protocol, but no terminal, registry or command
/// line.
const NOT_BELOW: &[(&str, &str, &[&str])] = &[
    (
        "engine",
        "petgraph",
        &["tonic", "reqwest", "rustls", "hyper", "h2", "zip", "hcl", "clap"],
    ),
    (
        "views",
        "engine",
        &["tonic", "reqwest", "rustls", "hyper", "h2", "zip", "hcl", "clap"],
    ),
    (
        "stores",
        "plugins",
        &["reqwest", "hcl", "clap", "terminal-size", "packages", "views"],
    ),
    ("hosted", "tfe", &["hcl", "clap", "packages", "modules"]),
];

#[test]
fn crates_bring_no_library_of_what_they_do_not_know() {
    let mut wrong = Vec::new();
    for (name, brought, unknown) in NOT_BELOW {
        let output = Command::new(env!("CARGO"))
            .args([
                "tree",
                &format!("--package=monoform-{name}"),
                "--edges=normal",
                "--prefix=none",
                "--format={lib}",
                "--offline",
            ])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .expect("cargo runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8_lossy(&output.stdout).replace('_', "-");
        let used: BTreeSet<&str> = text.lines().map(str::trim).collect();
        assert!(used.contains(name) && used.contains(brought), "{used:?}");
        let found = unknown.iter().filter(|library| used.contains(**library));
        wrong.extend(found.map(|library| format!("{name} brings {library}")));
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// Cargo unifies features in a whole program, so a feature that the SDK enabled would change what the library does in an author's code.
/// (`arbitrary_precision` of serde_json breaks flattened and untagged numbers.)
#[test]
fn sdk_asks_for_no_features_of_the_library_for_json() {
    let output = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--package=monoform-sdk",
            "--edges=normal,features",
            "--prefix=none",
            "--offline",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.lines().any(|line| line.starts_with("monoform-cty ")), "{text}");
    let json: Vec<&str> = text.lines().filter(|line| line.starts_with("serde_json ")).collect();
    assert!(json.is_empty(), "the SDK brings {json:?}");
}

#[test]
fn architecture_page_names_every_crate_and_every_file_it_begins_with() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("src/ARCHITECTURE.md")).expect("the page");
    let mut crates = vec!["proto".to_owned()];
    for folder in ["src", "builtin-plugins"] {
        for entry in std::fs::read_dir(root.join(folder)).expect("a folder") {
            let entry = entry.expect("an entry");
            if entry.path().join("Cargo.toml").is_file() {
                crates.push(format!("{folder}/{}", entry.file_name().to_string_lossy()));
            }
        }
    }
    let families = [
        "builtin-plugins/provider-",
        "builtin-plugins/provisioner-",
        "builtin-plugins/state-",
    ];
    for name in crates {
        let family = families.iter().find(|family| name.starts_with(**family));
        let written = family.map_or_else(|| format!("`{name}`"), |family| format!("`{family}…`"));
        assert!(page.contains(&written), "{name} is not on the page");
    }
    for row in page.lines().filter(|line| line.starts_with("| `src/")) {
        let cells: Vec<&str> = row.split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        assert!(root.join(cells[1]).join(cells[3]).is_file(), "{row}");
    }
}
