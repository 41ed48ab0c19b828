//! The graph of an operation, with Terraform's names for its nodes: `X (expand)` is a block that is expanded to instances and evaluated, `X
//! (destroy)` an object that is destroyed, `X (close)` the closing of a provider or the end of a module.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use addrs::{AbsProviderConfig, ConfigResource, Mode, Module};
use config::Config;
use provider::Schemas;
use state::{DeposedKey, State};
use syntax::Diagnostics;

use super::reduce::{Adjacency, cycles, order, reduce};
use super::{in_state, without_cycles};
use crate::action::Action;
use crate::blocks::{Block, Blocks};
use crate::plan::{Mode as PlanMode, Plan, ResourceChange};

#[derive(Clone, Copy, Debug)]
pub enum Operation<'p> {
    /// A plan in this mode.
    Plan(PlanMode),
    /// The apply of a plan. `None` is an apply without changes.
    Apply(Option<&'p Plan>),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperationGraph {
    /// Nodes. In a destroy plan, the destroyed objects of one resource have nodes of the same name.
    pub nodes: Vec<Node>,
    /// Pairs of a node and its dependency, as indexes. Edges that follow from other edges (transitively) are left out, except if cycles are
    /// to be shown.
    pub edges: Vec<(usize, usize)>,
    /// For each node, an arbitrary number for the cycle that contains it; `None` if the node is on no cycle.
    pub cycles: Vec<Option<usize>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Name of the node, as Terraform calls it.
    pub name: String,
    /// Label and shape; `None` for nodes that exist only for the order and are not drawn.
    pub shown: Option<(String, Shape)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A resource, or one of its objects.
    Resource,
    /// A provider configuration.
    Provider,
    /// The closing of a provider configuration, after its resources.
    ProviderEnd,
    Variable,
}

/// Returns the graph of an operation on a configuration and a state, and warnings about references that cannot be resolved.
///
/// # Errors
/// The graph has cycles, and `with_cycles` is not set.
pub fn operation(
    config: &Config,
    schemas: &Schemas,
    state: &State,
    of: Operation<'_>,
    with_cycles: bool,
) -> Result<(OperationGraph, Diagnostics), Diagnostics> {
    let resources = match of {
        Operation::Plan(PlanMode::Normal | PlanMode::RefreshOnly) => in_state(state),
        _ => Vec::new(),
    };
    let (blocks, problems) = Blocks::build_with_errors(config, schemas, &resources);
    let problems = match with_cycles && petgraph::algo::is_cyclic_directed(&blocks.graph) {
        true => Diagnostics::new(),
        false => without_cycles(&blocks, problems)?,
    };
    let mut builder = Builder::default();
    let destroys = match of {
        Operation::Plan(mode) => mode == PlanMode::Destroy,
        Operation::Apply(plan) => plan.is_some_and(|plan| plan.mode == PlanMode::Destroy),
    };
    if destroys {
        builder.what_stays_in_a_destroy(&blocks);
    } else {
        builder.blocks(config, &blocks, matches!(of, Operation::Plan(_)));
    }
    match of {
        Operation::Plan(PlanMode::Destroy) => builder.objects_of(state),
        Operation::Apply(Some(plan)) => builder.changes_of(plan),
        _ => {}
    }
    // If cycles are shown, none of their edges may be left out.
    Ok((builder.finish(!with_cycles), problems))
}

/// Builder of resource graphs and operation graphs.
#[derive(Default)]
pub(super) struct Builder {
    nodes: Vec<Node>,
    pub(super) dependencies: Adjacency,
    /// Nodes of resources.
    pub(super) resources: BTreeMap<ConfigResource, usize>,
    by_name: HashMap<String, usize>,
    /// Nodes for the closing of provider configurations.
    closes: BTreeMap<AbsProviderConfig, usize>,
    /// Nodes of destroyed objects, by their resources.
    destroyed: BTreeMap<ConfigResource, Vec<usize>>,
}

