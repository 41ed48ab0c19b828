//! Static references: the objects that an expression or a block body refers to, found without evaluation.

use std::sync::Arc;

use addrs::program::Mode as Tool;
use addrs::{Action, InstanceKey, Mode, Referenceable, Resource};
use cty::Value;
use syntax::ast::{Body, Expr, ObjectKey, TemplatePart, Traversal, TraversalStep};
use syntax::{Diagnostic, Diagnostics, Edit, Range};

use crate::resolve::resolve;
pub use crate::scope::Reference;
use schema::BlockSchema;

/// Roots that later versions of the language may define.
const RESERVED: &[&str] = &["template", "lazy", "arg"];

/// Returns the object that a traversal refers to, as specifically as its static steps determine it: with an instance
/// key, down to the output of a module. Dependency graphs are built from this form.
pub fn reference(traversal: &Traversal) -> Result<Reference, Diagnostic> {
    let mut whole = whole_reference(traversal)?;
    let Some(first) = whole.remaining.first().cloned() else {
        return Ok(whole);
    };
    match whole.subject {
        Referenceable::Resource(resource) => {
            whole.subject = match &first {
                TraversalStep::Index { key, range } => {
                    whole.remaining.remove(0);
                    whole.range = whole.range.to(range);
                    Referenceable::ResourceInstance(resource.instance(instance_key(key, range, "resource")?))
                }
                _ => Referenceable::Resource(resource),
            };
        }
        Referenceable::Action(action) => {
            whole.subject = match &first {
                TraversalStep::Index { key, range } => {
                    whole.remaining.remove(0);
                    whole.range = whole.range.to(range);
                    Referenceable::ActionInstance(action.instance(instance_key(key, range, "action")?))
                }
                _ => Referenceable::Action(action),
            };
            if let Some(further) = whole.remaining.first() {
                return Err(Diagnostic::error(
                    "Unexpected attribute in action reference",
                    "An action has no value, so it has no attributes that could be referred to.",
                )
                .at(further.range()));
            }
        }
        Referenceable::Module(name) => {
            let mut key = InstanceKey::None;
            let mut next = Some(first);
            if let Some(TraversalStep::Index { key: k, range }) = &next {
                key = instance_key(k, range, "module")?;
                whole.remaining.remove(0);
                whole.range = whole.range.to(range);
                next = whole.remaining.first().cloned();
            }
            whole.subject = match next {
                None => Referenceable::ModuleInstance(name, key),
                Some(TraversalStep::Attribute { name: output, range }) => {
                    whole.remaining.remove(0);
                    whole.range = whole.range.to(&range);
                    Referenceable::ModuleOutput(name, key, output)
                }
                // A splat over instances refers to all of them.
                Some(TraversalStep::Splat { .. }) if key.is_none() => Referenceable::Module(name),
                Some(other) => {
                    return Err(Diagnostic::error(
                        "Invalid reference",
                        "Module instance objects do not support this operation.",
                    )
                    .at(other.range()));
                }
            };
        }
        _ => {}
    }
    Ok(whole)
}

/// Returns the object that a traversal refers to, with resources and modules as a whole: instance keys and output names
/// are among the remaining steps. Evaluation looks up values in this form.
pub fn whole_reference(traversal: &Traversal) -> Result<Reference, Diagnostic> {
    let root = &traversal.root;
    let steps = traversal.steps.as_slice();
    let single = |make: fn(Arc<str>) -> Referenceable| -> Result<Reference, Diagnostic> {
        let invalid = |detail: &str, at: &Range| {
            Diagnostic::error("Invalid reference", format!("The \"{root}\" object {detail}")).at(at)
        };
        match steps.first() {
            None => Err(invalid(
                "is not a value by itself: write a dot and the name of one of its attributes after it.",
                &traversal.root_range,
            )),
            Some(TraversalStep::Attribute { name, range }) => Ok(Reference {
                subject: make(name.clone()),
                range: traversal.root_range.to(range),
                remaining: steps[1..].to_vec(),
            }),
            Some(other) => Err(invalid("does not support this operation.", other.range())),
        }
    };
    match &**root {
        "var" => single(Referenceable::Variable),
        "local" => single(Referenceable::Local),
        "count" => single(Referenceable::Count),
        "each" => single(Referenceable::Each),
        "path" => single(Referenceable::Path),
        "terraform" => single(Referenceable::Terraform),
        "tofu" if Tool::current().has_opentofu() => single(Referenceable::Terraform),
        "module" => single(Referenceable::Module),
        "self" => Ok(Reference {
            subject: Referenceable::SelfRef,
            range: traversal.root_range.clone(),
            remaining: steps.to_vec(),
        }),
        "caller" => Ok(Reference {
            subject: Referenceable::Caller,
            range: traversal.root_range.clone(),
            remaining: steps.to_vec(),
        }),
        "action" => action(traversal),
        "data" => prefixed_resource(traversal, Mode::Data, "the data source type"),
        "ephemeral" => prefixed_resource(traversal, Mode::Ephemeral, "the ephemeral resource type"),
        "list" => prefixed_resource(traversal, Mode::List, "the resource type"),
        "resource" => prefixed_resource(traversal, Mode::Managed, "the resource type"),
        word if RESERVED.contains(&word) => Err(Diagnostic::error(
            "Reserved symbol name",
            format!(
                "The name \"{word}\" is reserved for later versions of the language. If it is a resource type here, \
                 write \"resource.{word}\"."
            ),
        )
        .at(&traversal.root_range)),
        _ => resource(traversal, Mode::Managed, root.clone(), steps),
    }
}

