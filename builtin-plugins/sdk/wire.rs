//! Values as the protocol carries them, and reading and writing them with the type of a schema.

use cty::{Path, Type, Value};

use crate::{Diagnostic, Result};

/// An encoded value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wire {
    pub msgpack: Vec<u8>,
    pub json: Vec<u8>,
}

/// An encoded state: JSON, or the flat form of very old state files.
#[derive(Clone, Debug, Default)]
pub(crate) struct RawState {
    pub json: Vec<u8>,
    pub is_flat: bool,
}

/// Decodes a value of this type. Nothing stands for null.
pub(crate) fn decode(wire: &Wire, ty: &Type) -> Result<Value> {
    let result = if !wire.msgpack.is_empty() {
        cty::msgpack::decode(&wire.msgpack, ty).map_err(|e| (e.path, e.message))
    } else if !wire.json.is_empty() {
        serde_json::from_slice(&wire.json)
            .map_err(|e| (Path::root(), e.to_string()))
            .and_then(|json| cty::json::from_json(&json, ty).map_err(|e| (e.path, e.message)))
    } else {
        Ok(Value::null(ty.clone()))
    };
    result.map_err(|(path, message)| {
        Diagnostic::error(
            "Unreadable Value",
            format!(
                "The plugin was sent a value that does not fit its schema: {message}. This is a bug of the program that \
                 called it, or it uses the schema of another version of this plugin."
            ),
        )
        .at(path)
        .into()
    })
}

/// Encodes a value of this type.
pub(crate) fn encode(value: &Value, ty: &Type) -> Result<Wire> {
    match cty::msgpack::encode(value, ty) {
        Ok(msgpack) => Ok(Wire {
            msgpack,
            json: Vec::new(),
        }),
        Err(error) => Err(Diagnostic::error(
            "Unwritable Value",
            format!(
                "The plugin made a value that does not fit its own schema: {}. This is a bug of the plugin.",
                error.message
            ),
        )
        .at(error.path)
        .into()),
    }
}

/// The JSON text of a state.
pub(crate) fn read_json(state: &RawState) -> Result<serde_json::Value> {
    if state.is_flat {
        return Err(Diagnostic::error(
            "Unable to Read Previously Saved State",
            "This state was last written by Terraform 0.11 or earlier. Apply it once with Terraform 0.12 first.",
        )
        .into());
    }
    serde_json::from_slice(&state.json).map_err(|e| {
        Diagnostic::error(
            "Unable to Read Previously Saved State",
            format!("The saved state is not JSON: {e}."),
        )
        .into()
    })
}
