//! The host side of plugins: find, choose, verify, install, launch, talk.
//!
//! Nothing further in knows a protocol number: a provider is a [`Provider`], a provisioner is a [`Provisioner`], and both
//! speak in values, schemas and diagnostics. [`Registry`] says which plugin stands for which provider address and starts
//! it; the table of built-in plugins is handed in from above ([`builtin`]).
//!
//! The way from an address to a running provider:
//! - [`settings`]: what the rooms above, the environment and the CLI configuration ([`cli_config`]) say.
//! - [`discovery`]: what is on this machine. [`selection`]: which of it is used, under which constraints ([`version`]).
//!   `newest`: which version of those that sources have. `not_available`: why there is no choice. [`install`] and [`lock_file`]: what `init` leaves behind.
//! - [`places`]: where packages are installed from: a provider's registry (`origin`), a [`network_mirror`], archives on this
//!   machine. `fetch` gets, verifies and unpacks one ([`download`], [`signature`], `unpack`), by way of the plugin cache.
//!   [`elsewhere`]: packages for other machines.
//! - [`launch`]: environment, handshake line ([`handshake`]), certificates ([`tls`]), connection ([`channel`]). [`process`]
//!   watches the plugin, so that its death has an explanation.
//! - [`grpc`]: one client for both protocols ([`grpc_provider`]), and one for provisioners ([`grpc_provisioner`]). [`peer`]: what people are told when it fails.
//!
//! A plugin is killed when the last reference to its [`Provider`] goes, so none outlives a panic; `close` is the
//! polite way. `spawner` sees to it that none outlives a core that is killed either. The room uses `proto`, `lang` (schemas), `syntax` (diagnostics), `cty` and `addrs`.
//!
//! Where to begin: [`provider`] (what the engine asks of a provider), then [`registry`].

pub mod builtin;
pub mod channel;
pub mod cli_config;
mod convert;
pub mod discovery;
pub mod download;
pub mod elsewhere;
pub mod environment;
mod fetch;
pub mod grpc;
pub mod grpc_provider;
pub mod grpc_provisioner;
pub mod grpc_v5;
pub mod grpc_v6;
pub mod handshake;
mod hash;
mod hcl1;
pub mod install;
pub mod launch;
pub mod lock_file;
mod logs;
pub mod network_mirror;
mod newest;
mod not_available;
mod openpgp;
mod origin;
pub mod peer;
pub mod places;
pub mod platform;
pub mod process;
pub mod provider;
pub mod reattach;
pub mod registry;
pub mod selection;
pub mod settings;
pub mod signature;
mod spawner;
pub mod tls;
mod unpack;
pub use addrs::version;

pub use provider::{Provider, Provisioner};
pub use registry::Registry;
pub use settings::Settings;
