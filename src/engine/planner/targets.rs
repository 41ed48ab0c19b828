//! Selection: the part of the graph that `-target` selects, or `-exclude` leaves.

use std::collections::{HashMap, HashSet};

use addrs::{AbsProviderConfig, AbsResourceInstance, ConfigResource, InstanceKey, Mode as ResourceMode, Target};
use petgraph::Direction;
use petgraph::graph::{DiGraph, NodeIndex};
use state::State;
use syntax::Diagnostic;

use super::actions::ActionSelection;
use crate::blocks::{Block, Blocks};
use crate::inputs::PlanOptions;
use crate::plan::Mode;

/// Selected part of the graph.
pub(super) struct Selection {
    mode: Mode,
    targets: Vec<Target>,
    excludes: Vec<Target>,
    /// Selected blocks; `None` if all are.
    blocks: Option<HashSet<Block>>,
    /// Resources that are selected with all instances, because a selected block depends on them.
    whole: HashSet<ConfigResource>,
    /// Provider configurations of selected resources.
    providers: HashSet<AbsProviderConfig>,
    /// For each resource, the instances of the state that depend on it and are not selected. Empty in destroy mode,
    /// which selects them.
    needed_outside: HashMap<ConfigResource, Vec<AbsResourceInstance>>,
}

