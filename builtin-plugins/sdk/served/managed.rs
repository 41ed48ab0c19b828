//! Requests for managed resources, from validation to deletion.

use cty::{Path, Value};

use super::provider::{ServedProvider, unknown_type};
use crate::calls::CallOptions;
use crate::check;
use crate::deferral::Deferral;
use crate::diag::{Diagnostics, Result};
use crate::guard::{guarded_now, guarded_result};
use crate::identity::{identity_of, identity_type};
use crate::plan::{Planned, construct};
use crate::resource::{Answer, AnyResource, MoveSource};
use crate::wire::{RawState, Wire, decode, encode, read_json};

/// Private data and identity of the object that a request is about.
pub struct ObjectMetadata {
    /// The private data of the provider.
    pub private: Vec<u8>,
    /// The identity, if the object has one.
    pub identity: Option<Wire>,
}

/// Object of another type or provider, for its conversion to a type of this provider.
pub struct MovedObject {
    pub provider: String,
    pub type_name: String,
    pub schema_version: i64,
    pub state: RawState,
    pub private: Vec<u8>,
    pub identity: Option<RawState>,
    pub identity_schema_version: i64,
}

/// The answer to a request that reads, plans, applies, imports or moves an object.
#[derive(Debug, Default)]
pub struct Changed {
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

/// Returns the object; `None` if it is null.
fn present(value: &Value) -> Option<&Value> {
    (!value.is_null()).then_some(value)
}

impl ServedProvider {
    fn resource(&self, name: &str) -> Result<&dyn AnyResource> {
        self.resources
            .get(name)
            .map(|r| &**r)
            .ok_or_else(|| unknown_type("resource", name))
    }

    pub fn plans_destroy(&self) -> bool {
        self.resources.values().any(|r| r.plans_destroy())
    }

    pub fn validate_resource(&self, name: &str, config: &Wire, write_only_allowed: bool) -> Diagnostics {
        let check = || -> Result<Diagnostics> {
            let resource = self.resource(name)?;
            let config = decode(config, &resource.schema().ty)?;
            if config.is_null() {
                return Ok(Diagnostics::new());
            }
            let diagnostics = check::against_schema(resource.schema(), &config, write_only_allowed);
            Ok(check::with_own_rules(
                diagnostics,
                guarded_now(|| resource.validate(&config))?,
            ))
        };
        check().unwrap_or_else(|errors| errors)
    }

    pub fn upgrade(&self, name: &str, version: i64, state: &RawState) -> (Option<Wire>, Diagnostics) {
        let upgrade = || -> Result<Wire> {
            let resource = self.resource(name)?;
            let json = read_json(state)?;
            let value = guarded_result(|| resource.upgrade(version, &json))?;
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
            // Most identities have the current version, and need no upgrade.
            if version != resource.identity_version() {
                identity = guarded_result(|| resource.upgrade_identity(version, identity))?;
            }
            encode(&crate::state::read(&identity, &ty)?, &ty)
        };
        match upgrade() {
            Ok(wire) => (Some(wire), Diagnostics::new()),
            Err(errors) => (None, errors),
        }
    }

    /// Returns the configuration that a resource generates for an existing object, without attributes that cannot be
    /// set.
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

    /// Returns true if a resource generates configuration.
    pub fn generates_config(&self) -> bool {
        self.resources.values().any(|resource| resource.generates_config())
    }

    /// Encodes an answer. An object whose new identity is incomplete keeps its earlier identity.
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
        // The identity is computed from the object, so that a plugin cannot forget to return it.
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
            let answer = match self.deferred_by(&options) {
                // The provider is not configured, so the answer has the object from the state.
                Some(why) => Answer {
                    state: Some(state.clone()),
                    private,
                    deferred: Some(why),
                    ..Answer::default()
                },
                None => resource.read(state, private, options).await,
            };
            Ok(self.changed(resource, answer, identity))
        };
        let result = read.await;
        // An object that could not be read stays as it is in the state.
        let failed = |errors| Changed {
            state: Some(state),
            ..Changed::failed(errors)
        };
        result.unwrap_or_else(failed)
    }

    /// Returns true if a type of resource sets [`crate::Resource::LENIENT`].
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
            // A destroy plan has no configuration, and only types that set `PLANS_DESTROY` check it.
            let provider_deferred = self.deferred_by(&options);
            if proposed.is_null() {
                let answer = match present(&prior) {
                    _ if provider_deferred.is_some() => Answer {
                        private,
                        deferred: provider_deferred,
                        ..Answer::default()
                    },
                    Some(prior) if resource.plans_destroy() => resource.plan_destroy(prior, private, options).await,
                    _ => Answer {
                        private,
                        ..Answer::default()
                    },
                };
                return Ok(self.changed(resource, answer, None));
            }
            let config = decode(config, &schema.ty)?;
            // Guarded, because rules and modifiers of the schema are code of the plugin.
            let mut planned = guarded_now(|| construct(schema, &config, present(&prior), &proposed))?;
            let (private, deferred) = match provider_deferred {
                // The provider defers everything, so the plan is computed from the schema alone, without
                // [`Resource::plan`](crate::Resource::plan).
                Some(_) => (private, provider_deferred),
                None => {
                    resource
                        .plan(&config, present(&prior), &mut planned, private, options)
                        .await
                }
            };
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
                // `creating` is set so that a failure leaves no object in the state.
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
        // If the operation fails before the resource is called, the prior object is unchanged.
        result.unwrap_or_else(|errors| Changed {
            state: (!creating).then_some(prior),
            ..Changed::failed(errors)
        })
    }

    pub async fn import(&self, name: &str, id: &str, identity: Option<Wire>, options: CallOptions) -> Changed {
        let import = async {
            let resource = self.resource(name)?;
            let answer = match identity {
                _ if let Some(why) = self.deferred_by(&options) => Answer {
                    state: Some(Value::unknown(resource.schema().ty.clone())),
                    deferred: Some(why),
                    ..Answer::default()
                },
                // The host sends either the identity or the import ID.
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
}
