//! A server of provider packages: `providers serve`, for a mirror directory or a pack.
//!
//! It speaks two protocols, read-only: that of network mirrors below `/providers/`, and that of provider registries, for its own host and,
//! below `/registry/HOST/`, for any other host. Unpacked packages are archived at the first request ([`contents`]). Paths of requests are
//! in [`answer`]; connections, with their limits, are in the crate `server`.
//!
//! No path of a request is used as a path of the file system: addresses, versions and platforms are parsed and looked up.

mod answer;
mod contents;

pub use answer::Answers;
pub use contents::{Contents, Shelf, Survey};
