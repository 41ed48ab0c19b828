//! The host side of plugins: find, choose, launch, talk.
//!
//! Nothing further in knows a protocol number: a provider is a [`Provider`], a provisioner is a [`Provisioner`], and both
//! speak in values, schemas and diagnostics. [`Registry`](registry::Registry) says which plugin stands for which provider
//! address and starts it; the table of built-in plugins is handed in from above.
//!
//! Where to begin: [`provider`] (what the engine asks of a provider).

pub mod provider;

pub use provider::{Provider, Provisioner};
