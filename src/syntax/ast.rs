//! The syntax tree of a configuration file.
//!
//! Bodies and expressions are the same for the native and the JSON syntax. Every node knows its range. Trees are
//! immutable once parsed and shared by `Arc` where several crates hold them.

use std::fmt;
use std::sync::{Arc, OnceLock};

use cty::Value;

use crate::json::Node;
use crate::lexer::is_name;
use crate::{Diagnostics, Range};

/// A body: the content of a file or of a block.
#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    /// Attributes, in source order.
    pub attributes: Vec<Attribute>,
    /// Nested blocks, in source order.
    pub blocks: Vec<Block>,
    /// Range of the content, without the braces.
    pub range: Range,
    /// Range for "missing …" messages. In the native syntax it is empty: before the opening brace of a block, or at
    /// the beginning of a file.
    pub end: Range,
}

/// `name = expr`.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    pub name: Arc<str>,
    pub name_range: Range,
    pub expr: Expr,
    /// Range of the whole attribute.
    pub range: Range,
}

/// `type "label" … { body }`.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    pub ty: Arc<str>,
    pub type_range: Range,
    pub labels: Vec<Label>,
    pub body: Body,
    /// Header: from the type to the last label.
    pub header: Range,
    pub open: Range,
    /// Range of the whole block.
    pub range: Range,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    /// Text, without quotes.
    pub text: Arc<str>,
    /// Range, with quotes.
    pub range: Range,
}

/// An expression. In each variant, `range` is the range of the whole expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A number, `true`, `false`, `null`.
    Literal { value: Value, range: Range },
    /// A quoted string or heredoc: parts that are joined into a string. One literal part, or none, for plain text.
    Template(Template),
    /// A template of exactly one interpolation, `"${x}"`: the value itself, with its type.
    Wrap { inner: Box<Expr>, range: Range },
    /// A reference: a root name and the steps after it, such as `var.a[0].b`. Every step is static.
    Traversal(Traversal),
    /// Static steps from another expression: `f(x).a[0]`.
    Relative {
        source: Box<Expr>,
        steps: Vec<TraversalStep>,
        range: Range,
    },
    /// `x[key]` with a key that must be evaluated.
    Index {
        collection: Box<Expr>,
        key: Box<Expr>,
        brackets: Range,
        range: Range,
    },
    /// `x[*].…` or `x.*.…`.
    Splat {
        source: Box<Expr>,
        /// Expression evaluated for each element; [`Expr::SplatElement`] in it is the element.
        each: Box<Expr>,
        /// Range of the `[*]` or `.*`.
        marker: Range,
        range: Range,
    },
    /// The element of the innermost splat around it.
    SplatElement {
        /// Range of the splat's `[*]` or `.*`.
        range: Range,
    },
    /// `name(args…)`.
    Call(Box<Call>),
    /// `cond ? yes : no`.
    Conditional {
        condition: Box<Expr>,
        yes: Box<Expr>,
        no: Box<Expr>,
        range: Range,
    },
    /// `a + b`.
    Binary {
        op: BinaryOp,
        left: Box<Expr>,
        right: Box<Expr>,
        op_range: Range,
        range: Range,
    },
    /// `-a`, `!a`.
    Unary {
        op: UnaryOp,
        operand: Box<Expr>,
        op_range: Range,
        range: Range,
    },
    /// `[a, b]`.
    Tuple {
        items: Vec<Expr>,
        open: Range,
        range: Range,
    },
    /// `{a = b}`.
    Object {
        /// Items in source order, duplicates included.
        items: Vec<ObjectItem>,
        open: Range,
        range: Range,
    },
    /// `[for …]` and `{for …}`.
    For(Box<For>),
    /// `(a)`.
    Parens { inner: Box<Expr>, range: Range },
    /// A value in the JSON syntax. The argument that it is for determines whether a string is a template, a reference
    /// or plain text.
    Json(Arc<JsonExpr>),
    /// An expression that could not be parsed; the parser has reported why.
    Invalid { range: Range },
}

/// A JSON value that is used as an expression, which is parsed on first use.
pub struct JsonExpr {
    node: Node,
    /// Function that interprets the value as an expression. It is a pointer, so that trees do not depend on the parser
    /// of the JSON syntax.
    read: fn(&Node) -> (Expr, Diagnostics),
    made: OnceLock<(Expr, Diagnostics)>,
}

impl JsonExpr {
    #[must_use]
    pub fn new(node: Node, read: fn(&Node) -> (Expr, Diagnostics)) -> JsonExpr {
        JsonExpr {
            node,
            read,
            made: OnceLock::new(),
        }
    }

    /// Returns the value as written.
    #[must_use]
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Returns the value as an expression: strings are templates. The elements of arrays and objects are JSON values
    /// that are used as expressions, too.
    #[must_use]
    pub fn expr(&self) -> &Expr {
        &self.made().0
    }

    /// Problems of the value as an expression.
    #[must_use]
    pub fn problems(&self) -> &Diagnostics {
        &self.made().1
    }

