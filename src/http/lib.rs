//! HTTP requests of the core and of plugins: one client, one set of rules.
//!
//! Servers are not to be trusted with a secret that is meant for another, nor with our time or memory. What follows from that holds
//! for registries and mirrors (`net`), state stores (`store-client`) and the provider `http` alike, so it is here:
//!
//! - [`Transport`] sends a [`Request`]: trust anchors, proxies, redirects without secrets, limits of time. It is made once for each
//!   peer or run, and costs nothing before its first request.
//! - [`Response`]: its head has been read; its body is read with limits of size and silence.
//! - [`retry`]: when another try may help, and how long to wait before: at most what a user would accept of a server.
//! - [`rules`]: the limits in numbers, and which headers stay behind at a redirect.
//! - [`aws`]: signatures of requests to AWS.
//! - [`Error`]: why there was no answer, in words, by `reason`.
//!
//! Callers add their own parts: `net` tokens and `.netrc`, `store-client` signatures, the provider the official one's behaviour.
//! Redirects are followed here and not by the library below, because every caller has its own limit.
//!
//! Begin with [`Transport`].

#![allow(missing_docs, reason = "an internal crate: names and types say the rest")]

pub mod aws;
mod error;
mod reason;
mod response;
pub mod retry;
pub mod rules;
mod transport;

pub use bytes::Bytes;
pub use error::{Error, Phase, shown};
pub use files::{io_reason, json_reason};
pub use reason::{TlsProblem, tls_reason};
pub use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
pub use reqwest::{Method, StatusCode};
pub use response::Response;
pub use rules::Silence;
pub use transport::{
    Login, Proxy, Redirects, Request, Secrets, Settings, Transport, patient, redirect, remove_secrets,
};
pub use url::Url;
