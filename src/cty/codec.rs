//! Common parts of the codecs of values: their error, the depth limit, and the types of collections.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::convert::convert;
use crate::{Path, Step, Type, Value};

/// Depth limit of values. Deeper nesting is an attack or a mistake, and would exhaust the stack.
pub(crate) const MAX_DEPTH: usize = 128;

/// A failure to decode bytes as a value of a type, or to encode a value.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}", describe(.path, .message))]
pub struct CodecError {
    /// Path inside of the value.
    pub path: Path,
    /// Description of the error.
    pub message: String,
}

fn describe(path: &Path, message: &str) -> String {
    if path.0.is_empty() {
        message.to_owned()
    } else {
        format!("{path}: {message}")
    }
}

impl CodecError {
    pub(crate) fn new(message: impl Into<String>) -> CodecError {
        CodecError {
            path: Path::root(),
            message: message.into(),
        }
    }

    /// Adds a step at the beginning of the path. The path is built while an error is returned, so that it costs nothing
    /// otherwise.
    pub(crate) fn under(mut self, step: Step) -> CodecError {
        self.path.0.insert(0, step);
        self
    }
}

/// Returns the common type of all elements of a collection, and the elements converted to it.
///
/// The common type differs from `constraint` if `constraint` contains `any`. Elements that are null or empty do not
/// determine what `any` stands for, so they get the type of the other elements.
pub(crate) fn uniform(constraint: &Type, items: Vec<Value>) -> Result<(Type, Vec<Value>), CodecError> {
    let Some(first) = items.first().filter(|_| constraint.has_dynamic()) else {
        return Ok((constraint.clone(), items));
    };
    if items.iter().all(|item| item.ty() == first.ty()) {
        return Ok((first.ty().clone(), items));
    }
    let ty = items
        .iter()
        .map(Value::ty)
        .find(|ty| !ty.has_dynamic())
        .unwrap_or(first.ty())
        .clone();
    let error = || CodecError::new("all elements must have the same type");
    let same = |item: Value| {
        let fits = ty.conforms_to(item.ty());
        Some(item)
            .filter(|_| fits)
            .and_then(|item| convert(&item, &ty).ok())
            .filter(|item| *item.ty() == ty)
    };
    let items = items
        .into_iter()
        .map(same)
        .collect::<Option<Vec<Value>>>()
        .ok_or_else(error)?;
    Ok((ty, items))
}

/// Builds a map from elements in any order. Of several elements with one key, the last is used.
pub(crate) fn map_of(constraint: &Type, items: Vec<(Arc<str>, Value)>) -> Result<Value, CodecError> {
    // Encoders write keys in order, so sorting is rarely needed.
    let sorted = if items.is_sorted_by(|(a, _), (b, _)| a < b) {
        items
    } else {
        items.into_iter().collect::<BTreeMap<_, _>>().into_iter().collect()
    };
    if !constraint.has_dynamic() {
        return Ok(Value::map_of_sorted(constraint.clone(), sorted.into()));
    }
    let (keys, items): (Vec<Arc<str>>, Vec<Value>) = sorted.into_iter().unzip();
    let (element, items) = uniform(constraint, items)?;
    Ok(Value::map_of_sorted(element, keys.into_iter().zip(items).collect()))
}

/// Returns the value, converted if it does not have the target type.
pub(crate) fn as_type<'v>(value: &'v Value, ty: &Type) -> Result<Cow<'v, Value>, CodecError> {
    if value.ty().conforms_to(ty) {
        return Ok(Cow::Borrowed(value));
    }
    match convert(value, ty) {
        Ok(converted) => Ok(Cow::Owned(converted)),
        Err(e) => Err(CodecError {
            path: e.path,
            message: e.message,
        }),
    }
}
