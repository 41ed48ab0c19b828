//! HTTP requests, service discovery, and credentials of hosts.
//!
//! Requests to module and provider registries, mirrors and web servers all use this crate, so that proxies, trust
//! anchors, timeouts, retries and tokens are the same for all.
//!
//! - [`hosts`]: names of hosts, and their settings in the CLI configuration ([`HostSettings`]).
//! - [`credentials`]: the token for a host, from the environment, the CLI configuration, or a helper program.
//! - [`client`]: one [`Client`] for a run. Trust anchors are read only for the first request. `request` repeats a
//!   request if that may help. The crate `http` sends it and describes failures.
//! - [`credentials_file`]: the file in which `login` stores tokens.
//! - [`login`]: tokens by OAuth, with a browser or with a password.
//! - [`discovery`]: the services of a host, from its `/.well-known/terraform.json`.
//! - [`OciSettings`]: logins to OCI registries.
//! - [`netrc`]: names and passwords for web servers.
//!
//! Errors and log lines have no secrets: URLs are shown without passwords and queries ([`shown`]).
//!
//! Start with [`client`].

pub mod absent;
pub mod client;
pub mod credentials;
pub mod credentials_file;
pub mod discovery;
pub mod hosts;
pub mod login;
pub mod netrc;
mod oci;
mod request;
mod services;
mod token;

pub use client::{Client, NetSettings, Notice, OnAnswer, Retry, WatchedRequest, decoded_path, form};
pub use hosts::{Host, HostSettings};
pub use http::{Error, Method, Response, Url, shown};
pub use oci::{OciLogin, OciSettings};
pub use proxies::Way;
pub use request::Request;
pub use token::Token;

/// Advice for machines without a network, in errors of commands that install.
pub const WITHOUT_NETWORK: &str = "Where there is no connection, \"init -mirror=DIR\" installs from a directory that \"providers mirror\" and \"modules \
     mirror\" have filled.";
