//! HTTP client of the core and of plugins, with one set of rules.
//!
//! Servers must get neither secrets for other servers nor unlimited time and memory. The resulting rules are those of
//! registries and mirrors (`net`), of state stores (`store-client`) and of the provider `http`, so they are here:
//!
//! - [`Transport`] sends a [`Request`]: trust anchors, proxies, redirects without secrets, time limits. Callers create
//!   one for each server or for a whole run. Creating one reads nothing; the client is built for the first request.
//! - [`Response`]: the head was read; the body is read with limits of size and silence.
//! - [`retry`]: the cases in which another try may help, and the pause before it, which is never longer than users
//!   would accept.
//! - [`rules`]: the limits, and the headers that are removed at a redirect.
//! - [`aws`]: signatures of requests to AWS.
//! - [`Error`]: the reason of a failure in words, from `reason`.
//!
//! Callers add their own parts: `net` tokens and `.netrc`, `store-client` signatures, the provider the behaviour of the
//! official one. Redirects are followed here instead of in the library below, because every caller has its own limit.
//!
//! Start with [`Transport`].

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
