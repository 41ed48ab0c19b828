//! The graph of the configuration's blocks, built from references before evaluation. A node is a block of a module, not an
//! instance: the size of the graph does not depend on `count`. Resources that only the state has are nodes, too. An edge leads
//! from a block to one that depends on it. Building the graph finds cycles and undeclared references.

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
    /// A module call, named by the calling module: its repetition arguments.
    Call(Module, Arc<str>),
    /// A provider configuration, with a block or implied.
    Provider(AbsProviderConfig),
    /// A resource of the configuration, or one that only the state has.
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
    /// Existing edges, to find duplicates: a provider configuration has an edge to each of its resources.
    connected: HashSet<(NodeIndex, NodeIndex)>,
    resources_below: BTreeMap<Module, Vec<NodeIndex>>,
    /// Modules that are referred to as a whole, and the blocks with the references.
    pub(crate) whole_modules: BTreeSet<(Module, NodeIndex)>,
    /// Blocks that `depends_on` of module calls names, and the calls. Everything in the called modules depends on these
    /// blocks.
    pub(crate) waiting_calls: Vec<(NodeIndex, NodeIndex)>,
    /// Provider configurations whose functions are called (OpenTofu).
    pub(crate) called_providers: HashSet<NodeIndex>,
    /// Resources before each module, as far as they were requested: every data source that waits for a module requests
    /// them.
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

/// Provider blocks whose mistakes are errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProviderBlocks {
    /// All provider blocks: the command `validate` judges the whole configuration.
    All,
    /// Provider blocks that are used. A plan evaluates no other provider blocks, as in Terraform, so their arguments
    /// may be missing.
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

    /// Builds the graph for an import, which does not evaluate managed resources, so that errors in their references
    /// are not reported.
    pub fn build_for_import(config: &Config, schemas: &Schemas, state: &State) -> Result<Blocks, Diagnostics> {
        let in_state = resources_in(state);
        let checked = (Checked::ExceptManaged, ProviderBlocks::Used);
        let (blocks, diagnostics) = Blocks::build_checking(config, schemas, &in_state, checked);
        diagnostics.into_result(blocks)
    }

    /// Builds the graph also if there are errors, of the references without errors.
    pub(crate) fn build_with_errors(
        config: &Config,
        schemas: &Schemas,
        in_state: &[StateResource],
    ) -> (Blocks, Diagnostics) {
        Blocks::build_checking(config, schemas, in_state, (Checked::All, ProviderBlocks::Used))
    }

    /// Builds the graph of a configuration that is validated, also if there are errors.
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
        // Added last, because these edges depend on all others; see `Edges::actions`.
        edges.actions(&config.root);
        let (whole, of_providers) = (edges.whole, edges.of_providers);
        for (node, problems) in of_providers {
            if judged == ProviderBlocks::All || blocks.is_used(node) {
                diagnostics.extend(problems);
            }
        }
        diagnostics.extend(blocks.cycles(config));
        // Graphs are also shown for invalid configurations. References to whole modules are followed only if the
        // graph has no cycle.
        if !diagnostics.has_errors() || !petgraph::algo::is_cyclic_directed(&blocks.graph) {
            blocks.connect_whole(config, &whole);
            blocks.connect_named();
        }
        blocks.whole_modules.extend(whole);
        (blocks, diagnostics)
    }

    /// Returns the errors in the references of an expression that is evaluated in a module, without being a part of its
    /// files.
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

    /// Returns true if other blocks depend on this one.
    fn is_used(&self, node: NodeIndex) -> bool {
        let mut after = self.graph.neighbors_directed(node, petgraph::Direction::Outgoing);
        after.next().is_some()
    }

    /// Returns the provider configurations that no resource and no action uses.
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
