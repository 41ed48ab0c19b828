//! The rules of `.cargo/deny.toml`, held without a network: licences, banned crates, crates in two versions.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::process::Command;

use serde_json::Value as Json;

fn rules() -> toml::Table {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(".cargo/deny.toml");
    let text = std::fs::read_to_string(path).expect("the rules");
    text.parse().expect("TOML")
}

/// The crates that are linked into the executable or run while it is built, on the usual platform.
pub fn packages() -> Vec<Json> {
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

fn texts(value: &toml::Value) -> Vec<String> {
    let list = value.as_array().expect("a list");
    let text = |item: &toml::Value| item.get("crate").unwrap_or(item).as_str().map(str::to_owned);
    list.iter().map(|item| text(item).expect("a text")).collect()
}

#[test]
fn licences_are_on_the_list() {
    let allowed: Vec<spdx::Licensee> = texts(&rules()["licenses"]["allow"])
        .iter()
        .map(|text| spdx::Licensee::parse(text).expect("a licence"))
        .collect();
    let mut wrong = Vec::new();
    for package in packages() {
        let name = package["name"].as_str().unwrap_or_default().to_owned();
        let licence = package["license"].as_str().unwrap_or_default().to_owned();
        let expression = spdx::Expression::parse_mode(&licence, spdx::ParseMode::LAX);
        let fine = expression.is_ok_and(|e| e.evaluate(|required| allowed.iter().any(|a| a.satisfies(required))));
        if !fine {
            wrong.push(format!("{name}: {licence:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn banned_crates_are_not_used() {
    let banned = texts(&rules()["bans"]["deny"]);
    let used: Vec<_> = packages()
        .iter()
        .filter_map(|p| p["name"].as_str().map(str::to_owned))
        .filter(|name| banned.contains(name))
        .collect();
    assert!(used.is_empty(), "{used:?}");
}

#[test]
fn crates_in_two_versions_are_on_the_list_and_the_list_is_no_longer_than_needed() {
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in packages() {
        let text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
        versions.entry(text("name")).or_default().insert(text("version"));
    }
    let skipped = texts(&rules()["bans"]["skip"]);
    let mut unused: BTreeSet<&String> = skipped.iter().collect();
    let mut wrong = Vec::new();
    for (name, versions) in versions.iter().filter(|(_, versions)| versions.len() > 1) {
        let others: Vec<_> = versions
            .iter()
            .filter(|version| {
                let skip = skipped.iter().find(|skip| {
                    let (skipped_name, skipped_version) = skip.split_once('@').expect("a version");
                    skipped_name == name
                        && (*version == skipped_version || version.starts_with(&format!("{skipped_version}.")))
                });
                if let Some(skip) = skip {
                    unused.remove(skip);
                }
                skip.is_none()
            })
            .collect();
        if others.len() > 1 {
            wrong.push(format!("{name}: {others:?}"));
        }
    }
    assert!(
        wrong.is_empty() && unused.is_empty(),
        "not listed: {wrong:?}; listed in vain: {unused:?}"
    );
}
