//! Sources of values: the objects and data sources from which the changed values of a change come.
//!
//! References are followed through variables, local values, outputs and data sources, and end at managed resources, whose values are stored
//! in their objects. Nothing is evaluated. If the instance key of a reference is constant, or is `count.index` or `each.key`, one instance
//! is a source; otherwise all instances of the resource are.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use addrs::{
    AbsResource, AbsResourceInstance, ConfigResource, InstanceKey, Mode as ResourceMode, ModuleInstance, Referenceable,
    Resource,
};
use config::{Config, ModuleNode};
use lang::refs::{evaluated_keys, reference, references_in_expr};
use syntax::ast::{Body, Expr};

use crate::plan::{Action, Reason, ResourceChange};

/// Objects and data sources from which values come.
#[derive(Clone, Debug, Default)]
pub(super) struct Sources {
    pub(super) instances: HashSet<AbsResourceInstance>,
    /// Resources that are sources with all their instances in one module instance.
    pub(super) resources: HashSet<AbsResource>,
    /// Resources that are sources with all their instances in all module instances.
    pub(super) everywhere: HashSet<ConfigResource>,
}

impl Sources {
    pub(super) fn contains(&self, address: &AbsResourceInstance) -> bool {
        self.instances.contains(address)
            || (!self.resources.is_empty() && self.resources.contains(&address.containing_resource()))
            || (!self.everywhere.is_empty() && self.everywhere.contains(&address.config()))
    }
}

/// Block that contains an expression. It determines `count.index` and `each.key` in the expression.
#[derive(Clone)]
enum Within {
    Resource(Resource, InstanceKey),
    /// A module call, by its name, with the key of the called instance.
    Call(Arc<str>, InstanceKey),
    Other,
}

impl Within {
    fn key(&self) -> Option<&InstanceKey> {
        match self {
            Within::Resource(_, key) | Within::Call(_, key) => Some(key),
            Within::Other => None,
        }
    }
}

/// An expression whose references have not been followed yet.
struct Pending<'s> {
    module: ModuleInstance,
    /// True if the instance of the module is unknown, so that all its instances are meant.
    any_instance: bool,
    within: Within,
    expr: &'s Expr,
}

/// A search for the sources of changed values.
pub(super) struct Search<'s> {
    config: &'s Config,
    pub(super) found: Sources,
    pending: Vec<Pending<'s>>,
    seen: HashSet<String>,
}

