//! Document of a configuration: a part of plan documents, and a document of its own in OpenTofu.

use std::sync::Arc;

use addrs::Mode as ResourceMode;
use addrs::program::Mode;
use config::{Config, DeprecationNotice, ModuleCall, ModuleNode, Output, Provisioner, Resource, Variable};
use cty::Type;
use engine::instance::recorded_version;
use lang::scope::Reference;
use provider::Schemas;
use serde_json::{Map, Value as Json};
use syntax::ast::Expr;

use super::Object;
use super::actions::configured;
use super::expressions::{body_expressions, expression};
use super::provider_configs::ProviderConfigs;
use super::values::known_part;

/// Details of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Document in plans of Terraform, which has neither ephemeral resources nor the type, `ephemeral` and `deprecated` arguments of
    /// variables and outputs.
    Terraform,
    /// Document of OpenTofu.
    OpenTofu,
    /// OpenTofu's document of one module: nothing that depends on schemas or called modules, and no expressions.
    Module,
}

/// Configuration with everything that its document is made from.
struct Written<'w> {
    config: &'w Config,
    schemas: &'w Schemas,
    providers: ProviderConfigs,
    form: Form,
}

/// Returns the configuration as a part of a plan document.
#[must_use]
pub fn configuration(config: &Config, schemas: &Schemas) -> Json {
    let form = match Mode::current().is_opentofu() {
        true => Form::OpenTofu,
        false => Form::Terraform,
    };
    document(config, schemas, form)
}

/// Returns the document of `show -config`, which only OpenTofu has.
#[must_use]
pub fn whole(config: &Config, schemas: &Schemas) -> Json {
    document(config, schemas, Form::OpenTofu)
}

/// Returns the document of the root module alone. The configuration was loaded without the modules that it calls.
#[must_use]
pub fn module_alone(config: &Config) -> Json {
    document(config, &Schemas::default(), Form::Module)
}

fn document(config: &Config, schemas: &Schemas, form: Form) -> Json {
    let providers = match form {
        Form::Terraform | Form::OpenTofu => ProviderConfigs::new(config, schemas),
        Form::Module => ProviderConfigs::of_root(config),
    };
    let written = Written {
        config,
        schemas,
        providers,
        form,
    };
    let root = written.module(&config.root);
    Object::default()
        .with_content("provider_config", written.providers.into_documents())
        .with("root_module", root)
        .into()
}

