//! Encoded values of the protocol, and their conversion by the type of a schema.

use cty::json::Json;
use cty::{Path, Step, Type, Value};

use crate::diag::{Diagnostic, Result};
use crate::model::ModelError;

/// An encoded value, as msgpack or JSON; the other field is empty. If both are empty, the value is null.
#[derive(Clone, Debug, Default)]
pub struct Wire {
    pub msgpack: Vec<u8>,
    pub json: Vec<u8>,
}

/// An encoded state: JSON, or the flatmap of state files before Terraform 0.12.
#[derive(Clone, Debug, Default)]
pub struct RawState {
    pub json: Vec<u8>,
    pub is_flat: bool,
}

/// Decodes a value of this type. An empty [`Wire`] is null.
pub fn decode(wire: &Wire, ty: &Type) -> Result<Value> {
    // Hosts send msgpack; the protocol has JSON for callers that only support that.
    let result = if !wire.msgpack.is_empty() {
        cty::msgpack::decode(&wire.msgpack, ty).map_err(|e| (e.path, e.message))
    } else if !wire.json.is_empty() {
        Json::parse(&wire.json)
            .map_err(|e| (Path::root(), e.to_string()))
            .and_then(|json| json.to_value(ty).map_err(|e| (e.path, e.message)))
    } else {
        Ok(Value::null(ty.clone()))
    };
    result.map_err(|(path, message)| {
        Diagnostic::error(
            "Unreadable value",
            format!(
                "The plugin was sent a value that does not fit its schema: {message}. This is a bug in the program that \
                 called it, or it uses the schema of another version of this plugin."
            ),
        )
        .at(path)
        .into()
    })
}

/// Encodes a value of this type.
pub fn encode(value: &Value, ty: &Type) -> Result<Wire> {
    // `one_type` checks first, because the encoding would convert elements without an error.
    let encoded = one_type(value, ty)
        .map_err(|e| (e.path, e.message))
        .and_then(|()| cty::msgpack::encode(value, ty).map_err(|e| (e.path, e.message)));
    match encoded {
        Ok(msgpack) => Ok(Wire {
            msgpack,
            json: Vec::new(),
        }),
        Err((path, message)) => Err(Diagnostic::error(
            "Unwritable value",
            format!(
                "The plugin made a value that does not fit its own schema: {}. This is a bug in the plugin.",
                message
            ),
        )
        .at(path)
        .into()),
    }
}

/// Returns an error for a collection with elements of different types. If the element type is or contains the dynamic type, the encoding
/// would convert them all to one type, and the state would have other values than the plugin returned.
fn one_type(value: &Value, ty: &Type) -> std::result::Result<(), ModelError> {
    // Without a dynamic type, all elements have the declared type.
    if !ty.has_dynamic() {
        return Ok(());
    }
    match ty {
        Type::List(element) | Type::Set(element) => {
            let items = value.as_seq().unwrap_or_default();
            same_type(items.iter())?;
            for (i, item) in items.iter().enumerate() {
                one_type(item, element).map_err(|e| e.under(Step::Index(Value::number(i as i64))))?;
            }
        }
        Type::Map(element) => {
            let entries = || value.entries().into_iter().flatten();
            same_type(entries().map(|(_, item)| item))?;
            for (key, item) in entries() {
                one_type(item, element).map_err(|e| e.under(Step::Index(Value::shared_string(key.clone()))))?;
            }
        }
        Type::Object(object) => {
            for attribute in object.attributes() {
                if let Some(item) = value.get(&attribute.name) {
                    one_type(item, &attribute.ty).map_err(|e| e.under(Step::Attribute(attribute.name.clone())))?;
                }
            }
        }
        Type::Tuple(types) => {
            for (i, (item, ty)) in value.as_seq().unwrap_or_default().iter().zip(types.iter()).enumerate() {
                one_type(item, ty).map_err(|e| e.under(Step::Index(Value::number(i as i64))))?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn same_type<'a>(items: impl Iterator<Item = &'a Value>) -> std::result::Result<(), ModelError> {
    // Null and unknown values of the dynamic type are skipped: they fit any type.
    let mut types = items.map(Value::ty).filter(|ty| **ty != Type::Dynamic);
    let Some(first) = types.next() else { return Ok(()) };
    match types.find(|ty| *ty != first) {
        Some(other) => Err(ModelError::new(format!(
            "all elements of a collection must have the same type, but these are of type {first} and {other}; an attribute of the \
             Rust type Any can hold a tuple or an object of them"
        ))),
        None => Ok(()),
    }
}

/// Parses the JSON text of a state.
pub fn read_json(state: &RawState) -> Result<Json> {
    // A flatmap does not record types, so only the provider that wrote it could convert it.
    if state.is_flat {
        return Err(Diagnostic::error(
            "Unable to Read Previously Saved State",
            "This state was last written by Terraform 0.11 or earlier. Apply it once with Terraform 0.12 first.",
        )
        .into());
    }
    Json::parse(&state.json).map_err(|e| {
        Diagnostic::error(
            "Unable to Read Previously Saved State",
            format!("The saved state is not JSON: {e}."),
        )
        .into()
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{Any, Cty, Set};

    #[test]
    fn a_collection_of_several_types_is_refused() {
        let any = |value: Value| Any(value);
        let two = || vec![any("a".into()), any(Value::number(1))];
        let map: BTreeMap<String, Any> = ["x", "y"].map(str::to_owned).into_iter().zip(two()).collect();
        let object = Type::object([("inner", Vec::<Any>::ty())]);
        for (value, ty) in [
            (two().to_cty(), Vec::<Any>::ty()),
            (Set(two()).to_cty(), Set::<Any>::ty()),
            (map.to_cty(), Type::map(Type::Dynamic)),
            (Value::object([("inner", two().to_cty())]), object),
        ] {
            let errors = encode(&value, &ty).unwrap_err();
            assert!(errors.0[0].detail.contains("of type string and number"), "{errors:?}");
        }
        let error = &encode(&Value::tuple(vec![two().to_cty()]), &Type::list(Vec::<Any>::ty()))
            .unwrap_err()
            .0[0];
        assert_eq!(
            error.attribute.as_ref().map(ToString::to_string).as_deref(),
            Some("[0]")
        );
    }

    #[test]
    fn a_collection_of_one_type_keeps_it() {
        let ty = Vec::<Any>::ty();
        let one = vec![Any("a".into()), Any::default(), Any(Value::unknown(Type::Dynamic))].to_cty();
        assert_eq!(decode(&encode(&one, &ty).unwrap(), &ty).unwrap(), one);
        // If the attribute itself has the dynamic type, a tuple is a valid value.
        let tuple = Value::tuple(vec!["a".into(), Value::number(1)]);
        let read = decode(&encode(&tuple, &Type::Dynamic).unwrap(), &Type::Dynamic).unwrap();
        assert_eq!(read, tuple);
    }
}
