//! Traces the values of a block: from the expression of each argument through its references, down to variables, resources
//! and literals.

use std::collections::BTreeSet;
use std::sync::Arc;

use addrs::Referenceable;
use config::Config;
use config::model::{ModuleNode, Resource};
use config::values::{ValueSource, VariableValues};
use lang::refs::{reference, traversals_except};
use schema::BlockSchema;
use syntax::ast::{Body, Expr};
use syntax::{Diagnostics, Range, SourceMap};

/// Limit of the length of a chain of references.
const DEEPEST: usize = 12;
/// Limit of the references that are traced for one argument.
const MOST: usize = 500;

/// Origin of one argument's value.
#[derive(Debug)]
pub(super) struct Origin {
    /// Argument, prefixed by the enclosing blocks: `ebs_block_device.size`.
    pub name: String,
    /// Source range; `None` for computed attributes.
    pub place: Option<Range>,
    /// Expression, unless the schema makes the value sensitive.
    pub text: Option<String>,
    /// References of the expression.
    pub sources: Vec<Source>,
}

/// Reference in an expression.
#[derive(Debug)]
pub(super) struct Source {
    /// Reference as the module writes it.
    pub reference: String,
    /// Description of the referenced object, or of how its value was set.
    pub about: String,
    /// Source range of its declaration, or of the expression that sets its value.
    pub place: Option<Range>,
    /// References of the expression that sets the object's value.
    pub sources: Vec<Source>,
}

/// Traces references down to variables, resources and literals.
pub(super) struct Tracer<'t> {
    pub config: &'t Config,
    pub values: &'t VariableValues,
    pub files: &'t SourceMap,
    /// True if the values of variables are those of a saved plan, which does not record how they were set.
    pub planned: bool,
    /// References that were resolved already, by module.
    seen: BTreeSet<(String, String)>,
}

