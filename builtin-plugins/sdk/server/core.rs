//! A provider as the protocol sees it, before either version of the protocol: names and encoded values in, encoded
//! values and diagnostics out.
//!
//! This is where values are decoded and encoded with the compiled schemas, and where a plan is put together. Here are the provider
//! itself and its functions; [`managed`] and [`data`] have the requests about its resources.

mod data;
mod managed;

use std::collections::BTreeMap;

use cty::Value;

pub(crate) use self::data::Ephemeral;
pub(crate) use self::managed::{Changed, MovedObject, ObjectMetadata};
use super::state_store::ServedStore;
use crate::action::AnyAction;
use crate::client::ClientCell;
use crate::context::Calls;
use crate::data::{AnyDataSource, AnyEphemeral};
use crate::function::{Function, FunctionError};
use crate::guard::{guarded, guarded_now};
use crate::list::AnyList;
use crate::provider::{AnyProvider, Members, ProviderEntry};
use crate::resource::AnyResource;
use crate::schema::{Compiled, CompiledMember, Nesting, Use, of_function, of_schema};
pub(crate) use crate::wire::{Wire, decode, encode};
use crate::{Diagnostic, Diagnostics, Provider, Result, check};

pub(crate) struct Core {
    provider: Box<dyn AnyProvider>,
    config: Compiled,
    /// The schema of `provider_meta` blocks, if modules can have one for this provider.
    pub meta: Option<Compiled>,
    pub resources: BTreeMap<&'static str, Box<dyn AnyResource>>,
    pub data_sources: BTreeMap<&'static str, Box<dyn AnyDataSource>>,
    pub ephemerals: BTreeMap<&'static str, Box<dyn AnyEphemeral>>,
    pub lists: BTreeMap<&'static str, Box<dyn AnyList>>,
    pub actions: BTreeMap<&'static str, Box<dyn AnyAction>>,
    pub functions: BTreeMap<&'static str, Function>,
    pub state_stores: BTreeMap<&'static str, ServedStore>,
    /// Why the provider cannot be served.
    pub problems: Vec<String>,
    /// The calls in progress.
    pub calls: Calls,
    /// Whether the provider's code may block its thread.
    pub blocks: bool,
}

impl Core {
    pub fn new<P: Provider>(provider: P) -> Core {
        let client = ClientCell::new();
        let mut members = Members::new(client.clone());
        provider.members(&mut members);
        let mut core = Core {
            config: Compiled::new(provider.schema()),
            meta: provider.meta_schema().map(Compiled::new),
            provider: Box::new(ProviderEntry(provider, client)),
            resources: members.resources,
            data_sources: members.data_sources,
            ephemerals: members.ephemerals,
            lists: members.lists,
            actions: members.actions,
            functions: members.functions,
            state_stores: members
                .state_stores
                .into_iter()
                .map(|(name, store)| (name, ServedStore::new(store)))
                .collect(),
            problems: Vec::new(),
            calls: Calls::new(),
            blocks: P::BLOCKS,
        };
        core.problems = core.find_problems(&members.duplicates);
        core
    }

    fn find_problems(&self, duplicates: &[&str]) -> Vec<String> {
        let mut found: Vec<String> = duplicates
            .iter()
            .map(|name| format!("there is more than one member {name} of the same kind"))
            .collect();
        found.extend(of_schema(Use::Provider, "", &self.config.schema, &[]));
        if let Some(meta) = &self.meta {
            let problems = of_schema(Use::Provider, "", &meta.schema, &[]);
            found.extend(problems.into_iter().map(|p| format!("provider_meta: {p}")));
        }
        for (name, resource) in &self.resources {
            let used = match resource.is_lenient() {
                true => Use::LenientResource,
                false => Use::Resource,
            };
            found.extend(of_schema(used, name, &resource.schema().schema, resource.identity()));
            found.extend(
                resource
                    .upgrade_problems()
                    .into_iter()
                    .map(|p| format!("resource {name}: {p}")),
            );
        }
        for (name, source) in &self.data_sources {
            found.extend(of_schema(Use::DataSource, name, &source.schema().schema, &[]));
        }
        for (name, ephemeral) in &self.ephemerals {
            found.extend(of_schema(Use::Ephemeral, name, &ephemeral.schema().schema, &[]));
        }
        for (name, list) in &self.lists {
            found.extend(of_schema(Use::List, name, &list.schema().schema, &[]));
            match self.resources.get(name) {
                Some(resource) if !resource.identity().is_empty() => {}
                _ => found.push(format!(
                    "list resource {name}: there is no resource of this name that has an identity"
                )),
            }
        }
        for (name, action) in &self.actions {
            found.extend(of_schema(Use::Action, name, &action.schema().schema, &[]));
        }
        for (name, store) in &self.state_stores {
            let problems = of_schema(Use::Provider, "", &store.store.schema().schema, &[]);
            found.extend(problems.into_iter().map(|p| format!("state store {name}: {p}")));
        }
        found.extend(
            self.functions
                .iter()
                .flat_map(|(name, function)| of_function(name, function)),
        );
        found
    }

