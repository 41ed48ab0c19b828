//! Default values of optional attributes in a type constraint.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::convert::unify_values;
use crate::{Kind, Type, Value};

/// Default values in a type constraint: a tree parallel to the type, with nodes only above defaults.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Defaults {
    /// For an object type: default values of its optional attributes, each of the attribute's type.
    pub values: BTreeMap<Arc<str>, Value>,
    /// For an object type: defaults inside of its attributes.
    pub attributes: BTreeMap<Arc<str>, Defaults>,
    /// For a tuple type: defaults inside of its elements, by position.
    pub elements: BTreeMap<usize, Defaults>,
    /// For a list, set or map type: defaults inside of its elements.
    pub element: Option<Box<Defaults>>,
}

impl Defaults {
    /// Returns true if there is no default anywhere in the tree.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
            && self.attributes.values().all(Defaults::is_empty)
            && self.elements.values().all(Defaults::is_empty)
            && self.element.as_ref().is_none_or(|d| d.is_empty())
    }

    /// Returns the value with defaults in place of optional attributes that are missing or null, at any depth. Call it
    /// before the conversion to the constraint; parts that do not fit are left for the conversion to report.
    ///
    /// A null or unknown value as a whole stays unchanged.
    #[must_use]
    pub fn apply(&self, value: Value) -> Value {
        if !value.is_present() || self.is_empty() {
            return value;
        }
        let (value, marks) = value.unmark();
        let out = match (value.kind(), value.ty()) {
            (Kind::Seq(items), Type::Tuple(_)) => Value::tuple(self.apply_each(items)),
            (Kind::Seq(items), Type::List(_)) if !items.is_empty() => {
                let items = self.apply_each(items);
                // Defaults can change the types of elements. If these then have no common type, the following
                // conversion decides.
                match unify_values(&items) {
                    Ok(Some((element, items))) if same_type(&element, &items) => Value::list(element, items),
                    _ => Value::tuple(items),
                }
            }
            (Kind::Seq(items), Type::Set(_)) if !items.is_empty() => {
                let items = self.apply_each(items);
                match unify_values(&items) {
                    Ok(Some((element, items))) if same_type(&element, &items) => Value::set(element, items),
                    _ => Value::tuple(items),
                }
            }
            (Kind::Seq(_), Type::Object(_)) => Value::object(self.apply_named(&value)),
            (Kind::Map(_), Type::Map(own)) => {
                let (names, items): (Vec<Arc<str>>, Vec<Value>) = self.apply_named(&value).into_iter().unzip();
                if items.is_empty() {
                    Value::map((**own).clone(), BTreeMap::new())
                } else {
                    match unify_values(&items) {
                        Ok(Some((element, items))) if same_type(&element, &items) => {
                            Value::map(element, names.into_iter().zip(items).collect())
                        }
                        _ => Value::object(names.into_iter().zip(items)),
                    }
                }
            }
            _ => value,
        };
        out.with_marks(marks)
    }

    fn apply_each(&self, items: &[Value]) -> Vec<Value> {
        let apply = |(i, item): (usize, &Value)| match self.elements.get(&i).or(self.element.as_deref()) {
            Some(inside) => inside.apply(item.clone()),
            None => item.clone(),
        };
        items.iter().enumerate().map(apply).collect()
    }

    fn apply_named(&self, value: &Value) -> BTreeMap<Arc<str>, Value> {
        let mut out = BTreeMap::new();
        for (name, item) in value.entries().into_iter().flatten() {
            let item = match self.attributes.get(name).or(self.element.as_deref()) {
                Some(inside) => inside.apply(item.clone()),
                None => item.clone(),
            };
            out.insert(name.clone(), item);
        }
        for (name, default) in &self.values {
            match out.get(name) {
                Some(existing) if !existing.is_null() => {
                    // If the unknown value turns out to be null, the default replaces it. The default is not null, so
                    // the result is never null.
                    if default.is_certainly_not_null() && !existing.is_known() {
                        let refined = existing.clone().refine_not_null();
                        out.insert(name.clone(), refined);
                    }
                }
                _ => {
                    let value = match self.attributes.get(name) {
                        Some(inside) => inside.apply(default.clone()),
                        None => default.clone(),
                    };
                    out.insert(name.clone(), value);
                }
            }
        }
        out
    }
}