    /// Returns the text, if the value is a string.
    #[must_use]
    pub fn text(&self) -> Option<&Arc<str>> {
        self.node.text()
    }

    fn made(&self) -> &(Expr, Diagnostics) {
        self.made.get_or_init(|| (self.read)(&self.node))
    }
}

impl fmt::Debug for JsonExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.node.fmt(f)
    }
}

impl PartialEq for JsonExpr {
    fn eq(&self, other: &JsonExpr) -> bool {
        self.node == other.node
    }
}

/// A template: text with interpolations and directives.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    /// Parts in source order. Strip markers and heredoc indentation have been applied to the literals already.
    pub parts: Vec<TemplatePart>,
    pub heredoc: bool,
    /// Range of the whole expression, with quotes or markers.
    pub range: Range,
}

#[derive(Clone, Debug, PartialEq)]
pub enum TemplatePart {
    /// Text with escapes resolved.
    Literal { text: Arc<str>, range: Range },
    /// `${expr}`.
    Interpolation(Expr),
    /// `%{if c}…%{else}…%{endif}`.
    If {
        condition: Expr,
        /// Parts if the condition is true.
        yes: Vec<TemplatePart>,
        /// Parts if the condition is false.
        no: Vec<TemplatePart>,
        /// Range from `%{if` to `%{endif}`.
        range: Range,
    },
    /// `%{for k, v in x}…%{endfor}`.
    For {
        /// Variable for the key or index.
        key: Option<Arc<str>>,
        /// Variable for the element.
        value: Arc<str>,
        collection: Expr,
        /// Parts repeated for each element.
        body: Vec<TemplatePart>,
        /// Range from `%{for` to `%{endfor}`.
        range: Range,
    },
}

/// A root name and the static steps after it.
#[derive(Clone, Debug, PartialEq)]
pub struct Traversal {
    pub root: Arc<str>,
    pub root_range: Range,
    pub steps: Vec<TraversalStep>,
    /// Range of the whole traversal.
    pub range: Range,
}

/// A static step of a traversal.
#[derive(Clone, Debug, PartialEq)]
pub enum TraversalStep {
    /// `.name`.
    Attribute {
        name: Arc<str>,
        /// Range of the step, with its dot.
        range: Range,
    },
    /// `[0]`, `["a"]` or the legacy `.0`: the key is a known number or string.
    Index {
        key: Value,
        /// Range of the step, with its brackets.
        range: Range,
    },
    /// `[*]` or `.*`, only where a traversal is parsed by itself (`ignore_changes`, legacy references).
    Splat { range: Range },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Full name, with `::` for namespaces.
    pub name: Arc<str>,
    pub name_range: Range,
    pub args: Vec<Expr>,
    /// True if the last argument is expanded (`...`).
    pub expand_last: bool,
    pub open: Range,
    pub close: Range,
    pub range: Range,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ObjectItem {
    pub key: ObjectKey,
    pub value: Expr,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ObjectKey {
    /// A bare word, which is its own text.
    Bare { name: Arc<str>, range: Range },
    /// Any other key, which is evaluated: quoted text, a number, a parenthesised expression.
    Expr(Expr),
}

/// A for expression.
#[derive(Clone, Debug, PartialEq)]
pub struct For {
    /// Variable for the key or index.
    pub key: Option<Arc<str>>,
    /// Variable for the element.
    pub value: Arc<str>,
    pub collection: Expr,
    /// Key of each result, for `{for …}`.
    pub result_key: Option<Expr>,
    pub result: Expr,
    /// True if values with one key are grouped (`...`).
    pub group: bool,
    pub condition: Option<Expr>,
    pub open: Range,
    pub range: Range,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    Negate,
    Not,
}

impl Expr {
    /// Returns the range of the whole expression.
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

    /// Returns the range of the leftmost part of the expression, at which problems with its value are reported. For
    /// quoted text it is inside the quotes.
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

    /// Returns the expression that a JSON value is interpreted as; any other expression unchanged.
    #[must_use]
    pub fn plain(&self) -> &Expr {
        match self {
            Expr::Json(json) => json.expr(),
            other => other,
        }
    }

    /// Returns the text of a template without interpolations, or of a string in the JSON syntax, even of one with
    /// template sequences.
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

    /// Returns the name if the expression is a lone word (`all`, `create`), or a string in the JSON syntax that is a
    /// name.
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
    #[must_use]
    pub fn range(&self) -> &Range {
        match self {
            ObjectKey::Bare { range, .. } => range,
            ObjectKey::Expr(e) => e.range(),
        }
    }
}

impl Body {
    /// Creates a body without content.
    #[must_use]
    pub fn empty(range: &Range) -> Body {
        Body {
            attributes: Vec::new(),
            blocks: Vec::new(),
            range: range.clone(),
            end: range.clone(),
        }
    }

    #[must_use]
    pub fn attribute(&self, name: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|a| &*a.name == name)
    }
}
