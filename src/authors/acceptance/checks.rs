//! Checks of a step's plan and state, in the JSON documents that the program prints for them.

use std::collections::BTreeMap;

use serde_json::Value as Json;
use syntax::{Diagnostic, Diagnostics, Range};

use super::file::ObjectCheck;
use super::path::{PathKey, ValuePath};

/// Summary of an assertion that fails. The views count the diagnostics with this summary.
pub(super) const FAILED: &str = "Test assertion failed";

/// Object in a plan or a state.
#[derive(Clone, Debug, Default)]
pub struct Object {
    /// Action that the plan has for the object; `None` for an object of a state.
    pub action: Option<&'static str>,
    /// True for data sources.
    pub is_data: bool,
    pub values: Json,
    pub unknown: Json,
    pub sensitive: Json,
}

/// Content of a plan or a state: objects by address, and outputs by name with their sensitivity.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    pub objects: BTreeMap<String, Object>,
    pub outputs: BTreeMap<String, (Json, bool)>,
}

impl Objects {
    /// Reads the document of a saved plan.
    #[must_use]
    pub fn of_plan(document: &Json) -> Objects {
        let mut found = Objects::default();
        for change in list(&document["resource_changes"]) {
            let details = &change["change"];
            let object = Object {
                action: Some(action(&details["actions"])),
                is_data: change["mode"] == "data",
                values: details["after"].clone(),
                unknown: details["after_unknown"].clone(),
                sensitive: details["after_sensitive"].clone(),
            };
            let address = change["address"].as_str().unwrap_or_default();
            found.objects.insert(address.to_owned(), object);
        }
        found
    }

    #[must_use]
    pub fn of_state(document: &Json) -> Objects {
        let mut found = Objects::default();
        let mut modules = vec![&document["values"]["root_module"]];
        while let Some(module) = modules.pop() {
            for resource in list(&module["resources"]) {
                let object = Object {
                    is_data: resource["mode"] == "data",
                    values: resource["values"].clone(),
                    sensitive: resource["sensitive_values"].clone(),
                    ..Object::default()
                };
                let address = resource["address"].as_str().unwrap_or_default();
                found.objects.insert(address.to_owned(), object);
            }
            modules.extend(list(&module["child_modules"]));
        }
        for (name, output) in document["values"]["outputs"].as_object().into_iter().flatten() {
            let is_sensitive = output["sensitive"] == true;
            found
                .outputs
                .insert(name.clone(), (output["value"].clone(), is_sensitive));
        }
        found
    }

    /// Returns the addresses of the managed objects.
    pub fn managed(&self) -> impl Iterator<Item = &str> {
        let managed = self.objects.iter().filter(|(_, object)| !object.is_data);
        managed.map(|(address, _)| address.as_str())
    }

    /// Lists the changes of a plan as "address (action)".
    #[must_use]
    pub fn changes(&self) -> Vec<String> {
        let changed = self.objects.iter().filter(|(_, object)| object.is_changed());
        changed
            .map(|(address, object)| format!("{address} ({})", object.action.unwrap_or_default()))
            .collect()
    }
}

impl Object {
    fn is_changed(&self) -> bool {
        !matches!(self.action, None | Some("no-op" | "read"))
    }
}

fn list(document: &Json) -> &[Json] {
    document.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn action(actions: &Json) -> &'static str {
    let names: Vec<&str> = list(actions).iter().filter_map(Json::as_str).collect();
    match names.as_slice() {
        ["create"] => "create",
        ["read"] => "read",
        ["update"] => "update",
        ["delete"] => "delete",
        ["delete", "create"] => "destroy_before_create",
        ["create", "delete"] => "create_before_destroy",
        ["forget"] | ["create", "forget"] => "forget",
        _ => "no-op",
    }
}

fn is_action(expected: &str, found: &str) -> bool {
    expected == found || expected == "replace" && matches!(found, "destroy_before_create" | "create_before_destroy")
}

