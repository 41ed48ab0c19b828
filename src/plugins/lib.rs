//! The host side of plugins: find, choose, launch, talk.
//!
//! Nothing further in knows a protocol number: a provider is a [`Provider`], a provisioner is a [`Provisioner`], and both
//! speak in values, schemas and diagnostics.
//!
//! Where to begin: [`provider`] (what the engine asks of a provider).

pub mod builtin;
pub mod channel;
pub mod cli_config;
mod convert;
pub mod environment;
pub mod grpc;
pub mod grpc_provisioner;
pub mod grpc_v5;
pub mod grpc_v6;
pub mod handshake;
mod hcl1;
pub mod launch;
mod logs;
pub mod peer;
pub mod platform;
pub mod process;
pub mod provider;
pub mod tls;
pub mod version;

pub use provider::{Provider, Provisioner};
