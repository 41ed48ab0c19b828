//! The document of a configuration, as it stands inside that of a plan.

use std::collections::BTreeSet;
use std::sync::Arc;

use addrs::{AbsProviderConfig, LocalProviderConfig, Mode, Referenceable};
use config::{Config, ModuleNode, Resource};
use lang::eval::{Context, evaluate};
use lang::refs::{reference, traversals};
use lang::scope::{Constant, Reference};
use provider::Schemas;
use schema::{BlockSchema, Nesting};
use serde_json::{Map, Value as Json};
use syntax::Diagnostics;
use syntax::ast::{Body, Expr, TraversalStep};

use super::Object;
use super::values::known_part;

/// The document of a configuration.
#[must_use]
pub fn configuration(config: &Config, schemas: &Schemas) -> Json {
    let mut providers = Map::new();
    for node in config.nodes() {
        for local in names(node) {
            let address = node.provider(&local);
            if !is_implied(config, &address) {
                continue;
            }
            let (owner, name) = owner_of_implied(config, node, &address, &local.name);
            let constraint = owner
                .module
                .required_providers
                .get(&name)
                .and_then(|r| r.constraint.as_ref());
            let document = Object::default()
                .with("name", &*name)
                .with("full_name", address.provider.to_string())
                .with_content("module_address", owner.path.to_string())
                .with_some("version_constraint", constraint.map(|c| c.text.clone()));
            providers.insert(provider_key(owner, &name, &address), document.into());
        }
    }
    for source in config.provider_configs().into_iter().filter(|s| s.block.is_some()) {
        let node = source.node;
        let name = node.module.local_name_for(&source.address.provider);
        let mut key = if node.path.is_root() {
            name.to_string()
        } else {
            format!("{}:{name}", node.path)
        };
        if let Some(alias) = &source.address.alias {
            key = format!("{key}.{alias}");
        }
        let expressions = source.block.and_then(|block| {
            let schema = schemas.providers.get(&source.address.provider)?;
            Some(body_expressions(&block.body, &schema.provider.block))
        });
        let constraint = node
            .module
            .required_providers
            .get(&name)
            .and_then(|r| r.constraint.as_ref());
        let document = Object::default()
            .with("name", &*name)
            .with("full_name", source.address.provider.to_string())
            .with_some("alias", source.address.alias.as_deref())
            .with_content("module_address", node.path.to_string())
            .with_some("version_constraint", constraint.map(|c| c.text.clone()))
            .with_content("expressions", expressions.unwrap_or(Json::Null));
        providers.insert(key, document.into());
    }
    Object::default()
        .with_content("provider_config", providers)
        .with("root_module", module(config, &config.root, schemas))
        .into()
}

/// Whether nobody wrote a block for a provider configuration.
fn is_implied(config: &Config, address: &AbsProviderConfig) -> bool {
    !config
        .provider_configs()
        .iter()
        .any(|s| s.address == *address && s.block.is_some())
}

/// The names by which a module speaks of provider configurations, or may: those of its resources, of what it imports, and
/// of the providers it requires.
fn names(node: &ModuleNode) -> Vec<LocalProviderConfig> {
    let module = &node.module;
    let default = |name: Arc<str>| LocalProviderConfig { name, alias: None };
    let mut out: Vec<LocalProviderConfig> = module.resources.values().map(Resource::local_provider).collect();
    out.extend(module.required_providers.keys().cloned().map(default));
    if node.path.is_root() {
        let own = module
            .imports
            .iter()
            .filter(|import| import.to_resource.module.is_root());
        out.extend(own.map(|import| match &import.provider_ref {
            Some(named) => named.config.clone(),
            None => default(import.to_resource.resource.implied_provider().into()),
        }));
    }
    out
}

/// The module that an implied configuration is shown in, and its name there: from the one that uses it up as long as the
/// callers need the provider, too.
fn owner_of_implied<'c>(
    config: &'c Config,
    node: &'c ModuleNode,
    address: &AbsProviderConfig,
    name: &Arc<str>,
) -> (&'c ModuleNode, Arc<str>) {
    let needs = |node: &ModuleNode| {
        node.module
            .required_providers
            .values()
            .any(|r| r.provider == address.provider)
            || node.module.resources.values().any(|r| r.provider == address.provider)
    };
    let mut owner = (node, name.clone());
    while let Some(caller) = owner
        .0
        .path
        .parent()
        .and_then(|(path, _)| config.node(&path))
        .filter(|n| needs(n))
    {
        owner = (caller, caller.module.local_name_for(&address.provider));
    }
    owner
}

