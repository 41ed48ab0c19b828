//! Generated configuration for imported objects without a resource block. First an empty resource block is added to the configuration.
//! After the import, the block is generated from the object as text and parsed, so that the plan is the same as with the generated file.

use std::fmt::Write as _;
use std::sync::Arc;

use addrs::{AbsResourceInstance, InstanceKey, LocalProviderConfig};
use config::{Config, Import, Resource};
use cty::Value;
use schema::marking::{mark_sensitive, without_write_only};
use schema::{AttributeSchema, AttributeType, BlockSchema, NestedBlock, NestedObject, Nesting, Schema};
use state::State;
use syntax::ast::Body;
use syntax::{Diagnostics, Range, write};

use super::{PlannedResource, Planner};
use crate::eval::Reported;
use crate::instance::located;

/// Returns the target of an import, if a block can be generated for it: a single instance in the root module, without `for_each`.
pub(super) fn subject(import: &Import) -> Option<&AbsResourceInstance> {
    import
        .to_instance
        .as_ref()
        .filter(|to| import.for_each.is_none() && to.module.is_root() && to.resource.key.is_none())
}

/// Adds an empty block for each import that has no resource block, if a block can be generated for it (see [`subject`]) and the state has
/// no object at its target.
pub(super) fn with_empty_blocks(config: &Config, state: &State) -> Config {
    let mut out = config.clone();
    for import in &config.root.module.imports {
        let Some(address) = subject(import) else { continue };
        if config.resource(&import.to_resource).is_some() || state.current(address).is_some() {
            continue;
        }
        // The body is empty until it is generated. Problems such as missing arguments are reported at the start of the import block.
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
            list: None,
            type_range: range.clone(),
            range,
        };
        Arc::make_mut(&mut out.root.module)
            .resources
            .insert(address.resource.resource.clone(), block);
    }
    out
}

/// Generates the resource block of an object. Returns its text, the parsed block, and the diagnostics of parsing.
pub(super) fn block(
    address: &AbsResourceInstance,
    schema: &Schema,
    like: &Resource,
    provider_key: Option<&Arc<str>>,
    config: &Generated,
) -> (String, Resource, Diagnostics) {
    let named = like.provider_ref.as_ref().map(|provider| &provider.config);
    // If the provider configuration is the default one of the resource type, no `provider` argument is written.
    let named = named.filter(|p| &*p.name != like.address.implied_provider() || p.alias.is_some());
    let named = named.map(|local| local_name(local, provider_key));
    let text = resource_text(&address.resource.resource, named.as_deref(), schema, config);
    let (file, problems) = syntax::parser::parse_file("generated configuration", text.as_bytes());
    let body = file.blocks.first().map(|b| {
        let mut body = b.body.clone();
        // `provider` is a meta-argument, which is stored in `provider_ref` and does not belong to the body.
        body.attributes.retain(|a| &*a.name != "provider");
        body
    });
    let block = Resource {
        body: body.map_or_else(|| like.body.clone(), Arc::new),
        ..like.clone()
    };
    (text, block, problems)
}

/// Source of the values in a generated block.
pub(super) enum Generated {
    /// A configuration that the provider has generated.
    ByProvider(Value),
    /// The object itself. Which of its attributes are arguments is guessed from the schema.
    FromObject(Value),
}

impl Planner<'_> {
    /// Returns the configuration for an object if the provider can generate it, and otherwise the object itself.
    pub(super) async fn generated_config(
        &self,
        p: &PlannedResource<'_>,
        ty: &str,
        schema: &Schema,
        object: &Value,
        address: &AbsResourceInstance,
    ) -> Result<Generated, Reported> {
        let (object, _) = object.clone().unmark_deep();
        let schemas = self.context.providers.schemas();
        let provider = schemas.providers.get(&p.provider_address.provider);
        if !provider.is_some_and(|p| p.capabilities.generate_resource_config) {
            return Ok(Generated::FromObject(mark_sensitive(&schema.block, object)));
        }
        let answer = p.provider.generate_config(ty, object).await;
        let answer = answer.map_err(|d| self.context.fail(d))?;
        self.context.report(located(answer.diagnostics, None, address))?;
        // The text is displayed or written to a file, so it must not contain write-only values.
        let config = without_write_only(&schema.block, &answer.value);
        Ok(Generated::ByProvider(mark_sensitive(&schema.block, config)))
    }
}

/// Renders a resource block, without a line break at its end.
pub(super) fn resource_text(
    resource: &addrs::Resource,
    provider: Option<&str>,
    schema: &Schema,
    config: &Generated,
) -> String {
    let mut inner = String::new();
    if let Some(provider) = provider {
        let _ = writeln!(inner, "provider = {provider}");
    }
    let (value, guessed) = match config {
        Generated::ByProvider(value) => (value, false),
        Generated::FromObject(value) => (value, true),
    };
    body(
        &mut inner,
        &schema.block,
        value,
        Guess {
            guessed,
            outermost: true,
        },
    );
    let text = format!(
        "resource {} {} {{\n{inner}}}\n",
        addrs::text::quoted(&resource.ty),
        addrs::text::quoted(&resource.name)
    );
    write::formatted(text).trim_end().to_owned()
}