pub(super) fn failed(detail: impl Into<String>, at: &Range) -> Diagnostic {
    Diagnostic::error(FAILED, detail).at(at)
}

/// Compares the actions of a plan with the expected ones. Other objects must not change.
pub fn actions(plan: &Objects, expected: &BTreeMap<String, String>, at: &Range, problems: &mut Diagnostics) {
    for (address, wanted) in expected {
        match plan.objects.get(address) {
            Some(object) => {
                let found = object.action.unwrap_or_default();
                if !is_action(wanted, found) {
                    problems.push(failed(
                        format!("The action of {address} is \"{found}\", and \"{wanted}\" is expected."),
                        at,
                    ));
                }
            }
            // Unchanged data sources are in no plan.
            None if wanted == "no-op" => {}
            None => problems.push(failed(
                format!("{address} is not in the plan, and the action \"{wanted}\" is expected."),
                at,
            )),
        }
    }
    for (address, object) in &plan.objects {
        if object.is_changed() && !expected.contains_key(address) {
            let found = object.action.unwrap_or_default();
            problems.push(failed(
                format!("The plan changes {address} (\"{found}\"), which the expected actions do not list."),
                at,
            ));
        }
    }
}

pub fn object(all: &Objects, check: &ObjectCheck, place: &str, problems: &mut Diagnostics) {
    let address = &check.address;
    let Some(object) = all.objects.get(address) else {
        problems.push(failed(format!("{address} is not in the {place}."), &check.range));
        return;
    };
    if let Some((wanted, at)) = &check.action {
        let found = object.action.unwrap_or_default();
        if !is_action(wanted, found) {
            let detail = format!("The action of {address} is \"{found}\", and \"{wanted}\" is expected.");
            problems.push(failed(detail, at));
        }
    }
    let value = |path: &ValuePath| path.of(&object.values).filter(|value| !value.is_null());
    let shown = |path: &ValuePath| match value(path) {
        _ if covers(&object.sensitive, path) => "a sensitive value".to_owned(),
        _ if covers(&object.unknown, path) => "not known yet".to_owned(),
        Some(value) => value.to_string(),
        None => "null".to_owned(),
    };
    let mut unless = |holds: bool, path: &ValuePath, expected: String, at: &Range| {
        if !holds {
            let detail = format!("{address}: {} is {}, and {expected}.", path.text, shown(path));
            problems.push(failed(detail, at));
        }
    };
    for (path, wanted, at) in &check.values {
        let holds = equal(value(path).unwrap_or(&Json::Null), wanted) && !covers(&object.unknown, path);
        unless(holds, path, format!("{wanted} is expected"), at);
    }
    for (path, pattern, at) in &check.matches {
        let text = value(path).map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        let holds = text.is_some_and(|text| pattern.is_match(&text));
        let expected = format!("a value that matches \"{pattern}\" is expected");
        unless(holds, path, expected, at);
    }
    for (path, at) in &check.set {
        unless(value(path).is_some(), path, "a value is expected".to_owned(), at);
    }
    for (path, at) in &check.null {
        let holds = value(path).is_none() && !covers(&object.unknown, path);
        unless(holds, path, "null is expected".to_owned(), at);
    }
    for (path, at) in &check.unknown {
        let holds = covers(&object.unknown, path);
        unless(holds, path, "an unknown value is expected".to_owned(), at);
    }
    for (path, at) in &check.sensitive {
        let holds = covers(&object.sensitive, path);
        unless(holds, path, "a sensitive value is expected".to_owned(), at);
    }
}

/// Returns true if `marks`, which has `true` in place of each marked part, marks the value at a path, a value that contains it, or a part
/// of it.
fn covers(marks: &Json, path: &ValuePath) -> bool {
    let mut at = marks;
    for key in &path.keys {
        if *at == true {
            return true;
        }
        let one = ValuePath {
            text: String::new(),
            keys: vec![key.clone()],
        };
        match one.of(at) {
            Some(inner) => at = inner,
            None => return false,
        }
    }
    has_true(at)
}

