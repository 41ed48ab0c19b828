//! Statements and their endpoints.

use std::fmt;
use std::sync::Arc;

use addrs::{AbsProviderConfig, AbsResource, AbsResourceInstance, InstanceKey, Module, ModuleInstance, Resource};
use config::{Config, MoveSubject, Moved};
use syntax::Range;

/// Kind of address that a statement moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MoveKind {
    /// All instances of a module call.
    Call,
    /// One instance of a module call.
    ModuleInstance,
    /// A resource with all its instances.
    Resource,
    /// One instance of a resource.
    ResourceInstance,
}

impl MoveKind {
    pub(super) fn is_module(self) -> bool {
        matches!(self, MoveKind::Call | MoveKind::ModuleInstance)
    }

    /// Returns the noun for the kind in messages, in a long and a short form.
    pub(super) fn noun(self) -> (&'static str, &'static str) {
        match self {
            MoveKind::Call => ("module call", "call"),
            MoveKind::ModuleInstance => ("module instance", "instance"),
            MoveKind::Resource => ("resource", "resource"),
            MoveKind::ResourceInstance => ("resource instance", "instance"),
        }
    }
}

/// A step of a module path. Without a key it matches all instances.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Step {
    pub(super) name: Arc<str>,
    pub(super) key: Option<InstanceKey>,
}

impl Step {
    pub(super) fn matches(&self, step: &addrs::ModuleStep) -> bool {
        self.name == step.name && self.key.as_ref().is_none_or(|key| *key == step.key)
    }

    /// Returns true if two steps can match the same module instance.
    pub(super) fn meets(&self, other: &Step) -> bool {
        self.name == other.name
            && match (&self.key, &other.key) {
                (Some(a), Some(b)) => a == b,
                _ => true,
            }
    }
}

/// One side of a statement (`from` or `to`): a pattern of addresses.
#[derive(Clone, Debug)]
pub(super) struct Endpoint {
    /// Path to the module that contains the resource, or to the module that is moved. It begins with the path of the declaring module,
    /// without keys, so that it matches all its instances.
    pub(super) steps: Vec<Step>,
    /// Number of steps that lead to the declaring module.
    pub(super) declared: usize,
    /// The resource in the address; `None` if a module is moved.
    pub(super) resource: Option<Resource>,
    /// The key of the resource instance, if a single instance is moved.
    pub(super) key: Option<InstanceKey>,
}

/// An address that an endpoint matches.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Subject {
    Call(ModuleInstance, Arc<str>),
    ModuleInstance(ModuleInstance),
    Resource(AbsResource),
    ResourceInstance(AbsResourceInstance),
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Call(module, name) if module.is_root() => write!(f, "module.{name}"),
            Subject::Call(module, name) => write!(f, "{module}.module.{name}"),
            Subject::ModuleInstance(module) => module.fmt(f),
            Subject::Resource(resource) => resource.fmt(f),
            Subject::ResourceInstance(instance) => instance.fmt(f),
        }
    }
}

impl Endpoint {
    fn new(declared: &Module, subject: &MoveSubject, kind: MoveKind) -> Endpoint {
        // These steps have no keys, because a statement applies in every instance of the declaring module.
        let mut steps: Vec<Step> = declared
            .0
            .iter()
            .map(|name| Step {
                name: name.clone(),
                key: None,
            })
            .collect();
        let (module, resource, key) = match subject {
            MoveSubject::Module(module) => (module, None, None),
            MoveSubject::Resource(r) => (&r.module, Some(r.resource.clone()), Some(InstanceKey::None)),
            MoveSubject::Instance(i) => (
                &i.module,
                Some(i.resource.resource.clone()),
                Some(i.resource.key.clone()),
            ),
        };
        steps.extend(module.0.iter().map(|step| Step {
            name: step.name.clone(),
            key: Some(step.key.clone()),
        }));
        // A module call without a key represents all its instances.
        if kind == MoveKind::Call
            && let Some(last) = steps.last_mut()
        {
            last.key = None;
        }
        Endpoint {
            declared: declared.0.len(),
            steps,
            resource,
            key: key.filter(|_| kind == MoveKind::ResourceInstance),
        }
    }

    /// Returns the module path of the endpoint, without keys.
    pub(super) fn module(&self) -> Module {
        Module(self.steps.iter().map(|s| s.name.clone()).collect())
    }

    /// Returns the path of the declaring module.
    pub(super) fn declaring(&self) -> Module {
        Module(self.steps[..self.declared].iter().map(|s| s.name.clone()).collect())
    }

    /// Returns true if the steps match a module instance.
    pub(super) fn leads_to(&self, module: &ModuleInstance) -> bool {
        self.steps.len() == module.0.len() && self.steps.iter().zip(module.0.iter()).all(|(s, m)| s.matches(m))
    }

    /// Returns true if the endpoint is the resource or an instance of it.
    pub(super) fn selects_resource(&self, resource: &AbsResource) -> bool {
        self.resource.as_ref() == Some(&resource.resource) && self.leads_to(&resource.module)
    }

