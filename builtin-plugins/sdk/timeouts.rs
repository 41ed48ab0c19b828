//! Timeouts that users set for the operations on an object.

use std::time::Duration;

use cty::{Type, Value};

use crate::model::{Attr, Cty, Model, ModelError, object, object_rules, object_type, read};
use crate::schema::{IntoMember, Member, optional};
use crate::type_rules::TypeRules;
use crate::types::GoDuration;

/// Selects the timeout for creating in [`Timeouts`].
pub const CREATE: u8 = 1;
/// Selects the timeout for reading in [`Timeouts`].
pub const READ: u8 = 2;
/// Selects the timeout for updating in [`Timeouts`].
pub const UPDATE: u8 = 4;
/// Selects the timeout for deleting in [`Timeouts`].
pub const DELETE: u8 = 8;

/// The `timeouts` block of a resource, or its attribute of the same name: time limits of operations, as durations such as `"30m"`. The
/// parameter selects the operations, such as `{ CREATE | DELETE }`; the default is all four. A data source has `{ READ }`.
///
/// ```
/// use std::time::Duration;
///
/// use monoform_sdk::schema::{block, required};
/// use monoform_sdk::timeouts::{CREATE, DELETE, Timeouts};
/// use monoform_sdk::{Attr, Model};
///
/// #[derive(Clone, Default, Model)]
/// pub struct Server {
///     #[member(required())]
///     pub name: Attr<String>,
///     #[member(block())]
///     pub timeouts: Attr<Timeouts<{ CREATE | DELETE }>>,
/// }
///
/// let server = Server::default();
/// assert_eq!(server.timeouts.create(Duration::from_secs(600)).as_secs(), 600);
/// ```
///
/// With `nested(optional())` in place of `block()`, users write `timeouts = { create = "30m" }`. Pass the durations to
/// [`Context::within`](crate::Context::within), [`Retry`](crate::retry::Retry) or [`Waiter`](crate::retry::Waiter).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeouts<const OPERATIONS: u8 = { CREATE | READ | UPDATE | DELETE }> {
    /// Time for creating the object.
    pub create: Attr<GoDuration>,
    /// Time for reading the object.
    pub read: Attr<GoDuration>,
    /// Time for updating the object.
    pub update: Attr<GoDuration>,
    /// Time for deleting the object.
    pub delete: Attr<GoDuration>,
}

/// The operations with their names and descriptions, in the order of the fields.
const ALL: [(u8, &str, &str); 4] = [
    (
        CREATE,
        "create",
        "Time limit of creating, as a duration such as `30s` or `2h45m`; units are `s`, `m` and `h`.",
    ),
    (
        READ,
        "read",
        "Time limit of reading, as a duration such as `30s` or `2h45m`; units are `s`, `m` and `h`.",
    ),
    (
        UPDATE,
        "update",
        "Time limit of updating, as a duration such as `30s` or `2h45m`; units are `s`, `m` and `h`.",
    ),
    (
        DELETE,
        "delete",
        "Time limit of deleting, as a duration such as `30s` or `2h45m`; units are `s`, `m` and `h`.",
    ),
];

impl<const OPERATIONS: u8> Timeouts<OPERATIONS> {
    fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
        let has = |(operation, ..): &(u8, &str, &str)| OPERATIONS & operation != 0;
        ALL.into_iter().filter(has).map(|(_, name, text)| (name, text))
    }

    fn get(&self, name: &str) -> Option<&Attr<GoDuration>> {
        let has = Self::names().any(|(n, _)| n == name);
        has.then_some(match name {
            "create" => &self.create,
            "read" => &self.read,
            "update" => &self.update,
            _ => &self.delete,
        })
    }
}

impl<const OPERATIONS: u8> Cty for Timeouts<OPERATIONS> {
    fn ty() -> Type {
        let types = Self::names().map(|(name, _)| (Some(name), GoDuration::ty()));
        object_type(types.collect())
    }
    fn from_cty(value: &Value) -> Result<Self, ModelError> {
        let part = |operation, name| match OPERATIONS & operation {
            0 => Ok(Attr::Null),
            _ => read(value, name),
        };
        Ok(Timeouts {
            create: part(CREATE, "create")?,
            read: part(READ, "read")?,
            update: part(UPDATE, "update")?,
            delete: part(DELETE, "delete")?,
        })
    }
    fn to_cty(&self) -> Value {
        let part = |name| self.get(name).map(Cty::to_cty);
        let parts = Self::names().filter_map(|(name, _)| Some((Some(name), part(name)?)));
        object(parts.collect())
    }
    fn rules() -> TypeRules {
        let parts = Self::names().map(|(name, _)| (Some(name), GoDuration::rules()));
        object_rules(parts.collect())
    }
}

impl<const OPERATIONS: u8> Model for Timeouts<OPERATIONS> {
    fn members() -> Vec<Member> {
        let member = |(name, text)| IntoMember::<Attr<GoDuration>>::into_member(optional(), name, text);
        Self::names().map(member).collect()
    }
    fn field(&self, name: &str) -> Option<Value> {
        self.get(name).map(Cty::to_cty)
    }
}

impl<const OPERATIONS: u8> Attr<Timeouts<OPERATIONS>> {
    fn or_default(&self, name: &str, default: Duration) -> Duration {
        let set = self.known().and_then(|all| all.get(name)).and_then(Attr::known);
        set.map_or(default, GoDuration::duration)
    }

    /// Returns the time for creating; `default` if the user sets none.
    #[must_use]
    pub fn create(&self, default: Duration) -> Duration {
        self.or_default("create", default)
    }

    /// Returns the time for reading; `default` if the user sets none.
    #[must_use]
    pub fn read(&self, default: Duration) -> Duration {
        self.or_default("read", default)
    }

    /// Returns the time for updating; `default` if the user sets none.
    #[must_use]
    pub fn update(&self, default: Duration) -> Duration {
        self.or_default("update", default)
    }

    /// Returns the time for deleting; `default` if the user sets none.
    #[must_use]
    pub fn delete(&self, default: Duration) -> Duration {
        self.or_default("delete", default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Schema;

    #[test]
    fn only_the_declared_operations_have_timeouts() {
        type Some = Timeouts<{ CREATE | DELETE }>;
        let schema = Schema::of::<Some>();
        let names: Vec<&str> = schema.root.attributes.iter().map(|a| a.name).collect();
        assert_eq!(names, ["create", "delete"]);
        let value = Value::object([("create", "90s".into()), ("delete", Value::null(Type::String))]);
        assert_eq!(value.ty(), &Some::ty());
        let timeouts = Attr::from(Some::from_cty(&value).unwrap());
        let default = Duration::from_secs(5);
        assert_eq!(timeouts.create(default), Duration::from_secs(90));
        assert_eq!((timeouts.delete(default), timeouts.read(default)), (default, default));
        assert_eq!(timeouts.to_cty(), value);
        assert_eq!(Attr::<Timeouts>::Null.update(default), default);
        assert_eq!(Schema::of::<Timeouts>().root.attributes.len(), 4);
    }
}
