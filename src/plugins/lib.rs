//! Host side of plugins: starts their processes and calls them over gRPC.
//!
//! The engine does not depend on the version of the protocol: for it, a provider is a [`provider::Provider`], a provisioner
//! is a [`provider::Provisioner`], and their methods take and return values, schemas and diagnostics. Which executable
//! serves a provider address is decided in `packages`; [`Host`] starts the [`Program`] that its caller passes.
//!
//! - [`launch`]: environment, handshake line ([`handshake`]), certificates ([`tls`]), connection ([`channel`]). [`process`]
//!   watches the plugin, so that its death is explained. [`reattach`]: providers that run already.
//! - [`grpc`]: one client for both protocols ([`grpc_provider`]), one for provisioners ([`grpc_provisioner`]), and one for
//!   state stores ([`grpc_state_store`]). [`batches`]: calls of providers of the SDK share messages. [`connection`]:
//!   conversion of a gRPC status to a diagnostic.
//!
//! - [`probe`]: a plugin under examination, with requests as bytes.
//! - [`schemas`]: the schemas of a provider, decoded by type when they are used, and kept for the next command.
//!
//! [`private_tmp`]: a `/tmp` for sockets where no directory can be written.
//!
//! A plugin is killed when the last reference to its connection is dropped, so none outlives a panic; `close` asks it to
//! end first. On Linux `spawner` has the kernel kill the plugins of a core that is killed.
//!
//! Where to begin: [`host`], then [`launch`] and [`grpc_provider`].

/// Entry points of the fuzz targets.
#[doc(hidden)]
pub mod fuzzing {
    pub fn handshake(line: &str) {
        drop(crate::handshake::Handshake::parse(line, &[5, 6]));
    }
}

mod batches;
mod channel;
mod connection;
mod convert;
mod grpc;
mod grpc_provider;
mod grpc_provisioner;
mod grpc_state_store;
mod grpc_v5;
mod handshake;
mod host;
mod launch;
mod logs;
mod methods;
#[cfg(target_os = "linux")]
pub mod private_tmp;
pub mod probe;
mod process;
pub mod reattach;
mod schemas;
mod spawner;
mod tls;

#[cfg(test)]
mod tests;

pub use convert::MessageError;
pub use host::{Host, HostSettings, Program};
pub use process::ReportWaiting;
pub use schemas::{SchemaStore, planned};
