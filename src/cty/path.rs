//! Paths from a value to its parts.

use std::fmt;
use std::sync::Arc;

use crate::{Kind, Type, Value};

/// A step of a [`Path`].
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Step to an attribute of an object.
    Attribute(Arc<str>),
    /// Step to an element of a list or tuple (number), a map (string), or a set (the element itself).
    Index(Value),
}

/// A path from a value to a part of it, step by step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Path(pub Vec<Step>);

impl Path {
    /// Returns the path to the value itself.
    #[must_use]
    pub fn root() -> Path {
        Path(Vec::new())
    }

    /// Returns this path with a further step to an attribute.
    #[must_use]
    pub fn attribute(&self, name: impl Into<Arc<str>>) -> Path {
        self.with(Step::Attribute(name.into()))
    }

    /// Returns this path with a further step to an element.
    #[must_use]
    pub fn index(&self, key: Value) -> Path {
        self.with(Step::Index(key))
    }

    /// Returns this path with a further step.
    #[must_use]
    pub fn with(&self, step: Step) -> Path {
        let mut steps = self.0.clone();
        steps.push(step);
        Path(steps)
    }

    /// Returns true if this path begins with all steps of `prefix`.
    #[must_use]
    pub fn starts_with(&self, prefix: &Path) -> bool {
        self.0.len() >= prefix.0.len() && self.0[..prefix.0.len()] == prefix.0[..]
    }

    /// Returns the part of `value` at this path; `None` if there is no such part, or if a part on the way is null or
    /// unknown.
    #[must_use]
    pub fn get<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        let mut at = value;
        for step in &self.0 {
            at = step.get(at)?;
        }
        Some(at)
    }

    /// Returns the type at this path inside of a type; `any` below an `any`, and `None` if the type has no such part.
    #[must_use]
    pub fn get_type<'t>(&self, ty: &'t Type) -> Option<&'t Type> {
        let mut at = ty;
        for step in &self.0 {
            at = match (step, at) {
                (_, Type::Dynamic) => at,
                (Step::Attribute(name), Type::Object(o)) => o.get(name)?,
                (Step::Index(_), Type::List(e) | Type::Set(e) | Type::Map(e)) => e,
                (Step::Index(key), Type::Tuple(ts)) => ts.get(key.as_number()?.to_usize()?)?,
                _ => return None,
            };
        }
        Some(at)
    }
}

impl Step {
    /// Returns the part of `value` that this step leads to.
    #[must_use]
    pub fn get<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        match self {
            Step::Attribute(name) => value.get(name),
            Step::Index(key) => match (value.kind(), value.ty()) {
                (Kind::Map(_), _) => value.get(key.as_str()?),
                (Kind::Seq(items), Type::Set(_)) => items.iter().find(|i| *i == key),
                (Kind::Seq(items), Type::List(_) | Type::Tuple(_)) => items.get(key.as_number()?.to_usize()?),
                _ => None,
            },
        }
    }
}

/// Formats the path as written after a reference: `.a[0]["k"]`.
impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.0 {
            match step {
                Step::Attribute(name) => write!(f, ".{name}")?,
                Step::Index(key) => match key.kind() {
                    Kind::Number(n) => write!(f, "[{n}]")?,
                    Kind::String(s) => write!(f, "[{s:?}]")?,
                    _ => f.write_str("[...]")?,
                },
            }
        }
        Ok(())
    }
}
