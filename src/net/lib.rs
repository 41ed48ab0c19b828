//! Requests to the outside: HTTP, service discovery, and the credentials of hosts.
//!
//! Requests to module and provider registries, mirrors and web servers all use this crate, so that proxies, trust anchors,
//! timeouts, retries and tokens are the same for all.
//!
//! - [`hosts`]: names of hosts, and what the CLI configuration says about them ([`HostSettings`]).
//! - [`credentials`]: the token for a host, from the environment, the CLI configuration, or a helper program.
//! - [`client`]: one [`Client`] for a run. It costs nothing until the first request: only then are roots of trust read.
//!   A request and its answer, tried again where that may help, are in `request`; what can go wrong is in `error`, and I/O and
//!   network errors in words in `reason`.
//! - [`credentials_file`]: the file in which tokens are stored by `login`.
//! - [`login`]: how a token is had from a host: OAuth, with a browser or with a password.
//! - [`discovery`]: what a host offers, by its `/.well-known/terraform.json`.
//! - [`OciSettings`]: logins to OCI registries.
//! - [`netrc`]: names and passwords for web servers.
//!
//! Redirects are followed here and not by the library below, because every caller has its own limit, and because a token
//! must not follow to another host. Nothing secret is part of an error or a log line: addresses are shown without their
//! passwords and queries ([`shown`]).
//!
//! Where to begin: [`client`].

pub mod absent;
pub mod client;
pub mod credentials;
pub mod credentials_file;
pub mod discovery;
mod error;
pub mod hosts;
pub mod login;
pub mod netrc;
mod oci;
mod reason;
mod request;
mod services;
mod timeouts;
mod tls;

pub use client::{Client, NetSettings, Notice, Retry, decoded_path, form};
pub use credentials::Token;
pub use error::{Error, shown};
pub use hosts::{Host, HostSettings};
pub use oci::{OciLogin, OciSettings};
pub use proxies::Way;
pub use reason::WITHOUT_NETWORK;
pub use request::{Request, Response};
pub use reqwest::Method;
pub use url::Url;
