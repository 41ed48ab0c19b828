//! Generated configuration for imported objects without a resource block. First the resource is planned with an empty block in
//! its place. After the import, the block is generated from the object as text and parsed, so that the plan is that of the
//! generated file.

use std::fmt::Write as _;
use std::sync::Arc;

use addrs::AbsResourceInstance;
use config::{Config, Import, Resource};
use cty::Value;
use schema::{AttributeSchema, AttributeType, BlockSchema, NestedBlock, NestedObject, Nesting, Schema};
use state::State;
use syntax::ast::Body;
use syntax::{Diagnostics, Range, write};

/// The address of the resource that a block can be generated for to satisfy an import.
pub(super) fn subject(import: &Import) -> Option<&AbsResourceInstance> {
    import
        .to_instance
        .as_ref()
        .filter(|to| import.for_each.is_none() && to.module.is_root() && to.resource.key.is_none())
}

/// The configuration with empty blocks for all imports that have no resource block.
pub(super) fn with_empty_blocks(config: &Config, state: &State) -> Config {
    let mut out = config.clone();
    for import in &config.root.module.imports {
        let Some(address) = subject(import) else { continue };
        if config.resource(&import.to_resource).is_some() || state.current(address).is_some() {
            continue;
        }
        let range = import.range.clone();
        let at = Range {
            end: range.start,
            ..range.clone()
        };
        let block = Resource {
            address: address.resource.resource.clone(),
            body: Arc::new(Body {
                attributes: Vec::new(),
                blocks: Vec::new(),
                range: at.clone(),
                end: at,
            }),
            count: None,
            for_each: None,
            provider_ref: import.provider_ref.clone(),
            provider: import.provider.clone(),
            depends_on: Vec::new(),
            lifecycle: config::Lifecycle::default(),
            provisioners: Vec::new(),
            connection: None,
            check: None,
            type_range: range.clone(),
            range,
        };
        Arc::make_mut(&mut out.root.module)
            .resources
            .insert(address.resource.resource.clone(), block);
    }
    out
}

/// The generated block of an object: its text, and the parsed block.
pub(super) fn block(
    address: &AbsResourceInstance,
    schema: &Schema,
    like: &Resource,
    value: &Value,
) -> (String, Resource, Diagnostics) {
    let mut inner = String::new();
    if let Some(provider) = &like.provider_ref
        && (&*provider.config.name != like.address.implied_provider() || provider.config.alias.is_some())
    {
        let _ = write!(inner, "provider = {}", provider.config.name);
        if let Some(alias) = &provider.config.alias {
            let _ = write!(inner, ".{alias}");
        }
        inner.push('\n');
    }
    body(&mut inner, &schema.block, value, true);
    let resource = &address.resource.resource;
    let text = format!(
        "resource {} {} {{\n{inner}}}\n",
        addrs::text::quoted(&resource.ty),
        addrs::text::quoted(&resource.name)
    );
    let text = write::formatted(text);
    let (file, problems) = syntax::parser::parse_file("generated configuration", text.as_bytes());
    let body = file.blocks.first().map(|b| {
        let mut body = b.body.clone();
        body.attributes.retain(|a| &*a.name != "provider");
        body
    });
    let block = Resource {
        body: body.map_or_else(|| like.body.clone(), Arc::new),
        ..like.clone()
    };
    (text.trim_end().to_owned(), block, problems)
}

/// Whether an attribute is left out: providers set it, or it is deprecated.
fn left_out(attribute: &AttributeSchema) -> bool {
    !(attribute.required || attribute.optional) || attribute.deprecated
}

fn part<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    value.get(name)
}

fn body(out: &mut String, schema: &BlockSchema, value: &Value, outermost: bool) {
    for (name, attribute) in &schema.attributes {
        // In the legacy SDK `id` is optional, but must not be set.
        let implied = outermost && &**name == "id" && attribute.optional && attribute.computed;
        if left_out(attribute) || implied {
            continue;
        }
        write_attribute(out, name, attribute, part(value, name));
    }
    for (name, nested) in &schema.blocks {
        if let Some(value) = part(value, name).filter(|_| !nested.block.deprecated) {
            blocks(out, name, nested, value);
        }
    }
}

fn write_attribute(out: &mut String, name: &str, schema: &AttributeSchema, value: Option<&Value>) {
    if let AttributeType::Nested(nested) = &schema.ty {
        return nested_attribute(out, name, schema, nested, value);
    }
    let _ = write!(out, "{name} = ");
    match value {
        Some(value) if schema.sensitive || !value.marks().is_empty() => out.push_str("null # sensitive"),
        // The legacy SDK has no null strings.
        Some(value) if schema.optional && value.as_str() == Some("") => out.push_str("null"),
        Some(value) => match value.as_str().and_then(structure) {
            Some(structure) => {
                out.push_str("jsonencode(");
                write::push_expression(out, &structure);
                out.push(')');
            }
            None => write::push_expression(out, value),
        },
        None => out.push_str("null"),
    }
    out.push('\n');
}

/// The value of a string that is a JSON array or object.
fn structure(text: &str) -> Option<Value> {
    let json: serde_json::Value = serde_json::from_str(text).ok()?;
    if !(json.is_array() || json.is_object()) {
        return None;
    }
    cty::json::from_simple_json(&json).ok()
}