/// Reads a reference to an action, with its key among the remaining steps.
fn action(traversal: &Traversal) -> Result<Reference, Diagnostic> {
    let steps = traversal.steps.as_slice();
    let invalid = |detail: &str, at: &Range| Err(Diagnostic::error("Invalid reference", detail).at(at));
    match steps {
        [
            TraversalStep::Attribute { name: ty, .. },
            TraversalStep::Attribute { name, range },
            rest @ ..,
        ] => {
            let action = Action {
                ty: ty.clone(),
                name: name.clone(),
            };
            Ok(Reference {
                subject: Referenceable::Action(action),
                range: traversal.root_range.to(range),
                remaining: rest.to_vec(),
            })
        }
        [_, ..] if steps.len() < 2 => invalid(ACTION_NAMES, &traversal.range),
        [TraversalStep::Attribute { .. }, other, ..] | [other, ..] => invalid(ACTION_NAMES, other.range()),
        [] => invalid(ACTION_NAMES, &traversal.range),
    }
}

const ACTION_NAMES: &str = "After \"action\" come two names, each with a dot before it: the type and the name of the action. Of a \
                            resource whose type is \"action\", write \"resource.action\".";

fn prefixed_resource(traversal: &Traversal, mode: Mode, what: &str) -> Result<Reference, Diagnostic> {
    let root = &traversal.root;
    if traversal.steps.len() < 2 {
        return Err(Diagnostic::error(
            "Invalid reference",
            format!("After \"{root}\" come two names, each with a dot before it: {what} and the name of the block."),
        )
        .at(&traversal.range));
    }
    match &traversal.steps[0] {
        TraversalStep::Attribute { name, .. } => resource(traversal, mode, name.clone(), &traversal.steps[1..]),
        other => Err(Diagnostic::error(
            "Invalid reference",
            format!("The \"{root}\" object does not support this operation."),
        )
        .at(other.range())),
    }
}

fn resource(traversal: &Traversal, mode: Mode, ty: Arc<str>, steps: &[TraversalStep]) -> Result<Reference, Diagnostic> {
    let what = match mode {
        Mode::Data => "a data source",
        Mode::Ephemeral => "an ephemeral resource type",
        Mode::List => "a list of resources",
        Mode::Managed => "a resource type",
    };
    let detail = format!("A reference to {what} has two names, with a dot between them; the second one is missing.");
    match steps.first() {
        Some(TraversalStep::Attribute { name, range }) => Ok(Reference {
            subject: Referenceable::Resource(Resource {
                mode,
                ty,
                name: name.clone(),
            }),
            range: traversal.root_range.to(range),
            remaining: steps[1..].to_vec(),
        }),
        Some(other) => Err(Diagnostic::error("Invalid reference", detail).at(other.range())),
        None => {
            let problem = Diagnostic::error("Invalid reference", format!("{detail}{}", meant(traversal, mode)))
                .at(&traversal.root_range);
            let word = traversal.root.to_lowercase();
            Err(match &*word {
                "true" | "false" | "null" if mode == Mode::Managed => {
                    problem.mended_by(Edit::word(&traversal.root_range, &traversal.root, word))
                }
                _ => problem,
            })
        }
    }
}

