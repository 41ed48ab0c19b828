//! Backends: the configured block, the settings of `init -backend-config`, and the record of both by the last `init`.
//!
//! `init` records the backend in `.terraform/terraform.tfstate`, in Terraform's format. From then on the record is used, because it also
//! has the settings of the command line. After a change of the block, `init` must be run again, and offers to migrate the state
//! (`migrate`). A backend `local` in a directory that was never initialized needs no record, because its block has all settings.
//!
//! The backend `local` is implemented here ([`local`]). Every other backend is a state store, which is a plugin ([`store`]). A configured
//! backend of either kind is a [`StateBackend`]. Commands get it from [`current`](current()) and related functions, `init` from
//! [`configure`].

mod additions;
pub mod configure;
mod current;
pub mod history;
mod kind;
pub mod local;
mod location;
pub mod migrate;
mod objects;
mod owner;
mod process;
pub mod record;
pub mod remote_state;
pub mod select;
pub mod settings;
mod snapshots;
pub mod store;
mod third_party;

pub use current::{as_recorded, current, of_saved, selected};
pub use kind::check_type;
pub use local::Local;
pub use location::{Source, StateBackend, StateLocation};
pub use record::CLOUD;
pub use snapshots::Snapshots;
