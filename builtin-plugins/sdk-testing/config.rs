//! Configurations of tests, converted to objects. Mistakes in them are reported with the same errors that users get.

use std::collections::BTreeMap;
use std::sync::Arc;

use monoform_sdk::cty::{self, Path, Step, Type, Value};
use monoform_sdk::schema::{Compiled, CompiledMember, Nesting};
use monoform_sdk::{Diagnostic, Result};

/// An object of a configuration: values by attribute name. A later value for the same name replaces an earlier one.
pub type Config<'a> = &'a [(&'a str, Value)];

/// Builds the object of a configuration. Values are converted to the types of their attributes; missing attributes are
/// null, and missing blocks are empty. A name that is not in the schema is an error.
pub(crate) fn object(schema: &Compiled, config: Config<'_>) -> Result<Value> {
    let given = config.iter().map(|(name, value)| (*name, value));
    let values = fill(&schema.members, given, &Path::root())?;
    Ok(schema.object_with(&values))
}

fn fill<'a>(
    members: &[CompiledMember],
    given: impl Iterator<Item = (&'a str, &'a Value)>,
    path: &Path,
) -> Result<BTreeMap<&'a str, Value>> {
    let mut values = BTreeMap::new();
    for (name, value) in given {
        let path = path.attribute(name);
        let Some(member) = members.iter().find(|m| m.name() == name) else {
            let names: Vec<&str> = members.iter().map(CompiledMember::name).collect();
            return Err(Diagnostic::error(
                "Unsupported Argument",
                format!(
                    "There is no attribute or block {name:?} here. There are: {}.",
                    names.join(", ")
                ),
            )
            .at(path)
            .into());
        };
        values.insert(name, member_value(member, value, &path)?);
    }
    Ok(values)
}

fn member_value(member: &CompiledMember, value: &Value, path: &Path) -> Result<Value> {
    let ty = member.ty();
    let value = match member.inside() {
        Some((nesting, members)) if value.is_present() => objects(nesting, members, value, path)?,
        _ => value.clone(),
    };
    cty::convert::convert(&value, &ty).map_err(|error| {
        let detail = format!("This value does not fit {path}, which is of type {ty}: {error}.");
        Diagnostic::error("Incorrect Attribute Value Type", detail)
            .at(path.clone())
            .into()
    })
}

fn objects(nesting: Nesting, members: &[CompiledMember], value: &Value, path: &Path) -> Result<Value> {
    let one = |object: &Value, path: &Path| -> Result<Value> {
        let Some(entries) = object.entries() else {
            return Ok(object.clone());
        };
        let mut values = fill(members, entries.map(|(name, value)| (&**name, value)), path)?;
        let all = members.iter().map(|member| {
            let absent = || member.absent(&member.ty());
            (member.name(), values.remove(member.name()).unwrap_or_else(absent))
        });
        Ok(Value::object(all))
    };
    match (nesting, value.as_seq(), value.entries()) {
        (Nesting::Single | Nesting::Group, ..) => one(value, path),
        (Nesting::Map, _, Some(entries)) => {
            let entries = entries.map(|(key, object)| {
                let path = path.with(Step::Index(Value::shared_string(key.clone())));
                Ok((key.clone(), one(object, &path)?))
            });
            Ok(Value::object::<Arc<str>>(entries.collect::<Result<Vec<_>>>()?))
        }
        (Nesting::List | Nesting::Set, Some(items), _) if !matches!(value.ty(), Type::Object(_)) => {
            let items = items
                .iter()
                .enumerate()
                .map(|(i, object)| one(object, &path.with(Step::Index(Value::number(i as i64)))));
            Ok(Value::tuple(items.collect::<Result<Vec<_>>>()?))
        }
        _ => Ok(value.clone()),
    }
}
