//! The graph of the configuration's blocks: who refers to whom, before anything is evaluated.
//!
//! A node is a block of a module, whatever number of instances the module or the block has: the graph grows with the
//! configuration, never with `count`. Resources that only the state still has are nodes, too. An edge leads from a block
//! to one that needs its result, so that a walk visits results first. Cycles and references to nothing are found here.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::fmt;
use std::sync::Arc;

use addrs::{AbsProviderConfig, ConfigResource, Mode, Module, Referenceable};
use config::{Config, ModuleNode, Resource};
use lang::checks::{Repetition, block_steps, missing_key, unexpected_key};
use lang::refs::{references_in_body, references_in_expr};
use lang::schema::BlockSchema;
use lang::scope::Reference;
use petgraph::Direction;
use petgraph::graph::{DiGraph, NodeIndex};
use syntax::ast::{Body, Expr, TraversalStep};
use syntax::content::{did_you_mean, suggest};
use syntax::{Diagnostic, Diagnostics, Range};

use crate::providers::Schemas;

/// A block of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Block {
    /// An input variable of a module.
    Variable(Module, Arc<str>),
    /// A local value.
    Local(Module, Arc<str>),
    /// An output value.
    Output(Module, Arc<str>),
    /// A module call: which instances the module it calls has. The module is the calling one.
    Call(Module, Arc<str>),
    /// A provider configuration, written or implied.
    Provider(AbsProviderConfig),
    /// A resource of the configuration, or one that only the state has.
    Resource(ConfigResource),
    /// A check block.
    Check(Module, Arc<str>),
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let within = |f: &mut fmt::Formatter<'_>, module: &Module| {
            if module.is_root() {
                Ok(())
            } else {
                write!(f, "{module}.")
            }
        };
        match self {
            Block::Variable(m, n) => within(f, m).and_then(|()| write!(f, "var.{n}")),
            Block::Local(m, n) => within(f, m).and_then(|()| write!(f, "local.{n}")),
            Block::Output(m, n) => within(f, m).and_then(|()| write!(f, "output.{n}")),
            Block::Call(m, n) => within(f, m).and_then(|()| write!(f, "module.{n}")),
            Block::Check(m, n) => within(f, m).and_then(|()| write!(f, "check.{n}")),
            Block::Provider(p) => p.fmt(f),
            Block::Resource(r) => r.fmt(f),
        }
    }
}

/// The graph.
#[derive(Debug, Default)]
pub struct Blocks {
    /// Blocks; an edge leads to the one that waits.
    pub graph: DiGraph<Block, ()>,
    index: HashMap<Block, NodeIndex>,
    /// The edges: a provider configuration has as many as there are resources, too many to look through for each.
    connected: HashSet<(NodeIndex, NodeIndex)>,
    resources_below: BTreeMap<Module, Vec<NodeIndex>>,
}

/// A resource that exists in the state: where it is, and which provider configuration manages it.
pub type StateResource = (ConfigResource, AbsProviderConfig);

impl Blocks {
    /// Builds the graph. Errors are references to what is not declared, references of a kind that is not allowed, and
    /// cycles.
    pub fn build(config: &Config, schemas: &Schemas, in_state: &[StateResource]) -> Result<Blocks, Diagnostics> {
        let (blocks, diagnostics) = Blocks::build_anyway(config, schemas, in_state);
        diagnostics.into_result(blocks)
    }

    /// The same, with whatever could be understood where there are errors.
    pub(crate) fn build_anyway(
        config: &Config,
        schemas: &Schemas,
        in_state: &[StateResource],
    ) -> (Blocks, Diagnostics) {
        let mut blocks = Blocks::default();
        blocks.add_nodes(&config.root);
        for (resource, provider) in in_state {
            let node = blocks.node(Block::Resource(resource.clone()));
            // What the configuration has is managed as the configuration says.
            if config.resource(resource).is_none() {
                let provider = blocks.node(Block::Provider(provider.clone()));
                blocks.connect(provider, node);
            }
        }
        let mut diagnostics = Diagnostics::new();
        let mut edges = Edges {
            blocks: &mut blocks,
            schemas,
            root: config,
            diagnostics: &mut diagnostics,
            whole: Vec::new(),
            compared: 0,
        };
        edges.module(&config.root, None, &[]);
        let whole = edges.whole;
        if !diagnostics.has_errors() {
            diagnostics.extend(blocks.cycles(config));
        }
        if !diagnostics.has_errors() {
            blocks.connect_whole(&whole);
        }
        (blocks, diagnostics)
    }

