//! Objects of managed resources under test, with their state and private data between the steps.

use monoform_sdk::cty::{Path, Type, Value};
use monoform_sdk::schema::Compiled;
use monoform_sdk::served::{Changed, MovedObject, ObjectMetadata, identity_type};
use monoform_sdk::wire::{self, Wire};
use monoform_sdk::{Deferral, Diagnostic, Diagnostics, MoveSource, Provider, Result};

use crate::config::{self, Config};
use crate::harness::{Harness, named};
use crate::proposed::proposed;
use crate::wires::{decode, encode, raw};

/// Result of planning one object.
#[derive(Clone, Debug)]
pub struct PlannedChange {
    /// Planned object, of which parts may be unknown.
    pub planned: Value,
    /// Attributes whose change requires replacement: names, or paths such as `disk[0].size`.
    pub replace: Vec<String>,
    /// Private data of the planned object.
    pub private: Vec<u8>,
    /// Reason for the deferral; `None` if the change is not deferred.
    pub deferred: Option<Deferral>,
    /// Identity of the planned object; `None` if the type has none, or a part of it is unknown.
    pub identity: Option<Value>,
}

impl<P: Provider> Harness<P> {
    /// Creates an object of this resource type. It does not exist yet: its state is empty.
    pub fn object(&self, name: &str) -> Object<'_, P> {
        Object::new(self, name)
    }

    /// Validates a configuration of a managed resource. The result contains warnings, too.
    #[must_use]
    pub fn validate(&self, name: &str, config: Config<'_>) -> Diagnostics {
        match self.resource_config(name, config) {
            Ok(wire) => self.provider.validate_resource(name, &wire, true),
            Err(errors) => errors,
        }
    }

    /// Plans an object from a configuration and the prior object.
    pub async fn plan(&self, name: &str, prior: Option<&Value>, config: Config<'_>) -> Result<PlannedChange> {
        self.object_in(name, prior).plan(config).await
    }

    /// Applies a plan. `config` is the configuration from which the plan was made. `planned` is `None` if the plan destroys the object.
    pub async fn apply(
        &self,
        name: &str,
        prior: Option<&Value>,
        planned: Option<&Value>,
        config: Config<'_>,
    ) -> Result<Value> {
        let mut object = self.object_in(name, prior);
        object.carry_out(planned, config, Vec::new(), None).await?;
        Ok(object.into_state())
    }

    /// Validates a configuration, and plans and creates an object.
    pub async fn create(&self, name: &str, config: Config<'_>) -> Result<Value> {
        let mut object = self.object(name);
        object.apply(config).await?;
        Ok(object.into_state())
    }

    /// Refreshes an object. Returns null if it no longer exists.
    pub async fn read(&self, name: &str, state: &Value) -> Result<Value> {
        let mut object = self.object_in(name, Some(state));
        object.read().await?;
        Ok(object.into_state())
    }

    /// Imports an object by its import ID.
    pub async fn import(&self, name: &str, id: &str) -> Result<Value> {
        let mut object = self.object(name);
        object.import(id).await?;
        Ok(object.into_state())
    }

    /// Upgrades a state of this schema version, given as JSON text.
    pub fn upgrade(&self, name: &str, version: i64, json: &str) -> Result<Value> {
        let (state, diagnostics) = self.provider.upgrade(name, version, &raw(json));
        self.sort(diagnostics)?;
        decode(state, self.schema(name))
    }

    /// Upgrades a stored identity of this version, given as JSON text.
    ///
    /// # Errors
    /// The version is not supported, or the result does not fit the identity of this type.
    pub fn upgrade_identity(&self, name: &str, version: i64, json: &str) -> Result<Value> {
        let (identity, diagnostics) = self.provider.upgrade_identity(name, version, &raw(json));
        self.sort(diagnostics)?;
        match (identity, self.identity_type(name)) {
            (Some(wire), Some(ty)) => wire::decode(&wire, &ty),
            _ => Err(without_identity(name).into()),
        }
    }

    /// Generates the configuration of an object, as a host does for an import without a configuration.
    ///
    /// # Errors
    /// Errors of the provider.
    pub async fn generate_config(&self, name: &str, state: &Value) -> Result<Value> {
        let schema = self.schema(name);
        let (_call, options) = self.begin();
        let (config, found) = self
            .provider
            .generate_config(name, &encode(Some(state), schema)?, options)
            .await;
        self.sort(found)?;
        decode(config, schema)
    }

    /// Converts the state of a resource of another type, with its private data, to this type.
    pub async fn move_from(&self, name: &str, source: MoveSource, private: Vec<u8>) -> Result<Value> {
        let mut object = self.object(name);
        object.move_from(source, private).await?;
        Ok(object.into_state())
    }

    fn object_in(&self, name: &str, state: Option<&Value>) -> Object<'_, P> {
        let mut object = self.object(name);
        object.set_state(state.cloned());
        object
    }

    fn resource_config(&self, name: &str, config: Config<'_>) -> Result<Wire> {
        let schema = self.schema(name);
        encode(Some(&config::object(schema, config)?), schema)
    }

    fn schema(&self, name: &str) -> &Compiled {
        named(self.provider.resources().map(|(name, r)| (name, r.member)), name)
    }

    /// Returns the type of the identities of this resource type; `None` if it has no identity.
    fn identity_type(&self, name: &str) -> Option<Type> {
        let (_, resource) = self.provider.resources().find(|(n, _)| *n == name)?;
        (!resource.identity.is_empty()).then(|| identity_type(resource.member.schema(), resource.identity))
    }
}

