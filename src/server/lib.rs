//! HTTP servers of commands: connections with limits, TLS, and graceful shutdown.
//!
//! `providers serve` and `state serve` implement [`Handler`], which answers one request; [`Server`] does the rest. The rules against
//! clients that read slowly or not at all, and so would block others, are in `guests.rs`. Begin with `connections.rs`.

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
