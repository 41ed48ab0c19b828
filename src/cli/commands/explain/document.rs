//! Document of `explain -json`, and the description of changes for both forms.

use engine::plan::{Reason, ResourceChange};
use serde_json::{Value as Json, json};
use syntax::Range;
use views::json::Object as Document;
use views::json::plan;

use super::origins::{Origin, Source};
use super::{Explanation, Neighbour, Object};

/// Placeholder for a value that must not be shown.
const SENSITIVE: &str = "(sensitive value)";
/// Placeholder for a value that only apply will know.
const UNKNOWN: &str = "(known after apply)";

/// Value of one argument before and after a change.
pub(super) struct Changed {
    pub name: String,
    /// JSON, or a note in parentheses.
    pub before: String,
    /// JSON, or a note in parentheses.
    pub after: String,
    /// True if the change requires replacement.
    pub replaces: bool,
}

/// Returns true if any part is marked. `parts` has the form of `before_sensitive` or `after_unknown` in the JSON plan: `true` in place of
/// each marked part.
fn has_part(parts: &Json) -> bool {
    match parts {
        Json::Bool(yes) => *yes,
        Json::Array(items) => items.iter().any(has_part),
        Json::Object(items) => items.values().any(has_part),
        _ => false,
    }
}

/// Sensitive strings in an object. Providers copy arguments into other attributes, which the state does not mark as sensitive.
#[derive(Default)]
pub(super) struct Secrets(Vec<String>);

/// Length below which a string is too common to identify a secret.
const SHORTEST_SECRET: usize = 4;

impl Secrets {
    /// Collects the sensitive strings of a value. `sensitive` has `true` in place of each sensitive part.
    pub(super) fn add(&mut self, value: &Json, sensitive: &Json) {
        match (value, sensitive) {
            (Json::String(text), Json::Bool(true)) if text.len() >= SHORTEST_SECRET => self.0.push(text.clone()),
            (Json::Array(items), Json::Bool(true)) => items.iter().for_each(|item| self.add(item, sensitive)),
            (Json::Object(items), Json::Bool(true)) => items.values().for_each(|item| self.add(item, sensitive)),
            (Json::Array(items), Json::Array(parts)) => {
                items.iter().zip(parts).for_each(|(item, part)| self.add(item, part));
            }
            (Json::Object(items), Json::Object(parts)) => {
                let known = parts.iter().filter_map(|(name, part)| Some((items.get(name)?, part)));
                known.for_each(|(item, part)| self.add(item, part));
            }
            _ => {}
        }
    }

    /// Returns true if a value contains one of the strings.
    pub(super) fn are_in(&self, value: &Json) -> bool {
        match value {
            Json::String(text) => self.0.iter().any(|secret| text.contains(secret.as_str())),
            Json::Array(items) => items.iter().any(|item| self.are_in(item)),
            Json::Object(items) => items.values().any(|item| self.are_in(item)),
            _ => false,
        }
    }
}

/// Returns a value as compact JSON, or the placeholder if it is sensitive.
pub(super) fn shown(value: &Json, sensitive: &Json) -> String {
    match has_part(sensitive) {
        true => SENSITIVE.to_owned(),
        false => cty::json::to_text(value, None),
    }
}

/// Returns the arguments whose values the plan changes.
pub(super) fn changed(change: &ResourceChange) -> Vec<Changed> {
    let document = plan::change(change);
    let details = &document["change"];
    let replacing = |name: &str| {
        let paths = details["replace_paths"].as_array().into_iter().flatten();
        paths.into_iter().any(|path| path[0] == *name)
    };
    // If the whole object is sensitive, `before_sensitive` is just `true` and lists no parts.
    let whole = [details["before_sensitive"] == true, details["after_sensitive"] == true];
    let mut secrets = Secrets::default();
    secrets.add(&details["before"], &details["before_sensitive"]);
    secrets.add(&details["after"], &details["after_sensitive"]);
    let of = |side: &str| details[side].as_object().into_iter().flat_map(serde_json::Map::keys);
    let mut names: Vec<&String> = of("before").chain(of("after")).chain(of("after_unknown")).collect();
    names.sort_unstable();
    names.dedup();
    let mut out = Vec::new();
    for name in names {
        let secret = |side: &str, whole: bool, value: &Json| match whole || secrets.are_in(value) {
            true => Json::Bool(true),
            false => details[side][name].clone(),
        };
        let unknown = has_part(&details["after_unknown"][name]);
        let (before, after) = (&details["before"][name], &details["after"][name]);
        let replaces = replacing(name);
        if before == after && !unknown && !replaces {
            continue;
        }
        let after = match unknown {
            true => UNKNOWN.to_owned(),
            false => shown(after, &secret("after_sensitive", whole[1], after)),
        };
        out.push(Changed {
            name: name.clone(),
            before: shown(before, &secret("before_sensitive", whole[0], before)),
            after,
            replaces,
        });
    }
    out
}