    /// What is wrong with the references of an expression that stands in a module, but not in its files.
    pub(crate) fn check_references(
        &mut self,
        config: &Config,
        schemas: &Schemas,
        place: &ModuleNode,
        expr: &Expr,
    ) -> Diagnostics {
        let (references, mut diagnostics) = references_in_expr(expr);
        let mut edges = Edges {
            blocks: self,
            schemas,
            root: config,
            diagnostics: &mut diagnostics,
            whole: Vec::new(),
            compared: 0,
        };
        for reference in &references {
            edges.resolve(place, reference, false);
        }
        diagnostics
    }

    fn node(&mut self, block: Block) -> NodeIndex {
        if let Some(at) = self.index.get(&block) {
            return *at;
        }
        let at = self.graph.add_node(block.clone());
        if let Block::Resource(r) = &block {
            let mut module = Some(r.module.clone());
            while let Some(m) = module {
                module = m.parent().map(|(parent, _)| parent);
                self.resources_below.entry(m).or_default().push(at);
            }
        }
        self.index.insert(block, at);
        at
    }

    fn connect(&mut self, first: NodeIndex, then: NodeIndex) {
        if self.connected.insert((first, then)) {
            self.graph.add_edge(first, then, ());
        }
    }

    /// What refers to a module as a whole waits for everything in it, as it does in Terraform, and not only for the outputs:
    /// except where something in the module needs it, which Terraform refuses and nothing is wrong with.
    fn connect_whole(&mut self, references: &[(Module, NodeIndex)]) {
        let mut pairs = Vec::new();
        for (module, node) in references {
            let inside = self.resources_below.get(module).into_iter().flatten();
            pairs.extend(
                inside
                    .map(|first| (*first, *node))
                    .filter(|pair| !self.connected.contains(pair)),
            );
        }
        let edges: Vec<_> = pairs
            .iter()
            .map(|(first, node)| self.graph.add_edge(*first, *node, ()))
            .collect();
        if edges.is_empty() || petgraph::algo::toposort(&self.graph, None).is_ok() {
            self.connected.extend(pairs);
            return;
        }
        for edge in edges.into_iter().rev() {
            self.graph.remove_edge(edge);
        }
        for (module, node) in references {
            let mut after = petgraph::visit::Dfs::new(&self.graph, *node);
            while after.next(&self.graph).is_some() {}
            let inside = self.resources_below.get(module).cloned().unwrap_or_default();
            if !inside.iter().any(|n| after.discovered.contains(n.index())) {
                inside.into_iter().for_each(|first| self.connect(first, *node));
            }
        }
    }

    /// Where a block stands in the graph.
    #[must_use]
    pub fn find(&self, block: &Block) -> Option<NodeIndex> {
        self.index.get(block).copied()
    }

    fn add_nodes(&mut self, config: &ModuleNode) {
        let path = &config.path;
        let module = &config.module;
        for name in module.variables.keys() {
            self.node(Block::Variable(path.clone(), name.clone()));
        }
        for name in module.locals.keys() {
            self.node(Block::Local(path.clone(), name.clone()));
        }
        for name in module.outputs.keys() {
            self.node(Block::Output(path.clone(), name.clone()));
        }
        for name in module.checks.keys() {
            self.node(Block::Check(path.clone(), name.clone()));
        }
        for resource in module.resources.values() {
            self.node(Block::Resource(resource.address.in_module(path)));
        }
        for name in module.module_calls.keys() {
            self.node(Block::Call(path.clone(), name.clone()));
        }
        for child in config.children.values() {
            self.add_nodes(child);
        }
    }

