//! The `null` provider: a resource that does nothing, and a data source that returns its arguments.
//!
//! `null_resource` has only a life cycle: it can have provisioners, and a change of `triggers` replaces it. New configurations can use
//! `terraform_data` instead, which needs no provider.
//!
//! It implements version 3.3.1 of the official provider. Of the crates of this workspace it may use only the SDK and
//! `cty`.

mod data_source;
mod resource;

use monoform_sdk::{NeverBlocks, Plain, Provider};

/// Name of the provider in addresses and in the names of executables.
pub const NAME: &str = "null";

/// Version of the official provider that this one implements.
pub const VERSION: &str = "3.3.1";

/// Earlier releases with the same major version, which this provider also implements.
pub const RELEASED: &[&str] = &[
    "3.0.0", "3.1.0", "3.1.1", "3.2.0", "3.2.1", "3.2.2", "3.2.3", "3.2.4", "3.3.0",
];

/// Constructs the provider for the plugin server.
#[must_use]
pub fn provider() -> impl Provider {
    NeverBlocks(Plain(|members| {
        members.plain();
        members.resource("null_resource", resource::NullResource);
        members.data_source("null_data_source", data_source::NullDataSource);
    }))
}

/// Returns a random 63-bit number in decimal.
fn random_number() -> String {
    // As in the official provider: a non-negative signed 64-bit number.
    (rand::random::<u64>() >> 1).to_string()
}

#[cfg(test)]
mod tests {
    use monoform_sdk_testing::Harness;

    #[test]
    fn the_schema_is_the_official_one() {
        assert_eq!(
            Harness::new(crate::provider()).schema_text(),
            "resource null_resource v0\n  id string computed\n  triggers map(string) optional\n\
             data null_data_source v0\n  has_computed_default string optional computed\n  id string computed deprecated\n  \
             inputs map(string) optional\n  outputs map(string) computed\n  random string computed\n"
        );
    }
}