impl<'s> Search<'s> {
    pub(super) fn new(config: &'s Config) -> Search<'s> {
        Search {
            config,
            found: Sources::default(),
            pending: Vec::new(),
            seen: HashSet::new(),
        }
    }

    /// Adds the sources of a change: all sources of the arguments that change, and the data sources among the sources of the other
    /// arguments.
    pub(super) fn change(&mut self, change: &ResourceChange) {
        let address = &change.address;
        let config = self.config;
        let Some(block) = config.resource(&address.config()) else {
            return;
        };
        let within = Within::Resource(address.resource.resource.clone(), address.resource.key.clone());
        let repetition = || block.count.iter().chain(&block.for_each);
        let add = |search: &mut Search<'s>, expr: &'s Expr, only_data| {
            if only_data && !search.may_lead_to_data(&address.module, &within, expr) {
                return;
            }
            search.push(&address.module, false, &within, expr);
        };
        match change.action {
            Action::Update => {
                let changed = |name: &str| change.before.get(name) != change.after.get(name);
                for (name, expr) in expressions(&block.body) {
                    add(self, expr, !changed(name));
                }
            }
            // The instance is destroyed because of the value of `count` or `for_each`, so the sources of that value count.
            Action::Delete
                if matches!(
                    change.reason,
                    Reason::DeleteBecauseCountIndex | Reason::DeleteBecauseEachKey
                ) =>
            {
                repetition().for_each(|expr| add(self, expr, false));
            }
            Action::Delete | Action::Forget | Action::NoOp | Action::Read => {}
            // A new object has no unchanged arguments, so all are searched.
            _ => {
                expressions(&block.body).for_each(|(_, expr)| add(self, expr, false));
                repetition().for_each(|expr| add(self, expr, false));
            }
        }
        self.run();
    }

    /// Returns true if a data source is among the sources of an expression.
    fn may_lead_to_data(&self, module: &ModuleInstance, within: &Within, expr: &'s Expr) -> bool {
        let mut apart = Search::new(self.config);
        apart.push(module, false, within, expr);
        apart.run();
        let is_data = |resource: &Resource| resource.mode == ResourceMode::Data;
        let Sources {
            instances,
            resources,
            everywhere,
        } = &apart.found;
        instances.iter().any(|i| is_data(&i.resource.resource))
            || resources.iter().any(|r| is_data(&r.resource))
            || everywhere.iter().any(|r| is_data(&r.resource))
    }

    fn push(&mut self, module: &ModuleInstance, any_instance: bool, within: &Within, expr: &'s Expr) {
        self.pending.push(Pending {
            module: module.clone(),
            any_instance,
            within: within.clone(),
            expr,
        });
    }

    fn run(&mut self) {
        while let Some(pending) = self.pending.pop() {
            self.expression(&pending);
        }
    }

    fn expression(&mut self, at: &Pending<'s>) {
        // References whose instance key is an expression, by their start position. True if the expression is the instance's own key:
        // `count.index` or `each.key`.
        let own_keys: HashMap<u32, bool> = evaluated_keys(at.expr)
            .into_iter()
            .map(|(traversal, key)| (traversal.range.start.byte, is_own_key(key)))
            .collect();
        for reference in references_in_expr(at.expr).0 {
            let key = match own_keys.get(&reference.range.start.byte) {
                Some(true) => at.within.key().cloned(),
                Some(false) | None => None,
            };
            let seen = format!("{} {:?} {key:?} {}", at.module, reference.subject, at.within_text());
            if self.seen.insert(seen) {
                self.follow(at, &reference.subject, key);
            }
        }
    }

    fn follow(&mut self, at: &Pending<'s>, subject: &Referenceable, own_key: Option<InstanceKey>) {
        let config = self.config;
        let Some(node) = config.node(&at.module.module()) else {
            return;
        };
        match subject {
            Referenceable::Resource(resource) => self.resource(at, node, resource, own_key),
            Referenceable::ResourceInstance(i) => self.resource(at, node, &i.resource, Some(i.key.clone())),
            Referenceable::Local(name) => {
                if let Some(local) = node.module.locals.get(name) {
                    self.push(&at.module, at.any_instance, &Within::Other, &local.expr);
                }
            }
            Referenceable::Variable(name) => {
                let Some((parent, step)) = at.module.parent() else {
                    return;
                };
                let call = config.call(&at.module.module());
                if let Some(attribute) = call.and_then(|call| call.inputs.attribute(name)) {
                    let within = match at.any_instance {
                        true => Within::Other,
                        false => Within::Call(step.name.clone(), step.key.clone()),
                    };
                    self.push(&parent, at.any_instance, &within, &attribute.expr);
                }
            }
            Referenceable::ModuleOutput(name, key, output) => {
                self.outputs(at, node, (name, key, own_key), Some(output))
            }
            Referenceable::Module(name) => self.outputs(at, node, (name, &InstanceKey::None, own_key), None),
            Referenceable::ModuleInstance(name, key) => self.outputs(at, node, (name, key, own_key), None),
            Referenceable::Count(_) | Referenceable::Each(_) => {
                let (count, for_each) = match &at.within {
                    Within::Resource(resource, _) => match node.module.resources.get(resource) {
                        Some(block) => (&block.count, &block.for_each),
                        None => return,
                    },
                    Within::Call(name, _) => match node.module.module_calls.get(name) {
                        Some(call) => (&call.count, &call.for_each),
                        None => return,
                    },
                    Within::Other => return,
                };
                for expr in count.iter().chain(for_each) {
                    self.push(&at.module, at.any_instance, &Within::Other, expr);
                }
            }
            _ => {}
        }
    }

    fn resource(&mut self, at: &Pending<'s>, node: &'s ModuleNode, resource: &Resource, key: Option<InstanceKey>) {
        let Some(block) = node.module.resources.get(resource) else {
            return;
        };
        let absolute = resource.absolute(&at.module);
        let single = block.count.is_none() && block.for_each.is_none();
        let key = key.or_else(|| single.then_some(InstanceKey::None));
        match &key {
            _ if at.any_instance => drop(self.found.everywhere.insert(absolute.config())),
            Some(key) => drop(self.found.instances.insert(absolute.instance(key.clone()))),
            None => drop(self.found.resources.insert(absolute.clone())),
        }
        if resource.mode == ResourceMode::Managed {
            return;
        }
        // All arguments of a data source decide its result, so all are searched.
        let within = match key.filter(|_| !at.any_instance) {
            Some(key) => Within::Resource(resource.clone(), key),
            None => Within::Other,
        };
        let repetition = block.count.iter().chain(&block.for_each);
        for expr in expressions(&block.body).map(|(_, expr)| expr).chain(repetition) {
            self.push(&at.module, at.any_instance, &within, expr);
        }
    }

    /// Follows the outputs of a called module, or one of them.
    fn outputs(
        &mut self,
        at: &Pending<'s>,
        node: &'s ModuleNode,
        (name, key, own_key): (&Arc<str>, &InstanceKey, Option<InstanceKey>),
        only: Option<&Arc<str>>,
    ) {
        let (Some(call), Some(child)) = (node.module.module_calls.get(name), node.children.get(name)) else {
            return;
        };
        let key = own_key.unwrap_or_else(|| key.clone());
        let repeated = call.count.is_some() || call.for_each.is_some();
        let any_instance = at.any_instance || (repeated && key.is_none());
        let instance = at.module.child(name.clone(), key);
        let outputs = child.module.outputs.iter();
        for (_, output) in outputs.filter(|(name, _)| only.is_none_or(|only| *only == **name)) {
            self.push(&instance, any_instance, &Within::Other, &output.expr);
        }
    }
}

impl Pending<'_> {
    fn within_text(&self) -> String {
        match &self.within {
            Within::Resource(resource, key) => format!("{resource} {key:?}"),
            Within::Call(name, key) => format!("{name} {key:?}"),
            Within::Other => String::new(),
        }
    }
}

