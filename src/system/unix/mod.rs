//! Linux, macOS and FreeBSD.

pub mod console;
pub mod files;
pub mod groups;
#[cfg(feature = "tokio")]
pub mod listening;
pub mod locks;
pub mod processes;
#[cfg(feature = "tokio")]
pub mod signals;
#[cfg(feature = "tokio")]
pub mod streams;
pub mod user;
