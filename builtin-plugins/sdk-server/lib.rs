//! Serves plugins that are written with `monoform-sdk`: the process, the handshake, and gRPC over TLS on a local socket.
//!
//! The `main` of a plugin is one line:
//!
//! ```no_run
//! # fn provider() -> impl monoform_sdk::Provider { monoform_sdk::Plain(|_| {}) }
//! fn main() -> std::process::ExitCode {
//!     monoform_sdk_server::serve_provider(provider())
//! }
//! ```
//!
//! The same implementation is served as protocol 5 or 6, as the host requests; see [`serve_provider`] for the steps between the start of
//! the process and its end.
//!
//! - Calls run side by side, each on a thread of its own. A call that blocks its thread does not delay the others.
//! - A plugin ends with the program that started it.
//! - If the environment has a client certificate, the connection is encrypted, and only a client with that certificate is accepted.
//!
//! A whole provider, as a third party would write it, is in `examples/notes.rs`. To read the crate, begin with `serve.rs`, then
//! `provider/mod.rs`. Requests are answered by `monoform_sdk::served`, which is independent of gRPC.

mod actions;
mod auxiliary;
mod certificate;
mod debug;
mod handshake;
mod limits;
mod list;
mod listen;
mod log;
mod messages;
mod provider;
mod provisioner_service;
mod routes;
mod serve;
mod state_store;
mod threads;
mod tls;

pub use self::serve::{debug_provider, serve_provider, serve_provisioner, serve_state_store};

/// Checks that the example in the guide about providers compiles.
#[cfg(doctest)]
#[doc = include_str!("../../src/cli/guide/provider.md")]
struct Guide;

/// Checks that the provider in the README of the crates compiles.
#[cfg(doctest)]
#[doc = include_str!("README.md")]
struct Readme;
