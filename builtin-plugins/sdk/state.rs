//! Reading of a state file's attributes with the schema of another release, which may have more or fewer attributes.

use std::collections::BTreeMap;

use cty::json::Json;
use cty::{Type, Value};

use crate::diag::{Diagnostic, Result};
use crate::schema::{Compiled, CompiledMember, Nesting};

/// Reads the object of a schema. Attributes that the schema does not have are dropped, missing ones are null, and
/// missing blocks are empty.
pub(crate) fn read_object(json: &Json, schema: &Compiled) -> Result<Value> {
    let mut json = json.clone();
    complete(&mut json, &schema.members);
    read(&json, &schema.ty)
}

/// Adds the blocks that did not exist when the state was written: as an empty list, set, map or object, or as null for a single block.
fn complete(json: &mut Json, members: &[CompiledMember]) {
    let Json::Object(object) = json else { return };
    for member in members {
        let Some((nesting, members)) = member.inside() else {
            continue;
        };
        // A missing list would be read as null, but a list of blocks is never null.
        let value = object.entry(member.name().to_owned()).or_insert(Json::Null);
        if value.is_null() && matches!(member, CompiledMember::Block(..)) {
            *value = match nesting {
                Nesting::Single => Json::Null,
                Nesting::List | Nesting::Set => Json::Array(Vec::new()),
                Nesting::Map | Nesting::Group => Json::Object(BTreeMap::new()),
            };
        }
        match value {
            Json::Array(items) => items.iter_mut().for_each(|item| complete(item, members)),
            Json::Object(items) if nesting == Nesting::Map => {
                items.values_mut().for_each(|item| complete(item, members))
            }
            other => complete(other, members),
        }
    }
}

/// Reads an object of this type. Attributes that the type does not have are dropped, and missing ones are null.
pub(crate) fn read(json: &Json, ty: &Type) -> Result<Value> {
    // Releases add and remove attributes without raising the schema version.
    fitted(json, ty).to_value(ty).map_err(|error| {
        Diagnostic::error(
            "Unable to Read Previously Saved State",
            format!(
                "The saved state of this resource does not fit its schema: {}.",
                error.message
            ),
        )
        .at(error.path)
        .into()
    })
}

fn fitted(json: &Json, ty: &Type) -> Json {
    match (json, ty) {
        (Json::Array(items), Type::List(e) | Type::Set(e)) => {
            Json::Array(items.iter().map(|item| fitted(item, e)).collect())
        }
        (Json::Array(items), Type::Tuple(types)) if items.len() == types.len() => {
            let pairs = items.iter().zip(types.iter());
            Json::Array(pairs.map(|(item, ty)| fitted(item, ty)).collect())
        }
        (Json::Object(items), Type::Map(e)) => {
            Json::Object(items.iter().map(|(k, v)| (k.clone(), fitted(v, e))).collect())
        }
        (Json::Object(items), Type::Object(o)) => {
            let mut out = BTreeMap::new();
            // Attributes that the schema does not have are dropped, as in the Go SDKs.
            for attribute in o.attributes() {
                let value = items
                    .get(&*attribute.name)
                    .map_or(Json::Null, |v| fitted(v, &attribute.ty));
                out.insert(attribute.name.to_string(), value);
            }
            Json::Object(out)
        }
        _ => json.clone(),
    }
}
