//! For the tests of plugins: a provider driven as the core drives it, without a process or a socket.
//!
//! Values go through the same encoding, planning and diagnostics as in the real thing, and configurations are checked for names
//! that the schema does not have. Errors come back as [`Diagnostics`]; warnings are collected ([`Harness::warnings`]).
//!
//! [`Harness::object`] is an object of a managed resource with all its life: planned, applied, read again, imported, destroyed,
//! with its state and private data between the steps. [`Harness::ephemeral`] is the same for an ephemeral resource.
//! [`state_store::conformance`] checks a state store.
//!
//! ```
//! # use monoform_sdk::schema::{computed, required};
//! # use monoform_sdk::{Attr, Context, Plain, Resource, Result, async_trait, model, testing::Harness};
//! # model! {
//! #     pub struct Pet {
//! #         pub name: Attr<String> = required().requires_replace(),
//! #         pub id: Attr<String> = computed().keep(),
//! #     }
//! # }
//! # struct Pets;
//! # #[async_trait]
//! # impl Resource for Pets {
//! #     type Model = Pet;
//! #     type Client = ();
//! #     async fn create(&self, plan: Pet, _: &mut Context<()>) -> Result<Pet> {
//! #         Ok(Pet { id: "1".into(), ..plan })
//! #     }
//! # }
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<()> {
//! let harness = Harness::new(Plain(|members| members.resource("zoo_pet", Pets)));
//! let mut pet = harness.object("zoo_pet");
//! pet.apply(&[("name", "Bo".into())]).await?;
//! assert_eq!(pet.get("id"), Some(&"1".into()));
//! assert_eq!(pet.plan(&[("name", "Max".into())]).await?.replace, ["name"]);
//! assert!(pet.apply(&[("nmae", "Bo".into())]).await.is_err(), "there is no such attribute");
//! pet.destroy().await
//! # }
//! ```

mod action;
mod config;
mod ephemeral;
mod object;
mod proposed;
pub mod state_store;

use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError};

use cty::{Type, Value};

pub use self::ephemeral::Ephemeral;
pub use self::object::Object;
use crate::resource::identity_type;
use crate::schema::Compiled;
use crate::server::core::{Changed, Core};
use crate::wire::{RawState, Wire};
use crate::{Diagnostic, Diagnostics, FunctionError, MoveSource, Provider, Result};

/// A provider under test.
pub struct Harness<P: Provider> {
    core: Core,
    warnings: Mutex<Vec<Diagnostic>>,
    provider: PhantomData<P>,
}

/// A plan for one object.
#[derive(Clone, Debug)]
pub struct PlannedChange {
    /// The planned object.
    pub planned: Value,
    /// The attributes whose change means replacement: names, or paths as text.
    pub replace: Vec<String>,
    /// What the provider notes beside the planned object.
    pub private: Vec<u8>,
    /// The identity of the planned object, once it is known.
    pub identity: Option<Value>,
}

