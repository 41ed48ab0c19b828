//! Provider packages: discovery, selection, verification, installation, mirrors, and the packages of a pack.
//!
//! [`Catalog`] selects the executable for a provider or provisioner address in one working directory; the crate `plugins` starts
//! it. The table of built-in plugins comes from the caller ([`builtin`]).
//!
//! - [`settings`]: settings from the caller, the environment and the CLI configuration ([`cli_config`]).
//! - [`discovery`]: installed plugins. [`selection`]: which of them is used, under which constraints.
//! - `newest`: the newest version of the package sources. `not_available`: errors without a selection.
//! - [`packed`]: packages in this executable, if it is a pack. [`install`] and [`lock_file`]: the files that `init` writes.
//! - [`sources`]: package sources: a provider's registry (`registry`), a [`network_mirror`], an `oci_mirror`, archives on this
//!   machine.
//! - `fetch` downloads, verifies and unpacks one package ([`download`], [`signature`], the crate `archive`), through the plugin
//!   cache.
//! - [`serve`]: a server of packages. [`cross_platform`]: packages for other platforms. [`gather`]: unpacked packages for a pack.
//!
//! Where to begin: [`catalog`], then [`selection`].

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
pub mod local_mirror;
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
