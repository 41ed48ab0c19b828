//! Names of types in pages.

use cty::Type;
use cty::types::ObjectType;

/// Returns the name of a type: `String`, `List of Map of Number`, `Set of Object`.
pub fn name(ty: &Type) -> String {
    match ty {
        Type::String => "String".to_owned(),
        Type::Number => "Number".to_owned(),
        Type::Bool => "Boolean".to_owned(),
        Type::Dynamic => "Dynamic".to_owned(),
        Type::List(element) => format!("List of {}", name(element)),
        Type::Set(element) => format!("Set of {}", name(element)),
        Type::Map(element) => format!("Map of {}", name(element)),
        Type::Object(_) => "Object".to_owned(),
        Type::Tuple(_) => "Tuple".to_owned(),
    }
}

/// Returns the name of a type in a signature: `list of map of number`.
pub fn lower(ty: &Type) -> String {
    name(ty).to_lowercase().replace("boolean", "bool")
}

/// Returns the object type in a type, below any number of collections; `None` if there is
/// none, or it has no attributes.
pub fn object(ty: &Type) -> Option<&ObjectType> {
    match ty {
        Type::Object(object) if !object.is_empty() => Some(object),
        Type::List(element) | Type::Set(element) | Type::Map(element) => object(element),
        _ => None,
    }
}
