//! Objects that change their address: what `state mv` does to a state, without asking any provider.

use addrs::{AbsProviderConfig, AbsResource, AbsResourceInstance, ModuleInstance, Provider};

use crate::model::{InstanceState, ResourceState, State};

impl State {
    /// The module instances that have resources of their own: this one and those below it, in the order of addresses.
    #[must_use]
    pub fn modules_below(&self, module: &ModuleInstance) -> Vec<ModuleInstance> {
        let mut out: Vec<ModuleInstance> = Vec::new();
        for resource in self.resources.keys().filter(|r| module.contains(&r.module)) {
            if out.last() != Some(&resource.module) {
                out.push(resource.module.clone());
            }
        }
        out.sort();
        out.dedup();
        out
    }

    /// Whether a module instance has resources of its own.
    #[must_use]
    pub fn has_module(&self, module: &ModuleInstance) -> bool {
        self.resources.keys().any(|r| r.module == *module)
    }

    /// Takes out everything that is in a module instance itself, not what is below it.
    pub fn take_module(&mut self, module: &ModuleInstance) -> Vec<(AbsResource, ResourceState)> {
        let own: Vec<AbsResource> = self.resources.keys().filter(|r| r.module == *module).cloned().collect();
        let take = |address: AbsResource| self.resources.remove(&address).map(|state| (address, state));
        own.into_iter().filter_map(take).collect()
    }

    /// Puts all objects of an instance under an address, where nothing is yet; the provider configuration becomes that of
    /// the whole resource.
    pub fn put_instance(
        &mut self,
        address: &AbsResourceInstance,
        provider: &AbsProviderConfig,
        instance: InstanceState,
    ) {
        let resource = self
            .resources
            .entry(address.containing_resource())
            .or_insert_with(|| ResourceState {
                provider: provider.clone(),
                instances: std::collections::BTreeMap::new(),
            });
        resource.provider = provider.clone();
        resource.instances.insert(address.resource.key.clone(), instance);
    }

    /// Makes these all the objects that an instance has; none takes it out.
    pub fn set_instance(
        &mut self,
        address: &AbsResourceInstance,
        provider: &AbsProviderConfig,
        objects: Option<InstanceState>,
    ) {
        match objects {
            Some(objects) => self.put_instance(address, provider, objects),
            None => drop(self.remove_instance(address)),
        }
    }

    /// The resources with objects of a provider.
    pub fn resources_of(&self, provider: &Provider) -> impl Iterator<Item = &AbsResource> {
        let of = move |state: &ResourceState| state.provider.provider == *provider;
        self.resources
            .iter()
            .filter(move |(_, state)| of(state))
            .map(|(address, _)| address)
    }

    /// Assigns the objects of one provider to another, whatever the provider configuration is called.
    pub fn replace_provider(&mut self, from: &Provider, to: &Provider) {
        for state in self.resources.values_mut().filter(|s| s.provider.provider == *from) {
            state.provider.provider = to.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Attributes, Object, RawJson};

    fn state(addresses: &[&str]) -> State {
        let mut state = State::new();
        let provider = AbsProviderConfig::root(Provider::default_for("null"));
        for text in addresses {
            let object = Object::new(0, Attributes::Json(RawJson::parse("{}").unwrap()));
            let address = addrs::parse::resource_instance(text).unwrap();
            state.set_current(&address, &provider, Some(Arc::new(object)));
        }
        state
    }

    fn module(text: &str) -> ModuleInstance {
        addrs::parse::module_instance(text).unwrap()
    }

    #[test]
    fn a_module_is_taken_without_those_below() {
        let mut state = state(&["a.b", "module.m.a.b", "module.m.a.c", "module.m.module.n[0].a.b"]);
        assert_eq!(
            state.modules_below(&module("module.m")),
            [module("module.m"), module("module.m.module.n[0]")]
        );
        assert_eq!(state.take_module(&module("module.m")).len(), 2);
        assert!(!state.has_module(&module("module.m")));
        assert!(state.has_module(&module("module.m.module.n[0]")));
        assert_eq!(state.instance_count(), 2);
    }

    #[test]
    fn replace_provider_changes_the_provider_of_objects() {
        let mut state = state(&["a.b", "a.c[0]"]);
        let (from, to) = (Provider::default_for("null"), Provider::default_for("other"));
        assert_eq!(state.resources_of(&from).count(), 2);
        state.replace_provider(&from, &to);
        assert_eq!(state.resources_of(&from).count(), 0);
        assert_eq!(state.resources_of(&to).count(), 2);
    }
}
