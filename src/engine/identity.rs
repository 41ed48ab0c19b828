//! Identities of objects: their encoding in the state, and the rules for identities that providers return.
//!
//! Objects of a type without an identity schema have no identity.

use std::fmt::Display;
use std::sync::Arc;

use cty::Value;
use provider::Provider;
use schema::{IdentitySchema, Schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use state::{Attributes, Identity, Object};
use syntax::{Diagnostic, Diagnostics};

use crate::provider_problems::{PROVIDER_BUG, located};
use crate::stored::{Stored, Unmarked};

/// The identity of an object before and after a change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IdentityChange {
    /// Identity of the prior object, if it has one.
    pub before: Option<Value>,
    /// Identity of the planned object, if it has one. If the object is created, all or a part of it may be unknown.
    pub after: Option<Value>,
}

impl IdentityChange {
    /// Creates the identities of a change; `None` if there are none.
    #[must_use]
    pub fn new(before: Option<Value>, after: Option<Value>) -> Option<Box<IdentityChange>> {
        (before.is_some() || after.is_some()).then(|| Box::new(IdentityChange { before, after }))
    }
}

impl Stored for Box<IdentityChange> {
    fn store<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let IdentityChange { before, after } = &**self;
        (before.as_ref().map(Unmarked::new), after.as_ref().map(Unmarked::new)).serialize(serializer)
    }

    fn load<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (before, after) = <(Option<Unmarked>, Option<Unmarked>)>::deserialize(deserializer)?;
        Ok(Box::new(IdentityChange {
            before: before.map(|value| value.0),
            after: after.map(|value| value.0),
        }))
    }
}

/// Returns the version of a resource type's identity schema; 0 if the type has none.
fn version_of(schema: &Schema) -> u64 {
    schema.identity.as_ref().map_or(0, |identity| identity.version)
}

/// Returns the version of the identity schema with which a stored object was recorded; 0 if it has no identity.
fn recorded_version(object: &Object) -> u64 {
    object.identity.as_ref().map_or(0, |identity| identity.schema_version)
}

/// Returns true if the stored identity of an object follows the current version of its schema.
#[must_use]
pub fn is_current(schema: &Schema, object: &Object) -> bool {
    recorded_version(object) == version_of(schema)
}

/// Decodes the identity of a stored object, which must have the current version of the identity schema.
///
/// # Errors
/// The identity does not fit the schema.
pub fn stored_identity(schema: &Schema, object: &Object, address: &dyn Display) -> Result<Option<Value>, Diagnostics> {
    let (Some(of), Some(json)) = (
        &schema.identity,
        object.identity.as_ref().and_then(|i| i.value.as_ref()),
    ) else {
        return Ok(None);
    };
    let decoded = Attributes::Json(json.clone()).decode(&of.implied_type());
    let value = decoded.map_err(|error| {
        Diagnostic::error(
            "Invalid identity in state",
            format!(
                "The stored identity of {address} does not fit the identity schema of its provider: {error}. Most likely the \
                 provider has changed that schema without a new version for it. {PROVIDER_BUG}"
            ),
        )
        .about(address)
    })?;
    Ok((!value.is_null()).then_some(value))
}

/// Upgrades the identity of a stored object to the current version of its schema.
///
/// # Errors
/// A later version of the provider has stored the identity, or the provider cannot upgrade it.
pub async fn upgrade_identity(
    provider: &dyn Provider,
    schema: &Schema,
    ty: &str,
    object: &Object,
    address: &dyn Display,
) -> Result<Option<Value>, Diagnostics> {
    let (recorded, current) = (recorded_version(object), version_of(schema));
    if recorded > current {
        return Err(Diagnostic::error(
            "Resource instance managed by newer provider version",
            format!(
                "The stored identity of {address} has a later schema version than the selected version of its provider. \
                 Select a version that is at least as new as the one that stored it."
            ),
        )
        .about(address)
        .into());
    }
    if recorded == current {
        return stored_identity(schema, object, address);
    }
    let Some(json) = object.identity.as_ref().and_then(|identity| identity.value.as_ref()) else {
        return Ok(None);
    };
    // The identity is sent as JSON, because the current schema may not fit an identity of an earlier version.
    let answer = provider
        .upgrade_identity(ty, recorded, json.as_str().as_bytes().into())
        .await?;
    let problems = located(answer.diagnostics, None, address);
    if problems.has_errors() {
        return Err(problems);
    }
    let (Some(value), Some(of)) = (answer.value, &schema.identity) else {
        return Ok(None);
    };
    let what = match () {
        () if !value.is_wholly_known() => "to one with unknown values",
        () if !conforms(&value, of) => "to one that does not fit its schema",
        () => return Ok(Some(value)),
    };
    let detail = format!("The provider upgraded the identity of {address} {what}. {PROVIDER_BUG}");
    Err(Diagnostic::error("Invalid resource identity upgrade", detail)
        .about(address)
        .into())
}

