//! Default values of optional attributes in a type constraint.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::convert::unify_values;
use crate::{Kind, Type, Value};

/// The default values in a type constraint: a tree beside the type, with nodes only where there are defaults below.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Defaults {
    /// For an object type: the default values of its optional attributes, each of the attribute's type.
    pub values: BTreeMap<Arc<str>, Value>,
    /// For an object type: the defaults inside its attributes.
    pub attributes: BTreeMap<Arc<str>, Defaults>,
    /// For a tuple type: the defaults inside its elements, by position.
    pub elements: BTreeMap<usize, Defaults>,
    /// For a list, set or map type: the defaults inside its elements.
    pub element: Option<Box<Defaults>>,
}

impl Defaults {
    /// Whether there is no default anywhere.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
            && self.attributes.values().all(Defaults::is_empty)
            && self.elements.values().all(Defaults::is_empty)
            && self.element.as_ref().is_none_or(|d| d.is_empty())
    }

    /// The value with defaults put in wherever an optional attribute is missing or null, at any depth. To be done before
    /// the value is converted to the constraint; what does not fit it is left alone, for the conversion to complain.
    ///
    /// A null or unknown value as a whole stays what it is.
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
                Some(given) if !given.is_null() => {
                    // Whatever comes of an unknown value: a null would be replaced.
                    if default.is_certainly_not_null() && !given.is_known() {
                        let refined = given.clone().refine_not_null();
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
