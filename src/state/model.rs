//! The state in memory.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use addrs::{AbsProviderConfig, AbsResource, AbsResourceInstance, ConfigResource, InstanceKey};

use crate::attributes::RawJson;
use crate::{Attributes, SharedMap};

/// A snapshot of all known objects and outputs.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// Version of the tool that wrote the snapshot; empty before the first write.
    pub terraform_version: String,
    /// Number of the snapshot in its lineage.
    pub serial: u64,
    /// UUID that all snapshots of one state share. It is assigned at the first write, and empty before.
    pub lineage: String,
    pub outputs: BTreeMap<Arc<str>, OutputValue>,
    /// Resources that have instances.
    pub resources: SharedMap<AbsResource, ResourceState>,
    /// Results of the configuration's checks when the snapshot was made; `None` if there were none.
    pub check_results: Option<Arc<[CheckResult]>>,
}

/// An output of the root module: its value, and whether it is sensitive.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputValue {
    pub value: cty::Value,
    pub sensitive: bool,
}

/// A resource: its instances, and the provider configuration that manages them.
#[derive(Clone, Debug)]
pub struct ResourceState {
    /// Provider configuration (without instance key) that manages the instances, and is needed to destroy them.
    pub provider: AbsProviderConfig,
    pub instances: SharedMap<InstanceKey, InstanceState>,
}

impl ResourceState {
    /// Returns the provider configuration of an instance. If its block has `for_each`, the key is included.
    #[must_use]
    pub fn provider_of(&self, key: &InstanceKey) -> AbsProviderConfig {
        let instance = self.instances.get(key).and_then(|i| i.provider_key.clone());
        self.provider.instance(instance)
    }
}

/// The objects of one instance of a resource, and the key of its provider configuration.
#[derive(Clone, Debug, Default)]
pub struct InstanceState {
    pub current: Option<Arc<Object>>,
    /// Objects that were replaced and remain to be destroyed.
    pub deposed: BTreeMap<DeposedKey, Arc<Object>>,
    /// Key of the instance of the provider configuration, if its block has `for_each`.
    pub provider_key: Option<Arc<str>>,
}

impl InstanceState {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.current.is_none() && self.deposed.is_empty()
    }
}

/// Name of a deposed object among those of its instance: eight hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeposedKey(pub Arc<str>);

impl DeposedKey {
    #[must_use]
    pub fn random() -> DeposedKey {
        let [a, b, c, d, ..] = *uuid::Uuid::new_v4().as_bytes();
        DeposedKey(format!("{a:02x}{b:02x}{c:02x}{d:02x}").into())
    }
}

impl fmt::Display for DeposedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Status of an object, which decides whether it is replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ObjectStatus {
    #[default]
    Ready,
    /// To be replaced, because its creation failed half-way, or the user marked it with `taint`.
    Tainted,
}

/// An object that a provider manages, or the result of a data source.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    pub status: ObjectStatus,
    /// Version of the resource type's schema that the attributes follow.
    pub schema_version: u64,
    pub attributes: Attributes,
    /// Paths of the attributes that must not be shown.
    pub sensitive_paths: Vec<cty::Path>,
    /// Private data of the provider.
    pub private: Vec<u8>,
    /// Resources whose objects must be destroyed after this object, sorted by address.
    pub dependencies: Arc<[ConfigResource]>,
    /// Set if a replacement must create the new object before this one is destroyed.
    pub create_before_destroy: bool,
    /// Set if `lifecycle.destroy` was false when the object was last applied: such an object leaves the state without being destroyed.
    pub skip_destroy: bool,
    /// Types of the destroy-time provisioners in the block that the object was last applied with.
    pub destroy_provisioners: Arc<[Arc<str>]>,
    /// Identity of the object. An identity without a value and with schema version 0 is `None`.
    pub identity: Option<Identity>,
}

impl Object {
    /// Creates an object that is ready and has these attributes. The other fields are empty or false.
    #[must_use]
    pub fn new(schema_version: u64, attributes: Attributes) -> Object {
        Object {
            status: ObjectStatus::Ready,
            schema_version,
            attributes,
            sensitive_paths: Vec::new(),
            private: Vec::new(),
            dependencies: Arc::default(),
            create_before_destroy: false,
            skip_destroy: false,
            destroy_provisioners: Arc::default(),
            identity: None,
        }
    }

    #[must_use]
    pub fn with_status(&self, status: ObjectStatus) -> Object {
        Object { status, ..self.clone() }
    }
}

/// Identity of an object: the attributes by which its provider finds it, independent of states. Terraform 1.12 and later write
/// it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Version of the identity's schema.
    pub schema_version: u64,
    /// Attributes, as a JSON object.
    pub value: Option<RawJson>,
}