/// Returns a sentence that explains a reason for an action, if it has one.
pub(super) fn why(reason: Reason) -> Option<&'static str> {
    Some(match reason {
        Reason::None => return None,
        Reason::ReplaceBecauseCannotUpdate => "The provider cannot make such a change in place.",
        Reason::ReplaceBecauseTainted => {
            "The object is tainted: its creation failed halfway, a provisioner failed, or \"taint\" was run."
        }
        Reason::ReplaceByRequest => "The option -replace names it.",
        Reason::ReplaceByTriggers => "Something that replace_triggered_by names will change.",
        Reason::DeleteBecauseNoResourceConfig => "The configuration has no block for it any more.",
        Reason::DeleteBecauseWrongRepetition => "The kind of its key does not go with count or for_each of the block.",
        Reason::DeleteBecauseCountIndex => "Its number is beyond what count is now.",
        Reason::DeleteBecauseEachKey => "Its key is not in for_each any more.",
        Reason::DeleteBecauseEnabledFalse => "Its block has enabled = false now.",
        Reason::DeleteBecauseNoModule => "The configuration does not have its module instance any more.",
        Reason::DeleteBecauseNoMoveTarget => "It was moved to an address that the configuration does not have.",
        Reason::ForgetBecauseState => {
            "Its block had destroy = false when it was last applied, which the state records."
        }
        Reason::ReadBecauseConfigUnknown => "Some of its arguments are known only during apply.",
        Reason::ReadBecauseDependencyPending => "Something that it depends on will change first.",
        Reason::ReadBecauseCheckNested => "It belongs to a check, which is made at the end of each run.",
    })
}

/// Returns the document of an explanation.
pub(super) fn render(explanation: &Explanation) -> Json {
    let (values, sensitive) = explanation.values.clone().unwrap_or_default();
    let values: Vec<Json> = explanation
        .origins
        .iter()
        .map(|found| origin(found, values.get(&found.name), &sensitive[&found.name]))
        .collect();
    let triggers: Vec<Json> = explanation
        .triggers
        .iter()
        .map(|(text, range)| json!({ "expression": text, "range": place(range) }))
        .collect();
    let uses: Vec<Json> = explanation
        .uses
        .iter()
        .map(|(by, range)| json!({ "by": by, "range": place(range) }))
        .collect();
    Document::default()
        .with("format_version", "1.0")
        .with("address", explanation.address.clone())
        .with("provider_name", explanation.provider.clone())
        .with_some("declared", explanation.declared.as_ref().map(place))
        .with("instances", explanation.objects.iter().map(object).collect::<Vec<_>>())
        .with("values", values)
        .with_content("replace_triggered_by", triggers)
        .with("depends_on", neighbours(&explanation.depends_on))
        .with("needed_by", neighbours(&explanation.needed_by))
        .with("referred_to", uses)
        .into()
}

fn neighbours(all: &[Neighbour]) -> Json {
    let one = |other: &Neighbour| json!({ "address": other.address, "direct": other.direct });
    all.iter().map(one).collect()
}

/// Returns a source range in the form of diagnostics, without columns.
fn place(range: &Range) -> Json {
    json!({ "filename": &*range.file, "line": range.start.line })
}

fn origin(found: &Origin, value: Option<&Json>, sensitive: &Json) -> Json {
    let secret = has_part(sensitive);
    Document::default()
        .with("name", found.name.clone())
        .with(
            "origin",
            if found.place.is_some() {
                "configuration"
            } else {
                "provider"
            },
        )
        .with_some("range", found.place.as_ref().map(place))
        .with_some("expression", found.text.clone())
        .with_some("value", value.filter(|_| !secret).cloned())
        .with_content("sensitive", secret)
        .with_content("from", found.sources.iter().map(source).collect::<Vec<_>>())
        .into()
}

fn source(found: &Source) -> Json {
    Document::default()
        .with("reference", found.reference.clone())
        .with("about", found.about.clone())
        .with_some("range", found.place.as_ref().map(place))
        .with_content("from", found.sources.iter().map(source).collect::<Vec<_>>())
        .into()
}

fn object(object: &Object) -> Json {
    let change = object.change.as_ref().map(|change| {
        let changed: Vec<Json> = changed(change)
            .into_iter()
            .map(
                |c| json!({ "name": c.name, "before": c.before, "after": c.after, "requires_replacement": c.replaces }),
            )
            .collect();
        Json::from(
            Document::default()
                .with("actions", plan::actions(change.action))
                .with_some("action_reason", change.reason.as_json())
                .with("changed", changed),
        )
    });
    Document::default()
        .with("address", object.address.clone())
        .with("in_state", object.in_state)
        .with_content("tainted", object.tainted)
        .with_content("deposed_keys", object.deposed.clone())
        .with_some("change", change)
        .into()
}