/// Describes the reference that a single word was probably meant to be.
fn meant(traversal: &Traversal, mode: Mode) -> String {
    let word = &*traversal.root;
    if mode != Mode::Managed || word == "resource" {
        return String::new();
    }
    match word.to_lowercase().as_str() {
        "true" => " The value is written \"true\", in lower case.".into(),
        "false" => " The value is written \"false\", in lower case.".into(),
        "null" | "none" | "nil" | "undefined" => " For no value, write \"null\".".into(),
        _ => format!(" If {word} is meant as text, write it in quotes: \"{word}\"."),
    }
}

/// Renders a traversal as text: names with dots between them. `None` if it has other steps.
pub(crate) fn as_text(traversal: &Traversal) -> Option<String> {
    let mut text = traversal.root.to_string();
    for step in &traversal.steps {
        let TraversalStep::Attribute { name, .. } = step else {
            return None;
        };
        text.push('.');
        text.push_str(name);
    }
    Some(text)
}

/// Converts the key of an index step to an instance key.
pub fn instance_key(key: &Value, range: &Range, what: &str) -> Result<InstanceKey, Diagnostic> {
    if let Some(text) = key.as_arc_str() {
        return Ok(InstanceKey::String(text.clone()));
    }
    match key
        .as_number()
        .and_then(cty::Number::to_i64)
        .and_then(|n| u64::try_from(n).ok())
    {
        Some(n) => Ok(InstanceKey::Int(n)),
        None => Err(Diagnostic::error(
            "Invalid index key",
            format!("Invalid index for {what} instance: must be a string or a whole number that is not negative."),
        )
        .at(range)),
    }
}

/// Node that a walk over an expression reports.
enum Node<'e> {
    Traversal(&'e Traversal),
    Call(&'e Arc<str>, &'e Range),
    Conditional(Conditional<'e>),
    /// A traversal with a key that must be evaluated.
    Indexed(&'e Traversal, &'e Expr),
}

/// Returns every traversal in an expression, except those of iterator variables.
#[must_use]
pub fn traversals(expr: &Expr) -> Vec<&Traversal> {
    traversals_except(expr, &[])
}

/// Returns the traversals as [`traversals`] does, without those whose root is one of these names.
#[must_use]
pub fn traversals_except<'e>(expr: &'e Expr, iterators: &[Arc<str>]) -> Vec<&'e Traversal> {
    let mut found = Vec::new();
    let mut bound = iterators.to_vec();
    walk(expr, &mut bound, &mut |node| {
        if let Node::Traversal(t) = node {
            found.push(t);
        }
    });
    found
}

/// Call of a provider's function: `provider::NAME::FUNCTION`, in OpenTofu also `provider::NAME::ALIAS::FUNCTION`.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderFunction {
    /// Local name of the provider.
    pub provider: Arc<str>,
    /// Rest of the name: `FUNCTION` or `ALIAS::FUNCTION`.
    pub function: Arc<str>,
    /// Range of the name.
    pub range: Range,
}

/// Returns the calls of provider functions in an expression.
#[must_use]
pub fn provider_functions(expr: &Expr) -> Vec<ProviderFunction> {
    let mut found = Vec::new();
    walk(expr, &mut Vec::new(), &mut |node| {
        if let Node::Call(name, range) = node
            && let Some((provider, function)) = name.strip_prefix("provider::").and_then(|rest| rest.split_once("::"))
        {
            found.push(ProviderFunction {
                provider: provider.into(),
                function: function.into(),
                range: range.clone(),
            });
        }
    });
    found
}

/// Returns the traversals with a key that must be evaluated, such as `x.y[count.index]`, and the keys.
#[must_use]
pub fn evaluated_keys(expr: &Expr) -> Vec<(&Traversal, &Expr)> {
    let mut found = Vec::new();
    walk(expr, &mut Vec::new(), &mut |node| {
        if let Node::Indexed(traversal, key) = node {
            found.push((traversal, key));
        }
    });
    found
}

/// Ranges of a conditional expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conditional<'e> {
    pub range: &'e Range,
    /// Result if the condition is true.
    pub yes: &'e Range,
    /// Result if the condition is false.
    pub no: &'e Range,
}

