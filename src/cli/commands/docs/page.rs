//! Pages of the text form: heading, description, an example to copy, and arguments.

use std::fmt::Write as _;

use cty::Type;
use lang::functions::signature::Signature;
use packages::builtin::BuiltinProvider;
use provider::{FunctionSchema, ProviderSchema, SchemaMap};
use schema::{AttributeSchema, AttributeType, BlockSchema, Description, Nesting, Schema};
use views::wrap::wrap;

/// Kind of block with types of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Resource,
    Data,
    Ephemeral,
    Action,
    List,
}

impl Kind {
    pub(super) const ALL: [Kind; 5] = [Kind::Resource, Kind::Data, Kind::Ephemeral, Kind::Action, Kind::List];

    pub(super) fn title(self) -> &'static str {
        match self {
            Kind::Resource => "resource",
            Kind::Data => "data source",
            Kind::Ephemeral => "ephemeral resource",
            Kind::Action => "action",
            Kind::List => "list resource",
        }
    }

    fn keyword(self) -> &'static str {
        match self {
            Kind::Resource => "resource",
            Kind::Data => "data",
            Kind::Ephemeral => "ephemeral",
            Kind::Action => "action",
            Kind::List => "list",
        }
    }

    /// Returns the nested block with the provider's arguments, if they are not in the block itself.
    fn inner(self) -> Option<&'static str> {
        matches!(self, Kind::Action | Kind::List).then_some("config")
    }

    /// Returns the types of this kind.
    pub(super) fn names(self, schema: &ProviderSchema) -> Vec<String> {
        let of = |all: &SchemaMap<Schema>| all.keys().map(ToString::to_string).collect();
        match self {
            Kind::Resource => of(&schema.resources),
            Kind::Data => of(&schema.data_sources),
            Kind::Ephemeral => of(&schema.ephemeral),
            Kind::Action => of(&schema.actions),
            Kind::List => schema.lists.keys().map(ToString::to_string).collect(),
        }
    }

    /// Returns the schema of a type of this kind; `None` if the provider has no such type.
    pub(super) fn schema<'s>(self, schema: &'s ProviderSchema, name: &str) -> Option<&'s Schema> {
        match self {
            Kind::Resource => schema.resources.get(name),
            Kind::Data => schema.data_sources.get(name),
            Kind::Ephemeral => schema.ephemeral.get(name),
            Kind::Action => schema.actions.get(name),
            Kind::List => schema.lists.get(name).map(|list| &list.config),
        }
    }
}

/// Provider that a page is about, as its heading names it.
pub(super) struct Described {
    /// Name in a configuration.
    pub name: String,
    /// Origin of its plugin, such as "built-in provider".
    pub kind: &'static str,
    pub address: String,
    /// Version in parentheses, after a space; empty if it has none.
    pub version: String,
}

impl From<&BuiltinProvider> for Described {
    fn from(provider: &BuiltinProvider) -> Described {
        let version = provider.version.as_ref();
        Described {
            name: provider.name.clone(),
            kind: "built-in provider",
            address: provider.address.to_string(),
            version: version
                .map(|version| format!(" (as version {version})"))
                .unwrap_or_default(),
        }
    }
}

/// Writes a wrapped and indented paragraph.
fn paragraph(out: &mut String, text: &str, indent: usize, width: usize) {
    for line in wrap(text, width.saturating_sub(indent).max(30)) {
        let _ = writeln!(out, "{}", format!("{:indent$}{line}", "").trim_end());
    }
}

fn described(out: &mut String, description: &Description, width: usize) {
    for part in description.text.split("\n\n").filter(|part| !part.trim().is_empty()) {
        out.push('\n');
        paragraph(out, part.trim(), 2, width);
    }
}

/// Renders the page of a type.
pub(super) fn of_type(kind: Kind, name: &str, provider: &Described, schema: &Schema, width: usize) -> String {
    let mut out = format!(
        "{name}: {} of the {} {}{}\n",
        kind.title(),
        provider.kind,
        provider.address,
        provider.version
    );
    described(&mut out, &schema.block.description, width);
    shown_example(&mut out, &type_example(kind, name, &provider.name, schema));
    arguments(&mut out, &schema.block, width);
    out
}

/// Renders a block of a type with everything that is required.
pub(super) fn type_example(kind: Kind, name: &str, provider: &str, schema: &Schema) -> String {
    let mut text = format!("{} \"{name}\" \"example\" {{\n", kind.keyword());
    match kind.inner() {
        None => example(&mut text, &schema.block),
        Some(inner) => {
            if kind == Kind::List {
                let _ = writeln!(text, "provider = {provider}");
            }
            let _ = writeln!(text, "{inner} {{");
            example(&mut text, &schema.block);
            text.push_str("}\n");
        }
    }
    text.push_str("}\n");
    formatted(text)
}

