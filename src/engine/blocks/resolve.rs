//! Resolution of references to nodes.

use std::sync::Arc;

use addrs::Referenceable;
use config::ModuleNode;
use lang::scope::Reference;
use petgraph::graph::NodeIndex;

use super::Block;
use super::edges::{Edges, whole_module};
use super::undeclared;

impl Edges<'_> {
    /// Returns the nodes that a reference depends on, and reports a reference to an undeclared name.
    pub(super) fn resolve(
        &mut self,
        config: &ModuleNode,
        reference: &Reference,
        whole_modules: bool,
    ) -> Vec<NodeIndex> {
        self.diagnostics
            .extend(undeclared(config, reference, &mut self.compared));
        self.leads_to(config, reference, whole_modules)
    }

    /// Returns the nodes that a reference depends on. With `whole_modules`, a reference to a module also depends on all resources in it.
    pub(super) fn leads_to(&self, config: &ModuleNode, reference: &Reference, whole_modules: bool) -> Vec<NodeIndex> {
        let path = &config.path;
        let module = &config.module;
        match &reference.subject {
            Referenceable::Variable(name) => self.found(&Block::Variable(path.clone(), name.clone())),
            Referenceable::Local(name) => self.found(&Block::Local(path.clone(), name.clone())),
            Referenceable::Resource(resource)
            | Referenceable::ResourceInstance(addrs::ResourceInstance { resource, .. }) => {
                if !module.resources.contains_key(resource) {
                    return Vec::new();
                }
                self.found(&Block::Resource(resource.in_module(path)))
            }
            Referenceable::Module(name)
            | Referenceable::ModuleInstance(name, _)
            | Referenceable::ModuleOutput(name, _, _) => {
                let Some(call) = self.blocks.find(&Block::Call(path.clone(), name.clone())) else {
                    return Vec::new();
                };
                let mut out = vec![call];
                if let Some(child) = config.children.get(name) {
                    self.outputs_of(config, reference, child, &mut out);
                    if whole_modules {
                        out.extend(self.blocks.resources_below.get(&child.path).into_iter().flatten());
                    }
                }
                out
            }
            _ => Vec::new(),
        }
    }

    fn found(&self, block: &Block) -> Vec<NodeIndex> {
        self.blocks.find(block).into_iter().collect()
    }

    /// Adds the outputs of a called module that a reference depends on.
    fn outputs_of(&self, config: &ModuleNode, reference: &Reference, child: &ModuleNode, out: &mut Vec<NodeIndex>) {
        let mut add = |name: &Arc<str>| out.extend(self.blocks.find(&Block::Output(child.path.clone(), name.clone())));
        match &reference.subject {
            // An undeclared output gives an unsupported attribute error, which `try` and `can` can catch. Only evaluation knows whether
            // they do, so it reports the error.
            Referenceable::ModuleOutput(_, _, output) if whole_module(config, reference).is_none() => add(output),
            _ => child.module.outputs.keys().for_each(add),
        }
    }
}
