//! Resolution of references: the nodes they lead to, and errors for what is not declared.

use std::sync::Arc;

use addrs::{Mode, Module, Referenceable};
use config::ModuleNode;
use lang::scope::Reference;
use petgraph::graph::NodeIndex;
use syntax::Diagnostic;
use syntax::content::{did_you_mean, suggest};

use super::Block;
use super::edges::{Edges, whole_module};

/// A limit for suggestions: comparing all names with all undeclared ones takes long where there are thousands of both.
const MOST_COMPARED: usize = 1_000_000;

/// The name of a module in messages.
fn module_name(path: &Module) -> String {
    if path.is_root() {
        "the root module".to_owned()
    } else {
        path.to_string()
    }
}

impl Edges<'_> {
    /// The nodes that a reference leads to. With `whole_modules`, a reference to a module leads to all resources in it, too.
    pub(super) fn resolve(
        &mut self,
        config: &ModuleNode,
        reference: &Reference,
        whole_modules: bool,
    ) -> Vec<NodeIndex> {
        let path = &config.path;
        let module = &config.module;
        match &reference.subject {
            Referenceable::Variable(name) => {
                if !module.variables.contains_key(name) {
                    self.undeclared_variable(config, reference, name);
                }
                self.found(&Block::Variable(path.clone(), name.clone()))
            }
            Referenceable::Local(name) => {
                if !module.locals.contains_key(name) {
                    self.undeclared_local(config, reference, name);
                }
                self.found(&Block::Local(path.clone(), name.clone()))
            }
            Referenceable::Resource(resource)
            | Referenceable::ResourceInstance(addrs::ResourceInstance { resource, .. }) => {
                if !module.resources.contains_key(resource) {
                    self.undeclared_resource(config, reference, resource);
                    return Vec::new();
                }
                self.found(&Block::Resource(resource.in_module(path)))
            }
            Referenceable::Module(name)
            | Referenceable::ModuleInstance(name, _)
            | Referenceable::ModuleOutput(name, _, _) => {
                let Some(call) = self.blocks.find(&Block::Call(path.clone(), name.clone())) else {
                    self.undeclared_module(config, reference, name);
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

    /// Adds the outputs of a called module that a reference leads to.
    fn outputs_of(&self, config: &ModuleNode, reference: &Reference, child: &ModuleNode, out: &mut Vec<NodeIndex>) {
        let mut add = |name: &Arc<str>| out.extend(self.blocks.find(&Block::Output(child.path.clone(), name.clone())));
        match &reference.subject {
            // An output that is not declared is an unsupported attribute, which `try` and `can` handle: evaluation reports it.
            Referenceable::ModuleOutput(_, _, output) if whole_module(config, reference).is_none() => add(output),
            _ => child.module.outputs.keys().for_each(add),
        }
    }

    /// The declared name that is nearest to an undeclared one, up to a number of comparisons.
    fn near(&mut self, name: &str, names: &[&str]) -> Option<String> {
        if self.compared > MOST_COMPARED {
            return None;
        }
        self.compared += names.len();
        suggest(name, names.iter().copied()).map(str::to_owned)
    }

    fn undeclared_variable(&mut self, config: &ModuleNode, reference: &Reference, name: &str) {
        if config.module.losses.may_declare(name) {
            return;
        }
        let names: Vec<&str> = config.module.variables.keys().map(|n| &**n).collect();
        let hint = match self.near(name, &names) {
            Some(near) => did_you_mean(Some(&near)),
            None => format!(" To declare it, add variable \"{name}\" {{}} to this module."),
        };
        self.undeclared(
            reference,
            "input variable",
            format!("This module has no input variable \"{name}\".{hint}"),
        );
    }

    fn undeclared_local(&mut self, config: &ModuleNode, reference: &Reference, name: &str) {
        if config.module.losses.may_declare(name) {
            return;
        }
        let names: Vec<&str> = config.module.locals.keys().map(|n| &**n).collect();
        let hint = did_you_mean(self.near(name, &names).as_deref());
        self.undeclared(
            reference,
            "local value",
            format!("This module has no local value \"{name}\".{hint}"),
        );
    }

    fn undeclared_module(&mut self, config: &ModuleNode, reference: &Reference, name: &str) {
        if config.module.losses.may_declare(name) {
            return;
        }
        let names: Vec<&str> = config.module.module_calls.keys().map(|n| &**n).collect();
        let hint = did_you_mean(self.near(name, &names).as_deref());
        let scope = module_name(&config.path);
        self.undeclared(
            reference,
            "module",
            format!("No module call named \"{name}\" is declared in {scope}.{hint}"),
        );
    }

    fn undeclared(&mut self, reference: &Reference, what: &str, detail: String) {
        self.diagnostics
            .push(Diagnostic::error(format!("Reference to undeclared {what}"), detail).at(&reference.range));
    }

    fn undeclared_resource(&mut self, config: &ModuleNode, reference: &Reference, resource: &addrs::Resource) {
        if config.module.losses.may_declare(&resource.name) {
            return;
        }
        let (what, a) = match resource.mode {
            Mode::Managed => ("managed resource", "A"),
            Mode::Data => ("data resource", "A"),
            Mode::Ephemeral => ("ephemeral resource", "An"),
            Mode::List => ("list resource", "A"),
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
            format!(
                "{a} {what} \"{ty}\" \"{name}\" has not been declared in {}.{hint}",
                module_name(&config.path)
            ),
        );
    }
}
