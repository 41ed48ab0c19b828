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
use crate::schema::{Compiled, CompiledMember, Described, Nesting, Schema};
use crate::wire::{Wire, decode, encode};

/// A provider that is ready to answer requests of any transport. The schema of a member is compiled when a call first uses it, and
/// descriptions are made one after another, so that a large provider needs memory only for the types in use.
pub struct ServedProvider {
    provider: Box<dyn AnyProvider>,
    meta: OnceLock<Option<Compiled>>,
    pub(crate) resources: BTreeMap<&'static str, Box<dyn AnyResource>>,
    pub(crate) data_sources: BTreeMap<&'static str, Box<dyn AnyDataSource>>,
    pub(super) ephemerals: BTreeMap<&'static str, Box<dyn AnyEphemeral>>,
    pub(super) lists: BTreeMap<&'static str, Box<dyn AnyList>>,
    pub(super) actions: BTreeMap<&'static str, Box<dyn AnyAction>>,
    functions: BTreeMap<&'static str, Function>,
    pub(super) state_stores: BTreeMap<&'static str, ServedStore>,
    /// Names that more than one member of the same kind has.
    duplicates: Vec<&'static str>,
    calls: Calls,
    blocks: bool,
    /// Reason of the deferral if the last call of `configure` deferred everything that the provider does.
    deferred: Mutex<Option<Deferral>>,
}

/// Schema, identity and properties of a managed resource type, for the host.
pub struct ResourceDescription<'a> {
    /// The schema, which is compiled or made when it is requested.
    pub member: &'a dyn Described,
    pub identity: &'a [IdentityAttribute],
    pub identity_version: i64,
    /// See [`Resource::STATE_ONLY`](crate::Resource::STATE_ONLY).
    pub state_only: bool,
}

