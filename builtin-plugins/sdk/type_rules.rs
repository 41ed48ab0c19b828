//! Rules of Rust types: which values a type accepts, and which values mean the same.

use std::fmt;
use std::sync::Arc;

use cty::value::Part;
use cty::{Path, Step, Value};

use crate::diag::{Diagnostic, Diagnostics};
use crate::model_error::ModelError;

/// The rules of a Rust type and of the types inside it. Most types have no rules.
#[derive(Clone, Default)]
pub struct TypeRules(Option<Arc<Rules>>);

enum Rules {
    Custom {
        check: fn(&Value) -> Option<ModelError>,
        same: fn(&Value, &Value) -> bool,
        in_plans: bool,
        base: TypeRules,
    },
    /// Elements of a list, set or map.
    Elements(TypeRules),
    /// Elements of a tuple.
    Tuple(Vec<TypeRules>),
    /// Attributes of an object.
    Object(Vec<(&'static str, TypeRules)>),
}

/// Values that are compared by meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compared {
    /// A configured value with a prior one.
    Plan,
    /// A value from the service with the planned or stored one.
    Result,
}

impl fmt::Debug for TypeRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_empty() { "no rules" } else { "rules" })
    }
}

/// Builds the rules of an object; a part without a name is a flattened model.
pub(crate) fn of_object(parts: Vec<(Option<&'static str>, TypeRules)>) -> TypeRules {
    let mut attributes = Vec::new();
    for (name, rules) in parts {
        match (name, rules.0.as_deref()) {
            (_, None) => {}
            (Some(name), Some(_)) => attributes.push((name, rules)),
            (None, Some(Rules::Object(inner))) => attributes.extend(inner.iter().cloned()),
            (None, Some(_)) => {}
        }
    }
    match attributes.is_empty() {
        true => TypeRules::default(),
        false => TypeRules(Some(Arc::new(Rules::Object(attributes)))),
    }
}

impl TypeRules {
    /// Returns the rules of a type that accepts the values for which `check` returns no error. Two values mean the same if `same`
    /// returns true; in plans, only if `in_plans` is set. `base` has the rules of the type that values are written as.
    pub(crate) fn custom(
        check: fn(&Value) -> Option<ModelError>,
        same: fn(&Value, &Value) -> bool,
        in_plans: bool,
        base: TypeRules,
    ) -> TypeRules {
        TypeRules(Some(Arc::new(Rules::Custom {
            check,
            same,
            in_plans,
            base,
        })))
    }

    /// Returns the rule of a type that accepts a value if `check` returns no error. No two values mean the same.
    pub(crate) fn checked(check: fn(&Value) -> Option<ModelError>) -> TypeRules {
        TypeRules::custom(check, |_, _| false, true, TypeRules::default())
    }

    /// Returns the rules of a list, set or map with elements that have these rules.
    pub(crate) fn elements(of: TypeRules) -> TypeRules {
        match of.is_empty() {
            true => of,
            false => TypeRules(Some(Arc::new(Rules::Elements(of)))),
        }
    }

    /// Returns the rules of a tuple with elements that have these rules.
    pub(crate) fn tuple(of: Vec<TypeRules>) -> TypeRules {
        match of.iter().all(TypeRules::is_empty) {
            true => TypeRules::default(),
            false => TypeRules(Some(Arc::new(Rules::Tuple(of)))),
        }
    }

    /// Returns true if neither the type nor a type inside it has rules.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns the rules of a part of a value.
    fn part(&self, part: &Part<'_>) -> Option<&TypeRules> {
        match (self.0.as_deref()?, part) {
            (Rules::Elements(rules), _) => Some(rules),
            (Rules::Tuple(all), Part::Index(i)) => all.get(*i),
            (Rules::Object(all), Part::Attribute(name)) => {
                all.iter().find(|(n, _)| *n == &***name).map(|(_, rules)| rules)
            }
            _ => None,
        }
    }

    /// Checks the known parts of a configured value.
    pub(crate) fn check(&self, path: &Path, value: &Value, out: &mut Diagnostics) {
        // An unknown value is checked once it is known. Null is allowed for every type.
        let (Some(rules), true) = (self.0.as_deref(), value.is_present()) else {
            return;
        };
        if let Rules::Custom { check, base, .. } = rules {
            let before = out.0.len();
            base.check(path, value, out);
            // If the check of the base type has failed, the value already has an error.
            if out.0.len() == before
                && let Some(error) = check(value).filter(|error| !error.unknown)
            {
                out.push(refused(path, error));
            }
            return;
        }
        // `map_parts` is used only to visit the parts; its result is dropped.
        drop(value.map_parts(|part, inner| {
            if let Some(rules) = self.part(&part) {
                let step = match &part {
                    Part::Attribute(name) => Step::Attribute((*name).clone()),
                    Part::Key(key) => Step::Index(Value::shared_string((*key).clone())),
                    // The key of an element of a set is the element itself.
                    Part::SetElement => Step::Index(inner.clone()),
                    Part::Index(i) => Step::Index(Value::number(*i)),
                };
                rules.check(&path.with(step), inner, out);
            }
            inner.clone()
        }));
    }

    /// Returns the new value with each part that means the same as the prior part replaced by the latter.
    pub(crate) fn settled(&self, when: Compared, before: &Value, after: &Value) -> Value {
        let (Some(rules), true, true) = (self.0.as_deref(), before.is_present(), after.is_present()) else {
            return after.clone();
        };
        if before == after {
            return after.clone();
        }
        if let Rules::Custom {
            same, in_plans, base, ..
        } = rules
        {
            let same = |one, other| (*in_plans || when == Compared::Result) && same(one, other);
            return match same(before, after) {
                true => before.clone(),
                false => base.settled(when, before, after),
            };
        }
        let of_before = before.as_seq().unwrap_or_default();
        after.map_parts(|part, inner| {
            let Some(rules) = self.part(&part) else {
                return inner.clone();
            };
            let found = match &part {
                Part::Attribute(name) => before.get(name),
                Part::Key(key) => before.get(key),
                // Elements of a set are matched by meaning, since they have no key.
                Part::SetElement => of_before.iter().find(|b| rules.settled(when, b, inner) == **b),
                Part::Index(i) => of_before.get(*i),
            };
            found.map_or_else(|| inner.clone(), |found| rules.settled(when, found, inner))
        })
    }
}

/// Builds the error for a configured value that its type does not accept.
fn refused(path: &Path, error: ModelError) -> Diagnostic {
    let name = path.to_string();
    let detail = format!(
        "Attribute {} cannot have this value: {}.",
        name.trim_start_matches('.'),
        error.message
    );
    let path = Path(path.0.iter().cloned().chain(error.path.0).collect());
    Diagnostic::error(error.summary.unwrap_or("Invalid Attribute Value"), detail).at(path)
}
