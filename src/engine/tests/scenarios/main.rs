//! Scenarios: configurations that are planned and applied with an in-memory provider, and the expected results.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/mod.rs"]
mod support;

mod answers;
mod claims;
mod conditions;
mod data;
mod deprecations;
mod destroying;
mod determinism;
mod ephemeral;
mod failing;
mod functions;
mod identities;
mod imports_in_modules;
mod in_flight;
mod invalid;
mod kept;
mod lanes;
mod mistakes;
mod moved;
mod options;
mod order;
mod outputs;
mod partial_refresh;
mod provider_instances;
mod providers;
mod provisioners;
mod queries;
mod refresh;
mod relevant;
mod removed;
mod repetition;
mod replace;
mod stopping;
mod unmatched;