    /// For each resource all resources it depends on, directly or not, itself not included. Only managed resources
    /// count, unless `with_others`.
    #[must_use]
    pub fn resource_dependencies(&self, with_others: bool) -> BTreeMap<ConfigResource, BTreeSet<ConfigResource>> {
        let resources: Vec<NodeIndex> = self
            .graph
            .node_indices()
            .filter(|n| matches!(self.graph[*n], Block::Resource(_)))
            .collect();
        let mut number = vec![usize::MAX; self.graph.node_count()];
        for (i, n) in resources.iter().enumerate() {
            number[n.index()] = i;
        }
        // One bit a resource, handed on along the edges in topological order.
        let words = resources.len().div_ceil(64);
        let mut above = vec![0u64; words * self.graph.node_count()];
        let order = petgraph::algo::toposort(&self.graph, None).unwrap_or_default();
        for n in order {
            for from in self.graph.neighbors_directed(n, Direction::Incoming) {
                let (from_at, at) = (from.index() * words, n.index() * words);
                for w in 0..words {
                    above[at + w] |= above[from_at + w];
                }
                if number[from.index()] != usize::MAX {
                    above[at + number[from.index()] / 64] |= 1 << (number[from.index()] % 64);
                }
            }
        }
        let address = |n: NodeIndex| match &self.graph[n] {
            Block::Resource(r) => Some(r),
            _ => None,
        };
        resources
            .iter()
            .filter_map(|n| {
                let set = resources
                    .iter()
                    .enumerate()
                    .filter(|(i, _)| above[n.index() * words + i / 64] & (1 << (i % 64)) != 0)
                    .filter_map(|(_, d)| address(*d))
                    .filter(|r| with_others || r.resource.mode == Mode::Managed)
                    .cloned()
                    .collect();
                Some((address(*n)?.clone(), set))
            })
            .collect()
    }

    /// All resources a block depends on, directly or not.
    #[must_use]
    pub fn resources_before(&self, block: &Block) -> BTreeSet<ConfigResource> {
        let mut seen = vec![false; self.graph.node_count()];
        let mut queue: VecDeque<_> = self.find(block).into_iter().collect();
        let mut out = BTreeSet::new();
        while let Some(n) = queue.pop_front() {
            for from in self.graph.neighbors_directed(n, Direction::Incoming) {
                if !std::mem::replace(&mut seen[from.index()], true) {
                    if let Block::Resource(r) = &self.graph[from] {
                        out.insert(r.clone());
                    }
                    queue.push_back(from);
                }
            }
        }
        out
    }

    /// For each ephemeral resource the blocks that may use it while they are worked on, directly or through what is only
    /// evaluated, provider configurations and ephemeral resources included. What is behind a managed resource or a data
    /// source has to do with that.
    #[must_use]
    pub fn ephemeral_users(&self) -> Vec<(ConfigResource, Vec<Block>)> {
        let mut out = Vec::new();
        for node in self.graph.node_indices() {
            let Block::Resource(resource) = &self.graph[node] else {
                continue;
            };
            if resource.resource.mode == Mode::Ephemeral {
                let users = self.reach(node, Direction::Outgoing);
                let users = users.into_iter().map(|n| self.graph[n].clone()).collect();
                out.push((resource.clone(), users));
            }
        }
        out
    }

    /// The ephemeral resources that a block may use while it is worked on, inner ones first.
    #[must_use]
    pub fn ephemeral_before(&self, block: &Block) -> Vec<ConfigResource> {
        let found = self.find(block).map(|n| self.reach(n, Direction::Incoming));
        let mut nodes: Vec<NodeIndex> = found.unwrap_or_default();
        nodes.reverse();
        let resources = nodes.into_iter().filter_map(|n| match &self.graph[n] {
            Block::Resource(r) if r.resource.mode == Mode::Ephemeral => Some(r.clone()),
            _ => None,
        });
        resources.collect()
    }

