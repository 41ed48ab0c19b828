//! Helpers for decoding blocks: sorting a body, constants, names, static lists and references.

use std::sync::Arc;

use addrs::{LocalProviderConfig, Referenceable};
use cty::{Type, Value};
use lang::eval::{Context, evaluate};
use lang::scope::Constant;
use syntax::ast::{Attribute, Block, Body, Expr, Label, Traversal, TraversalStep};
use syntax::content::{self, BodySpec};
use syntax::{Diagnostic, Diagnostics, Range};

use crate::model::provider_ref::ProviderRef;

/// Attributes and blocks that a spec expects, taken out of a body, and the rest.
pub(crate) struct Taken {
    attributes: Vec<Attribute>,
    /// The expected blocks, in source order.
    pub blocks: Vec<Block>,
    /// The remaining content, such as the arguments of a provider's schema, or the inputs of a module call.
    pub rest: Body,
}

impl Taken {
    /// Removes and returns an attribute.
    pub fn attribute(&mut self, name: &str) -> Option<Attribute> {
        let at = self.attributes.iter().position(|a| &*a.name == name)?;
        Some(self.attributes.remove(at))
    }

    /// Removes an attribute and returns its expression.
    pub fn expr(&mut self, name: &str) -> Option<Expr> {
        self.attribute(name).map(|a| a.expr)
    }
}

/// Splits a body into the content that the spec expects and the rest, which is not checked.
pub(crate) fn partial(body: Body, spec: BodySpec<'_>, diagnostics: &mut Diagnostics) -> Taken {
    let body = content::resolve(body, spec, diagnostics);
    content::partial(&body, spec, diagnostics);
    split(body, spec)
}

/// Takes the expected content out of a body as [`partial`] does, and reports everything else as an error.
pub(crate) fn exact(body: Body, spec: BodySpec<'_>, diagnostics: &mut Diagnostics) -> Taken {
    let body = content::resolve(body, spec, diagnostics);
    content::exact(&body, spec, diagnostics);
    split(body, spec)
}

fn split(body: Body, spec: BodySpec<'_>) -> Taken {
    let (attributes, other_attributes) = body
        .attributes
        .into_iter()
        .partition(|a| spec.attributes.iter().any(|(name, _)| *name == &*a.name));
    let mut blocks = Vec::new();
    let mut other_blocks = Vec::new();
    for block in body.blocks {
        match spec.blocks.iter().find(|(ty, _)| *ty == &*block.ty) {
            None => other_blocks.push(block),
            Some((_, labels)) if labels.len() == block.labels.len() => blocks.push(block),
            // A wrong number of labels has been reported.
            Some(_) => {}
        }
    }
    let rest = Body {
        attributes: other_attributes,
        blocks: other_blocks,
        range: body.range,
        end: body.end,
    };
    Taken {
        attributes,
        blocks,
        rest,
    }
}

/// Returns the range of a block's header, at which diagnostics about the whole block point.
pub(crate) fn header(block: &Block) -> Range {
    block.header.clone()
}

/// Moves the content of the escape block `_` to `rest`, the arguments that are not meta-arguments. In the block, a
/// name such as `count` has no special meaning.
pub(crate) fn unescape(blocks: &mut Vec<Block>, rest: &mut Body, what: &str, diagnostics: &mut Diagnostics) {
    let mut seen: Option<Range> = None;
    let (escapes, others): (Vec<Block>, Vec<Block>) = blocks.drain(..).partition(|b| &*b.ty == "_");
    *blocks = others;
    for block in escapes {
        if let Some(first) = &seen {
            diagnostics.push(
                Diagnostic::error(
                    "Duplicate escaping block",
                    format!(
                        "A block of type \"_\" makes what is inside it arguments of the {what} type, even where a name has \
                         a meaning of its own. There can be only one; the first is at {first}."
                    ),
                )
                .at(&block.type_range),
            );
            continue;
        }
        seen = Some(block.type_range);
        for attribute in block.body.attributes {
            if let Some(first) = rest.attribute(&attribute.name) {
                diagnostics.push(redefined(&attribute, &first.name_range));
            } else {
                rest.attributes.push(attribute);
            }
        }
        rest.blocks.extend(block.body.blocks);
    }
}

fn redefined(attribute: &Attribute, first: &Range) -> Diagnostic {
    Diagnostic::error(
        "Attribute redefined",
        format!(
            "The argument \"{}\" already has a value, set at {first}. Remove one of the two.",
            attribute.name
        ),
    )
    .at(&attribute.name_range)
}

/// Builds the error for a block type that is reserved for later versions of the language.
pub(crate) fn reserved_block(block: &Block, place: &str) -> Diagnostic {
    Diagnostic::error(
        format!("Reserved block type name in {place} block"),
        format!(
            "The block type name \"{}\" is reserved for later versions of the language.",
            block.ty
        ),
    )
    .at(&block.type_range)
}

