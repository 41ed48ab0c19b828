//! A provider as the protocol sees it, before either version of the protocol: names and encoded values in, encoded
//! values and diagnostics out.
//!
//! This is where values are decoded and encoded with the compiled schemas, and where a plan is put together.

use std::collections::BTreeMap;
use std::time::SystemTime;

use cty::{Path, Value};

use super::state_store::ServedStore;
use crate::action::AnyAction;
use crate::call::{CallOptions, Deferral};
use crate::client::ClientCell;
use crate::context::Calls;
use crate::data::{AnyDataSource, AnyEphemeral, DataAnswer, EphemeralAnswer};
use crate::function::{Function, FunctionError};
use crate::guard::{guarded, guarded_now};
use crate::list::AnyList;
use crate::plan::{Planned, construct};
use crate::provider::{AnyProvider, Members, ProviderEntry};
use crate::resource::{Answer, AnyResource, MoveSource, identity_of, identity_type};
use crate::schema::{Compiled, CompiledMember, Nesting, Use, of_function, of_schema};
use crate::wire::read_json;
pub(crate) use crate::wire::{RawState, Wire, decode, encode};
use crate::{Diagnostic, Diagnostics, Provider, Result, check};

/// What a request has beside an object's values.
pub struct ObjectMetadata {
    /// The private data of the provider.
    pub private: Vec<u8>,
    /// The identity, if the object has one.
    pub identity: Option<Wire>,
}

/// An object of another type, or of another provider, that becomes one of this provider.
pub struct MovedObject {
    pub provider: String,
    pub type_name: String,
    pub schema_version: i64,
    pub state: RawState,
    pub private: Vec<u8>,
    pub identity: Option<RawState>,
    pub identity_schema_version: i64,
}

/// The answer to a change of an object.
#[derive(Debug, Default)]
pub(crate) struct Changed {
    pub state: Option<Wire>,
    pub private: Vec<u8>,
    pub identity: Option<Wire>,
    pub requires_replace: Vec<Path>,
    pub deferred: Option<Deferral>,
    pub diagnostics: Diagnostics,
}

impl Changed {
    fn failed(diagnostics: Diagnostics) -> Changed {
        Changed {
            diagnostics,
            ..Changed::default()
        }
    }
}

/// The answer to an operation on an ephemeral resource.
#[derive(Debug, Default)]
pub(crate) struct Ephemeral {
    pub result: Option<Wire>,
    pub renew_at: Option<SystemTime>,
    pub private: Vec<u8>,
    pub deferred: Option<Deferral>,
    pub diagnostics: Diagnostics,
}

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

