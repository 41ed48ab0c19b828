//! Sets: canonical order and removal of duplicates.

use crate::{Type, Value};

/// The elements of a set in canonical order without duplicates.
#[must_use]
pub fn canonical(_element: &Type, _items: Vec<Value>) -> Vec<Value> {
    todo!()
}
