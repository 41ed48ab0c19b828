//! The provider itself, its schemas and its functions.

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};

use cty::Value;

use super::problems::{Use, of_function, of_schema};
use super::store::ServedStore;
use crate::action::AnyAction;
use crate::calls::{CallOptions, Calls};
use crate::check;
use crate::client::ClientCell;
use crate::configure::ConfigureContext;
use crate::data::{AnyDataSource, AnyEphemeral};
use crate::deferral::Deferral;
use crate::diag::{Diagnostic, Diagnostics, Result};
use crate::function::{Function, FunctionError};
use crate::guard::{guarded, guarded_now};
use crate::identity::IdentityAttribute;
use crate::list::AnyList;
use crate::provider::{AnyProvider, Members, Provider, ProviderEntry};
use crate::resource::AnyResource;
use crate::schema::{Compiled, CompiledMember, Nesting};
use crate::wire::{Wire, decode, encode};

/// A provider with compiled schemas, ready to answer requests of any transport.
pub struct ServedProvider {
    provider: Box<dyn AnyProvider>,
    config: Compiled,
    meta: Option<Compiled>,
    pub(crate) resources: BTreeMap<&'static str, Box<dyn AnyResource>>,
    pub(crate) data_sources: BTreeMap<&'static str, Box<dyn AnyDataSource>>,
    pub(super) ephemerals: BTreeMap<&'static str, Box<dyn AnyEphemeral>>,
    pub(super) lists: BTreeMap<&'static str, Box<dyn AnyList>>,
    pub(super) actions: BTreeMap<&'static str, Box<dyn AnyAction>>,
    functions: BTreeMap<&'static str, Function>,
    pub(super) state_stores: BTreeMap<&'static str, ServedStore>,
    /// Names that more than one member of the same kind has.
    duplicates: Vec<&'static str>,
    problems: OnceLock<Vec<String>>,
    calls: Calls,
    blocks: bool,
    /// Reason of the deferral if the last call of `configure` deferred everything that the provider does.
    deferred: Mutex<Option<Deferral>>,
}

/// Schema, identity and properties of a managed resource type, for the host.
pub struct ResourceDescription<'a> {
    pub schema: &'a Compiled,
    pub identity: &'a [IdentityAttribute],
    pub identity_version: i64,
    /// See [`Resource::STATE_ONLY`](crate::Resource::STATE_ONLY).
    pub state_only: bool,
}

impl ServedProvider {
    /// Creates the served form of a provider from its members. Each schema is compiled when it is first used. The provider can be served
    /// only if there are no [`problems`](ServedProvider::problems).
    pub fn new<P: Provider>(provider: P) -> ServedProvider {
        let client = ClientCell::new();
        let mut members = Members::new(client.clone());
        provider.members(&mut members);
        ServedProvider {
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
            duplicates: members.duplicates,
            problems: OnceLock::new(),
            calls: Calls::new(),
            blocks: P::BLOCKS,
            deferred: Mutex::default(),
        }
    }