/// Decision about an instance that only the state has.
pub(super) enum Orphan<'s> {
    /// The instance is destroyed.
    Destroyed,
    /// The instance is destroyed, as a target names it, although this instance outside of the targets probably depends
    /// on it.
    Needed(&'s AbsResourceInstance),
    /// The instance stays: no target names it, and these instances outside of the targets depend on its resource.
    Kept(&'s [AbsResourceInstance]),
}

/// Returns the list blocks as targets.
fn lists(blocks: &Blocks) -> Vec<Target> {
    let resources = blocks.graph.node_weights().filter_map(|block| match block {
        Block::Resource(r) if r.resource.mode == ResourceMode::List => Some(Target::ConfigResource(r.clone())),
        _ => None,
    });
    resources.collect()
}

impl Selection {
    pub(super) fn new(blocks: &Blocks, options: &PlanOptions, state: &State, actions: &ActionSelection) -> Selection {
        let mut selection = Selection {
            mode: options.mode,
            targets: options.targets.clone(),
            excludes: options.excludes.clone(),
            blocks: None,
            whole: HashSet::new(),
            providers: HashSet::new(),
            needed_outside: HashMap::new(),
        };
        // A query needs only its list blocks and their dependencies, and plans no resources.
        if options.query.is_some() {
            selection.targets = lists(blocks);
            selection.select(blocks, options.mode, state, actions);
        } else if actions.invoked.is_some() || !options.targets.is_empty() {
            selection.select(blocks, options.mode, state, actions);
        } else if !options.excludes.is_empty() {
            selection.exclude(blocks, options.mode);
        }
        for node in blocks.graph.node_indices() {
            // In destroy mode, a configuration is opened when a function of it is called.
            if let Block::Provider(provider) = &blocks.graph[node]
                && options.mode != Mode::Destroy
                && blocks.called_providers.contains(&node)
                && selection.includes(&blocks.graph[node])
            {
                selection.providers.insert(provider.clone());
            }
            let uses_provider = match &blocks.graph[node] {
                Block::Resource(_) => true,
                Block::Action(action) => actions.may_plan(action),
                _ => false,
            };
            if uses_provider && selection.includes(&blocks.graph[node]) {
                for before in blocks.graph.neighbors_directed(node, Direction::Incoming) {
                    if let Block::Provider(provider) = &blocks.graph[before] {
                        selection.providers.insert(provider.clone());
                    }
                }
            }
        }
        if options.mode == Mode::Destroy && selection.blocks.is_some() {
            selection.select_data_of_providers(blocks);
        } else if options.mode == Mode::Normal && selection.blocks.is_some() {
            selection.find_dependents_outside(state);
        }
        selection
    }

    /// Finds the instances that are not selected and depend on others, by the recorded dependencies.
    fn find_dependents_outside(&mut self, state: &State) {
        let mut needed: HashMap<ConfigResource, Vec<AbsResourceInstance>> = HashMap::new();
        for (resource, _, key, instance) in state.instances() {
            let at = resource.instance(key.clone());
            if self.includes(&Block::Resource(resource.config())) && self.includes_instance(&at) {
                continue;
            }
            let objects = instance.current.iter().chain(instance.deposed.values());
            for dependency in objects.flat_map(|object| &*object.dependencies) {
                let users = needed.entry(dependency.clone()).or_default();
                // All objects of an instance come in a row, so comparing with the last entry is enough to find
                // duplicates.
                if users.last() != Some(&at) {
                    users.push(at.clone());
                }
            }
        }
        self.needed_outside = needed;
    }

    /// Decides about an instance that only the state has.
    pub(super) fn orphan(&self, address: &AbsResourceInstance) -> Orphan<'_> {
        let users = self
            .needed_outside
            .get(&address.config())
            .map_or(&[][..], Vec::as_slice);
        if !self.targets.iter().any(|t| t.selects(address)) {
            return match users {
                [] => Orphan::Destroyed,
                users => Orphan::Kept(users),
            };
        }
        // The state records dependencies between resources, not between instances. An instance with the same key is the
        // likely user.
        let key = &address.resource.key;
        let likely = |user: &&AbsResourceInstance| {
            user.resource.key == *key || user.resource.key == InstanceKey::None || *key == InstanceKey::None
        };
        match users.iter().find(likely) {
            Some(user) => Orphan::Needed(user),
            None => Orphan::Destroyed,
        }
    }

    /// Returns true if the deposed objects of an instance are destroyed; false where it is selected only as a
    /// dependency of a target.
    pub(super) fn destroys_deposed(&self, address: &AbsResourceInstance) -> bool {
        // In the other modes the dependents of a target are selected with it, or nothing is destroyed.
        self.targets.is_empty() || self.mode != Mode::Normal || self.targets.iter().any(|t| t.selects(address))
    }

    /// Selects the data sources that the selected provider configurations depend on: destroy plans read them, too.
    fn select_data_of_providers(&mut self, blocks: &Blocks) {
        let graph = &blocks.graph;
        let mut queue: Vec<NodeIndex> = self
            .providers
            .iter()
            .filter_map(|p| blocks.find(&Block::Provider(p.clone())))
            .collect();
        let mut seen = HashSet::new();
        while let Some(n) = queue.pop() {
            for before in graph
                .neighbors_directed(n, Direction::Incoming)
                .filter(|b| seen.insert(*b))
            {
                match &graph[before] {
                    // If it were selected, it would be destroyed. The provider gets the values of its stored
                    // objects.
                    Block::Resource(r) if r.resource.mode == ResourceMode::Managed => continue,
                    Block::Resource(r) => {
                        self.whole.insert(r.clone());
                        self.blocks.get_or_insert_default().insert(graph[before].clone());
                    }
                    Block::Provider(p) => {
                        self.providers.insert(p.clone());
                    }
                    _ => {}
                }
                queue.push(before);
            }
        }
    }

    /// Selects, in destroy mode, the resources with objects that depend on existing targeted objects, by the recorded
    /// dependencies. Dependencies in the configuration may not have been applied yet.
    fn select_dependents(
        &mut self,
        blocks: &Blocks,
        state: &State,
        named: &[NodeIndex],
        selected: &mut HashSet<NodeIndex>,
    ) {
        let graph = &blocks.graph;
        let recorded_dependents = recorded_dependents(blocks, state);
        let mut existing: HashSet<ConfigResource> = HashSet::new();
        for (resource, stored) in &state.resources {
            let r = resource.config();
            let near: Vec<&Target> = self.targets.iter().filter(|t| t.may_select(&r)).collect();
            let selects = |key: &InstanceKey| near.iter().any(|t| t.selects(&resource.instance(key.clone())));
            if !near.is_empty() && stored.instances.keys().any(selects) {
                existing.insert(r);
            }
        }
        let mut queue: Vec<NodeIndex> = named
            .iter()
            .copied()
            .filter(|n| matches!(&graph[*n], Block::Resource(r) if existing.contains(r)))
            .collect();
        let targeted: HashSet<NodeIndex> = queue.iter().copied().collect();
        while let Some(n) = queue.pop() {
            // The recorded dependencies of an object are transitive.
            if let Block::Resource(r) = &graph[n]
                && (r.resource.mode == ResourceMode::Managed || targeted.contains(&n))
            {
                for user in recorded_dependents.get(r).into_iter().flatten() {
                    self.whole.insert(user.clone());
                    if let Some(node) = blocks.find(&Block::Resource(user.clone()))
                        && selected.insert(node)
                    {
                        queue.push(node);
                    }
                }
            }
            // Data sources and values have no recorded dependencies, so those of the configuration count.
            for next in graph.neighbors_directed(n, Direction::Outgoing) {
                match &graph[next] {
                    Block::Provider(_) => continue,
                    Block::Resource(r) if r.resource.mode == ResourceMode::Managed => continue,
                    Block::Resource(r) => drop(self.whole.insert(r.clone())),
                    _ => {}
                }
                if selected.insert(next) {
                    queue.push(next);
                }
            }
        }
    }

    /// Selects the targets, the action that the user requests, and their dependencies; in destroy mode, also their
    /// dependents.
    fn select(&mut self, blocks: &Blocks, mode: Mode, state: &State, actions: &ActionSelection) {
        let graph = &blocks.graph;
        let named: Vec<NodeIndex> = graph
            .node_indices()
            .filter(|n| match &graph[*n] {
                Block::Resource(r) => self.targets.iter().any(|t| t.may_select(r)),
                _ => false,
            })
            .collect();
        let mut selected: HashSet<NodeIndex> = HashSet::new();
        if mode == Mode::Destroy {
            self.select_dependents(blocks, state, &named, &mut selected);
        } else {
            let invoked: Vec<NodeIndex> = actions.selected().filter_map(|block| blocks.find(&block)).collect();
            for n in &invoked {
                if let Block::Resource(r) = &graph[*n] {
                    self.whole.insert(r.clone());
                }
            }
            selected.extend(&invoked);
            let mut queue: Vec<NodeIndex> = named.iter().copied().chain(invoked).collect();
            while let Some(n) = queue.pop() {
                for next in graph.neighbors_directed(n, Direction::Incoming) {
                    if let Block::Resource(r) = &graph[next] {
                        self.whole.insert(r.clone());
                    }
                    if selected.insert(next) {
                        queue.push(next);
                    }
                }
            }
        }
        for n in &named {
            if let Block::Resource(r) = &graph[*n] {
                // Only the targeted instances of a targeted resource are selected, even if other selected blocks depend on it.
                self.whole.remove(r);
            }
        }
        selected.extend(named);
        if mode == Mode::Destroy {
            // The dependencies of provider configurations are evaluated in any case.
            for n in graph.node_indices().filter(|n| matches!(graph[*n], Block::Provider(_))) {
                selected.insert(n);
            }
        } else {
            for n in outputs_of(graph, &selected) {
                let mut queue = vec![n];
                while let Some(n) = queue.pop() {
                    if selected.insert(n) {
                        queue.extend(graph.neighbors_directed(n, Direction::Incoming));
                    }
                }
            }
        }
        self.blocks = Some(selected.into_iter().map(|n| graph[n].clone()).collect());
    }

    /// Removes the excluded addresses and everything that depends on them; in destroy mode, also their dependencies,
    /// which must be destroyed later. A resource with some excluded instances stays selected without these, but its
    /// dependents are left out, as they may depend on them.
    fn exclude(&mut self, blocks: &Blocks, mode: Mode) {
        let graph = &blocks.graph;
        let direction = if mode == Mode::Destroy {
            Direction::Incoming
        } else {
            Direction::Outgoing
        };
        let mut left_out: HashSet<NodeIndex> = HashSet::new();
        let mut queue = Vec::new();
        for n in graph.node_indices() {
            let Block::Resource(resource) = &graph[n] else { continue };
            if self.excludes.iter().any(|t| t.may_select(resource)) {
                queue.push(n);
            }
            if self.excludes.iter().any(|t| selects_whole(t, resource)) {
                left_out.insert(n);
            }
        }
        let mut seen: HashSet<NodeIndex> = HashSet::new();
        while let Some(n) = queue.pop() {
            for next in graph.neighbors_directed(n, direction) {
                // In destroy mode, values and provider configurations are evaluated in any case.
                let goes = mode != Mode::Destroy || matches!(graph[next], Block::Resource(_));
                if goes {
                    left_out.insert(next);
                }
                if seen.insert(next) {
                    queue.push(next);
                }
            }
        }
        let rest = graph.node_indices().filter(|n| !left_out.contains(n));
        self.blocks = Some(rest.map(|n| graph[n].clone()).collect());
    }

    /// Returns true if a block is selected.
    pub(super) fn includes(&self, block: &Block) -> bool {
        self.blocks.as_ref().is_none_or(|blocks| blocks.contains(block))
    }

    /// Returns true if an instance of a selected resource is selected.
    pub(super) fn includes_instance(&self, address: &AbsResourceInstance) -> bool {
        if self.targets.is_empty() {
            return !self.excludes.iter().any(|t| t.selects(address));
        }
        self.whole.contains(&address.config()) || self.targets.iter().any(|t| t.selects(address))
    }

    /// Returns true if a selected resource uses a provider configuration.
    pub(super) fn needs_provider(&self, address: &AbsProviderConfig) -> bool {
        self.providers.contains(address)
    }

    /// Returns the provider configurations that selected resources use.
    pub(super) fn providers(&self) -> impl Iterator<Item = &AbsProviderConfig> {
        self.providers.iter()
    }

    /// Returns true if there is neither `-target` nor `-exclude`.
    pub(super) fn is_everything(&self) -> bool {
        self.blocks.is_none()
    }
}

