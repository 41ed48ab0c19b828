//! Provider packages: find, choose, verify, install, mirror, and those that our own executable carries.
//!
//! [`Catalog`] says which executable serves a provider or provisioner address in one working directory; how that is started
//! is the business of `plugins`. The table of built-in plugins is handed in from above ([`builtin`]).
//!
//! - [`settings`]: what the caller, the environment and the CLI configuration ([`cli_config`]) say.
//! - [`discovery`]: what is on this machine. [`selection`]: which of it is used, under which constraints.
//!   `newest`: which of the versions that package sources have. `not_available`: why there is no selection.
//!   [`packed`]: what our own executable carries. [`install`] and [`lock_file`]: what `init` writes.
//! - [`sources`]: package sources: a provider's registry (`registry`), a [`network_mirror`], an
//!   `oci_mirror`, archives on this machine. `fetch`
//!   gets, verifies and unpacks one package ([`download`], [`signature`], the crate `archive`), by way of the plugin cache.
//!   [`serve`]: a server of packages. [`cross_platform`]: packages for other platforms. [`gather`]: unpacked packages for a pack.
//!
//! Where to begin: [`catalog`], then [`selection`].

#![allow(missing_docs, reason = "an internal crate: names and types say the rest")]

pub mod builtin;
mod catalog;
pub mod cli_config;
pub mod cross_platform;
mod discovery;
pub mod download;
mod error;
mod fetch;
pub mod gather;
mod hash;
mod hcl1;
pub mod install;
pub mod lock_file;
pub mod metadata;
mod mirror_archives;
mod network_mirror;
mod newest;
mod not_available;
mod oci_mirror;
mod openpgp;
pub mod packed;
mod place;
mod provider_pattern;
mod registry;
pub mod repository_template;
pub mod selection;
pub mod serve;
mod settings;
pub mod signature;
pub mod sources;

pub use catalog::{Catalog, ProvisionerSelection};
pub use settings::Settings;
