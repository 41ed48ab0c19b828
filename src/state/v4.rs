//! Version 4 of the state format, as it is in the file.
//!
//! The text is JSON, indented by two blanks, with a line break at the end and the keys in a fixed order. Resources are ordered by the text
//! of their module, then by mode, type and name; instances by key, and the deposed objects of an instance follow its current one. Unknown
//! keys are ignored when a state is read, so they are lost when it is written.

mod read;
mod write;

pub(crate) use read::{read, read_objects};
pub(crate) use write::{json_string, write, write_in_parts, write_objects};
