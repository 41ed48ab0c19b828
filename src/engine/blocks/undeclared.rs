//! Errors for references to what is not declared.

use addrs::{Mode, Module, Referenceable};
use config::ModuleNode;
use lang::scope::Reference;
use syntax::Diagnostic;
use syntax::content::{did_you_mean, suggest};

/// A limit for suggestions: comparing all names with all undeclared ones takes long where there are thousands of both.
const MOST_COMPARED: usize = 1_000_000;

/// The error of a reference from inside this module to what it does not declare. `compared` counts the names that were compared for
/// suggestions.
pub(crate) fn undeclared(config: &ModuleNode, reference: &Reference, compared: &mut usize) -> Option<Diagnostic> {
    let module = &config.module;
    let (what, detail) = match &reference.subject {
        Referenceable::Variable(name) if !module.variables.contains_key(name) => {
            lost(config, name)?;
            let hint = match near(name, module.variables.keys().map(|n| &**n), compared) {
                Some(near) => did_you_mean(Some(&near)),
                None => format!(" To declare it, add variable \"{name}\" {{}} to this module."),
            };
            let detail = format!("This module has no input variable \"{name}\".{hint}");
            ("input variable", detail)
        }
        Referenceable::Local(name) if !module.locals.contains_key(name) => {
            lost(config, name)?;
            let near = near(name, module.locals.keys().map(|n| &**n), compared);
            let hint = did_you_mean(near.as_deref());
            (
                "local value",
                format!("This module has no local value \"{name}\".{hint}"),
            )
        }
        Referenceable::Resource(resource)
        | Referenceable::ResourceInstance(addrs::ResourceInstance { resource, .. })
            if !module.resources.contains_key(resource) =>
        {
            lost(config, &resource.name)?;
            ("resource", undeclared_resource(config, resource, compared))
        }
        Referenceable::Module(name)
        | Referenceable::ModuleInstance(name, _)
        | Referenceable::ModuleOutput(name, _, _)
            if !module.module_calls.contains_key(name) =>
        {
            lost(config, name)?;
            let near = near(name, module.module_calls.keys().map(|n| &**n), compared);
            let hint = did_you_mean(near.as_deref());
            let scope = module_name(&config.path);
            let detail = format!("No module call named \"{name}\" is declared in {scope}.{hint}");
            ("module", detail)
        }
        _ => return None,
    };
    let summary = format!("Reference to undeclared {what}");
    Some(Diagnostic::error(summary, detail).at(&reference.range))
}

/// `None` where a block that could not be read may declare the name.
fn lost(config: &ModuleNode, name: &str) -> Option<()> {
    (!config.module.losses.may_declare(name)).then_some(())
}

/// The name of a module in messages.
fn module_name(path: &Module) -> String {
    if path.is_root() {
        "the root module".to_owned()
    } else {
        path.to_string()
    }
}

/// The declared name that is nearest to an undeclared one, up to a number of comparisons.
fn near<'n>(name: &str, names: impl ExactSizeIterator<Item = &'n str>, compared: &mut usize) -> Option<String> {
    if *compared > MOST_COMPARED {
        return None;
    }
    *compared += names.len();
    suggest(name, names).map(str::to_owned)
}

fn undeclared_resource(config: &ModuleNode, resource: &addrs::Resource, compared: &mut usize) -> String {
    let (what, a) = match resource.mode {
        Mode::Managed => ("managed resource", "A"),
        Mode::Data => ("data resource", "A"),
        Mode::Ephemeral => ("ephemeral resource", "An"),
        Mode::List => ("list resource", "A"),
    };
    let addrs::Resource { ty, name, .. } = resource;
    let declared = config.module.resources.values();
    let candidates: Vec<String> = declared
        .filter(|r| r.address.mode == resource.mode && *compared <= MOST_COMPARED)
        .map(|r| format!("{}.{}", r.address.ty, r.address.name))
        .collect();
    let hint = match near(&format!("{ty}.{name}"), candidates.iter().map(String::as_str), compared) {
        Some(near) => format!(" Did you mean {near}?"),
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
    format!("{a} {what} \"{ty}\" \"{name}\" has not been declared in {scope}.{hint}")
}
