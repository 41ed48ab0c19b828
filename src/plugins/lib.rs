//! The host side of plugins: start a process, talk to it over gRPC.
//!
//! Above this crate nothing knows a protocol number: a provider is a [`provider::Provider`], a provisioner is a
//! [`provider::Provisioner`], and both speak in values, schemas and diagnostics. Which executable serves an address is
//! decided in `packages`; [`Host`] starts the [`Program`] it is given.
//!
//! - [`launch`]: environment, handshake line ([`handshake`]), certificates ([`tls`]), connection ([`channel`]). [`process`]
//!   watches the plugin, so that its death is explained. [`reattach`]: providers that run already.
//! - [`grpc`]: one client for both protocols ([`grpc_provider`]), one for provisioners ([`grpc_provisioner`]), and one for state
//!   stores ([`grpc_state_store`]). [`batches`]: calls of our own providers share messages. [`connection`]: from a gRPC status to
//!   a diagnostic.
//!
//! - [`schemas`]: the schemas of a provider, decoded by type when they are used, and kept for the next command.
//!
//! [`private_tmp`]: a directory for sockets where there is none.
//!
//! A plugin is killed when the last reference to its connection goes, so none outlives a panic; `close` is the polite way.
//! `spawner` sees to it that none outlives a core that is killed.
//!
//! Where to begin: [`host`], then [`launch`] and [`grpc_provider`].

#![allow(missing_docs, reason = "an internal crate: names and types say the rest")]

/// Entries for the fuzz targets.
#[doc(hidden)]
pub mod fuzzing {
    /// Reads a handshake line.
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
mod grpc_v6;
mod handshake;
mod host;
mod launch;
mod logs;
#[cfg(target_os = "linux")]
pub mod private_tmp;
mod process;
pub mod reattach;
mod schemas;
mod spawner;
mod tls;

#[cfg(test)]
mod tests;

pub use host::{Host, HostSettings, Program};
pub use process::ReportWaiting;
pub use schemas::{SchemaStore, planned};