impl Builder {
    /// Adds a node, even if another one has the same name.
    fn add(&mut self, name: String, shown: Option<(String, Shape)>) -> usize {
        let at = self.nodes.len();
        self.by_name.entry(name.clone()).or_insert(at);
        self.nodes.push(Node { name, shown });
        self.dependencies.push(BTreeSet::new());
        at
    }

    /// Returns the node with a name, and adds it if it does not exist.
    fn named(&mut self, name: String) -> usize {
        match self.by_name.get(&name) {
            Some(at) => *at,
            None => self.add(name, None),
        }
    }

    fn depends(&mut self, node: usize, on: usize) {
        self.dependencies[node].insert(on);
    }

    /// Returns the nodes for the opening and the closing of a provider configuration.
    fn provider(&mut self, provider: &AbsProviderConfig) -> (usize, usize) {
        let name = provider.to_string();
        if let (Some(open), Some(close)) = (self.by_name.get(&name), self.closes.get(provider)) {
            return (*open, *close);
        }
        let close = format!("{name} (close)");
        let open = self.add(name.clone(), Some((name, Shape::Provider)));
        let close = self.add(close.clone(), Some((close, Shape::ProviderEnd)));
        self.depends(close, open);
        self.closes.insert(provider.clone(), close);
        (open, close)
    }

    /// Adds a node for each block, and an edge for each dependency.
    pub(super) fn blocks(&mut self, config: &Config, blocks: &Blocks, planning: bool) {
        let graph = &blocks.graph;
        let numbers: Vec<usize> = graph
            .node_weights()
            .map(|block| self.block(config, block, planning))
            .collect();
        // The dependents of a variable also wait for its validation.
        let done: Vec<usize> = graph
            .node_weights()
            .zip(&numbers)
            .map(|(b, n)| self.checked(config, b, *n))
            .collect();
        let edges = graph.edge_indices().filter_map(|edge| graph.edge_endpoints(edge));
        for (first, then) in edges.chain(blocks.waiting_calls.iter().copied()) {
            self.depends(numbers[then.index()], done[first.index()]);
            let end = match &graph[first] {
                Block::Provider(provider) if matches!(graph[then], Block::Resource(_)) => {
                    Some(self.provider(provider).1)
                }
                Block::Resource(resource) if resource.resource.mode == Mode::Ephemeral => {
                    Some(self.end_of_object(resource))
                }
                _ => None,
            };
            if let Some(end) = end {
                self.depends(end, numbers[then.index()]);
            }
        }
        for node in graph.node_indices() {
            let mut module = graph[node].module().cloned();
            if let Block::Call(parent, name) = &graph[node] {
                module = Some(parent.child(name.clone()));
            }
            self.end_of_module(module, numbers[node.index()]);
        }
        let whole = blocks.whole_modules.iter();
        self.whole_modules(whole.map(|(module, node)| (module, numbers[node.index()])).collect());
    }

    /// Adds the recorded dependencies of resources that exist only in the state.
    pub(super) fn recorded(&mut self, config: &Config, state: &State) {
        let mut added = Vec::new();
        for (address, stored) in &state.resources {
            let resource = address.config();
            let Some(node) = self.resources.get(&resource).copied() else {
                continue;
            };
            if config.resource(&resource).is_some() {
                continue;
            }
            let instances = stored.instances.values();
            let objects = instances.flat_map(|instance| instance.current.iter().chain(instance.deposed.values()));
            for dependency in objects.flat_map(|object| &*object.dependencies) {
                if let Some(on) = self.resources.get(dependency).copied()
                    && on != node
                    && self.dependencies[node].insert(on)
                {
                    added.push((node, on));
                }
            }
        }
        // A refresh adds the dependencies of the configuration to the recorded ones, so recorded dependencies can form a cycle. Those on a
        // cycle are removed.
        let cycles = cycles(&self.dependencies);
        for (node, on) in added {
            if cycles[node].is_some() && cycles[node] == cycles[on] {
                self.dependencies[node].remove(&on);
            }
        }
    }

