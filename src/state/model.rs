//! The state in memory.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use addrs::{AbsProviderConfig, AbsResource, AbsResourceInstance, ConfigResource, InstanceKey};

use crate::Attributes;
use crate::attributes::RawJson;

/// A snapshot of everything known to exist.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// The version of the tool that wrote the snapshot; empty before the first write.
    pub terraform_version: String,
    /// The number of the snapshot in its lineage.
    pub serial: u64,
    /// What snapshots of the same state have in common: a UUID assigned at the first write; empty before.
    pub lineage: String,
    /// The root module's output values.
    pub outputs: BTreeMap<Arc<str>, OutputValue>,
    /// The resources that have instances.
    pub resources: BTreeMap<AbsResource, ResourceState>,
    /// How the checks of the configuration went when the snapshot was made; `None` when there were none to record.
    pub check_results: Option<Arc<[CheckResult]>>,
}

/// The value of an output of the root module.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputValue {
    /// The value, without marks.
    pub value: cty::Value,
    /// Whether it must not be shown.
    pub sensitive: bool,
}

/// A resource: its instances, and the provider configuration that manages them.
#[derive(Clone, Debug)]
pub struct ResourceState {
    /// The provider configuration that created the instances, and is needed to destroy them.
    pub provider: AbsProviderConfig,
    pub instances: BTreeMap<InstanceKey, InstanceState>,
}

/// The objects of one instance of a resource.
#[derive(Clone, Debug, Default)]
pub struct InstanceState {
    /// The object in use.
    pub current: Option<Arc<Object>>,
    /// Objects that were replaced and are still to be destroyed.
    pub deposed: BTreeMap<DeposedKey, Arc<Object>>,
}

impl InstanceState {
    /// Whether no object is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.current.is_none() && self.deposed.is_empty()
    }
}

/// The name of a deposed object among those of its instance: eight hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeposedKey(pub Arc<str>);

impl DeposedKey {
    /// A key for a random number.
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

/// Whether an object is as it should be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ObjectStatus {
    /// Created, and usable.
    #[default]
    Ready,
    /// To be replaced: its creation failed half-way, or the user marked it (`taint`).
    Tainted,
}

/// One remote object.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// Whether it is as it should be.
    pub status: ObjectStatus,
    /// The version of the resource type's schema that the attributes follow.
    pub schema_version: u64,
    pub attributes: Attributes,
    /// The parts of the attributes that must not be shown.
    pub sensitive_paths: Vec<cty::Path>,
    /// The private data of the provider.
    pub private: Vec<u8>,
    /// The resources that must outlive this object, sorted by their text.
    pub dependencies: Arc<[ConfigResource]>,
    /// Whether a replacement is created before this object is destroyed.
    pub create_before_destroy: bool,
    /// `lifecycle.destroy` was false when the object was last applied: it leaves the state without being destroyed.
    pub skip_destroy: bool,
    /// The types of the destroy-time provisioners in the block that the object was last applied with.
    pub destroy_provisioners: Arc<[Arc<str>]>,
    /// The identity of the object; `None` if it has none, and the version of its schema is 0.
    pub identity: Option<Identity>,
}

impl Object {
    /// An object that is ready and has these attributes, and nothing else to say.
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

    /// This object with another status.
    #[must_use]
    pub fn with_status(&self, status: ObjectStatus) -> Object {
        Object { status, ..self.clone() }
    }
}

/// What a resource type's provider knows an object by, wherever its state is (Terraform 1.12 and later write it).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The version of the identity's schema.
    pub schema_version: u64,
    /// The identity, a JSON object.
    pub value: Option<RawJson>,
}

/// How the checks of one object of the configuration went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckResult {
    /// What kind of object was checked: `resource`, `output`, `check` or `var`.
    pub object_kind: Arc<str>,
    /// Its address in the configuration.
    pub config_addr: Arc<str>,
    /// The worst result among its instances.
    pub status: CheckStatus,
    /// Its instances, as far as it is known which there are.
    pub objects: Vec<CheckedObject>,
}

/// How the checks of one instance of something went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedObject {
    /// Its absolute address.
    pub object_addr: Arc<str>,
    /// The result.
    pub status: CheckStatus,
    /// The error messages of the failed conditions.
    pub failure_messages: Vec<Arc<str>>,
}

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CheckStatus {
    /// All conditions hold.
    Pass,
    /// A condition does not hold.
    Fail,
    /// A condition could not be evaluated.
    Error,
    /// A condition's result is not known yet.
    Unknown,
}

