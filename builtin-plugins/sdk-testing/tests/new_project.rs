//! Compiles the sources that `monoform provider new` writes against the current SDK, and runs their own tests.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../../src/authors/new/project/src/files.rs"]
mod files;
#[path = "../../../src/authors/new/project/src/functions.rs"]
mod functions;
#[path = "../../../src/authors/new/project/src/lookup.rs"]
mod lookup;
#[path = "../../../src/authors/new/project/src/note.rs"]
mod note;
#[path = "../../../src/authors/new/project/src/provider.rs"]
mod provider;
