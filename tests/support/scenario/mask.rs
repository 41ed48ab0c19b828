//! Placeholders for values that differ from run to run: identities and random values become `ADDRESS.NAME#n`, the n-th
//! distinct one at that address; keys of deposed objects, time stamps, and the lineage and serial number of the state are
//! masked, too.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

/// Placeholders for values that differ from run to run.
#[derive(Default)]
pub struct Masks {
    names: BTreeMap<String, String>,
    taken: BTreeSet<String>,
}

/// Returns the attributes that providers choose at random, by the type of a managed resource.
fn random(ty: &str) -> &'static [&'static str] {
    match ty {
        "terraform_data" | "null_resource" => &["id"],
        "random_id" => &["id", "b64_std", "b64_url", "dec", "hex"],
        "random_pet" | "random_uuid" => &["id", "result"],
        "random_password" => &["result", "bcrypt_hash"],
        "random_string" => &["id", "result"],
        _ if ty.starts_with("lab_") => &["id"],
        _ => &[],
    }
}

/// Properties that are never compared, in any document.
const NEVER: [&str; 3] = ["timestamp", "lineage", "serial"];

impl Masks {
    /// Collects the values of a state file that are to be masked, in the order of addresses.
    pub fn learn(&mut self, state: &Value) {
        let mut found: Vec<(String, String)> = Vec::new();
        for resource in state["resources"].as_array().into_iter().flatten() {
            let text = |name: &str| resource[name].as_str().unwrap_or_default();
            let module = match text("module") {
                "" => String::new(),
                module => format!("{module}."),
            };
            for instance in resource["instances"].as_array().into_iter().flatten() {
                let key = match &instance["index_key"] {
                    Value::Null => String::new(),
                    key => format!("[{key}]"),
                };
                let address = format!("{module}{}.{}{key}", text("type"), text("name"));
                for name in random(text("type")) {
                    if let Some(value) = instance["attributes"][name].as_str() {
                        found.push((format!("{address}.{name}"), value.into()));
                    }
                }
                if let Some(key) = instance["deposed"].as_str() {
                    found.push((format!("{address} deposed"), key.into()));
                }
            }
        }
        found.sort();
        for (place, value) in found {
            // A short value could also be replaced inside of other text.
            if value.len() < 6 || self.names.contains_key(&value) {
                continue;
            }
            let mut n = 1;
            while self.taken.contains(&format!("{place}#{n}")) {
                n += 1;
            }
            let name = format!("{place}#{n}");
            self.taken.insert(name.clone());
            self.names.insert(value, name);
        }
    }

    /// Replaces the collected values in text.
    pub fn text(&self, text: &str) -> String {
        let mut out = text.to_owned();
        // The longest value is replaced first, because the standard base64 form of an identity may be the URL form with padding.
        let mut names: Vec<_> = self
            .names
            .iter()
            .filter(|(value, _)| text.contains(value.as_str()))
            .collect();
        names.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
        for (value, name) in names {
            if out.contains(value.as_str()) {
                out = out.replace(value.as_str(), name);
            }
        }
        out
    }

    /// Replaces the collected values in a document, names of properties included.
    pub fn document(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(list) => list.iter().map(|v| self.document(v)).collect(),
            Value::Object(map) => {
                // Since Terraform 1.12 an object without an identity has a version for it, which older recordings
                // lack.
                let nothing =
                    |k: &str, v: &Value| k == "identity_schema_version" && *v == 0 && !map.contains_key("identity");
                let told = map.iter().filter(|(k, v)| !nothing(k, v));
                let masked = told.map(|(k, v)| {
                    let v = if NEVER.contains(&k.as_str()) {
                        json!("")
                    } else {
                        self.document(v)
                    };
                    (self.text(k), v)
                });
                Value::Object(masked.collect())
            }
            other => other.clone(),
        }
    }
}