/// The key of a provider configuration: `aws`, `aws.west`, `module.m:aws`.
fn provider_key(owner: &ModuleNode, name: &str, address: &AbsProviderConfig) -> String {
    let mut key = name.to_owned();
    if !owner.path.is_root() {
        key = format!("{}:{key}", owner.path);
    }
    match &address.alias {
        Some(alias) => format!("{key}.{alias}"),
        None => key,
    }
}

fn module(config: &Config, node: &ModuleNode, schemas: &Schemas) -> Json {
    let module_of = &node.module;
    let outputs: Map<String, Json> = module_of
        .outputs
        .iter()
        .map(|(name, output)| {
            let document = Object::default()
                .with_content("sensitive", output.sensitive)
                .with("expression", expression(&output.expr))
                .with_content("depends_on", depends_on(&output.depends_on))
                .with_content("description", output.description.clone().unwrap_or_default());
            (name.to_string(), document.into())
        })
        .collect();
    // Ephemeral resources and the word that variables and outputs are so are not told in this version of the format.
    let lasting = module_of
        .resources
        .values()
        .filter(|r| r.address.mode != Mode::Ephemeral);
    let mut sorted: Vec<&Resource> = lasting.collect();
    sorted.sort_by_key(|r| {
        (
            r.address.mode != Mode::Managed,
            r.address.ty.clone(),
            r.address.name.clone(),
        )
    });
    let resources: Vec<Json> = sorted.into_iter().map(|r| resource(config, node, r, schemas)).collect();
    let variables: Map<String, Json> = module_of
        .variables
        .iter()
        .map(|(name, variable)| {
            let default = variable.default.as_ref().and_then(known_part);
            let document = Object::default()
                .with_some("default", default)
                .with_content("description", variable.description.clone().unwrap_or_default())
                .with_content("sensitive", variable.sensitive);
            (name.to_string(), document.into())
        })
        .collect();
    let calls: Map<String, Json> = module_of
        .module_calls
        .iter()
        .map(|(name, call)| {
            let inputs: Map<String, Json> = call
                .inputs
                .attributes
                .iter()
                .map(|a| (a.name.to_string(), expression(&a.expr)))
                .collect();
            let child = node.children.get(name);
            let document = Object::default()
                .with_content("source", child.map(|c| c.source.clone()).unwrap_or_default())
                .with_content("expressions", inputs)
                .with_content("count_expression", call.count.as_ref().map_or(Json::Null, expression))
                .with_content(
                    "for_each_expression",
                    call.for_each.as_ref().map_or(Json::Null, expression),
                )
                .with("module", child.map_or(Json::Null, |c| module(config, c, schemas)))
                .with_some("version_constraint", call.version.as_ref().map(|c| c.text.clone()))
                .with_content("depends_on", depends_on(&call.depends_on));
            (name.to_string(), document.into())
        })
        .collect();
    Object::default()
        .with_content("outputs", outputs)
        .with_content("resources", resources)
        .with_content("module_calls", calls)
        .with_content("variables", variables)
        .into()
}

fn resource(config: &Config, node: &ModuleNode, resource: &Resource, schemas: &Schemas) -> Json {
    let provider = config.provider_for(&resource.address.in_module(&node.path));
    let schema = schemas.resource(&provider.provider, resource.address.mode, &resource.address.ty);
    // The configuration may belong to a module above this one, which may know the provider by another name.
    let local = resource.local_provider();
    let (owner, name) = if is_implied(config, &provider) {
        owner_of_implied(config, node, &provider, &local.name)
    } else if provider.module == node.path {
        (node, local.name)
    } else {
        let owner = config.node(&provider.module).unwrap_or(node);
        (owner, owner.module.local_name_for(&provider.provider))
    };
    let key = provider_key(owner, &name, &provider);
    let provisioners: Vec<Json> = resource
        .provisioners
        .iter()
        .map(|p| {
            let expressions = schemas
                .provisioners
                .get(&p.ty)
                .map(|s| body_expressions(&p.body, &s.block));
            Object::default()
                .with("type", &*p.ty)
                .with_content("expressions", expressions.unwrap_or(Json::Null))
                .into()
        })
        .collect();
    Object::default()
        .with("address", resource.address.to_string())
        .with("mode", resource.address.mode.as_str())
        .with("type", &*resource.address.ty)
        .with("name", &*resource.address.name)
        .with("provider_config_key", key)
        .with_content("provisioners", provisioners)
        .with_content(
            "expressions",
            schema.map_or(Json::Null, |s| body_expressions(&resource.body, &s.block)),
        )
        .with("schema_version", schema.map_or(0, |s| s.version))
        .with_content(
            "count_expression",
            resource.count.as_ref().map_or(Json::Null, expression),
        )
        .with_content(
            "for_each_expression",
            resource.for_each.as_ref().map_or(Json::Null, expression),
        )
        .with_content("depends_on", depends_on(&resource.depends_on))
        .into()
}

