//! Errors for references to undeclared names.

use addrs::{Mode, Module, Referenceable};
use config::ModuleNode;
use lang::scope::Reference;
use syntax::Diagnostic;
use syntax::content::{Near, hint, near};

/// Maximum number of name comparisons for suggestions. With thousands of declared and thousands of undeclared names, comparing all pairs
/// would take too long.
const MOST_COMPARED: usize = 1_000_000;

/// Returns the error for a reference from this module to an undeclared name. `None` if the name is declared, or may be declared in a
/// block that could not be parsed. `compared` is increased by the number of names compared for the suggestion.
pub(crate) fn undeclared(config: &ModuleNode, reference: &Reference, compared: &mut usize) -> Option<Diagnostic> {
    let module = &config.module;
    let edit = |near: Option<Near>, name: &str| near.and_then(|near| near.edit(name, &reference.range));
    let (what, detail, edit) = match &reference.subject {
        Referenceable::Variable(name) if !module.variables.contains_key(name) => {
            lost(config, name)?;
            let near = nearest(name, module.variables.keys().map(|n| &**n), compared);
            let hint = match &near {
                Some(near) => hint(Some(near)),
                None => format!(" To declare it, add variable \"{name}\" {{}} to this module."),
            };
            let detail = format!("This module has no input variable \"{name}\".{hint}");
            ("input variable", detail, edit(near, name))
        }
        Referenceable::Local(name) if !module.locals.contains_key(name) => {
            lost(config, name)?;
            let near = nearest(name, module.locals.keys().map(|n| &**n), compared);
            let hint = hint(near.as_ref());
            let detail = format!("This module has no local value \"{name}\".{hint}");
            ("local value", detail, edit(near, name))
        }
        Referenceable::Resource(resource)
        | Referenceable::ResourceInstance(addrs::ResourceInstance { resource, .. })
            if !module.resources.contains_key(resource) =>
        {
            lost(config, &resource.name)?;
            let (detail, near) = undeclared_resource(config, resource, compared);
            let written = format!("{}.{}", resource.ty, resource.name);
            ("resource", detail, edit(near, &written))
        }
        Referenceable::Module(name)
        | Referenceable::ModuleInstance(name, _)
        | Referenceable::ModuleOutput(name, _, _)
            if !module.module_calls.contains_key(name) =>
        {
            lost(config, name)?;
            let near = nearest(name, module.module_calls.keys().map(|n| &**n), compared);
            let hint = hint(near.as_ref());
            let scope = module_name(&config.path);
            let detail = format!("No module call named \"{name}\" is declared in {scope}.{hint}");
            ("module", detail, edit(near, name))
        }
        _ => return None,
    };
    let mut problem = Diagnostic::error(format!("Reference to undeclared {what}"), detail).at(&reference.range);
    problem.edit = edit;
    Some(problem)
}

/// Returns `None` if the name may be declared in a block that could not be parsed, so that no error is reported for it.
fn lost(config: &ModuleNode, name: &str) -> Option<()> {
    (!config.module.losses.may_declare(name)).then_some(())
}

fn module_name(path: &Module) -> String {
    if path.is_root() {
        "the root module".to_owned()
    } else {
        path.to_string()
    }
}

/// Returns the declared name that is nearest to an undeclared one. `None` if no name is near, or once [`MOST_COMPARED`] names have been
/// compared.
fn nearest<'n>(name: &str, names: impl ExactSizeIterator<Item = &'n str>, compared: &mut usize) -> Option<Near> {
    if *compared > MOST_COMPARED {
        return None;
    }
    *compared += names.len();
    near(name, names)
}

/// Returns the detail of the error, and the nearest declared resource.
fn undeclared_resource(
    config: &ModuleNode,
    resource: &addrs::Resource,
    compared: &mut usize,
) -> (String, Option<Near>) {
    let (what, a) = match resource.mode {
        Mode::Managed => ("managed resource", "A"),
        Mode::Data => ("data resource", "A"),
        Mode::Ephemeral => ("ephemeral resource", "An"),
        Mode::List => ("list resource", "A"),
    };
    let addrs::Resource { ty, name, .. } = resource;
    let declared = config.module.resources.values();
    let candidates: Vec<String> = declared
        // Beyond the limit no names are collected, because they would not be compared.
        .filter(|r| r.address.mode == resource.mode && *compared <= MOST_COMPARED)
        .map(|r| format!("{}.{}", r.address.ty, r.address.name))
        .collect();
    let near = nearest(&format!("{ty}.{name}"), candidates.iter().map(String::as_str), compared);
    let hint = match &near {
        Some(near) => format!(" Did you mean {}?", near.name),
        // A forgotten or superfluous "data." is a common mistake.
        None => {
            let mode = match resource.mode {
                Mode::Managed => Mode::Data,
                _ => Mode::Managed,
            };
            let swapped = addrs::Resource {
                mode,
                ..resource.clone()
            };
            match config.module.resources.get(&swapped) {
                Some(_) => format!("\n\nDid you mean {swapped}?"),
                None => String::new(),
            }
        }
    };
    let scope = module_name(&config.path);
    let detail = format!("{a} {what} \"{ty}\" \"{name}\" has not been declared in {scope}.{hint}");
    (detail, near)
}
