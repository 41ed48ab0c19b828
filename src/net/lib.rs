//! Requests to the outside: HTTP, service discovery, and the credentials of hosts.
//!
//! Requests to module and provider registries, mirrors and web servers all use this crate, so that proxies, trust anchors,
//! timeouts, retries and tokens are the same for all.
//!
//! - [`hosts`]: names of hosts, and what the CLI configuration says about them ([`HostSettings`]).
//! - [`credentials`]: the token for a host, from the environment, the CLI configuration, or a helper program.
//! - [`client`]: one [`Client`] for a run. It costs nothing until the first request: only then are roots of trust read.
//!   A request that is tried again where that may help is in `request`. The crate `http` sends it and says what can go wrong.
//! - [`credentials_file`]: the file in which tokens are stored by `login`.
//! - [`login`]: how a token is had from a host: OAuth, with a browser or with a password.
//! - [`discovery`]: what a host offers, by its `/.well-known/terraform.json`.
//! - [`OciSettings`]: logins to OCI registries.
//! - [`netrc`]: names and passwords for web servers.
//!
//! Nothing secret is part of an error or a log line: addresses are shown without their
//! passwords and queries ([`shown`]).
//!
//! Where to begin: [`client`].

#![allow(missing_docs, reason = "an internal crate: names and types say the rest")]

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

pub use client::{Client, NetSettings, Notice, Retry, decoded_path, form};
pub use credentials::Token;
pub use hosts::{Host, HostSettings};
pub use http::{Error, Method, Response, Url, shown};
pub use oci::{OciLogin, OciSettings};
pub use proxies::Way;
pub use request::Request;

/// What helps where no host can be reached: appended to errors of commands that install.
pub const WITHOUT_NETWORK: &str = "Where there is no connection, \"init -mirror=DIR\" installs from a directory that \"providers mirror\" and \"modules \
     mirror\" have filled.";