fn nested_attribute(
    out: &mut String,
    name: &str,
    schema: &AttributeSchema,
    nested: &NestedObject,
    value: Option<&Value>,
) {
    let Some(value) = value else { return };
    let single = matches!(nested.nesting, Nesting::Single | Nesting::Group);
    let (open, close) = match nested.nesting {
        Nesting::List | Nesting::Set => ("[", "]"),
        _ => ("{", "}"),
    };
    if schema.sensitive || !value.marks().is_empty() {
        let _ = writeln!(out, "{name} = {open}{close} # sensitive");
        return;
    }
    if !value.is_present() {
        let _ = writeln!(out, "{name} = null");
        return;
    }
    let object = |out: &mut String, value: &Value| {
        for (name, attribute) in nested.attributes.iter().filter(|(_, a)| !left_out(a)) {
            write_attribute(out, name, attribute, part(value, name));
        }
    };
    let _ = writeln!(out, "{name} = {open}");
    if single {
        object(out, value);
    } else if let Some(items) = value.as_seq() {
        for item in items {
            if item.marks().is_empty() {
                out.push_str("{\n");
                object(out, item);
                out.push_str("},\n");
            } else {
                out.push_str("{}, # sensitive\n");
            }
        }
    } else {
        for (i, (key, item)) in value.entries().into_iter().flatten().enumerate() {
            out.push_str(&write::object_key(key, i == 0));
            if item.marks().is_empty() {
                out.push_str(" = {\n");
                object(out, item);
                out.push_str("}\n");
            } else {
                out.push_str(" = {} # sensitive\n");
            }
        }
    }
    out.push_str(close);
    out.push('\n');
}

fn blocks(out: &mut String, name: &str, nested: &NestedBlock, value: &Value) {
    if !value.marks().is_empty() {
        let _ = writeln!(out, "{name} {{}} # sensitive");
        return;
    }
    if !value.is_present() {
        return;
    }
    let mut one = |header: String, value: &Value| {
        if value.marks().is_empty() {
            let _ = writeln!(out, "{header} {{");
            body(out, &nested.block, value, false);
            out.push_str("}\n");
        } else {
            let _ = writeln!(out, "{header} {{}} # sensitive");
        }
    };
    match nested.nesting {
        Nesting::Single | Nesting::Group => one(name.to_owned(), value),
        Nesting::List | Nesting::Set => {
            for item in value.as_seq().into_iter().flatten() {
                one(name.to_owned(), item);
            }
        }
        Nesting::Map => {
            for (key, item) in value.entries().into_iter().flatten() {
                one(format!("{name} {}", addrs::text::quoted(key)), item);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use cty::Type;

    use super::*;

    fn plain(ty: Type, sensitive: bool) -> AttributeSchema {
        AttributeSchema {
            ty: AttributeType::Plain(ty),
            optional: true,
            sensitive,
            ..AttributeSchema::default()
        }
    }

    #[test]
    fn generated_block_has_arguments_of_object() {
        let inner = BlockSchema {
            attributes: [("port".into(), plain(Type::Number, false))].into_iter().collect(),
            ..BlockSchema::default()
        };
        let schema = BlockSchema {
            attributes: [
                (
                    "id".into(),
                    AttributeSchema {
                        computed: true,
                        ..plain(Type::String, false)
                    },
                ),
                (
                    "arn".into(),
                    AttributeSchema {
                        computed: true,
                        optional: false,
                        ..plain(Type::String, false)
                    },
                ),
                ("name".into(), plain(Type::String, false)),
                ("empty".into(), plain(Type::String, false)),
                ("long_secret".into(), plain(Type::String, true)),
                ("policy".into(), plain(Type::String, false)),
                ("tags".into(), plain(Type::map(Type::String), false)),
                ("list".into(), plain(Type::list(Type::Number), false)),
            ]
            .into_iter()
            .collect(),
            blocks: [(
                "rule".into(),
                NestedBlock {
                    block: inner,
                    nesting: Nesting::List,
                    min_items: 0,
                    max_items: 0,
                },
            )]
            .into_iter()
            .collect(),
            ..BlockSchema::default()
        };
        let rule = |n: i64| Value::object([("port", Value::number(n))]);
        let value = Value::object([
            ("id", Value::string("i")),
            ("arn", Value::string("a")),
            ("name", Value::string("say \"${x}\"\n")),
            ("empty", Value::string("")),
            ("long_secret", Value::string("s")),
            ("policy", Value::string(r#"{"Version":1,"a b":[true,{}]}"#)),
            (
                "tags",
                Value::map(Type::String, [("k".into(), Value::string("v"))].into()),
            ),
            (
                "list",
                Value::list(Type::Number, vec![Value::number(1), Value::number(2)]),
            ),
            ("rule", Value::tuple(vec![rule(80), rule(443)])),
        ]);
        let mut out = String::new();
        body(&mut out, &schema, &value, true);
        let expected = r#"empty       = null
list        = [1, 2]
long_secret = null # sensitive
name        = "say \"$${x}\"\n"
policy = jsonencode({
  Version = 1
  "a b"   = [true, {}]
})
tags = {
  k = "v"
}
rule {
  port = 80
}
rule {
  port = 443
}
"#;
        assert_eq!(write::formatted(out), expected);
    }
}
