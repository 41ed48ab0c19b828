//! What planning and applying one object have in common: stored objects and their values, problems and their places.

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

/// An object of the state as a value.
#[derive(Clone, Debug)]
pub struct StoredObject {
    /// The object, without marks.
    pub value: Value,
    /// The marks it was stored with.
    pub marks: Vec<(Path, Marks)>,
    /// The provider's own data.
    pub private: Vec<u8>,
    /// Everything else about it.
    pub object: Arc<Object>,
}

impl StoredObject {
    /// The value with the marks it was stored with and those of its schema.
    #[must_use]
    pub fn marked(&self, schema: &Schema) -> Value {
        with_marks(self.value.clone(), &self.marks, schema)
    }

    /// Whether the object is tainted.
    #[must_use]
    pub fn is_tainted(&self) -> bool {
        self.object.status == ObjectStatus::Tainted
    }
}

/// A value with marks at these paths and those of its schema.
#[must_use]
pub fn with_marks(value: Value, marks: &[(Path, Marks)], schema: &Schema) -> Value {
    let value = if marks.is_empty() {
        value
    } else {
        value.mark_paths(marks)
    };
    mark_sensitive(&schema.block, value)
}

/// Sensitive paths of a stored object, as marks.
#[must_use]
pub fn stored_marks(object: &Object) -> Vec<(Path, Marks)> {
    object
        .sensitive_paths
        .iter()
        .map(|p| (p.clone(), Marks::SENSITIVE))
        .collect()
}

/// Brings a stored object to the current version of its schema, by asking its provider.
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
    Ok(StoredObject {
        value: answer.value,
        marks: stored_marks(object),
        private: object.private.clone(),
        object: object.clone(),
    })
}

/// What is wrong with the object that an upgrade gave.
fn upgrade_problems(value: &Value, schema: &Schema, address: &dyn Display) -> Diagnostics {
    let mut wrong = Vec::new();
    if value.is_null() {
        wrong.push(format!("The provider upgraded the state of {address} to nothing."));
    }
    wrong.extend(unknown_paths(value).iter().map(|path| {
        format!("The provider upgraded the state of {address} to an object in which {address}{path} is not known.")
    }));
    wrong.extend(given_write_only(&schema.block, value).iter().map(|path| {
        format!(
            "The provider upgraded the state of {address} to an object with a value for the write-only attribute \
             \"{address}{path}\", which is never kept."
        )
    }));
    let each = wrong.into_iter().map(|what| {
        Diagnostic::error("Invalid resource state upgrade", format!("{what} {PROVIDER_BUG}")).about(address)
    });
    each.collect()
}

/// Where a value is unknown.
fn unknown_paths(value: &Value) -> Vec<Path> {
    let mut found = Vec::new();
    if value.is_wholly_known() {
        return found;
    }
    value.walk(|path, part| {
        if !part.is_known() {
            found.push(path.clone());
        }
        part.is_known() && !part.is_wholly_known()
    });
    found
}

/// An error for each place where an object that must be wholly known is not. `problem` gives summary and detail for a path.
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

/// What is wrong with an object that a provider has read. `when` says what it was doing, as in "while reading the object".
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
            "Provider \"{provider}\" returned an unknown value for {address}{path} {when}. What exists is known, so every \
             value must be."
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

/// What is wrong with the object of a data source that a provider has read.
#[must_use]
pub fn data_problems(value: &Value, schema: &Schema, provider: &addrs::Provider, address: &dyn Display) -> Diagnostics {
    if value.is_null() {
        let what =
            format!("Provider \"{provider}\" produced no object for {address}, where there must be one or an error.");
        return Diagnostic::error("Provider produced invalid object", format!("{what} {PROVIDER_BUG}"))
            .about(address)
            .into();
    }
    read_problems(value, schema, provider, "while reading the data source", address)
}

/// How every complaint about a provider ends.
pub const PROVIDER_BUG: &str = "This is a defect of the provider; please report it to its maintainers.";

