//! Identities of objects: the attributes that identify an object independently of its state.

use std::sync::Arc;

use cty::{Type, Value};

use crate::schema::{Compiled, Schema};

/// An attribute of the model that belongs to the object's identity. The attribute may be computed: the identity is sent once all of its
/// attributes are known.
#[derive(Clone, Debug)]
pub struct IdentityAttribute {
    /// Name of the attribute, in the model and in the identity.
    pub name: &'static str,
    /// True if an import by identity must set the attribute; false if the import may omit it.
    pub required_for_import: bool,
    /// Description of the attribute for users.
    pub description: &'static str,
}

/// Returns the type of a resource's identity.
pub fn identity_type(schema: &Compiled, identity: &[IdentityAttribute]) -> Type {
    type_of(identity, |name| schema.object.get(name))
}

/// Returns the type of a resource's identity from a schema that is not compiled.
pub fn declared_identity_type(schema: &Schema, identity: &[IdentityAttribute]) -> Type {
    type_of(identity, |name| {
        let found = schema.root.attributes.iter().find(|a| a.name == name);
        found.map(|a| &a.ty)
    })
}

fn type_of<'s>(identity: &[IdentityAttribute], find: impl Fn(&str) -> Option<&'s Type>) -> Type {
    Type::object((identity.iter()).map(|a| (a.name, find(a.name).cloned().unwrap_or(Type::String))))
}

/// Returns the identity of an object from its state or plan. `None` if the resource has no identity, a part of the identity is unknown, or
/// an attribute required for import is null.
pub fn identity_of(identity: &[IdentityAttribute], state: &Value) -> Option<Value> {
    if identity.is_empty() {
        return None;
    }
    let mut attributes = Vec::with_capacity(identity.len());
    for part in identity {
        let value = state.get(part.name)?;
        if !value.is_wholly_known() || (part.required_for_import && value.is_null()) {
            return None;
        }
        attributes.push((Arc::from(part.name), value.clone()));
    }
    Some(Value::object::<Arc<str>>(attributes))
}
