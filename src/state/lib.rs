//! What exists: the state, in memory and on disk.
//!
//! [`State`] is what every command works on: outputs, and for every instance of a resource the object that stands for
//! it. Objects are shared and never change in place, so a copy of a state costs a pointer an instance. The attributes of
//! an object stay as the JSON text they were written in until somebody who knows the schema asks for the value
//! ([`Attributes::decode`]): a state can be read, moved about and written again without any provider.
//!
//! On disk there is one format, version 4 of Terraform's ([`document`]), byte for byte as Terraform writes it; the older
//! versions are turned into it when read ([`upgrade`]). [`store`] keeps a state in a local file: it says when a
//! snapshot is new, numbers it, keeps the backup, and writes so that neither a crash nor a full disk loses what was
//! there. [`lock`] keeps others out meanwhile, in the way that Terraform does, so that the two exclude each other.
//!
//! Where to begin: [`model`], then [`store`]. This room uses `addrs` and `cty`; it knows nothing of schemas, of
//! configuration or of terminals. Reading never changes a file, and a file that cannot be read is left as it is.

pub mod attributes;
pub mod document;
pub mod error;
pub mod lock;
pub mod model;
mod moving;
pub mod pending;
pub mod store;
pub mod upgrade;
mod v4;

pub use attributes::{Attributes, RawJson};
pub use error::{FormatError, StateError};
pub use lock::{FileLock, LockHeld, LockInfo};
pub use model::{
    CheckResult, CheckStatus, CheckedObject, DeposedKey, Identity, InstanceState, Object, ObjectStatus, OutputValue,
    ResourceState, State,
};
pub use pending::Recovery;
pub use store::{LocalStore, Written};