/// An object of a configuration: values by attribute name. Of two values for one name, the later holds.
pub type Config<'a> = &'a [(&'a str, Value)];

impl<P: Provider> Harness<P> {
    /// Takes the provider under test, not configured yet.
    ///
    /// # Panics
    /// If the provider could not be served, since a schema of it cannot work.
    #[allow(clippy::panic, reason = "a test fails by panicking")]
    pub fn new(provider: P) -> Harness<P> {
        let core = Core::new(provider);
        assert!(
            core.problems.is_empty(),
            "these schemas cannot work:\n- {}",
            core.problems.join("\n- ")
        );
        Harness {
            core,
            warnings: Mutex::default(),
            provider: PhantomData,
        }
    }

    /// Configures the provider.
    pub async fn configure(&self, config: Config<'_>) -> Result<()> {
        let schema = self.core.config_schema();
        let wire = encode(Some(&config::object(schema, config)?), schema)?;
        self.sort(self.core.validate_provider(&wire))?;
        self.sort(self.core.configure(&wire, "1.11.4").await)
    }

    /// Every type and every attribute, with one word for each property: to compare with what is documented.
    #[must_use]
    pub fn schema_text(&self) -> String {
        let mut out = String::new();
        let resources = self.core.resources.iter().map(|(n, r)| ("resource", *n, r.schema()));
        let data = self.core.data_sources.iter().map(|(n, r)| ("data", *n, r.schema()));
        let ephemerals = self.core.ephemerals.iter().map(|(n, r)| ("ephemeral", *n, r.schema()));
        let actions = self.core.actions.iter().map(|(n, a)| ("action", *n, a.schema()));
        for (kind, name, schema) in resources.chain(data).chain(ephemerals).chain(actions) {
            out.push_str(&format!("{kind} {name} v{}\n", schema.schema.version));
            let mut attributes: Vec<_> = schema.schema.root.attributes.iter().collect();
            attributes.sort_by_key(|a| a.name);
            for a in attributes {
                let words = [
                    (a.required, "required"),
                    (a.optional, "optional"),
                    (a.computed, "computed"),
                    (a.sensitive, "sensitive"),
                    (a.write_only, "write-only"),
                    (a.deprecated.is_some(), "deprecated"),
                ];
                let words: Vec<&str> = words
                    .into_iter()
                    .filter_map(|(yes, word)| yes.then_some(word))
                    .collect();
                out.push_str(&format!("  {} {} {}\n", a.name, a.ty, words.join(" ")));
            }
        }
        out
    }

    /// The warnings since this was last asked.
    pub fn warnings(&self) -> Vec<Diagnostic> {
        std::mem::take(&mut *self.warnings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps warnings; errors, and what was said beside them, are the result.
    fn sort(&self, found: Diagnostics) -> Result<()> {
        if found.has_errors() {
            return Err(found);
        }
        self.warnings
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(found.0);
        Ok(())
    }

    /// Asks the calls in progress to stop, as a program does whose person asks it to.
    pub fn stop(&self) {
        self.core.calls.stop();
    }

    /// An object of this type of managed resource, which does not exist yet.
    pub fn object(&self, name: &str) -> Object<'_, P> {
        Object::new(self, name)
    }

    /// An ephemeral resource of this type, opened.
    pub async fn ephemeral(&self, name: &str, config: Config<'_>) -> Result<Ephemeral<'_, P>> {
        Ephemeral::open(self, name, config).await
    }

    /// Checks a configuration of a managed resource. Warnings are in the result, too.
    #[must_use]
    pub fn validate(&self, name: &str, config: Config<'_>) -> Diagnostics {
        match self.resource_config(name, config) {
            Ok(wire) => self.core.validate_resource(name, &wire, true),
            Err(errors) => errors,
        }
    }

    /// Plans an object from a configuration and the object of before.
    pub async fn plan(&self, name: &str, prior: Option<&Value>, config: Config<'_>) -> Result<PlannedChange> {
        self.object_in(name, prior).plan(config).await
    }

    /// Carries out a plan that was made from this configuration; `None` as the plan destroys.
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

    /// Plans and creates an object.
    pub async fn create(&self, name: &str, config: Config<'_>) -> Result<Value> {
        let mut object = self.object(name);
        object.apply(config).await?;
        Ok(object.into_state())
    }

    /// Reads an object again; null if it is gone.
    pub async fn read(&self, name: &str, state: &Value) -> Result<Value> {
        let mut object = self.object_in(name, Some(state));
        object.read().await?;
        Ok(object.into_state())
    }

    /// Imports an object.
    pub async fn import(&self, name: &str, id: &str) -> Result<Value> {
        let mut object = self.object(name);
        object.import(id).await?;
        Ok(object.into_state())
    }

    /// Upgrades a state, given as JSON text.
    pub fn upgrade(&self, name: &str, version: i64, json: &str) -> Result<Value> {
        let (state, diagnostics) = self.core.upgrade(name, version, &raw(json));
        self.sort(diagnostics)?;
        decode(state, self.schema(name))
    }

    /// Moves the state of another type to this one, with what was noted beside it.
    pub async fn move_from(&self, name: &str, source: MoveSource, private: Vec<u8>) -> Result<Value> {
        let mut object = self.object(name);
        object.move_from(source, private).await?;
        Ok(object.into_state())
    }

    /// Checks and reads a data source.
    pub async fn data(&self, name: &str, config: Config<'_>) -> Result<Value> {
        let schema = self.core.data_sources.get(name).map_or(&*EMPTY, |d| d.schema());
        let wire = encode(Some(&config::object(schema, config)?), schema)?;
        self.sort(self.core.validate_data_source(name, &wire))?;
        let call = self.core.calls.begin();
        let answer = self.core.read_data_source(name, &wire, call.stop().into()).await;
        self.sort(answer.diagnostics)?;
        decode(answer.state, schema)
    }

    /// Checks and opens an ephemeral resource; [`Harness::ephemeral`] is for what comes after.
    pub async fn open(&self, name: &str, config: Config<'_>) -> Result<Value> {
        Ok(self.ephemeral(name, config).await?.result().clone())
    }

    /// Calls a function.
    pub fn call(&self, name: &str, arguments: &[Value]) -> std::result::Result<Value, FunctionError> {
        let function = self
            .core
            .functions
            .get(name)
            .ok_or_else(|| FunctionError::new(format!("there is no function {name:?}")))?;
        let problem = |errors: Diagnostics| {
            let texts: Vec<String> = errors.0.into_iter().map(|d| d.detail).collect();
            FunctionError::new(texts.join(" "))
        };
        let mut wires = Vec::with_capacity(arguments.len());
        for (i, value) in arguments.iter().enumerate() {
            let parameter = function.parameter(i);
            if value.is_null() && parameter.is_some_and(|p| !p.allow_null) {
                return Err(FunctionError::argument(i, "argument must not be null"));
            }
            if !value.is_wholly_known() && parameter.is_some_and(|p| !p.allow_unknown) {
                // The core does not call it then.
                return Ok(Value::unknown(function.returns.clone()));
            }
            let ty = parameter.map_or(Type::Dynamic, |p| p.ty.clone());
            let value = cty::convert::convert(value, &ty).map_err(|e| FunctionError::argument(i, e.message))?;
            wires.push(crate::wire::encode(&value, &ty).map_err(problem)?);
        }
        let result = self.core.call(name, &wires)?;
        crate::wire::decode(&result, &function.returns).map_err(problem)
    }

    fn schema(&self, name: &str) -> &Compiled {
        self.core.resources.get(name).map_or(&*EMPTY, |r| r.schema())
    }

    /// The type of the identity of such objects, if they have one.
    fn identity_type(&self, name: &str) -> Option<Type> {
        let resource = self.core.resources.get(name)?;
        (!resource.identity().is_empty()).then(|| identity_type(resource.schema(), resource.identity()))
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
}

/// For names that the provider does not have: the call itself then says so.
static EMPTY: std::sync::LazyLock<Compiled> =
    std::sync::LazyLock::new(|| Compiled::new(crate::Schema::of::<crate::Empty>()));

fn encode(value: Option<&Value>, schema: &Compiled) -> Result<Wire> {
    let null = Value::null(schema.ty.clone());
    crate::wire::encode(value.unwrap_or(&null), &schema.ty)
}

fn decode(wire: Option<Wire>, schema: &Compiled) -> Result<Value> {
    crate::wire::decode(&wire.unwrap_or_default(), &schema.ty)
}

fn raw(json: &str) -> RawState {
    RawState {
        json: json.as_bytes().to_vec(),
        is_flat: false,
    }
}
