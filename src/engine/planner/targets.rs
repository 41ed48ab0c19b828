//! Selection: the part of the graph that remains after `-target` or `-exclude`.

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

/// The blocks, resource instances and provider configurations that a plan includes.
pub(super) struct Selection {
    mode: Mode,
    targets: Vec<Target>,
    excludes: Vec<Target>,
    /// Selected blocks; `None` for all blocks.
    blocks: Option<HashSet<Block>>,
    /// Resources that are selected with all instances, because a selected block depends on them or, in destroy mode, because they depend
    /// on a target.
    whole: HashSet<ConfigResource>,
    /// Provider configurations that selected resources and actions use, or whose functions are called.
    providers: HashSet<AbsProviderConfig>,
    /// For each resource, the instances in the state that are not selected and depend on the resource. Empty except in normal mode with
    /// `-target` or `-exclude`. (In destroy mode, dependents are selected, too.)
    needed_outside: HashMap<ConfigResource, Vec<AbsResourceInstance>>,
}

/// Decision about an instance that is only in the state.
pub(super) enum Orphan<'s> {
    /// The instance is destroyed.
    Destroyed,
    /// The instance is destroyed because a target names it, although the other instance, which is not selected, probably depends on it.
    Needed(&'s AbsResourceInstance),
    /// The instance is not destroyed: no target names it, and these instances, which are not selected, depend on its resource.
    Kept(&'s [AbsResourceInstance]),
}

/// Returns all list blocks as targets.
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
        // A query plans no resources. It needs only its list blocks and their dependencies.
        if options.query.is_some() {
            selection.targets = lists(blocks);
            selection.select(blocks, options.mode, state, actions);
        } else if actions.invoked.is_some() || !options.targets.is_empty() {
            selection.select(blocks, options.mode, state, actions);
        } else if !options.excludes.is_empty() {
            selection.exclude(blocks, options.mode);
        }
        for node in blocks.graph.node_indices() {
            // A provider configuration is opened if its functions are called. In destroy mode, it is opened at the first call.
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

    /// Finds the instances in the state that are not selected, and records which resources they depend on.
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
                // All dependencies of an instance are added in a row, so comparing with the last entry is enough to avoid duplicates.
                if users.last() != Some(&at) {
                    users.push(at.clone());
                }
            }
        }
        self.needed_outside = needed;
    }

    /// Decides whether an instance that is only in the state is destroyed.
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
        // The state records dependencies between resources, not between instances. So the instance with the same key is assumed to be the
        // one that depends on it.
        let key = &address.resource.key;
        let likely = |user: &&AbsResourceInstance| {
            user.resource.key == *key || user.resource.key == InstanceKey::None || *key == InstanceKey::None
        };
        match users.iter().find(likely) {
            Some(user) => Orphan::Needed(user),
            None => Orphan::Destroyed,
        }
    }

    /// Returns true if the deposed objects of an instance are destroyed. Returns false if the instance is selected only because a target
    /// depends on it.
    pub(super) fn destroys_deposed(&self, address: &AbsResourceInstance) -> bool {
        // In destroy mode the dependents of a target are selected with it, and a refresh-only plan destroys nothing.
        self.targets.is_empty() || self.mode != Mode::Normal || self.targets.iter().any(|t| t.selects(address))
    }

    /// Selects the data sources and the other provider configurations that selected provider configurations depend on, because a destroy
    /// plan reads them, too.
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
                    // A selected managed resource would be destroyed. It is not selected, and the provider configuration uses the values of
                    // its stored objects.
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

    /// Selects, in destroy mode, the resources whose objects depend on existing targeted objects. The recorded dependencies count, because
    /// those in the configuration may not have been applied yet.
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
            // The recorded dependencies include indirect ones, so dependents of dependents need no search.
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
            // The state records no dependencies of data sources and values, so those in the configuration are used.
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

    /// Selects the targets, the action that the user requests, and the dependencies of both. In destroy mode, their dependents are selected
    /// instead of the dependencies.
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
            // A destroy plan may evaluate any provider configuration, so all are selected.
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

    /// Selects everything except the excluded addresses and what depends on them. In destroy mode, the dependencies of an excluded resource
    /// are left out instead, because a resource must be destroyed before its dependencies.
    ///
    /// If only some instances of a resource are excluded, its other instances remain selected. Its dependents are left out, because they
    /// may depend on the excluded instances.
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
                // In destroy mode only resources are left out: values and provider configurations are evaluated nevertheless.
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

    /// Returns true if an instance is selected. Its resource must be selected.
    pub(super) fn includes_instance(&self, address: &AbsResourceInstance) -> bool {
        if self.targets.is_empty() {
            return !self.excludes.iter().any(|t| t.selects(address));
        }
        self.whole.contains(&address.config()) || self.targets.iter().any(|t| t.selects(address))
    }

    /// Returns true if a selected resource or action uses a provider configuration, or if its functions are called.
    pub(super) fn needs_provider(&self, address: &AbsProviderConfig) -> bool {
        self.providers.contains(address)
    }

    /// Returns the provider configurations that selected resources and actions use, or whose functions are called.
    pub(super) fn providers(&self) -> impl Iterator<Item = &AbsProviderConfig> {
        self.providers.iter()
    }

    /// Returns true if all blocks are selected: the plan has no `-target`, `-exclude` or `-invoke`, and is no query.
    pub(super) fn is_everything(&self) -> bool {
        self.blocks.is_none()
    }
}

/// Returns the root outputs that depend on resources, if all these resources are selected. An output is left out if it depends on a module
/// call that is not selected and itself depends on resources: the `count` of the call may be unknown.
fn outputs_of(graph: &DiGraph<Block, ()>, selected: &HashSet<NodeIndex>) -> Vec<NodeIndex> {
    // Resource dependencies of each node. In topological order, those of its predecessors are known.
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

/// Resource dependencies of a node that decide whether an output is selected.
#[derive(Clone, Copy, Default)]
struct Needs {
    /// Set if the node depends on a resource.
    some: bool,
    /// Set if the node depends on a resource, or on a module call with resource dependencies, that is not selected.
    left_out: bool,
}

/// Returns the dependents of each resource: the resources whose objects have it as a recorded dependency, or whose provider configuration
/// depends on it.
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
            // `entry` would clone the key for each object, and there may be many objects.
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
        // With `-invoke`, targets only select the callers of the action.
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

/// Returns the warning about orphans that objects outside of this plan need: orphans that are not destroyed for this reason (`kept`), and
/// orphans that are destroyed because a target names them (`destroyed`).
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

/// Returns true if a target selects every instance of a resource.
fn selects_whole(target: &Target, resource: &ConfigResource) -> bool {
    match target {
        Target::Module(_) | Target::ConfigResource(_) => target.may_select(resource),
        Target::ModuleInstance(_) | Target::Resource(_) | Target::ResourceInstance(_) => false,
    }
}
