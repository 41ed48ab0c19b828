//! The `archive` provider: zip and tar.gz files of files, directories and texts.
//!
//! The same inputs always give the same bytes, since users compare the checksums. So an archive contains neither times nor names of owners,
//! and an earlier archive at the output path is never an input.
//!
//! It implements version 2.8.0 of the official provider. Of the crates of this workspace it may use only the SDK, `cty`, `gotext` and
//! `deflate`. [`archive_file`] has the resource and the data source; [`select`] selects the contents, with the patterns of
//! [`gotext::glob`]; [`content`] opens them; [`zip`] and [`tarball`] write archives.

mod archive_file;
mod content;
mod error;
mod select;
mod tarball;
mod write;
mod zip;

use monoform_sdk::{Plain, Provider};

/// Name of the provider in addresses and in the names of executables.
pub const NAME: &str = "archive";

/// Version of the official provider that this one implements.
pub const VERSION: &str = "2.8.0";

/// Earlier releases with the same major version, which this provider also implements.
pub const RELEASED: &[&str] = &[
    "2.0.0", "2.1.0", "2.2.0", "2.3.0", "2.4.0", "2.4.1", "2.4.2", "2.5.0", "2.6.0", "2.7.0", "2.7.1",
];

/// Constructs the provider for the plugin server.
#[must_use]
pub fn provider() -> impl Provider {
    Plain(|members| {
        members.plain();
        members.resource("archive_file", archive_file::ArchiveFile);
        members.data_source("archive_file", archive_file::ArchiveFile);
    })
}

#[cfg(test)]
mod recorded;
#[cfg(test)]
mod tests;
