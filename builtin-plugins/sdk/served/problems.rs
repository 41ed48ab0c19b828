//! Detection of errors in schemas, when a host requests the schemas of a provider, or when a provisioner starts. Without it, an error would
//! show only in the first plan that it affects. Each error has the path of the member.

use std::collections::BTreeSet;

use cty::{Type, Value};

use super::named::{exists, group_problem};
use crate::function::Function;
use crate::identity::IdentityAttribute;
use crate::modifier::Modifier;
use crate::schema::{Attribute, Block, NestedBlock, Nesting, Schema};
use crate::validate::Validator;
use crate::wire::encode;

/// The kind of block that a schema describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Provider,
    Resource,
    /// Resource with [`Resource::LENIENT`](crate::Resource::LENIENT): its results may deviate from its plans.
    LenientResource,
    DataSource,
    Ephemeral,
    List,
    Provisioner,
    Action,
}

impl Use {
    fn word(self) -> &'static str {
        match self {
            Use::Provider => "provider configuration",
            Use::Resource | Use::LenientResource => "resource",
            Use::DataSource => "data source",
            Use::Ephemeral => "ephemeral resource",
            Use::List => "list resource",
            Use::Provisioner => "provisioner",
            Use::Action => "action",
        }
    }

    /// Returns the names that are reserved in a block of this kind.
    fn reserved(self) -> &'static [&'static str] {
        match self {
            Use::Provider => &[
                "alias",
                "count",
                "depends_on",
                "for_each",
                "lifecycle",
                "locals",
                "source",
                "version",
            ],
            Use::Resource | Use::LenientResource => &[
                "connection",
                "count",
                "depends_on",
                "for_each",
                "lifecycle",
                "provider",
                "provisioner",
            ],
            Use::List => &[],
            Use::DataSource | Use::Ephemeral => &["count", "depends_on", "for_each", "lifecycle", "provider"],
            Use::Provisioner => &["connection", "on_failure", "when"],
            Use::Action => &[],
        }
    }
}

/// Returns the errors in a schema, one sentence each.
pub(super) fn of_schema(used: Use, name: &str, schema: &Schema, identity: &[IdentityAttribute]) -> Vec<String> {
    let mut problems = Problems {
        used,
        at: match name {
            "" => used.word().to_owned(),
            name => format!("{} {name}", used.word()),
        },
        around: Vec::new(),
        found: Vec::new(),
    };
    if !name.is_empty() && used != Use::Provisioner {
        problems
            .found
            .extend(name_problem(name).map(|p| format!("{}: {p}", problems.at)));
    }
    if schema.version < 0 {
        problems.add("", "the version of a schema cannot be negative");
    }
    problems.block(&schema.root, "", Around::default());
    for reserved in used.reserved() {
        if schema.root.member_names().any(|name| name == *reserved) {
            problems.add(reserved, "the language has its own use for this name here");
        }
    }
    for name in schema.at_least_one_of.iter().flatten() {
        if !schema.root.has(name) {
            problems.add("", &format!("at_least_one_of names {name:?}, which is not there"));
        }
    }
    for problem in schema
        .groups
        .iter()
        .filter_map(|group| group_problem(group, &schema.root))
    {
        problems.add("", &problem);
    }
    problems.identity(identity, &schema.root);
    problems.found
}

/// Returns the errors in a function, one sentence each.
pub(super) fn of_function(name: &str, function: &Function) -> Vec<String> {
    let mut found: Vec<String> = name_problem(name).into_iter().collect();
    let mut seen = BTreeSet::new();
    for parameter in function.parameters.iter().chain(&function.variadic) {
        found.extend(name_problem(parameter.name).map(|p| format!("parameter {:?}: {p}", parameter.name)));
        if !seen.insert(parameter.name) {
            found.push(format!("it has more than one parameter {:?}", parameter.name));
        }
    }
    found.into_iter().map(|p| format!("function {name}: {p}")).collect()
}

/// Returns the reason why a text is not a valid name; `None` if it is one.
fn name_problem(name: &str) -> Option<String> {
    // Hosts check the names of types and arguments only when a configuration uses them, so the check here is earlier.
    let good = |c: char| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit();
    let begins_well = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
    (!begins_well || !name.chars().all(good)).then(|| {
        "a name consists of lower-case letters, digits and underscores, and does not begin with a digit".into()
    })
}

impl Block {
    fn member_names(&self) -> impl Iterator<Item = &'static str> {
        let attributes = self.attributes.iter().map(|a| a.name);
        attributes.chain(self.blocks.iter().map(|b| b.name))
    }

    fn has(&self, name: &str) -> bool {
        self.member_names().any(|n| n == name)
    }
}

