//! The `archive` provider: files, directories and texts become a zip or tar.gz file.
//!
//! The same inputs give the same bytes, everywhere and always: people compare the checksums. So an archive holds neither
//! the time of its making nor the names of owners, and what was found at its own path is never an input.
//!
//! It stands for version 2.8.0 of the official provider, and may use only the SDK, `cty` and `deflate`. [`archive_file`] is what
//! people see; [`select`] finds what goes into an archive, with the patterns of [`gotext::glob`]; [`content`] opens it; [`zip`] and [`tarball`] write it.

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

/// The version of the official provider that this one stands for.
pub const VERSION: &str = "2.8.0";

/// The earlier versions of the same major, which this one stands for too.
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
