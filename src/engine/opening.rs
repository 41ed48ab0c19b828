//! What every walk does at the blocks that are not resources: evaluate variables and outputs, open providers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::sync::Arc;

use addrs::{AbsProviderConfig, AbsResource, InstanceKey, Mode, Module, ModuleInstance, Provider};
use config::{Config, ModuleNode};
use cty::Value;
use lang::body::decode_body;
use lang::eval::Context;
use lang::refs::{provider_functions, provider_functions_in_body};
use schema::Schema;
use state::State;
use syntax::ast::Body;
use syntax::content::{did_you_mean, suggest};
use syntax::{Diagnostic, Range};

use crate::eval::checks::{Checked, Kind};
use crate::eval::{Evaluator, Failed, ModuleScope};
use crate::instance::{decode, located};
use crate::objchange::empty_object;
use provider::Schemas;

use crate::providers::Providers;
use crate::removals::Removals;

/// The providers that a configuration and a state need.
#[must_use]
pub fn providers_needed(config: &Config, state: &State) -> BTreeSet<Provider> {
    let mut out: BTreeSet<Provider> = state.resources.values().map(|r| r.provider.provider.clone()).collect();
    for node in config.nodes() {
        for resource in node.module.resources.values() {
            out.insert(node.provider(&resource.local_provider()).provider);
        }
        for local in node.module.provider_configs.keys() {
            out.insert(node.provider(local).provider);
        }
    }
    out
}

/// The providers whose functions a configuration calls.
#[must_use]
pub fn function_providers_needed(config: &Config) -> BTreeSet<Provider> {
    let mut out = BTreeSet::new();
    for node in config.nodes() {
        let module = &node.module;
        let mut called = |names: Vec<(Arc<str>, Range)>| {
            for (name, _) in names {
                out.extend(module.required_providers.get(&name).map(|r| r.provider.clone()));
            }
        };
        let rules = |rules: &[config::CheckRule]| -> Vec<(Arc<str>, Range)> {
            let expressions = rules.iter().flat_map(|r| [&r.condition, &r.error_message]);
            expressions.flat_map(provider_functions).collect()
        };
        for variable in module.variables.values() {
            called(rules(&variable.validations));
        }
        for local in module.locals.values() {
            called(provider_functions(&local.expr));
        }
        for output in module.outputs.values() {
            called(provider_functions(&output.expr));
            called(rules(&output.preconditions));
        }
        for check in module.checks.values() {
            called(rules(&check.asserts));
        }
        for provider in module.provider_configs.values() {
            called(provider_functions_in_body(&provider.body));
        }
        for resource in module.resources.values() {
            for expr in resource.count.iter().chain(&resource.for_each) {
                called(provider_functions(expr));
            }
            called(provider_functions_in_body(&resource.body));
            called(rules(&resource.lifecycle.preconditions));
            called(rules(&resource.lifecycle.postconditions));
            let of_provisioners = resource.provisioners.iter().filter_map(|p| p.connection.as_ref());
            for connection in resource.connection.iter().chain(of_provisioners) {
                called(provider_functions_in_body(&connection.body));
            }
            for provisioner in &resource.provisioners {
                called(provider_functions_in_body(&provisioner.body));
            }
        }
        for import in &module.imports {
            for expr in import.for_each.iter().chain([&import.id, &import.to]) {
                called(provider_functions(expr));
            }
        }
        for call in module.module_calls.values() {
            for expr in call.count.iter().chain(&call.for_each) {
                called(provider_functions(expr));
            }
            called(provider_functions_in_body(&call.inputs));
        }
    }
    out
}

/// The types of provisioners that a configuration uses: those of resources, and those of `removed` blocks whose resource is
/// still in the state.
#[must_use]
pub fn provisioners_needed(config: &Config, state: &State) -> BTreeSet<Arc<str>> {
    let nodes = config.nodes();
    let resources = nodes.iter().flat_map(|n| n.module.resources.values());
    let removals = Removals::new(config);
    let removed = state.resources.keys().filter_map(|r| removals.of_resource(&r.config()));
    resources
        .flat_map(|r| &r.provisioners)
        .chain(removed.flat_map(|r| &r.provisioners))
        .map(|p| p.ty.clone())
        .collect()
}

/// Does something in each instance of a module; a failure in one does not keep the others from being looked at.
pub fn for_each_instance(
    evaluator: &Evaluator<'_>,
    module: &Module,
    mut f: impl FnMut(&ModuleInstance, &ModuleNode) -> Result<(), Failed>,
) -> Result<(), Failed> {
    let Some(node) = evaluator.config().node(module) else {
        return Ok(());
    };
    let mut failed = false;
    for instance in evaluator.module_instances(module)? {
        failed |= f(&instance, node).is_err();
    }
    if failed { Err(Failed) } else { Ok(()) }
}

