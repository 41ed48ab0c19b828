//! `removed` blocks: resources that are to be destroyed or forgotten, and their destroy-time provisioners.

use std::collections::HashMap;

use addrs::{ConfigResource, Module, Target};
use config::{Config, Removed};
use syntax::{Diagnostic, Diagnostics};

use crate::plan::Plan;

/// All `removed` blocks, by the resource or module in their `from` argument.
#[derive(Debug, Default)]
pub struct Removals<'c> {
    resources: HashMap<ConfigResource, &'c Removed>,
    modules: HashMap<Module, &'c Removed>,
}

impl<'c> Removals<'c> {
    /// Collects the `removed` blocks of a configuration.
    #[must_use]
    pub fn new(config: &'c Config) -> Removals<'c> {
        let mut out = Removals::default();
        for node in config.nodes() {
            let below = |inner: &Module| Module(node.path.0.iter().chain(inner.0.iter()).cloned().collect());
            for removed in &node.module.removed {
                match &removed.from {
                    Target::Module(module) => {
                        out.modules.insert(below(module), removed);
                    }
                    Target::ConfigResource(resource) => {
                        let resource = resource.resource.in_module(&below(&resource.module));
                        out.resources.insert(resource, removed);
                    }
                    // The addresses of `removed` blocks cannot have instance keys.
                    Target::ModuleInstance(_) | Target::Resource(_) | Target::ResourceInstance(_) => {}
                }
            }
        }
        out
    }

    /// Returns an error for each resource or module that has a `removed` block and is still declared.
    #[must_use]
    pub fn still_declared(&self, config: &Config) -> Diagnostics {
        let problem = |kind: &str, what: &dyn std::fmt::Display, range: &syntax::Range| {
            Diagnostic::error(
                format!("Removed {kind} still exists"),
                format!(
                    "A removed block says that {what} was removed, but it is still declared here. Remove either this block \
                     or the removed block."
                ),
            )
            .at(range)
        };
        let resources = self
            .resources
            .keys()
            .filter_map(|address| Some(problem("resource", address, &config.resource(address)?.range)));
        let modules = self
            .modules
            .keys()
            .filter_map(|path| Some(problem("module", path, &config.call(path)?.range)));
        let mut out: Diagnostics = resources.chain(modules).collect();
        // The maps have a random order, so the errors are sorted to make the output reproducible.
        out.0
            .sort_by_cached_key(|d| d.subject.as_ref().map(|r| (r.file.to_string(), r.start.byte)));
        out
    }

    /// Returns the `removed` block for the resource itself. Blocks for its modules do not count.
    #[must_use]
    pub fn of_resource(&self, address: &ConfigResource) -> Option<&'c Removed> {
        self.resources.get(address).copied()
    }

    /// Returns true if a `removed` block for a resource, or for one of its modules, has `destroy = false`.
    #[must_use]
    pub fn forgets(&self, address: &ConfigResource) -> bool {
        self.says(address, false)
    }

    /// Returns true if a `removed` block for a resource, or for one of its modules, has `destroy = true`. A block without that argument
    /// leaves the decision to the state.
    #[must_use]
    pub fn destroys(&self, address: &ConfigResource) -> bool {
        self.says(address, true)
    }

    fn says(&self, address: &ConfigResource, destroy: bool) -> bool {
        if let Some(removed) = self.resources.get(address)
            && removed.destroy.is_some()
        {
            // A block for the resource takes precedence over blocks for its modules.
            return removed.destroy == Some(destroy);
        }
        let path = &address.module.0;
        (1..=path.len()).any(|length| {
            let module = Module(path[..length].into());
            self.modules.get(&module).is_some_and(|r| r.destroy == Some(destroy))
        })
    }
}

/// Returns the warning that lists the forgotten objects of a plan.
#[must_use]
pub fn warning(plan: &Plan, program: addrs::Program) -> Option<Diagnostic> {
    let forgotten: Vec<String> = plan
        .changes
        .iter()
        .filter(|c| c.action.forgets())
        .map(|c| format!(" - {}", c.address))
        .collect();
    if forgotten.is_empty() {
        return None;
    }
    Some(Diagnostic::warning(
        format!("Some objects will no longer be managed by {}", program.tool),
        format!(
            "When this plan is applied, these objects leave the state, but they are not deleted:\n{}\n\nFrom then on {} \
             does not manage them. To manage them again, import them.",
            forgotten.join("\n"),
            program.tool
        ),
    ))
}
