//! Going through a value part by part, and marks by path.

use super::{Kind, Part, Value};
use crate::{Marks, Path, Step, Type};

impl Value {
    /// Visits the value and every part, a whole before its parts, with the path to each. Where `f` answers false the
    /// parts are left out.
    pub fn walk(&self, mut f: impl FnMut(&Path, &Value) -> bool) {
        walk(self, &mut Path::root(), &mut f);
    }

    /// The value with itself and every part replaced by what `f` makes of it, parts before their whole. The parts of
    /// lists, sets and maps must keep one type; the path to an element of a set is that to the element as it was.
    #[must_use]
    pub fn transform(&self, mut f: impl FnMut(&Path, Value) -> Value) -> Value {
        transform(self, &mut Path::root(), &mut f)
    }

    /// Where in the value there are marks, and which.
    #[must_use]
    pub fn paths_with_marks(&self) -> Vec<(Path, Marks)> {
        let mut found = Vec::new();
        self.walk(|path, value| {
            if !value.marks().is_empty() {
                found.push((path.clone(), value.marks()));
            }
            !value.deep_marks().is_empty()
        });
        found
    }

    /// The value with marks added at these paths. Marks for an element of a set go to the set, which cannot have them
    /// inside; paths that lead nowhere are ignored.
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
    // Which part each path goes on in. Sorted by part, so that each is rebuilt once.
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

/// Which of its parts a step from a value leads to.
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
