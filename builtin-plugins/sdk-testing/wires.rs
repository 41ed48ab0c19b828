//! Conversion of values to and from the encoded form of the protocol.

use std::sync::LazyLock;

use monoform_sdk::cty::Value;
use monoform_sdk::schema::Compiled;
use monoform_sdk::wire::{self, RawState, Wire};
use monoform_sdk::{Empty, Result, Schema};

/// Schema for a name that the provider does not have. The call itself then fails.
pub(crate) static EMPTY: LazyLock<Compiled> = LazyLock::new(|| Compiled::new(Schema::of::<Empty>()));

pub(crate) fn encode(value: Option<&Value>, schema: &Compiled) -> Result<Wire> {
    let null = Value::null(schema.ty.clone());
    wire::encode(value.unwrap_or(&null), &schema.ty)
}

pub(crate) fn decode(encoded: Option<Wire>, schema: &Compiled) -> Result<Value> {
    wire::decode(&encoded.unwrap_or_default(), &schema.ty)
}

pub(crate) fn raw(json: &str) -> RawState {
    RawState {
        json: json.as_bytes().to_vec(),
        is_flat: false,
    }
}
