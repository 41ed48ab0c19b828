//! Common parts of planning and applying one object: decoding and encoding it, and locating diagnostics about it.

use std::fmt::Display;
use std::sync::Arc;

use cty::{Marks, Path, Value};
use lang::body::path_range;
use provider::Provider;
use provider::{PluginDiagnostic, RawState};
use schema::marking::{given_write_only, mark_sensitive, misplaced_ephemeral};
use schema::{AttributeSchema, AttributeType, BlockSchema, Nesting, Schema};
use state::{Attributes, Object, ObjectStatus};
use syntax::ast::Body;
use syntax::{Diagnostic, Diagnostics};

use crate::identity::{encode_identity, stored_identity, upgrade_identity};
pub use crate::provider_problems::{PROVIDER_BUG, located};

/// A stored object, decoded.
#[derive(Clone, Debug)]
pub struct StoredObject {
    /// The object, without marks.
    pub value: Value,
    /// Sensitive paths that the state records, as marks.
    pub marks: Vec<(Path, Marks)>,
    pub private: Vec<u8>,
    /// The identity of the object, if it has one.
    pub identity: Option<Value>,
    /// The object as it is stored in the state.
    pub object: Arc<Object>,
}

impl StoredObject {
    /// Returns the value with the recorded marks and those of its schema.
    #[must_use]
    pub fn marked(&self, schema: &Schema) -> Value {
        with_marks(self.value.clone(), &self.marks, schema)
    }

    #[must_use]
    pub fn is_tainted(&self) -> bool {
        self.object.status == ObjectStatus::Tainted
    }
}

/// Adds the marks at these paths to a value, the same marks in attributes that repeat these values, and the marks of the schema.
#[must_use]
pub fn with_marks(value: Value, marks: &[(Path, Marks)], schema: &Schema) -> Value {
    let value = if marks.is_empty() {
        value
    } else {
        let repeated = repeated_marks(&value, marks, schema);
        value.mark_paths(marks).mark_paths(&repeated)
    };
    mark_sensitive(&schema.block, value)
}

/// Returns marks for attributes that repeat the value of another attribute, such as `output` of `terraform_data`, which repeats `input`.
/// Each path that is sensitive in the original is sensitive in the copy. If the copy lacks part of a path, its longest existing prefix is
/// marked.
fn repeated_marks(value: &Value, marks: &[(Path, Marks)], schema: &Schema) -> Vec<(Path, Marks)> {
    let mut out = Vec::new();
    for (from, to) in &schema.repeats {
        let Some(other) = value.get(to).filter(|other| !other.is_null()) else {
            continue;
        };
        for (path, _) in marks.iter().filter(|(_, m)| m.is_sensitive()) {
            let Some((cty::Step::Attribute(first), rest)) = path.0.split_first() else {
                continue;
            };
            if first != from {
                continue;
            }
            let mut repeated = Path::root().attribute(to.clone());
            let mut at = other;
            for step in rest {
                let Some(part) = step.get(at) else { break };
                repeated.0.push(step.clone());
                at = part;
            }
            out.push((repeated, Marks::SENSITIVE));
        }
    }
    out
}

/// Returns true if a path is in an attribute that repeats the value of another attribute, and so gets its marks from there.
#[must_use]
pub fn is_repeated(schema: &Schema, path: &Path) -> bool {
    match path.0.first() {
        Some(cty::Step::Attribute(name)) => schema.repeats.iter().any(|(_, to)| to == name),
        _ => false,
    }
}

/// Returns the recorded sensitive paths of an object, as marks.
#[must_use]
pub fn stored_marks(object: &Object) -> Vec<(Path, Marks)> {
    object
        .sensitive_paths
        .iter()
        .map(|p| (p.clone(), Marks::SENSITIVE))
        .collect()
}

