//! Version constraints of the configuration, with their source ranges.

use syntax::Range;
use versions::{Constraints, VersionError};
pub use versions::{Dialect, Version};

/// A constraint as written, with its range.
#[derive(Clone, Debug, PartialEq)]
pub struct Constraint {
    pub text: String,
    pub constraints: Constraints,
    pub range: Range,
}

impl Constraint {
    pub fn parse(text: &str, dialect: Dialect, range: &Range) -> Result<Constraint, VersionError> {
        Ok(Constraint {
            text: text.to_owned(),
            constraints: Constraints::parse_dialect(text, dialect)?,
            range: range.clone(),
        })
    }

    /// Returns true if a version satisfies the constraint.
    #[must_use]
    pub fn allows(&self, version: &Version) -> bool {
        self.constraints.allows(version)
    }
}