impl Written<'_> {
    fn module(&self, node: &ModuleNode) -> Json {
        let module = &node.module;
        let named = |(name, document): (&Arc<str>, Json)| (name.to_string(), document);
        let outputs: Map<String, Json> = module.outputs.iter().map(|(n, o)| named((n, self.output(o)))).collect();
        let variables: Map<String, Json> = module
            .variables
            .iter()
            .map(|(n, v)| named((n, self.variable(v))))
            .collect();
        let calls: Map<String, Json> = module
            .module_calls
            .iter()
            .map(|(n, call)| named((n, self.module_call(call, node.children.get(n)))))
            .collect();
        let actions = match self.form {
            Form::Terraform | Form::OpenTofu => configured(node),
            Form::Module => Vec::new(),
        };
        Object::default()
            .with_content("outputs", outputs)
            .with_content("resources", self.resources(node))
            .with_content("module_calls", calls)
            .with_content("variables", variables)
            .with_content("actions", actions)
            .into()
    }

    fn expression(&self, expr: &Expr) -> Option<Json> {
        (self.form != Form::Module).then(|| expression(expr))
    }

    fn output(&self, output: &Output) -> Json {
        let mut document = Object::default().with_content("sensitive", output.sensitive);
        if self.form != Form::Terraform {
            document = document
                .with_content("ephemeral", output.ephemeral)
                .with_some("deprecated", notice(output.deprecated.as_ref()));
        }
        document
            .with_some("expression", self.expression(&output.expr))
            .with_content("depends_on", depends_on(&output.depends_on))
            .with_content("description", output.description.clone().unwrap_or_default())
            .into()
    }

    fn variable(&self, variable: &Variable) -> Json {
        let mut document = Object::default();
        if self.form != Form::Terraform {
            let ty = Some(&variable.ty).filter(|ty| **ty != Type::Dynamic);
            document = document.with_some("type", ty.map(cty::json::type_to_json));
        }
        document = document
            .with_some("default", variable.default.as_ref().and_then(known_part))
            .with_content("description", variable.description.clone().unwrap_or_default());
        if self.form != Form::Terraform {
            document = document.with_content("required", variable.is_required());
        }
        document = document.with_content("sensitive", variable.sensitive);
        if self.form != Form::Terraform {
            document = document
                .with_content("ephemeral", variable.ephemeral)
                .with_some("deprecated", notice(variable.deprecated.as_ref()));
        }
        document.into()
    }

    fn module_call(&self, call: &ModuleCall, child: Option<&ModuleNode>) -> Json {
        let constraint = child.and_then(|c| c.constraint.as_ref());
        let mut document =
            Object::default().with_content("source", child.map(|c| c.source.clone()).unwrap_or_default());
        if self.form != Form::Module {
            let inputs: Map<String, Json> = call
                .inputs
                .attributes
                .iter()
                .map(|a| (a.name.to_string(), expression(&a.expr)))
                .collect();
            document = document
                .with_content("expressions", inputs)
                .with_content("count_expression", call.count.as_ref().map(expression))
                .with_content("for_each_expression", call.for_each.as_ref().map(expression))
                .with("module", child.map_or(Json::Null, |c| self.module(c)));
        }
        document
            .with_some("version_constraint", constraint.map(|c| c.text.clone()))
            .with_content("depends_on", depends_on(&call.depends_on))
            .into()
    }

    /// Returns managed resources, then data sources, then ephemeral resources.
    fn resources(&self, node: &ModuleNode) -> Vec<Json> {
        let rank = |mode| match mode {
            ResourceMode::Managed => Some(0),
            ResourceMode::Data => Some(1),
            ResourceMode::Ephemeral => (self.form != Form::Terraform).then_some(2),
            ResourceMode::List => None,
        };
        let resources = node.module.resources.values();
        let mut sorted: Vec<(i32, &Resource)> = resources.filter_map(|r| Some((rank(r.address.mode)?, r))).collect();
        sorted.sort_by_key(|(rank, r)| (*rank, r.address.ty.clone(), r.address.name.clone()));
        sorted.into_iter().map(|(_, r)| self.resource(node, r)).collect()
    }

    fn provisioner(&self, provisioner: &Provisioner) -> Json {
        let schema = self.schemas.provisioners.get(&provisioner.ty);
        let expressions = schema.map_or(Json::Null, |s| body_expressions(&provisioner.body, &s.block));
        Object::default()
            .with("type", &*provisioner.ty)
            .with_content("expressions", expressions)
            .into()
    }

    fn resource(&self, node: &ModuleNode, resource: &Resource) -> Json {
        let address = &resource.address;
        let key = self.providers.key_for(&node.path, &resource.local_provider());
        let provisioners: Vec<Json> = resource.provisioners.iter().map(|p| self.provisioner(p)).collect();
        let mut document = Object::default()
            .with("address", address.to_string())
            .with("mode", address.mode.as_str())
            .with("type", &*address.ty)
            .with("name", &*address.name)
            .with("provider_config_key", key)
            .with_content("provisioners", provisioners);
        if self.form != Form::Module {
            let provider = self.config.provider_for(&address.in_module(&node.path));
            let schema = self.schemas.resource(&provider.provider, address.mode, &address.ty);
            let expressions = schema.map_or(Json::Null, |s| body_expressions(&resource.body, &s.block));
            let version = schema.map_or(0, |s| recorded_version(address.mode, s));
            document = document
                .with_content("expressions", expressions)
                .with("schema_version", version)
                .with_content("count_expression", resource.count.as_ref().map(expression))
                .with_content("for_each_expression", resource.for_each.as_ref().map(expression));
        }
        document
            .with_content("depends_on", depends_on(&resource.depends_on))
            .into()
    }
}

fn notice(deprecated: Option<&DeprecationNotice>) -> Option<&str> {
    deprecated.map(|notice| &*notice.message)
}

fn depends_on(references: &[Reference]) -> Vec<String> {
    references.iter().map(|r| r.subject.to_string()).collect()
}