impl CheckStatus {
    /// The word for it in files.
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
    /// A state in which nothing exists.
    #[must_use]
    pub fn new() -> State {
        State::default()
    }

    /// Whether there is neither a resource nor an output.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.resources.is_empty() && self.outputs.is_empty()
    }

    /// Whether there is any managed or data resource.
    #[must_use]
    pub fn has_resources(&self) -> bool {
        !self.resources.is_empty()
    }

    /// The objects of one instance.
    #[must_use]
    pub fn instance(&self, address: &AbsResourceInstance) -> Option<&InstanceState> {
        self.resources
            .get(&address.containing_resource())?
            .instances
            .get(&address.resource.key)
    }

    /// The object in use of one instance.
    #[must_use]
    pub fn current(&self, address: &AbsResourceInstance) -> Option<&Arc<Object>> {
        self.instance(address)?.current.as_ref()
    }

    /// All instances with their resource, in the order of their addresses.
    pub fn instances(&self) -> impl Iterator<Item = (&AbsResource, &ResourceState, &InstanceKey, &InstanceState)> {
        self.resources.iter().flat_map(|(address, resource)| {
            resource
                .instances
                .iter()
                .map(move |(key, instance)| (address, resource, key, instance))
        })
    }

    /// How many instances have an object of any kind.
    #[must_use]
    pub fn instance_count(&self) -> usize {
        self.resources.values().map(|r| r.instances.len()).sum()
    }

    /// Puts an object in use, or takes it out; the provider configuration becomes that of the whole resource. An
    /// instance without objects, and a resource without instances, are dropped.
    pub fn set_current(
        &mut self,
        address: &AbsResourceInstance,
        provider: &AbsProviderConfig,
        object: Option<Arc<Object>>,
    ) {
        self.change(address, Some(provider), |instance| instance.current = object);
    }

    /// Puts a deposed object in its place, or takes it out, as [`State::set_current`] does.
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

    /// Makes the object in use a deposed one; gives its new key, or `None` if there is no object in use.
    pub fn depose(&mut self, address: &AbsResourceInstance) -> Option<DeposedKey> {
        let instance = self
            .resources
            .get_mut(&address.containing_resource())?
            .instances
            .get_mut(&address.resource.key)?;
        let object = instance.current.take()?;
        let mut key = DeposedKey::random();
        while instance.deposed.contains_key(&key) {
            key = DeposedKey::random();
        }
        instance.deposed.insert(key.clone(), object);
        Some(key)
    }

    /// Puts a deposed object back in use, if nothing else is; returns whether it did.
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

    /// Forgets an instance with all its objects; gives what was there.
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
        if let Some(provider) = provider {
            self.resources
                .entry(containing.clone())
                .or_insert_with(|| ResourceState {
                    provider: provider.clone(),
                    instances: BTreeMap::new(),
                })
                .provider = provider.clone();
        }
        let Some(resource) = self.resources.get_mut(&containing) else {
            return;
        };
        let key = &address.resource.key;
        let mut instance = resource.instances.remove(key).unwrap_or_default();
        act(&mut instance);
        if !instance.is_empty() {
            resource.instances.insert(key.clone(), instance);
        } else if resource.instances.is_empty() {
            self.resources.remove(&containing);
        }
    }

    /// This state as the snapshot that a store writes after `known`: with its lineage, or a new one; with the next serial, unless
    /// nothing has changed since; and with the version of the program that writes it.
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

    /// Whether two snapshots have equal contents, apart from version, serial and lineage.
    #[must_use]
    pub fn same_content(&self, other: &State) -> bool {
        fn same_object(a: &Arc<Object>, b: &Arc<Object>) -> bool {
            Arc::ptr_eq(a, b) || a == b
        }
        fn same_instance(a: &InstanceState, b: &InstanceState) -> bool {
            let current = match (&a.current, &b.current) {
                (Some(a), Some(b)) => same_object(a, b),
                (None, None) => true,
                _ => false,
            };
            current
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
                    && a.instances
                        .iter()
                        .zip(&b.instances)
                        .all(|((ka, a), (kb, b))| ka == kb && same_instance(a, b))
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
