//! Comparison of a run with a recording.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value};

/// Position at which the results differ, with both values.
pub struct Difference {
    step: usize,
    at: Vec<String>,
    ours: Option<Value>,
    theirs: Option<Value>,
}

impl Difference {
    /// Returns the last part of the path.
    pub fn name(&self) -> &str {
        self.at.last().map_or("", String::as_str)
    }

    /// Returns true if the difference is in the JSON document of a plan, or in that of a state.
    pub fn is_of_document(&self) -> bool {
        self.at.iter().any(|part| matches!(part.as_str(), "json" | "shown"))
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |v: &Option<Value>| v.as_ref().map_or("nothing".into(), |v| shortened(&v.to_string()));
        write!(f, "  step {}, {}:", self.step + 1, self.at.join("."))?;
        write!(
            f,
            "\n      ours   {}\n      theirs {}",
            text(&self.ours),
            text(&self.theirs)
        )
    }
}

impl Difference {
    /// Returns true if the only difference is in dependencies that an earlier step recorded. Terraform keeps some of these for objects of
    /// modules that have been updated since.
    pub fn leaves_old_dependencies(&self) -> bool {
        let list = |value: &Option<Value>| match value {
            None => Some(Vec::new()),
            Some(value) => value.as_array().cloned(),
        };
        let last = self.at.last().map(String::as_str);
        let dependencies = matches!(last, Some("depends_on" | "dependencies"));
        match (list(&self.ours), list(&self.theirs)) {
            (Some(ours), Some(theirs)) if dependencies && self.step > 0 => ours.iter().all(|d| theirs.contains(d)),
            _ => false,
        }
    }
}

/// Cuts a long text off.
fn shortened(text: &str) -> String {
    const MOST: usize = 2000;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{} …", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns true if a difference is at a position in the notation of `expected.txt`: the first parts of the path, in any step. A `*` stands
/// for any one part.
pub fn is_at(difference: &Difference, place: &str) -> bool {
    let mut at = difference.at.iter();
    place.split('.').all(|p| at.next().is_some_and(|a| p == "*" || a == p))
}

/// Compares the results of each command.
pub fn steps(ours: &Value, theirs: &Value, out: &mut Vec<Difference>) {
    let none = Vec::new();
    let (ours, theirs) = (ours.as_array().unwrap_or(&none), theirs.as_array().unwrap_or(&none));
    for step in 0..ours.len().max(theirs.len()) {
        let (a, b) = (ours.get(step).cloned(), theirs.get(step).cloned());
        differ(step, &mut Vec::new(), a.map(normal), b.map(normal), out);
    }
}

/// Sorts the lists whose order is not significant, and drops resources without instances.
fn normal(value: Value) -> Value {
    const UNORDERED: [&str; 7] = [
        "child_modules",
        "relevant_attributes",
        "replace_paths",
        "sensitive_attributes",
        "checks",
        "check_results",
        "objects",
    ];
    match value {
        Value::Object(map) => {
            let parts = map.into_iter().map(|(name, part)| {
                let part = normal(part);
                match part {
                    // A resource without instances equals a missing one.
                    Value::Array(mut list) if name == "resources" => {
                        list.retain(|r| r["instances"].as_array().is_none_or(|i| !i.is_empty()));
                        (name, Value::Array(list))
                    }
                    Value::Array(mut list) if UNORDERED.contains(&name.as_str()) => {
                        list.sort_by_cached_key(sorted_text);
                        (name, Value::Array(list))
                    }
                    part => (name, part),
                }
            });
            Value::Object(parts.collect::<Map<_, _>>())
        }
        Value::Array(list) => list.into_iter().map(normal).collect(),
        other => other,
    }
}

/// Returns a sort key in which the order of names does not count.
fn sorted_text(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let mut parts: Vec<String> = map.iter().map(|(k, v)| format!("{k}={}", sorted_text(v))).collect();
            parts.sort();
            parts.join(",")
        }
        Value::Array(list) => list.iter().map(sorted_text).collect::<Vec<_>>().join(";"),
        other => other.to_string(),
    }
}

fn differ(step: usize, at: &mut Vec<String>, ours: Option<Value>, theirs: Option<Value>, out: &mut Vec<Difference>) {
    match (ours, theirs) {
        (Some(Value::Object(mut a)), Some(Value::Object(mut b))) => {
            let names: BTreeSet<String> = a.keys().chain(b.keys()).cloned().collect();
            for name in names {
                let (a, b) = (a.remove(&name), b.remove(&name));
                at.push(name);
                differ(step, at, a, b, out);
                at.pop();
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) if a.len() == b.len() => {
            for (i, (a, b)) in a.into_iter().zip(b).enumerate() {
                at.push(i.to_string());
                differ(step, at, Some(a), Some(b), out);
                at.pop();
            }
        }
        // If only Monoform names the object or the position of a problem, that is an improvement and not reported as a difference.
        (Some(Value::String(a)), Some(Value::String(b)))
            if at.iter().any(|p| p == "problems")
                && !b.contains(" | with ")
                && (without_object(&a) == b || a.split(" | ").next() == Some(&*b)) => {}
        (ours, theirs) if ours != theirs => out.push(Difference {
            step,
            at: at.clone(),
            ours,
            theirs,
        }),
        _ => {}
    }
}

/// Returns the heading of a problem without its object.
fn without_object(head: &str) -> String {
    let parts: Vec<&str> = head.split(" | ").filter(|p| !p.starts_with("with ")).collect();
    parts.join(" | ")
}

/// Drops from planned values the objects that a plan only forgets: Terraform before 1.15.6 lists them, without values.
pub fn drop_forgotten(document: &mut Value) {
    match document {
        Value::Object(map) => {
            for (name, value) in map.iter_mut() {
                match name.as_str() {
                    "planned_values" => {
                        if let Some(root) = value.get_mut("root_module") {
                            drop_forgotten_in_module(root);
                        }
                    }
                    _ => drop_forgotten(value),
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(drop_forgotten),
        _ => {}
    }
}

/// Drops the forgotten objects of a module and of the modules in it. Returns true if the module has other objects.
fn drop_forgotten_in_module(module: &mut Value) -> bool {
    let Some(members) = module.as_object_mut() else {
        return false;
    };
    if let Some(Value::Array(resources)) = members.get_mut("resources") {
        resources.retain(|resource| resource.get("values").is_some());
    }
    if let Some(Value::Array(modules)) = members.get_mut("child_modules") {
        modules.retain_mut(drop_forgotten_in_module);
    }
    let empty = |value: &Value| value.as_array().is_some_and(Vec::is_empty);
    for name in ["resources", "child_modules"] {
        if members.get(name).is_some_and(empty) {
            members.remove(name);
        }
    }
    members.contains_key("resources") || members.contains_key("child_modules")
}