/// Builds the error for a second block where one is allowed.
pub(crate) fn duplicate_block(kind: &str, owner: &str, first: &Range, block: &Block) -> Diagnostic {
    Diagnostic::error(
        format!("Duplicate {kind} block"),
        format!("This {owner} already has a {kind} block at {first}."),
    )
    .at(&block.header)
}

/// Rule for valid names, as a sentence for diagnostics.
pub(crate) const NAME_RULE: &str =
    "A name begins with a letter or an underscore, and goes on with letters, digits, underscores and dashes only.";

/// Checks that a label is a valid name.
pub(crate) fn check_name(label: &Label, summary: &str, diagnostics: &mut Diagnostics) -> bool {
    let valid = addrs::parse::is_identifier(&label.text);
    if !valid {
        diagnostics.push(Diagnostic::error(summary, NAME_RULE).at(&label.range));
    }
    valid
}

/// Evaluates an expression that may contain neither references nor function calls. `None` if it has errors, which are
/// reported.
pub(crate) fn constant(expr: &Expr, diagnostics: &mut Diagnostics) -> Option<Value> {
    match expr {
        Expr::Literal { value, .. } => return Some(value.clone()),
        // Constants are not templates: `${` has no meaning in a JSON string here.
        Expr::Json(json) => return Some(json.node().literal()),
        // The parser has reported the invalid expression.
        Expr::Invalid { .. } => return None,
        _ => {}
    }
    if let Some(text) = expr.as_literal_text() {
        return Some(Value::string(text));
    }
    let (value, problems) = evaluate(expr, Context::new(&Constant));
    let failed = problems.has_errors();
    diagnostics.extend(problems);
    (!failed).then_some(value)
}

/// Evaluates a constant and converts it to a type. `None` for null, which counts as not set, and after an error, which
/// is reported.
fn constant_as(expr: &Expr, ty: &Type, what: &str, diagnostics: &mut Diagnostics) -> Option<Value> {
    let value = constant(expr, diagnostics)?;
    let unsuitable = |detail: String| Diagnostic::error("Unsuitable value type", detail).at(expr.start_range());
    if value.ty() == ty {
        return value.is_present().then_some(value);
    }
    match cty::convert(&value, ty) {
        Ok(value) if value.is_null() => None,
        Ok(value) if value.is_known() => Some(value),
        Ok(_) => {
            diagnostics.push(unsuitable(
                "The value must be known here: a constant is required.".into(),
            ));
            None
        }
        Err(_) => {
            diagnostics.push(unsuitable(format!("A {what} is required here.")));
            None
        }
    }
}

/// Evaluates a constant string; null counts as not set.
pub(crate) fn constant_string(expr: &Expr, diagnostics: &mut Diagnostics) -> Option<Arc<str>> {
    constant_as(expr, &Type::String, "string", diagnostics)?
        .as_arc_str()
        .cloned()
}

/// Evaluates a constant bool; null counts as not set.
pub(crate) fn constant_bool(expr: &Expr, diagnostics: &mut Diagnostics) -> Option<bool> {
    constant_as(expr, &Type::Bool, "bool", diagnostics)?.as_bool()
}

/// Returns the elements of a literal list. Any other expression is reported (an invalid one has been reported by the
/// parser) and gives no elements.
pub(crate) fn static_list<'e>(expr: &'e Expr, diagnostics: &mut Diagnostics) -> &'e [Expr] {
    match expr.plain() {
        Expr::Tuple { items, .. } => items,
        Expr::Parens { inner, .. } => static_list(inner, diagnostics),
        Expr::Invalid { .. } => &[],
        _ => {
            diagnostics.push(
                Diagnostic::error(
                    "Invalid expression",
                    "A list is required here, written out between brackets.",
                )
                .at(expr.start_range()),
            );
            &[]
        }
    }
}

/// Reads a static reference, with a warning if it is in quotes (the form of Terraform 0.11).
pub(crate) fn static_traversal(expr: &Expr, diagnostics: &mut Diagnostics) -> Option<Traversal> {
    match expr {
        Expr::Traversal(t) => return Some(t.clone()),
        Expr::Invalid { .. } => return None,
        Expr::Json(json) => {
            let text = json.text();
            let traversal = text.and_then(|text| crate::parse::traversal(text, expr.range()).ok());
            if traversal.is_some() {
                return traversal;
            }
        }
        _ => {}
    }
    if let Some(traversal) = keyword_traversal(expr) {
        return Some(traversal);
    }
    if let Some(text) = expr.as_literal_text().filter(|_| !matches!(expr, Expr::Json(_))) {
        // The text begins one column after the quote. Escapes would shift it, but a reference has none.
        let traversal = diagnostics.take(crate::parse::traversal(&text, &inside_quotes(expr.range())))?;
        diagnostics.push(
            Diagnostic::warning(
                "Quoted references are deprecated",
                "References are written without quotes here. The quotes that Terraform 0.11 and earlier asked for are \
                 still understood, and should be removed.",
            )
            .at(expr.range()),
        );
        return Some(traversal);
    }
    not_a_traversal(expr, diagnostics);
    None
}