/// Returns the root outputs that depend on resources, all of them selected. An output that depends on a module call
/// with a `count` that depends on other resources is left out: with -target, such a count may be unknown.
fn outputs_of(graph: &DiGraph<Block, ()>, selected: &HashSet<NodeIndex>) -> Vec<NodeIndex> {
    // The resource dependencies of each node, in topological order.
    let mut needs: Vec<Needs> = vec![Needs::default(); graph.node_count()];
    let mut found = Vec::new();
    for n in petgraph::algo::toposort(graph, None).unwrap_or_default() {
        let mut own = Needs::default();
        for before in graph.neighbors_directed(n, Direction::Incoming) {
            let resource = matches!(graph[before], Block::Resource(_));
            let inner = needs[before.index()];
            own.some |= resource || inner.some;
            own.left_out |= inner.left_out || (resource && !selected.contains(&before));
        }
        own.left_out |= own.some && matches!(graph[n], Block::Call(..)) && !selected.contains(&n);
        needs[n.index()] = own;
        let of_root = matches!(&graph[n], Block::Output(module, _) if module.is_root());
        if of_root && own.some && !own.left_out {
            found.push(n);
        }
    }
    found
}

/// Resource dependencies of a node, as far as they decide about an output.
#[derive(Clone, Copy, Default)]
struct Needs {
    /// Set if the node depends on a resource.
    some: bool,
    /// Set if the node depends on a resource that is not selected.
    left_out: bool,
}