/// No object, however that is expressed.
fn present(value: &Value) -> Option<&Value> {
    (!value.is_null()).then_some(value)
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

    pub fn plans_destroy(&self) -> bool {
        self.resources.values().any(|r| r.plans_destroy())
    }

    fn resource(&self, name: &str) -> Result<&dyn AnyResource> {
        self.resources
            .get(name)
            .map(|r| &**r)
            .ok_or_else(|| unknown_type("resource", name))
    }

    fn data_source(&self, name: &str) -> Result<&dyn AnyDataSource> {
        self.data_sources
            .get(name)
            .map(|r| &**r)
            .ok_or_else(|| unknown_type("data source", name))
    }

    fn ephemeral(&self, name: &str) -> Result<&dyn AnyEphemeral> {
        self.ephemerals
            .get(name)
            .map(|r| &**r)
            .ok_or_else(|| unknown_type("ephemeral resource", name))
    }

    // ---- the provider itself ----------------------------------------------------------------------------------

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

    // ---- managed resources ------------------------------------------------------------------------------------

    pub fn validate_resource(&self, name: &str, config: &Wire, write_only_allowed: bool) -> Diagnostics {
        let check = || -> Result<Diagnostics> {
            let resource = self.resource(name)?;
            let config = decode(config, &resource.schema().ty)?;
            if config.is_null() {
                return Ok(Diagnostics::new());
            }
            let mut diagnostics = check::against_schema(resource.schema(), &config, write_only_allowed);
            diagnostics.append(guarded_now(|| resource.validate(&config))?);
            Ok(diagnostics)
        };
        check().unwrap_or_else(|errors| errors)
    }

    pub fn upgrade(&self, name: &str, version: i64, state: &RawState) -> (Option<Wire>, Diagnostics) {
        let upgrade = || -> Result<Wire> {
            let resource = self.resource(name)?;
            let json = read_json(state)?;
            let value = guarded_now(|| resource.upgrade(version, &json))??;
            encode(&value, &resource.schema().ty)
        };
        match upgrade() {
            Ok(wire) => (Some(wire), Diagnostics::new()),
            Err(errors) => (None, errors),
        }
    }

    pub fn upgrade_identity(&self, name: &str, version: i64, identity: &RawState) -> (Option<Wire>, Diagnostics) {
        let upgrade = || -> Result<Wire> {
            let resource = self.resource(name)?;
            let ty = identity_type(resource.schema(), resource.identity());
            let mut identity = read_json(identity)?;
            if version != resource.identity_version() {
                identity = resource.upgrade_identity(version, identity)?;
            }
            encode(&crate::state::read(&identity, &ty)?, &ty)
        };
        match upgrade() {
            Ok(wire) => (Some(wire), Diagnostics::new()),
            Err(errors) => (None, errors),
        }
    }

    /// The configuration that describes an object: what its resource says, without what cannot be set.
    pub async fn generate_config(&self, name: &str, state: &Wire, options: CallOptions) -> (Option<Wire>, Diagnostics) {
        let generate = async {
            let resource = self.resource(name)?;
            let schema = resource.schema();
            let state = decode(state, &schema.ty)?;
            let answer = match present(&state) {
                Some(state) => resource.generate_config(state, options).await,
                None => return Ok((Some(encode(&state, &schema.ty)?), Diagnostics::new())),
            };
            let config = answer
                .state
                .map(|config| encode(&schema.settable_only(config), &schema.ty));
            Ok::<_, Diagnostics>((config.transpose()?, answer.diagnostics))
        };
        generate.await.unwrap_or_else(|diagnostics| (None, diagnostics))
    }

    /// Whether a resource generates configuration.
    pub fn generates_config(&self) -> bool {
        self.resources.values().any(|resource| resource.generates_config())
    }

    /// Turns an answer into what travels. Where the object's identity is not known yet, it is the one it had before.
    fn changed(&self, resource: &dyn AnyResource, answer: Answer, before: Option<Wire>) -> Changed {
        let schema = resource.schema();
        let mut changed = Changed {
            private: answer.private,
            deferred: answer.deferred,
            diagnostics: answer.diagnostics,
            ..Changed::default()
        };
        let state = answer.state.unwrap_or_else(|| Value::null(schema.ty.clone()));
        let parts = if resource.answers_identity() {
            resource.identity()
        } else {
            &[]
        };
        let ty = || identity_type(schema, parts);
        if let Some(identity) = identity_of(parts, &state) {
            match encode(&identity, &ty()) {
                Ok(wire) => changed.identity = Some(wire),
                Err(errors) => changed.diagnostics.append(errors),
            }
        } else if let Some(wire) = before
            && !state.is_null()
            && !parts.is_empty()
            && decode(&wire, &ty()).is_ok_and(|identity| identity.is_wholly_known() && !identity.is_null())
        {
            changed.identity = Some(wire);
        }
        match encode(&state, &schema.ty) {
            Ok(wire) => changed.state = Some(wire),
            Err(errors) => changed.diagnostics.append(errors),
        }
        changed
    }

    pub async fn read(
        &self,
        name: &str,
        state: Wire,
        private: Vec<u8>,
        identity: Option<Wire>,
        options: CallOptions,
    ) -> Changed {
        let read = async {
            let resource = self.resource(name)?;
            let state = decode(&state, &resource.schema().ty)?;
            let Some(state) = present(&state) else {
                return Ok(Changed::default());
            };
            let answer = resource.read(state, private, options).await;
            Ok(self.changed(resource, answer, identity))
        };
        let result = read.await;
        // What could not be read stays as it was.
        let failed = |errors| Changed {
            state: Some(state),
            ..Changed::failed(errors)
        };
        result.unwrap_or_else(failed)
    }

    /// Whether a type of resource asks for the leniency of [`crate::Resource::LENIENT`].
    pub fn is_lenient(&self, name: &str) -> bool {
        self.resources.get(name).is_some_and(|r| r.is_lenient())
    }

    pub async fn plan(
        &self,
        name: &str,
        prior: &Wire,
        proposed: &Wire,
        config: &Wire,
        beside: ObjectMetadata,
        options: CallOptions,
    ) -> Changed {
        let plan = async {
            let ObjectMetadata { private, identity } = beside;
            let resource = self.resource(name)?;
            let schema = resource.schema();
            let prior = decode(prior, &schema.ty)?;
            let proposed = decode(proposed, &schema.ty)?;
            if proposed.is_null() {
                let answer = match present(&prior) {
                    Some(prior) if resource.plans_destroy() => resource.plan_destroy(prior, private, options).await,
                    _ => Answer {
                        private,
                        ..Answer::default()
                    },
                };
                return Ok(self.changed(resource, answer, None));
            }
            let config = decode(config, &schema.ty)?;
            let mut planned = guarded_now(|| construct(schema, &config, present(&prior), &proposed))?;
            let (private, deferred) = resource
                .plan(&config, present(&prior), &mut planned, private, options)
                .await;
            let Planned {
                state,
                requires_replace,
                diagnostics,
            } = planned;
            let mut changed = self.changed(
                resource,
                Answer {
                    state: Some(state),
                    private,
                    deferred,
                    diagnostics,
                },
                identity,
            );
            changed.requires_replace = requires_replace;
            Ok(changed)
        };
        plan.await.unwrap_or_else(Changed::failed)
    }

    pub async fn apply(
        &self,
        name: &str,
        prior: Wire,
        planned: &Wire,
        config: Wire,
        beside: ObjectMetadata,
        options: CallOptions,
    ) -> Changed {
        let mut creating = false;
        let apply = async {
            let ObjectMetadata { private, identity } = beside;
            let resource = self.resource(name)?;
            let schema = resource.schema();
            let prior = decode(&prior, &schema.ty)?;
            let planned = decode(planned, &schema.ty)?;
            let answer = match (present(&prior), present(&planned)) {
                (None, None) => Answer::default(),
                (None, Some(planned)) => {
                    creating = true;
                    resource.create(planned, config, private, options).await
                }
                (Some(prior), Some(planned)) => resource.update(prior, planned, config, private, options).await,
                (Some(prior), None) => resource.delete(prior, private, options).await,
            };
            Ok(self.changed(resource, answer, identity))
        };
        let result = apply.await;
        // After a failure half way, an object of before counts as unchanged.
        result.unwrap_or_else(|errors| Changed {
            state: (!creating).then_some(prior),
            ..Changed::failed(errors)
        })
    }

    pub async fn import(&self, name: &str, id: &str, identity: Option<Wire>, options: CallOptions) -> Changed {
        let import = async {
            let resource = self.resource(name)?;
            let answer = match identity {
                Some(wire) if id.is_empty() => {
                    let identity = decode(&wire, &identity_type(resource.schema(), resource.identity()))?;
                    resource.import_identity(&identity, options).await
                }
                _ => resource.import(id, options).await,
            };
            Ok(self.changed(resource, answer, None))
        };
        import.await.unwrap_or_else(Changed::failed)
    }

    pub async fn move_from(&self, name: &str, from: MovedObject, options: CallOptions) -> Changed {
        let run = async {
            let resource = self.resource(name)?;
            let source = MoveSource {
                provider: from.provider,
                type_name: from.type_name,
                schema_version: from.schema_version,
                state: read_json(&from.state)?,
                identity: from.identity.as_ref().map(read_json).transpose()?,
                identity_schema_version: from.identity_schema_version,
            };
            let answer = resource.move_from(source, from.private, options).await;
            Ok(self.changed(resource, answer, None))
        };
        run.await.unwrap_or_else(Changed::failed)
    }

    // ---- data sources and ephemeral resources -----------------------------------------------------------------

    pub fn validate_data_source(&self, name: &str, config: &Wire) -> Diagnostics {
        let check = || -> Result<Diagnostics> {
            let source = self.data_source(name)?;
            let config = decode(config, &source.schema().ty)?;
            if config.is_null() {
                return Ok(Diagnostics::new());
            }
            let mut diagnostics = check::against_schema(source.schema(), &config, true);
            diagnostics.append(guarded_now(|| source.validate(&config))?);
            Ok(diagnostics)
        };
        check().unwrap_or_else(|errors| errors)
    }

    pub async fn read_data_source(&self, name: &str, config: &Wire, options: CallOptions) -> DataAnswer<Wire> {
        let read = async {
            let source = self.data_source(name)?;
            let config = with_defaults(source.schema(), &decode(config, &source.schema().ty)?);
            let answer = source.read(&config, options).await;
            let encoded = |state| encode(&state, &source.schema().ty);
            Ok(DataAnswer {
                state: answer.state.map(encoded).transpose()?,
                deferred: answer.deferred,
                diagnostics: answer.diagnostics,
            })
        };
        read.await.unwrap_or_else(|diagnostics| DataAnswer {
            state: None,
            deferred: None,
            diagnostics,
        })
    }

    pub fn validate_ephemeral(&self, name: &str, config: &Wire) -> Diagnostics {
        let check = || -> Result<Diagnostics> {
            let resource = self.ephemeral(name)?;
            let config = decode(config, &resource.schema().ty)?;
            if config.is_null() {
                return Ok(Diagnostics::new());
            }
            let mut diagnostics = check::against_schema(resource.schema(), &config, true);
            diagnostics.append(guarded_now(|| resource.validate(&config))?);
            Ok(diagnostics)
        };
        check().unwrap_or_else(|errors| errors)
    }

    fn ephemeral_answer(resource: &dyn AnyEphemeral, answer: EphemeralAnswer) -> Result<Ephemeral> {
        Ok(Ephemeral {
            result: answer.result.map(|v| encode(&v, &resource.schema().ty)).transpose()?,
            renew_at: answer.renew_at,
            private: answer.private,
            deferred: answer.deferred,
            diagnostics: answer.diagnostics,
        })
    }

    pub async fn open(&self, name: &str, config: &Wire, options: CallOptions) -> Ephemeral {
        let open = async {
            let resource = self.ephemeral(name)?;
            let mut config = decode(config, &resource.schema().ty)?;
            config = with_defaults(resource.schema(), &config);
            let answer = resource.open(&config, options).await;
            Self::ephemeral_answer(resource, answer)
        };
        open.await.unwrap_or_else(|diagnostics| Ephemeral {
            diagnostics,
            ..Ephemeral::default()
        })
    }

    pub async fn renew(&self, name: &str, private: Vec<u8>, options: CallOptions) -> Ephemeral {
        let renew = async {
            let resource = self.ephemeral(name)?;
            let answer = resource.renew(private, options).await;
            Self::ephemeral_answer(resource, answer)
        };
        renew.await.unwrap_or_else(|diagnostics| Ephemeral {
            diagnostics,
            ..Ephemeral::default()
        })
    }

    pub async fn close(&self, name: &str, private: Vec<u8>) -> Diagnostics {
        let close = async {
            let resource = self.ephemeral(name)?;
            Ok(resource.close(private).await.diagnostics)
        };
        close.await.unwrap_or_else(|errors| errors)
    }

    // ---- functions --------------------------------------------------------------------------------------------

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
        "Unknown Type",
        format!(
            "This provider has no {kind} of type {name:?}. This is a bug of the program that called it, or it uses the \
             schema of another version of this plugin."
        ),
    )
    .into()
}