/// Properties of the members that contain a member.
#[derive(Clone, Copy, Default)]
struct Around {
    /// True inside a set, at any level.
    set: bool,
    /// True inside an attribute with nested attributes.
    attribute: bool,
    /// True if the attribute around the member is write-only.
    write_only: bool,
    /// True inside an attribute that the plugin sets or may set.
    computed: bool,
}

struct Problems<'a> {
    used: Use,
    at: String,
    /// The blocks around a member, from the outermost one to its own.
    around: Vec<&'a Block>,
    found: Vec<String>,
}

impl<'a> Problems<'a> {
    fn add(&mut self, path: &str, problem: &str) {
        self.found.push(match path {
            "" => format!("{}: {problem}", self.at),
            path => format!("{}: {path}: {problem}", self.at),
        });
    }

    fn block(&mut self, block: &'a Block, path: &str, around: Around) {
        self.around.push(block);
        let mut seen = BTreeSet::new();
        for name in block.member_names() {
            let path = join(path, name);
            if !seen.insert(name) {
                self.add(
                    &path,
                    "there is more than one member by this name (members of flattened models count, too)",
                );
            }
            if let Some(problem) = name_problem(name) {
                self.add(&path, &problem);
            }
        }
        for attribute in &block.attributes {
            self.attribute(attribute, &join(path, attribute.name), around);
        }
        for nested in &block.blocks {
            let path = join(path, nested.name);
            if around.attribute {
                self.add(
                    &path,
                    "an attribute cannot have blocks inside: make it nested(…), or the whole a block()",
                );
            }
            self.nested_block(nested, &path, around);
        }
        self.around.pop();
    }

    /// Adds the reasons why these rules do not apply to a member of this type.
    fn rules(&mut self, validators: &[Validator], ty: &Type, path: &str) {
        let exists = |text: &str| exists(text, &self.around);
        let problems: Vec<String> = validators.iter().filter_map(|v| v.problem(ty, &exists)).collect();
        problems.iter().for_each(|problem| self.add(path, problem));
    }

    fn nested_block(&mut self, nested: &'a NestedBlock, path: &str, around: Around) {
        match nested.nesting {
            Nesting::Group | Nesting::Map if nested.min_items > 0 => {
                self.add(path, "min_items is for blocks that form a list or a set");
            }
            Nesting::Single if nested.min_items > 1 => self.add(path, "there is one such block at most"),
            // A set needs elements of one type to compare them.
            Nesting::Set if nested.block.ty().has_dynamic() => {
                self.add(path, "blocks that form a set cannot have attributes of any type");
            }
            _ => {}
        }
        if nested.max_items > 0 {
            match nested.nesting {
                Nesting::Single | Nesting::Group | Nesting::Map => {
                    self.add(path, "max_items is for blocks that form a list or a set");
                }
                _ if nested.max_items < nested.min_items => self.add(path, "max_items is less than min_items"),
                _ => {}
            }
        }
        if nested.computed {
            self.computed_block(nested, path);
        }
        if !nested.validators.is_empty() {
            self.rules(&nested.validators, &nested.ty(), path);
        }
        self.unplanned(path, &nested.modifiers);
        let set = around.set || nested.nesting == Nesting::Set;
        self.block(&nested.block, path, Around { set, ..around });
    }

    /// Checks the members of computed blocks. The host rejects a block in which the plugin can set only some members.
    fn computed_block(&mut self, nested: &NestedBlock, path: &str) {
        if matches!(self.used, Use::Provider | Use::Provisioner | Use::Action) {
            let word = self.used.word();
            self.add(path, &format!("a {word} has no results: its blocks cannot be computed"));
        }
        if nested.min_items > 0 || nested.max_items > 0 {
            self.add(
                path,
                "what the configuration must have is not computed: it cannot have min_items or max_items",
            );
        }
        for attribute in nested.block.attributes.iter().filter(|a| !a.computed) {
            let path = join(path, attribute.name);
            self.add(&path, "it stands in a computed block, so that it needs computed()");
        }
        // The host plans computed blocks as a whole: either they are unknown, or the plugin sets all of them.
        for inner in nested.block.blocks.iter().filter(|b| !b.computed) {
            let path = join(path, inner.name);
            self.add(&path, "it stands in a computed block, so that it must be computed, too");
        }
    }

    /// Reports modifiers of members that are never planned.
    fn unplanned(&mut self, path: &str, modifiers: &[Modifier]) {
        // Modifiers are ignored in data sources, which often share the model of a resource.
        if matches!(self.used, Use::Provider | Use::Provisioner | Use::Action) && !modifiers.is_empty() {
            let word = self.used.word();
            self.add(
                path,
                &format!("a {word} is not planned: keep, requires_replace and modify say nothing here"),
            );
        }
    }

