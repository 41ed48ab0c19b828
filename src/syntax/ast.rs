//! The tree of a configuration file.
//!
//! Bodies and expressions are the same for the native and the JSON syntax. Every node knows its range. Trees are
//! immutable once parsed and shared by `Arc` where several crates hold them.

use std::sync::Arc;

use cty::Value;

use crate::Range;
use crate::json::JsonExpr;
use crate::lexer::is_name;

/// A body: the content of a file or of a block.
#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    /// The attributes in the order of the source.
    pub attributes: Vec<Attribute>,
    /// The nested blocks in the order of the source.
    pub blocks: Vec<Block>,
    /// The whole body, without the braces.
    pub range: Range,
    /// The place for "missing …" messages, which is empty: before the opening brace of a block, the beginning of a file.
    pub end: Range,
}

/// `name = expr`.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    pub name: Arc<str>,
    /// Where the name stands.
    pub name_range: Range,
    /// The value.
    pub expr: Expr,
    /// The whole attribute.
    pub range: Range,
}

/// `type "label" … { body }`.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// The type.
    pub ty: Arc<str>,
    /// Where the type stands.
    pub type_range: Range,
    pub labels: Vec<Label>,
    /// The content.
    pub body: Body,
    /// The header: from the type to the last label.
    pub header: Range,
    /// The opening brace.
    pub open: Range,
    /// The whole block.
    pub range: Range,
}

/// A label of a block.
#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    /// The text, without quotes.
    pub text: Arc<str>,
    /// Where it stands, with quotes.
    pub range: Range,
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A number, `true`, `false`, `null`.
    Literal {
        value: Value,
        /// The whole expression.
        range: Range,
    },
    /// A quoted string or heredoc: parts that are joined into a string. One literal part, or none, for plain text.
    Template(Template),
    /// A template of exactly one interpolation, `"${x}"`: the value itself, with its type.
    Wrap {
        /// What is inside.
        inner: Box<Expr>,
        /// The whole expression.
        range: Range,
    },
    /// A reference: a root name and steps from there, `var.a[0].b`. Every step is static.
    Traversal(Traversal),
    /// Static steps from another expression: `f(x).a[0]`.
    Relative {
        /// From where.
        source: Box<Expr>,
        steps: Vec<TraversalStep>,
        /// The whole expression.
        range: Range,
    },
    /// `x[key]` with a key that must be evaluated.
    Index {
        /// Of what.
        collection: Box<Expr>,
        key: Box<Expr>,
        brackets: Range,
        /// The whole expression.
        range: Range,
    },
    /// `x[*].…` or `x.*.…`.
    Splat {
        /// Of what.
        source: Box<Expr>,
        /// What is evaluated for each element; [`Expr::SplatElement`] in it is the element.
        each: Box<Expr>,
        /// Where the `[*]` or `.*` stands.
        marker: Range,
        /// The whole expression.
        range: Range,
    },
    /// The element of the innermost splat around it.
    SplatElement {
        /// Where the marker stands.
        range: Range,
    },
    /// `name(args…)`.
    Call(Box<Call>),
    /// `cond ? yes : no`.
    Conditional {
        condition: Box<Expr>,
        /// The result if it is true.
        yes: Box<Expr>,
        /// The result if it is false.
        no: Box<Expr>,
        /// The whole expression.
        range: Range,
    },
    /// `a + b`.
    Binary {
        /// The operator.
        op: BinaryOp,
        /// The left operand.
        left: Box<Expr>,
        /// The right operand.
        right: Box<Expr>,
        /// Where the operator stands.
        op_range: Range,
        /// The whole expression.
        range: Range,
    },
    /// `-a`, `!a`.
    Unary {
        /// The operator.
        op: UnaryOp,
        operand: Box<Expr>,
        /// Where the operator stands.
        op_range: Range,
        /// The whole expression.
        range: Range,
    },
    /// `[a, b]`.
    Tuple {
        /// The elements.
        items: Vec<Expr>,
        /// The opening bracket.
        open: Range,
        /// The whole expression.
        range: Range,
    },
    /// `{a = b}`.
    Object {
        /// The items in the order of the source, duplicates included.
        items: Vec<ObjectItem>,
        /// The opening brace.
        open: Range,
        /// The whole expression.
        range: Range,
    },
    /// `[for …]` and `{for …}`.
    For(Box<For>),
    /// `(a)`.
    Parens {
        /// What is inside.
        inner: Box<Expr>,
        /// The whole expression.
        range: Range,
    },
    /// A value of a file in the JSON syntax, of which only its reader knows what is meant.
    Json(Arc<JsonExpr>),
    /// What could not be understood; the parser has reported why.
    Invalid {
        /// The stretch.
        range: Range,
    },
}

