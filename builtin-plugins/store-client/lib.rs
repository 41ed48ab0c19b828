//! What the state stores behind web servers have in common: a client that trusts the right servers, tries again where that may
//! help, and says what went wrong in words.
//!
//! - [`HttpClient`]: sends requests. Answers are read as a whole; no status is an error by itself.
//! - [`Tls`]: which servers are trusted, and the client's own certificate.
//! - [`Retries`]: how often, and how long to wait between.
//! - [`Failure`]: there was no answer; [`Failure::diagnostic`] says what to do about it.
//!
//! Nothing is prepared before a request needs it: the machine's root certificates are read when a server presents a certificate
//! that they must vouch for.
//!
//! A store is its requests: it implements [`guard::LockedStore`] and, for its locks, [`lock::LockRecord`]. What follows from the
//! answers is here:
//!
//! - [`guard`]: writes that a lost lock refuses. [`lock`]: acquisition and release of locks. [`consistent`]: states whose sum is kept
//!   elsewhere. [`listing`]: workspaces from lists of names, page by page.
//! - [`about`]: texts of problems. [`arguments`]: texts from configuration and environment. [`profile`]: files of command lines. [`gzip`]: compressed states.
//! - [`oauth`]: tokens, and the signed statements by which programs ask for them. [`credential`]: keys that end. [`machine`]: those of a
//!   machine's role.
//! - [`name`] and [`sum`]: the names of objects in addresses, and sums in headers. [`xml`]: the little that is read of it.
//!
//! With the feature `testing` there is a small web server for the tests of stores.
//!
//! Begin with [`client`].

#![allow(missing_docs, reason = "an internal crate: names and types say the rest")]

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
