//! The `cloudinit` provider: user data for machines that start, as one multipart MIME message.
//!
//! It implements version 2.4.0 of the official provider. Of the crates of this workspace it may use only the SDK, `cty` and `deflate`. The
//! older `template` provider uses [`render`] for the same messages.

mod config;
pub mod render;

use monoform_sdk::{NeverBlocks, Plain, Provider};

/// Name of the provider in addresses and in the names of executables.
pub const NAME: &str = "cloudinit";

/// Version of the official provider that this one implements.
pub const VERSION: &str = "2.4.0";

/// Earlier releases with the same major version, which this provider also implements.
pub const RELEASED: &[&str] = &[
    "2.0.0", "2.1.0", "2.2.0", "2.3.0", "2.3.1", "2.3.2", "2.3.3", "2.3.4", "2.3.5", "2.3.6", "2.3.7",
];

/// Constructs the provider for the plugin server.
#[must_use]
pub fn provider() -> impl Provider {
    NeverBlocks(Plain(|members| {
        members.resource("cloudinit_config", config::CloudInitResource);
        members.data_source("cloudinit_config", config::CloudInitData);
    }))
}

#[cfg(test)]
mod tests {
    use monoform_sdk_testing::Harness;

    #[test]
    fn the_schema_is_the_official_one() {
        let attributes = "  base64_encode bool optional computed\n  boundary string optional computed\n  \
                          gzip bool optional computed\n  id string computed\n  rendered string computed\n";
        assert_eq!(
            Harness::new(crate::provider()).schema_text(),
            format!("resource cloudinit_config v0\n{attributes}data cloudinit_config v0\n{attributes}")
        );
    }
}
