//! Programs that plugins run, and their output.
//!
//! - [`program`]: finds a program by name, and runs it in such a way that what it started ends with it.
//! - [`lines`]: makes lines of its output, and keeps the end of it for the message of a failure.
//!
//! The SDK brings both to authors under its own name. They know nothing of plugins.
//!
//! Begin with [`program::Running`].

pub mod lines;
pub mod program;
