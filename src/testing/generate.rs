//! Values for computed attributes of mocked objects: those that the test sets, and generated ones for all others.

use std::collections::HashMap;
use std::fmt;

use cty::{Path, Type, Value};
use uuid::Uuid;

use schema::marking::without_write_only;
use schema::{AttributeSchema, AttributeType, BlockSchema, NestedObject, Nesting};

/// Characters of a generated string.
const LETTERS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
/// Length of a generated string.
const LENGTH: usize = 8;

/// Generator of the values of one object; equal seeds give equal values. Each value depends on its path, so that it
/// does not change with other attributes.
#[derive(Debug)]
pub struct Draws {
    seed: Uuid,
    /// Number of values generated so far for each path. Elements of blocks share a path, so the number distinguishes
    /// them.
    drawn: HashMap<String, usize>,
}

impl Draws {
    /// Creates a generator with this seed.
    #[must_use]
    pub fn new(seed: Uuid) -> Draws {
        Draws {
            seed,
            drawn: HashMap::new(),
        }
    }

    fn text(&mut self, path: &Path) -> String {
        let path = path.to_string();
        let count = self.drawn.entry(path.clone()).or_default();
        *count += 1;
        let bytes = Uuid::new_v5(&self.seed, format!("{path} {count}").as_bytes());
        let letter = |byte: &u8| char::from(LETTERS[usize::from(*byte) % LETTERS.len()]);
        // In a UUID of version 5, the version and the variant are in bytes 6 to 9, so these are left out. All other
        // bytes are random.
        let (first, last) = (bytes.as_bytes()[..6].iter(), bytes.as_bytes()[10..].iter());
        first.chain(last).take(LENGTH).map(letter).collect()
    }
}

/// Computed attributes that get a value, by their current value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holes {
    /// Attributes whose value is null.
    Null,
    /// Attributes whose value is unknown.
    Unknown,
}

/// A value in a test that does not fit its attribute.
#[derive(Clone, Debug, PartialEq)]
pub struct Unsuitable {
    pub path: Path,
    /// Reason as a clause, for a message.
    pub reason: String,
}

impl fmt::Display for Unsuitable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.path.to_string();
        write!(f, "{}: {}", at.strip_prefix('.').unwrap_or(&at), self.reason)
    }
}

/// Replaces null in the computed attributes of an object by unknown values.
#[must_use]
pub fn with_unknowns(schema: &BlockSchema, object: &Value) -> Value {
    let mut fill = |_: &Path, ty: &Type, _: Option<&Value>| Ok(Value::unknown(ty.clone()));
    // `fill` never returns an error.
    Filler {
        holes: Holes::Null,
        fill: &mut fill,
    }
    .block(schema, object, None, &Path::root())
    .unwrap_or_else(|_| object.clone())
}

/// Fills the computed attributes of an object, with the values that the test sets in `given`, or with generated ones.
/// Write-only attributes become null, as real providers return them.
///
/// # Errors
/// A value of the test does not fit its attribute.
pub fn with_values(
    schema: &BlockSchema,
    object: &Value,
    given: Option<&Value>,
    holes: Holes,
    mut draws: Draws,
) -> Result<Value, Unsuitable> {
    let mut fill = |path: &Path, ty: &Type, given: Option<&Value>| match given {
        Some(given) => complete(ty, given, path, &mut draws),
        None => Ok(generated(ty, path, &mut draws)),
    };
    let mut filler = Filler { holes, fill: &mut fill };
    let filled = filler.block(schema, object, given, &Path::root())?;
    Ok(without_write_only(schema, &filled))
}

type Fill<'f> = dyn FnMut(&Path, &Type, Option<&Value>) -> Result<Value, Unsuitable> + 'f;

struct Filler<'f> {
    holes: Holes,
    fill: &'f mut Fill<'f>,
}