/// Returns for each resource those with objects that depend on it: directly, by the recorded dependencies, or through
/// their provider configuration.
fn recorded_dependents<'s>(blocks: &Blocks, state: &'s State) -> HashMap<ConfigResource, HashSet<ConfigResource>> {
    let mut out: HashMap<ConfigResource, HashSet<ConfigResource>> = HashMap::new();
    let mut users: HashMap<&'s AbsProviderConfig, HashSet<ConfigResource>> = HashMap::new();
    for (resource, stored) in &state.resources {
        let user = resource.config();
        let objects = stored
            .instances
            .values()
            .flat_map(|instance| instance.current.iter().chain(instance.deposed.values()));
        for dependency in objects.flat_map(|object| &*object.dependencies) {
            // `entry` would clone the key for each of many objects.
            match out.get_mut(dependency) {
                Some(all) if all.contains(&user) => {}
                Some(all) => drop(all.insert(user.clone())),
                None => drop(out.insert(dependency.clone(), [user.clone()].into())),
            }
        }
        users.entry(&stored.provider).or_default().insert(user);
    }
    for (provider, users) in users {
        for needed in blocks.resources_before(&Block::Provider(provider.clone())) {
            out.entry(needed).or_default().extend(users.iter().cloned());
        }
    }
    out
}

/// Returns the warning for a partial plan.
pub(super) fn warning(options: &PlanOptions) -> Option<Diagnostic> {
    if options.invoke.is_some() {
        // Targets select the callers of the action, and nothing else is planned then.
        return None;
    }
    let option = match (options.targets.is_empty(), options.excludes.is_empty()) {
        (true, true) => return None,
        (true, false) => "-exclude",
        (false, _) => "-target",
    };
    Some(Diagnostic::warning(
        "Resource targeting is in effect",
        format!(
            "This plan is made with the {option} option, so it may leave out changes that the current configuration asks \
             for.\n\nThe option is meant for exceptions, such as recovering from errors or mistakes, not for everyday use."
        ),
    ))
}

/// Returns the warning about orphans that instances outside of the targets need.
pub(super) fn needed_outside(
    kept: &[(AbsResourceInstance, String)],
    destroyed: &[(AbsResourceInstance, String)],
) -> Option<Diagnostic> {
    let lines = |of: &[(AbsResourceInstance, String)]| -> String {
        of.iter()
            .map(|(address, user)| format!("\n  - {address}, for {user}"))
            .collect()
    };
    let mut detail = String::new();
    if !kept.is_empty() {
        detail.push_str(&format!(
            "These objects are not configured any more. They are not destroyed by this plan, because objects that it leaves out depend on \
             them:{}\n\nA plan without -target and -exclude destroys them in the right order.",
            lines(kept)
        ));
    }
    if !destroyed.is_empty() {
        if !detail.is_empty() {
            detail.push_str("\n\n");
        }
        detail.push_str(&format!(
            "These objects are destroyed, as -target says, although objects that the plan leaves out probably depend on them:{}",
            lines(destroyed)
        ));
    }
    (!detail.is_empty()).then(|| Diagnostic::warning("Objects needed outside of the targets", detail))
}

/// Returns true if every instance of a resource is selected.
fn selects_whole(target: &Target, resource: &ConfigResource) -> bool {
    match target {
        Target::Module(_) | Target::ConfigResource(_) => target.may_select(resource),
        Target::ModuleInstance(_) | Target::Resource(_) | Target::ResourceInstance(_) => false,
    }
}
