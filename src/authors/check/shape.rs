//! Rules of schemas: the rules of the core, which refuses a schema that breaks them, and advice.

use std::collections::BTreeSet;
use std::sync::Arc;

use provider::{FunctionSchema, ProviderSchema, SchemaMap};
use schema::{AttributeSchema, AttributeType, BlockSchema, NestedBlock, Nesting, Schema};

use super::{Outcome, Report, listed};

const GROUP: &str = "schema";

/// Arguments of the language itself, by kind of block. A schema must not have attributes with these names.
const RESERVED: &[(&str, &[&str])] = &[
    ("provider", &["alias", "version"]),
    (
        "resource",
        &[
            "connection",
            "count",
            "depends_on",
            "for_each",
            "lifecycle",
            "provider",
            "provisioner",
        ],
    ),
    (
        "data source",
        &["count", "depends_on", "for_each", "lifecycle", "provider"],
    ),
    (
        "ephemeral resource",
        &["count", "depends_on", "for_each", "lifecycle", "provider"],
    ),
];

/// Findings about one kind of schemas.
#[derive(Default)]
struct Found {
    broken: Vec<String>,
    undescribed: Vec<String>,
}

/// Place of a block: the kind of its schema, the path to it, and the reserved names that its attributes must not have.
#[derive(Clone)]
struct Place<'a> {
    kind: &'static str,
    path: String,
    names: &'a [&'a str],
}

pub fn check(provider: &str, schema: &ProviderSchema, report: &mut Report) {
    let mut found = Found::default();
    top(&mut found, "provider", provider, &schema.provider);
    conclude(report, "provider", 1, found);
    kind(report, provider, "resource", &schema.resources);
    kind(report, provider, "data source", &schema.data_sources);
    kind(report, provider, "ephemeral resource", &schema.ephemeral);
    kind(report, provider, "action", &schema.actions);
    let mut found = Found::default();
    for (name, list) in schema.lists.iter() {
        type_name(&mut found, provider, name);
        top(&mut found, "list resource", name, &list.config);
        if schema
            .resources
            .get(name)
            .is_none_or(|resource| resource.identity.is_none())
        {
            found.broken.push(format!(
                "{name} is listed, but there is no resource of that name with an identity"
            ));
        }
    }
    conclude(report, "list resource", schema.lists.len(), found);
    let mut found = Found::default();
    for (name, one) in schema.functions.iter() {
        function(&mut found, name, one);
    }
    conclude(report, "function", schema.functions.len(), found);
}

fn kind(report: &mut Report, provider: &str, kind: &'static str, all: &SchemaMap<Schema>) {
    let mut found = Found::default();
    for (name, schema) in all.iter() {
        type_name(&mut found, provider, name);
        top(&mut found, kind, name, schema);
    }
    conclude(report, kind, all.len(), found);
}

fn conclude(report: &mut Report, kind: &str, number: usize, found: Found) {
    if number == 0 {
        return;
    }
    let subject = match kind {
        "provider" => "configuration of the provider".to_owned(),
        kind => format!("{kind}s ({number})"),
    };
    match found.broken.is_empty() {
        true => report.add(GROUP, format!("rules: {subject}"), Outcome::Passed, ""),
        false => report.add(
            GROUP,
            format!("rules: {subject}"),
            Outcome::Failed,
            format!("{}.", listed(&found.broken)),
        ),
    }
    match found.undescribed.len() {
        0 => report.add(GROUP, format!("descriptions: {subject}"), Outcome::Passed, ""),
        number => report.add(
            GROUP,
            format!("descriptions: {subject}"),
            Outcome::Warning,
            format!("{number} without a description: {}.", listed(&found.undescribed)),
        ),
    }
}

fn type_name(found: &mut Found, provider: &str, name: &str) {
    let is_own = name == provider || name.strip_prefix(provider).is_some_and(|rest| rest.starts_with('_'));
    if !is_own {
        found.broken.push(format!(
            "{name} does not begin with {provider}_, by which a configuration finds the provider"
        ));
    }
    if !is_name(name) {
        found.broken.push(format!("{name} is no valid name"));
    }
}