impl Filler<'_> {
    fn is_hole(&self, value: &Value) -> bool {
        match self.holes {
            Holes::Null => value.is_null(),
            Holes::Unknown => !value.is_known(),
        }
    }

    fn block(
        &mut self,
        schema: &BlockSchema,
        object: &Value,
        given: Option<&Value>,
        path: &Path,
    ) -> Result<Value, Unsuitable> {
        let given = usable(given, path)?;
        let Some(entries) = object.entries().filter(|_| object.is_present()) else {
            return Ok(object.clone());
        };
        let mut out = Vec::new();
        for (name, value) in entries {
            let path = path.attribute(name.clone());
            let inner = given.and_then(|g| g.get(name));
            let value = if let Some(attribute) = schema.attributes.get(name) {
                self.attribute(attribute, value, inner, &path)?
            } else if let Some(block) = schema.blocks.get(name) {
                self.elements(block.nesting, value, &path, &mut |filler, element, path| {
                    filler.block(&block.block, element, inner, path)
                })?
            } else {
                value.clone()
            };
            out.push((name.clone(), value));
        }
        Ok(Value::object(out))
    }

    fn attribute(
        &mut self,
        attribute: &AttributeSchema,
        value: &Value,
        given: Option<&Value>,
        path: &Path,
    ) -> Result<Value, Unsuitable> {
        if attribute.computed && !attribute.write_only && self.is_hole(value) {
            if let (AttributeType::Nested(nested), Some(_)) = (&attribute.ty, given)
                && !nested.nesting.is_single()
            {
                // As in Terraform, a collection of nested attributes is empty as a whole, even if the test sets
                // values for it.
                usable(given, path)?;
                return (self.fill)(path, &attribute.implied_type(), None);
            }
            return (self.fill)(path, &attribute.implied_type(), given);
        }
        match &attribute.ty {
            AttributeType::Nested(nested) => self.nested(nested, value, given, path),
            AttributeType::Plain(_) => Ok(value.clone()),
        }
    }

    fn nested(
        &mut self,
        nested: &NestedObject,
        value: &Value,
        given: Option<&Value>,
        path: &Path,
    ) -> Result<Value, Unsuitable> {
        self.elements(nested.nesting, value, path, &mut |filler, element, path| {
            let given = usable(given, path)?;
            let Some(entries) = element.entries().filter(|_| element.is_present()) else {
                return Ok(element.clone());
            };
            let mut out = Vec::new();
            for (name, value) in entries {
                let path = path.attribute(name.clone());
                let value = match nested.attributes.get(name) {
                    Some(attribute) => filler.attribute(attribute, value, given.and_then(|g| g.get(name)), &path)?,
                    None => value.clone(),
                };
                out.push((name.clone(), value));
            }
            Ok(Value::object(out))
        })
    }

    /// Fills the elements of a block or nested attribute. All elements get the same values of the test, because a
    /// test cannot address single elements.
    fn elements(
        &mut self,
        nesting: Nesting,
        value: &Value,
        path: &Path,
        fill: &mut dyn FnMut(&mut Self, &Value, &Path) -> Result<Value, Unsuitable>,
    ) -> Result<Value, Unsuitable> {
        if !value.is_present() {
            return Ok(value.clone());
        }
        if nesting.is_single() {
            return fill(self, value, path);
        }
        let mut problem = None;
        // `map_parts` has no errors, so the first error is recorded outside of it.
        let out = value.map_parts(|_, element| match fill(self, element, path) {
            Ok(filled) => filled,
            Err(found) => {
                problem.get_or_insert(found);
                element.clone()
            }
        });
        problem.map_or(Ok(out), Err)
    }
}

/// Returns the test's values for the attributes of an object; `None` if they are null or not set. A value that is no
/// object is an error.
fn usable<'g>(given: Option<&'g Value>, path: &Path) -> Result<Option<&'g Value>, Unsuitable> {
    match given {
        Some(value) if value.is_null() => Ok(None),
        Some(value) if !matches!(value.ty(), Type::Object(_) | Type::Map(_)) => Err(Unsuitable {
            path: path.clone(),
            reason: format!("an object is required, and the value is {}", value.ty().friendly_name()),
        }),
        other => Ok(other),
    }
}

/// Converts a value of the test to a type, with generated values for the attributes that it lacks.
fn complete(ty: &Type, given: &Value, path: &Path, draws: &mut Draws) -> Result<Value, Unsuitable> {
    let unsuitable = |reason: String| Unsuitable {
        path: path.clone(),
        reason,
    };
    let has_objects = |element: &Type| matches!(element, Type::Object(_));
    match ty {
        _ if given.is_null() => Ok(Value::null(ty.clone())),
        Type::Object(object) => {
            let given = usable(Some(given), path)?;
            let attributes = object.attributes().iter().map(|attribute| {
                let path = path.attribute(attribute.name.clone());
                let value = match given.and_then(|g| g.get(&attribute.name)) {
                    Some(value) => complete(&attribute.ty, value, &path, draws)?,
                    None => generated(&attribute.ty, &path, draws),
                };
                Ok((attribute.name.clone(), value))
            });
            Ok(Value::object(attributes.collect::<Result<Vec<_>, _>>()?))
        }
        Type::List(element) | Type::Set(element) if has_objects(element) => {
            let items = given.as_seq().ok_or_else(|| {
                unsuitable(format!(
                    "a list is required, and the value is {}",
                    given.ty().friendly_name()
                ))
            })?;
            let items = items.iter().map(|item| complete(element, item, path, draws));
            let items = items.collect::<Result<Vec<_>, _>>()?;
            Ok(match ty {
                Type::List(_) => Value::list((**element).clone(), items),
                _ => Value::set((**element).clone(), items),
            })
        }
        Type::Map(element) if has_objects(element) => {
            let given = usable(Some(given), path)?;
            let mut items = std::collections::BTreeMap::new();
            for (key, item) in given.into_iter().filter_map(Value::entries).flatten() {
                items.insert(key.clone(), complete(element, item, path, draws)?);
            }
            Ok(Value::map((**element).clone(), items))
        }
        _ => cty::convert(given, ty).map_err(|e| unsuitable(e.message.to_string())),
    }
}

