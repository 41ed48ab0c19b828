//! Moves of objects within and between states, for `state mv`. No provider is called.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use addrs::{AbsProviderConfig, AbsResource, AbsResourceInstance, ConfigResource, ModuleInstance, Provider};

use crate::model::{InstanceState, Object, ResourceState, State};
use crate::shared::SharedMap;

/// New addresses of moved resources, to rewrite recorded dependencies. Dependencies order the destruction of objects, so they must follow
/// the moves.
#[derive(Clone, Debug, Default)]
pub struct Relocation {
    to: HashMap<ConfigResource, BTreeSet<ConfigResource>>,
    moved: HashSet<AbsResourceInstance>,
}

impl Relocation {
    /// Collects pairs of the old and the new address of an instance.
    pub fn new<'m>(moved: impl IntoIterator<Item = (&'m AbsResourceInstance, &'m AbsResourceInstance)>) -> Relocation {
        let mut out = Relocation::default();
        for (from, to) in moved {
            out.to.entry(from.config()).or_default().insert(to.config());
            out.moved.insert(to.clone());
        }
        out
    }

    /// Rewrites the dependencies of all objects after moves within this state.
    pub fn rewrite(mut self, state: &mut State) {
        self.drop_unchanged();
        if self.to.is_empty() {
            return;
        }
        // If only some instances of a resource have moved, dependents depend on both the old and the new address.
        for (resource, _, key, _) in state.instances() {
            if let Some(to) = self.to.get_mut(&resource.config())
                && !self.moved.contains(&resource.instance(key.clone()))
            {
                to.insert(resource.config());
            }
        }
        for instance in state.resources.values_mut().flat_map(|r| r.instances.values_mut()) {
            self.rewrite_objects(instance);
        }
    }

    /// Rewrites the dependencies of objects after a move to another state. Dependents that remain in the old state get the new addresses,
    /// too, because they may be moved later.
    pub fn rewrite_between(mut self, from: &mut State, to: &mut State) {
        let mut of_moved = self.clone();
        of_moved.drop_unchanged();
        for address in &of_moved.moved {
            let resource = to.resources.get_mut(&address.containing_resource());
            if let Some(instance) = resource.and_then(|r| r.instances.get_mut(&address.resource.key)) {
                of_moved.rewrite_objects(instance);
            }
        }
        // If the old state has another resource with the new address, rewritten dependencies would refer to that resource, so they are left
        // unchanged.
        let taken: HashSet<ConfigResource> = from.resources.keys().map(AbsResource::config).collect();
        self.to
            .retain(|_, to| to.iter().all(|address| !taken.contains(address)));
        self.moved.clear();
        self.rewrite(from);
    }

    fn drop_unchanged(&mut self) {
        self.to.retain(|from, to| to.len() > 1 || !to.contains(from));
    }

    fn rewrite_objects(&self, instance: &mut InstanceState) {
        for object in instance.current.iter_mut().chain(instance.deposed.values_mut()) {
            self.rewrite_object(object);
        }
    }

    fn rewrite_object(&self, object: &mut Arc<Object>) {
        // An unchanged object stays shared with the earlier state.
        if !object.dependencies.iter().any(|d| self.to.contains_key(d)) {
            return;
        }
        let mut dependencies: Vec<ConfigResource> = Vec::new();
        for dependency in &*object.dependencies {
            match self.to.get(dependency) {
                Some(to) => dependencies.extend(to.iter().cloned()),
                None => dependencies.push(dependency.clone()),
            }
        }
        dependencies.sort_by_cached_key(ToString::to_string);
        dependencies.dedup();
        Arc::make_mut(object).dependencies = dependencies.into();
    }
}

impl State {
    /// Lists the module instances that have resources, among this one and those below it, in the order of addresses.
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

    /// Returns true if a module instance has resources of its own.
    #[must_use]
    pub fn has_module(&self, module: &ModuleInstance) -> bool {
        self.resources.keys().any(|r| r.module == *module)
    }

    /// Removes the resources of a module instance, but not those of the modules below it.
    pub fn take_module(&mut self, module: &ModuleInstance) -> Vec<(AbsResource, ResourceState)> {
        let own: Vec<AbsResource> = self.resources.keys().filter(|r| r.module == *module).cloned().collect();
        let take = |address: AbsResource| self.resources.remove(&address).map(|state| (address, state));
        own.into_iter().filter_map(take).collect()
    }

