//! Schema sections: arguments by groups, and below them a section for each nested schema.

use std::fmt::Write as _;
use std::sync::Arc;

use cty::types::ObjectType;
use schema::{AttributeSchema, AttributeType, BlockSchema, IdentitySchema, NestedBlock, Nesting};

use super::types;

/// Group of arguments in a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Group {
    Required,
    Optional,
    ReadOnly,
}

impl Group {
    const ALL: [Group; 3] = [Group::Required, Group::Optional, Group::ReadOnly];

    fn title(self) -> &'static str {
        match self {
            Group::Required => "Required",
            Group::Optional => "Optional",
            Group::ReadOnly => "Read-Only",
        }
    }
}

/// Nested schema, which is described in a section of its own.
enum Nested<'s> {
    Block(&'s BlockSchema),
    Attributes(Vec<(&'s Arc<str>, &'s AttributeSchema)>),
    /// An object type, whose attributes are all in the group of its own attribute.
    Object(&'s ObjectType, Group),
}

/// A row of a group, with the section that it refers to.
struct Row<'s> {
    group: Group,
    text: String,
    write_only: bool,
    nested: Option<(String, String, Nested<'s>)>,
}

/// Returns the section about a block: its arguments, then nested schemas.
pub fn block(schema: &BlockSchema) -> String {
    let mut out = format!("{}\n## Schema\n", super::MARKER);
    section(&mut out, &Nested::Block(schema), &[]);
    out
}

/// Returns the section "Identity Schema": the attributes that an import by identity sets.
pub fn identity(schema: &IdentitySchema) -> String {
    let mut out = String::from("### Identity Schema\n");
    for (title, optional) in [("Required", false), ("Optional", true)] {
        let of_group = |optional: bool| {
            schema
                .attributes
                .iter()
                .filter(move |(_, attribute)| attribute.optional_for_import == optional)
        };
        if of_group(optional).next().is_none() {
            continue;
        }
        let _ = write!(out, "\n#### {title}\n\n");
        for (name, attribute) in of_group(optional) {
            let row = format!("- `{name}` ({})", types::name(&attribute.ty));
            out.push_str(&described(row, &attribute.description));
        }
    }
    out
}

/// Writes the groups of one level, and then the nested schemas in the order of their rows.
fn section(out: &mut String, schema: &Nested<'_>, path: &[&str]) {
    let rows = rows(schema, path);
    for group in Group::ALL {
        let mut of_group = rows.iter().filter(|row| row.group == group).peekable();
        if of_group.peek().is_none() {
            continue;
        }
        match path {
            [] => drop(write!(out, "\n### {}\n\n", group.title())),
            _ => drop(write!(out, "\n{}:\n\n", group.title())),
        }
        let of_group: Vec<&Row<'_>> = of_group.collect();
        if of_group.iter().any(|row| row.write_only) {
            out.push_str("> **NOTE**: Write-only arguments need Terraform 1.11 or a later release.\n\n");
        }
        for row in of_group {
            out.push_str(&row.text);
        }
    }
    let mut gap = "\n";
    for group in Group::ALL {
        for row in rows.iter().filter(|row| row.group == group) {
            let Some((name, anchor, nested)) = &row.nested else {
                continue;
            };
            let below: Vec<&str> = path.iter().copied().chain([name.as_str()]).collect();
            let _ = write!(
                out,
                "{gap}<a id=\"{anchor}\"></a>\n### Nested Schema for `{}`\n",
                below.join(".")
            );
            gap = "\n\n";
            section(out, nested, &below);
        }
    }
}

fn rows<'s>(schema: &Nested<'s>, path: &[&str]) -> Vec<Row<'s>> {
    match schema {
        Nested::Block(block) => {
            let attributes = block
                .attributes
                .iter()
                .map(|(name, a)| (name, attribute(name, a, path)));
            let blocks = block.blocks.iter().map(|(name, b)| (name, nested_block(name, b, path)));
            let mut rows: Vec<_> = attributes.chain(blocks).collect();
            rows.sort_by_key(|(name, _)| *name);
            rows.into_iter().map(|(_, row)| row).collect()
        }
        Nested::Attributes(all) => all.iter().map(|(name, a)| attribute(name, a, path)).collect(),
        Nested::Object(object, group) => object
            .attributes()
            .iter()
            .map(|part| {
                let nested = types::object(&part.ty);
                let anchor = anchor("nestedobjatt", path, &part.name);
                let text = format!("- `{}` ({})", part.name, types::name(&part.ty));
                Row {
                    group: *group,
                    text: described(text + &reference(nested.is_some(), &anchor), ""),
                    write_only: false,
                    nested: nested.map(|nested| (part.name.to_string(), anchor, Nested::Object(nested, *group))),
                }
            })
            .collect(),
    }
}

fn anchor(kind: &str, path: &[&str], name: &str) -> String {
    let steps: Vec<&str> = path.iter().copied().chain([name]).collect();
    format!("{kind}--{}", steps.join("--"))
}

