//! Renders a tree as one line of text, for the expectations of tests.

use crate::ast::{BinaryOp, Body, Expr, ObjectKey, TemplatePart, TraversalStep, UnaryOp};

/// Renders a body: `a = …; type "label" { … }`.
pub(super) fn body(body: &Body) -> String {
    let mut items = Vec::new();
    for a in &body.attributes {
        items.push((a.range.start, format!("{} = {}", a.name, expr(&a.expr))));
    }
    for b in &body.blocks {
        let labels: String = b.labels.iter().map(|l| format!("{:?} ", l.text)).collect();
        items.push((b.range.start, format!("{} {labels}{{ {} }}", b.ty, self::body(&b.body))));
    }
    items.sort();
    items.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join("; ")
}

/// Renders an expression in prefix form.
pub(super) fn expr(e: &Expr) -> String {
    match e {
        Expr::Literal { value, .. } => format!("{value:?}").replace("Value", ""),
        Expr::Template(t) => {
            let name = if t.heredoc { "heredoc" } else { "text" };
            format!("({name}{})", parts(&t.parts))
        }
        Expr::Wrap { inner, .. } => format!("(wrap {})", expr(inner)),
        Expr::Traversal(t) => format!("{}{}", t.root, steps(&t.steps)),
        Expr::Relative { source, steps: s, .. } => format!("<{}>{}", expr(source), steps(s)),
        Expr::Index { collection, key, .. } => format!("(index {} {})", expr(collection), expr(key)),
        Expr::Splat { source, each, .. } => format!("(splat {} {})", expr(source), expr(each)),
        Expr::SplatElement { .. } => "@".into(),
        Expr::Call(c) => {
            let args: String = c.args.iter().map(|a| format!(" {}", expr(a))).collect();
            format!("(call {}{args}{})", c.name, if c.expand_last { " ..." } else { "" })
        }
        Expr::Conditional { condition, yes, no, .. } => format!("(? {} {} {})", expr(condition), expr(yes), expr(no)),
        Expr::Binary { op, left, right, .. } => format!("({} {} {})", operator(*op), expr(left), expr(right)),
        Expr::Unary {
            op: UnaryOp::Negate,
            operand,
            ..
        } => format!("(neg {})", expr(operand)),
        Expr::Unary {
            op: UnaryOp::Not,
            operand,
            ..
        } => format!("(! {})", expr(operand)),
        Expr::Tuple { items, .. } => format!("[{}]", items.iter().map(expr).collect::<Vec<_>>().join(" ")),
        Expr::Object { items, .. } => {
            let item = |key: &ObjectKey| match key {
                ObjectKey::Bare { name, .. } => name.to_string(),
                ObjectKey::Expr(e) => expr(e),
            };
            let items: Vec<_> = items
                .iter()
                .map(|i| format!("{}={}", item(&i.key), expr(&i.value)))
                .collect();
            format!("{{{}}}", items.join(" "))
        }
        Expr::For(f) => {
            let key = f.key.as_ref().map(|k| format!("{k} ")).unwrap_or_default();
            let result_key = f
                .result_key
                .as_ref()
                .map(|k| format!("{} => ", expr(k)))
                .unwrap_or_default();
            let group = if f.group { "..." } else { "" };
            let condition = f
                .condition
                .as_ref()
                .map(|c| format!(" if {}", expr(c)))
                .unwrap_or_default();
            format!(
                "(for {key}{} {} {result_key}{}{group}{condition})",
                f.value,
                expr(&f.collection),
                expr(&f.result)
            )
        }
        Expr::Parens { inner, .. } => format!("(paren {})", expr(inner)),
        Expr::Json(json) => format!("(json {:?})", json.node().kind),
        Expr::Invalid { .. } => "INVALID".into(),
    }
}

fn parts(list: &[TemplatePart]) -> String {
    list.iter()
        .map(|part| match part {
            TemplatePart::Literal { text, .. } => format!(" {text:?}"),
            TemplatePart::Interpolation(e) => format!(" ${}", expr(e)),
            TemplatePart::If { condition, yes, no, .. } => {
                format!(" (if {}{} else{})", expr(condition), parts(yes), parts(no))
            }
            TemplatePart::For {
                key,
                value,
                collection,
                body,
                ..
            } => {
                let key = key.as_ref().map(|k| format!("{k} ")).unwrap_or_default();
                format!(" (for {key}{value} {}{})", expr(collection), parts(body))
            }
        })
        .collect()
}

/// Renders the steps of a traversal as in the source.
pub(super) fn steps(list: &[TraversalStep]) -> String {
    list.iter()
        .map(|step| match step {
            TraversalStep::Attribute { name, .. } => format!(".{name}"),
            TraversalStep::Index { key, .. } => format!("[{key:?}]").replace("Value", ""),
            TraversalStep::Splat { .. } => "[*]".into(),
        })
        .collect()
}

fn operator(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Or => "||",
        BinaryOp::And => "&&",
        BinaryOp::Equal => "==",
        BinaryOp::NotEqual => "!=",
        BinaryOp::Less => "<",
        BinaryOp::LessOrEqual => "<=",
        BinaryOp::Greater => ">",
        BinaryOp::GreaterOrEqual => ">=",
        BinaryOp::Add => "+",
        BinaryOp::Subtract => "-",
        BinaryOp::Multiply => "*",
        BinaryOp::Divide => "/",
        BinaryOp::Modulo => "%",
    }
}
