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
use crate::schema::{Compiled, CompiledMember, LazySchema, Nesting, Schema};

/// A state store of any type, with values instead of models.
pub struct AnyStateStore {
    schema: LazySchema,
    store: Box<dyn Erased>,
}

#[async_trait]
trait Erased: Send + Sync {
    fn schema(&self) -> Schema;
    fn validate(&self, config: &Value) -> Diagnostics;
    async fn configure(&self, config: &Value) -> Result<Arc<dyn StateClient>>;
}

#[async_trait]
impl<S: StateStore> Erased for S {
    fn schema(&self) -> Schema {
        StateStore::schema(self)
    }

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
            schema: LazySchema::default(),
            store: Box::new(store),
        }
    }

    /// Returns the schema of the store's configuration.
    #[must_use]
    pub fn schema(&self) -> &Compiled {
        self.schema.get(|| self.store.schema())
    }

    pub(crate) fn declared(&self) -> Schema {
        self.store.schema()
    }

    /// Checks a configuration of the schema's type.
    #[must_use]
    pub fn validate(&self, config: &Value) -> Diagnostics {
        if config.is_null() {
            return Diagnostics::new();
        }
        let mut found = against_schema(self.schema(), config, true);
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
        coerce(&self.schema().members, config, "")
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

fn coerce(members: &[CompiledMember], config: &Value, path: &str) -> Result<Value> {
    let entries: BTreeMap<&str, &Value> = match config.is_null() {
        true => BTreeMap::new(),
        false => {
            let entries = config.entries().ok_or_else(|| wrong(path, "an object is required"))?;
            entries.map(|(name, value)| (&**name, value)).collect()
        }
    };
    // Before values are converted: a misspelled argument explains most of the other errors.
    let known = |name: &str| members.iter().any(|m| m.name() == name);
    if let Some(name) = entries.keys().find(|name| !known(name)) {
        return Err(wrong(path, format!("unsupported attribute \"{name}\"")));
    }
    let mut out: Vec<(&'static str, Value)> = Vec::with_capacity(members.len());
    for member in members {
        let name = member.name();
        let below = match path {
            "" => name.to_owned(),
            path => format!("{path}.{name}"),
        };
        out.push((name, member_value(member, entries.get(name).copied(), path, &below)?));
    }
    Ok(Value::object(out))
}

/// Converts the argument for a member of the block at `path`; `below` is the path of the member.
fn member_value(member: &CompiledMember, given: Option<&Value>, path: &str, below: &str) -> Result<Value> {
    match (member, given) {
        (CompiledMember::Nested(_, Nesting::Single, inside), Some(value)) if !value.is_null() => {
            coerce(inside, value, below)
        }
        (CompiledMember::Attribute(a) | CompiledMember::Nested(a, ..), Some(value)) => {
            cty::convert(value, &a.ty).map_err(|e| wrong(below, e.message))
        }
        (CompiledMember::Attribute(a) | CompiledMember::Nested(a, ..), None) if a.required => {
            Err(wrong(path, format!("attribute \"{}\" is required", a.name)))
        }
        (CompiledMember::Attribute(a) | CompiledMember::Nested(a, ..), None) => Ok(Value::null(a.ty.clone())),
        (CompiledMember::Block(block, ty, inside), given) => {
            let given = given.filter(|value| !value.is_null());
            let none = Value::null(ty.clone());
            match (block.nesting, given) {
                (Nesting::Single, None) => Ok(none),
                // A group is never null: without arguments, it has its defaults.
                (Nesting::Single | Nesting::Group, given) => coerce(inside, given.unwrap_or(&none), below),
                (nesting, given) => blocks(nesting, ty, inside, given, below),
            }
        }
    }
}

/// Converts the list of objects for repeated blocks.
fn blocks(nesting: Nesting, ty: &Type, inside: &[CompiledMember], given: Option<&Value>, path: &str) -> Result<Value> {
    let element = ty.element().cloned().unwrap_or(Type::Dynamic);
    let elements = match given {
        None => Vec::new(),
        Some(value) => {
            let elements = value.as_seq().filter(|_| value.entries().is_none());
            let elements = elements.ok_or_else(|| wrong(path, "a list of objects is required"))?;
            elements
                .iter()
                .map(|e| coerce(inside, e, path))
                .collect::<Result<_>>()?
        }
    };
    Ok(collection(nesting, element, elements))
}

fn collection(nesting: Nesting, element: Type, elements: Vec<Value>) -> Value {
    match nesting {
        Nesting::Set => Value::set(element, elements),
        _ => Value::list(element, elements),
    }
}
