//! Addresses of providers, modules, resources and instances, and the references of expressions.
//!
//! Addresses are immutable values. Each has one textual form, which commands and the state file use. A *configuration* address ([`Module`],
//! [`ConfigResource`]) has no instance keys; an *absolute* one ([`ModuleInstance`], [`AbsResource`], [`AbsResourceInstance`]) has a key at
//! every step that needs one. [`parse`] reads addresses from the command line and from state files.
//!
//! Start with [`module`] and [`resource`]; [`provider`] has source addresses and provider configurations, and [`mod@reference`] has the
//! objects that expressions can refer to.

pub mod action;
pub mod module;
mod names;
pub mod parse;
pub mod platform;
pub mod program;
pub mod provider;
pub mod reference;
pub mod resource;
pub mod text;

pub use action::{AbsActionInstance, Action, ActionInstance, ConfigAction};
pub use module::{InstanceKey, Module, ModuleInstance, ModuleStep};
pub use names::ParseError;
pub use platform::Platform;
pub use program::Program;
pub use provider::{AbsProviderConfig, LocalProviderConfig, Provider, ProviderConfigParts};
pub use reference::Referenceable;
pub use resource::{AbsResource, AbsResourceInstance, ConfigResource, Mode, Resource, ResourceInstance, Target};