/// A template: text with interpolations and directives.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    /// The parts in order. Strip markers and heredoc indentation have been applied to the literals already.
    pub parts: Vec<TemplatePart>,
    /// Whether it was written as a heredoc.
    pub heredoc: bool,
    /// The whole expression, with quotes or markers.
    pub range: Range,
}

#[derive(Clone, Debug, PartialEq)]
pub enum TemplatePart {
    /// Text, escapes resolved.
    Literal {
        text: Arc<str>,
        /// Where it stands.
        range: Range,
    },
    /// `${expr}`.
    Interpolation(Expr),
    /// `%{if c}…%{else}…%{endif}`.
    If {
        condition: Expr,
        /// The parts if it is true.
        yes: Vec<TemplatePart>,
        /// The parts if it is false.
        no: Vec<TemplatePart>,
        /// From `%{if` to `%{endif}`.
        range: Range,
    },
    /// `%{for k, v in x}…%{endfor}`.
    For {
        /// The name for the key or index.
        key: Option<Arc<str>>,
        /// The name for the element.
        value: Arc<str>,
        /// Over what.
        collection: Expr,
        /// The parts for each element.
        body: Vec<TemplatePart>,
        /// From `%{for` to `%{endfor}`.
        range: Range,
    },
}

/// A root name and static steps from there.
#[derive(Clone, Debug, PartialEq)]
pub struct Traversal {
    /// The root name.
    pub root: Arc<str>,
    /// Where the root stands.
    pub root_range: Range,
    pub steps: Vec<TraversalStep>,
    /// The whole traversal.
    pub range: Range,
}

/// A static step of a traversal.
#[derive(Clone, Debug, PartialEq)]
pub enum TraversalStep {
    /// `.name`.
    Attribute {
        name: Arc<str>,
        /// The step, with its dot.
        range: Range,
    },
    /// `[0]`, `["a"]` or the legacy `.0`: the key is a known number or string.
    Index {
        key: Value,
        /// The step, with its brackets.
        range: Range,
    },
    /// `[*]` or `.*`, only where a traversal is parsed by itself (`ignore_changes`, legacy references).
    Splat {
        /// The step.
        range: Range,
    },
}

/// A function call.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The whole name, with `::` for namespaces.
    pub name: Arc<str>,
    /// Where the name stands.
    pub name_range: Range,
    /// The arguments.
    pub args: Vec<Expr>,
    /// Whether the last argument is expanded (`...`).
    pub expand_last: bool,
    /// The opening parenthesis.
    pub open: Range,
    /// The closing parenthesis.
    pub close: Range,
    /// The whole expression.
    pub range: Range,
}

/// An item of an object constructor.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectItem {
    pub key: ObjectKey,
    pub value: Expr,
}

/// The key of an object item.
#[derive(Clone, Debug, PartialEq)]
pub enum ObjectKey {
    /// A bare word, which stands for itself.
    Bare {
        /// The word.
        name: Arc<str>,
        /// Where it stands.
        range: Range,
    },
    /// Anything else, to be evaluated: quoted text, a number, a parenthesised expression.
    Expr(Expr),
}

/// A for expression.
#[derive(Clone, Debug, PartialEq)]
pub struct For {
    /// The name for the key or index.
    pub key: Option<Arc<str>>,
    /// The name for the element.
    pub value: Arc<str>,
    /// Over what.
    pub collection: Expr,
    /// The key of each result, for `{for …}`.
    pub result_key: Option<Expr>,
    /// The value of each result.
    pub result: Expr,
    /// Whether values with one key are grouped (`...`).
    pub group: bool,
    /// The `if` condition.
    pub condition: Option<Expr>,
    /// The opening bracket or brace.
    pub open: Range,
    /// The whole expression.
    pub range: Range,
}

