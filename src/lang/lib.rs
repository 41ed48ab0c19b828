//! From tree to value: evaluation, static references and built-in functions.
//!
//! The room answers three questions about a piece of configuration without knowing what planning or applying is: which
//! objects does it refer to ([`refs`]), what value does it have when those have these values ([`eval`], given a
//! [`scope::Scope`]), and what object does a block body form under a provider's schema ([`body`]).
//!
//! Where to begin: [`scope`] (what evaluation asks of its surroundings), then [`eval`]. [`checks`] applies
//! schemas to references; [`typeexpr`] reads type constraints; [`render`] prints values for people. The
//! functions are one file a group under [`functions`].
//!
//! What is promised of expressions is what `tests/conformance` at the top of the project records: the answers of the
//! console of the release we answer as, errors included, with the deviations that are meant and why.

pub mod body;
pub mod checks;
pub mod eval;
pub mod functions;
pub mod refs;
pub mod render;
pub mod scope;
pub mod typeexpr;
