//! Evaluation of expressions, static references and built-in functions.
//!
//! This crate answers three questions about a piece of configuration, independently of planning and applying: the
//! objects that it refers to ([`refs`]), its value when those objects have given values ([`eval`], in a
//! [`scope::Scope`]), and the object that a block body forms under a provider's schema ([`body`]).
//!
//! Where to begin: [`scope`] (the evaluation environment), then [`eval`]. [`checks`] applies schemas to references;
//! [`typeexpr`] reads type constraints; [`render`] prints values for people. [`functions`] has a file for each group of
//! functions.
//!
//! The recordings of `tests/conformance` specify the behaviour of expressions: values and error summaries of
//! Terraform's console, and the intended deviations with their reasons.

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
