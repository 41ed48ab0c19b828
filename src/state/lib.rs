//! The state, in memory and on disk.
//!
//! [`State`] is what every command works on: the outputs, and the objects of every resource instance. Objects are shared and never change
//! in place, and copies of a state share the maps that hold them until one of the copies is changed ([`SharedMap`]). The attributes of an
//! object stay JSON text until they are decoded with a schema ([`Attributes::decode`]), so a state can be read, changed and written without
//! any provider.
//!
//! On disk there is one format, version 4 of Terraform's ([`document`]), byte for byte as Terraform writes it; older versions are converted
//! when they are read ([`upgrade`]). A [`SnapshotStore`] stores the snapshots of a state. [`store`] does this in local files: it detects
//! whether a snapshot is new, sets its serial, writes the backup, and writes in such a way that neither a crash nor a full disk loses the
//! old snapshot. [`journal`] records the results of a run between two snapshots. [`codec`] encrypts all of these if encryption is
//! configured. [`lock`] locks the file in the same way as Terraform, so that the two programs exclude each other.
//!
//! Where to begin: [`model`], then [`store`]. Reading never changes a file, and a file that cannot be read is left as it is.

pub mod attributes;
mod beside;
mod cipher;
pub mod claims;
pub mod codec;
pub mod document;
pub mod error;
mod held;
pub mod journal;
pub mod lock;
pub mod model;
mod moving;
pub mod pending;
mod shared;
pub mod snapshots;
mod state_file;
pub mod store;
mod syntax;
pub mod upgrade;
mod v4;

pub use attributes::{Attributes, RawJson};
pub use claims::{Claims, ScopedResource};
pub use codec::{Cipher, CipherError, Codec};
pub use error::{ContentError, FormatError, StateError};
pub use held::{LockHeld, StoreLocked};
pub use lock::FileLock;
pub use locks::LockInfo;
pub use model::{
    CheckResult, CheckStatus, CheckedObject, DeposedKey, Identity, InstanceState, Object, ObjectStatus, OutputValue,
    ResourceState, State,
};
pub use moving::Relocation;
pub use pending::Recovery;
pub use shared::SharedMap;
pub use snapshots::{SharedStore, SnapshotStore, Written};
pub use store::LocalStore;