/// Returns true for `count.index` and `each.key`.
fn is_own_key(key: &Expr) -> bool {
    let Expr::Traversal(traversal) = key else { return false };
    let subject = reference(traversal).map(|r| (r.subject, r.remaining.is_empty()));
    match subject {
        Ok((Referenceable::Count(name), true)) => &*name == "index",
        Ok((Referenceable::Each(name), true)) => &*name == "key",
        _ => false,
    }
}

/// Returns the expressions of a body, each with the name of the top-level attribute or block that contains it.
fn expressions(body: &Body) -> impl Iterator<Item = (&str, &Expr)> {
    let mut out = Vec::new();
    for attribute in &body.attributes {
        out.push((&*attribute.name, &attribute.expr));
    }
    for block in &body.blocks {
        let name = match block.labels.first() {
            Some(label) if &*block.ty == "dynamic" => &*label.text,
            _ => &*block.ty,
        };
        below(&block.body, name, &mut out);
    }
    out.into_iter()
}

fn below<'b>(body: &'b Body, name: &'b str, out: &mut Vec<(&'b str, &'b Expr)>) {
    out.extend(body.attributes.iter().map(|attribute| (name, &attribute.expr)));
    for block in &body.blocks {
        below(&block.body, name, out);
    }
}

/// Adds the sources of the values of provider configurations. A partial refresh always reads them, because an outdated value there, such as
/// an expired token, would make all requests of the provider fail.
pub(super) fn of_providers<'c>(
    config: &Config,
    providers: impl Iterator<Item = &'c addrs::AbsProviderConfig>,
    sources: &mut Sources,
) {
    let configs = config.provider_configs();
    let wanted: BTreeMap<_, _> = configs.iter().map(|source| (&source.address, source)).collect();
    for provider in providers {
        let Some(source) = wanted.get(provider) else { continue };
        let Some(block) = source.block else { continue };
        let module = source.node.path.0.iter().fold(ModuleInstance::root(), |m, name| {
            m.child(name.clone(), InstanceKey::None)
        });
        let mut search = Search::new(config);
        for (_, expr) in expressions(&block.body) {
            search.push(&module, false, &Within::Other, expr);
        }
        search.run();
        sources.instances.extend(search.found.instances);
        sources.resources.extend(search.found.resources);
        sources.everywhere.extend(search.found.everywhere);
    }
}
