//! Objects that expressions refer to.

use std::fmt;
use std::sync::Arc;

use crate::{Action, ActionInstance, InstanceKey, Resource, ResourceInstance};

/// The object that a reference names, relative to its module.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Referenceable {
    /// `var.NAME`.
    Variable(Arc<str>),
    /// `local.NAME`.
    Local(Arc<str>),
    /// `TYPE.NAME`, `data.TYPE.NAME`, `ephemeral.TYPE.NAME`: a resource with all its instances.
    Resource(Resource),
    /// A resource with a known instance key.
    ResourceInstance(ResourceInstance),
    /// `module.NAME`: all its instances.
    Module(Arc<str>),
    /// `module.NAME[KEY]`.
    ModuleInstance(Arc<str>, InstanceKey),
    /// `module.NAME.OUTPUT` or `module.NAME[KEY].OUTPUT`.
    ModuleOutput(Arc<str>, InstanceKey, Arc<str>),
    /// `count.index`, the only attribute of `count`.
    Count(Arc<str>),
    /// `each.key` or `each.value`.
    Each(Arc<str>),
    /// `path.module`, `path.root`, `path.cwd`.
    Path(Arc<str>),
    /// `terraform.workspace`, `terraform.applying`.
    Terraform(Arc<str>),
    /// `self`.
    SelfRef,
    /// `caller`: the resource instance that triggers an action.
    Caller,
    /// `action.TYPE.NAME`: only in the triggers of resources.
    Action(Action),
    /// An action with a known instance key.
    ActionInstance(ActionInstance),
    /// `check.NAME`; only in results, never in expressions.
    Check(Arc<str>),
    /// `output.NAME`; only in results, never in expressions.
    Output(Arc<str>),
}

impl fmt::Display for Referenceable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Referenceable::Variable(n) => write!(f, "var.{n}"),
            Referenceable::Local(n) => write!(f, "local.{n}"),
            Referenceable::Resource(r) => r.fmt(f),
            Referenceable::ResourceInstance(r) => r.fmt(f),
            Referenceable::Module(n) => write!(f, "module.{n}"),
            Referenceable::ModuleInstance(n, k) => write!(f, "module.{n}{k}"),
            Referenceable::ModuleOutput(n, k, o) => write!(f, "module.{n}{k}.{o}"),
            Referenceable::Count(n) => write!(f, "count.{n}"),
            Referenceable::Each(n) => write!(f, "each.{n}"),
            Referenceable::Path(n) => write!(f, "path.{n}"),
            Referenceable::Terraform(n) => write!(f, "terraform.{n}"),
            Referenceable::SelfRef => f.write_str("self"),
            Referenceable::Caller => f.write_str("caller"),
            Referenceable::Action(a) => a.fmt(f),
            Referenceable::ActionInstance(a) => a.fmt(f),
            Referenceable::Check(n) => write!(f, "check.{n}"),
            Referenceable::Output(n) => write!(f, "output.{n}"),
        }
    }
}
