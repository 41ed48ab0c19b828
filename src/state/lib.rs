//! The state, in memory and on disk.
//!
//! [`State`] is what every command works on: the outputs, and the objects of every resource instance. Objects are shared and never change
//! in place, and copies of a state share the maps that hold them until one of the copies is changed ([`SharedMap`]). The attributes of an
//! object stay JSON text until they are decoded with a schema ([`Attributes::decode`]), so a state can be read, changed and written without
//! any provider.
//!
//! On disk there is one format, version 4 of Terraform's ([`document`]), byte for byte as Terraform writes it; older versions are turned
//! into it when read ([`upgrade`]). The snapshots of a state are kept by a [`SnapshotStore`]. [`store`] is the one of local files: it
//! detects whether a snapshot is new, sets its serial, writes the backup, and writes so that neither a crash nor a full disk loses the old
//! snapshot. [`journal`] keeps the results of a run between two snapshots. [`codec`] encrypts all of these where encryption is configured, and
//! [`sealed`] the parts of a state. [`lock`] locks the file as Terraform does, so that the two exclude each other.
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
pub mod sealed;
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