    fn attribute(&mut self, a: &'a Attribute, path: &str, around: Around) {
        match (a.required, a.optional, a.computed) {
            (false, false, false) => self.add(path, "it is neither required nor optional nor computed"),
            (true, true, _) => self.add(path, "it cannot be both required and optional"),
            (true, _, true) => {
                self.add(
                    path,
                    "what is required is always set by the configuration, so that it cannot be computed, too",
                );
            }
            _ => {}
        }
        if a.computed && matches!(self.used, Use::Provider | Use::Provisioner | Use::Action) {
            let word = self.used.word();
            self.add(path, &format!("a {word} has no results: it cannot be computed"));
        }
        self.write_only(a, path, around);
        self.default(a, path);
        self.unplanned(path, &a.modifiers);
        if !a.computed
            && a.modifiers
                .iter()
                .any(|m| matches!(m, Modifier::Keep | Modifier::KeepNonNull))
        {
            self.add(path, "keep() is about results: it needs computed()");
        }
        let is_map = matches!(a.ty, Type::Map(_) | Type::Dynamic);
        if !is_map
            && a.modifiers
                .iter()
                .any(|m| matches!(m, Modifier::RequiresReplaceIfValuesChange))
        {
            self.add(path, "requires_replace_if_values_change() is for maps");
        }
        self.rules(&a.validators, &a.ty, path);
        if let Some(nested) = &a.nested {
            if nested.nesting != Nesting::Single && nested.block.ty().has_dynamic() {
                self.add(path, "the objects of a collection cannot have attributes of any type");
            }
            let around = Around {
                set: around.set || nested.nesting == Nesting::Set,
                attribute: true,
                write_only: a.write_only,
                computed: around.computed || a.computed,
            };
            self.block(&nested.block, path, around);
        }
    }

    fn write_only(&mut self, a: &Attribute, path: &str, around: Around) {
        if !a.write_only {
            if around.write_only {
                self.add(
                    path,
                    "it stands in a write-only attribute, so it must be write-only, too",
                );
            }
            return;
        }
        if !matches!(self.used, Use::Resource | Use::LenientResource | Use::Action) {
            let word = self.used.word();
            self.add(
                path,
                &format!("a {word} is never stored: only a resource has write-only attributes"),
            );
        }
        if a.computed {
            self.add(
                path,
                "what is write-only is never stored, so that it cannot be computed",
            );
        }
        if a.modifiers.iter().any(|m| !matches!(m, Modifier::Custom(_))) {
            self.add(
                path,
                "what is write-only is null in every plan: keep and requires_replace say nothing here",
            );
        }
        if around.set {
            self.add(
                path,
                "an element of a set is told from others by its values, so that none can be write-only",
            );
        }
        if around.computed {
            self.add(
                path,
                "it stands in a computed attribute, so that it cannot be write-only",
            );
        }
    }

    fn default(&mut self, a: &Attribute, path: &str) {
        let Some(default) = &a.default else { return };
        if a.required {
            self.add(path, "what is required needs no default");
        } else if !a.computed && !matches!(self.used, Use::LenientResource | Use::DataSource) {
            self.add(path, "a default is a value that the plugin sets: it needs computed()");
        }
        if default.is_null() || !default.is_wholly_known() {
            self.add(path, "a default is a known value that is not null");
        } else if !fits(default, &a.ty) {
            self.add(
                path,
                &format!("its default is of type {}, but it is of type {}", default.ty(), a.ty),
            );
        }
    }

    fn identity(&mut self, identity: &[IdentityAttribute], root: &Block) {
        let mut seen = BTreeSet::new();
        for part in identity {
            let path = format!("identity: {}", part.name);
            if !seen.insert(part.name) {
                self.add(&path, "its name is a duplicate");
            }
            let Some(attribute) = root.attributes.iter().find(|a| a.name == part.name) else {
                self.add(&path, "there is no attribute by this name");
                continue;
            };
            let simple = |ty: &Type| matches!(ty, Type::String | Type::Number | Type::Bool);
            // Hosts accept no other types in an identity.
            let fits = match &attribute.ty {
                Type::List(element) => simple(element),
                ty => simple(ty),
            };
            if !fits {
                self.add(
                    &path,
                    "an identity consists of strings, numbers, bools, and lists of these",
                );
            }
            if attribute.write_only {
                self.add(&path, "what is write-only is never stored, and cannot be an identity");
            }
        }
    }
}

fn fits(value: &Value, ty: &Type) -> bool {
    value.ty() == ty || (ty.has_dynamic() && encode(value, ty).is_ok())
}

fn join(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    }
}

#[cfg(test)]
mod tests;
