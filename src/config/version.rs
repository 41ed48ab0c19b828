//! Constraints on versions as the configuration has them: read, and with their place.

use syntax::Range;
use versions::{Constraints, VersionError};
pub use versions::{Dialect, Version};

/// A constraint as written, with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Constraint {
    pub text: String,
    pub constraints: Constraints,
    /// Where it is written.
    pub range: Range,
}

impl Constraint {
    /// Reads a constraint.
    pub fn parse(text: &str, dialect: Dialect, range: &Range) -> Result<Constraint, VersionError> {
        Ok(Constraint {
            text: text.to_owned(),
            constraints: Constraints::parse_dialect(text, dialect)?,
            range: range.clone(),
        })
    }

    /// Whether a version satisfies it.
    #[must_use]
    pub fn allows(&self, version: &Version) -> bool {
        self.constraints.allows(version)
    }
}
