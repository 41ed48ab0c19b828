//! Merging of override files.
//!
//! An overriding block changes the block of the same name argument by argument. Nested blocks replace all base blocks
//! of their type.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use syntax::ast::{Attribute, Block, Body, Expr};
use syntax::content::{self, BodySpec};
use syntax::{Diagnostic, Diagnostics, Range};

use crate::decode::{self, FileBlocks};
use crate::model::{
    Action, DeprecationNotice, IgnoreChanges, Module, ModuleCall, Output, ProviderConfig, Resource, Variable,
};

/// Applies the blocks of one override file.
pub(crate) fn apply(module: &mut Module, file: FileBlocks, diagnostics: &mut Diagnostics) {
    if !file.required_versions.is_empty() {
        module.required_versions = file.required_versions;
    }
    for (_, entries) in file.required_providers {
        module
            .required_providers
            .extend(entries.into_iter().map(|e| (e.name.clone(), e)));
    }
    twice(
        "Duplicate 'backend' configuration block",
        file.backends.iter().map(|b| &b.range),
        diagnostics,
    );
    twice(
        "Duplicate HCP Terraform configurations",
        file.clouds.iter().map(|c| &c.range),
        diagnostics,
    );
    // A `backend` and a `cloud` block exclude each other, so the overriding block replaces either one of the base.
    if let Some(backend) = file.backends.into_iter().next_back() {
        module.backend = Some(backend);
        module.cloud = None;
    }
    if let Some(cloud) = file.clouds.into_iter().next_back() {
        module.cloud = Some(cloud);
        module.backend = None;
    }
    for encryption in file.encryptions {
        match &mut module.encryption {
            Some(base) => base.overrides.push(encryption.body),
            none => *none = Some(encryption),
        }
    }
    for meta in file.provider_metas {
        module
            .provider_meta
            .insert(addrs::Provider::default_for(meta.name.clone()), meta);
    }
    override_providers(module, file.provider_configs, diagnostics);
    override_named(
        &mut module.variables,
        file.variables,
        |v| (v.name.clone(), v.range.clone()),
        variable,
        ("Missing base variable declaration to override", "variable"),
        diagnostics,
    );
    override_named(
        &mut module.locals,
        file.locals,
        |v| (v.name.clone(), v.range.clone()),
        |base, v, _| *base = v,
        ("Missing base local value definition to override", "local value"),
        diagnostics,
    );
    override_named(
        &mut module.outputs,
        file.outputs,
        |v| (v.name.clone(), v.range.clone()),
        output,
        ("Missing base output definition to override", "output"),
        diagnostics,
    );
    override_named(
        &mut module.module_calls,
        file.module_calls,
        |v| (v.name.clone(), v.range.clone()),
        |base, v, _| call(base, v),
        ("Missing module call to override", "module call"),
        diagnostics,
    );
    override_resources(module, file.resources, file.actions, diagnostics);
    for v in file.removed {
        diagnostics.push(ignored("removed", &v.range));
    }
}

fn override_providers(module: &mut Module, configs: Vec<ProviderConfig>, diagnostics: &mut Diagnostics) {
    for config in configs {
        match (module.provider_configs.get_mut(&config.address), &config.address.alias) {
            (Some(base), _) => provider(base, config),
            // Every module has a default (unaliased) provider configuration implicitly, so an override file may add that one
            // without a base block. An aliased one must exist.
            (None, None) => {
                module.provider_configs.insert(config.address.clone(), config);
            }
            (None, Some(_)) => diagnostics.push(missing(
                "Missing base provider configuration for override",
                &format!("provider configuration {}", config.address),
                &config.range,
            )),
        }
    }
}

/// Applies the overriding blocks of one kind to the blocks of the same name. An overriding block without a base block is an error;
/// `summary` and `kind` are parts of its message.
fn override_named<V>(
    base: &mut BTreeMap<Arc<str>, V>,
    overriding: Vec<V>,
    key: impl Fn(&V) -> (Arc<str>, Range),
    change: impl Fn(&mut V, V, &mut Diagnostics),
    (summary, kind): (&str, &str),
    diagnostics: &mut Diagnostics,
) {
    for v in overriding {
        let (name, range) = key(&v);
        match base.get_mut(&name) {
            Some(base) => change(base, v, diagnostics),
            None => diagnostics.push(missing(summary, &format!("{kind} \"{name}\""), &range)),
        }
    }
}

