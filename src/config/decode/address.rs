//! Addresses that are written as expressions: in `moved`, `removed`, `import`, `replace_triggered_by`.

use addrs::{Target, parse};
use syntax::ast::{Expr, Traversal, TraversalStep};
use syntax::{Diagnostic, Diagnostics, Range};

use crate::decode::parts;

/// Renders a traversal as an address in the form of the command line, so that one parser reads the addresses of the
/// configuration and of the command line.
pub(crate) fn text(traversal: &Traversal) -> Result<String, Diagnostic> {
    let mut out = traversal.root.to_string();
    // An index selects a module after `module.NAME`, and a resource after `TYPE.NAME`; `before` tells them apart.
    let (mut before, mut last) = ("", &*traversal.root);
    for step in &traversal.steps {
        match step {
            TraversalStep::Attribute { name, .. } => {
                out.push('.');
                out.push_str(name);
                (before, last) = (last, name);
            }
            TraversalStep::Index { key, range } => {
                let what = if before == "module" { "module" } else { "resource" };
                out.push_str(&lang::refs::instance_key(key, range, what)?.to_string());
            }
            TraversalStep::Splat { range } => {
                return Err(Diagnostic::error("Invalid address", "An address cannot contain a splat.").at(range));
            }
        }
    }
    Ok(out)
}

/// Reads an expression as an address of a module or resource. Problems are reported.
pub(crate) fn target(expr: &Expr, diagnostics: &mut Diagnostics) -> Option<Target> {
    let traversal = parts::unquoted_traversal(expr, diagnostics)?;
    let target = text(&traversal)
        .and_then(|text| parse::target(&text).map_err(|e| Diagnostic::error(e.summary, e.detail).at(&traversal.range)));
    match target {
        Ok(target) => Some(target),
        Err(problem) => {
            diagnostics.push(problem);
            None
        }
    }
}

/// Returns the range of the first instance key in an address, or of the whole address if it has none.
pub(crate) fn first_key(expr: &Expr) -> &Range {
    let keyed = |s: &TraversalStep| matches!(s, TraversalStep::Index { .. });
    match expr {
        Expr::Traversal(t) => t.steps.iter().find(|s| keyed(s)).map_or(&t.range, TraversalStep::range),
        other => other.range(),
    }
}

/// Splits an address into its static steps and the key expressions in it, in source order. `None` if the expression is
/// not an address.
pub(crate) fn with_dynamic_keys(expr: &Expr) -> Option<(Traversal, Vec<&Expr>)> {
    match expr {
        Expr::Traversal(t) => Some((t.clone(), Vec::new())),
        Expr::Index {
            collection, key, range, ..
        } => {
            let (mut traversal, mut keys) = with_dynamic_keys(collection)?;
            traversal.range = range.clone();
            keys.push(key);
            Some((traversal, keys))
        }
        Expr::Relative { source, steps, range } => {
            let (mut traversal, keys) = with_dynamic_keys(source)?;
            traversal.steps.extend(steps.iter().cloned());
            traversal.range = range.clone();
            Some((traversal, keys))
        }
        _ => None,
    }
}