    /// The versions of the protocol that can say all that the schemas say.
    pub fn protocols(&self) -> &'static [u32] {
        let schemas = (self.resources.values().map(|r| r.schema()))
            .chain(self.data_sources.values().map(|d| d.schema()))
            .chain(self.ephemerals.values().map(|e| e.schema()))
            .chain(self.actions.values().map(|a| a.schema()))
            .chain(&self.meta)
            .chain([&self.config]);
        let only_6 = |s: &Compiled| s.schema.root.has_nested_attributes() || s.schema.root.has_computed_blocks();
        if !self.state_stores.is_empty() || schemas.into_iter().any(only_6) {
            &[6]
        } else {
            &[5, 6]
        }
    }

    pub fn config_schema(&self) -> &Compiled {
        &self.config
    }

    pub fn validate_provider(&self, config: &Wire) -> Diagnostics {
        let check = || -> Result<Diagnostics> {
            let config = decode(config, &self.config.ty)?;
            if config.is_null() {
                return Ok(Diagnostics::new());
            }
            let mut diagnostics = check::against_schema(&self.config, &config, true);
            diagnostics.append(guarded_now(|| self.provider.validate(&config))?);
            Ok(diagnostics)
        };
        check().unwrap_or_else(|errors| errors)
    }

    pub async fn configure(&self, config: &Wire, terraform_version: &str) -> Diagnostics {
        let configure = async {
            let config = decode(config, &self.config.ty)?;
            guarded(self.provider.configure(&config, terraform_version)).await
        };
        configure.await.err().unwrap_or_default()
    }

    /// Calls a function.
    pub fn call(&self, name: &str, arguments: &[Wire]) -> std::result::Result<Wire, FunctionError> {
        let problem = |errors: Diagnostics| {
            let texts: Vec<String> = errors.0.into_iter().map(|d| d.detail).collect();
            FunctionError::new(texts.join(" "))
        };
        let function = self
            .functions
            .get(name)
            .ok_or_else(|| FunctionError::new(format!("this provider has no function {name:?}")))?;
        if arguments.len() < function.parameters.len() {
            return Err(FunctionError::new(format!(
                "{name} takes {} arguments, but was given {}",
                function.parameters.len(),
                arguments.len()
            )));
        }
        let mut values = Vec::with_capacity(arguments.len());
        for (i, wire) in arguments.iter().enumerate() {
            let parameter = function
                .parameter(i)
                .ok_or_else(|| FunctionError::argument(i, format!("{name} takes no argument at this position")))?;
            values.push(decode(wire, &parameter.ty).map_err(problem)?);
        }
        let result = guarded_now(|| function.call(&values)).map_err(problem)??;
        encode(&result, &function.returns).map_err(problem)
    }
}

/// The configuration of something that is never planned, with the defaults of its attributes, here and further in.
pub(crate) fn with_defaults(schema: &Compiled, config: &Value) -> Value {
    fn walk(members: &[CompiledMember], object: &Value) -> Value {
        object.map_parts(|part, value| {
            let member = match part {
                cty::value::Part::Attribute(name) => members.iter().find(|m| m.name() == &**name),
                _ => None,
            };
            let Some(member) = member else { return value.clone() };
            match (member.attribute().and_then(|a| a.default.as_ref()), member.inside()) {
                (Some(default), _) if value.is_null() => default.clone(),
                (_, Some((Nesting::Single | Nesting::Group, inside))) => walk(inside, value),
                (_, Some((_, inside))) => value.map_parts(|_, item| walk(inside, item)),
                _ => value.clone(),
            }
        })
    }
    walk(&schema.members, config)
}

pub(super) fn unknown_type(kind: &str, name: &str) -> Diagnostics {
    Diagnostic::error(
        "Unknown type",
        format!(
            "This provider has no {kind} of type {name:?}. This is a bug in the program that called it, or it uses the \
             schema of another version of this plugin."
        ),
    )
    .into()
}
