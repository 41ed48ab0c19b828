//! Walks over the parts of a value, and marks by path.

use super::{Kind, Part, Value};
use crate::{Deprecation, Marks, Path, Step, Type};

impl Value {
    /// Visits the value and every part, a whole before its parts, with the path to each. If `f` returns false, the
    /// parts are skipped.
    pub fn walk(&self, mut f: impl FnMut(&Path, &Value) -> bool) {
        walk(self, &mut Path::root(), &mut f);
    }

    /// Replaces the value and every part by the result of `f`, parts before their whole. Parts of lists, sets and maps
    /// must keep one type; the path to an element of a set is that of the original element.
    #[must_use]
    pub fn transform(&self, mut f: impl FnMut(&Path, Value) -> Value) -> Value {
        transform(self, &mut Path::root(), &mut f)
    }

    /// Returns the paths in the value that have marks.
    #[must_use]
    pub fn paths_with_marks(&self) -> Vec<(Path, Marks)> {
        let mut found = Vec::new();
        self.walk(|path, value| {
            if !value.marks().is_empty() {
                found.push((path.clone(), value.marks()));
            }
            // Parts that contain no marks are not searched.
            !value.deep_marks().is_empty()
        });
        found
    }

    /// Removes deprecations from the value and everything inside, and returns their paths. Takes constant time if there
    /// are none.
    #[must_use]
    pub fn without_deprecations(self) -> (Value, Vec<(Path, Deprecation)>) {
        let mut found = Vec::new();
        if !self.deep_marks().is_deprecated() {
            return (self, found);
        }
        self.walk(|path, value| {
            let own = value.marks().deprecations();
            found.extend(own.into_iter().map(|deprecation| (path.clone(), deprecation)));
            value.deep_marks().is_deprecated()
        });
        let value = self.transform(|_, part| {
            let (part, marks) = part.unmark();
            part.with_marks(marks.without_deprecations())
        });
        (value, found)
    }

    /// Adds marks at these paths. Marks for an element of a set go to the set, which cannot have them inside; paths to
    /// missing parts are ignored.
    #[must_use]
    pub fn mark_paths(self, paths: &[(Path, Marks)]) -> Value {
        let steps: Vec<(&[Step], Marks)> = paths.iter().map(|(path, marks)| (path.0.as_slice(), *marks)).collect();
        if steps.is_empty() { self } else { mark(self, &steps) }
    }
}

fn walk(value: &Value, path: &mut Path, f: &mut impl FnMut(&Path, &Value) -> bool) {
    if !f(path, value) {
        return;
    }
    match (value.kind(), value.ty()) {
        (Kind::Seq(items), Type::Object(o)) => {
            for (attribute, item) in o.attributes().iter().zip(items.iter()) {
                path.0.push(Step::Attribute(attribute.name.clone()));
                walk(item, path, f);
                path.0.pop();
            }
        }
        (Kind::Seq(items), ty) => {
            // Elements of a set are their own keys.
            let set = matches!(ty, Type::Set(_));
            for (i, item) in items.iter().enumerate() {
                path.0
                    .push(Step::Index(if set { item.clone() } else { Value::number(i) }));
                walk(item, path, f);
                path.0.pop();
            }
        }
        (Kind::Map(items), _) => {
            for (key, item) in items.iter() {
                path.0.push(Step::Index(Value::shared_string(key.clone())));
                walk(item, path, f);
                path.0.pop();
            }
        }
        _ => {}
    }
}

fn transform(value: &Value, path: &mut Path, f: &mut impl FnMut(&Path, Value) -> Value) -> Value {
    let out = value.map_parts(|part, item| {
        path.0.push(match part {
            Part::Attribute(name) => Step::Attribute(name.clone()),
            Part::Key(key) => Step::Index(Value::shared_string(key.clone())),
            Part::Index(i) => Step::Index(Value::number(i)),
            Part::SetElement => Step::Index(item.clone()),
        });
        let out = transform(item, path, f);
        path.0.pop();
        out
    });
    f(path, out)
}

fn mark(value: Value, paths: &[(&[Step], Marks)]) -> Value {
    let mut marks = value.marks();
    // These are the paths, by the part in which they continue. They are sorted, so that each part is rebuilt
    // once.
    let mut onward: Vec<(usize, &[Step], Marks)> = Vec::new();
    for (steps, added) in paths {
        match steps {
            [] => marks |= *added,
            [_, ..] if matches!((value.kind(), value.ty()), (Kind::Seq(_), Type::Set(_))) => marks |= *added,
            [first, rest @ ..] => {
                if let Some(at) = position(&value, first) {
                    onward.push((at, rest, *added));
                }
            }
        }
    }
    if onward.is_empty() {
        return value.with_marks(marks);
    }
    onward.sort_by_key(|(at, ..)| *at);
    let inside = |item: &Value, group: &[(usize, &[Step], Marks)]| {
        let steps: Vec<(&[Step], Marks)> = group.iter().map(|(_, steps, marks)| (*steps, *marks)).collect();
        mark(item.clone(), &steps)
    };
    let kind = match &value.kind {
        Kind::Seq(items) => {
            let mut items = items.to_vec();
            for group in onward.chunk_by(|(a, ..), (b, ..)| a == b) {
                let at = group[0].0;
                items[at] = inside(&items[at], group);
            }
            Kind::Seq(items.into())
        }
        Kind::Map(items) => {
            let mut items = items.to_vec();
            for group in onward.chunk_by(|(a, ..), (b, ..)| a == b) {
                let at = group[0].0;
                items[at].1 = inside(&items[at].1, group);
            }
            Kind::Map(items.into())
        }
        _ => return value.with_marks(marks),
    };
    Value::build(value.ty, kind).with_marks(marks)
}