    /// Puts all objects of an instance at an address that has none. The provider configuration without its key is set for the whole
    /// resource.
    pub fn put_instance(
        &mut self,
        address: &AbsResourceInstance,
        provider: &AbsProviderConfig,
        mut instance: InstanceState,
    ) {
        let resource = self
            .resources
            .entry(address.containing_resource())
            .or_insert_with(|| ResourceState {
                provider: provider.block(),
                instances: SharedMap::default(),
            });
        resource.provider = provider.block();
        instance.provider_key.clone_from(&provider.key);
        resource.instances.insert(address.resource.key.clone(), instance);
    }

    /// Replaces all objects of an instance; `None` removes it.
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

    /// Returns the resources that have objects of a provider.
    pub fn resources_of(&self, provider: &Provider) -> impl Iterator<Item = &AbsResource> {
        let of = move |state: &ResourceState| state.provider.provider == *provider;
        self.resources
            .iter()
            .filter(move |(_, state)| of(state))
            .map(|(address, _)| address)
    }

    /// Assigns the objects of one provider to another; names and aliases of provider configurations do not change.
    pub fn replace_provider(&mut self, from: &Provider, to: &Provider) {
        for state in self.resources.values_mut().filter(|s| s.provider.provider == *from) {
            state.provider = state.provider.with_provider(to.clone());
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

    fn depend(state: &mut State, address: &str, on: &[&str]) {
        let address = addrs::parse::resource_instance(address).unwrap();
        let mut object = (**state.current(&address).unwrap()).clone();
        object.dependencies = on.iter().map(|r| addrs::parse::config_resource(r).unwrap()).collect();
        let provider = AbsProviderConfig::root(Provider::default_for("null"));
        state.set_current(&address, &provider, Some(Arc::new(object)));
    }

    fn dependencies(state: &State, address: &str) -> Vec<String> {
        let object = state
            .current(&addrs::parse::resource_instance(address).unwrap())
            .unwrap();
        object.dependencies.iter().map(ToString::to_string).collect()
    }

    fn relocation(pairs: &[(&str, &str)]) -> Relocation {
        let parse = |text: &str| addrs::parse::resource_instance(text).unwrap();
        let pairs: Vec<_> = pairs.iter().map(|(from, to)| (parse(from), parse(to))).collect();
        Relocation::new(pairs.iter().map(|(from, to)| (from, to)))
    }

    #[test]
    fn dependents_name_the_new_address() {
        // One instance of the resource has not moved.
        let mut state = state(&["a.z", "a.r[0]", "module.n.a.s", "a.user"]);
        depend(&mut state, "a.user", &["a.old", "a.other", "a.r", "module.m.a.s"]);
        relocation(&[("a.old", "a.z"), ("a.r[1]", "a.y"), ("module.m.a.s", "module.n.a.s")]).rewrite(&mut state);
        assert_eq!(
            dependencies(&state, "a.user"),
            ["a.other", "a.r", "a.y", "a.z", "module.n.a.s"]
        );
    }

    #[test]
    fn dependents_that_move_later_name_the_new_address_too() {
        let (mut from, mut to) = (state(&["a.user"]), state(&["a.z", "a.own"]));
        depend(&mut from, "a.user", &["a.old"]);
        // Dependencies of the second state's own objects are not rewritten.
        depend(&mut to, "a.own", &["a.old"]);
        relocation(&[("a.old", "a.z")]).rewrite_between(&mut from, &mut to);
        assert_eq!(dependencies(&from, "a.user"), ["a.z"]);
        assert_eq!(dependencies(&to, "a.own"), ["a.old"]);
        // The dependency is not rewritten if the first state has another resource with the new address.
        let (mut from, mut to) = (state(&["a.user", "a.z"]), state(&["a.z"]));
        depend(&mut from, "a.user", &["a.old"]);
        relocation(&[("a.old", "a.z")]).rewrite_between(&mut from, &mut to);
        assert_eq!(dependencies(&from, "a.user"), ["a.old"]);
        // Objects that move together keep their order.
        let (mut from, mut to) = (state(&[]), state(&["module.n.a.r", "module.n.a.user"]));
        depend(&mut to, "module.n.a.user", &["module.m.a.r"]);
        relocation(&[("module.m.a.r", "module.n.a.r"), ("module.m.a.user", "module.n.a.user")])
            .rewrite_between(&mut from, &mut to);
        assert_eq!(dependencies(&to, "module.n.a.user"), ["module.n.a.r"]);
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