/// Member of a provider that has a schema, with the name of its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Provider,
    ProviderMeta,
    Resource(&'static str),
    DataSource(&'static str),
    Ephemeral(&'static str),
    List(&'static str),
    Action(&'static str),
    StateStore(&'static str),
}

impl ServedProvider {
    /// Takes the members of a provider, which can be served only if there are no [`problems`](ServedProvider::problems).
    pub fn new<P: Provider>(provider: P) -> ServedProvider {
        let client = ClientCell::new();
        let mut members = Members::new(client.clone());
        provider.members(&mut members);
        ServedProvider {
            provider: Box::new(ProviderEntry::new(provider, client)),
            meta: OnceLock::new(),
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
            calls: Calls::new(),
            blocks: P::BLOCKS,
            deferred: Mutex::default(),
        }
    }

    /// Makes each schema, and passes it to `take`: one at a time, so that a large provider never holds all of them. Returns the errors
    /// in the declarations, one sentence each.
    pub fn describe(&self, mut take: impl FnMut(Part, &Schema)) -> Vec<String> {
        let mut found: Vec<String> = (self.duplicates.iter())
            .map(|name| format!("there is more than one member {name} of the same kind"))
            .collect();
        for (part, used, member) in self.members() {
            // A method of the author's makes it, and can panic.
            match guarded_now(|| member.declared()) {
                Ok(schema) => {
                    found.extend(self.problems_of(part, used, &schema));
                    take(part, &schema);
                }
                Err(panic) => found.extend(panic.0.into_iter().map(|d| format!("{part:?}: {}", d.detail))),
            }
        }
        if let Some(meta) = self.provider.meta_schema() {
            let problems = of_schema(Use::Provider, "", &meta, &[]);
            found.extend(problems.into_iter().map(|p| format!("provider_meta: {p}")));
            take(Part::ProviderMeta, &meta);
        }
        found.extend(
            self.functions
                .iter()
                .flat_map(|(name, function)| of_function(name, function)),
        );
        found
    }

    /// Returns the errors in a declaration.
    fn problems_of(&self, part: Part, used: Use, schema: &Schema) -> Vec<String> {
        match part {
            Part::Provider | Part::ProviderMeta => of_schema(used, "", schema, &[]),
            Part::Resource(name) => {
                let resource = self.resources.get(name);
                let mut found = of_schema(used, name, schema, resource.map(|r| r.identity()).unwrap_or_default());
                let upgrades = resource.map(|r| r.upgrade_problems(schema.version)).unwrap_or_default();
                found.extend(upgrades.into_iter().map(|p| format!("resource {name}: {p}")));
                found
            }
            Part::DataSource(name) | Part::Ephemeral(name) | Part::Action(name) => of_schema(used, name, schema, &[]),
            Part::List(name) => {
                let mut found = of_schema(used, name, schema, &[]);
                // The answers of a list are identities.
                match self.resources.get(name) {
                    Some(resource) if !resource.identity().is_empty() => {}
                    _ => found.push(format!(
                        "list resource {name}: there is no resource of this name that has an identity"
                    )),
                }
                found
            }
            Part::StateStore(name) => {
                let problems = of_schema(used, "", schema, &[]);
                problems
                    .into_iter()
                    .map(|p| format!("state store {name}: {p}"))
                    .collect()
            }
        }
    }

    /// Returns all members that have schemas.
    fn members(&self) -> impl Iterator<Item = (Part, Use, &dyn Described)> {
        let resources = self.resources.iter().map(|(name, resource)| {
            let used = match resource.is_lenient() {
                true => Use::LenientResource,
                false => Use::Resource,
            };
            (Part::Resource(name), used, &**resource as &dyn Described)
        });
        let data_sources = (self.data_sources.iter())
            .map(|(name, d)| (Part::DataSource(name), Use::DataSource, &**d as &dyn Described));
        let ephemerals =
            (self.ephemerals.iter()).map(|(name, e)| (Part::Ephemeral(name), Use::Ephemeral, &**e as &dyn Described));
        let lists = (self.lists.iter()).map(|(name, l)| (Part::List(name), Use::List, &**l as &dyn Described));
        let actions = (self.actions.iter()).map(|(name, a)| (Part::Action(name), Use::Action, &**a as &dyn Described));
        let stores =
            (self.state_stores.iter()).map(|(name, s)| (Part::StateStore(name), Use::Provider, s as &dyn Described));
        let provider = (Part::Provider, Use::Provider, &*self.provider as &dyn Described);
        [provider]
            .into_iter()
            .chain(resources)
            .chain(data_sources)
            .chain(ephemerals)
            .chain(lists)
            .chain(actions)
            .chain(stores)
    }

    /// Returns the versions of the protocol that support everything in the schemas.
    pub fn protocols(&self) -> &'static [u32] {
        let only_6 = |s: &Schema| s.root.has_nested_attributes() || s.root.has_computed_blocks();
        // Protocol 5 has no message for these, and would leave them out in silence.
        let found = !self.state_stores.is_empty()
            || self.members().any(|(_, _, member)| only_6(&member.declared()))
            || self.provider.meta_schema().is_some_and(|meta| only_6(&meta));
        if found { &[6] } else { &[5, 6] }
    }

    /// Returns the errors in the declaration, which prevent serving, one sentence each.
    pub fn problems(&self) -> Vec<String> {
        self.describe(|_, _| ())
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
        self.provider.schema()
    }

    /// Returns the schema of `provider_meta` blocks, if modules can have one for this provider.
    pub fn meta_schema(&self) -> Option<&Compiled> {
        let compile = || self.provider.meta_schema().map(Compiled::new);
        self.meta.get_or_init(compile).as_ref()
    }

    pub fn resources(&self) -> impl Iterator<Item = (&'static str, ResourceDescription<'_>)> {
        self.resources.iter().map(|(name, resource)| {
            let description = ResourceDescription {
                member: &**resource,
                identity: resource.identity(),
                identity_version: resource.identity_version(),
                state_only: resource.state_only(),
            };
            (*name, description)
        })
    }

    pub fn data_sources(&self) -> impl Iterator<Item = (&'static str, &dyn Described)> {
        self.data_sources
            .iter()
            .map(|(name, d)| (*name, &**d as &dyn Described))
    }

    pub fn ephemerals(&self) -> impl Iterator<Item = (&'static str, &dyn Described)> {
        self.ephemerals.iter().map(|(name, e)| (*name, &**e as &dyn Described))
    }

    pub fn lists(&self) -> impl Iterator<Item = (&'static str, &dyn Described)> {
        self.lists.iter().map(|(name, l)| (*name, &**l as &dyn Described))
    }

    pub fn actions(&self) -> impl Iterator<Item = (&'static str, &dyn Described)> {
        self.actions.iter().map(|(name, a)| (*name, &**a as &dyn Described))
    }

    pub fn state_stores(&self) -> impl Iterator<Item = &'static str> {
        self.state_stores.keys().copied()
    }

    pub fn functions(&self) -> &BTreeMap<&'static str, Function> {
        &self.functions
    }

    pub fn validate_provider(&self, config: &Wire) -> Diagnostics {
        let check = || -> Result<Diagnostics> {
            let config = decode(config, &self.config_schema().ty)?;
            // Null means that there is no provider block, so there is nothing to validate.
            if config.is_null() {
                return Ok(Diagnostics::new());
            }
            let diagnostics = check::against_schema(self.config_schema(), &config, true);
            Ok(check::with_own_rules(
                diagnostics,
                guarded_now(|| self.provider.validate(&config))?,
            ))
        };
        check().unwrap_or_else(|errors| errors)
    }

    pub async fn configure(&self, config: &Wire, terraform_version: &str, options: CallOptions) -> Diagnostics {
        let mut cx = ConfigureContext::new(terraform_version, options);
        let result = match decode(config, &self.config_schema().ty) {
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