/// Upgrades a stored object to the current version of its schema.
pub async fn upgrade(
    provider: &dyn Provider,
    schema: &Schema,
    ty: &str,
    object: &Arc<Object>,
    address: &dyn Display,
) -> Result<StoredObject, Diagnostics> {
    if object.schema_version > schema.version {
        return Err(Diagnostic::error(
            "Resource instance managed by newer provider version",
            format!(
                "The stored object of {address} has a later schema version than the selected version of its provider. \
                 Select a version that is at least as new as the one that stored it."
            ),
        )
        .about(address)
        .into());
    }
    // Providers may normalize an object of the current version, too, so an upgrade is requested for every object, as in Terraform.
    let raw = match &object.attributes {
        Attributes::Json(json) => RawState::Json(json.as_str().as_bytes().into()),
        Attributes::Flat(flat) => RawState::Flatmap((**flat).clone()),
    };
    let answer = provider.upgrade(ty, object.schema_version, raw).await?;
    let problems = located(answer.diagnostics, None, address);
    if problems.has_errors() {
        return Err(problems);
    }
    let problems = upgrade_problems(&answer.value, schema, address);
    if !problems.is_empty() {
        return Err(problems);
    }
    let identity = upgrade_identity(provider, schema, ty, object, address).await?;
    Ok(StoredObject {
        value: answer.value,
        marks: stored_marks(object),
        private: object.private.clone(),
        identity,
        object: object.clone(),
    })
}

/// Returns the errors in an upgraded object.
fn upgrade_problems(value: &Value, schema: &Schema, address: &dyn Display) -> Diagnostics {
    let mut wrong = Vec::new();
    if value.is_null() {
        wrong.push(format!("The provider upgraded the state of {address} to null."));
    }
    wrong.extend(unknown_paths(value).iter().map(|path| {
        format!("The provider upgraded the state of {address} to an object in which {address}{path} is not known.")
    }));
    wrong.extend(given_write_only(&schema.block, value).iter().map(|path| {
        format!(
            "The provider upgraded the state of {address} to an object with a value for the write-only attribute \
             \"{address}{path}\", which is never stored."
        )
    }));
    let each = wrong.into_iter().map(|what| {
        Diagnostic::error("Invalid resource state upgrade", format!("{what} {PROVIDER_BUG}")).about(address)
    });
    each.collect()
}

fn unknown_paths(value: &Value) -> Vec<Path> {
    let mut found = Vec::new();
    if value.is_wholly_known() {
        return found;
    }
    value.walk(|path, part| {
        if !part.is_known() {
            found.push(path.clone());
        }
        // Only parts that contain an unknown value are searched.
        part.is_known() && !part.is_wholly_known()
    });
    found
}

