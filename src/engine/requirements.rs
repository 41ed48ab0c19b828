//! Provider requirements: the providers and provisioners that a configuration and a state use.

use std::collections::BTreeSet;
use std::sync::Arc;

use addrs::Provider;
use config::{Config, Connection, Provisioner};
use lang::refs::{ProviderFunction, provider_functions, provider_functions_in_body};
use state::State;

use crate::removals::Removals;

/// Returns the providers that a configuration and a state require: for resources, also those that exist only in the state, for actions
/// and for provider blocks.
#[must_use]
pub fn providers_needed(config: &Config, state: &State) -> BTreeSet<Provider> {
    // If the block of a resource in the state was removed, its provider is needed to destroy the objects.
    let mut out: BTreeSet<Provider> = state.resources.values().map(|r| r.provider.provider.clone()).collect();
    for node in config.nodes() {
        for resource in node.module.resources.values() {
            out.insert(node.provider(&resource.local_provider()).provider.clone());
        }
        for action in node.module.actions.values() {
            out.insert(node.provider(&action.local_provider()).provider.clone());
        }
        for local in node.module.provider_configs.keys() {
            out.insert(node.provider(local).provider.clone());
        }
    }
    out
}

/// Returns the providers whose functions a configuration calls.
#[must_use]
pub fn function_providers_needed(config: &Config) -> BTreeSet<Provider> {
    let mut out = BTreeSet::new();
    for node in config.nodes() {
        let module = &node.module;
        let mut called = |calls: Vec<ProviderFunction>| {
            for call in calls {
                // Evaluation reports an undeclared local name, so it is skipped here.
                let required = module.required_providers.get(&call.provider);
                out.extend(required.map(|r| r.provider.clone()));
            }
        };
        let rules = |rules: &[config::CheckRule]| -> Vec<ProviderFunction> {
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
            for expr in resource.repetition().chain(&resource.lifecycle.prevent_destroy_if) {
                called(provider_functions(expr));
            }
            let keys = resource
                .provider_ref
                .iter()
                .filter_map(|reference| reference.key.as_deref());
            keys.for_each(|key| called(provider_functions(key)));
            let listing = resource.list.iter().flat_map(|l| [&l.limit, &l.include_resource]);
            for expr in listing.flatten() {
                called(provider_functions(expr));
            }
            called(provider_functions_in_body(&resource.body));
            called(rules(&resource.lifecycle.preconditions));
            called(rules(&resource.lifecycle.postconditions));
            let triggers = resource.lifecycle.action_triggers.iter();
            for condition in triggers.filter_map(|t| t.condition.as_ref()) {
                called(provider_functions(condition));
            }
            called(in_provisioners(&resource.provisioners, resource.connection.as_ref()));
        }
        for removed in &module.removed {
            called(in_provisioners(&removed.provisioners, removed.connection.as_ref()));
        }
        for action in module.actions.values() {
            for expr in action.count.iter().chain(&action.for_each) {
                called(provider_functions(expr));
            }
            action
                .config
                .iter()
                .for_each(|body| called(provider_functions_in_body(body)));
        }
        for import in &module.imports {
            for expr in import.for_each.iter().chain([import.by.expr(), &import.to]) {
                called(provider_functions(expr));
            }
        }
        for call in module.module_calls.values() {
            for expr in call.repetition() {
                called(provider_functions(expr));
            }
            let passed = call.providers.iter().flatten();
            for key in passed.filter_map(|passed| passed.parent.key.as_deref()) {
                called(provider_functions(key));
            }
            called(provider_functions_in_body(&call.inputs));
        }
    }
    out
}

/// Returns the provider functions that provisioners and connection blocks call.
fn in_provisioners(provisioners: &[Provisioner], connection: Option<&Connection>) -> Vec<ProviderFunction> {
    let connections = provisioners
        .iter()
        .filter_map(|p| p.connection.as_ref())
        .chain(connection);
    let bodies = provisioners.iter().map(|p| &p.body).chain(connections.map(|c| &c.body));
    bodies.flat_map(|body| provider_functions_in_body(body)).collect()
}

/// Returns the types of provisioners that a configuration uses: those of resources, and those of `removed` blocks whose
/// resource is still in the state.
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
