//! A server of provider packages: what `providers serve` does with a mirror directory or a pack.
//!
//! It answers by two protocols, read-only: that of network mirrors below `/providers/`, and that of provider registries, for the host
//! that it is itself and, below `/registry/HOST/`, for any other. Packages that are not archives become archives when they are first
//! asked for ([`contents`]). Which path means what is in [`answer`]; connections, with their limits, are in [`connections`].
//!
//! No path of a request is a path of the file system: addresses, versions and platforms are parsed, and what they name is looked up.

mod answer;
mod connections;
mod contents;
mod guests;
mod tls;

pub use connections::{Access, Server, listen};
pub use contents::{Contents, Shelf, Survey};
pub use tls::{TlsError, server_config};
