//! Refinements: what is already known about an unknown value.

use std::sync::Arc;

use crate::Number;

/// What is known about an unknown value. The default says nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Refinements {
    /// The value will certainly not be null.
    pub not_null: bool,
    /// The string will start with this text.
    pub prefix: Option<Arc<str>>,
    /// The number will be at least this (inclusive if the flag is set).
    pub number_min: Option<(Number, bool)>,
    /// The number will be at most this (inclusive if the flag is set).
    pub number_max: Option<(Number, bool)>,
    /// The collection will have at least so many elements.
    pub length_min: Option<usize>,
    /// The collection will have at most so many elements.
    pub length_max: Option<usize>,
}

impl Refinements {
    /// The refinement that says only "not null".
    #[must_use]
    pub fn not_null() -> Refinements {
        Refinements { not_null: true, ..Refinements::default() }
    }

    /// Whether nothing is said.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Refinements::default()
    }
}
