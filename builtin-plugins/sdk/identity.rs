//! Identities of objects: the attributes that say which object one is, wherever its state is.

use std::sync::Arc;

use cty::{Type, Value};

use crate::schema::Compiled;

/// An attribute of the model that belongs to the object's identity. It may be a result: an identity is sent once all of it is
/// known.
#[derive(Clone, Debug)]
pub struct IdentityAttribute {
    /// The name, in the model and in the identity.
    pub name: &'static str,
    /// An import by identity must give it; otherwise it may.
    pub required_for_import: bool,
    /// Description of the attribute for users.
    pub description: &'static str,
}

/// The type of a resource's identity.
pub fn identity_type(schema: &Compiled, identity: &[IdentityAttribute]) -> Type {
    Type::object(
        identity
            .iter()
            .map(|a| (a.name, schema.object.get(a.name).cloned().unwrap_or(Type::String))),
    )
}

/// The identity of an object, taken from its state (or plan) once it is wholly known and no part that is needed is missing.
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
