//! The graph of the configuration's blocks, built from references before evaluation. A node is a block of a module, not an instance: the
//! size of the graph does not depend on `count`. Resources that exist only in the state are nodes, too. An edge leads from a block to one
//! that depends on it. Building the graph finds cycles and undeclared references.

pub(crate) mod actions;
pub(crate) mod create_before_destroy;
mod cycles;
mod edges;
mod list_steps;
mod queries;
mod resolve;
mod static_context;
mod undeclared;
mod whole;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex};

use addrs::{AbsProviderConfig, ConfigAction, ConfigResource, Module};
use config::{Config, ModuleNode};
use lang::refs::references_in_expr;
use petgraph::graph::{DiGraph, NodeIndex};
use state::State;
use syntax::Diagnostics;
use syntax::ast::Expr;

use provider::Schemas;

use edges::{Checked, Edges};
pub(crate) use undeclared::undeclared;

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Block {
    Variable(Module, Arc<str>),
    /// A local value.
    Local(Module, Arc<str>),
    /// An output value.
    Output(Module, Arc<str>),
    /// Repetition arguments of a module call. The module is the one that contains the call.
    Call(Module, Arc<str>),
    /// A provider configuration, with a block or implied.
    Provider(AbsProviderConfig),
    /// A resource of the configuration, or one that exists only in the state.
    Resource(ConfigResource),
    Check(Module, Arc<str>),
    Action(ConfigAction),
}

impl Block {
    /// Returns the module of the block; none for provider configurations.
    pub(crate) fn module(&self) -> Option<&Module> {
        match self {
            Block::Variable(module, _)
            | Block::Local(module, _)
            | Block::Output(module, _)
            | Block::Call(module, _)
            | Block::Check(module, _) => Some(module),
            Block::Resource(resource) => Some(&resource.module),
            Block::Action(action) => Some(&action.module),
            Block::Provider(_) => None,
        }
    }
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
            Block::Action(a) => a.fmt(f),
        }
    }
}

/// Graph of a configuration's blocks.
#[derive(Debug, Default)]
pub struct Blocks {
    /// Blocks; an edge leads from a dependency to a dependent.
    pub graph: DiGraph<Block, ()>,
    index: HashMap<Block, NodeIndex>,
    /// Existing edges, to find duplicates. A search in the graph would be slow, because a provider configuration has an edge to each of
    /// its resources.
    connected: HashSet<(NodeIndex, NodeIndex)>,
    resources_below: BTreeMap<Module, Vec<NodeIndex>>,
    /// References to a whole module: the module, and the node of the block with the reference.
    pub(crate) whole_modules: BTreeSet<(Module, NodeIndex)>,
    /// Pairs of a block in the `depends_on` of a module call, and that module call. Everything in the called module depends on the block.
    pub(crate) waiting_calls: Vec<(NodeIndex, NodeIndex)>,
    /// Provider configurations whose functions are called (OpenTofu).
    pub(crate) called_providers: HashSet<NodeIndex>,
    /// Cache of [`Blocks::resources_before_module`]: every data source that depends on a module needs the set.
    before_modules: Mutex<HashMap<Module, Arc<BTreeSet<ConfigResource>>>>,
}

/// A resource of the state, with the provider configuration that manages it.
pub type StateResource = (ConfigResource, AbsProviderConfig);

fn resources_in(state: &State) -> Vec<StateResource> {
    let resources = state.resources.iter();
    resources
        .map(|(resource, stored)| (resource.config(), stored.provider.clone()))
        .collect()
}

/// Provider blocks whose errors are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProviderBlocks {
    /// All provider blocks, for `validate`, which checks the whole configuration.
    All,
    /// Only provider blocks that are used. As in Terraform, a plan does not evaluate the others, so they may lack required arguments.
    Used,
}

impl Blocks {
    /// Builds the graph. Errors are undeclared references, references of a kind that is not allowed, and cycles.
    pub fn build(config: &Config, schemas: &Schemas, in_state: &[StateResource]) -> Result<Blocks, Diagnostics> {
        let (blocks, diagnostics) = Blocks::build_with_errors(config, schemas, in_state);
        diagnostics.into_result(blocks)
    }

    pub fn build_with_state(config: &Config, schemas: &Schemas, state: &State) -> Result<Blocks, Diagnostics> {
        Blocks::build(config, schemas, &resources_in(state))
    }