fn override_resources(
    module: &mut Module,
    resources: Vec<Resource>,
    actions: Vec<Action>,
    diagnostics: &mut Diagnostics,
) {
    // Ephemeral resources are not merged, as in Terraform.
    for v in resources {
        if v.address.mode == addrs::Mode::Ephemeral {
            diagnostics.push(ignored("ephemeral", &v.range));
            continue;
        }
        let kind = if v.address.mode == addrs::Mode::Data {
            "data resource"
        } else {
            "resource"
        };
        match module.resources.get_mut(&v.address) {
            Some(base) => resource(base, v),
            None => diagnostics.push(missing(
                &format!("Missing {kind} to override"),
                &format!("resource {}", v.address),
                &v.range,
            )),
        }
    }
    for v in actions {
        match module.actions.get_mut(&v.address) {
            Some(base) => action(base, v),
            None => diagnostics.push(missing(
                "Missing resource to override",
                &format!("action {}.{}", v.address.ty, v.address.name),
                &v.range,
            )),
        }
    }
}

/// Reports all but the first of the blocks that an override file may have only once.
fn twice<'r>(summary: &str, ranges: impl Iterator<Item = &'r Range>, diagnostics: &mut Diagnostics) {
    let mut first: Option<&Range> = None;
    for range in ranges {
        match first {
            None => first = Some(range),
            Some(first) => diagnostics.push(
                Diagnostic::error(
                    summary,
                    format!("State is kept in one place, and this file names it at {first} already."),
                )
                .at(range),
            ),
        }
    }
}

fn missing(summary: &str, what: &str, range: &Range) -> Diagnostic {
    Diagnostic::error(
        summary,
        format!("There is no {what} in the other files. An override file changes only what other files declare."),
    )
    .at(range)
}

/// Builds the warning about a block that has no effect in an override file. Terraform ignores it silently.
fn ignored(kind: &str, range: &Range) -> Diagnostic {
    Diagnostic::warning(
        "Block in override file ignored",
        format!("A block of type \"{kind}\" in an override file has no effect. Declare it in another file."),
    )
    .at(range)
}

/// Builds the warning about a `deprecated` argument in an override file. Terraform ignores it silently.
fn ignored_deprecation(notice: &DeprecationNotice) -> Diagnostic {
    Diagnostic::warning(
        "Argument in override file ignored",
        "The argument \"deprecated\" has no effect in an override file. Write it where the variable or output is declared.",
    )
    .at(&notice.range)
}

fn replace<T>(base: &mut Option<T>, by: Option<T>) {
    if by.is_some() {
        *base = by;
    }
}

fn variable(base: &mut Variable, by: Variable, diagnostics: &mut Diagnostics) {
    diagnostics.extend(by.deprecated.as_ref().map(ignored_deprecation));
    replace(&mut base.description, by.description);
    if by.written.sensitive {
        base.sensitive = by.sensitive;
    }
    if by.written.ephemeral {
        base.ephemeral = by.ephemeral;
    }
    if by.written.nullable {
        base.nullable = by.nullable;
    }
    if by.written.is_const {
        base.is_const = by.is_const;
    }
    if by.typed {
        base.ty = by.ty;
        base.typed = true;
        base.defaults = by.defaults;
    }
    let inherited = by.written.default.is_none();
    replace(&mut base.written.default, by.written.default);
    // Neither the default nor anything that its conversion depends on has changed.
    if inherited && !by.typed && !by.written.nullable {
        return;
    }
    // The default is converted again, because a changed type or `nullable` applies to an inherited default,
    // too.
    let mut problems = Diagnostics::new();
    base.default = decode::convert_default(base, &mut problems);
    for mut problem in problems {
        if inherited {
            problem.detail = format!(
                "The override does not agree with the default it leaves in place. {}",
                problem.detail
            );
        }
        diagnostics.push(problem.at(&by.range));
    }
}

fn output(base: &mut Output, by: Output, diagnostics: &mut Diagnostics) {
    diagnostics.extend(by.deprecated.as_ref().map(ignored_deprecation));
    // Only the arguments that the override file sets have precedence. Its defaults for other arguments do not.
    if by.written.value {
        base.expr = by.expr;
    }
    if by.typed {
        base.ty = by.ty;
        base.typed = true;
        base.defaults = by.defaults;
    }
    replace(&mut base.description, by.description);
    if by.written.sensitive {
        base.sensitive = by.sensitive;
    }
    if by.written.ephemeral {
        base.ephemeral = by.ephemeral;
    }
}

fn call(base: &mut ModuleCall, by: ModuleCall) {
    replace(&mut base.source, by.source);
    replace(&mut base.version, by.version);
    replace(&mut base.count, by.count);
    replace(&mut base.for_each, by.for_each);
    replace(&mut base.enabled, by.enabled);
    replace(&mut base.providers, by.providers);
    body(&mut base.inputs, by.inputs);
}

