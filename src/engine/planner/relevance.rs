//! Relevant attributes: those on which the planned changes depend. The plan shows only drift of these attributes. References in the
//! configuration of changed resources are followed through variables, local values and outputs to resources, and from the referenced
//! attributes through their own configuration. Nothing is evaluated: the instances of a resource have the same references, so each block is
//! searched once for each instance of its module.

use std::collections::{BTreeMap, HashSet};

use addrs::{AbsResource, AbsResourceInstance, InstanceKey, ModuleInstance, Referenceable, Resource};
use config::Config;
use cty::{Path, Step};
use lang::refs::{Reference, references_in_body, references_in_expr};
use schema::{BlockSchema, Nesting};
use syntax::ast::{Body, Expr, TraversalStep};

use super::relevant_path::known_steps;
use crate::plan::{Action, Mode, OutputChange, ResourceChange};
use provider::Schemas;
use std::sync::Arc;

/// A reference that has not been followed yet.
struct PendingReference {
    module: ModuleInstance,
    /// Resource that contains the reference, to resolve `count` and `each`.
    within: Option<Resource>,
    reference: Reference,
}

struct Search<'s> {
    config: &'s Config,
    schemas: &'s Schemas,
    seen: HashSet<String>,
    pending: Vec<PendingReference>,
    attributes: BTreeMap<String, (AbsResourceInstance, Path)>,
}

/// Returns the relevant attributes, sorted by address.
pub(super) fn attributes(
    config: &Config,
    schemas: &Schemas,
    mode: Mode,
    (changes, dropped_data): (&[ResourceChange], &[AbsResourceInstance]),
    outputs: &BTreeMap<Arc<str>, OutputChange>,
    modules: &[(ModuleInstance, Arc<str>)],
) -> Vec<(AbsResourceInstance, Path)> {
    let mut search = Search {
        config,
        schemas,
        seen: HashSet::new(),
        pending: Vec::new(),
        attributes: BTreeMap::new(),
    };
    let changed: HashSet<AbsResource> = changes
        .iter()
        .filter(|c| c.action != Action::NoOp)
        .map(|c| &c.address)
        .chain(dropped_data)
        .map(AbsResourceInstance::containing_resource)
        .collect();
    for resource in &changed {
        search.resource(resource, &[]);
    }
    let root = ModuleInstance::root();
    for name in outputs.iter().filter(|(_, c)| c.action != Action::NoOp).map(|(n, _)| n) {
        search.output(&root, name);
    }
    if mode != Mode::Destroy {
        // The state does not store outputs of modules, so they all count as changed.
        for (module, name) in modules {
            search.output(module, name);
        }
    }
    while let Some(found) = search.pending.pop() {
        search.follow(&found);
    }
    let mut out: Vec<_> = search.attributes.into_iter().collect();
    out.sort_by(|(ka, (a, _)), (kb, (b, _))| a.cmp(b).then_with(|| ka.cmp(kb)));
    out.into_iter().map(|(_, found)| found).collect()
}

/// Converts the steps of a reference to a path, up to the first splat.
fn path(steps: &[TraversalStep]) -> Path {
    Path(
        steps
            .iter()
            .map_while(|s| match s {
                TraversalStep::Attribute { name, .. } => Some(Step::Attribute(name.clone())),
                TraversalStep::Index { key, .. } => Some(Step::Index(key.clone())),
                TraversalStep::Splat { .. } => None,
            })
            .collect(),
    )
}

impl<'s> Search<'s> {
    fn add(&mut self, module: &ModuleInstance, within: Option<&Resource>, references: Vec<Reference>) {
        for reference in references {
            let at = path(&reference.remaining);
            let within = within
                .filter(|_| matches!(reference.subject, Referenceable::Count(_) | Referenceable::Each(_)))
                .cloned();
            let inside = within.as_ref().map(ToString::to_string).unwrap_or_default();
            if !self
                .seen
                .insert(format!("{module} {inside} {:?} {at}", reference.subject))
            {
                continue;
            }
            let resource = match &reference.subject {
                Referenceable::Resource(r) => Some((r, InstanceKey::None)),
                Referenceable::ResourceInstance(i) => Some((&i.resource, i.key.clone())),
                _ => None,
            };
            // A dynamic block without elements may contain references to undeclared resources, which have no schema.
            if let Some((resource, key)) = resource
                && let Some(schema) = self.schema(&resource.in_module(&module.module()))
            {
                let (address, at) = (resource.absolute(module).instance(key), known_steps(schema, at));
                self.attributes.insert(format!("{address} {at}"), (address, at));
            }
            self.pending.push(PendingReference {
                module: module.clone(),
                within,
                reference,
            });
        }
    }