/// Reads a static reference as [`static_traversal`] does, for arguments that have never accepted quotes in the native
/// syntax.
pub(crate) fn unquoted_traversal(expr: &Expr, diagnostics: &mut Diagnostics) -> Option<Traversal> {
    if expr.as_literal_text().is_some() && !matches!(expr, Expr::Json(_)) {
        not_a_traversal(expr, diagnostics);
        return None;
    }
    static_traversal(expr, diagnostics)
}

fn not_a_traversal(expr: &Expr, diagnostics: &mut Diagnostics) {
    if matches!(expr, Expr::Json(_)) && expr.as_literal_text().is_none() {
        diagnostics.push(
            Diagnostic::error(
                "Invalid reference expression",
                "A single reference is required here: a string such as \"aws_instance.a\".",
            )
            .at(expr.range()),
        );
        return;
    }
    diagnostics.push(
        Diagnostic::error(
            "Invalid expression",
            "A single reference is required here, such as \"aws_instance.a\": names, and keys that are constant. Nothing can be \
             calculated.",
        )
        .at(expr.range()),
    );
}

/// Parses the string that the JSON syntax has in place of an expression. Native expressions are returned as they are.
pub(crate) fn unquoted(expr: Expr, diagnostics: &mut Diagnostics) -> Expr {
    let Expr::Json(json) = &expr else { return expr };
    match syntax::json::unquoted(json.node()) {
        Some((inner, problems)) => {
            diagnostics.extend(problems);
            inner
        }
        None => expr,
    }
}

fn inside_quotes(range: &Range) -> Range {
    let mut inside = range.clone();
    inside.start.column += 1;
    inside.start.byte += 1;
    inside
}

/// Reads a keyword, with a warning if it is in quotes (the form of Terraform 0.11).
pub(crate) fn keyword(expr: &Expr, diagnostics: &mut Diagnostics) -> Option<Arc<str>> {
    if let Some(word) = expr.as_keyword() {
        return Some(word.into());
    }
    let text = expr.as_literal_text()?;
    diagnostics.push(
        Diagnostic::warning(
            "Quoted keywords are deprecated",
            "Keywords are written without quotes here. The quotes that Terraform 0.11 and earlier asked for are still \
             understood, and should be removed.",
        )
        .at(expr.range()),
    );
    Some(text)
}

pub(crate) fn depends_on(attribute: Option<Attribute>, diagnostics: &mut Diagnostics) -> Vec<crate::model::Reference> {
    let Some(attribute) = attribute else { return Vec::new() };
    let mut out = Vec::new();
    for item in static_list(&attribute.expr, diagnostics) {
        let Some(traversal) = static_traversal(item, diagnostics) else {
            continue;
        };
        match lang::refs::reference(&traversal) {
            Ok(reference)
                if matches!(
                    reference.subject,
                    Referenceable::Action(_) | Referenceable::ActionInstance(_)
                ) =>
            {
                diagnostics.push(
                    Diagnostic::error(
                        "Invalid depends_on Action Reference",
                        "An action cannot be waited for: it belongs to the change that triggers it. Name the resource whose change \
                         that is.",
                    )
                    .at(item.range()),
                );
            }
            Ok(reference) if reference.remaining.is_empty() => out.push(reference),
            Ok(reference) => {
                // The error points at the part after the object's address.
                let mut attribute = traversal.range.clone();
                attribute.start = reference.range.end;
                diagnostics.push(
                    Diagnostic::error(
                        "Invalid depends_on reference",
                        "What depends_on names must be whole: a resource, a module, or another object of this module. An \
                         attribute of it cannot be waited for alone.",
                    )
                    .at(&attribute)
                    .within(item.range()),
                );
            }
            Err(problem) => diagnostics.push(problem),
        }
    }
    out
}