fn top(found: &mut Found, kind: &'static str, name: &str, schema: &Schema) {
    let names = RESERVED
        .iter()
        .find(|(of, _)| *of == kind)
        .map_or(&[][..], |(_, names)| names);
    let place = Place {
        kind,
        path: name.to_owned(),
        names,
    };
    if schema.block.description.text.trim().is_empty() && kind != "provider" {
        found.undescribed.push(name.to_owned());
    }
    block(found, &place, &schema.block);
    let Some(identity) = &schema.identity else { return };
    if identity.attributes.is_empty() {
        found.broken.push(format!("the identity of {name} has no attributes"));
    }
    for (attribute, schema) in &identity.attributes {
        if schema.required_for_import == schema.optional_for_import {
            found.broken.push(format!(
                "attribute {attribute} of the identity of {name} must be either required or optional for an import"
            ));
        }
    }
}

/// Returns true for names that a configuration can have as an argument.
fn is_name(name: &str) -> bool {
    let is_first = |c: char| c.is_ascii_lowercase() || c == '_';
    name.starts_with(is_first) && name.chars().all(|c| is_first(c) || c.is_ascii_digit())
}

fn block(found: &mut Found, place: &Place<'_>, schema: &BlockSchema) {
    attributes(found, place, schema.attributes.iter());
    for (name, nested) in &schema.blocks {
        let path = format!("{}.{name}", place.path);
        if !is_name(name) {
            found.broken.push(format!("{path} is no valid name"));
        }
        if schema.attributes.contains_key(name) {
            found.broken.push(format!("{path} is both an attribute and a block"));
        }
        if place.names.contains(&&**name) {
            found.broken.push(format!("{path} has a meaning in the language"));
        }
        nested_block(found, place, path, nested);
    }
}

fn nested_block(found: &mut Found, place: &Place<'_>, path: String, nested: &NestedBlock) {
    let (least, most) = (nested.min_items, nested.max_items);
    if most > 0 && least > most {
        found
            .broken
            .push(format!("{path} needs at least {least} blocks and allows {most}"));
    }
    if nested.nesting.is_single() && (least > 1 || most > 1) {
        found
            .broken
            .push(format!("{path} is one block, but has a limit of {}", least.max(most)));
    }
    if nested.nesting == Nesting::Set {
        let ty = nested.block.implied_type();
        if ty.has_dynamic() {
            found.broken.push(format!(
                "{path} is a set with values of any type, whose elements cannot be compared"
            ));
        }
        if nested.block.contains_write_only() {
            found
                .broken
                .push(format!("{path} is a set with a write-only attribute"));
        }
    }
    let below = Place {
        kind: place.kind,
        path,
        names: &[],
    };
    block(found, &below, &nested.block);
}

fn attributes<'a>(
    found: &mut Found,
    place: &Place<'_>,
    all: impl Iterator<Item = (&'a Arc<str>, &'a AttributeSchema)>,
) {
    for (name, schema) in all {
        let path = format!("{}.{name}", place.path);
        let mut broken = |reason: &str| found.broken.push(format!("{path} {reason}"));
        if !is_name(name) {
            broken("is no valid name");
        }
        if place.names.contains(&&**name) {
            broken("has a meaning in the language");
        }
        match (schema.required, schema.optional, schema.computed) {
            (false, false, false) => broken("is neither required nor optional nor computed"),
            (true, true, _) => broken("is both required and optional"),
            (true, _, true) => broken("is both required and computed"),
            _ => {}
        }
        if place.kind == "provider" && schema.computed {
            broken("is computed, but a provider has no results");
        }
        if schema.write_only && schema.computed {
            broken("is both write-only and computed");
        }
        if schema.write_only && place.kind != "resource" && place.kind != "action" {
            broken("is write-only, which only resources and actions can have");
        }
        if schema.description.text.trim().is_empty() && &**name != "id" {
            found.undescribed.push(path.clone());
        }
        if let AttributeType::Nested(nested) = &schema.ty {
            if nested.nesting == Nesting::Set && nested.object_type().has_dynamic() {
                found.broken.push(format!(
                    "{path} is a set with values of any type, whose elements cannot be compared"
                ));
            }
            let below = Place {
                kind: place.kind,
                path,
                names: &[],
            };
            attributes(found, &below, nested.attributes.iter());
        }
    }
}