fn generated(ty: &Type, path: &Path, draws: &mut Draws) -> Value {
    match ty {
        Type::String => Value::string(draws.text(path)),
        Type::Number => Value::number(0),
        Type::Bool => Value::bool(false),
        Type::List(element) => Value::list((**element).clone(), Vec::new()),
        Type::Set(element) => Value::set((**element).clone(), Vec::new()),
        Type::Map(element) => Value::map((**element).clone(), std::collections::BTreeMap::new()),
        Type::Tuple(elements) => Value::tuple(elements.iter().map(|ty| generated(ty, path, draws)).collect()),
        Type::Object(object) => {
            let attributes = object.attributes().iter();
            Value::object(attributes.map(|a| {
                let value = generated(&a.ty, &path.attribute(a.name.clone()), draws);
                (a.name.clone(), value)
            }))
        }
        Type::Dynamic => Value::null(Type::Dynamic),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::*;

    fn attribute(ty: Type, computed: bool) -> AttributeSchema {
        AttributeSchema {
            ty: AttributeType::Plain(ty),
            optional: !computed,
            computed,
            ..AttributeSchema::default()
        }
    }

    fn schema() -> BlockSchema {
        BlockSchema {
            attributes: BTreeMap::from([
                (Arc::from("id"), attribute(Type::String, true)),
                (Arc::from("size"), attribute(Type::Number, true)),
                (Arc::from("name"), attribute(Type::String, false)),
            ]),
            ..BlockSchema::default()
        }
    }

    fn draws() -> Draws {
        Draws::new(Uuid::from_u128(7))
    }

    #[test]
    fn the_same_seed_gives_the_same_values_whatever_else_is_generated() {
        let object = |size: Value| Value::object([("id", Value::null(Type::String)), ("size", size)]);
        let id = |size, draws| {
            let filled = with_values(&schema(), &object(size), None, Holes::Null, draws).unwrap();
            filled.get("id").cloned().unwrap()
        };
        let first = id(Value::null(Type::Number), draws());
        assert_eq!(id(Value::number(1), draws()), first);
        assert_ne!(id(Value::number(1), Draws::new(Uuid::from_u128(8))), first);
        let mut two = draws();
        assert_ne!(two.text(&Path::root()), two.text(&Path::root()));
    }

    #[test]
    fn only_computed_holes_are_filled() {
        let object = Value::object([
            ("id", Value::null(Type::String)),
            ("name", Value::null(Type::String)),
            ("size", Value::number(7)),
        ]);
        let given = Value::object([("id", Value::number(5)), ("name", Value::string("x"))]);
        let filled = with_values(&schema(), &object, Some(&given), Holes::Null, draws()).unwrap();
        assert_eq!(filled.get("id"), Some(&Value::string("5")));
        assert_eq!(filled.get("size"), Some(&Value::number(7)));
        assert!(filled.get("name").is_some_and(Value::is_null));
    }

    #[test]
    fn strings_are_drawn_and_unsuitable_values_are_named() {
        let object = with_unknowns(
            &schema(),
            &Value::object([
                ("id", Value::null(Type::String)),
                ("name", Value::null(Type::String)),
                ("size", Value::null(Type::Number)),
            ]),
        );
        assert!(object.get("size").is_some_and(|v| !v.is_known()));
        let filled = with_values(&schema(), &object, None, Holes::Unknown, draws()).unwrap();
        assert_eq!(filled.get("id").and_then(Value::as_str).map(str::len), Some(LENGTH));
        assert_eq!(filled.get("size"), Some(&Value::number(0)));
        let wrong = Value::object([("size", Value::string("many"))]);
        let problem = with_values(&schema(), &object, Some(&wrong), Holes::Unknown, draws()).unwrap_err();
        assert!(problem.to_string().starts_with("size: "), "{problem}");
    }

    #[test]
    fn write_only_attributes_are_null_at_any_depth() {
        let secret = AttributeSchema {
            write_only: true,
            ..attribute(Type::String, false)
        };
        let nested = |nesting| AttributeSchema {
            ty: AttributeType::Nested(NestedObject {
                attributes: BTreeMap::from([
                    (Arc::from("name"), attribute(Type::String, false)),
                    (Arc::from("secret"), secret.clone()),
                ]),
                nesting,
            }),
            ..attribute(Type::Dynamic, true)
        };
        let schema = BlockSchema {
            attributes: BTreeMap::from([
                (Arc::from("one"), nested(Nesting::Single)),
                (Arc::from("many"), nested(Nesting::List)),
            ]),
            ..BlockSchema::default()
        };
        let element = Value::object([("name", Value::string("n")), ("secret", Value::string("s"))]);
        let object = Value::object([
            ("one", Value::null(element.ty().clone())),
            ("many", Value::list(element.ty().clone(), vec![element.clone()])),
        ]);
        let filled = with_values(&schema, &object, None, Holes::Null, draws()).unwrap();
        for element in [
            filled.get("one"),
            filled.get("many").and_then(|many| many.as_seq()?.first()),
        ] {
            let (name, secret) = element.and_then(|e| e.get("name").zip(e.get("secret"))).unwrap();
            assert!(name.is_present() && secret.is_null(), "{filled:?}");
        }
    }
}