    /// What can be reached from a node without going through a managed resource or a data source: each after one that
    /// leads to it, and after all that do if the graph has no cycles. Itself not included.
    fn reach(&self, start: NodeIndex, direction: Direction) -> Vec<NodeIndex> {
        let stands = |n: NodeIndex| match &self.graph[n] {
            Block::Resource(r) => r.resource.mode != Mode::Ephemeral,
            _ => false,
        };
        let next = |n| self.graph.neighbors_directed(n, direction);
        let mut seen = vec![false; self.graph.node_count()];
        seen[start.index()] = true;
        let mut order = Vec::new();
        let mut stack = vec![(start, next(start))];
        while let Some((node, neighbors)) = stack.last_mut() {
            match neighbors.next() {
                Some(n) if std::mem::replace(&mut seen[n.index()], true) => {}
                Some(n) if stands(n) => order.push(n),
                Some(n) => stack.push((n, next(n))),
                None => {
                    if *node != start {
                        order.push(*node);
                    }
                    stack.pop();
                }
            }
        }
        // What is left last was come to by all the others.
        order.reverse();
        order
    }

    /// The resources that a provider configuration manages.
    pub fn managed_by<'b>(&'b self, provider: &AbsProviderConfig) -> impl Iterator<Item = &'b ConfigResource> {
        let node = self.find(&Block::Provider(provider.clone()));
        let after = node
            .into_iter()
            .flat_map(|n| self.graph.neighbors_directed(n, Direction::Outgoing));
        after.filter_map(|n| match &self.graph[n] {
            Block::Resource(r) => Some(r),
            _ => None,
        })
    }

    fn cycles(&self, config: &Config) -> Diagnostics {
        let mut out = Diagnostics::new();
        for component in petgraph::algo::kosaraju_scc(&self.graph) {
            let looped = component.len() > 1 || self.connected.contains(&(component[0], component[0]));
            if !looped {
                continue;
            }
            let path = self.shortest_cycle(&component);
            let names: Vec<String> = path.iter().map(|n| self.graph[*n].to_string()).collect();
            let mut around = names.clone();
            around.extend(names.first().cloned());
            let mut diagnostic = Diagnostic::error(
                format!("Cycle: {}", names.join(", ")),
                format!(
                    "These objects refer to one another in a circle, so none of them can be evaluated first:\n  {}\n\nTo \
                     break the circle, remove one of these references.",
                    around.join("\n    is needed by ")
                ),
            );
            if let Some(range) = path.iter().find_map(|n| declared_at(config, &self.graph[*n])) {
                diagnostic = diagnostic.at(&range);
            }
            out.push(diagnostic);
        }
        out
    }

    fn shortest_cycle(&self, component: &[NodeIndex]) -> Vec<NodeIndex> {
        let inside: BTreeSet<NodeIndex> = component.iter().copied().collect();
        let Some(start) = component
            .iter()
            .copied()
            .min_by(|a, b| self.graph[*a].cmp(&self.graph[*b]))
        else {
            return Vec::new();
        };
        let mut came_from: HashMap<NodeIndex, NodeIndex> = HashMap::new();
        let mut queue = VecDeque::from([start]);
        while let Some(n) = queue.pop_front() {
            for next in self
                .graph
                .neighbors_directed(n, Direction::Outgoing)
                .filter(|x| inside.contains(x))
            {
                if next == start {
                    let mut path = vec![n];
                    let mut at = n;
                    while at != start {
                        at = came_from[&at];
                        path.push(at);
                    }
                    path.reverse();
                    return path;
                }
                came_from.entry(next).or_insert_with(|| {
                    queue.push_back(next);
                    n
                });
            }
        }
        component.to_vec()
    }
}