pub(super) fn has_true(marks: &Json) -> bool {
    match marks {
        Json::Bool(mark) => *mark,
        Json::Array(items) => items.iter().any(has_true),
        Json::Object(items) => items.values().any(has_true),
        _ => false,
    }
}

/// Returns true if two documents are equal. Numbers are compared by their values.
fn equal(one: &Json, two: &Json) -> bool {
    match (one, two) {
        (Json::Number(a), Json::Number(b)) => a == b || a.as_f64().is_some_and(|a| Some(a) == b.as_f64()),
        (Json::Array(a), Json::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Json::Object(a), Json::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| equal(a, b)))
        }
        (a, b) => a == b,
    }
}

/// Compares an imported object with the one in the state, except at the paths to ignore.
pub fn imported(
    address: &str,
    imported: &Objects,
    state: &Objects,
    ignored: &[ValuePath],
    at: &Range,
    problems: &mut Diagnostics,
) {
    let Some(object) = imported.objects.get(address) else {
        problems.push(failed(format!("{address} was not imported."), at));
        return;
    };
    let Some(known) = state.objects.get(address) else {
        problems.push(failed(format!("{address} is not in the state."), at));
        return;
    };
    let (mut found, mut wanted) = (object.values.clone(), known.values.clone());
    for path in ignored {
        remove(&mut found, path);
        remove(&mut wanted, path);
    }
    let names = |values: &Json| -> Vec<String> {
        values
            .as_object()
            .into_iter()
            .flatten()
            .map(|(n, _)| n.clone())
            .collect()
    };
    let mut all = names(&found);
    all.extend(names(&wanted));
    all.sort();
    all.dedup();
    for name in all {
        if !equal(&found[&name], &wanted[&name]) {
            let path = ValuePath {
                text: String::new(),
                keys: vec![PathKey::Name(name.clone())],
            };
            let is_secret = covers(&object.sensitive, &path) || covers(&known.sensitive, &path);
            let detail = match is_secret {
                true => {
                    format!("{address}: the imported {name} differs from that in the state; the values are sensitive.")
                }
                false => format!(
                    "{address}: the imported {name} is {}, and that in the state {}.",
                    found[&name], wanted[&name]
                ),
            };
            problems.push(failed(detail, at));
        }
    }
}