/// Renders an import block by identity, without a line break at its end.
pub(super) fn import_text(resource: &addrs::Resource, provider: &str, identity: &Value) -> String {
    let mut inner = String::new();
    for (name, value) in identity.entries().into_iter().flatten() {
        let _ = write!(inner, "{name} = ");
        write::push_expression(&mut inner, value);
        inner.push('\n');
    }
    let text = format!("import {{\nto = {resource}\nprovider = {provider}\nidentity = {{\n{inner}}}\n}}\n");
    write::formatted(text).trim_end().to_owned()
}

/// Renders a reference to a provider configuration, with the key of an instance if there is one.
pub(super) fn local_name(provider: &LocalProviderConfig, key: Option<&Arc<str>>) -> String {
    match key {
        Some(key) => format!("{provider}{}", InstanceKey::String(key.clone())),
        None => provider.to_string(),
    }
}

/// Settings for rendering a value.
#[derive(Clone, Copy)]
struct Guess {
    /// Set if the value is an object whose arguments are guessed.
    guessed: bool,
    /// Set in the outermost block.
    outermost: bool,
}

impl Guess {
    fn inner(self) -> Guess {
        Guess {
            outermost: false,
            ..self
        }
    }

    /// Returns the value to write for an argument; `None` if there is none. An attribute of an object that only the provider sets is not
    /// an argument. Objects of the legacy SDK have an optional `id` that must not be set, and empty strings in place of null.
    fn argument<'v>(self, name: &str, schema: &AttributeSchema, value: Option<&'v Value>) -> Option<&'v Value> {
        let value = value.filter(|value| !value.is_null())?;
        let settable = schema.required || schema.optional;
        let implied = self.outermost && name == "id" && schema.optional && schema.computed;
        let empty = schema.optional && value.as_str() == Some("");
        (!self.guessed || (settable && !implied && !empty)).then_some(value)
    }
}

/// Returns true if an argument is not written: it is deprecated, or it has no value and the provider may set it.
fn left_out(schema: &AttributeSchema, value: Option<&Value>) -> bool {
    schema.deprecated || (value.is_none() && (schema.computed || !(schema.required || schema.optional)))
}

fn part<'v>(value: &'v Value, name: &str) -> Option<&'v Value> {
    value.get(name)
}

fn body(out: &mut String, schema: &BlockSchema, value: &Value, guess: Guess) {
    for (name, attribute) in &schema.attributes {
        let value = guess.argument(name, attribute, part(value, name));
        if !left_out(attribute, value) {
            write_attribute(out, name, attribute, value, guess.inner());
        }
    }
    for (name, nested) in &schema.blocks {
        if let Some(value) = part(value, name).filter(|_| !(guess.guessed && nested.block.deprecated)) {
            blocks(out, name, nested, value, guess.inner());
        }
    }
}

fn write_attribute(out: &mut String, name: &str, schema: &AttributeSchema, value: Option<&Value>, guess: Guess) {
    if let AttributeType::Nested(nested) = &schema.ty {
        return nested_attribute(out, name, schema, nested, value, guess);
    }
    let _ = write!(out, "{name} = ");
    match value {
        _ if schema.sensitive => out.push_str("null # sensitive"),
        Some(value) if !value.marks().is_empty() => out.push_str("null # sensitive"),
        Some(value) => match value.as_str().and_then(structure) {
            // JSON documents such as policies are easier to read and to compare as values than as strings.
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

/// Parses a string that contains a JSON array or object.
fn structure(text: &str) -> Option<Value> {
    let json: serde_json::Value = serde_json::from_str(text).ok()?;
    // Strings such as `1` and `true` are valid JSON, but must stay strings.
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
    guess: Guess,
) {
    let Some(value) = value else {
        let _ = writeln!(out, "{name} = null");
        return;
    };
    let single = matches!(nested.nesting, Nesting::Single | Nesting::Group);
    let (open, close) = match nested.nesting {
        Nesting::List | Nesting::Set => ("[", "]"),
        _ => ("{", "}"),
    };
    // Sensitive values must not be written to the file. A comment shows that the attribute exists.
    if schema.sensitive || !value.marks().is_empty() {
        let _ = writeln!(out, "{name} = {open}{close} # sensitive");
        return;
    }
    if !value.is_present() {
        let _ = writeln!(out, "{name} = null");
        return;
    }
    let object = |out: &mut String, value: &Value| {
        for (name, attribute) in &nested.attributes {
            let value = guess.argument(name, attribute, part(value, name));
            if !left_out(attribute, value) {
                write_attribute(out, name, attribute, value, guess);
            }
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

fn blocks(out: &mut String, name: &str, nested: &NestedBlock, value: &Value, guess: Guess) {
    // Sensitive values must not be written to the file. A comment shows that the blocks exist.
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
            body(out, &nested.block, value, guess);
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
        let guess = Guess {
            guessed: true,
            outermost: true,
        };
        body(&mut out, &schema, &value, guess);
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
