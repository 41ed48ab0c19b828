//! Stands in until the type expressions of `lang` are there.

/// Default values of optional attributes.
#[derive(Clone, Debug)]
pub struct Defaults;