fn same_type(ty: &Type, items: &[Value]) -> bool {
    items.iter().all(|item| item.ty() == ty)
}

#[cfg(test)]
mod tests {
    use super::Defaults;
    use crate::{Marks, Type, Value};

    /// `object({ name = optional(string, "x"), sub = optional(object({ n = optional(number, 1) }), {}) })`
    fn defaults() -> Defaults {
        let sub = Defaults {
            values: [("n".into(), Value::number(1))].into(),
            ..Defaults::default()
        };
        Defaults {
            values: [
                ("name".into(), Value::string("x")),
                ("sub".into(), Value::empty_object()),
            ]
            .into(),
            attributes: [("sub".into(), sub)].into(),
            ..Defaults::default()
        }
    }

    fn full(name: &str, n: i64) -> Value {
        Value::object([
            ("name", Value::string(name)),
            ("sub", Value::object([("n", Value::number(n))])),
        ])
    }

    #[test]
    fn missing_and_null_attributes_are_filled_in_at_any_depth() {
        assert_eq!(defaults().apply(Value::empty_object()), full("x", 1));
        let existing = Value::object([
            ("name", Value::null(Type::Dynamic)),
            ("sub", Value::object([("n", Value::number(7))])),
        ]);
        assert_eq!(defaults().apply(existing), full("x", 7));
    }

    #[test]
    fn nulls_and_unknowns_as_a_whole_stay() {
        let null = Value::null(Type::Dynamic);
        assert_eq!(defaults().apply(null.clone()), null);
        assert_eq!(defaults().apply(Value::dynamic()), Value::dynamic());
        let out = defaults().apply(Value::object([("name", Value::unknown(Type::String))]));
        assert!(out.get("name").unwrap().is_certainly_not_null());
    }

    #[test]
    fn elements_of_collections_and_tuples() {
        let list = Defaults {
            element: Some(Box::new(defaults())),
            ..Defaults::default()
        };
        let out = list.apply(Value::tuple(vec![Value::empty_object(), full("a", 2)]));
        assert_eq!(out, Value::tuple(vec![full("x", 1), full("a", 2)]));
        let items = vec![Value::object([("name", Value::string("a"))])];
        let ty = items[0].ty().clone();
        assert_eq!(
            list.apply(Value::list(ty.clone(), items.clone())),
            Value::list(full("a", 1).ty().clone(), vec![full("a", 1)])
        );
        assert_eq!(
            list.apply(Value::set(ty, items)),
            Value::set(full("a", 1).ty().clone(), vec![full("a", 1)])
        );
        let tuple = Defaults {
            elements: [(1, defaults())].into(),
            ..Defaults::default()
        };
        let out = tuple.apply(Value::tuple(vec![Value::bool(true), Value::empty_object()]));
        assert_eq!(out, Value::tuple(vec![Value::bool(true), full("x", 1)]));
        let map = Value::object([("k", Value::empty_object())]);
        assert_eq!(list.apply(map), Value::object([("k", full("x", 1))]));
    }

    #[test]
    fn marks_stay_and_values_of_other_types_are_unchanged() {
        let out = defaults().apply(Value::empty_object().with_marks(Marks::SENSITIVE));
        assert_eq!(out, full("x", 1).with_marks(Marks::SENSITIVE));
        assert_eq!(defaults().apply(Value::string("s")), Value::string("s"));
        assert!(Defaults::default().is_empty());
        assert!(!defaults().is_empty());
    }
}
