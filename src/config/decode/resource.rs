//! `resource`, `data` and `ephemeral` blocks, and `lifecycle` inside them.

use std::sync::Arc;

use addrs::program::Mode as Tool;
use addrs::{Mode, Provider, Referenceable};
use cty::{Path, Step};
use syntax::ast::{Attribute, Block, Expr, Traversal, TraversalStep};
use syntax::content::BodySpec;
use syntax::{Diagnostic, Diagnostics, Range};

use super::{Decoder, address, parts};
use crate::model::{CheckRule, IgnoreChanges, Lifecycle, Resource};

const ATTRIBUTES: &[(&str, bool)] = &[
    ("count", false),
    ("for_each", false),
    ("provider", false),
    ("depends_on", false),
];

const MANAGED: BodySpec<'static> = BodySpec {
    attributes: ATTRIBUTES,
    blocks: &[
        ("locals", &[]),
        ("lifecycle", &[]),
        ("connection", &[]),
        ("provisioner", &["type"]),
        ("_", &[]),
    ],
};

/// Arguments and nested blocks that the language defines in `data` and `ephemeral` blocks.
const READ: BodySpec<'static> = BodySpec {
    attributes: ATTRIBUTES,
    blocks: &[("locals", &[]), ("lifecycle", &[]), ("_", &[])],
};

const LIFECYCLE: BodySpec<'static> = BodySpec {
    attributes: &[
        // Only OpenTofu has `enabled`; see `lifecycle_spec`.
        ("enabled", false),
        ("create_before_destroy", false),
        ("prevent_destroy", false),
        ("destroy", false),
        ("ignore_changes", false),
        ("replace_triggered_by", false),
    ],
    blocks: &[("precondition", &[]), ("postcondition", &[]), ("action_trigger", &[])],
};

