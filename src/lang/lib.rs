//! From tree to value: evaluation, static references and built-in functions.
//!
//! Three questions about a piece of configuration are answered here, independent of planning and applying: which
//! objects does it refer to ([`refs`]), what value does it have when those have these values ([`eval`], given a
//! [`scope::Scope`]), and what object does a block body form under a provider's schema ([`body`]).
//!
//! Where to begin: [`scope`] (the evaluation environment), then [`eval`]. [`checks`] applies schemas to references;
//! [`typeexpr`] reads type constraints; [`render`] prints values for people. The functions are one file a group under
//! [`functions`].
//!
//! The behaviour of expressions is specified by the recordings of `tests/conformance`: values and error summaries of the
//! console of Terraform, and the intended deviations with their reasons.

#![allow(missing_docs, reason = "an internal crate: names and types say the rest")]

pub mod body;
mod call_error;
pub mod checks;
pub mod eval;
pub mod functions;
pub mod provider_function;
pub mod refs;
pub mod render;
pub mod resolve;
pub mod scope;
pub mod typeexpr;
