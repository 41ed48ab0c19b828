//! The engine: evaluate, plan, apply.
//!
//! - *Evaluate* ([`eval`]) knows the language and nothing of change: it turns module instances and blocks into desired
//!   resource instances and answers "what is this value now".
//! - *Plan* compares desired with prior, asks providers, and decides every action with its reason, as data: a
//!   [`plan::Plan`]. Then it lays down one execution graph in which all ordering stands.
//! - *Apply* carries that graph out, evaluating again only what was unknown.
//!
//! The engine knows nothing of gRPC, files, terminals or colours. It takes a configuration, a state, a source of
//! providers and options; it gives back a plan or a state with diagnostics, and tells what it does as a stream of typed
//! [`events::Event`]s.
//!
//! Where to begin: [`plan`] (the words), `blocks` (the graph of the configuration's blocks), then `planner` and `apply`.

pub mod apply;
mod blocks;
mod connection;
pub mod console;
mod ephemeral;
pub mod eval;
pub mod events;
pub mod execgraph;
pub mod functions;
pub mod inputs;
pub mod instance;
pub mod objchange;
pub mod opening;
pub mod plan;
pub mod planner;
mod priming;
mod providers;
mod removals;
pub mod results;
pub mod stop;
pub mod validate;
mod walk;
