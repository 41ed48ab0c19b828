//! Edges of actions: from the references in their configuration, and to the resources that trigger them.

use std::collections::HashSet;

use addrs::{Action, Module};
use config::{ActionTrigger, ModuleNode, Resource};
use lang::refs::{references_in_expr, references_of_body};
use petgraph::graph::NodeIndex;
use petgraph::visit::Dfs;
use schema::BlockSchema;
use syntax::content::{did_you_mean, suggest};
use syntax::{Diagnostic, Range};

use super::Block;
use super::edges::Edges;

impl Edges<'_> {
    /// Adds the edges to a resource from the actions that it triggers, and from the references in the conditions of the triggers.
    pub(super) fn triggers(&mut self, config: &ModuleNode, node: NodeIndex, resource: &Resource) {
        for trigger in &resource.lifecycle.action_triggers {
            self.exprs(config, node, &trigger.condition);
            for action in &trigger.actions {
                match self.blocks.find(&Block::Action(action.action.in_module(&config.path))) {
                    Some(first) => self.blocks.connect(first, node),
                    None => self.undeclared_action(config, &action.action, &action.range),
                }
            }
        }
    }

    fn undeclared_action(&mut self, config: &ModuleNode, action: &Action, range: &Range) {
        // The action may be declared in a part of the file that could not be parsed. That error has been reported.
        if config.module.losses.may_declare(&action.name) {
            return;
        }
        let names: Vec<String> = config.module.actions.keys().map(ToString::to_string).collect();
        let hint = suggest(&action.to_string(), names.iter().map(String::as_str));
        self.diagnostics.push(
            Diagnostic::error(
                "action_trigger actions references non-existent action",
                format!("This module has no {action}.{}", did_you_mean(hint)),
            )
            .at(range),
        );
    }

    /// Adds the edges to the actions of a module and of the modules below. An action may refer to the resource that triggers it, so a
    /// reference that would close a cycle with the triggering resource is left out. Any other cycle is an error. To find cycles, all other
    /// edges must exist before.
    pub(super) fn actions(&mut self, config: &ModuleNode) {
        for action in config.module.actions.values() {
            let address = action.address.in_module(&config.path);
            let Some(node) = self.blocks.find(&Block::Action(address.clone())) else {
                continue;
            };
            // An action has instances only if its module has some, so it depends on the module call.
            if let Some(call) = config.path.parent() {
                let (parent, name) = call;
                if let Some(call) = self.blocks.find(&Block::Call(parent, name.clone())) {
                    self.blocks.connect(call, node);
                }
            }
            let Some(provider) = self.root().provider_for_action(&address) else {
                continue;
            };
            // The type may be unknown to the provider, which is reported when the action is visited. Its references are followed
            // nevertheless, with an empty schema.
            let nothing = BlockSchema::default();
            let schema = self.schemas().action(&provider.provider, &action.address.ty);
            let schema = schema.map_or(&nothing, |s| &s.block);
            let (mut references, mut in_content) = (Vec::new(), Vec::new());
            for expr in action.count.iter().chain(&action.for_each) {
                let (found, problems) = references_in_expr(expr);
                references.extend(found);
                self.diagnostics.extend(problems);
            }
            if let Some(body) = &action.config {
                let found = references_of_body(body, schema);
                references.extend(found.always);
                in_content = found.in_content;
                self.diagnostics.extend(found.problems);
            }
            let mut firsts = Vec::new();
            for reference in &references {
                self.steps(config, node, reference);
                let leads_to = self.resolve(config, reference, false);
                firsts.extend(leads_to.into_iter().map(|first| (first, reference.range.clone())));
            }
            for reference in &in_content {
                let leads_to = self.leads_to(config, reference, false);
                firsts.extend(leads_to.into_iter().map(|first| (first, reference.range.clone())));
            }
            let local = action.local_provider();
            if let Some((place, key)) = self.root().provider_key(config, &local, action.provider_ref.as_ref()) {
                for reference in references_in_expr(key).0 {
                    let leads_to = self.resolve(place, &reference, false);
                    firsts.extend(leads_to.into_iter().map(|first| (first, key.range().clone())));
                }
            }
            let provider = self.blocks.node(Block::Provider(provider));
            firsts.push((provider, action.range.clone()));
            self.connect_to_action(node, &config.path, &action.address, firsts);
        }
        for child in config.children.values() {
            self.actions(child);
        }
    }

    /// Adds the edges to an action from the targets of its references, each of which comes with the range of its reference. A target that
    /// depends on the action gets no edge, and is an error unless it triggers the action.
    fn connect_to_action(
        &mut self,
        node: NodeIndex,
        module: &Module,
        action: &Action,
        firsts: Vec<(NodeIndex, Range)>,
    ) {
        // The dependents are collected once, because the edges added here lead to the action and so do not change its dependents.
        let mut after: HashSet<NodeIndex> = HashSet::new();
        let mut search = Dfs::new(&self.blocks.graph, node);
        while let Some(found) = search.next(&self.blocks.graph) {
            after.insert(found);
        }
        for (first, range) in firsts {
            if !after.contains(&first) {
                self.blocks.connect(first, node);
                continue;
            }
            let block = &self.blocks.graph[first];
            let calls =
                matches!(block, Block::Resource(r) if self.root().resource(r).is_some_and(|r| calls(r, action)));
            if !calls {
                let summary = format!(
                    "action reference cycle involving {} and {block}",
                    action.in_module(module)
                );
                let detail = "The configuration of the action refers to an object that depends on the action. It can refer to the \
                              resource that triggers the action only as \"caller\".";
                self.diagnostics.push(Diagnostic::error(summary, detail).at(&range));
            }
        }
    }
}

/// Returns true if a resource triggers an action of its module.
pub(crate) fn calls(resource: &Resource, action: &Action) -> bool {
    let refers = |trigger: &ActionTrigger| trigger.actions.iter().any(|a| a.action == *action);
    resource.lifecycle.action_triggers.iter().any(refers)
}
