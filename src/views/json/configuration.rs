//! Document of a configuration, as a part of a plan document.

use addrs::Mode;
use config::{Config, ModuleCall, ModuleNode, Resource};
use engine::instance::recorded_version;
use lang::scope::Reference;
use provider::Schemas;
use serde_json::{Map, Value as Json};

use super::Object;
use super::actions::configured;
use super::expressions::{body_expressions, expression};
use super::provider_configs::ProviderConfigs;
use super::values::known_part;

#[must_use]
pub fn configuration(config: &Config, schemas: &Schemas) -> Json {
    let providers = ProviderConfigs::new(config, schemas);
    let root = module(config, &config.root, schemas, &providers);
    Object::default()
        .with_content("provider_config", providers.into_documents())
        .with("root_module", root)
        .into()
}

fn module(config: &Config, node: &ModuleNode, schemas: &Schemas, providers: &ProviderConfigs) -> Json {
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
    // In this format version, the document contains neither ephemeral resources nor the `ephemeral` argument of
    // variables and outputs.
    let stored = module_of
        .resources
        .values()
        .filter(|r| !matches!(r.address.mode, Mode::Ephemeral | Mode::List));
    // As in Terraform, managed resources come before data sources.
    let mut sorted: Vec<&Resource> = stored.collect();
    sorted.sort_by_key(|r| {
        (
            r.address.mode != Mode::Managed,
            r.address.ty.clone(),
            r.address.name.clone(),
        )
    });
    let resources: Vec<Json> = sorted
        .into_iter()
        .map(|r| resource(config, node, r, schemas, providers))
        .collect();
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
            let child = node.children.get(name);
            let inside = child.map_or(Json::Null, |c| module(config, c, schemas, providers));
            (name.to_string(), module_call(call, child, inside))
        })
        .collect();
    Object::default()
        .with_content("outputs", outputs)
        .with_content("resources", resources)
        .with_content("module_calls", calls)
        .with_content("variables", variables)
        .with_content("actions", configured(node))
        .into()
}

fn module_call(call: &ModuleCall, child: Option<&ModuleNode>, inside: Json) -> Json {
    let inputs: Map<String, Json> = call
        .inputs
        .attributes
        .iter()
        .map(|a| (a.name.to_string(), expression(&a.expr)))
        .collect();
    let constraint = child.and_then(|c| c.constraint.as_ref());
    Object::default()
        .with_content("source", child.map(|c| c.source.clone()).unwrap_or_default())
        .with_content("expressions", inputs)
        .with_content("count_expression", call.count.as_ref().map_or(Json::Null, expression))
        .with_content(
            "for_each_expression",
            call.for_each.as_ref().map_or(Json::Null, expression),
        )
        .with("module", inside)
        .with_some("version_constraint", constraint.map(|c| c.text.clone()))
        .with_content("depends_on", depends_on(&call.depends_on))
        .into()
}

fn resource(
    config: &Config,
    node: &ModuleNode,
    resource: &Resource,
    schemas: &Schemas,
    providers: &ProviderConfigs,
) -> Json {
    let provider = config.provider_for(&resource.address.in_module(&node.path));
    let schema = schemas.resource(&provider.provider, resource.address.mode, &resource.address.ty);
    let key = providers.key_for(&node.path, &resource.local_provider());
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
        .with(
            "schema_version",
            schema.map_or(0, |s| recorded_version(resource.address.mode, s)),
        )
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
