//! Calls of a provider, independent of the version of the protocol: names and encoded values in, encoded values and diagnostics
//! out.
//!
//! Values are decoded and encoded with the compiled schemas here, and plans are put together. The server and the test harness drive
//! plugins through this module; it knows neither.

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