    /// Makes blocks with references to a whole module depend on the end of the module. If that makes a cycle, none of these edges is added.
    fn whole_modules(&mut self, references: Vec<(&Module, usize)>) {
        let before = self.dependencies.clone();
        for (module, node) in references {
            let end = self.named(format!("{module} (close)"));
            self.depends(node, end);
        }
        if order(&self.dependencies).is_none() && order(&before).is_some() {
            self.dependencies.splice(..before.len(), before);
        }
    }

    /// Returns the node that the dependents of a block wait for. For a variable with validations, that is a node after the validations.
    fn checked(&mut self, config: &Config, block: &Block, node: usize) -> usize {
        let Block::Variable(module, name) = block else {
            return node;
        };
        let variable = config.node(module).and_then(|m| m.module.variables.get(name));
        if variable.is_none_or(|variable| variable.validations.is_empty()) {
            return node;
        }
        let checked = self.add(format!("{block} (validation)"), None);
        self.depends(checked, node);
        checked
    }

    /// Returns the node for the closing of an ephemeral resource.
    fn end_of_object(&mut self, resource: &ConfigResource) -> usize {
        self.named(format!("{resource} (close)"))
    }

    /// Makes the end nodes of a module and of its ancestors depend on a node.
    fn end_of_module(&mut self, module: Option<Module>, node: usize) {
        let mut inside = node;
        let mut next = module;
        while let Some(module) = next.filter(|module| !module.is_root()) {
            let end = self.named(format!("{module} (close)"));
            self.depends(end, inside);
            inside = end;
            next = module.parent().map(|(parent, _)| parent);
        }
    }

    fn block(&mut self, config: &Config, block: &Block, planning: bool) -> usize {
        let name = block.to_string();
        match block {
            Block::Provider(provider) => self.provider(provider).0,
            Block::Variable(module, _) if module.is_root() => self.add(name.clone(), Some((name, Shape::Variable))),
            Block::Resource(resource) => {
                // `expand` and `orphan` are the words that Terraform uses.
                let how = if config.resource(resource).is_some() {
                    "expand"
                } else {
                    "orphan"
                };
                let node = self.add(format!("{name} ({how})"), Some((name, Shape::Resource)));
                self.resources.insert(resource.clone(), node);
                if resource.resource.mode == Mode::Ephemeral {
                    let end = self.end_of_object(resource);
                    self.depends(end, node);
                    let (_, close) = self.provider(&config.provider_for(resource));
                    self.depends(close, end);
                }
                node
            }
            Block::Check(..) => {
                let node = self.add(format!("{name} (expand)"), None);
                if planning {
                    let report = self.add(format!("{name} (report)"), None);
                    self.depends(node, report);
                }
                node
            }
            Block::Variable(..) | Block::Local(..) | Block::Output(..) | Block::Call(..) | Block::Action(_) => {
                self.add(format!("{name} (expand)"), None)
            }
        }
    }

    /// Adds the only blocks of the configuration that the graph of a destroy operation has: the root outputs.
    fn what_stays_in_a_destroy(&mut self, blocks: &Blocks) {
        for block in blocks.graph.node_weights() {
            if matches!(block, Block::Output(module, _) if module.is_root()) {
                self.add(format!("{block} (expand)"), None);
            }
        }
    }

    fn destroy(&mut self, name: String, resource: &ConfigResource, provider: &AbsProviderConfig) -> usize {
        let node = self.add(name, Some((resource.to_string(), Shape::Resource)));
        let (open, close) = self.provider(provider);
        self.depends(node, open);
        self.depends(close, node);
        self.destroyed.entry(resource.clone()).or_default().push(node);
        node
    }

    fn objects_of(&mut self, state: &State) {
        let mut before = Vec::new();
        for (address, stored) in &state.resources {
            let resource = address.config();
            for instance in stored.instances.values() {
                let objects = instance.current.iter().chain(instance.deposed.values());
                for object in objects {
                    let node = self.destroy(format!("{resource} (destroy)"), &resource, &stored.provider);
                    before.push((node, object.dependencies.clone()));
                }
            }
        }
        self.destroy_dependents_first(before);
    }

