//! Schemas in a saved plan: those of the types that it uses.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use addrs::{Mode, Provider};
use config::Config;
use engine::plan::Plan;
use provider::{ProviderSchema, SchemaMap, Schemas};

/// Types of one provider that a plan uses.
#[derive(Default)]
struct Used {
    resources: BTreeSet<(Mode, Arc<str>)>,
    actions: BTreeSet<Arc<str>>,
}

/// Selects the schemas of all types in a configuration, its plan and its states, and those of provider configurations and provisioners. The
/// schemas of other types are left out, because the largest providers have thousands of types.
#[must_use]
pub fn schemas_of(all: &Schemas, config: &Config, plan: &Plan) -> Schemas {
    let used = used(config, plan);
    let providers = all.providers.iter().map(|(address, schema)| {
        let nothing = Used::default();
        let restricted = restricted(schema, used.get(address).unwrap_or(&nothing));
        (address.clone(), Arc::new(restricted))
    });
    Schemas {
        providers: providers.collect(),
        provisioners: all.provisioners.clone(),
    }
}

fn used(config: &Config, plan: &Plan) -> BTreeMap<Provider, Used> {
    let mut used: BTreeMap<Provider, Used> = BTreeMap::new();
    let mut add = |provider: &Provider, mode: Mode, ty: &Arc<str>| {
        let of = used.entry(provider.clone()).or_default();
        of.resources.insert((mode, ty.clone()));
    };
    for node in config.nodes() {
        for resource in node.module.resources.values() {
            let provider = node.provider(&resource.local_provider()).provider.clone();
            add(&provider, resource.address.mode, &resource.address.ty);
        }
    }
    // Types that only a state has are needed, too, to show deletions and changes outside of Terraform.
    for (address, resource) in plan.prior_state.resources.iter().chain(&plan.previous_state.resources) {
        add(&resource.provider.provider, address.resource.mode, &address.resource.ty);
    }
    for change in plan.changes.iter().chain(&plan.drift) {
        let resource = &change.address.resource.resource;
        add(&change.provider.provider, resource.mode, &resource.ty);
    }
    for invocation in &plan.invocations {
        let of = used.entry(invocation.provider.provider.clone()).or_default();
        of.actions.insert(invocation.address.action.action.ty.clone());
    }
    used
}

fn restricted(schema: &ProviderSchema, used: &Used) -> ProviderSchema {
    fn used_types<T: Clone>(mode: Mode, all: &SchemaMap<T>, used: &Used) -> SchemaMap<T> {
        let types = used.resources.iter().filter(|(of, _)| *of == mode);
        types
            .filter_map(|(_, ty)| Some((ty.clone(), all.get(ty)?.clone())))
            .collect()
    }
    let actions = used.actions.iter();
    ProviderSchema {
        provider: schema.provider.clone(),
        provider_meta: schema.provider_meta.clone(),
        resources: used_types(Mode::Managed, &schema.resources, used),
        data_sources: used_types(Mode::Data, &schema.data_sources, used),
        ephemeral: used_types(Mode::Ephemeral, &schema.ephemeral, used),
        lists: used_types(Mode::List, &schema.lists, used),
        actions: actions
            .filter_map(|ty| Some((ty.clone(), schema.actions.get(ty)?.clone())))
            .collect(),
        capabilities: schema.capabilities,
        state_only: schema.state_only.clone(),
        ..ProviderSchema::default()
    }
}
