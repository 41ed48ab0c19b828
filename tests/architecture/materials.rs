//! The bill of materials names exactly what the executable is made of.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value as Json;

use crate::dependencies::packages;

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