/// Reads a stored object that is at the current version of its schema.
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
        object: object.clone(),
    })
}

/// The object to store for a value (marked, wholly known), with what else belongs to it taken from `like`.
pub fn encode(schema: &Schema, value: &Value, private: Vec<u8>, like: Object) -> Result<Object, Diagnostics> {
    let sensitive_paths = value
        .paths_with_marks()
        .into_iter()
        .filter(|(_, marks)| marks.is_sensitive())
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
        ..like
    })
}

/// Problems a plugin reported, with the place in the configuration and the address of the object.
pub fn located(
    problems: Vec<PluginDiagnostic>,
    written: Option<(&Body, &Schema)>,
    address: &dyn Display,
) -> Diagnostics {
    problems
        .into_iter()
        .map(|p| {
            let mut diagnostic = p.diagnostic;
            match written {
                Some((body, schema)) => {
                    diagnostic = diagnostic.at(&path_range(body, &schema.block, &p.attribute));
                }
                None if !p.attribute.0.is_empty() => {
                    let at = p.attribute.to_string();
                    diagnostic.detail = format!("{}\n\nAttribute: {}", diagnostic.detail, at.trim_start_matches('.'))
                        .trim()
                        .to_owned();
                }
                None => {}
            }
            diagnostic.about(address)
        })
        .collect()
}

/// Problems of a call that came to nothing, with the same.
pub fn unanswered(problems: Diagnostics, written: Option<(&Body, &Schema)>, address: &dyn Display) -> Diagnostics {
    let plain = |diagnostic| PluginDiagnostic {
        diagnostic,
        attribute: Path::root(),
    };
    located(problems.into_iter().map(plain).collect(), written, address)
}

/// An error for each ephemeral value in an argument that is kept.
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

/// An error for each write-only attribute that a provider gave back. `when` says what it was doing.
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
                "Provider \"{provider}\" returned a value for the write-only attribute \"{address}{path}\" {when}. What is \
                 given for a write-only attribute is never read back, so the provider must answer null there. {PROVIDER_BUG}"
            ),
        )
        .about(address)
    });
    each.collect()
}

/// The attribute by which people recognise an object, for progress lines: `id`, or failing that a name.
#[must_use]
pub fn identity(value: &Value) -> Option<(String, String)> {
    ["id", "name"].iter().find_map(|name| {
        let attribute = value.get(name)?;
        if !attribute.marks().is_empty() {
            return None;
        }
        Some((
            (*name).to_owned(),
            attribute.as_str().filter(|text| !text.is_empty())?.to_owned(),
        ))
    })
}

/// Marks of ephemeral values never reach a plan; this is what remains of a configuration's marks.
#[must_use]
pub fn without_ephemeral_marks(marks: Vec<(Path, Marks)>) -> Vec<(Path, Marks)> {
    marks
        .into_iter()
        .map(|(path, m)| (path, m.without(Marks::EPHEMERAL)))
        .filter(|(_, m)| !m.is_empty())
        .collect()
}

/// The schema version that states and plans record for a resource. What a data source read is never upgraded, only read
/// again: it has no version there, whatever its schema says, and Terraform refuses to show one that has.
#[must_use]
pub fn recorded_version(mode: addrs::Mode, schema: &Schema) -> u64 {
    match mode {
        addrs::Mode::Managed => schema.version,
        addrs::Mode::Data | addrs::Mode::Ephemeral => 0,
    }
}

/// What was read, as the state has it.
pub fn encode_data(schema: &Schema, value: &Value) -> Result<Object, Diagnostics> {
    let version = recorded_version(addrs::Mode::Data, schema);
    let empty = Object::new(version, Attributes::Flat(Arc::default()));
    let object = encode(schema, value, Vec::new(), empty)?;
    Ok(Object {
        schema_version: version,
        ..object
    })
}

/// The object of a data source that is read during apply: as configured, and unknown where only reading can tell.
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

/// The value with null where it is unknown.
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
