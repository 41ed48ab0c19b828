//! States of commands: backends, the opened and locked state, the journal of a run.
//!
//! [`backend`] finds the backend of a configuration from the `backend` block and the record of the last `init`, and migrates states when
//! that changes. [`session`] opens and locks a state, writes it, and rescues it if it cannot be written; [`persist`] saves results while an
//! apply runs, and [`journal`] records the intents and results of a run. [`planfile`] reads and writes saved plans, which name the backend
//! that they were made with; [`generated`] writes the configuration that a plan generates.
//!
//! The modules here do not depend on the command line, the terminal or the packages of plugins: a [`Context`] provides what they need.
//! Begin reading with `context.rs` and `backend/mod.rs`.

pub mod backend;
pub mod context;
pub mod generated;
pub mod journal;
pub mod persist;
pub mod planfile;
mod problem;
pub mod serve;
pub mod session;
pub mod workspace;

pub use context::{Cloud, Console, Context, Encryption, NoAnswer, Plugins, Question, SelectedProvider, Tone};
