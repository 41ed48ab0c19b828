//! Typed blocks of a configuration, with one file for each kind.

pub mod action;
pub mod check;
pub mod config;
pub mod module;
pub mod module_call;
pub mod moved;
pub mod provider;
pub mod provider_ref;
pub mod resource;
pub mod settings;
pub mod test_file;
pub mod variable;
pub mod visible;

pub use action::{Action, ActionEvent, ActionFailure, ActionKey, ActionRef, ActionTrigger};
pub use check::{Check, CheckRule};
pub(crate) use config::VisibleProviders;
pub use config::{Config, ModuleNode, ProviderSource, Requirement, RequirementOrigin};
pub use lang::refs::Reference;
pub use module::{Losses, Module, ModuleFile};
pub use module_call::{CallAddress, LiteralAddress, ModuleCall, PassedProvider};
pub use moved::{Import, ImportBy, MoveEndpoint, MoveSubject, Moved, Removed};
pub use provider::{ProviderConfig, ProviderMeta, RequiredProvider};
pub use provider_ref::ProviderRef;
pub use resource::{
    Connection, IgnoreChanges, Lifecycle, ListArguments, OnFailure, Provisioner, ProvisionerWhen, Resource,
};
pub use settings::{Backend, Cloud, Encryption, StoreProvider};
pub use test_file::{
    Mock, MockProvider, Override, OverrideKind, RunModule, RunOptions, TestFile, TestProvider, TestRun,
};
pub use variable::{DeprecationNotice, Local, Output, Variable};
pub use visible::PassedKey;
pub(crate) use visible::{Instance, Visible};
