//! Edges of the graph: the references of each block, and errors in them.

use std::collections::BTreeSet;

use addrs::{Mode, Module, Referenceable};
use config::{CheckRule, Config, ModuleCall, ModuleNode, Resource};
use lang::checks::{Repetition, block_steps, missing_key, unexpected_key};
use lang::refs::{
    ProviderFunction, provider_functions, provider_functions_in_body, references_in_expr, references_of_body,
};
use lang::scope::Reference;
use petgraph::graph::NodeIndex;
use schema::BlockSchema;
use syntax::ast::{Body, Expr, TraversalStep};
use syntax::{Diagnostic, Diagnostics};

use super::list_steps::list_steps;
use super::static_context::dynamic_reference;
use super::{Block, Blocks};
use crate::functions::configuration_called;
use provider::Schemas;

/// Blocks whose references are checked.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Checked {
    All,
    /// All blocks except managed resources, of which only `count` and `for_each` are checked.
    ExceptManaged,
}

/// Builder of the edges of a graph.
pub(super) struct Edges<'a> {
    pub(super) blocks: &'a mut Blocks,
    schemas: &'a Schemas,
    root: &'a Config,
    pub(super) diagnostics: &'a mut Diagnostics,
    pub(super) checked: Checked,
    /// References to a whole module: the module, and the node of the block with the reference.
    pub(super) whole: BTreeSet<(Module, NodeIndex)>,
    /// Number of names that were compared for suggestions.
    pub(super) compared: usize,
    /// Problems of each provider block. They are reported only if the block is used, since an unused one is not evaluated.
    pub(super) of_providers: Vec<(NodeIndex, Vec<Diagnostic>)>,
}

/// Returns the called module if a reference is to the whole module rather than to one of its outputs.
pub(super) fn whole_module<'c>(config: &'c ModuleNode, reference: &Reference) -> Option<&'c ModuleNode> {
    match &reference.subject {
        Referenceable::Module(name) | Referenceable::ModuleInstance(name, _) => config.children.get(name),
        // With `for_each`, what looks like an attribute of a module call may be an instance key.
        Referenceable::ModuleOutput(name, addrs::InstanceKey::None, _) => {
            let call = config.module.module_calls.get(name)?;
            (call.count.is_some() || call.for_each.is_some()).then(|| config.children.get(name))?
        }
        _ => None,
    }
}

/// Tells whether the errors of references are reported when the graph is built.
#[derive(Clone, Copy, PartialEq)]
enum When {
    /// References that are evaluated whenever their block is, so their errors are certain now.
    Always,
    /// References in the content of a dynamic block, which is evaluated only if the block has elements. Evaluation reports their errors.
    Expanded,
}

/// Returns the expressions of a check rule: its condition and its error message.
fn rule_exprs(rule: &CheckRule) -> [&Expr; 2] {
    [&rule.condition, &rule.error_message]
}