/// Renders a provider block with everything that is required.
pub(super) fn provider_example(provider: &str, schema: &ProviderSchema) -> String {
    let mut text = format!("provider \"{provider}\" {{\n");
    example(&mut text, &schema.provider.block);
    text.push_str("}\n");
    formatted(text)
}

/// Renders a provisioner block with everything that is required.
pub(super) fn provisioner_example(name: &str, schema: &Schema) -> String {
    let mut text = format!("provisioner \"{name}\" {{\n");
    example(&mut text, &schema.block);
    text.push_str("}\n");
    formatted(text)
}

/// Renders the page of a provider: its configuration, types and functions.
pub(super) fn provider(provider: &Described, schema: &ProviderSchema, width: usize) -> String {
    let mut out = format!(
        "{}: {} {}{}\n",
        provider.name, provider.kind, provider.address, provider.version
    );
    described(&mut out, &schema.provider.block.description, width);
    shown_example(&mut out, &provider_example(&provider.name, schema));
    arguments(&mut out, &schema.provider.block, width);
    for kind in Kind::ALL {
        let names = kind.names(schema);
        if !names.is_empty() {
            let _ = writeln!(out, "\nOf the kind {}:\n", kind.title());
            paragraph(&mut out, &names.join(", "), 2, width);
        }
    }
    if !schema.functions.is_empty() {
        out.push_str("\nFunctions:\n\n");
        for name in schema.functions.keys() {
            let _ = writeln!(out, "  provider::{}::{name}", provider.name);
        }
    }
    out
}

/// Renders the page of a provisioner.
pub(super) fn provisioner(name: &str, schema: &Schema, width: usize) -> String {
    let mut out = format!("{name}: built-in provisioner\n");
    described(&mut out, &schema.block.description, width);
    shown_example(&mut out, &provisioner_example(name, schema));
    arguments(&mut out, &schema.block, width);
    out
}

/// Renders the page of a function of the language.
pub(super) fn function(name: &str, signature: &Signature, width: usize) -> String {
    let fixed = signature
        .parameters
        .iter()
        .map(|p| (p.name.to_owned(), p.ty.clone(), p.description));
    let further = signature
        .variadic
        .iter()
        .map(|p| (format!("{}...", p.name), p.ty.clone(), p.description));
    let parameters: Vec<_> = fixed.chain(further).collect();
    let names: Vec<&str> = parameters.iter().map(|(name, ..)| &**name).collect();
    let mut out = format!(
        "{name}({}): function that returns {}\n\n",
        names.join(", "),
        word(&signature.returns)
    );
    paragraph(&mut out, signature.description, 2, width);
    if !parameters.is_empty() {
        out.push_str("\nParameters:\n");
    }
    for (name, ty, description) in &parameters {
        let _ = writeln!(out, "\n  {name}: {}", word(ty));
        if let Some(description) = description {
            paragraph(&mut out, description, 6, width);
        }
    }
    out
}

/// Renders the page of a function of a provider.
pub(super) fn provider_function(name: &str, schema: &FunctionSchema, width: usize) -> String {
    let parameters: Vec<_> = schema.parameters.iter().chain(&schema.variadic).collect();
    let names: Vec<&str> = parameters.iter().map(|parameter| &*parameter.name).collect();
    let returned = schema.result.as_ref().map_or_else(|| "any type".to_owned(), word);
    let mut out = format!("{name}({}): function that returns {returned}\n", names.join(", "));
    if !schema.summary.is_empty() {
        out.push('\n');
        paragraph(&mut out, &schema.summary, 2, width);
    }
    described(&mut out, &schema.description, width);
    for parameter in parameters {
        let _ = writeln!(out, "\n  {}: {}", parameter.name, word(&parameter.ty));
        paragraph(&mut out, &parameter.description.text, 6, width);
    }
    out
}

pub(super) fn word(ty: &Type) -> String {
    match ty {
        Type::Dynamic => "any type".to_owned(),
        ty => ty.friendly_name(),
    }
}

/// Formats an example as `fmt` does.
fn formatted(text: String) -> String {
    let formatted = syntax::format::format_file("example.tf", text.as_bytes()).ok();
    formatted
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .unwrap_or(text)
}

fn shown_example(out: &mut String, text: &str) {
    out.push_str("\nExample:\n\n");
    for line in text.lines() {
        let _ = writeln!(out, "{}", format!("  {line}").trim_end());
    }
}

