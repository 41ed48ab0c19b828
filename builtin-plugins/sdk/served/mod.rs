//! Calls of a provider, independent of the protocol version. Arguments are names and encoded values; results are encoded values and
//! diagnostics.
//!
//! This module decodes and encodes values with the compiled schemas, and computes plans. Both the server and the test harness call plugins
//! through it; it depends on neither.

mod actions;
mod data;
mod list;
mod managed;
mod named;
mod problems;
mod provider;
mod provisioner;
mod states;
mod store;

pub use self::data::OpenedEphemeral;
pub use self::list::{ListCall, ListEvent};
pub use self::managed::{Changed, MovedObject, ObjectMetadata};
pub use self::provider::{Part, ResourceDescription, ServedProvider};
pub use self::provisioner::ServedProvisioner;
pub use crate::identity::{declared_identity_type, identity_of, identity_type};
pub use crate::waiting::report_waiting_with;