impl Decoder<'_> {
    pub(super) fn resource(&mut self, block: Block, mode: Mode) -> Option<Resource> {
        let range = parts::header(&block);
        let mut labels = block.labels.into_iter();
        let (ty, name) = (labels.next()?, labels.next()?);
        let what = match mode {
            Mode::Managed => "resource",
            Mode::Data => "data",
            Mode::Ephemeral => "ephemeral",
            Mode::List => "list",
        };
        let (invalid_type, invalid_name) = match mode {
            Mode::Managed => ("Invalid resource type name", "Invalid resource name"),
            Mode::Data => ("Invalid data source name", "Invalid data resource name"),
            Mode::Ephemeral => ("Invalid ephemeral resource type", "Invalid ephemeral resource name"),
            Mode::List => ("Invalid list resource type", "Invalid list block name"),
        };
        let valid_type = parts::check_name(&ty, invalid_type, self.diagnostics);
        parts::check_name(&name, invalid_name, self.diagnostics);
        let spec = if mode == Mode::Managed { MANAGED } else { READ };
        let mut taken = parts::partial(block.body, spec, self.diagnostics);
        let owner = if mode == Mode::Managed {
            "resource"
        } else {
            "data source"
        };
        parts::unescape(&mut taken.blocks, &mut taken.rest, owner, self.diagnostics);

        let (count, for_each) = (taken.attribute("count"), taken.attribute("for_each"));
        let lifecycle = taken.blocks.iter().find(|block| &*block.ty == "lifecycle");
        let enabled = lifecycle.and_then(|block| block.body.attribute("enabled"));
        self.one_repetition([count.as_ref(), enabled, for_each.as_ref()]);
        let provider_ref = taken
            .attribute("provider")
            .and_then(|a| parts::provider_ref(&a.expr, "provider", self.diagnostics));
        let depends_on = taken.attribute("depends_on");
        if self.overriding {
            self.no_depends_on_override(depends_on.as_ref());
        }
        let mut resource = Resource {
            address: addrs::Resource {
                mode,
                ty: ty.text,
                name: name.text,
            },
            body: Arc::new(taken.rest),
            count: count.map(|a| a.expr),
            for_each: for_each.map(|a| a.expr),
            provider_ref,
            provider: Provider::default_for(""),
            depends_on: parts::depends_on(depends_on, self.diagnostics),
            lifecycle: Lifecycle::default(),
            provisioners: Vec::new(),
            connection: None,
            check: None,
            list: None,
            range,
            type_range: ty.range,
        };
        // The name of the implied provider is a part of the type. If the type is invalid, its own error is enough.
        if valid_type {
            self.check_implied_provider(&resource);
        }
        self.resource_blocks(&mut resource, taken.blocks, what);
        self.destroy_provisioners_refer_to_self(&resource);
        Some(resource)
    }

    /// Checks the name of the provider that the type of a resource implies.
    fn check_implied_provider(&mut self, resource: &Resource) {
        // Only the form of the implied name is checked: the module's requirements decide which provider it is.
        if resource.provider_ref.is_none()
            && !parts::is_provider_name(&resource.address.implied_provider().to_lowercase())
        {
            self.diagnostics.push(
                Diagnostic::error(
                    "Invalid provider local name",
                    format!(
                        "The type implies a provider named \"{}\", which cannot be: a provider's name has letters, digits \
                         and inner dashes only.",
                        resource.address.implied_provider()
                    ),
                )
                .at(&resource.range),
            );
        }
    }

    /// Decodes the nested blocks that the language defines, and puts them into the resource.
    fn resource_blocks(&mut self, resource: &mut Resource, blocks: Vec<Block>, what: &str) {
        let mut lifecycle_at: Option<Range> = None;
        let mut connection_at: Option<Range> = None;
        for block in blocks {
            match &*block.ty {
                "lifecycle" => match &lifecycle_at {
                    Some(first) => {
                        self.diagnostics
                            .push(parts::duplicate_block("lifecycle", "resource", first, &block));
                    }
                    None => {
                        lifecycle_at = Some(block.header.clone());
                        resource.lifecycle = self.lifecycle(block, &resource.address);
                    }
                },
                "connection" => match &connection_at {
                    Some(first) => {
                        self.diagnostics
                            .push(parts::duplicate_block("connection", "resource", first, &block));
                    }
                    None => {
                        connection_at = Some(block.header.clone());
                        resource.connection = Some(self.connection(block));
                    }
                },
                "provisioner" => resource.provisioners.extend(self.provisioner(block)),
                _ => self.diagnostics.push(parts::reserved_block(&block, what)),
            }
        }
    }

    /// Reports `count` together with `for_each`, at the second of the two.
    pub(super) fn count_and_for_each(&mut self, count: Option<&Attribute>, for_each: Option<&Attribute>) {
        if let (Some(count), Some(for_each)) = (count, for_each) {
            let second = if count.name_range.start > for_each.name_range.start {
                count
            } else {
                for_each
            };
            self.diagnostics.push(
                Diagnostic::error(
                    "Invalid combination of \"count\" and \"for_each\"",
                    "\"count\" and \"for_each\" exclude each other: use the one that says best how many instances there are.",
                )
                .at(&second.name_range),
            );
        }
    }

    /// Reports two or more of `count`, `enabled` and `for_each` in one block, at the last of them. In the language of
    /// Terraform, `enabled` is not checked.
    pub(super) fn one_repetition(&mut self, all: [Option<&Attribute>; 3]) {
        let [count, enabled, for_each] = all;
        if enabled.filter(|_| Tool::current().has_opentofu()).is_none() {
            self.count_and_for_each(count, for_each);
            return;
        }
        let written: Vec<&Attribute> = all.into_iter().flatten().collect();
        let Some(last) = written
            .iter()
            .max_by_key(|a| a.name_range.start)
            .filter(|_| written.len() > 1)
        else {
            return;
        };
        let names: Vec<String> = written.iter().map(|a| format!("\"{}\"", a.name)).collect();
        let names = match names.as_slice() {
            [one, other] => format!("{one} and {other}"),
            _ => "\"count\", \"enabled\", and \"for_each\"".to_owned(),
        };
        self.diagnostics.push(
            Diagnostic::error(
                format!("Invalid combination of {names}"),
                format!("{names} exclude each other: use the one that says best how many instances there are."),
            )
            .at(&last.name_range),
        );
    }

    /// Returns the arguments and nested blocks of a `lifecycle` block, in the language of the current mode.
    fn lifecycle_spec() -> BodySpec<'static> {
        match Tool::current().has_opentofu() {
            true => LIFECYCLE,
            false => BodySpec {
                attributes: &LIFECYCLE.attributes[1..],
                ..LIFECYCLE
            },
        }
    }

    /// Reads `prevent_destroy`. In the language of OpenTofu, a value that is not constant is evaluated when the object
    /// would be destroyed; in that of Terraform, it is an error.
    fn prevent_destroy(&mut self, attribute: Attribute, lifecycle: &mut Lifecycle) {
        let constant = parts::constant_bool(&attribute.expr, &mut Diagnostics::new());
        if constant.is_some() || !Tool::current().has_opentofu() || matches!(attribute.expr, Expr::Invalid { .. }) {
            lifecycle.prevent_destroy = parts::constant_bool(&attribute.expr, self.diagnostics);
            lifecycle.prevent_destroy_range = Some(attribute.range);
            return;
        }
        for traversal in lang::refs::traversals(&attribute.expr) {
            let subject = lang::refs::whole_reference(traversal).map(|r| r.subject);
            if matches!(
                subject,
                Ok(Referenceable::Each(_) | Referenceable::Count(_) | Referenceable::SelfRef)
            ) {
                self.diagnostics.push(
                    Diagnostic::error(
                        "Invalid reference in prevent_destroy",
                        "The value holds for all instances, also for those that are not configured any more: it cannot \
                         depend on count.index, each.key, each.value or self.",
                    )
                    .at(&traversal.range),
                );
                return;
            }
        }
        lifecycle.prevent_destroy_if = Some(attribute.expr);
        lifecycle.prevent_destroy_range = Some(attribute.range);
    }

    fn lifecycle(&mut self, block: Block, resource: &addrs::Resource) -> Lifecycle {
        let mut taken = parts::exact(block.body, Self::lifecycle_spec(), self.diagnostics);
        let mut lifecycle = Lifecycle {
            enabled: taken.expr("enabled"),
            ..Lifecycle::default()
        };
        if resource.mode != Mode::Managed {
            let what = if resource.mode == Mode::Data {
                "data"
            } else {
                "ephemeral"
            };
            // The lifecycle arguments of managed resources are removed from the body, so that they have no effect
            // below.
            for (name, _) in LIFECYCLE.attributes {
                if let Some(attribute) = taken.attribute(name) {
                    self.diagnostics.push(
                        Diagnostic::error(
                            format!("Invalid {what} resource lifecycle argument"),
                            format!(
                                "The lifecycle argument \"{name}\" has a meaning for managed resources (\"resource\" \
                                 blocks) only, not for {what} resources."
                            ),
                        )
                        .at(&attribute.name_range),
                    );
                }
            }
        }
        if let Some(a) = taken.attribute("create_before_destroy") {
            lifecycle.create_before_destroy = parts::constant_bool(&a.expr, self.diagnostics);
        }
        if let Some(a) = taken.attribute("prevent_destroy") {
            self.prevent_destroy(a, &mut lifecycle);
        }
        if let Some(a) = taken.attribute("destroy") {
            lifecycle.destroy = parts::constant_bool(&a.expr, self.diagnostics);
        }
        if let Some(a) = taken.attribute("ignore_changes") {
            lifecycle.ignore_changes = self.ignore_changes(&a.expr);
        }
        if let Some(a) = taken.attribute("replace_triggered_by") {
            for item in parts::static_list(&a.expr, self.diagnostics) {
                let item = parts::unquoted(item.clone(), self.diagnostics);
                if self.replace_trigger(&item) {
                    lifecycle.replace_triggered_by.push(item);
                }
            }
        }
        for block in taken.blocks {
            if &*block.ty == "action_trigger" {
                if resource.mode == Mode::Managed {
                    lifecycle.action_triggers.push(self.action_trigger(block));
                } else {
                    self.diagnostics.push(misplaced_trigger(&block, resource.mode));
                }
                continue;
            }
            if self.overriding {
                self.cannot_override(&block);
                continue;
            }
            let post = &*block.ty == "postcondition";
            let kind = block.ty.clone();
            let rule = self.check_rule(block, &kind);
            self.condition_avoids_itself(&rule, &kind, resource);
            let rules = if post {
                &mut lifecycle.postconditions
            } else {
                &mut lifecycle.preconditions
            };
            rules.push(rule);
        }
        lifecycle
    }

    /// Reports conditions and error messages that refer to their own resource by name, and preconditions that refer to
    /// `self`.
    fn condition_avoids_itself(&mut self, rule: &CheckRule, kind: &str, resource: &addrs::Resource) {
        // Before the operation, the object may not exist. After it, a postcondition refers to the checked instance as
        // `self`.
        let early = "A precondition is checked before its object is there, so it cannot refer to it. A postcondition can, by \
                     the name self.";
        for expr in [&rule.condition, &rule.error_message] {
            for traversal in lang::refs::traversals(expr) {
                let problem = match lang::refs::whole_reference(traversal).map(|r| r.subject) {
                    Ok(Referenceable::Resource(r)) if r == *resource => {
                        let detail = if kind == "precondition" {
                            early
                        } else {
                            "A postcondition refers to its own object by the name self."
                        };
                        Diagnostic::error(format!("Invalid reference in {kind}"), detail).at(expr.range())
                    }
                    Ok(Referenceable::SelfRef) if kind == "precondition" => {
                        Diagnostic::error("Invalid \"self\" reference", early).at(&traversal.range)
                    }
                    _ => continue,
                };
                self.diagnostics.push(problem);
            }
        }
    }

    fn ignore_changes(&mut self, expr: &Expr) -> IgnoreChanges {
        if expr.as_keyword() == Some("all") {
            return IgnoreChanges::All;
        }
        let mut paths = Vec::new();
        let mut wildcard: Option<&Range> = None;
        for item in parts::static_list(expr, self.diagnostics) {
            if item.as_literal_text().as_deref() == Some("*") {
                self.diagnostics.push(
                    Diagnostic::error(
                        "Invalid ignore_changes wildcard",
                        "The form [\"*\"] is no longer understood. Write \"ignore_changes = all\" to ignore every change.",
                    )
                    .at(expr.range()),
                );
                wildcard = Some(item.range());
                continue;
            }
            let Some(traversal) = parts::static_traversal(item, self.diagnostics) else {
                continue;
            };
            match relative_path(&traversal) {
                Ok(path) => {
                    let steps = traversal.steps.iter().map(TraversalStep::range);
                    let ranges = std::iter::once(&traversal.root_range).chain(steps);
                    paths.push((path, ranges.cloned().collect()));
                }
                Err(range) => self.diagnostics.push(
                    Diagnostic::error(
                        "Invalid expression",
                        "A splat cannot be used here: name an attribute, and elements by their keys.",
                    )
                    .at(&range),
                ),
            }
        }
        match wildcard {
            None => IgnoreChanges::Paths(paths),
            Some(at) => {
                if !paths.is_empty() {
                    self.diagnostics.push(
                        Diagnostic::error(
                            "Invalid ignore_changes ruleset",
                            "Either all changes are ignored or those of the listed attributes: the wildcard cannot stand beside \
                             names.",
                        )
                        .at(at)
                        .within(expr.range()),
                    );
                }
                IgnoreChanges::All
            }
        }
    }

    /// Returns true if `replace_triggered_by` may contain an expression: a reference to a managed resource, in whose
    /// keys only `count.index` and `each.key` are used.
    fn replace_trigger(&mut self, expr: &Expr) -> bool {
        let wrong = |what: &str| {
            Diagnostic::error(
                format!("Invalid {what} in replace_triggered_by expression"),
                "Only managed resources, their instances and attributes can be named here, with count.index and each.key in \
                 instance keys.",
            )
            .at(expr.range())
        };
        let Some((traversal, keys)) = address::with_dynamic_keys(expr) else {
            if !matches!(expr, Expr::Invalid { .. }) {
                let summary = if matches!(expr, Expr::Json(_)) {
                    "Invalid reference expression"
                } else {
                    "Invalid replace_triggered_by expression"
                };
                self.diagnostics.push(
                    Diagnostic::error(
                        summary,
                        "A single reference to a resource is required here; nothing can be calculated.",
                    )
                    .at(expr.range()),
                );
            }
            return false;
        };
        // Any new diagnostic about the reference or one of its keys makes the expression unusable.
        let before = self.diagnostics.len();
        match lang::refs::whole_reference(&traversal).map(|r| r.subject) {
            Ok(Referenceable::Resource(r)) if r.mode == Mode::Managed => {}
            Ok(_) => self.diagnostics.push(wrong("reference")),
            Err(problem) => self.diagnostics.push(problem),
        }
        for key in keys {
            for traversal in lang::refs::traversals(key) {
                match lang::refs::whole_reference(traversal).map(|r| r.subject) {
                    Ok(Referenceable::Count(n)) if &*n == "index" => {}
                    Ok(Referenceable::Each(n)) if &*n == "key" => {}
                    Ok(Referenceable::Count(_)) => self.diagnostics.push(wrong("count reference")),
                    Ok(Referenceable::Each(_)) => self.diagnostics.push(wrong("each reference")),
                    _ => self.diagnostics.push(wrong("reference")),
                }
            }
        }
        self.diagnostics.len() == before
    }
}

/// Builds the error for an action trigger in a `data` or `ephemeral` block.
fn misplaced_trigger(block: &Block, mode: Mode) -> Diagnostic {
    let what = if mode == Mode::Data { "data" } else { "ephemeral" };
    Diagnostic::error(
        format!("Invalid {what} resource lifecycle nested block"),
        format!(
            "Actions are triggered by changes of managed resources (\"resource\" blocks) only, so a {what} resource can have no \
             \"{}\" block.",
            block.ty
        ),
    )
    .at(&block.type_range)
}

/// Converts a traversal to a path within a resource's object. A path has no splats: the error is the range of a splat.
fn relative_path(traversal: &Traversal) -> Result<Path, Range> {
    let mut path = Path(vec![Step::Attribute(traversal.root.clone())]);
    for step in &traversal.steps {
        path.0.push(match step {
            TraversalStep::Attribute { name, .. } => Step::Attribute(name.clone()),
            TraversalStep::Index { key, .. } => Step::Index(key.clone()),
            TraversalStep::Splat { range } => return Err(range.clone()),
        });
    }
    Ok(path)
}