    /// Returns the address that the endpoint has in one instance of the declaring module.
    pub(super) fn within(&self, module: &ModuleInstance, kind: MoveKind) -> Subject {
        let rest = self.steps.iter().skip(self.declared).map(|step| addrs::ModuleStep {
            name: step.name.clone(),
            key: step.key.clone().unwrap_or_default(),
        });
        let at = ModuleInstance(module.0.iter().cloned().chain(rest).collect());
        match (kind, &self.resource) {
            (MoveKind::Resource, Some(resource)) => Subject::Resource(resource.absolute(&at)),
            (MoveKind::ResourceInstance, Some(resource)) => {
                Subject::ResourceInstance(resource.absolute(&at).instance(self.key.clone().unwrap_or_default()))
            }
            (MoveKind::Call, _) => match at.parent() {
                Some((parent, step)) => Subject::Call(parent, step.name.clone()),
                None => Subject::ModuleInstance(at),
            },
            _ => Subject::ModuleInstance(at),
        }
    }

    /// Returns the new address of a module instance inside the source of a move, whose path has `length` steps. Keys that the endpoint
    /// leaves open stay the same: those of the declaring module, and that of a moved module call.
    pub(super) fn destination(&self, from: &ModuleInstance, length: usize) -> ModuleInstance {
        let last = self.steps.len().saturating_sub(1);
        let steps = self.steps.iter().enumerate().map(|(i, step)| addrs::ModuleStep {
            name: step.name.clone(),
            key: match &step.key {
                Some(key) => key.clone(),
                None if i < self.declared => from.0.get(i).map(|s| s.key.clone()).unwrap_or_default(),
                None if i == last => from
                    .0
                    .get(length.saturating_sub(1))
                    .map(|s| s.key.clone())
                    .unwrap_or_default(),
                None => InstanceKey::None,
            },
        });
        ModuleInstance(steps.chain(from.0.iter().skip(length).cloned()).collect())
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, step) in self.steps.iter().enumerate() {
            write!(f, "{}module.{}", if i > 0 { "." } else { "" }, step.name)?;
            match &step.key {
                Some(key) => key.fmt(f)?,
                None => f.write_str("[*]")?,
            }
        }
        if let Some(resource) = &self.resource {
            write!(f, "{}{resource}", if self.steps.is_empty() { "" } else { "." })?;
            match &self.key {
                Some(key) => key.fmt(f)?,
                None => f.write_str("[*]")?,
            }
        }
        Ok(())
    }
}

/// A move statement: objects at addresses that match `from` move to `to`.
#[derive(Clone, Debug)]
pub(in crate::planner) struct Statement {
    pub(super) kind: MoveKind,
    pub(super) from: Endpoint,
    pub(super) to: Endpoint,
    /// Range of the `moved` block, or of the argument or block that implies the move.
    pub(super) range: Range,
    /// Provider configuration of the target resource, if the configuration has that resource.
    pub(super) provider: Option<AbsProviderConfig>,
}

impl Statement {
    /// Creates the statement of a `moved` block.
    pub(super) fn of_block(config: &Config, module: &Module, moved: &Moved) -> Statement {
        let (from, to) = (&moved.from.subject, &moved.to.subject);
        let keyed = |subject: &MoveSubject| match subject {
            // Keys of outer modules select among their instances. Only a key at the last step makes this a single module instance.
            MoveSubject::Module(m) => m.0.last().is_some_and(|step| !step.key.is_none()),
            MoveSubject::Resource(_) => false,
            MoveSubject::Instance(_) => true,
        };
        let kind = match (from, keyed(from) || keyed(to)) {
            (MoveSubject::Module(_), false) => MoveKind::Call,
            (MoveSubject::Module(_), true) => MoveKind::ModuleInstance,
            (_, false) => MoveKind::Resource,
            (_, true) => MoveKind::ResourceInstance,
        };
        Statement::new(
            config,
            kind,
            Endpoint::new(module, from, kind),
            Endpoint::new(module, to, kind),
            moved.range.clone(),
        )
    }

    /// Creates a statement about one instance of a resource.
    pub(super) fn of_instance(
        config: &Config,
        from: AbsResourceInstance,
        to: AbsResourceInstance,
        range: Range,
    ) -> Statement {
        // An absolute address, as in a `moved` block of the root module.
        let side = |i| Endpoint::new(&Module::root(), &MoveSubject::Instance(i), MoveKind::ResourceInstance);
        Statement::new(config, MoveKind::ResourceInstance, side(from), side(to), range)
    }

    /// Creates a statement about one instance of a module call.
    pub(super) fn of_module_instance(
        config: &Config,
        from: ModuleInstance,
        to: ModuleInstance,
        range: Range,
    ) -> Statement {
        let side = |m| Endpoint::new(&Module::root(), &MoveSubject::Module(m), MoveKind::ModuleInstance);
        Statement::new(config, MoveKind::ModuleInstance, side(from), side(to), range)
    }

    fn new(config: &Config, kind: MoveKind, from: Endpoint, to: Endpoint, range: Range) -> Statement {
        let resource = to.resource.as_ref().map(|r| r.in_module(&to.module()));
        let provider = resource
            .filter(|r| config.resource(r).is_some())
            .map(|r| config.provider_for(&r));
        Statement {
            kind,
            from,
            to,
            range,
            provider,
        }
    }

    /// Returns true if the statement only changes the instance key of a module.
    pub(super) fn only_changes_key(&self) -> bool {
        let (from, to) = (&self.from.steps, &self.to.steps);
        self.kind.is_module()
            && from.len() == to.len()
            && match (from.split_last(), to.split_last()) {
                (Some((a, before_a)), Some((b, before_b))) => a.name == b.name && before_a == before_b,
                _ => false,
            }
    }
}
