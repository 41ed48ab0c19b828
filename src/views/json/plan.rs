//! Document of a plan.

use std::collections::BTreeMap;

use addrs::{AbsResourceInstance, ModuleInstance};
use config::Config;
use cty::{Path, Type, Value};
use engine::instance::recorded_version;
use engine::plan::{Action, ImportedBy, OutputChange, Plan, PlanView, Reason, ResourceChange, Unread, UnreadInstance};
use provider::Schemas;
use schema::Schema;
use schema::marking::mark_sensitive;
use serde_json::{Map, Value as Json, json};

use super::actions::invocations;
use super::checks::checks;
use super::configuration::configuration;
use super::state::{ModuleTree, state_document};
use super::values::{known_part, output, path, sensitive_parts, unknown_parts};
use super::{Object, PLAN_FORMAT, instance_key};

/// Returns the document of `show -json PLAN`.
#[must_use]
pub fn document(plan: &Plan, config: &Config, schemas: &Schemas, tool_version: &str) -> Json {
    let view = plan.view();
    // The values that the user has set. Variables that were not set, and ephemeral ones, have the defaults of the configuration.
    let root = &config.root.module.variables;
    let variables: Map<String, Json> = root
        .values()
        .filter_map(|v| Some((v, plan.given_variables.get(&v.name).or(v.default.as_ref())?)))
        .map(|(v, value)| {
            let content = known_part(value);
            (v.name.to_string(), Object::default().with_some("value", content).into())
        })
        .collect();
    // The document shows the check results of the plan instead of those in the prior state.
    let prior_state = state::State {
        check_results: None,
        ..plan.prior_state.clone()
    };
    let prior = state_document(&prior_state, Some(schemas), tool_version);
    let prior = if plan.prior_state.is_empty() { Json::Null } else { prior };
    Object::default()
        .with("format_version", PLAN_FORMAT)
        .with("terraform_version", tool_version)
        .with_content("variables", variables)
        .with("planned_values", planned_values(view, schemas))
        .with_content("resource_drift", drift(view))
        .with_content("resource_changes", resource_changes(view))
        .with_content("output_changes", output_changes(view))
        .with_content("action_invocations", invocations(view))
        .with_content("prior_state", prior)
        .with("configuration", configuration(config, schemas))
        .with_content("relevant_attributes", relevant_attributes(view))
        .with_some("unread", plan.unread.as_ref().map(unread))
        .with_content("checks", checks(&plan.checks))
        .with_content("timestamp", plan.timestamp.clone())
        .with("applyable", plan.is_applyable())
        .with("complete", !plan.is_partial() && !plan.errored)
        .with("errored", plan.errored)
        .into()
}

/// Returns the changes of the outputs, by name.
pub(super) fn output_changes(plan: PlanView<'_>) -> Map<String, Json> {
    let outputs = plan.outputs.iter();
    outputs
        .map(|(name, change)| (name.to_string(), output_change(change)))
        .collect()
}

/// Returns the attributes whose drift may have led to planned changes.
pub(super) fn relevant_attributes(plan: PlanView<'_>) -> Vec<Json> {
    let attributes = plan.relevant_attributes.iter();
    attributes
        .map(|(address, at)| json!({"resource": address.to_string(), "attribute": path(at)}))
        .collect()
}

/// Returns the objects and data sources that were not read.
fn unread(unread: &Unread) -> Json {
    let instance = |one: &UnreadInstance| {
        Object::default()
            .with("address", one.address.to_string())
            .with_some("last_read", one.last_read.as_deref())
    };
    let instances: Vec<Json> = unread.instances.iter().map(instance).map(Json::from).collect();
    unread_counts(unread).with("instances", instances).into()
}

/// Returns the numbers of the objects and data sources that were read, and of those that were not.
pub(crate) fn unread_counts(unread: &Unread) -> Object {
    Object::default()
        .with("refresh", unread.option.as_str())
        .with("read", unread.read)
        .with("not_read", unread.instances.len())
}

pub(super) fn resource_changes(plan: PlanView<'_>) -> Vec<Json> {
    changes(plan.changes, Some(plan))
}

/// Returns the drift: changes that refresh has found.
pub(super) fn drift(plan: PlanView<'_>) -> Vec<Json> {
    changes(plan.drift, None)
}

fn changes(changes: &[ResourceChange], of: Option<PlanView<'_>>) -> Vec<Json> {
    let mut sorted: Vec<&ResourceChange> = changes.iter().collect();
    sorted.sort_by(|a, b| (&a.address, &a.deposed).cmp(&(&b.address, &b.deposed)));
    sorted
        .into_iter()
        .map(|c| {
            let mut document = change(c);
            let generated = of.and_then(|plan| plan.generated_config.get(&c.address));
            if let (Some(text), Some(details)) = (generated, document["change"].as_object_mut()) {
                // Terraform writes the identities last, so they are moved behind the new key.
                let identities = ["before_identity", "after_identity"].map(|key| (key, details.shift_remove(key)));
                details.insert("generated_config".into(), text.as_str().into());
                for (key, identity) in identities {
                    details.extend(identity.map(|identity| (key.to_owned(), identity)));
                }
            }
            document
        })
        .collect()
}

