//! Object-safe form of state stores, which takes values instead of models. The server uses it, and so do programs that call stores in their
//! own process.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use cty::{Type, Value};

use super::contract::{StateClient, StateStore};
use crate::check::{against_schema, own_rules};
use crate::diag::{Diagnostic, Diagnostics, Result};
use crate::model::Cty as _;
use crate::schema::{Block, Compiled, Nesting};

/// A state store of any type, with values instead of models.
pub struct AnyStateStore {
    schema: Compiled,
    store: Box<dyn Erased>,
}

#[async_trait]
trait Erased: Send + Sync {
    fn validate(&self, config: &Value) -> Diagnostics;
    async fn configure(&self, config: &Value) -> Result<Arc<dyn StateClient>>;
}

#[async_trait]
impl<S: StateStore> Erased for S {
    fn validate(&self, config: &Value) -> Diagnostics {
        own_rules(config, |model: &S::Config| StateStore::validate(self, model))
    }

    async fn configure(&self, config: &Value) -> Result<Arc<dyn StateClient>> {
        StateStore::configure(self, S::Config::from_cty(config)?).await
    }
}

impl AnyStateStore {
    /// Wraps a store of any type.
    #[must_use]
    pub fn new(store: impl StateStore) -> AnyStateStore {
        AnyStateStore {
            schema: Compiled::new(store.schema()),
            store: Box::new(store),
        }
    }

    /// Returns the schema of the store's configuration.
    #[must_use]
    pub fn schema(&self) -> &Compiled {
        &self.schema
    }

    /// Checks a configuration of the schema's type.
    #[must_use]
    pub fn validate(&self, config: &Value) -> Diagnostics {
        if config.is_null() {
            return Diagnostics::new();
        }
        let mut found = against_schema(&self.schema, config, true);
        found.append(self.store.validate(config));
        found
    }

    /// Creates the client from a configuration of the schema's type.
    ///
    /// # Errors
    /// The store rejects the configuration.
    pub async fn configure(&self, config: &Value) -> Result<Arc<dyn StateClient>> {
        self.store.configure(config).await
    }

    /// Converts an object or a map with some of the arguments to a value of the schema's type. Nested blocks are given as objects, or as
    /// lists, sets or tuples of objects.
    ///
    /// # Errors
    /// An argument is not in the schema, or its value has the wrong type.
    pub fn coerce(&self, config: &Value) -> Result<Value> {
        coerce(&self.schema.schema.root, config, "")
    }
}

fn wrong(path: &str, problem: impl std::fmt::Display) -> Diagnostics {
    let place = match path {
        "" => String::new(),
        path => format!("{path}: "),
    };
    Diagnostic::error(
        "Invalid backend configuration",
        format!("The backend configuration is incorrect: {place}{problem}."),
    )
    .into()
}

fn coerce(block: &Block, config: &Value, path: &str) -> Result<Value> {
    let entries: BTreeMap<&str, &Value> = match config.is_null() {
        true => BTreeMap::new(),
        false => {
            let entries = config.entries().ok_or_else(|| wrong(path, "an object is required"))?;
            entries.map(|(name, value)| (&**name, value)).collect()
        }
    };
    let below = |name: &str| match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    };
    let known =
        |name: &str| block.attributes.iter().any(|a| a.name == name) || block.blocks.iter().any(|b| b.name == name);
    // Checked before any value is converted: a misspelled argument explains most of the other errors.
    if let Some(name) = entries.keys().find(|name| !known(name)) {
        return Err(wrong(path, format!("unsupported attribute \"{name}\"")));
    }
    let mut out: Vec<(&'static str, Value)> = Vec::new();
    for attribute in &block.attributes {
        let value = match entries.get(attribute.name) {
            Some(value)
                if !value.is_null() && attribute.nested.as_ref().is_some_and(|n| n.nesting == Nesting::Single) =>
            {
                match &attribute.nested {
                    Some(nested) => coerce(&nested.block, value, &below(attribute.name))?,
                    None => Value::null(attribute.ty.clone()),
                }
            }
            Some(value) => cty::convert(value, &attribute.ty).map_err(|e| wrong(&below(attribute.name), e.message))?,
            None if attribute.required => {
                return Err(wrong(path, format!("attribute \"{}\" is required", attribute.name)));
            }
            None => Value::null(attribute.ty.clone()),
        };
        out.push((attribute.name, value));
    }
    for nested in &block.blocks {
        let place = below(nested.name);
        let given = entries.get(nested.name).filter(|value| !value.is_null());
        let ty = nested.block.ty();
        let value = match (nested.nesting, given) {
            (Nesting::Single, None) => Value::null(ty),
            // A missing group is an empty object instead of null: its attributes are null, and its blocks are empty.
            (Nesting::Single | Nesting::Group, given) => {
                let none = Value::null(ty);
                coerce(&nested.block, given.copied().unwrap_or(&none), &place)?
            }
            (_, None) => collection(nested.nesting, ty, Vec::new()),
            (nesting, Some(value)) => {
                let elements = value.as_seq().filter(|_| value.entries().is_none());
                let elements = elements.ok_or_else(|| wrong(&place, "a list of objects is required"))?;
                let elements = elements
                    .iter()
                    .map(|e| coerce(&nested.block, e, &place))
                    .collect::<Result<_>>()?;
                collection(nesting, ty, elements)
            }
        };
        out.push((nested.name, value));
    }
    Ok(Value::object(out))
}

fn collection(nesting: Nesting, element: Type, elements: Vec<Value>) -> Value {
    match nesting {
        Nesting::Set => Value::set(element, elements),
        _ => Value::list(element, elements),
    }
}
