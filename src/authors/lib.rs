//! Tools for authors of providers, for any provider executable in any language.
//!
//! - [`acceptance`]: acceptance tests, carried out by several programs.
//! - [`docs`]: pages for registries, made from the schemas of a provider and from the examples and templates of its project.
//! - [`check`]: conformance of an executable to the plugin protocol, with a report.
//! - [`new`]: the project of a new provider. [`release`]: archives, checksums, mirrors.
//!
//! The commands `provider …` find the executable and show results; nothing here prints.

pub mod acceptance;
pub mod check;
pub mod docs;
pub mod new;
pub mod release;
