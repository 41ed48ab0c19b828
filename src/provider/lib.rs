//! The contract between the engine and its plugins: traits and data, no input or output.
//!
//! [`Provider`], its [`Actions`] and [`Provisioner`] are what the engine calls, in values, schemas and diagnostics, whatever protocol the
//! plugin speaks. [`ProviderSource`] starts plugins. [`Schemas`] has the schemas of all providers of one
//! operation; a [`SchemaMap`] converts those of a type when they are first used. [`state_store::StateStore`] is where states are kept when that is not this process. Implementations over gRPC are in `plugins`; tests implement the traits directly.
//!
//! Where to begin: [`contract`].

#![allow(missing_docs, reason = "an internal crate: names and types say the rest")]

pub mod action;
pub mod contract;
mod schema_map;
mod schemas;
mod source;
pub mod state_store;

pub use action::Actions;
pub use contract::{
    Answer, Applied, ApplyRequest, Capabilities, FunctionError, FunctionSchema, ImportTarget, Imported, ListRequest,
    ListSchema, Listed, MoveRequest, ObjectRead, Opened, Output, ParameterSchema, PlanRequest, PlannedChange,
    PluginDiagnostic, Provider, ProviderSchema, Provisioner, RawState, ReadRequest, invalid_schema,
};
pub use schema_map::SchemaMap;
pub use schemas::Schemas;
pub use source::ProviderSource;
pub use state_store::StateStore;