/// Where a block is written.
fn declared_at(root: &Config, block: &Block) -> Option<Range> {
    let find = |path: &Module| root.node(path);
    match block {
        Block::Variable(m, n) => find(m)?.module.variables.get(n).map(|v| v.range.clone()),
        Block::Local(m, n) => find(m)?.module.locals.get(n).map(|v| v.range.clone()),
        Block::Output(m, n) => find(m)?.module.outputs.get(n).map(|v| v.range.clone()),
        Block::Call(m, n) => find(m)?.module.module_calls.get(n).map(|v| v.range.clone()),
        Block::Check(m, n) => find(m)?.module.checks.get(n).map(|v| v.range.clone()),
        Block::Resource(r) => find(&r.module)?
            .module
            .resources
            .get(&r.resource)
            .map(|v| v.range.clone()),
        Block::Provider(_) => None,
    }
}

/// Draws the edges.
struct Edges<'a> {
    blocks: &'a mut Blocks,
    schemas: &'a Schemas,
    root: &'a Config,
    diagnostics: &'a mut Diagnostics,
    /// Modules that are referred to as a whole, and by which nodes.
    whole: Vec<(Module, NodeIndex)>,
    /// How many names were compared to find what undeclared ones could have meant.
    compared: usize,
}

/// The module that a reference means as a whole, and not one output of it.
fn whole_module<'c>(config: &'c ModuleNode, reference: &Reference) -> Option<&'c ModuleNode> {
    match &reference.subject {
        Referenceable::Module(name) | Referenceable::ModuleInstance(name, _) => config.children.get(name),
        // Instances by name may be written with a dot, too.
        Referenceable::ModuleOutput(name, addrs::InstanceKey::None, _) => {
            let call = config.module.module_calls.get(name)?;
            (call.count.is_some() || call.for_each.is_some()).then(|| config.children.get(name))?
        }
        _ => None,
    }
}

/// Comparing all names with all mistakes would take long where there are thousands of both; nobody reads that many.
const MOST_COMPARED: usize = 1_000_000;