impl<'t> Tracer<'t> {
    pub(super) fn new(
        config: &'t Config,
        values: &'t VariableValues,
        files: &'t SourceMap,
        planned: bool,
    ) -> Tracer<'t> {
        Tracer {
            config,
            values,
            files,
            planned,
            seen: BTreeSet::new(),
        }
    }

    /// Returns the origins of a resource's values: its repetition, arguments and computed attributes.
    pub(super) fn resource(&mut self, node: &ModuleNode, resource: &Resource, schema: &BlockSchema) -> Vec<Origin> {
        let mut out = Vec::new();
        for (name, expr) in [
            ("count", &resource.count),
            ("for_each", &resource.for_each),
            ("enabled", &resource.lifecycle.enabled),
        ] {
            if let Some(expr) = expr {
                out.push(self.expression(node, name.to_owned(), expr, false, &[]));
            }
        }
        self.body(node, &resource.body, schema, "", &[], &mut out);
        for (name, attribute) in &schema.attributes {
            // An attribute whose type is a list of objects can also be written as blocks of its name.
            let written = resource.body.attribute(name).is_some() || resource.body.blocks.iter().any(|b| b.ty == *name);
            if attribute.computed && !written {
                out.push(Origin {
                    name: name.to_string(),
                    place: None,
                    text: None,
                    sources: Vec::new(),
                });
            }
        }
        out
    }

    fn body(
        &mut self,
        node: &ModuleNode,
        body: &Body,
        schema: &BlockSchema,
        prefix: &str,
        iterators: &[Arc<str>],
        out: &mut Vec<Origin>,
    ) {
        let nothing = BlockSchema::default();
        // Problems of the body are dropped: validation reports them.
        let body = &*lang::body::resolve(body, schema, &mut Diagnostics::new());
        for attribute in &body.attributes {
            let secret = schema
                .attributes
                .get(&attribute.name)
                .is_some_and(|a| a.sensitive || a.write_only);
            out.push(self.expression(
                node,
                format!("{prefix}{}", attribute.name),
                &attribute.expr,
                secret,
                iterators,
            ));
        }
        for block in &body.blocks {
            // A provider may have a block type named "dynamic". Blocks of that type are not loops.
            if &*block.ty != "dynamic" || schema.blocks.contains_key("dynamic") {
                let inner = schema.blocks.get(&block.ty).map_or(&nothing, |nested| &nested.block);
                self.body(
                    node,
                    &block.body,
                    inner,
                    &format!("{prefix}{}.", block.ty),
                    iterators,
                    out,
                );
                continue;
            }
            let ty = block.labels.first().map_or("", |label| &*label.text);
            let inner = schema.blocks.get(ty).map_or(&nothing, |nested| &nested.block);
            let named = block.body.attribute("iterator").and_then(|a| a.expr.as_keyword());
            // Without `iterator`, the symbol has the name of the block type.
            let inside: Vec<Arc<str>> = iterators.iter().cloned().chain([named.unwrap_or(ty).into()]).collect();
            if let Some(each) = block.body.attribute("for_each") {
                out.push(self.expression(node, format!("{prefix}{ty} (for_each)"), &each.expr, false, iterators));
            }
            for content in block.body.blocks.iter().filter(|b| &*b.ty == "content") {
                self.body(node, &content.body, inner, &format!("{prefix}{ty}."), &inside, out);
            }
        }
    }

    fn expression(
        &mut self,
        node: &ModuleNode,
        name: String,
        expr: &Expr,
        secret: bool,
        iterators: &[Arc<str>],
    ) -> Origin {
        // Every argument is explained completely, even if another one has the same origins.
        self.seen.clear();
        Origin {
            name,
            place: Some(expr.range().clone()),
            text: (!secret).then(|| self.text(expr.range())).flatten(),
            sources: self.sources(node, expr, iterators, DEEPEST),
        }
    }

    /// Returns the source text of a range; `None` if the text of the file is not known.
    pub(super) fn text(&self, range: &Range) -> Option<String> {
        let file = self.files.get(&range.file)?;
        let from = usize::try_from(range.start.byte).ok()?;
        let to = usize::try_from(range.end.byte).ok()?;
        file.get(from..to).map(str::to_owned)
    }

    fn sources(&mut self, node: &ModuleNode, expr: &Expr, iterators: &[Arc<str>], depth: usize) -> Vec<Source> {
        let mut out = Vec::new();
        for traversal in traversals_except(expr, iterators) {
            let Ok(found) = reference(traversal) else { continue };
            let name = found.subject.to_string();
            // Each reference is shown once per argument: configurations can have cycles, and shared origins would
            // multiply.
            if self.seen.len() >= MOST || !self.seen.insert((node.path.to_string(), name.clone())) {
                continue;
            }
            out.push(self.source(node, name, &found.subject, depth));
        }
        out
    }

    fn source(&mut self, node: &ModuleNode, name: String, subject: &Referenceable, depth: usize) -> Source {
        let module = &node.module;
        let source = |about: &str, place: Option<&Range>| Source {
            reference: name.clone(),
            about: about.to_owned(),
            place: place.cloned(),
            sources: Vec::new(),
        };
        let further = depth.checked_sub(1);
        match subject {
            Referenceable::Variable(variable) => self.variable(node, variable, name.clone(), further),
            Referenceable::Local(local) => match module.locals.get(local) {
                Some(local) => Source {
                    sources: further.map_or_else(Vec::new, |depth| self.sources(node, &local.expr, &[], depth)),
                    ..source("local value", Some(&local.range))
                },
                None => source("not declared", None),
            },
            Referenceable::ModuleOutput(call, _, output) => {
                let child = node.children.get(call);
                match child.and_then(|child| Some((child, child.module.outputs.get(output)?))) {
                    Some((child, output)) => Source {
                        sources: further.map_or_else(Vec::new, |depth| self.sources(child, &output.expr, &[], depth)),
                        ..source("output value", Some(&output.range))
                    },
                    None => source("output value", None),
                }
            }
            Referenceable::Resource(resource) => source(kind(resource.mode), range_of(node, resource)),
            Referenceable::ResourceInstance(instance) => {
                source(kind(instance.resource.mode), range_of(node, &instance.resource))
            }
            Referenceable::Module(call) | Referenceable::ModuleInstance(call, _) => {
                source("module", module.module_calls.get(call).map(|call| &call.range))
            }
            Referenceable::Count(_) => source("the number of the instance", None),
            Referenceable::Each(_) => source("the key or element of the instance", None),
            Referenceable::Path(_) => source("a directory", None),
            Referenceable::Terraform(_) => source("a fact about this run", None),
            _ => source("the object itself", None),
        }
    }

    /// Returns how the value of a variable was set: by the user, by the calling block, or by its default.
    fn variable(&mut self, node: &ModuleNode, variable: &str, reference: String, further: Option<usize>) -> Source {
        let declared = node.module.variables.get(variable).map(|declared| &declared.range);
        let source = |about: String, place: Option<&Range>, sources| Source {
            reference,
            about,
            place: place.cloned(),
            sources,
        };
        if let Some(call) = self.config.call(&node.path) {
            let Some(given) = call.inputs.attribute(variable) else {
                return source("default of the variable".to_owned(), declared, Vec::new());
            };
            let parent = node.path.parent().and_then(|(parent, _)| self.config.node(&parent));
            let sources = match (parent, further) {
                (Some(parent), Some(depth)) => self.sources(parent, &given.expr, &[], depth),
                _ => Vec::new(),
            };
            let about = format!("argument of {}", node.path);
            return source(about, Some(given.expr.range()), sources);
        }
        // A plan has values, but not their origins.
        if self.planned {
            return source("value in the saved plan".to_owned(), declared, Vec::new());
        }
        let (about, place) = match self.values.get(variable).map(|value| &value.source) {
            Some(ValueSource::Environment) => (format!("environment variable TF_VAR_{variable}"), declared),
            Some(ValueSource::File(range)) => ("file of variables".to_owned(), Some(range)),
            Some(ValueSource::Flag) => ("option -var".to_owned(), declared),
            Some(ValueSource::Workspace) => ("value kept by the workspace".to_owned(), declared),
            Some(ValueSource::Prompt) => ("answer to a question".to_owned(), declared),
            Some(ValueSource::Plan) => ("value in the saved plan".to_owned(), declared),
            Some(ValueSource::Default) => ("default of the variable".to_owned(), declared),
            None if declared.is_none() => ("not declared".to_owned(), None),
            None => ("variable that has no value yet".to_owned(), declared),
        };
        source(about, place, Vec::new())
    }
}

