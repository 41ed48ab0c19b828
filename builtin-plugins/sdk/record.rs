//! Objects whose attributes are known at run time only.

use std::fmt;
use std::sync::Arc;

use cty::{ObjectType, Type, Value};

use crate::diag::{Diagnostic, Result};
use crate::model::{Cty, Model, ModelError};
use crate::schema::Member;

/// The values of an object whose schema is built at run time, for example from an API description of a service. A resource, data source or
/// other member uses `Record` as its model, and returns the schema from its method `schema`:
///
/// ```
/// use monoform_sdk::cty::Type;
/// use monoform_sdk::schema::{computed, intern, required};
/// use monoform_sdk::{Context, Members, Record, Resource, Result, Schema, async_trait};
///
/// /// A type of the service, as its description declares it.
/// struct Described {
///     fields: Vec<(String, Type)>,
/// }
///
/// #[async_trait]
/// impl Resource for Described {
///     type Model = Record;
///     type Client = ();
///
///     fn schema(&self) -> Schema {
///         let fields = self.fields.iter().map(|(name, ty)| required().named(name, ty.clone(), "From the description."));
///         Schema::of_members(fields.chain([computed().keep().named("id", Type::String, "")]))
///     }
///
///     async fn create(&self, plan: Record, _cx: &mut Context<()>) -> Result<Record> {
///         Ok(plan.with("id", "7"))
///     }
/// }
///
/// fn members(members: &mut Members<()>, name: &str, fields: Vec<(String, Type)>) {
///     members.resource(intern(name), Described { fields });
/// }
/// # let _ = members;
/// ```
///
/// Attributes that an object lacks become null; values are converted to the types of the schema.
#[derive(Clone, PartialEq)]
pub struct Record(Value);

impl Record {
    /// Creates an object with these values.
    pub fn new<N: Into<Arc<str>>, V: Into<Value>>(values: impl IntoIterator<Item = (N, V)>) -> Record {
        Record(Value::object(
            values.into_iter().map(|(name, value)| (name, value.into())),
        ))
    }

    /// Returns the object as a value.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.0
    }

    /// Returns the value of an attribute, as an `Attr` if it may be null or unknown.
    ///
    /// # Errors
    /// There is no attribute of this name, or it has another type.
    pub fn get<T: Cty>(&self, name: &str) -> Result<T> {
        let value = self.0.get(name).ok_or_else(|| {
            let detail =
                format!("The plugin reads \"{name}\", which this object does not have. This is a bug in the plugin.");
            Diagnostic::error("No Such Attribute", detail)
        })?;
        let read = T::from_cty(value).map_err(|error| error.under(cty::Step::Attribute(name.into())));
        Ok(read?)
    }

    /// Returns the object with a new value of one attribute.
    #[must_use]
    pub fn with(self, name: &str, value: impl Into<Value>) -> Record {
        let others = self.0.entries().into_iter().flatten().filter(|(n, _)| &***n != name);
        let mut all: Vec<(Arc<str>, Value)> = others.map(|(name, value)| (name.clone(), value.clone())).collect();
        all.push((name.into(), value.into()));
        Record(Value::object(all))
    }
}

impl Default for Record {
    fn default() -> Record {
        Record(Value::empty_object())
    }
}

/// Shows the names of the attributes only, since the schema is needed to know which values are secret.
impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.entries().into_iter().flatten().map(|(name, _)| name);
        f.write_str("Record ")?;
        f.debug_set().entries(names).finish()
    }
}

impl Cty for Record {
    fn ty() -> Type {
        Type::Dynamic
    }
    fn from_cty(value: &Value) -> std::result::Result<Record, ModelError> {
        match value.ty() {
            Type::Object(_) if value.is_present() => Ok(Record(value.clone())),
            _ => Err(ModelError {
                unknown: !value.is_known(),
                ..ModelError::new("an object is required")
            }),
        }
    }
    fn to_cty(&self) -> Value {
        self.0.clone()
    }
}

impl Model for Record {
    fn members() -> Vec<Member> {
        Vec::new()
    }
    fn field(&self, name: &str) -> Option<Value> {
        self.0.get(name).cloned()
    }
    fn to_object(&self, ty: &Arc<ObjectType>) -> Value {
        let value = |name: &str, ty: &Type| match self.0.get(name) {
            // A value that cannot be converted is reported when the object is encoded.
            Some(value) => cty::convert::convert(value, ty).unwrap_or_else(|_| value.clone()),
            None => Value::null(ty.clone()),
        };
        let values = ty.attributes().iter().map(|a| value(&a.name, &a.ty));
        Value::object_of(ty, values.collect())
    }
}