    fn changes_of(&mut self, plan: &Plan) {
        // `changed` has the nodes of the changed objects by block, and `objects` the same nodes as one set.
        let mut changed: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut objects = BTreeSet::new();
        let mut before = Vec::new();
        for change in &plan.changes {
            let made = self.made(change);
            if let Some((block, object)) = made {
                changed.entry(block).or_default().push(object);
                objects.insert(object);
            }
            let Some((destroyed, dependencies)) = self.unmade(plan, change) else {
                continue;
            };
            before.extend(dependencies.map(|dependencies| (destroyed, dependencies)));
            match (change.action, made) {
                (Action::DeleteThenCreate, Some((_, made))) => self.depends(made, destroyed),
                (Action::CreateThenDelete | Action::CreateThenForget, Some((_, made))) => self.depends(destroyed, made),
                _ => {}
            }
        }
        self.destroy_dependents_first(before);
        // Nodes that depend on a block also depend on its changed objects.
        for node in 0..self.nodes.len() {
            if !objects.contains(&node) {
                let of = self.dependencies[node].iter().filter_map(|on| changed.get(on));
                let of: Vec<usize> = of.flatten().copied().collect();
                self.dependencies[node].extend(of);
            }
        }
    }

    /// Adds an object that is created, updated or read. Returns the nodes of its resource and of the object; `None` for other changes.
    fn made(&mut self, change: &ResourceChange) -> Option<(usize, usize)> {
        let makes =
            matches!(change.action, Action::Create | Action::Read | Action::Update) || change.action.is_replace();
        let resource = change.address.config();
        let expand = self.by_name.get(&format!("{resource} (expand)")).copied();
        let expand = expand.filter(|_| makes && change.deposed.is_none())?;
        let node = self.add(
            change.address.to_string(),
            Some((resource.to_string(), Shape::Resource)),
        );
        self.depends(node, expand);
        Some((expand, node))
    }

    /// Adds the object that a deletion or a replacement removes. Returns its node and its recorded dependencies; `None` for other changes
    /// and for data sources.
    fn unmade(&mut self, plan: &Plan, change: &ResourceChange) -> Option<(usize, Option<Arc<[ConfigResource]>>)> {
        let is_managed = change.address.resource.resource.mode == Mode::Managed;
        if !is_managed || !(change.action == Action::Delete || change.action.is_replace()) {
            return None;
        }
        let name = match &change.deposed {
            Some(key) => format!("{} (destroy deposed {key})", change.address),
            None => format!("{} (destroy)", change.address),
        };
        let node = self.destroy(name, &change.address.config(), &change.provider.block());
        let stored = plan.prior_state.instance(&change.address);
        let object = stored.and_then(|instance| match &change.deposed {
            Some(key) => instance.deposed.get(&DeposedKey(key.clone())),
            None => instance.current.as_ref(),
        });
        Some((node, object.map(|object| object.dependencies.clone())))
    }

    /// Makes the destruction of objects wait for the destruction of their dependents.
    fn destroy_dependents_first(&mut self, dependents: Vec<(usize, Arc<[ConfigResource]>)>) {
        for (dependent, dependencies) in dependents {
            for resource in &*dependencies {
                for destroyed in self.destroyed.get(resource).into_iter().flatten() {
                    if *destroyed != dependent {
                        self.dependencies[*destroyed].insert(dependent);
                    }
                }
            }
        }
    }

    /// Completes the graph with a root node that depends on all nodes without dependents. If `reduced` is set, removes the edges that
    /// follow from other edges.
    fn finish(mut self, reduced: bool) -> OperationGraph {
        let mut needed = vec![false; self.nodes.len()];
        for dependency in self.dependencies.iter().flatten() {
            needed[*dependency] = true;
        }
        let root = self.add("root".to_owned(), None);
        self.dependencies[root].extend((0..root).filter(|node| !needed[*node]));
        if reduced {
            reduce(&mut self.dependencies);
        }
        let edges = |(node, of): (usize, &BTreeSet<usize>)| of.iter().map(|on| (node, *on)).collect::<Vec<_>>();
        OperationGraph {
            cycles: cycles(&self.dependencies),
            edges: self.dependencies.iter().enumerate().flat_map(edges).collect(),
            nodes: self.nodes,
        }
    }
}
