//! The bill of materials names exactly the crates of the executable.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::process::Command;

use serde_json::Value as Json;

/// Returns the crates that are linked into the executable or run during its build, on x86-64 Linux with glibc.
fn packages() -> Vec<Json> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--offline"])
        .arg("--filter-platform=x86_64-unknown-linux-gnu")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Json = serde_json::from_slice(&output.stdout).expect("JSON");
    let list = |value: &Json| value.as_array().cloned().unwrap_or_default();
    let by_id: HashMap<String, Json> = list(&metadata["packages"])
        .into_iter()
        .map(|package| (package["id"].as_str().unwrap_or_default().to_owned(), package))
        .collect();
    let nodes: HashMap<String, Json> = list(&metadata["resolve"]["nodes"])
        .into_iter()
        .map(|node| (node["id"].as_str().unwrap_or_default().to_owned(), node))
        .collect();
    let root = by_id.iter().find(|(_, package)| package["name"] == "monoform");
    let mut open = vec![root.expect("the executable").0.clone()];
    let mut used = BTreeSet::new();
    while let Some(id) = open.pop() {
        if !used.insert(id.clone()) {
            continue;
        }
        for dependency in list(&nodes[&id]["deps"]) {
            if list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"] != "dev") {
                open.push(dependency["pkg"].as_str().expect("an id").to_owned());
            }
        }
    }
    used.iter().map(|id| by_id[id].clone()).collect()
}

#[test]
fn bill_of_materials_names_every_crate_and_is_the_same_twice() {
    if support::needs("python3", "bill_of_materials").is_none() {
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/sbom");
    let printed = || {
        let output = Command::new(&script)
            .arg("x86_64-unknown-linux-gnu")
            .env("CARGO_NET_OFFLINE", "true")
            .output()
            .expect("the script runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    let first = printed();
    assert_eq!(first, printed());
    let document: Json = serde_json::from_slice(&first).expect("JSON");
    let text = |value: &Json, key: &str| value[key].as_str().unwrap_or_default().to_owned();
    let named: BTreeSet<_> = document["components"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|component| (text(component, "name"), text(component, "version")))
        .collect();
    let used: BTreeSet<_> = packages()
        .iter()
        .map(|package| (text(package, "name"), text(package, "version")))
        .filter(|(name, _)| name != "monoform")
        .collect();
    assert_eq!(named, used);
    let unhashed: Vec<_> = document["components"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|component| component["hashes"].is_null() && !text(component, "name").starts_with("monoform-"))
        .collect();
    assert!(unhashed.is_empty(), "{unhashed:#?}");
}
