//! Inputs of a planning request: the configuration and the proposed new object.

use config::IgnoreChanges;
use cty::Value;
use schema::Schema;

use super::computed_blocks::with_null_blocks;
use super::ignore::with_ignored_changes;
use super::proposed::proposed_new;

/// Configuration and proposed new object for a planning request.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    /// The configuration, with prior values for ignored arguments, and null for computed blocks that are not configured.
    pub config: Value,
    /// The proposed new object.
    pub proposed: Value,
}

impl Proposal {
    /// Creates the proposal for a change of an object. Without a prior object, no change is ignored.
    #[must_use]
    pub fn new(schema: &Schema, prior: &Value, config: &Value, ignored: &IgnoreChanges) -> Proposal {
        // Ignored changes come first, because they can put prior blocks into the configuration, which then are not null. The proposed
        // object is computed from the result, so that it contains the ignored values.
        let config = with_ignored_changes(&schema.block, prior, config, ignored);
        let config = with_null_blocks(schema, &config);
        Proposal {
            proposed: proposed_new(&schema.block, prior, &config),
            config,
        }
    }
}
