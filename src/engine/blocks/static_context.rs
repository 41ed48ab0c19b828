//! Static context: expressions that OpenTofu evaluates before a plan, and the restrictions on their references.

use std::collections::HashSet;
use std::sync::Arc;

use addrs::{Module, Referenceable};
use config::{Config, ModuleNode};
use lang::refs::{provider_functions, references_in_expr};
use syntax::Diagnostic;
use syntax::ast::Expr;

/// Returns an error if an expression depends on an object whose value is not known before a plan, or calls a provider function, directly or
/// through variables and local values. The error names the first such object or function.
pub(super) fn dynamic_reference(root: &Config, node: &ModuleNode, expr: &Expr) -> Option<Diagnostic> {
    let mut stack: Vec<(&ModuleNode, &Expr)> = vec![(node, expr)];
    let mut seen: HashSet<(Module, Arc<str>, bool)> = HashSet::new();
    while let Some((node, expr)) = stack.pop() {
        if let Some(call) = provider_functions(expr).into_iter().next() {
            let name = &call.provider;
            let detail = format!("No provider is running yet, so no function of \"{name}\" can be called here.");
            return Some(Diagnostic::error("Provider function in static context", detail).at(&call.range));
        }
        // Invalid references are reported when the edges are added.
        let (references, _) = references_in_expr(expr);
        for reference in references {
            match &reference.subject {
                Referenceable::Local(name) => {
                    let local = node.module.locals.get(name);
                    let new = seen.insert((node.path.clone(), name.clone(), true));
                    stack.extend(local.filter(|_| new).map(|local| (node, &local.expr)));
                }
                Referenceable::Variable(name) => {
                    let new = seen.insert((node.path.clone(), name.clone(), false));
                    // The value of the variable is the argument of the module call, evaluated in the calling module.
                    let call = root.call(&node.path).filter(|_| new);
                    let argument = call.and_then(|call| call.inputs.attribute(name));
                    let caller = node.path.parent().and_then(|(parent, _)| root.node(&parent));
                    stack.extend(caller.zip(argument).map(|(caller, argument)| (caller, &argument.expr)));
                }
                Referenceable::Path(_) => {}
                Referenceable::Terraform(name) if &**name == "workspace" => {}
                other => {
                    let summary = match other {
                        Referenceable::Module(_) => "Module output not supported in static context",
                        Referenceable::Terraform(_) => "Invalid attribute in static context",
                        _ => "Dynamic value in static context",
                    };
                    let detail = format!(
                        "{other} is not known before a plan is made, and the instances of a provider configuration must be known \
                         earlier. Only input variables, local values made of them, paths, functions and terraform.workspace can be \
                         used here."
                    );
                    return Some(Diagnostic::error(summary, detail).at(&reference.range));
                }
            }
        }
    }
    None
}
