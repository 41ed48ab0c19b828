//! The test framework: runs the `run` blocks of test files against modules, in states that exist in memory only.
//!
//! A suite ([`suite`]) runs its files one after the other. A file ([`mod@file`]) has its own states, variables and providers; its
//! runs ([`run`]) wait for those that they depend on ([`order`]), and may go on beside each other. A run plans, applies if it is
//! to, compares failures with those that are expected ([`expected`]) and evaluates its assertions ([`assertions`]). At the end
//! of the file, what exists is destroyed ([`teardown`]). Mocks are providers ([`mock`], [`generate`]) that the engine cannot tell
//! from real ones. What of a module the runs have come upon is its [`coverage`]. What happens goes to a [`View`] as [`Event`]s.
//!
//! The engine plans and applies in process: nothing is written anywhere, and a provider's schema is asked for once.
//!
//! Where to begin: [`suite::Suite`], then [`run`].

#![allow(missing_docs, reason = "an internal crate: names and types say the rest")]

pub mod assertions;
mod context;
pub mod coverage;
pub mod events;
pub mod expected;
pub mod file;
pub mod generate;
pub mod mock;
pub mod order;
pub mod provider_types;
pub mod providers;
pub mod run;
pub mod run_providers;
mod scope;
mod setting;
mod shared;
pub mod substitutes;
pub mod suite;
mod suite_file;
pub mod teardown;
mod variables;
mod walk;

pub use events::{Event, Performed, Status, View};
pub use suite::{Counts, Suite, SuiteFile};