/// Results of the checks of one block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckResult {
    /// Kind of the object: `resource`, `output`, `check` or `var`.
    pub object_kind: Arc<str>,
    /// Address of the block.
    pub config_addr: Arc<str>,
    /// Worst result among the instances.
    pub status: CheckStatus,
    /// Instances, as far as they are known.
    pub objects: Vec<CheckedObject>,
}

/// Results of the checks of one instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedObject {
    pub object_addr: Arc<str>,
    pub status: CheckStatus,
    /// Error messages of the failed conditions.
    pub failure_messages: Vec<Arc<str>>,
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CheckStatus {
    Pass,
    Fail,
    Error,
    Unknown,
}

impl CheckStatus {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            CheckStatus::Pass => "pass",
            CheckStatus::Fail => "fail",
            CheckStatus::Error => "error",
            CheckStatus::Unknown => "unknown",
        }
    }
}

impl State {
    #[must_use]
    pub fn new() -> State {
        State::default()
    }

    /// Returns true if there is neither a resource nor an output.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.resources.is_empty() && self.outputs.is_empty()
    }

    /// Returns true if there is a managed or a data resource.
    #[must_use]
    pub fn has_resources(&self) -> bool {
        !self.resources.is_empty()
    }

    #[must_use]
    pub fn instance(&self, address: &AbsResourceInstance) -> Option<&InstanceState> {
        self.resources
            .get(&address.containing_resource())?
            .instances
            .get(&address.resource.key)
    }

    /// Returns the current object of an instance; `None` if there is none.
    #[must_use]
    pub fn current(&self, address: &AbsResourceInstance) -> Option<&Arc<Object>> {
        self.instance(address)?.current.as_ref()
    }

    /// Returns all instances with their resources, in the order of addresses.
    pub fn instances(&self) -> impl Iterator<Item = (&AbsResource, &ResourceState, &InstanceKey, &InstanceState)> {
        self.resources.iter().flat_map(|(address, resource)| {
            resource
                .instances
                .iter()
                .map(move |(key, instance)| (address, resource, key, instance))
        })
    }

    /// Returns the number of instances that have a current or a deposed object.
    #[must_use]
    pub fn instance_count(&self) -> usize {
        self.resources.values().map(|r| r.instances.len()).sum()
    }

    /// Sets or removes the current object of an instance. The provider configuration without its key is set for the whole resource. If an
    /// instance has no objects left, or a resource no instances, it is removed.
    pub fn set_current(
        &mut self,
        address: &AbsResourceInstance,
        provider: &AbsProviderConfig,
        object: Option<Arc<Object>>,
    ) {
        self.change(address, Some(provider), |instance| instance.current = object);
    }

    /// Sets or removes a deposed object; see [`State::set_current`].
    pub fn set_deposed(
        &mut self,
        address: &AbsResourceInstance,
        provider: &AbsProviderConfig,
        key: DeposedKey,
        object: Option<Arc<Object>>,
    ) {
        self.change(address, Some(provider), |instance| match object {
            Some(object) => {
                instance.deposed.insert(key, object);
            }
            None => {
                instance.deposed.remove(&key);
            }
        });
    }

    /// Deposes the current object. Returns its new key, or `None` if there is no current object.
    pub fn depose(&mut self, address: &AbsResourceInstance) -> Option<DeposedKey> {
        let instance = self
            .resources
            .get_mut(&address.containing_resource())?
            .instances
            .get_mut(&address.resource.key)?;
        let object = instance.current.take()?;
        let mut key = DeposedKey::random();
        // A random key of four bytes can repeat, which would overwrite a deposed object.
        while instance.deposed.contains_key(&key) {
            key = DeposedKey::random();
        }
        instance.deposed.insert(key.clone(), object);
        Some(key)
    }

    /// Makes a deposed object the current one. Returns false if there is a current object already, or no such deposed one.
    pub fn restore_deposed(&mut self, address: &AbsResourceInstance, key: &DeposedKey) -> bool {
        let Some(instance) = self
            .resources
            .get_mut(&address.containing_resource())
            .and_then(|r| r.instances.get_mut(&address.resource.key))
        else {
            return false;
        };
        if instance.current.is_some() {
            return false;
        }
        instance.current = instance.deposed.remove(key);
        instance.current.is_some()
    }

    /// Removes an instance with all its objects, and returns it; `None` if there is no such instance.
    pub fn remove_instance(&mut self, address: &AbsResourceInstance) -> Option<InstanceState> {
        let mut removed = None;
        self.change(address, None, |instance| removed = Some(std::mem::take(instance)));
        removed
    }

    fn change(
        &mut self,
        address: &AbsResourceInstance,
        provider: Option<&AbsProviderConfig>,
        act: impl FnOnce(&mut InstanceState),
    ) {
        let containing = address.containing_resource();
        let key = &address.resource.key;
        let resource = match provider {
            Some(provider) => {
                let new = || ResourceState {
                    provider: provider.block(),
                    instances: SharedMap::default(),
                };
                let resource = self.resources.entry(containing.clone()).or_insert_with(new);
                resource.provider = provider.block();
                resource
            }
            // An entry cannot be created without a provider. Removing an object that does not exist changes nothing.
            None if self.instance(address).is_none() => return,
            None => match self.resources.get_mut(&containing) {
                Some(resource) => resource,
                None => return,
            },
        };
        let instance = resource.instances.entry(key.clone()).or_default();
        if let Some(provider) = provider {
            instance.provider_key.clone_from(&provider.key);
        }
        act(instance);
        if instance.is_empty() {
            resource.instances.remove(key);
            if resource.instances.is_empty() {
                self.resources.remove(&containing);
            }
        }
    }

    /// Returns this state as the snapshot that a store writes after `known`. It has the lineage of `known`, or a new one. It has the next
    /// serial if `changed` is set, otherwise the same serial. It records the version of the program that writes it.
    #[must_use]
    pub fn next_snapshot(&self, known: Option<&State>, terraform_version: &str, changed: bool) -> State {
        let serial = known.map_or(0, |known| known.serial);
        let lineage = known.map(|known| &known.lineage).filter(|lineage| !lineage.is_empty());
        State {
            terraform_version: terraform_version.to_owned(),
            serial: serial.saturating_add(u64::from(changed)),
            lineage: lineage.cloned().unwrap_or_else(|| uuid::Uuid::new_v4().to_string()),
            ..self.clone()
        }
    }

    /// Returns true if two snapshots have equal contents, apart from version, serial and lineage.
    #[must_use]
    pub fn same_content(&self, other: &State) -> bool {
        fn same_object(a: &Arc<Object>, b: &Arc<Object>) -> bool {
            // Snapshots share unchanged objects, so most comparisons only compare pointers.
            Arc::ptr_eq(a, b) || a == b
        }
        fn same_instance(a: &InstanceState, b: &InstanceState) -> bool {
            let current = match (&a.current, &b.current) {
                (Some(a), Some(b)) => same_object(a, b),
                (None, None) => true,
                _ => false,
            };
            current
                && a.provider_key == b.provider_key
                && a.deposed.len() == b.deposed.len()
                && a.deposed
                    .iter()
                    .zip(&b.deposed)
                    .all(|((ka, a), (kb, b))| ka == kb && same_object(a, b))
        }
        self.outputs == other.outputs
            && self.check_results == other.check_results
            && self.resources.len() == other.resources.len()
            && self.resources.iter().zip(&other.resources).all(|((ka, a), (kb, b))| {
                ka == kb
                    && a.provider == b.provider
                    && a.instances.len() == b.instances.len()
                    && (a.instances.is_same(&b.instances)
                        || a.instances
                            .iter()
                            .zip(&b.instances)
                            .all(|((ka, a), (kb, b))| ka == kb && same_instance(a, b)))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> AbsResourceInstance {
        addrs::parse::resource_instance(text).unwrap()
    }

    fn provider() -> AbsProviderConfig {
        AbsProviderConfig::root(addrs::Provider::default_for("null"))
    }

    fn object(json: &str) -> Arc<Object> {
        Arc::new(Object::new(0, Attributes::Json(RawJson::parse(json).unwrap())))
    }

    #[test]
    fn a_resource_goes_with_its_last_object() {
        let mut state = State::new();
        let a = address("module.m[0].null_resource.a[\"k\"]");
        state.set_current(&a, &provider(), Some(object("{}")));
        let key = state.depose(&a).unwrap();
        assert!(state.current(&a).is_none());
        assert_eq!(state.instance_count(), 1);
        assert_eq!(key.0.len(), 8);
        assert!(state.restore_deposed(&a, &key));
        assert!(!state.restore_deposed(&a, &key));
        state.set_current(&a, &provider(), None);
        assert!(state.is_empty());
        assert!(state.remove_instance(&a).is_none());
    }

    #[test]
    fn content_is_compared_without_numbers() {
        let a = address("null_resource.a");
        let mut one = State::new();
        one.set_current(&a, &provider(), Some(object("{\"a\": 1}")));
        let mut two = State {
            serial: 7,
            lineage: "x".into(),
            ..State::new()
        };
        assert!(!one.same_content(&two));
        two.set_current(&a, &provider(), Some(object("{\"a\":1}")));
        assert!(one.same_content(&two));
        two.set_current(&a, &provider(), Some(object("{\"a\":2}")));
        assert!(!one.same_content(&two));
    }
}