/// Writes the required arguments and blocks of a block.
fn example(out: &mut String, block: &BlockSchema) {
    for (name, attribute) in block.attributes.iter().filter(|(_, attribute)| attribute.required) {
        let _ = writeln!(out, "{name} = {}", sample_of(attribute));
    }
    for (name, nested) in block.blocks.iter().filter(|(_, nested)| nested.min_items > 0) {
        let label = if nested.nesting == Nesting::Map { " \"key\"" } else { "" };
        // Two blocks are enough to show that several are needed.
        for _ in 0..nested.min_items.min(2) {
            let _ = writeln!(out, "{name}{label} {{");
            example(out, &nested.block);
            out.push_str("}\n");
        }
    }
}

fn sample_of(attribute: &AttributeSchema) -> String {
    match &attribute.ty {
        AttributeType::Plain(ty) => sample(ty),
        AttributeType::Nested(nested) => {
            let required = nested.attributes.iter().filter(|(_, inner)| inner.required);
            let inner: Vec<String> = required
                .map(|(name, inner)| format!("{name} = {}", sample_of(inner)))
                .collect();
            let object = format!("{{ {} }}", inner.join(", "));
            match nested.nesting {
                Nesting::Single | Nesting::Group => object,
                Nesting::List | Nesting::Set => format!("[{object}]"),
                Nesting::Map => format!("{{ key = {object} }}"),
            }
        }
    }
}

/// Returns a sample value of a type.
fn sample(ty: &Type) -> String {
    match ty {
        Type::Number => "1".to_owned(),
        Type::Bool => "true".to_owned(),
        Type::List(inner) | Type::Set(inner) => format!("[{}]", sample(inner)),
        Type::Map(inner) => format!("{{ key = {} }}", sample(inner)),
        Type::Tuple(_) => "[]".to_owned(),
        Type::Object(_) => "{}".to_owned(),
        _ => "\"...\"".to_owned(),
    }
}

/// Writes the arguments of a block and of its nested blocks, then the computed attributes.
fn arguments(out: &mut String, block: &BlockSchema, width: usize) {
    let all = arguments_of(block);
    for (given, title) in [(true, "Arguments"), (false, "Decided by the provider")] {
        let some: Vec<&Argument> = all.iter().filter(|argument| argument.given == given).collect();
        if !some.is_empty() {
            let _ = write!(out, "\n{title}:\n");
        }
        for argument in some {
            let _ = writeln!(out, "\n  {}: {}", argument.label, argument.facts);
            paragraph(out, argument.about.trim(), 6, width);
        }
    }
}

/// Description of an attribute or nested block.
pub(super) struct Argument {
    /// Name, prefixed by those of the enclosing blocks.
    pub label: String,
    /// Type and properties: required, sensitive and the like.
    pub facts: String,
    /// Description in the schema.
    pub about: String,
    /// True if a configuration can set it; false if only the provider can.
    pub given: bool,
}

/// Returns the attributes and nested blocks of a block, each followed by its contents.
pub(super) fn arguments_of(block: &BlockSchema) -> Vec<Argument> {
    let mut found = Vec::new();
    listed(&mut found, block, "");
    found
}

fn listed(found: &mut Vec<Argument>, block: &BlockSchema, prefix: &str) {
    for (name, attribute) in &block.attributes {
        let mut facts = vec![match &attribute.ty {
            AttributeType::Plain(ty) => word(ty),
            AttributeType::Nested(nested) => match nested.nesting {
                Nesting::Single | Nesting::Group => "object".to_owned(),
                Nesting::List => "list of objects".to_owned(),
                Nesting::Set => "set of objects".to_owned(),
                Nesting::Map => "map of objects".to_owned(),
            },
        }];
        let marks = [
            (attribute.required, "required"),
            (
                attribute.optional && attribute.computed,
                "decided by the provider if it is not set",
            ),
            (attribute.sensitive, "sensitive"),
            (attribute.write_only, "never stored"),
            (attribute.deprecated, "deprecated"),
        ];
        facts.extend(marks.iter().filter(|(is, _)| *is).map(|(_, mark)| (*mark).to_owned()));
        found.push(Argument {
            label: format!("{prefix}{name}"),
            facts: facts.join(", "),
            about: attribute.description.text.to_string(),
            given: attribute.required || attribute.optional,
        });
        if let AttributeType::Nested(nested) = &attribute.ty {
            let inner = BlockSchema {
                attributes: nested.attributes.clone(),
                ..BlockSchema::default()
            };
            listed(found, &inner, &format!("{prefix}{name}."));
        }
    }
    for (name, nested) in &block.blocks {
        let count = match (nested.min_items, nested.max_items) {
            (0, 1) => "block, at most one",
            (1, 1) => "block, required",
            (0, _) => "blocks",
            _ => "blocks, at least one",
        };
        found.push(Argument {
            label: format!("{prefix}{name} {{ }}"),
            facts: count.to_owned(),
            about: nested.block.description.text.to_string(),
            given: true,
        });
        listed(found, &nested.block, &format!("{prefix}{name}."));
    }
}
