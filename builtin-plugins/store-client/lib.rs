//! Common parts of the state stores that use web services: an HTTP client, and the logic that all stores share.
//!
//! - [`HttpClient`] sends requests. It reads responses as a whole, and treats no status as an error.
//! - [`Tls`] has the trusted authorities and the client certificate.
//! - [`Retries`] has the number of retries, and the pauses between them.
//! - [`Failure`] is a request without an answer; [`Failure::diagnostic`] adds advice.
//!
//! Nothing is prepared before a request needs it. For example, the root certificates of the system are read when a server presents a
//! certificate that they have to verify.
//!
//! A store consists of its requests: it implements [`guard::LockedStore`] and, for its locks, [`lock::LockRecord`]. These modules have the
//! rest:
//!
//! - [`guard`]: writes that are refused after the loss of a lock. [`lock`]: acquisition and release of locks. [`consistent`]: states whose
//!   checksum is stored separately. [`listing`]: workspaces from paginated lists of object names.
//! - [`about`]: texts of diagnostics. [`arguments`]: values from configuration and environment. [`profile`]: profile files of cloud command
//!   lines. [`gzip`]: compression.
//! - [`oauth`]: access tokens and signed JWTs. [`credential`]: access keys that expire. [`machine`]: access keys of a machine's role.
//! - [`name`] and [`sum`]: object names in URLs, and checksums in headers. [`xml`]: parsing of flat XML documents.
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
