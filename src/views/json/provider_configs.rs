//! Provider configurations in the document of a configuration. Each configuration that a module defines by a block, requires or
//! only uses has an entry. Resources refer to its key. A configuration that a module gets from its caller is shown in the
//! caller's entry.

use std::collections::BTreeMap;

use addrs::{LocalProviderConfig, Module, Provider};
use config::{Config, ModuleNode};
use provider::Schemas;
use serde_json::{Map, Value as Json};
use versions::Constraints;

use super::Object;
use super::expressions::body_expressions;

/// Provider configuration of one module.
struct Entry {
    provider: Provider,
    document: Json,
    /// Key of the caller's entry in which this one is shown.
    parent: Option<String>,
}

/// Provider configurations, by key.
#[derive(Default)]
pub(super) struct ProviderConfigs(BTreeMap<String, Entry>);

/// Returns the key of a provider configuration: `aws`, `aws.west`, `module.m:aws`.
fn key(module: &Module, local: &str) -> String {
    if module.is_root() {
        local.to_owned()
    } else {
        format!("{module}:{local}")
    }
}

/// Returns a module's own version constraints for the providers that it requires or uses.
fn requirements(node: &ModuleNode) -> BTreeMap<Provider, Constraints> {
    let module = &node.module;
    let mut out: BTreeMap<Provider, Constraints> = BTreeMap::new();
    let mut add = |provider: Provider, constraints: Option<&Constraints>| {
        let known = out.entry(provider).or_insert_with(Constraints::any);
        if let Some(more) = constraints {
            *known = std::mem::replace(known, Constraints::any()).and(more.clone());
        }
    };
    for required in module.required_providers.values() {
        add(
            required.provider.clone(),
            required.constraint.as_ref().map(|c| &c.constraints),
        );
    }
    for (local, block) in &module.provider_configs {
        add(
            node.provider(local).provider.clone(),
            block.version.as_ref().map(|c| &c.constraints),
        );
    }
    for resource in module.resources.values() {
        add(resource.provider.clone(), None);
    }
    // An import can generate a resource whose provider is named nowhere else.
    for import in &module.imports {
        if import.to_resource.module.is_root() && node.path.is_root() {
            let local = match &import.provider_ref {
                Some(named) => named.config.clone(),
                None => LocalProviderConfig {
                    name: import.to_resource.resource.implied_provider().into(),
                    alias: None,
                },
            };
            add(node.provider(&local).provider.clone(), None);
        }
    }
    out
}

impl ProviderConfigs {
    /// Collects the provider configurations of a whole configuration.
    pub(super) fn new(config: &Config, schemas: &Schemas) -> ProviderConfigs {
        let mut out = ProviderConfigs::default();
        out.module(&config.root, None, Some(schemas));
        out
    }

    /// Collects the provider configurations of the root module alone, without their expressions.
    pub(super) fn of_root(config: &Config) -> ProviderConfigs {
        let mut out = ProviderConfigs::default();
        out.module(&config.root, None, None);
        out
    }

    fn module(&mut self, node: &ModuleNode, caller: Option<&Module>, schemas: Option<&Schemas>) {
        let (path, module) = (&node.path, &node.module);
        let requirements = requirements(node);
        let document = |name: &str, provider: &Provider, alias: Option<&str>, expressions: Json| -> Json {
            let constraints = requirements.get(provider).filter(|c| !c.is_any());
            Object::default()
                .with("name", name)
                .with("full_name", provider.to_string())
                .with_some("alias", alias)
                .with_content("module_address", path.to_string())
                .with_some("version_constraint", constraints.map(ToString::to_string))
                .with_content("expressions", expressions)
                .into()
        };
        for (local, block) in &module.provider_configs {
            let provider = node.provider(local).provider.clone();
            let schema = schemas.and_then(|schemas| schemas.providers.get(&provider));
            let expressions = schema.map_or(Json::Null, |schema| {
                body_expressions(&block.body, &schema.provider.block)
            });
            let entry = Entry {
                document: document(&local.name, &provider, local.alias.as_deref(), expressions),
                provider,
                parent: None,
            };
            self.0.insert(key(path, &local.to_string()), entry);
        }
        for required in module.required_providers.values() {
            let provider = &required.provider;
            let plain = || document(&required.name, provider, None, Json::Null);
            for alias in &required.configuration_aliases {
                self.add_missing(key(path, &alias.config.to_string()), provider, plain(), None);
            }
            let parent = caller.and_then(|caller| self.source(&key(caller, &required.name), provider));
            self.add_missing(key(path, &required.name), provider, plain(), parent);
        }
        // Providers without a block get the name of their type, and no further details, as in Terraform.
        for provider in requirements.keys() {
            let parent = caller.and_then(|caller| self.source(&key(caller, &provider.ty), provider));
            let plain = Object::default()
                .with("name", &*provider.ty)
                .with("full_name", provider.to_string())
                .with_content("module_address", path.to_string());
            self.add_missing(key(path, &provider.ty), provider, plain.into(), parent);
        }
        // Without schemas, the called modules are not known either.
        let calls = module.module_calls.iter().filter(|_| schemas.is_some());
        for (name, call) in calls {
            let Some(child) = node.children.get(name) else {
                continue;
            };
            for passed in call.providers.iter().flatten() {
                let in_child = &passed.child.config;
                let default = LocalProviderConfig {
                    name: in_child.name.clone(),
                    alias: None,
                };
                let provider = child.provider(&default).provider.clone();
                let parent = self.source(&key(path, &passed.parent.config.to_string()), &provider);
                let document = Object::default()
                    .with("name", in_child.to_string())
                    .with("full_name", provider.to_string())
                    .with_content("module_address", child.path.to_string());
                let entry = Entry {
                    provider,
                    document: document.into(),
                    parent,
                };
                self.0.insert(key(&child.path, &in_child.to_string()), entry);
            }
            self.module(child, Some(path), schemas);
        }
    }

    fn add_missing(&mut self, key: String, provider: &Provider, document: Json, parent: Option<String>) {
        self.0.entry(key).or_insert_with(|| Entry {
            provider: provider.clone(),
            document,
            parent,
        });
    }

    /// Follows the callers of an entry to the entry that the provider comes from, and returns its key; `None` if no entry of
    /// this key has the provider.
    fn source(&self, start: &str, provider: &Provider) -> Option<String> {
        let mut at = self.0.get_key_value(start).filter(|(_, e)| e.provider == *provider)?;
        while let Some(parent) = &at.1.parent {
            match self.0.get_key_value(parent).filter(|(_, e)| e.provider == *provider) {
                Some(next) => at = next,
                None => break,
            }
        }
        Some(at.0.clone())
    }

    /// Returns the key that a resource refers to for its provider configuration.
    pub(super) fn key_for(&self, module: &Module, local: &LocalProviderConfig) -> String {
        let own = key(module, &local.to_string());
        match self.0.get(&own).and_then(|entry| entry.parent.as_ref()) {
            Some(parent) if self.0.contains_key(parent) => parent.clone(),
            _ => own,
        }
    }

    /// Returns the documents of the entries that are shown.
    pub(super) fn into_documents(self) -> Map<String, Json> {
        let shown = self.0.into_iter().filter(|(_, entry)| entry.parent.is_none());
        shown.map(|(key, entry)| (key, entry.document)).collect()
    }
}
