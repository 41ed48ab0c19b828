//! HTTP servers of commands: connections with their limits, TLS, and an orderly end.
//!
//! `providers serve` and `state serve` implement [`Handler`], which answers one request; [`Server`] does the rest. A client that reads
//! slowly, or not at all, must not block others: the file `guests.rs` has the rules. Begin with `connections.rs`.

mod connections;
mod credentials;
mod guests;
mod limits;
mod reply;
mod tls;

pub use connections::{Access, Handler, Server, listen};
pub use credentials::Credentials;
pub use hyper::body::Incoming;
pub use hyper::{HeaderMap, Method, Request, StatusCode, header};
pub use reply::{Body, Reply, read_body};
pub use rustls::ServerConfig as TlsSettings;
pub use tls::{TlsError, server_config};