/// Encodes an identity for the state. An identity that is not wholly known is recorded without its value.
///
/// # Errors
/// The identity cannot be encoded.
pub fn encode_identity(schema: &Schema, identity: Option<&Value>) -> Result<Option<Identity>, Diagnostics> {
    let Some(of) = &schema.identity else { return Ok(None) };
    let value = match identity.filter(|identity| identity.is_wholly_known()) {
        None => None,
        Some(identity) => {
            let encoded = Attributes::encode(identity, &of.implied_type()).map_err(|error| {
                let detail = format!("The identity a provider returned cannot be written to the state: {error}.");
                Diagnostic::error("Object cannot be stored", format!("{detail} {PROVIDER_BUG}"))
            })?;
            match encoded {
                Attributes::Json(json) => Some(json),
                Attributes::Flat(_) => None,
            }
        }
    };
    // Version 0 without a value is the same as no identity, so nothing is recorded for it.
    let has_content = of.version != 0 || value.is_some();
    Ok(has_content.then_some(Identity {
        schema_version: of.version,
        value,
    }))
}

/// Returns true if this identity is the one that the state has for the object.
#[must_use]
pub fn is_recorded(schema: &Schema, identity: Option<&Value>, object: &Object) -> bool {
    match (&schema.identity, &object.identity) {
        (None, None) => true,
        (_, stored) => encode_identity(schema, identity).is_ok_and(|encoded| encoded == *stored),
    }
}

/// Returns the errors in an identity that a provider has returned. With `known`, unknown parts are errors.
#[must_use]
pub fn identity_problems(
    identity: Option<&Value>,
    schema: &Schema,
    known: bool,
    provider: &addrs::Provider,
    address: &dyn Display,
) -> Diagnostics {
    let (Some(identity), Some(of)) = (identity, &schema.identity) else {
        return Diagnostics::new();
    };
    let (summary, what) = if !conforms(identity, of) {
        (
            "Provider produced an identity that doesn't match the schema",
            "whose type is not that of its identity schema",
        )
    } else if !identity.deep_marks().is_empty() {
        ("Provider produced invalid identity", "with marks")
    } else if known && !identity.is_wholly_known() {
        (
            "Provider produced invalid identity",
            "with unknown values, though the object exists",
        )
    } else {
        return Diagnostics::new();
    };
    let detail = format!("Provider \"{provider}\" returned an identity for {address} {what}. {PROVIDER_BUG}");
    Diagnostic::error(summary, detail).about(address).into()
}

fn conforms(identity: &Value, schema: &Arc<IdentitySchema>) -> bool {
    identity.ty().conforms_to(&schema.implied_type())
}

/// Renders an identity in one line: `name=value` pairs, sorted by name and separated by commas. Numbers are not rounded.
#[must_use]
pub fn identity_text(identity: &Value) -> String {
    if identity.is_null() {
        return "<null>".into();
    }
    if !identity.is_wholly_known() {
        return "<unknown>".into();
    }
    let parts = identity.entries().into_iter().flatten().map(|(name, value)| {
        let text = part_text(value);
        format!("{name}={text}")
    });
    let all: Vec<String> = parts.collect();
    if all.is_empty() {
        "<empty>".into()
    } else {
        all.join(",")
    }
}

fn part_text(value: &Value) -> String {
    if value.is_null() {
        return "<null>".into();
    }
    if let Some(items) = value.as_seq().filter(|_| value.entries().is_none()) {
        let items: Vec<String> = items.iter().map(part_text).collect();
        return format!("[{}]", items.join(","));
    }
    match cty::convert(value, &cty::Type::String) {
        Ok(text) => text.as_str().unwrap_or_default().to_owned(),
        Err(_) => identity_text(value),
    }
}
