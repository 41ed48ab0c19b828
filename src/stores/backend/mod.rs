//! Backends: the configured block, the settings of `init -backend-config`, and the record of both by the last `init`.
//!
//! `init` records the backend in `.terraform/terraform.tfstate`, in Terraform's format. From then on the record decides,
//! since it also has the settings of the command line; after a change of the block, `init` must be run first, which
//! offers to migrate the state (`migrate`). A backend `local` in a directory that was never initialized needs no record:
//! the block has everything.
//!
//! The backend `local` is here ([`local`]); every other one is a state store, a plugin ([`store`]). A configured one of
//! either is a [`StateBackend`]. [`current`](current()) and its neighbours return it for a command, [`configure`] for
//! `init`.

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