/// Returns the position of the part that a step leads to. `None` for elements of sets, and if there is no such part.
fn position(value: &Value, step: &Step) -> Option<usize> {
    let at = match (step, value.kind(), value.ty()) {
        (Step::Attribute(name), Kind::Seq(_), Type::Object(o)) => o.index_of(name),
        (Step::Index(key), Kind::Map(items), _) => {
            let key = key.as_str()?;
            items.binary_search_by(|(k, _)| (**k).cmp(key)).ok()
        }
        (Step::Index(key), Kind::Seq(_), Type::List(_) | Type::Tuple(_)) => key.as_number()?.to_usize(),
        _ => None,
    };
    at.filter(|at| value.len().is_some_and(|length| *at < length))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::testing::typed_value;
    use crate::{Kind, Marks, Path, Type, Value};

    fn sample() -> Value {
        let item = |secret: bool| {
            let key = Value::string("k");
            Value::object([
                ("key", if secret { key.with_marks(Marks::SENSITIVE) } else { key }),
                ("n", Value::number(1)),
            ])
        };
        Value::object([
            (
                "items",
                Value::list(item(false).ty().clone(), vec![item(false), item(true)]),
            ),
            (
                "labels",
                Value::map(
                    Type::String,
                    [("a".into(), Value::string("x").with_marks(Marks::EPHEMERAL))].into(),
                ),
            ),
            (
                "set",
                Value::set(Type::String, vec![Value::string("s").with_marks(Marks::SENSITIVE)]),
            ),
        ])
    }

    #[test]
    fn marks_by_path_round_trip() {
        let found = sample().paths_with_marks();
        let shown: Vec<String> = found.iter().map(|(path, marks)| format!("{path} {marks:?}")).collect();
        assert_eq!(
            shown,
            [".items[1].key sensitive", ".labels[\"a\"] ephemeral", ".set sensitive"]
        );
        let (bare, _) = sample().unmark_deep();
        assert_eq!(bare.clone().mark_paths(&found), sample());
        assert_eq!(bare.clone().mark_paths(&[]), bare);
    }

    #[test]
    fn paths_without_value_are_ignored() {
        let nowhere = [
            Path::root().attribute("missing"),
            Path::root().attribute("items").index(Value::number(9)),
            Path::root()
                .attribute("items")
                .index(Value::string("x"))
                .attribute("key"),
            Path::root()
                .attribute("labels")
                .index(Value::string("a"))
                .attribute("deeper"),
        ];
        let paths: Vec<(Path, Marks)> = nowhere.into_iter().map(|path| (path, Marks::SENSITIVE)).collect();
        assert_eq!(sample().mark_paths(&paths), sample());
        let null = Value::null(sample().ty().clone());
        assert_eq!(null.clone().mark_paths(&paths), null);
        // A mark for an element of a set moves to the set.
        let (bare, _) = sample().unmark_deep();
        let path = Path::root().attribute("set").index(Value::string("s"));
        assert_eq!(
            bare.mark_paths(&[(path, Marks::SENSITIVE)]).get("set").unwrap().marks(),
            Marks::SENSITIVE
        );
    }

    #[test]
    fn parts_can_be_omitted_and_replaced() {
        let mut seen = Vec::new();
        sample().walk(|path, value| {
            seen.push(path.to_string());
            !matches!(value.ty(), Type::List(_) | Type::Map(_) | Type::Set(_))
        });
        assert_eq!(seen, ["", ".items", ".labels", ".set"]);
        let out = sample().transform(|_, value| match value.kind() {
            Kind::String(s) => Value::string(s.to_uppercase()).with_marks(value.marks()),
            _ => value,
        });
        assert_eq!(out.get("labels").unwrap().get("a").unwrap().as_str(), Some("X"));
        assert_eq!(out.paths_with_marks(), sample().paths_with_marks());
    }

    proptest! {
        #[test]
        fn every_path_leads_to_its_part(value in typed_value(true)) {
            value.walk(|path, part| {
                // Elements of sets are found by equality.
                assert_eq!(path.get(&value), Some(part));
                assert!(path.get_type(value.ty()).is_some_and(|ty| part.ty().conforms_to(ty)));
                true
            });
            prop_assert_eq!(&value.transform(|_, part| part), &value);
        }
    }
}