impl<'a> Edges<'a> {
    /// Creates the builder for a graph that has the nodes of the configuration. Problems are added to `diagnostics`.
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
            checked: Checked::All,
            whole: BTreeSet::new(),
            compared: 0,
            of_providers: Vec::new(),
        }
    }

    /// Returns the configuration with the lifetime `'a`, so that the configuration can be read while `self` is borrowed mutably to add
    /// edges.
    pub(super) fn root(&self) -> &'a Config {
        self.root
    }

    pub(super) fn schemas(&self) -> &'a Schemas {
        self.schemas
    }

    /// Adds the edges of a module and of the modules below. `call` is the node of the module call. `inherited` are the blocks in the
    /// `depends_on` arguments of the module calls that lead here; every resource below depends on them.
    pub(super) fn module(&mut self, config: &ModuleNode, call: Option<NodeIndex>, inherited: &[NodeIndex]) {
        self.values(config, call);
        self.provider_configs(config, call);
        for resource in config.module.resources.values() {
            let node = self.block_in(call, Block::Resource(resource.address.in_module(&config.path)));
            for first in inherited {
                self.blocks.connect(*first, node);
            }
            self.resource(config, node, resource);
        }
        // The arguments of an import block are evaluated when the import target is planned, so the target depends on their references.
        for import in &config.module.imports {
            if let Some(node) = self.blocks.find(&Block::Resource(import.target(&config.path))) {
                self.exprs(config, node, import.for_each.iter().chain([import.by.expr()]));
            }
        }
        for (name, called) in &config.module.module_calls {
            let node = self.block_in(call, Block::Call(config.path.clone(), name.clone()));
            self.module_call(config, node, called, inherited);
        }
    }

    /// Returns the node of a block, with an edge from the call of its module, on which it depends.
    fn block_in(&mut self, call: Option<NodeIndex>, block: Block) -> NodeIndex {
        let node = self.blocks.node(block);
        if let Some(call) = call {
            self.blocks.connect(call, node);
        }
        node
    }

    /// Adds the edges of the variables, local values, outputs and checks of a module.
    fn values(&mut self, config: &ModuleNode, call: Option<NodeIndex>) {
        let path = &config.path;
        let module = &config.module;
        for (name, variable) in &module.variables {
            let node = self.block_in(call, Block::Variable(path.clone(), name.clone()));
            // A validation refers to its own variable, which must not become an edge.
            self.exprs(config, node, variable.validations.iter().flat_map(rule_exprs));
        }
        for (name, local) in &module.locals {
            let node = self.block_in(call, Block::Local(path.clone(), name.clone()));
            self.exprs(config, node, [&local.expr]);
        }
        for (name, output) in &module.outputs {
            let node = self.block_in(call, Block::Output(path.clone(), name.clone()));
            self.exprs(config, node, [&output.expr]);
            self.exprs(config, node, output.preconditions.iter().flat_map(rule_exprs));
            for reference in &output.depends_on {
                self.depends_on(config, node, reference);
            }
        }
        for (name, check) in &module.checks {
            let node = self.block_in(call, Block::Check(path.clone(), name.clone()));
            self.exprs(config, node, check.asserts.iter().flat_map(rule_exprs));
        }
    }

    fn provider_configs(&mut self, config: &ModuleNode, call: Option<NodeIndex>) {
        for (local, provider) in &config.module.provider_configs {
            let address = config.provider(local);
            if address.module != config.path {
                // The caller passes this provider configuration in, so the block only declares it.
                continue;
            }
            let schemas = self.schemas;
            let schema = schemas.providers.get(&address.provider).map(|s| &s.provider.block);
            let node = self.block_in(call, Block::Provider(address));
            let nothing = BlockSchema::default();
            let found = self.diagnostics.0.len();
            if let Some(for_each) = &provider.for_each {
                self.exprs(config, node, [for_each]);
                let dynamic = dynamic_reference(self.root, config, for_each);
                self.diagnostics.extend(dynamic);
            }
            self.body(config, node, &provider.body, schema.map_or(&nothing, |schema| schema));
            let own = self.diagnostics.0.split_off(found);
            self.of_providers.push((node, own));
        }
    }

    /// Adds the edges of a module call, and those of the module that it calls.
    fn module_call(&mut self, config: &ModuleNode, node: NodeIndex, called: &ModuleCall, inherited: &[NodeIndex]) {
        self.exprs(config, node, called.repetition());
        let mut waits = inherited.to_vec();
        for reference in &called.depends_on {
            let first = self.resolve(config, reference, true);
            self.note_module(config, node, reference);
            self.blocks
                .waiting_calls
                .extend(first.iter().map(|first| (*first, node)));
            waits.extend(first);
        }
        let Some(child) = config.children.get(&called.name) else {
            return;
        };
        for attribute in &called.inputs.attributes {
            let variable = Block::Variable(child.path.clone(), attribute.name.clone());
            if let Some(variable) = self.blocks.find(&variable) {
                // The argument is evaluated in the caller, but its references are dependencies of the variable.
                self.exprs(config, variable, [&attribute.expr]);
            }
        }
        for output in child.module.outputs.keys() {
            let output = self.blocks.node(Block::Output(child.path.clone(), output.clone()));
            for first in &waits {
                // `depends_on` of a call applies to everything in the module, including outputs that use no resource.
                self.blocks.connect(*first, output);
            }
        }
        self.module(child, Some(node), &waits);
    }

    fn resource(&mut self, config: &ModuleNode, node: NodeIndex, resource: &Resource) {
        self.exprs(
            config,
            node,
            resource.repetition().chain(&resource.lifecycle.prevent_destroy_if),
        );
        let reported = self.diagnostics.0.len();
        let address = resource.address.in_module(&config.path);
        let provider = self.root.provider_for(&address);
        let schemas = self.schemas;
        let nothing = BlockSchema::default();
        let schema = schemas.resource(&provider.provider, resource.address.mode, &resource.address.ty);
        self.body(config, node, &resource.body, schema.map_or(&nothing, |s| &s.block));
        // Each request about an object of the resource contains the value of `provider_meta`.
        if let Some(meta) = config.module.provider_meta.get(&provider.provider) {
            let schema = schemas.providers.get(&provider.provider);
            let schema = schema.and_then(|schema| schema.provider_meta.as_ref());
            self.body(config, node, &meta.body, schema.map_or(&nothing, |s| &s.block));
        }
        let provider = self.blocks.node(Block::Provider(provider));
        self.blocks.connect(provider, node);
        let reference = resource.provider_ref.as_ref();
        if let Some((place, key)) = self.root.provider_key(config, &resource.local_provider(), reference) {
            self.exprs(place, node, [key]);
        }
        for reference in &resource.depends_on {
            self.depends_on(config, node, reference);
        }
        self.exprs(config, node, &resource.lifecycle.replace_triggered_by);
        if let Some(list) = &resource.list {
            self.exprs(config, node, list.include_resource.iter().chain(&list.limit));
        }
        let conditions = resource
            .lifecycle
            .preconditions
            .iter()
            .chain(&resource.lifecycle.postconditions);
        self.exprs(config, node, conditions.flat_map(rule_exprs));
        self.triggers(config, node, resource);
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
        if self.checked == Checked::ExceptManaged && resource.address.mode == Mode::Managed {
            self.diagnostics.0.truncate(reported);
        }
    }

    pub(super) fn exprs<'e>(
        &mut self,
        config: &ModuleNode,
        node: NodeIndex,
        exprs: impl IntoIterator<Item = &'e Expr>,
    ) {
        for expr in exprs {
            let (references, problems) = references_in_expr(expr);
            self.diagnostics.extend(problems);
            self.references(config, node, &references, When::Always);
            self.calls(config, node, provider_functions(expr));
        }
    }

    /// Connects a block with the provider configurations whose functions it calls.
    pub(super) fn calls(&mut self, config: &ModuleNode, node: NodeIndex, calls: Vec<ProviderFunction>) {
        for call in calls {
            let schemas = self.schemas;
            let in_schema = |provider: &addrs::Provider, function: &str| {
                let schema = schemas.providers.get(provider);
                schema.is_some_and(|schema| schema.functions.contains_key(function))
            };
            if let Some(called) = configuration_called(self.root, config, (&call.provider, &call.function), in_schema) {
                let provider = self.blocks.node(Block::Provider(called.address));
                self.blocks.called_providers.insert(provider);
                self.blocks.connect(provider, node);
            }
        }
    }

    fn body(&mut self, config: &ModuleNode, node: NodeIndex, body: &Body, schema: &BlockSchema) {
        let references = references_of_body(body, schema);
        self.diagnostics.extend(references.problems);
        self.references(config, node, &references.always, When::Always);
        self.references(config, node, &references.in_content, When::Expanded);
        self.calls(config, node, provider_functions_in_body(body));
    }

    fn references(&mut self, config: &ModuleNode, node: NodeIndex, references: &[Reference], when: When) {
        for reference in references {
            // The validation of a variable may refer to the variable itself.
            let own_variable = match (&self.blocks.graph[node], &reference.subject) {
                (Block::Variable(m, n), Referenceable::Variable(v)) => *m == config.path && n == v,
                _ => false,
            };
            if own_variable {
                continue;
            }
            let leads_to = match when {
                When::Always => {
                    self.steps(config, node, reference);
                    self.resolve(config, reference, false)
                }
                When::Expanded => self.leads_to(config, reference, false),
            };
            self.whole
                .extend(whole_module(config, reference).map(|m| (m.path.clone(), node)));
            for first in leads_to {
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

    /// Checks a reference to a resource: the resource is in scope, the key of the reference fits the `count` or `for_each` of the
    /// resource, and the attributes are in the schema.
    pub(super) fn steps(&mut self, config: &ModuleNode, node: NodeIndex, reference: &Reference) {
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
            // A splat, or a reference to the value of all instances.
            (Repetition::Count | Repetition::ForEach, false, _) => None,
            _ => {
                let provider = self
                    .root
                    .provider_for(&block.address.in_module(&config.path))
                    .provider
                    .clone();
                let ty = &block.address.ty;
                if block.address.mode == Mode::List {
                    let listed = self.schemas.resource(&provider, Mode::Managed, ty);
                    let listed = listed.map(|schema| &*schema.block);
                    self.diagnostics
                        .extend(list_steps(&reference.remaining, listed, &reference.range));
                    return;
                }
                let schema = self.schemas.resource(&provider, block.address.mode, ty);
                schema.and_then(|s| block_steps(&s.block, &reference.remaining).err())
            }
        };
        self.diagnostics.extend(problem);
    }

    /// If this reference in the `depends_on` of a block names a whole module, records the module with the node of the block.
    fn note_module(&mut self, config: &ModuleNode, node: NodeIndex, reference: &Reference) {
        let module = whole_module(config, reference).map(|module| (module.path.clone(), node));
        self.blocks.whole_modules.extend(module);
    }

    fn depends_on(&mut self, config: &ModuleNode, node: NodeIndex, reference: &Reference) {
        self.note_module(config, node, reference);
        for first in self.resolve(config, reference, true) {
            if first != node {
                self.blocks.connect(first, node);
            }
        }
    }
}
