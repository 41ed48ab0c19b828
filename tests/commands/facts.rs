//! The compared results of a program's run, without prose and without values that differ in every run.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

/// Placeholders for values that differ in every run.
pub struct Masks {
    dir: String,
}

impl Masks {
    pub fn new(dir: &Path) -> Masks {
        let dir = std::fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
        Masks {
            dir: dir.display().to_string(),
        }
    }

    /// Replaces the working directory by `DIR`, each UUID by `ID`, and Terraform's name by Monoform's.
    pub fn text(&self, text: &str) -> String {
        let text = text.replace(&self.dir, "DIR");
        let text = text.replace("Terraform", "Monoform").replace("terraform ", "monoform ");
        // The recordings may be from a release candidate.
        let text = text.replace("1.16.0-rc2", "1.16.0");
        let mut out = String::new();
        let mut rest = &*text;
        while !rest.is_empty() {
            if let Some(id) = rest.get(..36).filter(|t| is_uuid(t)) {
                // The identifiers in seeds are fixed, so they are not replaced.
                out.push_str(if id.starts_with("00000000-") { id } else { "ID" });
                rest = &rest[36..];
            } else {
                let mut chars = rest.chars();
                out.extend(chars.next());
                rest = chars.as_str();
            }
        }
        out
    }
}

fn is_uuid(text: &str) -> bool {
    text.char_indices().all(|(i, c)| match i {
        8 | 13 | 18 | 23 => c == '-',
        _ => c.is_ascii_hexdigit(),
    })
}

/// Returns standard output without usage texts, and with warnings reduced to their summaries.
pub fn output(text: &str) -> String {
    if text.starts_with("Usage: ") {
        return String::new();
    }
    text.trim_matches('\n').to_owned()
}

/// Returns the summaries of errors; if there are none, the first line with text.
pub fn errors(text: &str) -> Vec<String> {
    let summaries: Vec<String> = text
        .lines()
        .filter_map(|l| l.trim_start().strip_prefix("Error: "))
        .map(str::to_owned)
        .collect();
    if !summaries.is_empty() {
        return summaries;
    }
    let prose = |l: &&str| !l.trim().is_empty();
    text.lines().find(prose).map(str::to_owned).into_iter().collect()
}

/// Returns the objects of a stream without values that differ from run to run, in an order that does not depend on the
/// speed of operations.
pub fn stream(text: &str) -> Vec<String> {
    let mut out: Vec<(String, String)> = Vec::new();
    let mut run = 0;
    for line in text.lines() {
        let mut object: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("not JSON: {e}\n{line}\n{text}"));
        let Some(map) = object.as_object_mut() else { continue };
        map.insert("@timestamp".into(), "TIME".into());
        if let Some(diagnostic) = map.get_mut("diagnostic").and_then(Value::as_object_mut) {
            diagnostic.retain(|key, _| matches!(key.as_str(), "severity" | "summary" | "address" | "range"));
            if let Some(range) = diagnostic.get_mut("range") {
                *range = json!({"filename": range["filename"], "line": range["start"]["line"]});
            }
        }
        if let Some(hook) = map.get_mut("hook").and_then(Value::as_object_mut)
            && hook.contains_key("elapsed_seconds")
        {
            hook.insert("elapsed_seconds".into(), json!(0));
        }
        let address = |part: &str| {
            map.get(part)
                .and_then(|h| h.pointer("/resource/addr"))
                .and_then(Value::as_str)
        };
        let hook = address("hook").or(address("change")).map(str::to_owned);
        let key = match hook {
            Some(address) if map.contains_key("change") => format!("{run:06} {address} ~"),
            Some(address) => format!("{run:06} {address}"),
            None => {
                run += 2;
                format!("{:06}", run - 1)
            }
        };
        let mut text = object.to_string();
        for seconds in ["0s", "1s", "2s"] {
            text = text.replace(&format!("after {seconds}"), "after TIME");
        }
        out.push((key, text));
    }
    out.sort_by(|(a, _), (b, _)| a.cmp(b));
    out.into_iter().map(|(_, text)| text).collect()
}

/// Lists the files, with the content of the states among them.
///
/// `counted` is false if the program may write snapshots at any time, so that the last one's serial number depends on
/// its pace.
pub fn files(dir: &Path, masks: &Masks, counted: bool) -> String {
    let mut found = BTreeMap::new();
    collect(dir, dir, &mut found);
    let mut out = String::new();
    for (name, path) in found {
        let _ = writeln!(out, "@ {name}");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        if name.ends_with("environment") {
            let _ = writeln!(out, "  {text}");
        } else if !name.contains(".TIME.")
            // Two changes in the same second may or may not share a backup, so backups are not compared.
            && let Ok(mut state) = serde_json::from_str::<Value>(&text)
            && state.get("serial").is_some()
        {
            let mut text = text;
            if !counted {
                text = text.replace(&format!("\"serial\": {},", state["serial"]), "");
                state["serial"] = "-".into();
            }
            describe(&state, &masks.text(&text), masks, &mut out);
        }
    }
    out
}

fn describe(state: &Value, text: &str, masks: &Masks, out: &mut String) {
    let lineage = masks.text(state["lineage"].as_str().unwrap_or_default());
    let _ = writeln!(
        out,
        "  serial {} lineage {lineage} checksum {:016x}",
        state["serial"],
        checksum(text.as_bytes())
    );
    for resource in state["resources"].as_array().into_iter().flatten() {
        let part = |name: &str| resource[name].as_str().unwrap_or_default().to_owned();
        for instance in resource["instances"].as_array().into_iter().flatten() {
            let mut line = format!("  {} {} {}", part("module"), part("type"), part("name"));
            for key in ["index_key", "status", "deposed"] {
                if let Some(value) = instance.get(key) {
                    let _ = write!(line, " {key}={value}");
                }
            }
            let _ = writeln!(out, "{line} {}", part("provider"));
        }
    }
}

/// Returns the FNV-1a hash of bytes: enough to see a difference.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn collect(root: &Path, dir: &Path, out: &mut BTreeMap<String, PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        let name = path.strip_prefix(root).expect("a path inside").display().to_string();
        if path.is_dir() {
            // Other tests cover plugins, modules and the record of init.
            if !matches!(&*name, ".terraform/providers" | ".terraform/modules") {
                collect(root, &path, out);
            }
            continue;
        }
        let is_ours = |n: &str| n.ends_with(".tf") || n.ends_with(".lock.hcl") || n == ".terraform/terraform.tfstate";
        if !is_ours(&name) {
            out.insert(masked_time(&name), path);
        }
    }
}

/// Returns `x.TIME.backup` for `x.1234567890.backup`.
fn masked_time(name: &str) -> String {
    let parts: Vec<&str> = name.split('.').collect();
    let masked = parts.iter().map(|part| {
        let time = part.len() >= 10 && part.bytes().all(|b| b.is_ascii_digit());
        if time { "TIME" } else { part }
    });
    masked.collect::<Vec<_>>().join(".")
}