fn provider(base: &mut ProviderConfig, by: ProviderConfig) {
    replace(&mut base.version, by.version);
    replace(&mut base.for_each, by.for_each);
    body(&mut base.body, by.body);
}

fn resource(base: &mut Resource, by: Resource) {
    replace(&mut base.count, by.count);
    replace(&mut base.for_each, by.for_each);
    replace(&mut base.provider_ref, by.provider_ref);
    replace(&mut base.connection, by.connection);
    // All provisioners are replaced together: they have no names by which they could be merged.
    if !by.provisioners.is_empty() {
        base.provisioners = by.provisioners;
    }
    let lifecycle = by.lifecycle;
    replace(
        &mut base.lifecycle.create_before_destroy,
        lifecycle.create_before_destroy,
    );
    replace(&mut base.lifecycle.enabled, lifecycle.enabled);
    if lifecycle.prevent_destroy_range.is_some() {
        base.lifecycle.prevent_destroy = lifecycle.prevent_destroy;
        base.lifecycle.prevent_destroy_if = lifecycle.prevent_destroy_if;
        base.lifecycle.prevent_destroy_range = lifecycle.prevent_destroy_range;
    }
    match (&base.lifecycle.ignore_changes, lifecycle.ignore_changes) {
        // As in Terraform, `all` cannot be narrowed by an override.
        (IgnoreChanges::All, _) | (_, IgnoreChanges::None) => {}
        (_, IgnoreChanges::Paths(paths)) if paths.is_empty() => {}
        (_, by) => base.lifecycle.ignore_changes = by,
    }
    if !lifecycle.action_triggers.is_empty() {
        base.lifecycle.action_triggers = lifecycle.action_triggers;
    }
    body(&mut base.body, by.body);
}

fn action(base: &mut Action, by: Action) {
    replace(&mut base.count, by.count);
    replace(&mut base.for_each, by.for_each);
    replace(&mut base.provider_ref, by.provider_ref);
    match (&mut base.config, by.config) {
        (Some(base), Some(by)) => body(base, by),
        (base, by) => replace(base, by),
    }
}

/// Replaces attributes one by one, and nested blocks type by type.
fn body(base: &mut Arc<Body>, by: Arc<Body>) {
    if by.attributes.is_empty() && by.blocks.is_empty() {
        return;
    }
    let base = Arc::make_mut(base);
    // A `dynamic` block replaces blocks of the type that it generates, and is replaced by them.
    let by = with_dynamic(Arc::unwrap_or_clone(by));
    *base = with_dynamic(std::mem::replace(base, Body::empty(&by.range)));
    // In the JSON syntax, only a schema shows whether a property is an argument or blocks. As it may be blocks, it
    // replaces blocks and is replaced by them.
    let open: BTreeSet<Arc<str>> = by
        .attributes
        .iter()
        .filter(|a| matches!(a.expr, Expr::Json(_)))
        .map(|a| a.name.clone())
        .collect();
    base.blocks.retain(|b| !open.contains(&schema_type(b)));
    for attribute in by.attributes {
        match base.attributes.iter_mut().find(|a| a.name == attribute.name) {
            Some(old) => *old = attribute,
            None => base.attributes.push(attribute),
        }
    }
    let replaced: BTreeSet<Arc<str>> = by.blocks.iter().map(schema_type).collect();
    base.blocks.retain(|b| !replaced.contains(&schema_type(b)));
    let is_open = |a: &Attribute| matches!(a.expr, Expr::Json(_));
    base.attributes.retain(|a| !(is_open(a) && replaced.contains(&a.name)));
    base.blocks.extend(by.blocks);
}

/// Returns a body whose dynamic blocks are recognized as blocks, in the JSON syntax, too.
fn with_dynamic(body: Body) -> Body {
    let spec = BodySpec {
        attributes: &[],
        blocks: &[("dynamic", &["type"])],
    };
    // Problems are dropped here: decoding the body reports them.
    if body.blocks.iter().all(|b| &*b.ty != "dynamic") && body.attribute("dynamic").is_some() {
        content::resolve(body, spec, &mut Diagnostics::new())
    } else {
        body
    }
}

/// Returns the type of a block, or of the blocks that a `dynamic` block makes.
fn schema_type(block: &Block) -> Arc<str> {
    match (&*block.ty, block.labels.first()) {
        ("dynamic", Some(label)) => label.text.clone(),
        _ => block.ty.clone(),
    }
}