/// Returns every conditional in an expression, outer ones first.
#[must_use]
pub fn conditionals(expr: &Expr) -> Vec<Conditional<'_>> {
    let mut found = Vec::new();
    walk(expr, &mut Vec::new(), &mut |node| {
        if let Node::Conditional(conditional) = node {
            found.push(conditional);
        }
    });
    found
}

/// Returns every reference of an expression, in source order.
#[must_use]
pub fn references_in_expr(expr: &Expr) -> (Vec<Reference>, Diagnostics) {
    let mut out = Vec::new();
    let mut diagnostics = Diagnostics::new();
    collect(expr, &[], &mut out, &mut diagnostics);
    (out, diagnostics)
}

/// Returns every reference of a body: of its attributes, nested blocks and dynamic blocks.
#[must_use]
pub fn references_in_body(body: &Body, schema: &BlockSchema) -> (Vec<Reference>, Diagnostics) {
    let BodyReferences {
        mut always,
        in_content,
        problems,
    } = references_of_body(body, schema);
    always.extend(in_content);
    (always, problems)
}

#[derive(Debug, Default)]
pub struct BodyReferences {
    /// References that are evaluated whenever the body is.
    pub always: Vec<Reference>,
    /// References in the content of dynamic blocks. They are evaluated, and must be valid, only if the dynamic block
    /// generates a block ([`Scope::check`](crate::scope::Scope::check)).
    pub in_content: Vec<Reference>,
    /// Errors for traversals that are not references, except those in the content of dynamic blocks.
    pub problems: Diagnostics,
}

/// Returns the references as [`references_in_body`] does, with those that may never be evaluated in a separate list.
#[must_use]
pub fn references_of_body(body: &Body, schema: &BlockSchema) -> BodyReferences {
    let mut out = BodyReferences::default();
    in_body(body, schema, &[], false, &mut out);
    out
}

/// Returns every reference of an expression, except references to these iterator variables.
#[must_use]
pub(crate) fn references_except(expr: &Expr, iterators: &[Arc<str>]) -> (Vec<Reference>, Diagnostics) {
    let mut out = Vec::new();
    let mut diagnostics = Diagnostics::new();
    collect(expr, iterators, &mut out, &mut diagnostics);
    (out, diagnostics)
}

/// Returns the calls of provider functions anywhere in a body.
#[must_use]
pub fn provider_functions_in_body(body: &Body) -> Vec<ProviderFunction> {
    let own = body.attributes.iter().flat_map(|a| provider_functions(&a.expr));
    own.chain(body.blocks.iter().flat_map(|b| provider_functions_in_body(&b.body)))
        .collect()
}

/// Returns true if a traversal is a single word that names a type, as in `convert(x, string)`: it refers to nothing.
pub(crate) fn is_type_name(traversal: &Traversal) -> bool {
    traversal.steps.is_empty() && matches!(&*traversal.root, "string" | "number" | "bool" | "any")
}

fn collect(expr: &Expr, iterators: &[Arc<str>], out: &mut Vec<Reference>, diagnostics: &mut Diagnostics) {
    for traversal in traversals_except(expr, iterators) {
        if is_type_name(traversal) {
            continue;
        }
        match reference(traversal) {
            Ok(r) => out.push(r),
            Err(d) => diagnostics.push(d),
        }
    }
}

fn in_body(body: &Body, schema: &BlockSchema, iterators: &[Arc<str>], in_content: bool, out: &mut BodyReferences) {
    let nothing = BlockSchema::default();
    // The problems are dropped, because decoding reports them.
    let body = &*resolve(body, schema, &mut Diagnostics::new());
    for attribute in &body.attributes {
        if in_content {
            // A traversal that is not a reference is reported when it is evaluated.
            collect(&attribute.expr, iterators, &mut out.in_content, &mut Diagnostics::new());
        } else {
            collect(&attribute.expr, iterators, &mut out.always, &mut out.problems);
        }
    }
    for block in &body.blocks {
        if &*block.ty == "dynamic" && !schema.blocks.contains_key("dynamic") {
            let ty = block.labels.first().map_or("", |l| &*l.text);
            let inner = schema.blocks.get(ty).map_or(&nothing, |b| &b.block);
            let iterator = block
                .body
                .attribute("iterator")
                .and_then(|a| a.expr.as_keyword())
                .unwrap_or(ty);
            let inside: Vec<Arc<str>> = iterators.iter().cloned().chain([iterator.into()]).collect();
            for attribute in &block.body.attributes {
                match &*attribute.name {
                    // The collection is evaluated outside of the block's own iterator, but labels inside.
                    "for_each" => collect(&attribute.expr, iterators, &mut out.always, &mut out.problems),
                    "iterator" => {}
                    _ => collect(&attribute.expr, &inside, &mut out.always, &mut out.problems),
                }
            }
            for content in block.body.blocks.iter().filter(|b| &*b.ty == "content") {
                in_body(&content.body, inner, &inside, true, out);
            }
        } else {
            let inner = schema.blocks.get(&block.ty).map_or(&nothing, |b| &b.block);
            in_body(&block.body, inner, iterators, in_content, out);
        }
    }
}

