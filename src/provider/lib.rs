//! Contract between the engine and its plugins: traits and data, without I/O.
//!
//! The engine calls [`Provider`], its [`Actions`] and [`Provisioner`] with values, schemas and diagnostics, independent
//! of the plugin protocol. [`ProviderSource`] starts plugins. [`Schemas`] has the schemas of all providers of one
//! operation; a [`SchemaMap`] converts those of a type when they are first used. [`state_store::StateStore`] is a store
//! of states in another process. Implementations over gRPC are in `plugins`; tests implement the traits directly.
//!
//! Start with [`contract`].

pub mod action;
mod answer;
pub mod contract;
mod schema_map;
mod schemas;
mod source;
pub mod state_store;

pub use action::Actions;
pub use answer::{Answer, Output, PluginDiagnostic};
pub use contract::{
    Applied, ApplyRequest, Capabilities, FunctionError, FunctionSchema, ImportTarget, Imported, ListRequest,
    ListSchema, Listed, MoveRequest, ObjectRead, Opened, ParameterSchema, PlanRequest, PlannedChange, Provider,
    ProviderSchema, Provisioner, RawState, ReadRequest, invalid_schema,
};
pub use schema_map::{ConvertError, SchemaMap};
pub use schemas::Schemas;
pub use source::{NoProviders, ProviderSource, StartError};
pub use state_store::StateStore;