/// Returns an error for each unknown value in an object that must be wholly known. `problem` returns the summary and the detail of the
/// error for a path.
pub fn unknowns(
    value: &Value,
    address: &dyn Display,
    problem: impl Fn(&Path) -> (&'static str, String),
) -> Diagnostics {
    let each = unknown_paths(value).into_iter().map(|path| {
        let (summary, what) = problem(&path);
        Diagnostic::error(summary, format!("{what} {PROVIDER_BUG}")).about(address)
    });
    each.collect()
}

/// Returns the errors in an object that a provider has read. `when` is a clause such as "while reading the object".
#[must_use]
pub fn read_problems(
    value: &Value,
    schema: &Schema,
    provider: &addrs::Provider,
    when: &str,
    address: &dyn Display,
) -> Diagnostics {
    let mut problems = unknowns(value, address, |path| {
        let what = format!(
            "Provider \"{provider}\" returned an unknown value for {address}{path} {when}. All values of an \
             existing object must be known."
        );
        ("Provider produced invalid object", what)
    });
    problems.extend(returned_write_only(
        value,
        schema,
        provider,
        "Provider produced invalid object",
        when,
        address,
    ));
    problems
}

/// Returns the errors in the object of a data source that a provider has read.
#[must_use]
pub fn data_problems(value: &Value, schema: &Schema, provider: &addrs::Provider, address: &dyn Display) -> Diagnostics {
    if value.is_null() {
        let what =
            format!("Provider \"{provider}\" produced no object for {address}, where there must be one or an error.");
        return Diagnostic::error("Provider produced null object", format!("{what} {PROVIDER_BUG}"))
            .about(address)
            .into();
    }
    read_problems(value, schema, provider, "while reading the data source", address)
}

/// Decodes a stored object that is at the current version of its schema.
pub fn decode(schema: &Schema, object: &Arc<Object>, address: &dyn Display) -> Result<StoredObject, Diagnostics> {
    let value = object.attributes.decode(&schema.implied_type()).map_err(|e| {
        Diagnostics::from(
            Diagnostic::error(
                "Invalid object in state",
                format!("The stored object of {address} does not fit the schema of its provider: {e}."),
            )
            .about(address),
        )
    })?;
    Ok(StoredObject {
        value,
        marks: stored_marks(object),
        private: object.private.clone(),
        identity: stored_identity(schema, object, address)?,
        object: object.clone(),
    })
}

/// Encodes a wholly known value for the state, together with the identity of the object. Its marks become the sensitive paths. The
/// remaining fields of the stored object are copied from `like`.
pub fn encode(
    schema: &Schema,
    value: &Value,
    identity: Option<&Value>,
    private: Vec<u8>,
    like: Object,
) -> Result<Object, Diagnostics> {
    let sensitive_paths = value
        .paths_with_marks()
        .into_iter()
        // Marks of repeated attributes are not recorded. Terraform does not derive them, and would plan an update to remove them.
        .filter(|(path, marks)| marks.is_sensitive() && !is_repeated(schema, path))
        .map(|(path, _)| path)
        .collect();
    let (plain, _) = value.clone().unmark_deep();
    let attributes = Attributes::encode(&plain, &schema.implied_type()).map_err(|e| {
        Diagnostics::from(Diagnostic::error(
            "Object cannot be stored",
            format!(
                "The object a provider returned cannot be written to the state: {e}. This is a bug in the provider."
            ),
        ))
    })?;
    Ok(Object {
        schema_version: schema.version,
        attributes,
        sensitive_paths,
        private,
        identity: encode_identity(schema, identity)?,
        ..like
    })
}

/// Returns the errors of a failed call, located at the block and with the address of the object.
pub fn unanswered(problems: Diagnostics, written: Option<(&Body, &Schema)>, address: &dyn Display) -> Diagnostics {
    // The call failed as a whole, so the errors are about no particular attribute.
    let plain = |diagnostic| PluginDiagnostic {
        diagnostic,
        attribute: Path::root(),
    };
    located(problems.into_iter().map(plain).collect(), written, address)
}

/// Returns an error for each ephemeral value in an argument whose value is stored, which excludes write-only arguments.
#[must_use]
pub fn forbidden_ephemeral(config: &Value, schema: &Schema, body: &Body, address: &dyn Display) -> Diagnostics {
    if !config.deep_marks().is_ephemeral() {
        return Diagnostics::new();
    }
    let paths = misplaced_ephemeral(&schema.block, config);
    let each = paths.iter().map(|path| {
        let shown = path.to_string();
        let shown = shown.trim_start_matches('.');
        let what = if shown.is_empty() {
            "this block".to_owned()
        } else {
            format!("\"{shown}\"")
        };
        Diagnostic::error(
            "Invalid use of ephemeral value",
            format!(
                "The value for {what} is ephemeral. Only write-only attributes accept that: others are stored in the \
                 plan and in the state."
            ),
        )
        .at(&path_range(body, &schema.block, path))
        .about(address)
    });
    each.collect()
}

/// Returns an error for each write-only attribute with a value that a provider returned. `when` names the call.
#[must_use]
pub fn returned_write_only(
    value: &Value,
    schema: &Schema,
    provider: &addrs::Provider,
    summary: &str,
    when: &str,
    address: &dyn Display,
) -> Diagnostics {
    let paths = given_write_only(&schema.block, value);
    let each = paths.iter().map(|path| {
        Diagnostic::error(
            summary,
            format!(
                "Provider \"{provider}\" returned a value for the write-only attribute \"{address}{path}\" {when}. A \
                 provider must return null for write-only attributes, since they are never stored. {PROVIDER_BUG}"
            ),
        )
        .about(address)
    });
    each.collect()
}

/// Returns the errors in a planned object that concern write-only attributes. Providers with the legacy type system are checked, too,
/// because the value would be stored in the plan file and the state.
#[must_use]
pub fn planned_write_only(
    planned: &Value,
    schema: &Schema,
    provider: &addrs::Provider,
    address: &dyn Display,
) -> Diagnostics {
    let summary = "Provider produced invalid plan";
    returned_write_only(planned, schema, provider, summary, "while planning", address)
}

/// Returns the name and value of the identifying attribute of an object for progress lines: `id` or `name`. `None` if neither is a text
/// that may be shown.
#[must_use]
pub fn identity(value: &Value) -> Option<(String, String)> {
    ["id", "name"].iter().find_map(|name| {
        let attribute = value.get(name)?;
        // A marked value must not be printed.
        if !attribute.marks().is_empty() {
            return None;
        }
        Some((
            (*name).to_owned(),
            attribute.as_str().filter(|text| !text.is_empty())?.to_owned(),
        ))
    })
}

/// Removes ephemeral marks, which plans do not contain.
#[must_use]
pub fn without_ephemeral_marks(marks: Vec<(Path, Marks)>) -> Vec<(Path, Marks)> {
    marks
        .into_iter()
        .map(|(path, m)| (path, m.without(Marks::EPHEMERAL)))
        .filter(|(_, m)| !m.is_empty())
        .collect()
}

/// Returns the schema version that states and plans record for a resource. The results of data sources are never upgraded, so their version
/// is 0; Terraform rejects another version.
#[must_use]
pub fn recorded_version(mode: addrs::Mode, schema: &Schema) -> u64 {
    match mode {
        addrs::Mode::Managed => schema.version,
        addrs::Mode::Data | addrs::Mode::Ephemeral | addrs::Mode::List => 0,
    }
}

/// Encodes the result of a data source for the state.
pub fn encode_data(schema: &Schema, value: &Value) -> Result<Object, Diagnostics> {
    let version = recorded_version(addrs::Mode::Data, schema);
    let empty = Object::new(version, Attributes::Flat(Arc::default()));
    let object = encode(schema, value, None, Vec::new(), empty)?;
    Ok(Object {
        schema_version: version,
        ..object
    })
}

/// Returns the planned object of a data source that is read during apply: the configuration, with unknown computed
/// attributes.
#[must_use]
pub fn not_read_yet(schema: &Schema, config: &Value) -> Value {
    block_not_read(&schema.block, config)
}

fn block_not_read(schema: &BlockSchema, config: &Value) -> Value {
    if !config.is_present() {
        return config.clone();
    }
    config.map_parts(|part, value| {
        let cty::value::Part::Attribute(name) = part else {
            return value.clone();
        };
        if let Some(attribute) = schema.attributes.get(name) {
            return attribute_not_read(attribute, value);
        }
        let Some(nested) = schema.blocks.get(name) else {
            return value.clone();
        };
        match nested.nesting {
            Nesting::Single | Nesting::Group => block_not_read(&nested.block, value),
            _ => value.map_parts(|_, element| block_not_read(&nested.block, element)),
        }
    })
}

fn attribute_not_read(schema: &AttributeSchema, value: &Value) -> Value {
    // Unknown until the provider sets it during the read.
    if value.is_null() && schema.computed {
        return Value::unknown(schema.implied_type());
    }
    let AttributeType::Nested(nested) = &schema.ty else {
        return value.clone();
    };
    let object = |object: &Value| {
        object.map_parts(|part, inner| match part {
            cty::value::Part::Attribute(name) => nested
                .attributes
                .get(name)
                .map_or_else(|| inner.clone(), |a| attribute_not_read(a, inner)),
            _ => inner.clone(),
        })
    };
    match nested.nesting {
        Nesting::Single | Nesting::Group => object(value),
        _ => value.map_parts(|_, element| object(element)),
    }
}

/// Replaces unknown values by null.
#[must_use]
pub fn nulls_for_unknowns(value: &Value) -> Value {
    if value.is_wholly_known() {
        return value.clone();
    }
    if !value.is_known() {
        return Value::null(value.ty().clone());
    }
    value.map_parts(|_, part| nulls_for_unknowns(part))
}