    /// Returns the schema of a declared resource.
    fn schema(&self, address: &addrs::ConfigResource) -> Option<&'s BlockSchema> {
        self.config.resource(address)?;
        let provider = self.config.provider_for(address).provider.clone();
        let (mode, ty) = (address.resource.mode, &address.resource.ty);
        Some(&self.schemas.resource(&provider, mode, ty)?.block)
    }

    fn expression(&mut self, module: &ModuleInstance, expr: &Expr) {
        self.add(module, None, references_in_expr(expr).0);
    }

    fn output(&mut self, module: &ModuleInstance, name: &str) {
        let config = self.config;
        let output = config.node(&module.module()).and_then(|n| n.module.outputs.get(name));
        if let Some(output) = output {
            self.expression(module, &output.expr);
        }
    }

    /// Searches the configuration of a resource, limited to the part at these steps.
    fn resource(&mut self, resource: &AbsResource, steps: &[TraversalStep]) {
        let config = self.config;
        let address = resource.config();
        let Some(block) = config.resource(&address) else { return };
        let Some(schema) = self.schema(&address) else { return };
        let mut references = Vec::new();
        part(&block.body, schema, steps, &mut references);
        self.add(&resource.module, Some(&resource.resource), references);
    }

    fn follow(&mut self, found: &PendingReference) {
        let config = self.config;
        let module = &found.module;
        let node = config.node(&module.module());
        let Some(node) = node else { return };
        match &found.reference.subject {
            Referenceable::Variable(name) => {
                let Some((parent, step)) = module.parent() else { return };
                let call = config
                    .node(&parent.module())
                    .and_then(|n| n.module.module_calls.get(&step.name));
                if let Some(attribute) = call.and_then(|c| c.inputs.attribute(name)) {
                    self.expression(&parent, &attribute.expr);
                }
            }
            Referenceable::Local(name) => {
                if let Some(local) = node.module.locals.get(name) {
                    self.expression(module, &local.expr);
                }
            }
            Referenceable::ModuleOutput(name, key, output) => {
                self.output(&module.child(name.clone(), key.clone()), output);
            }
            Referenceable::Module(name) => self.outputs(node, &module.child(name.clone(), InstanceKey::None), name),
            Referenceable::ModuleInstance(name, key) => {
                self.outputs(node, &module.child(name.clone(), key.clone()), name);
            }
            Referenceable::Count(_) | Referenceable::Each(_) => {
                let block = found.within.as_ref().and_then(|r| node.module.resources.get(r));
                for expr in block.into_iter().flat_map(|b| b.repetition()) {
                    self.expression(module, expr);
                }
            }
            Referenceable::Resource(resource)
            | Referenceable::ResourceInstance(addrs::ResourceInstance { resource, .. }) => {
                self.resource(&resource.absolute(module), &found.reference.remaining);
            }
            _ => {}
        }
    }

    fn outputs(&mut self, node: &config::ModuleNode, instance: &ModuleInstance, name: &str) {
        let names = node.children.get(name).map(|child| child.module.outputs.keys());
        for output in names.into_iter().flatten() {
            self.output(instance, output);
        }
    }
}

/// Collects the references in the part of a body at these steps, as far as the steps can be followed without evaluation.
fn part(body: &Body, schema: &BlockSchema, steps: &[TraversalStep], out: &mut Vec<Reference>) {
    let name = match steps.first() {
        Some(TraversalStep::Attribute { name, .. }) => name.clone(),
        Some(TraversalStep::Index { key, .. }) => match key.as_arc_str() {
            Some(name) => name.clone(),
            None => return,
        },
        Some(TraversalStep::Splat { .. }) | None => {
            out.extend(references_in_body(body, schema).0);
            return;
        }
    };
    if schema.attributes.contains_key(&name) {
        if let Some(attribute) = body.attribute(&name) {
            out.extend(references_in_expr(&attribute.expr).0);
        }
        return;
    }
    let Some(nested) = schema.blocks.get(&name) else { return };
    let dynamic = body
        .blocks
        .iter()
        .any(|b| &*b.ty == "dynamic" && b.labels.first().is_some_and(|l| *l.text == *name));
    if dynamic {
        // Which of the generated blocks the step selects cannot be known without evaluation, so all references of the dynamic block count.
        let only = BlockSchema {
            attributes: BTreeMap::default(),
            blocks: [(name.clone(), nested.clone())].into_iter().collect(),
            ..schema.clone()
        };
        out.extend(references_in_body(body, &only).0);
        return;
    }
    let blocks = body.blocks.iter().filter(|b| *b.ty == *name);
    let rest = steps.get(1..).unwrap_or_default();
    match nested.nesting {
        Nesting::Single | Nesting::Group => blocks.for_each(|b| part(&b.body, &nested.block, rest, out)),
        Nesting::List => {
            let index = match rest.first() {
                Some(TraversalStep::Index { key, .. }) => key.as_number().and_then(cty::Number::to_i64),
                _ => None,
            };
            let inner = rest.get(1..).unwrap_or_default();
            for (i, block) in blocks.enumerate() {
                match index {
                    Some(index) if i64::try_from(i) != Ok(index) => {}
                    Some(_) => part(&block.body, &nested.block, inner, out),
                    None => part(&block.body, &nested.block, &[], out),
                }
            }
        }
        Nesting::Map | Nesting::Set => blocks.for_each(|b| part(&b.body, &nested.block, &[], out)),
    }
}