fn reference(exists: bool, anchor: &str) -> String {
    match exists {
        true => format!(" (see [below for nested schema](#{anchor}))"),
        false => String::new(),
    }
}

fn attribute<'s>(name: &str, schema: &'s AttributeSchema, path: &[&str]) -> Row<'s> {
    // The attribute that older SDKs add to every resource: it has no description, and users cannot set it.
    let is_implicit_id = path.is_empty() && name == "id" && schema.description.text.is_empty();
    let group = match schema {
        _ if is_implicit_id && schema.computed => Group::ReadOnly,
        AttributeSchema { required: true, .. } => Group::Required,
        AttributeSchema { optional: true, .. } => Group::Optional,
        _ => Group::ReadOnly,
    };
    let (ty, nested) = match &schema.ty {
        AttributeType::Plain(ty) => {
            let nested = types::object(ty).map(|object| ("nestedatt", Nested::Object(object, group)));
            (types::name(ty), nested)
        }
        AttributeType::Nested(object) => {
            let ty = match object.nesting {
                Nesting::Single | Nesting::Group => "Attributes",
                Nesting::List => "Attributes List",
                Nesting::Set => "Attributes Set",
                Nesting::Map => "Attributes Map",
            };
            let attributes = object.attributes.iter().collect();
            (ty.to_owned(), Some(("nestedatt", Nested::Attributes(attributes))))
        }
    };
    let mut text = format!("- `{name}` ({ty}");
    for (is_set, flag) in [
        (schema.sensitive, "Sensitive"),
        (schema.deprecated, "Deprecated"),
        (
            schema.write_only,
            "[Write-only](https://developer.hashicorp.com/terraform/language/resources/ephemeral#write-only-arguments)",
        ),
    ] {
        if is_set {
            let _ = write!(text, ", {flag}");
        }
    }
    text.push(')');
    let nested = nested.map(|(kind, nested)| (name.to_owned(), anchor(kind, path, name), nested));
    let mut description = match is_implicit_id {
        true => "The ID of this resource.".to_owned(),
        false => schema.description.text.trim().to_owned(),
    };
    if !schema.deprecation_message.is_empty() {
        let gap = if description.is_empty() { "" } else { " " };
        let _ = write!(
            description,
            "{gap}**Deprecated:** {}",
            schema.deprecation_message.trim()
        );
    }
    if let Some((_, anchor, _)) = &nested {
        description = (description + &reference(true, anchor)).trim().to_owned();
    }
    Row {
        group,
        text: described(text, &description),
        write_only: schema.write_only,
        nested,
    }
}

fn nested_block<'s>(name: &str, schema: &'s NestedBlock, path: &[&str]) -> Row<'s> {
    let group = match schema {
        NestedBlock { min_items, .. } if *min_items > 0 => Group::Required,
        _ if is_read_only(&schema.block) => Group::ReadOnly,
        _ => Group::Optional,
    };
    let mut text = format!(
        "- `{name}` ({}",
        match schema.nesting {
            Nesting::Single | Nesting::Group if group == Group::Optional => "Block, Optional",
            Nesting::Single | Nesting::Group => "Block",
            Nesting::List => "Block List",
            Nesting::Set => "Block Set",
            Nesting::Map => "Block Map",
        }
    );
    if !schema.nesting.is_single() {
        for (limit, number) in [("Min", schema.min_items), ("Max", schema.max_items)] {
            if number > 0 {
                let _ = write!(text, ", {limit}: {number}");
            }
        }
    }
    if schema.block.deprecated {
        text.push_str(", Deprecated");
    }
    text.push(')');
    let anchor = anchor("nestedblock", path, name);
    let mut description = schema.block.description.text.trim().to_owned();
    if !schema.block.deprecation_message.is_empty() {
        let _ = write!(
            description,
            " **Deprecated:** {}",
            schema.block.deprecation_message.trim()
        );
    }
    Row {
        group,
        text: described(text, &(description + &reference(true, &anchor))),
        write_only: false,
        nested: Some((name.to_owned(), anchor, Nested::Block(&schema.block))),
    }
}

/// Returns true if a block has attributes or nested blocks, and a configuration can set none of them.
fn is_read_only(block: &BlockSchema) -> bool {
    let mut attributes = block.attributes.values();
    let is_empty = block.attributes.is_empty() && block.blocks.is_empty();
    !is_empty
        && attributes.all(|a| a.computed && !a.optional && !a.required)
        && block
            .blocks
            .values()
            .all(|b| b.min_items == 0 && is_read_only(&b.block))
}

/// Returns a row with its description. Further lines are indented, so that they stay in the list.
fn described(row: String, description: &str) -> String {
    let mut out = row;
    let mut lines = description.trim().lines();
    if let Some(first) = lines.next() {
        out.push(' ');
        out.push_str(first);
    }
    for line in lines {
        out.push('\n');
        if !line.trim().is_empty() {
            out.push_str("  ");
            out.push_str(line.trim_end());
        }
    }
    out.push('\n');
    out
}
