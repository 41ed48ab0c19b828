//! Acceptance tests of a provider: steps in files `*.acctest.hcl`, carried out by Monoform, Terraform and OpenTofu.
//!
//! A file ([`mod@file`]) is a sequence of steps on one state. Each program ([`program`]) works in a directory of its own, with a
//! development override for the executable of the provider. A step plans, applies and plans once more; the checks
//! ([`checks`]) read the JSON documents of plans and states, which are the same for all programs. Results are the events of a
//! test suite, so that its views show them.

pub mod checks;
mod conditions;
mod decode;
pub mod file;
pub mod path;
pub mod program;
mod read;
mod run;
mod steps;

pub use read::read_all;
pub use run::{Acceptance, run};
