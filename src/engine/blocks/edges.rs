//! Drawing the edges: what each block refers to, and what is wrong with its references.

use std::collections::BTreeSet;

use addrs::{Mode, Module, Referenceable};
use config::{Config, ModuleNode, Resource};
use lang::checks::{Repetition, block_steps, missing_key, unexpected_key};
use lang::refs::{references_in_body, references_in_expr};
use lang::scope::Reference;
use petgraph::graph::NodeIndex;
use schema::BlockSchema;
use syntax::ast::{Body, Expr, TraversalStep};
use syntax::content::{did_you_mean, suggest};
use syntax::{Diagnostic, Diagnostics};

use super::{Block, Blocks};
use provider::Schemas;

/// Draws the edges.
pub(super) struct Edges<'a> {
    blocks: &'a mut Blocks,
    schemas: &'a Schemas,
    root: &'a Config,
    diagnostics: &'a mut Diagnostics,
    /// Modules that are referred to as a whole, and by which nodes.
    pub(super) whole: BTreeSet<(Module, NodeIndex)>,
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

impl<'a> Edges<'a> {
    /// Ready to draw the edges of a configuration whose nodes are there. Problems go to `diagnostics`.
    pub(super) fn new(
        blocks: &'a mut Blocks,
        root: &'a Config,
        schemas: &'a Schemas,
        diagnostics: &'a mut Diagnostics,
    ) -> Edges<'a> {
        Edges {
            blocks,
            schemas,
            root,
            diagnostics,
            whole: BTreeSet::new(),
            compared: 0,
        }
    }

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
    pub(super) fn module(&mut self, config: &ModuleNode, call: Option<NodeIndex>, inherited: &[NodeIndex]) {
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
                schema.and_then(|s| block_steps(&s.block, &reference.remaining).err())
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
    pub(super) fn resolve(
        &mut self,
        config: &ModuleNode,
        reference: &Reference,
        whole_modules: bool,
    ) -> Vec<NodeIndex> {
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
                if !module.variables.contains_key(name) && !module.losses.may_declare(name) {
                    let names: Vec<&str> = module.variables.keys().map(|n| &**n).collect();
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
                found(self, Block::Variable(path.clone(), name.clone()))
            }
            Referenceable::Local(name) => {
                if !module.locals.contains_key(name) && !module.losses.may_declare(name) {
                    let names: Vec<&str> = module.locals.keys().map(|n| &**n).collect();
                    let hint = did_you_mean(self.near(name, &names).as_deref());
                    self.undeclared(
                        reference,
                        "local value",
                        format!("This module has no local value \"{name}\".{hint}"),
                    );
                }
                found(self, Block::Local(path.clone(), name.clone()))
            }
            Referenceable::Resource(resource)
            | Referenceable::ResourceInstance(addrs::ResourceInstance { resource, .. }) => {
                if !module.resources.contains_key(resource) {
                    if !module.losses.may_declare(&resource.name) {
                        self.undeclared_resource(config, reference, resource, &scope);
                    }
                    return Vec::new();
                }
                found(self, Block::Resource(resource.in_module(path)))
            }
            Referenceable::Module(name)
            | Referenceable::ModuleInstance(name, _)
            | Referenceable::ModuleOutput(name, _, _) => {
                let Some(call) = self.blocks.find(&Block::Call(path.clone(), name.clone())) else {
                    if module.losses.may_declare(name) {
                        return Vec::new();
                    }
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