/// Evaluates a variable in each instance of its module, and its validations.
pub fn visit_variable(evaluator: &Evaluator<'_>, module: &Module, name: &Arc<str>) -> Result<(), Failed> {
    for_each_instance(evaluator, module, |instance, node| {
        evaluator.variable(instance, node, name)?;
        let Some(variable) = node.module.variables.get(name) else {
            return Ok(());
        };
        let scope = evaluator.scope(instance).ok_or(Failed)?;
        let of = Checked::Variable(instance.clone(), name.clone());
        evaluator.check_all(&variable.validations, Kind::Variable, &scope, &of, false)
    })
}

/// Evaluates an output in each instance of its module, its preconditions first; whether they hold is only of interest if
/// `lenient`.
pub fn visit_output(evaluator: &Evaluator<'_>, module: &Module, name: &Arc<str>, lenient: bool) -> Result<(), Failed> {
    for_each_instance(evaluator, module, |instance, node| {
        let scope = evaluator.scope(instance).ok_or(Failed)?;
        let rules = node
            .module
            .outputs
            .get(name)
            .map(|o| o.preconditions.as_slice())
            .unwrap_or_default();
        let of = Checked::Output(instance.clone(), name.clone());
        evaluator.check_all(rules, Kind::Output, &scope, &of, lenient)?;
        evaluator.output(instance, node, name).map(|_| ())
    })
}

/// Evaluates a check block in each instance of its module that is `wanted`.
pub fn visit_check(
    evaluator: &Evaluator<'_>,
    module: &Module,
    name: &Arc<str>,
    wanted: impl Fn(&ModuleInstance) -> bool,
) -> Result<(), Failed> {
    for_each_instance(evaluator, module, |instance, node| {
        let Some(check) = node.module.checks.get(name).filter(|_| wanted(instance)) else {
            return Ok(());
        };
        let scope = evaluator.scope(instance).ok_or(Failed)?;
        let of = Checked::Check(instance.clone(), name.clone());
        evaluator.check_all(&check.asserts, Kind::Assertion, &scope, &of, true)
    })
}

/// The value of a provider configuration, marks removed.
pub fn provider_config_value(
    evaluator: &Evaluator<'_>,
    schema: &Schema,
    address: &AbsProviderConfig,
) -> Result<Value, Failed> {
    let sources = evaluator.config().provider_configs();
    let source = sources.iter().find(|s| s.address == *address);
    let Some((source, block)) = source.and_then(|s| Some((s, s.block?))) else {
        return Ok(empty_object(&schema.block));
    };
    // Modules with provider configurations of their own cannot be repeated, so there is one instance, without keys.
    let instance = source.node.path.0.iter().fold(ModuleInstance::root(), |m, name| {
        m.child(name.clone(), InstanceKey::None)
    });
    let scope = evaluator.scope(&instance).ok_or(Failed)?;
    let value = object_config(evaluator, address, &block.body, schema, &scope)?;
    Ok(value.unmark_deep().0)
}

/// What a block of an object says, by the schema of its type. Problems are told of the object.
pub fn object_config(
    evaluator: &Evaluator<'_>,
    address: &impl Display,
    body: &Body,
    schema: &Schema,
    scope: &ModuleScope<'_>,
) -> Result<Value, Failed> {
    let (config, diagnostics) = decode_body(body, &schema.block, Context::new(scope));
    let failed = diagnostics.has_errors();
    evaluator.report(diagnostics.into_iter().map(|d| d.about(address)));
    if failed { Err(Failed) } else { Ok(config) }
}

/// Whether a provider configuration is there: written, or the root module's default one, which need not be written.
#[must_use]
pub fn is_present(config: &Config, address: &AbsProviderConfig) -> bool {
    (address.module.is_root() && address.alias.is_none())
        || config.provider_configs().iter().any(|s| s.address == *address)
}

