//! Child programs of plugins, and their output.
//!
//! - [`program`]: finds a program by name, and runs it so that its descendants end with it.
//! - [`collect`]: runs a program for its output.
//! - [`lines`]: splits output into lines, and keeps its last bytes for error messages.
//!
//! The SDK re-exports the three modules for authors of plugins. The modules themselves do not depend on plugins.
//!
//! Start with [`program::Running`].

pub mod collect;
pub mod lines;
pub mod program;