impl Edges<'_> {
    /// The name nearest to one that is not declared, as long as not too many were looked for.
    fn near(&mut self, name: &str, names: &[&str]) -> Option<String> {
        if self.compared > MOST_COMPARED {
            return None;
        }
        self.compared += names.len();
        suggest(name, names.iter().copied()).map(str::to_owned)
    }

    /// The edges of one module and those below. `call` is the node of the call that leads here; `inherited` are the
    /// nodes that `depends_on` of calls on the way asks everything below to wait for.
    fn module(&mut self, config: &ModuleNode, call: Option<NodeIndex>, inherited: &[NodeIndex]) {
        let path = &config.path;
        let module = &config.module;
        let here = |edges: &mut Self, block: Block| {
            let node = edges.blocks.node(block);
            if let Some(call) = call {
                edges.blocks.connect(call, node);
            }
            node
        };
        for (name, variable) in &module.variables {
            let node = here(self, Block::Variable(path.clone(), name.clone()));
            for rule in &variable.validations {
                // A validation may name its own variable, which is no dependency.
                self.exprs(config, node, [&rule.condition, &rule.error_message]);
            }
        }
        for (name, local) in &module.locals {
            let node = here(self, Block::Local(path.clone(), name.clone()));
            self.exprs(config, node, [&local.expr]);
        }
        for (name, output) in &module.outputs {
            let node = here(self, Block::Output(path.clone(), name.clone()));
            self.exprs(config, node, [&output.expr]);
            self.exprs(
                config,
                node,
                output
                    .preconditions
                    .iter()
                    .flat_map(|r| [&r.condition, &r.error_message]),
            );
            for reference in &output.depends_on {
                self.depends_on(config, node, reference);
            }
        }
        for (name, check) in &module.checks {
            let node = here(self, Block::Check(path.clone(), name.clone()));
            self.exprs(
                config,
                node,
                check.asserts.iter().flat_map(|r| [&r.condition, &r.error_message]),
            );
        }
        for (local, provider) in &module.provider_configs {
            let address = config.provider(local);
            if address.module != *path {
                // A placeholder for what the caller passes in.
                continue;
            }
            let schema = self
                .schemas
                .providers
                .get(&address.provider)
                .map(|s| s.provider.block.clone());
            let node = here(self, Block::Provider(address));
            self.body(
                config,
                node,
                &provider.body,
                schema.as_deref().unwrap_or(&BlockSchema::default()),
            );
        }
        for resource in module.resources.values() {
            let node = here(self, Block::Resource(resource.address.in_module(path)));
            for first in inherited {
                self.blocks.connect(*first, node);
            }
            self.resource(config, node, resource);
        }
        for import in &module.imports {
            if let Some(node) = self.blocks.find(&Block::Resource(import.to_resource.clone())) {
                self.exprs(config, node, import.for_each.iter().chain([&import.id]));
            }
        }
        for (name, called) in &module.module_calls {
            let node = here(self, Block::Call(path.clone(), name.clone()));
            self.exprs(config, node, called.count.iter().chain(&called.for_each));
            let mut waits = inherited.to_vec();
            for reference in &called.depends_on {
                waits.extend(self.resolve(config, reference, true));
            }
            let Some(child) = config.children.get(name) else {
                continue;
            };
            for attribute in &called.inputs.attributes {
                let variable = Block::Variable(child.path.clone(), attribute.name.clone());
                if let Some(variable) = self.blocks.find(&variable) {
                    self.exprs(config, variable, [&attribute.expr]);
                }
            }
            for output in child.module.outputs.keys() {
                let output = self.blocks.node(Block::Output(child.path.clone(), output.clone()));
                for first in &waits {
                    self.blocks.connect(*first, output);
                }
            }
            self.module(child, Some(node), &waits);
        }
    }

    fn resource(&mut self, config: &ModuleNode, node: NodeIndex, resource: &Resource) {
        self.exprs(config, node, resource.count.iter().chain(&resource.for_each));
        let address = resource.address.in_module(&config.path);
        let provider = self.root.provider_for(&address);
        let schemas = self.schemas;
        let nothing = BlockSchema::default();
        let schema = schemas.resource(&provider.provider, resource.address.mode, &resource.address.ty);
        self.body(config, node, &resource.body, schema.map_or(&nothing, |s| &s.block));
        let provider = self.blocks.node(Block::Provider(provider));
        self.blocks.connect(provider, node);
        for reference in &resource.depends_on {
            self.depends_on(config, node, reference);
        }
        self.exprs(config, node, &resource.lifecycle.replace_triggered_by);
        let conditions = resource
            .lifecycle
            .preconditions
            .iter()
            .chain(&resource.lifecycle.postconditions);
        self.exprs(config, node, conditions.flat_map(|r| [&r.condition, &r.error_message]));
        for connection in resource
            .connection
            .iter()
            .chain(resource.provisioners.iter().filter_map(|p| p.connection.as_ref()))
        {
            self.body(config, node, &connection.body, &nothing);
        }
        for provisioner in &resource.provisioners {
            let schema = schemas.provisioners.get(&provisioner.ty);
            self.body(config, node, &provisioner.body, schema.map_or(&nothing, |s| &s.block));
        }
    }

    fn exprs<'e>(&mut self, config: &ModuleNode, node: NodeIndex, exprs: impl IntoIterator<Item = &'e Expr>) {
        for expr in exprs {
            let (references, problems) = references_in_expr(expr);
            self.diagnostics.extend(problems);
            self.references(config, node, &references);
        }
    }

    fn body(&mut self, config: &ModuleNode, node: NodeIndex, body: &Body, schema: &BlockSchema) {
        let (references, problems) = references_in_body(body, schema);
        self.diagnostics.extend(problems);
        self.references(config, node, &references);
    }

    fn references(&mut self, config: &ModuleNode, node: NodeIndex, references: &[Reference]) {
        for reference in references {
            let own_variable = match (&self.blocks.graph[node], &reference.subject) {
                (Block::Variable(m, n), Referenceable::Variable(v)) => *m == config.path && n == v,
                _ => false,
            };
            if own_variable {
                continue;
            }
            self.steps(config, node, reference);
            self.whole
                .extend(whole_module(config, reference).map(|m| (m.path.clone(), node)));
            for first in self.resolve(config, reference, false) {
                if first == node && matches!(self.blocks.graph[node], Block::Local(..)) {
                    self.diagnostics.push(
                        Diagnostic::error(
                            "Self-referencing local value",
                            format!("The value of {} cannot depend on itself.", self.blocks.graph[node]),
                        )
                        .at(&reference.range),
                    );
                    self.blocks.connect(first, node);
                } else if first == node && matches!(self.blocks.graph[node], Block::Resource(_)) {
                    self.diagnostics.push(
                        Diagnostic::error(
                            "Self-referential block",
                            format!(
                                "Configuration for {} may not refer to itself. To use an attribute of the object itself in \
                                 a provisioner, connection or postcondition, write \"self\".",
                                self.blocks.graph[node]
                            ),
                        )
                        .at(&reference.range),
                    );
                    self.blocks.connect(first, node);
                } else {
                    self.blocks.connect(first, node);
                }
            }
        }
    }

    /// Checks what follows a reference to a resource: a key exactly where the resource is repeated, then only what its
    /// schema has. And that the resource can be seen from here.
    fn steps(&mut self, config: &ModuleNode, node: NodeIndex, reference: &Reference) {
        let Some(block) = lang::checks::resource_of(&reference.subject).and_then(|r| config.module.resources.get(r))
        else {
            return;
        };
        if let Some(check) = &block.check {
            let inside = match &self.blocks.graph[node] {
                Block::Check(m, name) => *m == config.path && name == check,
                Block::Resource(r) => r.module == config.path && r.resource == block.address,
                _ => false,
            };
            if !inside {
                self.diagnostics.push(
                    Diagnostic::error(
                        "Reference to scoped resource",
                        format!(
                            "{} stands inside the check block \"{check}\", and can be referred to only there.",
                            block.address
                        ),
                    )
                    .at(&reference.range),
                );
                return;
            }
        }
        let repetition = match (&block.count, &block.for_each) {
            (Some(_), _) => Repetition::Count,
            (None, Some(_)) => Repetition::ForEach,
            (None, None) => Repetition::None,
        };
        let keyed = matches!(reference.subject, Referenceable::ResourceInstance(_));
        let problem = match (repetition, keyed, reference.remaining.first()) {
            (Repetition::None, true, _) => Some(unexpected_key(&block.address, &reference.range)),
            (Repetition::Count | Repetition::ForEach, false, Some(TraversalStep::Attribute { .. })) => {
                Some(missing_key(&block.address, repetition, &reference.range))
            }
            // A splat, or all instances.
            (Repetition::Count | Repetition::ForEach, false, _) => None,
            _ => {
                let provider = self.root.provider_for(&block.address.in_module(&config.path)).provider;
                let schema = self.schemas.resource(&provider, block.address.mode, &block.address.ty);
                schema.and_then(|s| block_steps(&s.block, &reference.remaining).err().map(|d| *d))
            }
        };
        self.diagnostics.extend(problem);
    }

    fn depends_on(&mut self, config: &ModuleNode, node: NodeIndex, reference: &Reference) {
        for first in self.resolve(config, reference, true) {
            if first != node {
                self.blocks.connect(first, node);
            }
        }
    }

    /// The nodes a reference leads to; `whole_modules` if a module stands for everything inside it.
    fn resolve(&mut self, config: &ModuleNode, reference: &Reference, whole_modules: bool) -> Vec<NodeIndex> {
        let path = &config.path;
        let module = &config.module;
        let found = |edges: &Self, block: Block| edges.blocks.find(&block).into_iter().collect::<Vec<_>>();
        let scope = if path.is_root() {
            "the root module".to_owned()
        } else {
            path.to_string()
        };
        match &reference.subject {
            Referenceable::Variable(name) => {
                if !module.variables.contains_key(name) {
                    let names: Vec<&str> = module.variables.keys().map(|n| &**n).collect();
                    let hint = match self.near(name, &names) {
                        Some(near) => did_you_mean(Some(&near)),
                        None => format!(" This variable can be declared with a variable \"{name}\" {{}} block."),
                    };
                    self.undeclared(
                        reference,
                        "input variable",
                        format!("An input variable with the name \"{name}\" has not been declared.{hint}"),
                    );
                }
                found(self, Block::Variable(path.clone(), name.clone()))
            }
            Referenceable::Local(name) => {
                if !module.locals.contains_key(name) {
                    let names: Vec<&str> = module.locals.keys().map(|n| &**n).collect();
                    let hint = did_you_mean(self.near(name, &names).as_deref());
                    self.undeclared(
                        reference,
                        "local value",
                        format!("A local value with the name \"{name}\" has not been declared.{hint}"),
                    );
                }
                found(self, Block::Local(path.clone(), name.clone()))
            }
            Referenceable::Resource(resource)
            | Referenceable::ResourceInstance(addrs::ResourceInstance { resource, .. }) => {
                if !module.resources.contains_key(resource) {
                    self.undeclared_resource(config, reference, resource, &scope);
                    return Vec::new();
                }
                found(self, Block::Resource(resource.in_module(path)))
            }
            Referenceable::Module(name)
            | Referenceable::ModuleInstance(name, _)
            | Referenceable::ModuleOutput(name, _, _) => {
                let Some(call) = self.blocks.find(&Block::Call(path.clone(), name.clone())) else {
                    let names: Vec<&str> = module.module_calls.keys().map(|n| &**n).collect();
                    let hint = did_you_mean(self.near(name, &names).as_deref());
                    self.undeclared(
                        reference,
                        "module",
                        format!("No module call named \"{name}\" is declared in {scope}.{hint}"),
                    );
                    return Vec::new();
                };
                let mut out = vec![call];
                let Some(child) = config.children.get(name) else {
                    return out;
                };
                match &reference.subject {
                    // An output that is not declared is an attribute that the module's object does not have: evaluation
                    // says so, and `try` and `can` may ask.
                    Referenceable::ModuleOutput(_, _, output) if whole_module(config, reference).is_none() => {
                        out.extend(self.blocks.find(&Block::Output(child.path.clone(), output.clone())));
                    }
                    _ => {
                        for output in child.module.outputs.keys() {
                            out.extend(self.blocks.find(&Block::Output(child.path.clone(), output.clone())));
                        }
                    }
                }
                if whole_modules {
                    out.extend(self.blocks.resources_below.get(&child.path).into_iter().flatten());
                }
                out
            }
            _ => Vec::new(),
        }
    }

    fn undeclared(&mut self, reference: &Reference, what: &str, detail: String) {
        self.diagnostics
            .push(Diagnostic::error(format!("Reference to undeclared {what}"), detail).at(&reference.range));
    }

    fn undeclared_resource(
        &mut self,
        config: &ModuleNode,
        reference: &Reference,
        resource: &addrs::Resource,
        scope: &str,
    ) {
        let (what, a) = match resource.mode {
            Mode::Managed => ("managed resource", "A"),
            Mode::Data => ("data resource", "A"),
            Mode::Ephemeral => ("ephemeral resource", "An"),
        };
        let addrs::Resource { ty, name, .. } = resource;
        let declared = config.module.resources.values();
        let candidates: Vec<String> = declared
            .filter(|r| r.address.mode == resource.mode && self.compared <= MOST_COMPARED)
            .map(|r| format!("{}.{}", r.address.ty, r.address.name))
            .collect();
        let names: Vec<&str> = candidates.iter().map(String::as_str).collect();
        let hint = match self.near(&format!("{ty}.{name}"), &names) {
            Some(near) => format!(" Did you mean {near}?"),
            None => {
                let swapped = addrs::Resource {
                    mode: if resource.mode == Mode::Managed {
                        Mode::Data
                    } else {
                        Mode::Managed
                    },
                    ..resource.clone()
                };
                match config.module.resources.get(&swapped) {
                    Some(_) => format!("\n\nDid you mean {swapped}?"),
                    None => String::new(),
                }
            }
        };
        self.undeclared(
            reference,
            "resource",
            format!("{a} {what} \"{ty}\" \"{name}\" has not been declared in {scope}.{hint}"),
        );
    }
}