    fn find_problems(&self) -> Vec<String> {
        let mut found: Vec<String> = (self.duplicates.iter())
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
            // A list returns identities, so the resource type must have one.
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
            let problems = of_schema(Use::Provider, "", &store.schema().schema, &[]);
            found.extend(problems.into_iter().map(|p| format!("state store {name}: {p}")));
        }
        found.extend(
            self.functions
                .iter()
                .flat_map(|(name, function)| of_function(name, function)),
        );
        found
    }

    /// Returns the versions of the protocol that support everything in the schemas.
    pub fn protocols(&self) -> &'static [u32] {
        let schemas = (self.resources.values().map(|r| r.schema()))
            .chain(self.data_sources.values().map(|d| d.schema()))
            .chain(self.ephemerals.values().map(|e| e.schema()))
            .chain(self.actions.values().map(|a| a.schema()))
            .chain(&self.meta)
            .chain([&self.config]);
        let only_6 = |s: &Compiled| s.schema.root.has_nested_attributes() || s.schema.root.has_computed_blocks();
        // Protocol 5 has no messages for these features, and would omit them without an error.
        if !self.state_stores.is_empty() || schemas.into_iter().any(only_6) {
            &[6]
        } else {
            &[5, 6]
        }
    }

    /// Returns the errors in the provider's declaration, one sentence each. A provider with errors cannot be served. The first call
    /// compiles all schemas.
    pub fn problems(&self) -> &[String] {
        self.problems.get_or_init(|| self.find_problems())
    }

    /// Returns the registry of the calls in progress, for stopping them.
    pub fn calls(&self) -> &Calls {
        &self.calls
    }

    /// Returns true if the provider's code may block its thread.
    pub fn blocks(&self) -> bool {
        self.blocks
    }

    pub fn config_schema(&self) -> &Compiled {
        &self.config
    }

    /// Returns the schema of `provider_meta` blocks, if modules can have one for this provider.
    pub fn meta_schema(&self) -> Option<&Compiled> {
        self.meta.as_ref()
    }

    pub fn resources(&self) -> impl Iterator<Item = (&'static str, ResourceDescription<'_>)> {
        self.resources.iter().map(|(name, resource)| {
            let description = ResourceDescription {
                schema: resource.schema(),
                identity: resource.identity(),
                identity_version: resource.identity_version(),
                state_only: resource.state_only(),
            };
            (*name, description)
        })
    }

    pub fn data_sources(&self) -> impl Iterator<Item = (&'static str, &Compiled)> {
        self.data_sources.iter().map(|(name, d)| (*name, d.schema()))
    }

    pub fn ephemerals(&self) -> impl Iterator<Item = (&'static str, &Compiled)> {
        self.ephemerals.iter().map(|(name, e)| (*name, e.schema()))
    }

    pub fn lists(&self) -> impl Iterator<Item = (&'static str, &Compiled)> {
        self.lists.iter().map(|(name, l)| (*name, l.schema()))
    }

    pub fn actions(&self) -> impl Iterator<Item = (&'static str, &Compiled)> {
        self.actions.iter().map(|(name, a)| (*name, a.schema()))
    }

    pub fn state_stores(&self) -> impl Iterator<Item = (&'static str, &Compiled)> {
        self.state_stores.iter().map(|(name, s)| (*name, s.schema()))
    }

    pub fn functions(&self) -> &BTreeMap<&'static str, Function> {
        &self.functions
    }

    pub fn validate_provider(&self, config: &Wire) -> Diagnostics {
        let check = || -> Result<Diagnostics> {
            let config = decode(config, &self.config.ty)?;
            // Null means that there is no provider block, so there is nothing to validate.
            if config.is_null() {
                return Ok(Diagnostics::new());
            }
            let diagnostics = check::against_schema(&self.config, &config, true);
            Ok(check::with_own_rules(
                diagnostics,
                guarded_now(|| self.provider.validate(&config))?,
            ))
        };
        check().unwrap_or_else(|errors| errors)
    }

    pub async fn configure(&self, config: &Wire, terraform_version: &str, options: CallOptions) -> Diagnostics {
        let mut cx = ConfigureContext::new(terraform_version, options);
        let result = match decode(config, &self.config.ty) {
            Ok(config) => guarded(self.provider.configure(&config, &mut cx)).await,
            Err(errors) => Err(errors),
        };
        // Also resets an earlier deferral: this configuration may be complete.
        *self.deferred.lock().unwrap_or_else(PoisonError::into_inner) = cx.deferred;
        let mut diagnostics = cx.diagnostics;
        if let Err(errors) = result {
            diagnostics.append(errors);
        }
        diagnostics
    }

    /// Returns the reason why the provider defers everything, if it does and the caller accepts deferred answers.
    pub(super) fn deferred_by(&self, options: &CallOptions) -> Option<Deferral> {
        let deferred = *self.deferred.lock().unwrap_or_else(PoisonError::into_inner);
        deferred.filter(|_| options.deferral_allowed)
    }

    /// Calls a function of the provider by its name.
    pub fn call(&self, name: &str, arguments: &[Wire]) -> std::result::Result<Wire, FunctionError> {
        let problem = |errors: Diagnostics| {
            let texts: Vec<String> = errors.0.into_iter().map(|d| d.detail).collect();
            FunctionError::new(texts.join(" "))
        };
        let function = self
            .functions
            .get(name)
            .ok_or_else(|| FunctionError::new(format!("this provider has no function {name:?}")))?;
        // The host checks the number of arguments as well. This check prevents a panic if a host does not.
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
            // The error has the position of the argument, so that the host can mark it in the configuration.
            values
                .push(decode(wire, &parameter.ty).map_err(|errors| FunctionError::argument(i, problem(errors).text))?);
        }
        let result = guarded_now(|| function.call(&values)).map_err(problem)??;
        encode(&result, &function.returns).map_err(problem)
    }
}

/// Adds the defaults of attributes, at any depth, to a configuration. For objects that are never planned, since planning adds the defaults
/// otherwise.
pub(super) fn with_defaults(schema: &Compiled, config: &Value) -> Value {
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
