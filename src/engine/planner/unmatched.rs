//! Diagnostics about addresses in `-target`, `-exclude` and `-replace` that match nothing. Many of these are typing errors, so the nearest
//! address is suggested. Terraform ignores them, and scripts rely on that, so they are warnings unless strict addresses are requested. For
//! `-exclude` they are always errors, since the plan would change the objects that the user wants to protect.

use std::collections::BTreeSet;
use std::fmt::Display;

use addrs::{AbsResource, AbsResourceInstance, ConfigResource, InstanceKey, Module, ModuleInstance, Target};
use syntax::content::suggest;
use syntax::{Diagnostic, Diagnostics};

use super::Planner;

const EXCLUDE: &str = "-exclude";

/// Maximum number of addresses that are compared for a suggestion.
const MOST_COMPARED: usize = 100_000;

impl Planner<'_> {
    /// Returns the diagnostic for an address that matches nothing.
    fn no_match(&self, flag: &str, address: &dyn Display, what: &str, near: Option<&str>) -> Diagnostic {
        let hint = near.map(|near| format!(" Did you mean {near}?")).unwrap_or_default();
        let summary = format!("No match for {flag}");
        let detail = format!(
            "There is no {what} {address} in the configuration or the state, which the {flag} option names.{hint}"
        );
        match self.spec.options.strict_addresses || flag == EXCLUDE {
            true => Diagnostic::error(summary, detail),
            false => Diagnostic::warning(summary, detail),
        }
    }

    /// Returns the targets and excludes, with their flags.
    fn flag_targets(&self) -> impl Iterator<Item = (&'static str, &Target)> {
        let targets = self.spec.options.targets.iter().map(|target| ("-target", target));
        let excludes = self.spec.options.excludes.iter().map(|target| (EXCLUDE, target));
        // A plan for the command `import` reports a missing address itself.
        targets.chain(excludes).filter(|_| self.spec.options.import.is_none())
    }

    /// Returns the previous addresses of moved objects. Options may still use them.
    fn moved(&self) -> impl Iterator<Item = &AbsResourceInstance> {
        self.spec.moves.from.values()
    }

    fn module_in_state(&self, module: &Module) -> bool {
        let stored = self.context.inputs.state.resources.keys().map(|r| &r.module);
        let mut modules = stored.chain(self.moved().map(|i| &i.module));
        modules.any(|m| module.contains(&m.module()))
    }

    fn has_module(&self, module: &Module) -> bool {
        self.context.inputs.config.node(module).is_some() || self.module_in_state(module)
    }

    fn has_resource(&self, resource: &ConfigResource) -> bool {
        self.context.inputs.config.resource(resource).is_some()
            || self.resources.by_config.contains_key(resource)
            || self.moved().any(|i| i.config() == *resource)
    }

    /// Returns diagnostics for addresses whose block is neither in the configuration nor in the state.
    pub(super) fn unmatched_blocks(&self) -> Diagnostics {
        let mut out = Diagnostics::new();
        for (flag, target) in self.flag_targets() {
            match target {
                Target::Module(m) => self.check_module(flag, m, &mut out),
                Target::ModuleInstance(m) => self.check_module(flag, &m.module(), &mut out),
                Target::ConfigResource(r) => self.check_resource(flag, r, &mut out),
                Target::Resource(r) => self.check_resource(flag, &r.config(), &mut out),
                Target::ResourceInstance(i) => self.check_resource(flag, &i.config(), &mut out),
            }
        }
        for address in &self.spec.options.force_replace {
            self.check_resource("-replace", &address.config(), &mut out);
        }
        out
    }

    fn check_module(&self, flag: &str, module: &Module, out: &mut Diagnostics) {
        if module.is_root() || self.has_module(module) {
            return;
        }
        let address_text = module.to_string();
        let nodes = self.context.inputs.config.nodes();
        let known = nodes.iter().map(|n| n.path.clone());
        let in_state = self.context.inputs.state.resources.keys().map(|r| r.module.module());
        let names: BTreeSet<String> = known.chain(in_state).map(|m| m.to_string()).collect();
        let near = suggest(&address_text, names.iter().take(MOST_COMPARED).map(String::as_str));
        out.push(self.no_match(flag, &address_text, "module", near));
    }

    fn check_resource(&self, flag: &str, resource: &ConfigResource, out: &mut Diagnostics) {
        if self.has_resource(resource) {
            return;
        }
        let nodes = self.context.inputs.config.nodes();
        let known = nodes.iter().flat_map(|n| {
            let resources = n.module.resources.keys();
            resources.map(|r| r.in_module(&n.path))
        });
        let names: BTreeSet<String> = known
            .chain(self.resources.by_config.keys().cloned())
            .map(|r| r.to_string())
            .collect();
        let address_text = resource.to_string();
        let near = suggest(&address_text, names.iter().take(MOST_COMPARED).map(String::as_str));
        let what = match resource.resource.mode {
            addrs::Mode::Managed => "resource",
            addrs::Mode::Data => "data source",
            addrs::Mode::Ephemeral => "ephemeral resource",
            addrs::Mode::List => "list resource",
        };
        out.push(self.no_match(flag, &address_text, what, near));
    }

    /// Returns diagnostics for addresses of instances that do not exist. Called after the walk, when the instances are known.
    /// `unmatched_blocks` has reported addresses whose block is missing.
    pub(super) fn unmatched_instances(&self) -> Diagnostics {
        let mut out = Diagnostics::new();
        let has_block = |target: &Target| match target {
            Target::Module(m) => self.has_module(m),
            Target::ModuleInstance(m) => self.has_module(&m.module()),
            Target::ConfigResource(r) => self.has_resource(r),
            Target::Resource(r) => self.has_resource(&r.config()),
            Target::ResourceInstance(i) => self.has_resource(&i.config()),
        };
        for (flag, target) in self.flag_targets().filter(|(_, target)| has_block(target)) {
            match target {
                Target::Module(_) | Target::ConfigResource(_) => {}
                Target::ModuleInstance(m) => self.check_module_instance(flag, m, &mut out),
                Target::Resource(r) => {
                    self.check_module_instance(flag, &r.module, &mut out);
                }
                Target::ResourceInstance(i) => self.check_instance(flag, i, &mut out),
            }
        }
        for address in &self.spec.options.force_replace {
            if self.has_resource(&address.config()) {
                self.check_instance("-replace", address, &mut out);
            }
        }
        // The walk has reported failures of expansion, so those found again here are dropped.
        self.context.evaluator.take_diagnostics();
        out
    }

    fn check_module_instance(&self, flag: &str, module: &ModuleInstance, out: &mut Diagnostics) {
        let in_state = |module: &ModuleInstance| {
            let stored = self.context.inputs.state.resources.keys().map(|r| &r.module);
            let mut modules = stored.chain(self.moved().map(|i| &i.module));
            modules.any(|m| module.contains(m))
        };
        let Ok(instances) = self.context.evaluator.module_instances(&module.module()) else {
            return;
        };
        if instances.contains(module) || in_state(module) {
            return;
        }
        let address_text = module.to_string();
        let names: Vec<String> = instances.iter().take(MOST_COMPARED).map(ToString::to_string).collect();
        let near = suggest(&address_text, names.iter().map(String::as_str));
        out.push(self.no_match(flag, &address_text, "module instance", near));
    }

    fn check_instance(&self, flag: &str, address: &AbsResourceInstance, out: &mut Diagnostics) {
        if self.context.inputs.state.instance(address).is_some() || self.moved().any(|i| i == address) {
            return;
        }
        let whole = address.containing_resource();
        let mut keys: Vec<InstanceKey> = Vec::new();
        if self.context.inputs.config.resource(&address.config()).is_some() {
            let Ok(modules) = self.context.evaluator.module_instances(&address.module.module()) else {
                return;
            };
            if modules.contains(&address.module) {
                let resource = &address.resource.resource;
                let Ok(expansion) = self.context.evaluator.resource_expansion(&address.module, resource) else {
                    return;
                };
                if expansion.has(&address.resource.key) {
                    return;
                }
                // An address without a key selects all instances of a resource with `count` or `for_each`. In `-replace`, an address always
                // means a single instance.
                if address.resource.key.is_none() && flag != "-replace" {
                    return;
                }
                keys = expansion.keys();
            } else {
                return self.check_module_instance(flag, &address.module, out);
            }
        }
        keys.extend(self.keys_in_state(&whole));
        let names: Vec<String> = keys
            .into_iter()
            .take(MOST_COMPARED)
            .map(|key| whole.instance(key).to_string())
            .collect();
        let address_text = address.to_string();
        let near = suggest(&address_text, names.iter().map(String::as_str)).or(names.first().map(String::as_str));
        out.push(self.no_match(flag, &address_text, "instance", near));
    }

    fn keys_in_state(&self, resource: &AbsResource) -> Vec<InstanceKey> {
        let stored = self.context.inputs.state.resources.get(resource);
        stored.map_or_else(Vec::new, |stored| stored.instances.keys().cloned().collect())
    }
}