/// Returns the traversal that begins with a keyword (`true`, `false` or `null`), such as `null.other`, an alias of the
/// provider `null`. `None` for other expressions.
pub(crate) fn keyword_traversal(expr: &Expr) -> Option<Traversal> {
    match expr {
        Expr::Literal { value, range } => {
            let root = match value.as_bool() {
                Some(true) => "true",
                Some(false) => "false",
                None if value.is_null() => "null",
                None => return None,
            };
            Some(Traversal {
                root: root.into(),
                root_range: range.clone(),
                steps: Vec::new(),
                range: range.clone(),
            })
        }
        Expr::Relative { source, steps, range } => Some(Traversal {
            steps: steps.clone(),
            range: range.clone(),
            ..keyword_traversal(source)?
        }),
        _ => None,
    }
}

/// Splits `name.alias[key]` into the traversal `name.alias` and the key. `None` if the expression has no key.
fn keyed_provider(expr: &Expr) -> Option<(Traversal, Expr)> {
    // Names such as `null` are literals to the parser.
    let plain = |expr: &Expr| match expr {
        Expr::Traversal(traversal) => Some(traversal.clone()),
        other => keyword_traversal(other),
    };
    match expr {
        Expr::Index { collection, key, .. } => Some((plain(collection)?, (**key).clone())),
        Expr::Json(json) => {
            let (inner, problems) = syntax::parse_expression(&expr.range().file, json.text()?, expr.range().start);
            (!problems.has_errors()).then(|| keyed_provider(&inner)).flatten()
        }
        other => {
            let mut traversal = plain(other)?;
            match traversal.steps.pop()? {
                TraversalStep::Index { key: value, range } => Some((traversal, Expr::Literal { value, range })),
                TraversalStep::Attribute { .. } | TraversalStep::Splat { .. } => None,
            }
        }
    }
}

/// Reads a reference to a provider configuration, `name` or `name.alias`, in the language of OpenTofu also
/// `name.alias[key]`.
pub(crate) fn provider_ref(expr: &Expr, argument: &str, diagnostics: &mut Diagnostics) -> Option<ProviderRef> {
    if addrs::program::Mode::current().has_opentofu()
        && let Some((traversal, key)) = keyed_provider(expr)
        && is_provider_name(&traversal.root)
        && let Some(mut reference) = provider_ref_of(&traversal)
    {
        if reference.config.alias.is_none() {
            diagnostics.push(
                Diagnostic::error(
                    "Invalid provider configuration reference",
                    "A key selects an instance of a provider configuration with an alias: the form is NAME.ALIAS[KEY].",
                )
                .at(expr.range()),
            );
            return None;
        }
        reference.key = Some(Arc::new(key));
        reference.range = expr.range().clone();
        return Some(reference);
    }
    let invalid = || {
        Diagnostic::error(
            "Invalid provider configuration reference",
            format!(
                "The {argument} argument takes the local name of a provider, and perhaps a dot and the alias of one of its \
                 configurations."
            ),
        )
        .at(expr.range())
    };
    // Names such as `null` are literals to the parser.
    let is_name = matches!(expr, Expr::Traversal(_) | Expr::Invalid { .. }) || keyword_traversal(expr).is_some();
    if !is_name && expr.as_literal_text().is_none() {
        diagnostics.push(invalid());
        return None;
    }
    let traversal = static_traversal(expr, diagnostics)?;
    if !is_provider_name(&traversal.root) {
        diagnostics.push(invalid_provider_name(&traversal.root, &traversal.root_range));
        return None;
    }
    match provider_ref_of(&traversal) {
        Some(mut reference) => {
            reference.range = expr.range().clone();
            Some(reference)
        }
        None => {
            diagnostics.push(invalid());
            None
        }
    }
}

/// Converts a traversal to the name of a provider configuration, `NAME` or `NAME.ALIAS`; `None` for other traversals.
pub(crate) fn provider_ref_of(traversal: &Traversal) -> Option<ProviderRef> {
    let alias = match traversal.steps.as_slice() {
        [] => None,
        [TraversalStep::Attribute { name, .. }] => Some(name.clone()),
        _ => return None,
    };
    let config = LocalProviderConfig {
        name: traversal.root.clone(),
        alias,
    };
    Some(ProviderRef {
        config,
        key: None,
        range: traversal.range.clone(),
    })
}

/// Builds the error for a local name that no provider can have.
pub(crate) fn invalid_provider_name(name: &str, range: &Range) -> Diagnostic {
    Diagnostic::error(
        "Invalid provider local name",
        format!(
            "\"{name}\" cannot be the local name of a provider: it has lower-case letters, digits and inner dashes only."
        ),
    )
    .at(range)
}

/// Returns true if a provider can have this local name: letters without upper case, digits, and dashes inside.
pub(crate) fn is_provider_name(name: &str) -> bool {
    !name.is_empty()
        && name.chars().all(|c| c.is_alphanumeric() || c == '-')
        && !name.starts_with('-')
        && !name.ends_with('-')
        && name.chars().all(|c| !c.is_uppercase())
}
