//! The test framework: runs the `run` blocks of test files against modules, in states that exist in memory only.
//!
//! A suite ([`suite`]) runs its files one after the other. A file ([`mod@file`]) has its own states, variables and
//! providers; its runs ([`run`]) wait for those that they depend on ([`order`]), and otherwise may run concurrently. A
//! run plans, applies if its command is apply, compares failures with the expected ones ([`expected`]) and evaluates
//! its assertions ([`assertions`]). At the end of the file, its objects are destroyed ([`teardown`]). Mocks are
//! providers ([`mock`], [`generate`]) that look like real ones to the engine. [`coverage`] records the parts of a
//! module that the runs have reached. A [`View`] gets [`Event`]s of everything that happens.
//!
//! The engine plans and applies in process: no file is written, and the schema of a provider is requested once.
//!
//! Where to begin: [`suite::Suite`], then [`run`].

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
