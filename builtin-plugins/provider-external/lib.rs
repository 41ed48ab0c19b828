//! The `external` provider: a data source that runs a program.
//!
//! It implements version 2.4.0 of the official provider. Of the crates of this workspace it may use only the SDK and
//! `cty`.

mod data_source;

use monoform_sdk::{Plain, Provider};

/// Name of the provider in addresses and in the names of executables.
pub const NAME: &str = "external";

/// Version of the official provider that this one implements.
pub const VERSION: &str = "2.4.0";

/// Earlier releases with the same major version, which this provider also implements.
pub const RELEASED: &[&str] = &[
    "2.0.0", "2.1.0", "2.1.1", "2.2.0", "2.2.1", "2.2.2", "2.2.3", "2.3.0", "2.3.1", "2.3.2", "2.3.3", "2.3.4", "2.3.5",
];

/// Constructs the provider for the plugin server.
#[must_use]
pub fn provider() -> impl Provider {
    Plain(|members| {
        members.plain();
        members.data_source("external", data_source::External);
    })
}

#[cfg(test)]
mod tests {
    use monoform_sdk_testing::Harness;

    #[test]
    fn the_schema_is_the_official_one() {
        assert_eq!(
            Harness::new(crate::provider()).schema_text(),
            "data external v0\n  id string computed\n  program list(string) required\n  query map(string) optional\n  \
             result map(string) computed\n  working_dir string optional\n"
        );
    }
}