/// A binary operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum BinaryOp {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
}

/// A unary operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    /// `-`.
    Negate,
    /// `!`.
    Not,
}

impl Expr {
    /// The range of the whole expression.
    #[must_use]
    pub fn range(&self) -> &Range {
        match self {
            Expr::Literal { range, .. }
            | Expr::Wrap { range, .. }
            | Expr::Relative { range, .. }
            | Expr::Index { range, .. }
            | Expr::Splat { range, .. }
            | Expr::SplatElement { range }
            | Expr::Conditional { range, .. }
            | Expr::Binary { range, .. }
            | Expr::Unary { range, .. }
            | Expr::Tuple { range, .. }
            | Expr::Object { range, .. }
            | Expr::Parens { range, .. }
            | Expr::Invalid { range } => range,
            Expr::Template(t) => &t.range,
            Expr::Traversal(t) => &t.range,
            Expr::Call(c) => &c.range,
            Expr::For(f) => &f.range,
            Expr::Json(j) => &j.node().range,
        }
    }

    /// Where the expression begins: its leftmost part. What is wrong with a value of the expression is reported there,
    /// so for quoted text it is inside the quotes.
    #[must_use]
    pub fn start_range(&self) -> &Range {
        match self {
            Expr::Traversal(t) => &t.root_range,
            Expr::Relative { source, .. } | Expr::Splat { source, .. } => source.start_range(),
            Expr::Index { collection, .. } => collection.start_range(),
            Expr::Call(c) => &c.name_range,
            Expr::Conditional { condition, .. } => condition.start_range(),
            Expr::Binary { left, .. } => left.start_range(),
            Expr::Unary { op_range, .. } => op_range,
            Expr::Tuple { open, .. } | Expr::Object { open, .. } => open,
            Expr::For(e) => &e.open,
            Expr::Template(t) => match t.parts.first() {
                Some(TemplatePart::Literal { range, .. }) => range,
                Some(TemplatePart::Interpolation(inner)) => inner.start_range(),
                _ => &t.range,
            },
            other => other.range(),
        }
    }

    /// The expression that a value of the JSON syntax is; any other is what it is.
    #[must_use]
    pub fn plain(&self) -> &Expr {
        match self {
            Expr::Json(json) => json.expr(),
            other => other,
        }
    }

    /// The text of a template without interpolations, or of a string in the JSON syntax, whatever is in it.
    #[must_use]
    pub fn as_literal_text(&self) -> Option<Arc<str>> {
        match self {
            Expr::Template(t) => match t.parts.as_slice() {
                [] => Some("".into()),
                [TemplatePart::Literal { text, .. }] => Some(text.clone()),
                _ => None,
            },
            Expr::Json(json) => json.text().cloned(),
            _ => None,
        }
    }

    /// The name of an expression that is a lone word (`all`, `create`).
    #[must_use]
    pub fn as_keyword(&self) -> Option<&str> {
        match self {
            Expr::Traversal(t) if t.steps.is_empty() => Some(&t.root),
            Expr::Json(json) => json.text().filter(|text| is_name(text)).map(|text| &**text),
            _ => None,
        }
    }
}

impl TraversalStep {
    /// Where the step stands.
    #[must_use]
    pub fn range(&self) -> &Range {
        match self {
            TraversalStep::Attribute { range, .. }
            | TraversalStep::Index { range, .. }
            | TraversalStep::Splat { range } => range,
        }
    }
}

impl ObjectKey {
    /// Where the key stands.
    #[must_use]
    pub fn range(&self) -> &Range {
        match self {
            ObjectKey::Bare { range, .. } => range,
            ObjectKey::Expr(e) => e.range(),
        }
    }
}

impl Body {
    /// A body without content.
    #[must_use]
    pub fn empty(range: &Range) -> Body {
        Body {
            attributes: Vec::new(),
            blocks: Vec::new(),
            range: range.clone(),
            end: range.clone(),
        }
    }

    /// The attribute of this name.
    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|a| &*a.name == name)
    }
}
