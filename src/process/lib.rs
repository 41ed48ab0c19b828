//! Child programs of plugins, and their output.
//!
//! - [`program`]: finds a program by name, and runs it so that its descendants end with it.
//! - [`collect`]: runs a program for its output.
//! - [`lines`]: splits its output into lines, and keeps the end of it for error messages.
//!
//! The SDK exports both to authors of plugins under its own name. They are independent of plugins.
//!
//! Start with [`program::Running`].

pub mod collect;
pub mod lines;
pub mod program;
