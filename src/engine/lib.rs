//! The engine: evaluate, plan, apply.
//!
//! - *Evaluate* (`eval`): expands modules and resources to instances and evaluates expressions. It makes no planning decisions.
//! - *Plan* compares the configuration with the prior state, calls providers, and decides every action with its reason, as
//!   data: a [`plan::Plan`]. Its execution graph contains all ordering.
//! - *Apply* carries that graph out. It evaluates the configuration of each changed object again, and requests another plan from the
//!   provider only if that configuration was not wholly known or the object is replaced.
//!
//! The engine does no network, file or terminal I/O. It takes a configuration, a state, a source of providers and options;
//! it returns a plan or a state with diagnostics, and reports progress as a stream of typed [`events::Event`]s.
//!
//! Where to begin: [`plan`] (the data), `blocks` (the graph of the configuration's blocks), then `planner` and `apply`.

mod action;
mod actions;
pub mod apply;
pub mod assertions;
mod block_visits;
mod blocks;
pub mod change_kind;
pub mod claims;
mod connection;
pub mod console;
mod context;
mod data_reads;
mod dependency_evaluation;
mod ephemeral;
mod eval;
pub mod events;
pub mod execgraph;
pub mod functions;
pub mod graph;
pub mod identity;
mod import_id;
pub mod inputs;
pub mod instance;
pub mod invocation;
pub mod lanes;
pub mod last_reads;
pub mod objchange;
mod object_config;
mod pace;
mod paced;
pub mod plan;
pub mod planner;
mod provider_meta;
mod provider_opening;
mod provider_problems;
mod providers;
pub mod query;
mod removals;
pub mod requirements;
pub mod results;
mod state_objects;
pub mod stop;
mod stored;
pub mod validate;
mod walk;