/// Returns the document of one change.
#[must_use]
pub fn change(change: &ResourceChange) -> Json {
    let module = &change.address.module;
    let resource = &change.address.resource.resource;
    let (after, after_unknown) = if change.after.is_wholly_known() {
        (known_part(&change.after), Json::Object(Map::new()))
    } else {
        (known_part(&change.after), unknown_parts(&change.after))
    };
    let importing = change.importing.as_ref().map(|target| match target {
        ImportedBy::Id(id) => json!({"id": &**id}),
        ImportedBy::Identity(identity) => json!({"identity": known_part(identity)}),
        // The ID may be a secret, so the object shows only that there is an import.
        ImportedBy::Sensitive => json!({}),
    });
    let (before_identity, after_identity) = match &change.identity {
        Some(identity) => (identity.before.as_ref(), identity.after.as_ref()),
        None => (None, None),
    };
    let details = Object::default()
        .with("actions", actions(change.action))
        .with("before", known_part(&change.before).unwrap_or(Json::Null))
        .with_some("after", after)
        .with("after_unknown", after_unknown)
        .with("before_sensitive", sensitive_parts(&change.before))
        .with("after_sensitive", sensitive_parts(&change.after))
        .with_content(
            "replace_paths",
            change.replace_paths.iter().map(path).collect::<Vec<_>>(),
        )
        .with_some("importing", importing)
        .with_some("before_identity", before_identity.and_then(known_part))
        .with_some("after_identity", after_identity.and_then(known_part));
    Object::default()
        .with("address", change.address.to_string())
        .with_some(
            "previous_address",
            change.previous_address.as_ref().map(AbsResourceInstance::to_string),
        )
        .with_content("module_address", module.to_string())
        .with("mode", resource.mode.as_str())
        .with("type", &*resource.ty)
        .with("name", &*resource.name)
        .with_some("index", instance_key(&change.address.resource.key))
        .with("provider_name", change.provider.provider.to_string())
        .with_some("deposed", change.deposed.as_deref())
        .with("change", details)
        .with_some("action_reason", change.reason.as_json())
        .into()
}

/// Returns an action in the words of documents: one word, or two for a replacement.
#[must_use]
pub fn actions(action: Action) -> Json {
    action.steps().iter().map(|step| step.word()).collect()
}

fn output_change(change: &OutputChange) -> Json {
    let (after, unknown) = if change.after.is_wholly_known() {
        (known_part(&change.after), Json::Bool(false))
    } else if change.after.is_known() {
        (known_part(&change.after), unknown_parts(&change.after))
    } else {
        (None, Json::Bool(true))
    };
    Object::default()
        .with("actions", actions(change.action))
        .with("before", known_part(&change.before).unwrap_or(Json::Null))
        .with_some("after", after)
        .with("after_unknown", unknown)
        .with("before_sensitive", change.sensitive)
        .with("after_sensitive", change.sensitive)
        .into()
}

/// Returns a planned output. An output that is null and stays so has no type, since no state stores it.
fn planned_output(change: &OutputChange) -> Json {
    if change.action == Action::NoOp && change.after.is_null() {
        return output(&Value::null(Type::Dynamic), change.sensitive, false);
    }
    output(&change.after, change.sensitive, false)
}

fn planned_values(plan: PlanView<'_>, schemas: &Schemas) -> Json {
    let outputs: Map<String, Json> = plan
        .outputs
        .iter()
        .filter(|(_, change)| change.action != Action::Delete)
        .map(|(name, change)| (name.to_string(), planned_output(change)))
        .collect();
    let mut modules: BTreeMap<ModuleInstance, Vec<Json>> = BTreeMap::new();
    let staying = plan
        .changes
        .iter()
        .filter(|c| c.deposed.is_none() && !matches!(c.action, Action::Delete | Action::Forget));
    for change in staying {
        let resource = &change.address.resource.resource;
        let schema = schemas.resource(&change.provider.provider, resource.mode, &resource.ty);
        let identity = change.planned_identity();
        let planned = Object::default()
            .with("address", change.address.to_string())
            .with("mode", resource.mode.as_str())
            .with("type", &*resource.ty)
            .with("name", &*resource.name)
            .with_some("index", instance_key(&change.address.resource.key))
            .with("provider_name", change.provider.provider.to_string())
            .with(
                "schema_version",
                schema.map_or(0, |s| recorded_version(resource.mode, s)),
            )
            // If no part is known, `values` is left out.
            .with_content("values", known_part(&change.after).unwrap_or(Json::Null))
            .with("sensitive_values", sensitive_parts(&sensitive_after(change, schema)))
            .with_some(
                "identity_schema_version",
                identity.and(schema).and_then(|s| Some(s.identity.as_ref()?.version)),
            )
            .with_some("identity", identity.and_then(known_part));
        modules
            .entry(change.address.module.clone())
            .or_default()
            .push(planned.into());
    }
    Object::default()
        .with_content("outputs", outputs)
        .with("root_module", ModuleTree(modules).document(&ModuleInstance::root()))
        .into()
}

/// Returns a planned object with the marks for its document. If only the schema makes an attribute sensitive, Terraform marks it in a
/// replacement only if its value is known.
fn sensitive_after(change: &ResourceChange, schema: Option<&Schema>) -> Value {
    let replaced = change.action.is_replace() && change.reason != Reason::ReplaceBecauseTainted;
    let Some(schema) = schema.filter(|_| replaced) else {
        return change.after.clone();
    };
    let (plain, _) = change.after.clone().unmark_deep();
    let of_schema = mark_sensitive(&schema.block, plain.clone()).paths_with_marks();
    let empty = |path: &Path| path.get(&plain).is_none_or(|v| v.is_null() || !v.is_known());
    let marks: Vec<_> = change
        .after
        .paths_with_marks()
        .into_iter()
        .filter(|(path, _)| !(empty(path) && of_schema.iter().any(|(p, _)| p == path)))
        .collect();
    plain.mark_paths(&marks)
}