fn kind(mode: addrs::Mode) -> &'static str {
    match mode {
        addrs::Mode::Managed => "resource",
        addrs::Mode::Data => "data source",
        addrs::Mode::Ephemeral => "ephemeral resource",
        addrs::Mode::List => "list",
    }
}

fn range_of<'n>(node: &'n ModuleNode, resource: &addrs::Resource) -> Option<&'n Range> {
    node.module.resources.get(resource).map(|resource| &resource.range)
}

/// Returns the references to a resource in its module, with the name of the block or value that contains each.
pub(super) fn uses(
    node: &ModuleNode,
    wanted: &addrs::Resource,
    schema_of: impl Fn(&Resource) -> BlockSchema,
) -> Vec<(String, Range)> {
    let module = &node.module;
    let mut out = Vec::new();
    let nothing = BlockSchema::default();
    let mut add = |owner: String, exprs: &[&Expr], body: Option<(&Body, &BlockSchema)>| {
        let own = exprs.iter().flat_map(|expr| lang::refs::references_in_expr(expr).0);
        let of_body = body.map(|(body, schema)| lang::refs::references_in_body(body, schema).0);
        for found in own.chain(of_body.into_iter().flatten()) {
            let subject = match &found.subject {
                Referenceable::Resource(resource) => resource,
                Referenceable::ResourceInstance(instance) => &instance.resource,
                _ => continue,
            };
            if subject == wanted {
                out.push((owner.clone(), found.range.clone()));
            }
        }
    };
    for local in module.locals.values() {
        add(format!("local.{}", local.name), &[&local.expr], None);
    }
    for output in module.outputs.values() {
        add(format!("output.{}", output.name), &[&output.expr], None);
    }
    for call in module.module_calls.values() {
        let exprs: Vec<&Expr> = call.repetition().collect();
        add(format!("module.{}", call.name), &exprs, Some((&call.inputs, &nothing)));
    }
    // References of a resource to itself are left out: they explain nothing.
    for resource in module.resources.values().filter(|resource| resource.address != *wanted) {
        let triggers = &resource.lifecycle.replace_triggered_by;
        let exprs: Vec<&Expr> = resource.repetition().chain(triggers).collect();
        let schema = schema_of(resource);
        add(resource.address.to_string(), &exprs, Some((&resource.body, &schema)));
    }
    out
}
