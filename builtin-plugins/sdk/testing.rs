//! For the tests of plugins: a provider driven as the core drives it, without a process or a socket.
//!
//! Values go through the same encoding, planning and diagnostics as in the real thing. Errors come back as
//! [`Diagnostics`].

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;

use cty::{Type, Value};

use crate::schema::{Compiled, Nesting};
use crate::server::core::{Changed, Core, RawState, Wire};
use crate::{Diagnostics, FunctionError, Provider, Result};

/// A provider under test.
pub struct Harness<P: Provider> {
    core: Core,
    provider: PhantomData<P>,
}

/// A plan for one object.
#[derive(Clone, Debug)]
pub struct PlannedChange {
    /// The planned object.
    pub planned: Value,
    /// The attributes whose change means replacement: names, or paths as text.
    pub replace: Vec<String>,
}

/// An object of a configuration: values by attribute name.
pub type Config<'a> = &'a [(&'a str, Value)];

impl<P: Provider> Harness<P> {
    /// Takes the provider under test, not configured yet.
    pub fn new(provider: P) -> Harness<P> {
        Harness {
            core: Core::new(provider),
            provider: PhantomData,
        }
    }

    /// Configures the provider.
    pub async fn configure(&self, config: Config<'_>) -> Result<()> {
        let schema = self.core.config_schema();
        let wire = encode(Some(&object(schema, config)), schema)?;
        let mut found = self.core.validate_provider(&wire);
        if !found.has_errors() {
            found.append(self.core.configure(&wire, "1.11.4").await);
        }
        if found.has_errors() { Err(found) } else { Ok(()) }
    }

    /// Every type and every attribute, with one word for each property: to compare with what is documented.
    #[must_use]
    pub fn schema_text(&self) -> String {
        let mut out = String::new();
        let resources = self.core.resources.iter().map(|(n, r)| ("resource", *n, r.schema()));
        let data = self.core.data_sources.iter().map(|(n, r)| ("data", *n, r.schema()));
        let ephemerals = self.core.ephemerals.iter().map(|(n, r)| ("ephemeral", *n, r.schema()));
        for (kind, name, schema) in resources.chain(data).chain(ephemerals) {
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

    /// Checks a configuration of a managed resource.
    #[must_use]
    pub fn validate(&self, name: &str, config: Config<'_>) -> Diagnostics {
        match self.resource_config(name, config) {
            Ok(wire) => self.core.validate_resource(name, &wire, true),
            Err(errors) => errors,
        }
    }

    /// Plans an object from a configuration and the object of before.
    pub async fn plan(&self, name: &str, prior: Option<&Value>, config: Config<'_>) -> Result<PlannedChange> {
        let schema = self.schema(name);
        let config = object(schema, config);
        let proposed = proposed(schema, prior, &config);
        let prior = encode(prior, schema)?;
        let (proposed, config) = (encode(Some(&proposed), schema)?, encode(Some(&config), schema)?);
        let changed = self.core.plan(name, &prior, &proposed, &config, vec![]).await;
        let replace = changed
            .requires_replace
            .iter()
            .map(|p| p.to_string().trim_start_matches('.').into())
            .collect();
        Ok(PlannedChange {
            planned: self.state(schema, changed)?,
            replace,
        })
    }

    /// Carries out a plan, without the configuration behind it; `None` as the plan destroys.
    pub async fn apply(&self, name: &str, prior: Option<&Value>, planned: Option<&Value>) -> Result<Value> {
        self.apply_config(name, prior, planned, Wire::default()).await
    }

    async fn apply_config(
        &self,
        name: &str,
        prior: Option<&Value>,
        planned: Option<&Value>,
        config: Wire,
    ) -> Result<Value> {
        let schema = self.schema(name);
        let (prior, planned) = (encode(prior, schema)?, encode(planned, schema)?);
        let changed = self.core.apply(name, prior, &planned, config, vec![]).await;
        self.state(schema, changed)
    }

    /// Plans and creates an object.
    pub async fn create(&self, name: &str, config: Config<'_>) -> Result<Value> {
        let errors = self.validate(name, config);
        if errors.has_errors() {
            return Err(errors);
        }
        let planned = self.plan(name, None, config).await?.planned;
        let config = self.resource_config(name, config)?;
        self.apply_config(name, None, Some(&planned), config).await
    }

    /// Reads an object again; null if it is gone.
    pub async fn read(&self, name: &str, state: &Value) -> Result<Value> {
        let schema = self.schema(name);
        let changed = self.core.read(name, encode(Some(state), schema)?, vec![]).await;
        self.state(schema, changed)
    }

    /// Imports an object.
    pub async fn import(&self, name: &str, id: &str) -> Result<Value> {
        let changed = self.core.import(name, id, None).await;
        self.state(self.schema(name), changed)
    }

    /// Upgrades a state, given as JSON text.
    pub fn upgrade(&self, name: &str, version: i64, json: &str) -> Result<Value> {
        let (state, diagnostics) = self.core.upgrade(
            name,
            version,
            &RawState {
                json: json.as_bytes().to_vec(),
                is_flat: false,
            },
        );
        self.state(
            self.schema(name),
            Changed {
                state,
                diagnostics,
                ..Changed::default()
            },
        )
    }

    /// Moves the state of another type, given as JSON text, to this one.
    pub async fn move_from(&self, name: &str, provider: &str, type_name: &str, json: &str) -> Result<Value> {
        let raw = RawState {
            json: json.as_bytes().to_vec(),
            is_flat: false,
        };
        let changed = self
            .core
            .move_from(name, provider.into(), type_name.into(), 0, &raw, vec![])
            .await;
        self.state(self.schema(name), changed)
    }

    /// Checks and reads a data source.
    pub async fn data(&self, name: &str, config: Config<'_>) -> Result<Value> {
        let schema = self.core.data_sources.get(name).map_or(&*EMPTY, |d| d.schema());
        let wire = encode(Some(&object(schema, config)), schema)?;
        let errors = self.core.validate_data_source(name, &wire);
        if errors.has_errors() {
            return Err(errors);
        }
        let (state, diagnostics) = self.core.read_data_source(name, &wire).await;
        self.state(
            schema,
            Changed {
                state,
                diagnostics,
                ..Changed::default()
            },
        )
    }

    /// Checks and opens an ephemeral resource.
    pub async fn open(&self, name: &str, config: Config<'_>) -> Result<Value> {
        let schema = self.core.ephemerals.get(name).map_or(&*EMPTY, |d| d.schema());
        let wire = encode(Some(&object(schema, config)), schema)?;
        let errors = self.core.validate_ephemeral(name, &wire);
        if errors.has_errors() {
            return Err(errors);
        }
        let answer = self.core.open(name, &wire).await;
        self.state(
            schema,
            Changed {
                state: answer.result,
                diagnostics: answer.diagnostics,
                ..Changed::default()
            },
        )
    }

    /// Calls a function.
    pub fn call(&self, name: &str, arguments: &[Value]) -> std::result::Result<Value, FunctionError> {
        let function = self
            .core
            .functions
            .get(name)
            .ok_or_else(|| FunctionError::new("no such function"))?;
        function.call(arguments)
    }

    fn schema(&self, name: &str) -> &Compiled {
        self.core.resources.get(name).map_or(&*EMPTY, |r| r.schema())
    }

    fn resource_config(&self, name: &str, config: Config<'_>) -> Result<Wire> {
        let schema = self.schema(name);
        encode(Some(&object(schema, config)), schema)
    }

    fn state(&self, schema: &Compiled, changed: Changed) -> Result<Value> {
        if changed.diagnostics.has_errors() {
            return Err(changed.diagnostics);
        }
        crate::server::core::decode(&changed.state.unwrap_or_default(), &schema.ty)
    }
}

/// For names that the provider does not have: the call itself then says so.
static EMPTY: std::sync::LazyLock<Compiled> =
    std::sync::LazyLock::new(|| Compiled::new(crate::Schema::of::<crate::Empty>()));

fn encode(value: Option<&Value>, schema: &Compiled) -> Result<Wire> {
    let null = Value::null(schema.ty.clone());
    crate::server::core::encode(value.unwrap_or(&null), &schema.ty)
}

/// The object of a configuration; what is not given is null, or no blocks.
fn object(schema: &Compiled, config: Config<'_>) -> Value {
    let given: BTreeMap<&str, &Value> = config.iter().map(|(name, value)| (*name, value)).collect();
    let values = schema.object.attributes().iter().map(|a| match given.get(&*a.name) {
        Some(value) => (*value).clone(),
        None => absent(schema, &a.name, &a.ty),
    });
    Value::object_of(&schema.object, values.collect())
}

fn absent(schema: &Compiled, name: &str, ty: &Type) -> Value {
    match (
        schema
            .schema
            .root
            .blocks
            .iter()
            .find(|b| b.name == name)
            .map(|b| b.nesting),
        ty,
    ) {
        (Some(Nesting::List), Type::List(element)) => Value::list((**element).clone(), Vec::new()),
        (Some(Nesting::List), _) => Value::empty_tuple(),
        (Some(Nesting::Map), Type::Map(element)) => Value::map((**element).clone(), BTreeMap::new()),
        (Some(Nesting::Map), _) => Value::empty_object(),
        (Some(Nesting::Group), Type::Object(object)) => {
            let nulls = object.attributes().iter().map(|a| Value::null(a.ty.clone()));
            Value::object_of(object, nulls.collect())
        }
        (Some(Nesting::Set), Type::Set(element)) => Value::set((**element).clone(), Vec::new()),
        _ => Value::null(ty.clone()),
    }
}

/// What the core proposes: the configuration, and the values of before for computed attributes it leaves out.
fn proposed(schema: &Compiled, prior: Option<&Value>, config: &Value) -> Value {
    let computed = |name: &Arc<str>| {
        schema
            .schema
            .root
            .attributes
            .iter()
            .any(|a| a.name == &**name && a.computed)
    };
    config.map_parts(|part, value| match part {
        cty::value::Part::Attribute(name) if value.is_null() && computed(name) => prior
            .and_then(|p| p.get(name))
            .cloned()
            .unwrap_or_else(|| value.clone()),
        _ => value.clone(),
    })
}