fn remove(document: &mut Json, path: &ValuePath) {
    let Some((last, before)) = path.keys.split_last() else {
        return;
    };
    let mut at = document;
    for key in before {
        let inner = match key {
            PathKey::Name(name) => at.get_mut(name),
            PathKey::Index(index) => at.get_mut(*index),
        };
        let Some(inner) = inner else { return };
        at = inner;
    }
    match (last, at) {
        (PathKey::Name(name), Json::Object(items)) => {
            items.remove(name);
        }
        // The element is replaced, not removed, so that the other elements keep their indices.
        (PathKey::Index(index), Json::Array(items)) => {
            if let Some(item) = items.get_mut(*index) {
                *item = Json::Null;
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at() -> Range {
        Range::synthetic("test")
    }

    fn texts(problems: &Diagnostics) -> Vec<&str> {
        problems.iter().map(|problem| &*problem.detail).collect()
    }

    fn plan() -> Objects {
        Objects::of_plan(&json!({"resource_changes": [
            {"address": "zoo_pet.a", "mode": "managed", "change": {
                "actions": ["delete", "create"], "after": {"name": "x"}, "after_unknown": {"id": true}, "after_sensitive": {}
            }},
            {"address": "zoo_pet.b", "mode": "managed", "change": {"actions": ["update"]}},
            {"address": "zoo_pet.c", "mode": "managed", "change": {"actions": ["no-op"]}},
            {"address": "data.zoo_pet.d", "mode": "data", "change": {"actions": ["read"]}},
        ]}))
    }

    #[test]
    fn actions_are_those_of_all_changed_objects() {
        let expected = |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        let mut problems = Diagnostics::new();
        let all = [
            ("zoo_pet.a", "replace"),
            ("zoo_pet.b", "update"),
            ("zoo_pet.c", "no-op"),
        ];
        actions(&plan(), &expected(&all), &at(), &mut problems);
        assert!(problems.is_empty(), "{problems:?}");
        let wrong = [("zoo_pet.a", "create_before_destroy"), ("zoo_pet.z", "create")];
        actions(&plan(), &expected(&wrong), &at(), &mut problems);
        assert_eq!(
            texts(&problems),
            [
                "The action of zoo_pet.a is \"destroy_before_create\", and \"create_before_destroy\" is expected.",
                "zoo_pet.z is not in the plan, and the action \"create\" is expected.",
                "The plan changes zoo_pet.b (\"update\"), which the expected actions do not list.",
            ]
        );
    }

    #[test]
    fn failures_hide_sensitive_values() {
        let state = Objects::of_state(&json!({"values": {"root_module": {"child_modules": [{"resources": [{
            "address": "module.m.zoo_pet.a", "mode": "managed",
            "values": {"size": 5.0, "secret": "hunter2", "tags": {"a": "b"}},
            "sensitive_values": {"secret": true, "tags": {}},
        }]}]}}}));
        let path = |text: &str| ValuePath::parse(text).unwrap();
        let check = ObjectCheck {
            address: "module.m.zoo_pet.a".to_owned(),
            range: at(),
            action: None,
            values: vec![
                (path("size"), json!(5), at()),
                (path("secret"), json!("x"), at()),
                (path("tags.a"), json!("c"), at()),
            ],
            matches: vec![(path("tags.a"), regex::Regex::new("^b$").unwrap(), at())],
            set: vec![(path("nothing"), at())],
            null: vec![(path("size"), at())],
            unknown: Vec::new(),
            sensitive: vec![(path("secret"), at()), (path("size"), at())],
        };
        let mut problems = Diagnostics::new();
        object(&state, &check, "state", &mut problems);
        assert_eq!(
            texts(&problems),
            [
                "module.m.zoo_pet.a: secret is a sensitive value, and \"x\" is expected.",
                "module.m.zoo_pet.a: tags.a is \"b\", and \"c\" is expected.",
                "module.m.zoo_pet.a: nothing is null, and a value is expected.",
                "module.m.zoo_pet.a: size is 5.0, and null is expected.",
                "module.m.zoo_pet.a: size is 5.0, and a sensitive value is expected.",
            ]
        );
    }

    #[test]
    fn unknown_parts_are_found_below_a_path() {
        let path = |text: &str| ValuePath::parse(text).unwrap();
        let marks = json!({"id": true, "rule": [{"port": true}, {}]});
        for (text, expected) in [
            ("id", true),
            ("id.inner", true),
            ("rule", true),
            ("rule[1]", false),
            ("name", false),
        ] {
            assert_eq!(covers(&marks, &path(text)), expected, "{text}");
        }
    }

    #[test]
    fn imports_are_compared_but_for_ignored_paths() {
        let of = |values: Json| {
            Objects::of_state(&json!({"values": {"root_module": {"resources": [
                {"address": "zoo_pet.a", "mode": "managed", "values": values, "sensitive_values": {}}
            ]}}}))
        };
        let state = of(json!({"name": "a", "password": "p", "rule": [{"port": 1, "note": "x"}]}));
        let found = of(json!({"name": "b", "password": null, "rule": [{"port": 1, "note": ""}]}));
        let ignored: Vec<ValuePath> = ["password", "rule[0].note"]
            .iter()
            .filter_map(|text| ValuePath::parse(text))
            .collect();
        let mut problems = Diagnostics::new();
        imported("zoo_pet.a", &found, &state, &ignored, &at(), &mut problems);
        assert_eq!(
            texts(&problems),
            ["zoo_pet.a: the imported name is \"b\", and that in the state \"a\"."]
        );
    }
}