/// Walks an expression in source order, and keeps track of the iterator variables in scope.
fn walk<'e>(expr: &'e Expr, bound: &mut Vec<Arc<str>>, f: &mut dyn FnMut(Node<'e>)) {
    match expr {
        Expr::Literal { .. } | Expr::SplatElement { .. } | Expr::Invalid { .. } => {}
        Expr::Json(json) => walk(json.expr(), bound, f),
        Expr::Template(t) => walk_parts(&t.parts, bound, f),
        Expr::Wrap { inner, .. } | Expr::Parens { inner, .. } => walk(inner, bound, f),
        Expr::Traversal(t) => {
            if !bound.contains(&t.root) {
                f(Node::Traversal(t));
            }
        }
        Expr::Relative { source, .. } => walk(source, bound, f),
        Expr::Index { collection, key, .. } => {
            if let Expr::Traversal(traversal) = &**collection
                && !bound.contains(&traversal.root)
            {
                f(Node::Indexed(traversal, key));
            }
            walk(collection, bound, f);
            walk(key, bound, f);
        }
        Expr::Splat { source, each, .. } => {
            walk(source, bound, f);
            walk(each, bound, f);
        }
        Expr::Call(c) => {
            f(Node::Call(&c.name, &c.name_range));
            c.args.iter().for_each(|arg| walk(arg, bound, f));
        }
        Expr::Conditional {
            condition,
            yes,
            no,
            range,
        } => {
            f(Node::Conditional(Conditional {
                range,
                yes: yes.range(),
                no: no.range(),
            }));
            walk(condition, bound, f);
            walk(yes, bound, f);
            walk(no, bound, f);
        }
        Expr::Binary { .. } => {
            // Long chains of operators lean to the left; they are descended without recursion.
            let mut rights = Vec::new();
            let mut at = expr;
            while let Expr::Binary { left, right, .. } = at {
                rights.push(&**right);
                at = left;
            }
            walk(at, bound, f);
            for right in rights.into_iter().rev() {
                walk(right, bound, f);
            }
        }
        Expr::Unary { operand, .. } => walk(operand, bound, f),
        Expr::Tuple { items, .. } => items.iter().for_each(|i| walk(i, bound, f)),
        Expr::Object { items, .. } => {
            for item in items {
                if let ObjectKey::Expr(key) = &item.key {
                    walk(key, bound, f);
                }
                walk(&item.value, bound, f);
            }
        }
        Expr::For(e) => {
            walk(&e.collection, bound, f);
            let outside = bound.len();
            bound.extend(e.key.iter().chain([&e.value]).cloned());
            for inner in e.result_key.iter().chain([&e.result]).chain(&e.condition) {
                walk(inner, bound, f);
            }
            bound.truncate(outside);
        }
    }
}

fn walk_parts<'e>(parts: &'e [TemplatePart], bound: &mut Vec<Arc<str>>, f: &mut dyn FnMut(Node<'e>)) {
    for part in parts {
        match part {
            TemplatePart::Literal { .. } => {}
            TemplatePart::Interpolation(e) => walk(e, bound, f),
            TemplatePart::If { condition, yes, no, .. } => {
                walk(condition, bound, f);
                walk_parts(yes, bound, f);
                walk_parts(no, bound, f);
            }
            TemplatePart::For {
                key,
                value,
                collection,
                body,
                ..
            } => {
                walk(collection, bound, f);
                let outside = bound.len();
                bound.extend(key.iter().chain([value]).cloned());
                walk_parts(body, bound, f);
                bound.truncate(outside);
            }
        }
    }
}