/// Evaluates, checks and opens a provider configuration.
pub async fn open(
    evaluator: &Evaluator<'_>,
    providers: &Providers<'_>,
    address: &AbsProviderConfig,
) -> Result<(), Failed> {
    let fail = |diagnostics| {
        evaluator.report(diagnostics);
        Failed
    };
    let Some(schema) = providers.schemas().providers.get(&address.provider) else {
        return Err(fail(
            Diagnostic::error(
                "Provider not available",
                format!("The provider {} was not started.", address.provider),
            )
            .into(),
        ));
    };
    let value = provider_config_value(evaluator, &schema.provider, address)?;
    let sources = evaluator.config().provider_configs();
    let block = sources.iter().find(|s| s.address == *address).and_then(|s| s.block);
    let written = block.map(|b| (&*b.body, &schema.provider));
    let running = providers.unconfigured(&address.provider).await.map_err(fail)?;
    let answer = running.validate_provider(value.clone()).await.map_err(fail)?;
    let mut problems = located(answer.diagnostics, written, address);
    if problems.has_errors() && block.is_none() && schema.provider.block.attributes.values().any(|a| a.required) {
        problems.push(
            Diagnostic::error(
                format!("Invalid provider configuration: {}", address.provider),
                "This provider requires explicit configuration. Add a provider block to the root module and configure its \
                 required arguments as described in its documentation.",
            )
            .about(address),
        );
    }
    if problems.has_errors() {
        return Err(fail(problems));
    }
    evaluator.report(problems);
    let configured = providers.configure(address, value).await.map_err(fail)?;
    let problems = located(configured, written, address);
    let failed = problems.has_errors();
    evaluator.report(problems);
    if failed { Err(Failed) } else { Ok(()) }
}

/// The schema of a resource type, or an error that names the nearest type there is.
pub fn resource_schema<'s>(
    schemas: &'s Schemas,
    provider: &Provider,
    resource: &addrs::Resource,
    range: Option<&Range>,
) -> Result<&'s Schema, Diagnostic> {
    if let Some(schema) = schemas.resource(provider, resource.mode, &resource.ty) {
        return Ok(schema);
    }
    let (what, kind, known): (&str, &str, Vec<&Arc<str>>) = match (schemas.providers.get(provider), resource.mode) {
        (None, _) => ("resource type", "Invalid resource type", Vec::new()),
        (Some(p), Mode::Managed) => ("resource type", "Invalid resource type", p.resources.keys().collect()),
        (Some(p), Mode::Data) => ("data source", "Invalid data source", p.data_sources.keys().collect()),
        (Some(p), Mode::Ephemeral) => (
            "ephemeral resource",
            "Invalid ephemeral resource",
            p.ephemeral.keys().collect(),
        ),
    };
    let other_mode = schemas.providers.get(provider).is_some_and(|p| match resource.mode {
        Mode::Managed => p.data_sources.contains_key(&resource.ty),
        _ => p.resources.contains_key(&resource.ty),
    });
    let hint = if other_mode {
        let other = if resource.mode == Mode::Managed {
            "data source"
        } else {
            "managed resource type"
        };
        format!("\n\nDid you intend to use the {other} \"{}\"?", resource.ty)
    } else {
        did_you_mean(suggest(&resource.ty, known.into_iter().map(|n| &**n)))
    };
    let diagnostic = Diagnostic::error(
        kind,
        format!(
            "The provider {} does not support {what} \"{}\".{hint}",
            provider.for_display(),
            resource.ty
        ),
    );
    Err(match range {
        Some(range) => diagnostic.at(range),
        None => diagnostic,
    })
}

/// The stored objects of a resource as values, with their marks. Objects that do not fit their schema are left out: the
/// walk reports them when it comes to the resource.
#[must_use]
pub fn stored_objects(state: &State, schemas: &Schemas, resource: &AbsResource) -> BTreeMap<InstanceKey, Value> {
    let Some(existing) = state.resources.get(resource) else {
        return BTreeMap::new();
    };
    let schema = schemas.resource(
        &existing.provider.provider,
        resource.resource.mode,
        &resource.resource.ty,
    );
    let Some(schema) = schema else { return BTreeMap::new() };
    let instances = existing.instances.iter().filter_map(|(key, instance)| {
        let object = instance.current.as_ref()?;
        let stored = decode(schema, object, resource).ok()?;
        Some((key.clone(), stored.marked(schema)))
    });
    instances.collect()
}

/// What stands for the object of a resource that is not repeated and does not exist, where nothing is created.
#[must_use]
pub fn missing_object(config: &Config, schemas: &Schemas, resource: &AbsResource) -> Option<(InstanceKey, Value)> {
    let address = resource.config();
    let block = config.resource(&address)?;
    if block.count.is_some() || block.for_each.is_some() {
        return None;
    }
    let addrs::Resource { mode, ty, .. } = &address.resource;
    let schema = schemas.resource(&config.provider_for(&address).provider, *mode, ty)?;
    Some((InstanceKey::None, Value::unknown(schema.implied_type())))
}
