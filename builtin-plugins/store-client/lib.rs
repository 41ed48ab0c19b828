//! Common parts of the state stores behind web servers: an HTTP client with TLS settings, retries and errors for users, and the logic that
//! all stores share.
//!
//! - [`HttpClient`]: sends requests. Responses are read as a whole; no status is an error by itself.
//! - [`Tls`]: trusted servers, and the client certificate.
//! - [`Retries`]: number of retries, and the waits between.
//! - [`Failure`]: a request without an answer; [`Failure::diagnostic`] adds advice.
//!
//! Nothing is prepared before a request needs it: the root certificates of the machine are read when a server presents a certificate that
//! they must verify.
//!
//! A store consists of its requests: it implements [`guard::LockedStore`] and, for its locks, [`lock::LockRecord`]. The rest is here:
//!
//! - [`guard`]: writes that are refused after the loss of a lock. [`lock`]: acquisition and release of locks. [`consistent`]: states whose
//!   checksum is kept elsewhere. [`listing`]: workspaces from lists of names, page by page.
//! - [`about`]: texts of diagnostics. [`arguments`]: values from configuration and environment. [`profile`]: files of the clouds' command
//!   lines. [`gzip`]: compression.
//! - [`oauth`]: access tokens and signed JWTs. [`credential`]: access keys that expire. [`machine`]: access keys of a machine's role.
//! - [`name`] and [`sum`]: names of objects in addresses, and checksums in headers. [`xml`]: parsing of flat XML documents.
//!
//! The feature `testing` has a small web server for the tests of stores.
//!
//! Begin with [`client`].

pub mod about;
pub mod arguments;
#[cfg(test)]
#[cfg(feature = "testing")]
mod bounds_tests;
pub mod client;
pub mod consistent;
pub mod credential;
pub mod guard;
pub mod gzip;
pub mod listing;
pub mod lock;
pub mod machine;
pub mod name;
pub mod oauth;
pub mod profile;
pub mod sum;
#[cfg(feature = "testing")]
pub mod testing;
mod tls;
pub mod xml;

pub use client::{Answer, Failure, HttpClient, Proxy, Retries, Settings, header_value, waiting};
pub use http::{Bytes, HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Url, io_reason, json_reason};
pub use tls::{Tls, TlsError};
