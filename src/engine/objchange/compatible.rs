//! Rules for the result of apply: every known part of the planned object must be unchanged.

use cty::{Kind, Path, Type, Value};
use schema::{BlockSchema, Nesting};

use super::{Problem, at_index, at_key};

/// Returns the differences between a planned and an applied object that are not allowed.
pub fn applied_problems(schema: &BlockSchema, planned: &Value, actual: &Value) -> Vec<Problem> {
    let mut out = Vec::new();
    if planned.is_null() && !actual.is_null() {
        out.push(Problem::new(&Path::root(), "was absent, but now present"));
    } else if actual.is_null() && !planned.is_null() {
        out.push(Problem::new(&Path::root(), "was present, but now absent"));
    } else if planned.is_present() && actual.is_present() {
        for (name, p) in planned.entries().into_iter().flatten() {
            // Most attributes are as planned, so the path is built only if it is needed.
            let path = || Path::root().attribute(name.clone());
            let Some(a) = actual.get(name) else {
                out.push(Problem::new(&path(), "attribute is missing"));
                continue;
            };
            // A collection of computed blocks that the provider sets is never null.
            let computed = schema.blocks.get(name).filter(|nested| nested.block.computed);
            if computed.is_some_and(|nested| nested.nesting != Nesting::Single) && a.is_null() {
                out.push(Problem::new(&path(), "null block value after apply"));
                continue;
            }
            if p == a {
                continue;
            }
            let sensitive = schema.attributes.get(name).is_some_and(|s| s.sensitive);
            let mut comparison = Comparison {
                sensitive,
                out: &mut out,
            };
            comparison.compare(p, a, &path(), schema.blocks.contains_key(name));
        }
    }
    out
}

/// Comparison of one attribute or block, and the problems found so far.
struct Comparison<'o> {
    /// Set if the attribute is sensitive, so that messages must not contain its values.
    sensitive: bool,
    out: &'o mut Vec<Problem>,
}

impl Comparison<'_> {
    fn problem(&mut self, path: &Path, message: impl Into<String>) {
        self.out.push(Problem::new(path, message));
    }

    /// Returns the message `shown` followed by the value. For a sensitive attribute, returns the message `hidden` instead.
    fn with_value(&self, hidden: &str, shown: &str, value: &Value) -> String {
        if self.sensitive {
            hidden.into()
        } else {
            format!("{shown} {value:?}")
        }
    }

    fn compare(&mut self, planned: &Value, actual: &Value, path: &Path, is_block: bool) {
        if planned == actual {
            return;
        }
        if let Kind::Unknown(refinements) = planned.kind() {
            // Any value of the type is valid. Of the refinements of the unknown value, only "not null" is checked.
            if refinements.as_ref().is_some_and(|r| r.not_null) && actual.is_null() {
                self.problem(path, "was known not to be null, but is null now");
            }
            return;
        }
        if planned.is_null() {
            // For nested blocks, an empty collection is the same as null.
            if !(is_block && actual.len() == Some(0)) {
                let message = self.with_value("was null, but now has a value", "was null, but now", actual);
                self.problem(path, message);
            }
            return;
        }
        if actual.is_null() {
            let rest = if self.sensitive { "" } else { ", but now null" };
            let message = self.with_value("had a value, but is null now", "was", planned) + rest;
            self.problem(path, message);
            return;
        }
        if planned.ty() != actual.ty() && !planned.ty().has_dynamic() && planned.ty().is_primitive() {
            let (was, is) = (planned.ty().friendly_name(), actual.ty().friendly_name());
            self.problem(path, format!("wrong final value type: {was} was planned, {is} came"));
            return;
        }
        if planned.entries().is_some() && actual.entries().is_some() {
            return self.compare_entries(planned, actual, path);
        }
        match (planned.as_seq(), actual.as_seq()) {
            (Some(p), Some(a)) if matches!(planned.ty(), Type::Set(_)) => {
                self.compare_sets((planned, p), a, path);
            }
            (Some(p), Some(a)) => self.compare_sequences(p, a, path, is_block),
            _ if self.sensitive => self.problem(path, "inconsistent values for sensitive attribute"),
            _ => self.problem(path, format!("was {planned:?}, but now {actual:?}")),
        }
    }

    /// Compares the attributes of objects, or the elements of maps.
    fn compare_entries(&mut self, planned: &Value, actual: &Value, path: &Path) {
        for (key, p) in planned.entries().into_iter().flatten() {
            let path = || match planned.ty() {
                Type::Object(_) => path.attribute(key.clone()),
                _ => at_key(path, key),
            };
            match actual.get(key) {
                Some(a) if p == a => {}
                Some(a) => self.compare(p, a, &path(), false),
                None => self.problem(&path(), "element has vanished"),
            }
        }
        for (key, _) in actual.entries().into_iter().flatten() {
            if planned.get(key).is_none() {
                self.problem(&at_key(path, key), "new element has appeared");
            }
        }
    }

    /// Compares sets. If the planned set has unknown elements, the applied one may be smaller, because elements may turn out to be equal.
    fn compare_sets(&mut self, (planned, p): (&Value, &[Value]), a: &[Value], path: &Path) {
        // Elements of sets have no keys, so planned and applied elements can be compared only if they are wholly known.
        if planned.is_wholly_known() {
            let lost = p.iter().filter(|v| !a.contains(v)).count();
            if lost > 0 || p.len() != a.len() {
                let message = format!(
                    "the set does not contain the planned elements (planned: {}, present: {})",
                    p.len(),
                    a.len()
                );
                self.problem(path, message);
            }
        } else if a.len() > p.len() {
            self.problem(path, format!("length changed from {} to {}", p.len(), a.len()));
        }
    }

    fn compare_sequences(&mut self, planned: &[Value], actual: &[Value], path: &Path, is_block: bool) {
        for (i, (p, a)) in planned.iter().zip(actual).enumerate() {
            self.compare(p, a, &at_index(path, i), is_block);
        }
        if planned.len() > actual.len() {
            self.problem(&at_index(path, actual.len()), "element has vanished");
        } else if actual.len() > planned.len() {
            self.problem(&at_index(path, planned.len()), "new element has appeared");
        }
    }
}
