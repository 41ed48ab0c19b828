//! Linux, macOS and FreeBSD.

pub mod files;
pub mod locks;
pub mod processes;
pub mod signals;