fn function(found: &mut Found, name: &str, function: &FunctionSchema) {
    if !is_name(name) {
        found.broken.push(format!("{name} is no valid name"));
    }
    if function.result.is_none() {
        found.broken.push(format!("{name} has no result"));
    }
    if function.summary.trim().is_empty() && function.description.text.trim().is_empty() {
        found.undescribed.push(name.to_owned());
    }
    let mut names = BTreeSet::new();
    for parameter in function.parameters.iter().chain(&function.variadic) {
        if !is_name(&parameter.name) {
            let text = format!("the parameter {:?} of {name} has no valid name", parameter.name);
            found.broken.push(text);
        }
        if !names.insert(&parameter.name) {
            found
                .broken
                .push(format!("{name} has two parameters of the name {}", parameter.name));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use cty::Type;

    use super::*;

    fn broken(
        change: impl FnOnce(&mut BTreeMap<Arc<str>, AttributeSchema>, &mut BTreeMap<Arc<str>, NestedBlock>),
    ) -> String {
        let mut block = BlockSchema::default();
        let sound = AttributeSchema {
            optional: true,
            ..AttributeSchema::default()
        };
        block.attributes.insert("name".into(), sound);
        change(&mut block.attributes, &mut block.blocks);
        let schemas = BTreeMap::from([(Arc::from("zoo_pet"), Schema::new(0, block))]);
        let schema = ProviderSchema {
            resources: schemas.into(),
            ..ProviderSchema::default()
        };
        let mut report = Report::default();
        check("zoo", &schema, &mut report);
        let row = report.rows.iter().find(|row| row.name == "rules: resources (1)");
        row.unwrap().detail.clone()
    }

    #[test]
    fn broken_rules_are_named_with_their_place() {
        assert_eq!(broken(|_, _| {}), "");
        let nested = |nesting, min_items, max_items, ty| {
            let mut block = BlockSchema::default();
            let attribute = AttributeSchema {
                ty: AttributeType::Plain(ty),
                optional: true,
                ..AttributeSchema::default()
            };
            block.attributes.insert("a".into(), attribute);
            NestedBlock {
                block,
                nesting,
                min_items,
                max_items,
            }
        };
        let set = |required, optional, computed| AttributeSchema {
            required,
            optional,
            computed,
            ..AttributeSchema::default()
        };
        for (found, expected) in [
            (
                broken(|attributes, _| drop(attributes.insert("Name".into(), set(true, false, false)))),
                "zoo_pet.Name is no valid name.",
            ),
            (
                broken(|attributes, _| drop(attributes.insert("count".into(), set(true, false, false)))),
                "zoo_pet.count has a meaning in the language.",
            ),
            (
                broken(|attributes, _| drop(attributes.insert("a".into(), set(false, false, false)))),
                "zoo_pet.a is neither required nor optional nor computed.",
            ),
            (
                broken(|attributes, _| drop(attributes.insert("a".into(), set(true, false, true)))),
                "zoo_pet.a is both required and computed.",
            ),
            (
                broken(|_, blocks| drop(blocks.insert("name".into(), nested(Nesting::List, 0, 0, Type::Bool)))),
                "zoo_pet.name is both an attribute and a block.",
            ),
            (
                broken(|_, blocks| drop(blocks.insert("b".into(), nested(Nesting::List, 3, 2, Type::Bool)))),
                "zoo_pet.b needs at least 3 blocks and allows 2.",
            ),
            (
                broken(|_, blocks| drop(blocks.insert("b".into(), nested(Nesting::Set, 0, 0, Type::Dynamic)))),
                "zoo_pet.b is a set with values of any type, whose elements cannot be compared.",
            ),
        ] {
            assert_eq!(found, expected);
        }
    }
}