    /// Builds the graph for an import. An import evaluates only the repetition arguments of managed resources, so errors in their other
    /// references are not reported.
    pub fn build_for_import(config: &Config, schemas: &Schemas, state: &State) -> Result<Blocks, Diagnostics> {
        let in_state = resources_in(state);
        let checked = (Checked::ExceptManaged, ProviderBlocks::Used);
        let (blocks, diagnostics) = Blocks::build_checking(config, schemas, &in_state, checked);
        diagnostics.into_result(blocks)
    }

    /// Builds the graph even if there are errors. References with errors have no edges.
    pub(crate) fn build_with_errors(
        config: &Config,
        schemas: &Schemas,
        in_state: &[StateResource],
    ) -> (Blocks, Diagnostics) {
        Blocks::build_checking(config, schemas, in_state, (Checked::All, ProviderBlocks::Used))
    }

    /// Builds the graph for `validate`, even if there are errors. `judged` selects the provider blocks whose errors are reported.
    pub(crate) fn build_to_validate(
        config: &Config,
        schemas: &Schemas,
        judged: ProviderBlocks,
    ) -> (Blocks, Diagnostics) {
        Blocks::build_checking(config, schemas, &[], (Checked::All, judged))
    }

    fn build_checking(
        config: &Config,
        schemas: &Schemas,
        in_state: &[StateResource],
        (checked, judged): (Checked, ProviderBlocks),
    ) -> (Blocks, Diagnostics) {
        let mut blocks = Blocks::default();
        blocks.add_nodes(&config.root);
        for (resource, provider) in in_state {
            let node = blocks.node(Block::Resource(resource.clone()));
            // For a resource in the configuration, its block decides which provider configuration it uses.
            if config.resource(resource).is_none() {
                let provider = blocks.node(Block::Provider(provider.clone()));
                blocks.connect(provider, node);
            }
        }
        let mut diagnostics = Diagnostics::new();
        let mut edges = Edges::new(&mut blocks, config, schemas, &mut diagnostics);
        edges.checked = checked;
        edges.module(&config.root, None, &[]);
        // Last, because `Edges::actions` needs all other edges to find cycles.
        edges.actions(&config.root);
        let (whole, of_providers) = (edges.whole, edges.of_providers);
        for (node, problems) in of_providers {
            if judged == ProviderBlocks::All || blocks.is_used(node) {
                diagnostics.extend(problems);
            }
        }
        diagnostics.extend(blocks.cycles(config));
        // Graphs are also shown for invalid configurations. `connect_whole` and `connect_named` need a graph without cycles.
        if !diagnostics.has_errors() || !petgraph::algo::is_cyclic_directed(&blocks.graph) {
            blocks.connect_whole(config, &whole);
            blocks.connect_named();
        }
        blocks.whole_modules.extend(whole);
        (blocks, diagnostics)
    }

    /// Returns the errors in the references of an expression that is evaluated in a module but is not part of its files.
    pub(crate) fn check_references(
        &mut self,
        config: &Config,
        schemas: &Schemas,
        place: &ModuleNode,
        expr: &Expr,
    ) -> Diagnostics {
        let (references, mut diagnostics) = references_in_expr(expr);
        let mut edges = Edges::new(self, config, schemas, &mut diagnostics);
        for reference in &references {
            edges.resolve(place, reference, false);
        }
        diagnostics
    }

    /// Returns true if other blocks depend on the block of this node.
    fn is_used(&self, node: NodeIndex) -> bool {
        let mut after = self.graph.neighbors_directed(node, petgraph::Direction::Outgoing);
        after.next().is_some()
    }

    /// Returns the provider configurations that no block depends on.
    pub(crate) fn unused_providers(&self) -> HashSet<AbsProviderConfig> {
        let nodes = self.graph.node_indices();
        nodes
            .filter_map(|node| match &self.graph[node] {
                Block::Provider(provider) if !self.is_used(node) => Some(provider.clone()),
                _ => None,
            })
            .collect()
    }

    fn node(&mut self, block: Block) -> NodeIndex {
        if let Some(at) = self.index.get(&block) {
            return *at;
        }
        let at = self.graph.add_node(block.clone());
        if let Block::Resource(r) = &block {
            // A reference to a whole module is a reference to all resources in it and in its child modules.
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
        for action in module.actions.keys() {
            self.node(Block::Action(action.in_module(path)));
        }
        for name in module.module_calls.keys() {
            self.node(Block::Call(path.clone(), name.clone()));
        }
        for child in config.children.values() {
            self.add_nodes(child);
        }
    }
}