/// An object of a managed resource, with its state, identity and private data.
pub struct Object<'h, P: Provider> {
    harness: &'h Harness<P>,
    name: String,
    state: Option<Value>,
    private: Vec<u8>,
    identity: Option<Wire>,
    tainted: bool,
}

impl<'h, P: Provider> Object<'h, P> {
    fn new(harness: &'h Harness<P>, name: &str) -> Object<'h, P> {
        Object {
            harness,
            name: name.to_owned(),
            state: None,
            private: Vec::new(),
            identity: None,
            tainted: false,
        }
    }

    /// Returns the state; `None` if the object does not exist.
    #[must_use]
    pub fn state(&self) -> Option<&Value> {
        self.state.as_ref()
    }

    /// Returns an attribute of the state; `None` if the object does not exist or has no such attribute.
    #[must_use]
    pub fn get(&self, attribute: &str) -> Option<&Value> {
        self.state.as_ref()?.get(attribute)
    }

    /// Sets the state of the object, as if it had been read from a file.
    pub fn set_state(&mut self, state: Option<Value>) {
        self.state = state.filter(|state| !state.is_null());
    }

    /// Returns the private data that the provider stored with the object.
    #[must_use]
    pub fn private(&self) -> &[u8] {
        &self.private
    }

    /// Replaces the private data of the object.
    pub fn set_private(&mut self, private: Vec<u8>) {
        self.private = private;
    }

    /// Returns the identity; `None` if the type has none or it is not known.
    #[must_use]
    pub fn identity(&self) -> Option<Value> {
        self.identity_value(self.identity.as_ref()?)
    }

    fn identity_value(&self, wire: &Wire) -> Option<Value> {
        wire::decode(wire, &self.harness.identity_type(&self.name)?).ok()
    }

    /// Returns true if a creation failed after the object had been created. The next [`Object::apply`] then replaces the object.
    #[must_use]
    pub fn is_tainted(&self) -> bool {
        self.tainted
    }

    fn into_state(self) -> Value {
        let ty = self.harness.schema(&self.name).ty.clone();
        self.state.unwrap_or_else(|| Value::null(ty))
    }

    /// Plans to create or update the object. The rules for configurations are not checked first; [`Harness::validate`] does that.
    pub async fn plan(&self, config: Config<'_>) -> Result<PlannedChange> {
        self.plan_from(self.state.as_ref(), self.private.clone(), config).await
    }

    async fn plan_from(&self, prior: Option<&Value>, private: Vec<u8>, config: Config<'_>) -> Result<PlannedChange> {
        let (harness, name) = (self.harness, self.name.as_str());
        let schema = harness.schema(name);
        let config = config::object(schema, config)?;
        let null = Value::null(schema.ty.clone());
        let proposed = proposed(&schema.members, prior.unwrap_or(&null), &config);
        let (prior, proposed) = (encode(prior, schema)?, encode(Some(&proposed), schema)?);
        let config = encode(Some(&config), schema)?;
        let (_call, options) = harness.begin();
        let beside = ObjectMetadata {
            private,
            identity: self.identity.clone(),
        };
        let changed = harness
            .provider
            .plan(name, &prior, &proposed, &config, beside, options)
            .await;
        harness.record(changed.deferred);
        harness.sort(changed.diagnostics)?;
        let path = |p: &Path| p.to_string().trim_start_matches('.').to_owned();
        Ok(PlannedChange {
            planned: decode(changed.state, schema)?,
            replace: changed.requires_replace.iter().map(path).collect(),
            private: changed.private,
            deferred: changed.deferred,
            identity: changed.identity.and_then(|wire| self.identity_value(&wire)),
        })
    }

    /// Validates, plans, and applies the plan: creates, updates or replaces the object. A result that differs from the plan is an error. A
    /// change that is deferred is not applied.
    pub async fn apply(&mut self, config: Config<'_>) -> Result<PlannedChange> {
        let errors = self.harness.validate(&self.name, config);
        self.harness.sort(errors)?;
        let mut plan = self.plan(config).await?;
        if plan.deferred.is_some() {
            return Ok(plan);
        }
        if self.state.is_some() && (self.tainted || !plan.replace.is_empty()) {
            let replace = std::mem::take(&mut plan.replace);
            self.destroy().await?;
            // As in a host, the second half of a replacement is planned as a creation.
            plan = self.plan_from(None, Vec::new(), config).await?;
            plan.replace = replace;
        }
        self.carry_out(
            Some(&plan.planned),
            config,
            plan.private.clone(),
            plan.identity.as_ref(),
        )
        .await?;
        self.conforms(&plan.planned)?;
        Ok(plan)
    }

    async fn carry_out(
        &mut self,
        planned: Option<&Value>,
        config: Config<'_>,
        private: Vec<u8>,
        identity: Option<&Value>,
    ) -> Result<()> {
        let (harness, name) = (self.harness, self.name.as_str());
        let schema = harness.schema(name);
        let config = match planned {
            Some(_) => encode(Some(&config::object(schema, config)?), schema)?,
            None => encode(None, schema)?,
        };
        let identity = match (identity, harness.identity_type(name)) {
            (Some(identity), Some(ty)) => Some(wire::encode(identity, &ty)?),
            _ => None,
        };
        let creates = self.state.is_none();
        let (prior, planned) = (encode(self.state.as_ref(), schema)?, encode(planned, schema)?);
        let (_call, options) = harness.begin();
        let changed = harness
            .provider
            .apply(
                name,
                prior,
                &planned,
                config,
                ObjectMetadata { private, identity },
                options,
            )
            .await;
        // As in a host, an object whose creation failed is tainted.
        self.tainted = creates && changed.diagnostics.has_errors();
        self.take(changed)
    }

    /// Stores the result of a step. The state is stored even if there are errors.
    fn take(&mut self, changed: Changed) -> Result<()> {
        let state = decode(changed.state, self.harness.schema(&self.name))?;
        self.set_state(Some(state));
        self.private = changed.private;
        self.identity = changed.identity;
        self.tainted &= self.state.is_some();
        self.harness.record(changed.deferred);
        self.harness.sort(changed.diagnostics)
    }

    /// Checks a new state against its plan: values known in the plan must be equal, and no value may be unknown.
    fn conforms(&self, planned: &Value) -> Result<()> {
        let lenient = self.harness.provider.is_lenient(&self.name);
        let mut found = Diagnostics::new();
        let Some(state) = &self.state else {
            let detail = "The plan has an object, but there is none after the operation.";
            return Err(Diagnostic::error("Provider produced inconsistent result after apply", detail).into());
        };
        // A host only logs such differences for types with the legacy type system.
        for (name, planned) in planned.entries().into_iter().flatten().filter(|_| !lenient) {
            let now = state.get(name);
            if let Some(now) = now
                && !agrees(planned, now)
            {
                let detail = format!("Attribute {name} was planned as {planned:?}, but it is {now:?}.");
                let summary = "Provider produced inconsistent result after apply";
                found.push(Diagnostic::error(summary, detail).at_attribute(name));
            }
        }
        if !state.is_wholly_known() {
            let detail = "After the operation some attributes are still unknown.";
            found.push(Diagnostic::error(
                "Provider returned invalid result object after apply",
                detail,
            ));
        }
        self.harness.sort(found)
    }

    /// Refreshes the object; does nothing if it does not exist.
    pub async fn read(&mut self) -> Result<()> {
        let schema = self.harness.schema(&self.name);
        let state = encode(self.state.as_ref(), schema)?;
        let (_call, options) = self.harness.begin();
        let (private, identity) = (self.private.clone(), self.identity.clone());
        let changed = self
            .harness
            .provider
            .read(&self.name, state, private, identity, options)
            .await;
        self.take(changed)
    }

    /// Plans to destroy the object.
    pub async fn plan_destroy(&self) -> Result<()> {
        let schema = self.harness.schema(&self.name);
        let (prior, none) = (encode(self.state.as_ref(), schema)?, encode(None, schema)?);
        let (_call, options) = self.harness.begin();
        let beside = ObjectMetadata {
            private: self.private.clone(),
            identity: self.identity.clone(),
        };
        let provider = &self.harness.provider;
        let changed = provider.plan(&self.name, &prior, &none, &none, beside, options).await;
        self.harness.record(changed.deferred);
        self.harness.sort(changed.diagnostics)
    }

    /// Plans the destruction of the object, and destroys it.
    pub async fn destroy(&mut self) -> Result<()> {
        self.plan_destroy().await?;
        self.carry_out(None, &[], self.private.clone(), None).await?;
        match &self.state {
            None => Ok(()),
            Some(_) => {
                let detail = "The plan destroys the object, but there is one after the operation.";
                Err(Diagnostic::error("Provider produced inconsistent result after apply", detail).into())
            }
        }
    }

    /// Imports the object by its ID.
    pub async fn import(&mut self, id: &str) -> Result<()> {
        self.import_by(id, None).await
    }

    /// Imports the object by its identity. Attributes of the identity that are not in the argument are null.
    pub async fn import_identity(&mut self, identity: Config<'_>) -> Result<()> {
        let Some(ty) = self.harness.identity_type(&self.name) else {
            return Err(without_identity(&self.name).into());
        };
        let attributes = ty.as_object().map(|o| o.attributes()).unwrap_or_default();
        if let Some((name, _)) = identity
            .iter()
            .find(|(name, _)| attributes.iter().all(|a| &*a.name != *name))
        {
            let detail = format!("There is no attribute {name:?} in this identity.");
            return Err(Diagnostic::error("Unsupported Argument", detail)
                .at_attribute(name)
                .into());
        }
        let values = attributes.iter().map(|a| {
            let given = identity.iter().find(|(name, _)| *name == &*a.name);
            (
                a.name.clone(),
                given.map_or_else(|| Value::null(a.ty.clone()), |(_, value)| value.clone()),
            )
        });
        let value = Value::object(values.collect::<Vec<_>>());
        let wire = wire::encode(&value, &ty)?;
        self.import_by("", Some(wire)).await
    }

    async fn import_by(&mut self, id: &str, identity: Option<Wire>) -> Result<()> {
        let (_call, options) = self.harness.begin();
        let changed = self.harness.provider.import(&self.name, id, identity, options).await;
        self.take(changed)
    }

    /// Converts the state of a resource of another type to this object, with its private data.
    pub async fn move_from(&mut self, source: MoveSource, private: Vec<u8>) -> Result<()> {
        let moved = MovedObject {
            state: raw(&source.state.to_string()),
            provider: source.provider,
            type_name: source.type_name,
            schema_version: source.schema_version,
            private,
            identity: source.identity.map(|i| raw(&i.to_string())),
            identity_schema_version: source.identity_schema_version,
        };
        let (_call, options) = self.harness.begin();
        let provider = &self.harness.provider;
        let changed = provider.move_from(&self.name, moved, options).await;
        self.take(changed)
    }
}

fn without_identity(name: &str) -> Diagnostic {
    let detail = format!("Objects of type {name} have no identity.");
    Diagnostic::error("Import by Identity Not Supported", detail)
}

/// Returns true if a result is as planned: equal in all parts that the plan knew.
fn agrees(planned: &Value, now: &Value) -> bool {
    if !planned.is_known() || planned == now {
        return true;
    }
    match (planned.as_seq(), now.as_seq(), planned.ty()) {
        // If the plan has unknown elements of a set, these cannot be paired with elements of the result.
        (Some(planned), Some(_), Type::Set(_)) if !planned.iter().all(Value::is_wholly_known) => true,
        (Some(_), Some(_), Type::Set(_)) => false,
        (Some(planned), Some(now), _) => {
            planned.len() == now.len() && planned.iter().zip(now).all(|(planned, now)| agrees(planned, now))
        }
        _ => match (planned.entries(), now.entries()) {
            (Some(planned_entries), Some(_)) => {
                planned.len() == now.len()
                    && planned_entries
                        .into_iter()
                        .all(|(name, planned)| now.get(name).is_some_and(|now| agrees(planned, now)))
            }
            _ => false,
        },
    }
}
