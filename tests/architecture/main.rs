//! The arrows of the house: which crate may use which. A new edge is a decision, and is made here first.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Who may use whom. Everybody may use `addrs`.
const ALLOWED: &[(&str, &[&str])] = &[
    ("monoform-addrs", &[]),
    ("monoform-cty", &[]),
    ("monoform-deflate", &[]),
    ("monoform-files", &[]),
    ("monoform-proto", &[]),
    ("monoform-syntax", &["cty"]),
    ("monoform-lang", &["syntax", "cty", "deflate"]),
    ("monoform-config", &["lang", "syntax", "cty"]),
    ("monoform-state", &["cty", "files"]),
    ("monoform-trust", &[]),
    ("monoform-net", &["trust"]),
    ("monoform-modules", &["config", "net", "syntax", "files"]),
    ("monoform-plugins", &["proto", "net", "lang", "syntax", "cty", "files"]),
    (
        "monoform-engine",
        &["config", "state", "plugins", "lang", "syntax", "cty"],
    ),
    (
        "monoform-cli",
        &[
            "engine", "config", "modules", "state", "plugins", "net", "lang", "syntax", "cty", "files",
        ],
    ),
    ("monoform-sdk-derive", &[]),
    ("monoform-sdk", &["sdk-derive", "proto", "cty"]),
    // One plugin uses another: user data for cloud-init is the same message in both.
    ("monoform-provider-template", &["sdk", "provider-cloudinit"]),
    // The language is for the built-in provider of templates: plugins may not know it, so the top hands it down.
    ("monoform", &["cli", "plugins", "sdk", "lang", "syntax", "cty"]),
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
        let is_plugin = name.starts_with("monoform-provider-") || name.starts_with("monoform-provisioner-");
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let used = dependency["name"].as_str().expect("a name");
            let internal = used.starts_with("monoform-") && dependency["kind"] != "dev";
            if !internal || (used == "monoform-addrs" && !is_plugin) {
                continue;
            }
            let fine = match allowed.get(name) {
                Some(allowed) => {
                    let plugin = used.starts_with("monoform-provider-") || used.starts_with("monoform-provisioner-");
                    allowed.contains(used) || (name == "monoform" && plugin)
                }
                None => {
                    is_plugin
                        && matches!(
                            used,
                            "monoform-sdk" | "monoform-cty" | "monoform-deflate" | "monoform-trust"
                        )
                }
            };
            if !fine {
                wrong.push(format!("{name} -> {used}"));
            }
        }
    }
    assert!(wrong.is_empty(), "these edges are not allowed: {wrong:?}");
}