fn depends_on(references: &[Reference]) -> Vec<String> {
    references.iter().map(|r| r.subject.to_string()).collect()
}

/// The expressions of a body: one for each attribute, and for each type of nested block one object or a list of them.
fn body_expressions(body: &Body, schema: &BlockSchema) -> Json {
    let mut out = Map::new();
    let body = &*lang::body::resolve(body, schema, &mut Diagnostics::new());
    for attribute in &body.attributes {
        if schema.attributes.contains_key(&attribute.name) {
            out.insert(attribute.name.to_string(), expression(&attribute.expr));
        }
    }
    for (name, nested) in &schema.blocks {
        let blocks: Vec<Json> = body
            .blocks
            .iter()
            .filter(|b| b.ty == *name)
            .map(|b| body_expressions(&b.body, &nested.block))
            .collect();
        if blocks.is_empty() {
            continue;
        }
        let document = match nested.nesting {
            Nesting::Single | Nesting::Group => blocks.into_iter().next().unwrap_or(Json::Null),
            Nesting::List | Nesting::Set => Json::Array(blocks),
            Nesting::Map => {
                let labelled = body
                    .blocks
                    .iter()
                    .filter(|b| b.ty == *name)
                    .zip(blocks)
                    .filter_map(|(b, document)| Some((b.labels.first()?.text.to_string(), document)));
                Json::Object(labelled.collect())
            }
        };
        out.insert(name.to_string(), document);
    }
    Json::Object(out)
}

/// An expression: its value if it is constant, else what it refers to. In the JSON syntax it is both what is written, with
/// templates as text, and what they refer to.
fn expression(expr: &Expr) -> Json {
    let found = traversals(expr);
    let written = match expr {
        Expr::Json(json) => known_part(&json.node().literal()),
        _ => None,
    };
    if found.is_empty() {
        let (value, diagnostics) = evaluate(expr, Context::new(&Constant));
        if diagnostics.is_empty() && value.is_wholly_known() {
            return Object::default().with_some("constant_value", known_part(&value)).into();
        }
        return Json::Object(Map::new());
    }
    let mut seen = BTreeSet::new();
    let mut names: Vec<Json> = Vec::new();
    for traversal in found {
        let Ok(reference) = reference(traversal) else { continue };
        for name in prefixes(&reference) {
            if seen.insert(name.clone()) {
                names.push(name.into());
            }
        }
    }
    Object::default()
        .with_some("constant_value", written)
        .with_content("references", names)
        .into()
}

/// What a reference names, followed by each shorter form of it.
fn prefixes(reference: &Reference) -> Vec<String> {
    let subject = reference.subject.to_string();
    let mut text = subject.clone();
    let mut longer = Vec::new();
    for step in &reference.remaining {
        match step {
            TraversalStep::Attribute { name, .. } => text.push_str(&format!(".{name}")),
            TraversalStep::Index { key, .. } => match (key.as_str(), key.as_number()) {
                (Some(s), _) => text.push_str(&format!("[{}]", addrs::module::quoted(s))),
                (_, Some(n)) => text.push_str(&format!("[{n}]")),
                _ => break,
            },
            TraversalStep::Splat { .. } => break,
        }
        longer.push(text.clone());
    }
    longer.reverse();
    longer.push(subject);
    match &reference.subject {
        Referenceable::ResourceInstance(instance) => longer.push(instance.resource.to_string()),
        Referenceable::ModuleOutput(name, key, _) => longer.push(format!("module.{name}{key}")),
        _ => {}
    }
    longer
}
