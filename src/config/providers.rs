//! Resolution of the provider configuration of each local name in each module.
//!
//! A module finds a configuration, in this order: what its caller passes in `providers`; a block of its own; and, for
//! the configuration without alias, what its caller finds for the same provider. The root finds its blocks, or an
//! empty default configuration. Configurations are matched by provider address, not by local name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use addrs::{AbsProviderConfig, LocalProviderConfig, Provider};
use syntax::content::near;
use syntax::{Diagnostic, Diagnostics, Range};
use versions::Constraints;

/// Summary of the error about a missing provider configuration.
pub(crate) const NOT_PRESENT: &str = "Provider configuration not present";

use crate::model::{
    Config, Module, ModuleCall, ModuleNode, PassedProvider, ProviderConfig, ProviderSource, Requirement,
    RequirementOrigin, Visible, VisibleProviders,
};

pub(crate) fn key(module: &Module, local: &LocalProviderConfig) -> (Provider, Option<Arc<str>>) {
    (module.provider_for_local_name(&local.name), local.alias.clone())
}

/// Returns true if a block is empty and only declares that the caller passes a configuration, as in Terraform 0.10 to
/// 0.12.
fn is_proxy(config: &ProviderConfig) -> bool {
    let body = &config.body;
    body.attributes.is_empty() && body.blocks.is_empty() && config.version.is_none() && config.for_each.is_none()
}

impl Config {
    /// Adds `provider` blocks to the root module, in place of those with the same name and alias. Reports conflicts
    /// between the resulting provider configurations and the modules.
    #[must_use]
    pub fn with_root_providers(&self, blocks: Vec<ProviderConfig>) -> (Config, Diagnostics) {
        let mut root = self.root.clone();
        if !blocks.is_empty() {
            // The module is copied, because other runs of a test file use it without these blocks.
            let mut module = Module::clone(&root.module);
            let named = blocks.into_iter().map(|block| (block.address.clone(), block));
            module.provider_configs.extend(named);
            root.module = Arc::new(module);
        }
        let mut diagnostics = Diagnostics::new();
        resolve(&mut root, &mut diagnostics);
        (Config { root }, diagnostics)
    }
}

/// Returns true if a module requires that its caller passes this configuration.
fn expects(module: &Module, config: &LocalProviderConfig) -> bool {
    let required = module.required_providers.get(&config.name);
    required.is_some_and(|r| r.configuration_aliases.iter().any(|alias| alias.config == *config))
}

/// Builds the detail of the error about a root module that expects a provider configuration from a caller.
fn without_caller(config: &LocalProviderConfig) -> String {
    format!(
        "This module expects the provider configuration {config} from its caller (configuration_aliases), and as the root module it has \
         none. Call the module from another configuration, or add a provider block with that alias to run it by itself."
    )
}

/// Sets the visible provider configurations of every module in the tree, and reports configurations that are missing or
/// do not match.
pub(crate) fn resolve(root: &mut ModuleNode, diagnostics: &mut Diagnostics) {
    root.providers = own(root);
    local_names(root, diagnostics);
    handed_on(root, None, diagnostics);
    unknown_aliases(root, None, diagnostics);
    root.check_instances(diagnostics);
    below(root, None, diagnostics);
}

fn own(node: &ModuleNode) -> VisibleProviders {
    let module = &node.module;
    let visible = |(local, block): (&LocalProviderConfig, &ProviderConfig)| {
        let (provider, alias) = key(module, local);
        let address = AbsProviderConfig::new(node.path.clone(), provider.clone(), alias.clone());
        ((provider, alias), Visible::of_block(address, block))
    };
    module.provider_configs.iter().map(visible).collect()
}

/// Resolves the provider configurations of the modules below `parent`. `repeats` is the range of the argument (count,
/// for_each or depends_on) that applies to `parent`, if any.
fn below(parent: &mut ModuleNode, repeats: Option<&Range>, diagnostics: &mut Diagnostics) {
    let caller = parent.module.clone();
    for (name, child) in &mut parent.children {
        let Some(call) = caller.module_calls.get(name) else {
            continue;
        };
        let counted = call.repetition().next().map(|e| e.range());
        let repeats = counted.or(call.depends_on.first().map(|r| &r.range)).or(repeats);
        // The order is that of increasing precedence: default configurations of the caller apply to the module, too;
        // the module's own blocks replace them; and passed configurations replace both.
        let mut visible: VisibleProviders = parent
            .providers
            .iter()
            .filter(|((_, alias), _)| alias.is_none())
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        visible.extend(own(child));
        // A refused module was not decoded, so the configurations that it expects are unknown.
        if child.module.refused {
            continue;
        }
        for passed in call.providers.iter().flatten() {
            let (provider, alias) = key(&caller, &passed.parent.config);
            let behind = parent.providers.get(&(provider.clone(), alias.clone())).cloned();
            let expected = key(&child.module, &passed.child.config);
            if expected.0 != provider {
                diagnostics.push(mismatch(passed, &provider, child, &expected.0));
                continue;
            }
            if behind.is_none() && alias.is_some() {
                diagnostics.push(
                    Diagnostic::error(
                        NOT_PRESENT,
                        match expects(&caller, &passed.parent.config) {
                            true => without_caller(&passed.parent.config),
                            false => format!(
                                "There is no configuration {} in this module to hand over: neither a provider block with that \
                                 alias, nor an entry in configuration_aliases.",
                                passed.parent.config
                            ),
                        },
                    )
                    .at(&passed.parent.range),
                );
            }
            // After an error, an empty default configuration is used, so that resources of the module are not reported
            // as well.
            let behind = behind.unwrap_or_else(|| Visible::single(AbsProviderConfig::root(provider)));
            visible.insert(expected, behind.passed(&passed.parent, &parent.path, call));
        }
        check_call(call, child, repeats, diagnostics);
        child.providers = visible;
        local_names(child, diagnostics);
        handed_on(child, Some(call), diagnostics);
        unknown_aliases(child, Some(call), diagnostics);
        child.check_instances(diagnostics);
        below(child, repeats, diagnostics);
    }
}

fn mismatch(passed: &PassedProvider, provider: &Provider, child: &ModuleNode, expected: &Provider) -> Diagnostic {
    let detail = format!(
        "In this module, \"{}\" is {}, but in {} \"{}\" is {}. A configuration can only be handed over as one of the \
         same provider.",
        passed.parent.config.name,
        provider.for_display(),
        child.path,
        passed.child.config.name,
        expected.for_display()
    );
    // The caller may have confused two names: the module may have the passed provider under another name.
    let other = child
        .module
        .required_providers
        .values()
        .find(|r| r.provider == *provider);
    let (detail, at) = match other {
        Some(other) => (
            format!("{detail} There it has the name \"{}\".", other.name),
            &passed.child.range,
        ),
        None => (detail, &passed.parent.range),
    };
    Diagnostic::error("Provider type mismatch", detail).at(at)
}

/// Checks a module call against the provider configurations that the module requires (`configuration_aliases`), and
/// against its own `provider` blocks.
fn check_call(call: &ModuleCall, child: &ModuleNode, repeats: Option<&Range>, diagnostics: &mut Diagnostics) {
    let module = &child.module;
    let configured = |config: &LocalProviderConfig| module.provider_configs.get(config).is_some_and(|c| !is_proxy(c));
    for required in module.required_providers.values() {
        for alias in &required.configuration_aliases {
            if call.passed(&alias.config).is_none() && !configured(&alias.config) {
                diagnostics.push(
                    Diagnostic::error(
                        "Missing required provider configuration",
                        format!(
                            "The module needs to be given a configuration of the provider {} by the name {}. Add it to the \
                             \"providers\" argument of this call.",
                            required.provider.for_display(),
                            alias.config
                        ),
                    )
                    .at(&call.range),
                );
            }
        }
    }
    check_passed(call, child, diagnostics);
    // Provider configurations are resolved once for each module, not for each of its instances.
    if let (Some(at), Some(config)) = (repeats, module.provider_configs.values().find(|c| !is_proxy(c))) {
        diagnostics.push(
            Diagnostic::error(
                "Module is incompatible with count, for_each, and depends_on",
                format!(
                    "The module {} has a provider block of its own, at {}. Such a module can have only one instance, and cannot \
                     wait for other objects. Configure the provider in the root module instead, and hand it over.",
                    child.path, config.range
                ),
            )
            .at(at),
        );
    }
    redundant_proxies(module, diagnostics);
}

/// Checks that the module expects the provider configurations that a call passes, and has no `provider` blocks of its
/// own for them.
fn check_passed(call: &ModuleCall, child: &ModuleNode, diagnostics: &mut Diagnostics) {
    let module = &child.module;
    let expected = |config: &LocalProviderConfig| {
        module.provider_configs.get(config).is_some_and(is_proxy)
            || module
                .required_providers
                .get(&config.name)
                .is_some_and(|r| config.alias.is_none() || r.configuration_aliases.iter().any(|a| a.config == *config))
    };
    for passed in call.providers.iter().flatten() {
        let name = &passed.child.config;
        if !expected(name) {
            let provider = module.provider_for_local_name(&name.name);
            let implied = provider == Provider::implied(&name.name);
            let detail = format!(
                "The module {} does not say that it uses a provider by the name {name}; it is taken to be {}. To make that \
                 certain, add an entry to the module's required_providers{}.",
                child.path,
                provider.for_display(),
                if name.alias.is_some() {
                    ", with configuration_aliases"
                } else {
                    ""
                }
            );
            // Only a warning if the name implies the same provider that the module uses for it.
            let summary = "Reference to undefined provider";
            let diagnostic = if implied {
                Diagnostic::warning(summary, detail)
            } else {
                Diagnostic::error(summary, detail)
            };
            diagnostics.push(diagnostic.at(&passed.child.range));
        }
        if let Some(config) = module.provider_configs.get(name).filter(|c| !is_proxy(c)) {
            diagnostics.push(
                Diagnostic::error(
                    "Cannot override provider configuration",
                    format!(
                        "The module configures {name} itself, at {}; it cannot be given another.",
                        config.range
                    ),
                )
                .at(&passed.child.range),
            );
        }
    }
}

/// Warns about empty provider blocks, which required_providers has replaced.
fn redundant_proxies(module: &Module, diagnostics: &mut Diagnostics) {
    // All blocks of one name share a warning, at the first of them.
    let mut proxies: BTreeMap<&Arc<str>, Vec<&Range>> = BTreeMap::new();
    for (address, config) in module.provider_configs.iter().filter(|(_, c)| is_proxy(c)) {
        proxies.entry(&address.name).or_default().push(&config.range);
    }
    for (name, ranges) in proxies {
        if let Some(first) = ranges.into_iter().min() {
            diagnostics.push(
                Diagnostic::warning(
                    "Redundant empty provider block",
                    format!(
                        "An empty provider block once declared that a module expects a configuration from its caller. An entry \
                         for \"{name}\" in required_providers declares it now, with configuration_aliases if there are several; \
                         the empty blocks can go."
                    ),
                )
                .at(first),
            );
        }
    }
}

/// Warns about default provider configurations that a module passes to the modules it calls, although it neither
/// configures nor requires them, or does not receive them from its caller.
fn handed_on(node: &ModuleNode, call: Option<&ModuleCall>, diagnostics: &mut Diagnostics) {
    let module = &node.module;
    let passed = module.module_calls.values().flat_map(|c| c.providers.iter().flatten());
    for passed in passed.filter(|p| p.parent.config.alias.is_none()) {
        let name = &passed.parent.config;
        let configured = module.provider_configs.get(name).is_some_and(|c| !is_proxy(c));
        let provider = module.provider_for_local_name(&name.name);
        if !configured && !module.required_providers.contains_key(&name.name) {
            diagnostics.push(
                Diagnostic::warning(
                    "Reference to undefined provider",
                    format!(
                        "Nothing here says which provider \"{name}\" is; it is taken to be {}. To make that certain, add an entry \
                         named \"{name}\" to required_providers.",
                        provider.for_display()
                    ),
                )
                .at(&passed.parent.range),
            );
        } else if let Some(call) = call.filter(|c| !configured && c.passed(name).is_none()) {
            diagnostics.push(
                Diagnostic::warning(
                    "Missing required provider configuration",
                    format!(
                        "The module {} hands on a configuration of {} by the name \"{name}\", and is not given one. Add an entry for \
                         \"{name}\" to the \"providers\" argument of this call.",
                        node.path,
                        provider.for_display()
                    ),
                )
                .at(&call.range),
            );
        }
    }
}

/// Warns about providers that have two local names in a module: this is legal, but mostly a mistake.
fn local_names(node: &ModuleNode, diagnostics: &mut Diagnostics) {
    let module = &node.module;
    let twice = |provider: &Provider, first: &str, second: &str, range: &Range| {
        Diagnostic::warning(
            "Duplicate required provider",
            format!(
                "The provider {} has the names \"{first}\" and \"{second}\" here. Both mean the same provider; one is enough.",
                provider.for_display()
            ),
        )
        .at(range)
    };
    let mut names: BTreeMap<&Provider, &Arc<str>> = BTreeMap::new();
    for required in module.required_providers.values() {
        let provider = &required.provider;
        if let Some(first) = names.insert(provider, &required.name) {
            diagnostics.push(twice(provider, first, &required.name, &required.range));
        } else if *provider == Provider::implied(&provider.ty)
            && required.name != provider.ty
            && module.provider_configs.keys().any(|c| c.name == provider.ty)
        {
            // A provider block uses the implied name, which is a second name of the same provider.
            diagnostics.push(twice(provider, &required.name, &provider.ty, &required.range));
        }
    }
    for resource in module.resources.values() {
        // A resource without a `provider` argument uses the implied name.
        let implied = resource.address.implied_provider();
        if resource.provider_ref.is_some()
            || resource.address.mode == addrs::Mode::Ephemeral
            || module.required_providers.contains_key(implied)
        {
            continue;
        }
        let provider = Provider::implied(implied);
        if let Some(name) = names.get(&provider) {
            diagnostics.push(twice(&provider, name, implied, &resource.range));
        }
    }
}

/// Reports resources and actions whose provider configuration has an unknown alias.
fn unknown_aliases(node: &ModuleNode, call: Option<&ModuleCall>, diagnostics: &mut Diagnostics) {
    let module = &node.module;
    let resources = module.resources.values();
    let references = resources
        .map(|r| (&r.provider_ref, r.address.in_module(&node.path).to_string()))
        .chain((module.actions.values()).map(|a| (&a.provider_ref, a.address.in_module(&node.path).to_string())));
    for (reference, address) in references {
        let Some(reference) = reference.as_ref().filter(|r| r.config.alias.is_some()) else {
            continue;
        };
        if node.providers.contains_key(&key(&node.module, &reference.config)) {
            continue;
        }
        let expected = expects(module, &reference.config);
        if expected && call.is_none() {
            diagnostics.push(
                Diagnostic::error(NOT_PRESENT, without_caller(&reference.config))
                    .at(&reference.range)
                    .about(address),
            );
        } else if !expected {
            // An alias that a called module expects and does not receive has been reported at the call.
            let written = reference.config.to_string();
            let known: Vec<String> = module.provider_configs.keys().map(ToString::to_string).collect();
            let near = near(&written, known.iter().map(String::as_str));
            diagnostics.push(
                Diagnostic::error(
                    NOT_PRESENT,
                    format!(
                        "There is no provider configuration {} in this module: neither a provider block with that alias, nor an \
                         entry in configuration_aliases through which a caller could hand one over.{}",
                        reference.config,
                        near.as_ref().map_or_else(String::new, |near| format!(" Did you mean {}?", near.name))
                    ),
                )
                .at(&reference.range)
                .misspelt(&written, &reference.range, near.as_ref())
                .about(address),
            );
        }
    }
}

/// Warns about `backend`, `state_store` and `cloud` blocks in a called module: they have an effect in the root module
/// only.
pub(crate) fn misplaced(node: &ModuleNode, diagnostics: &mut Diagnostics) {
    let module = &node.module;
    if let Some(range) = module.backend.as_ref().map(|b| &b.range) {
        diagnostics.push(
            Diagnostic::warning(
                "Backend configuration ignored",
                "The root module chooses the backend, for the whole configuration. A backend block in a called \
                 module has no effect.",
            )
            .at(range),
        );
    }
    if let Some(range) = module.cloud.as_ref().map(|b| &b.range) {
        diagnostics.push(
            Diagnostic::warning(
                "Cloud configuration ignored",
                "The root module chooses the backend, for the whole configuration. A cloud block in a called module \
                 has no effect.",
            )
            .at(range),
        );
    }
}

impl ModuleNode {
    /// Returns the provider configuration behind a local name of this module.
    #[must_use]
    pub fn provider(&self, local: &LocalProviderConfig) -> AbsProviderConfig {
        let key = key(&self.module, local);
        match (self.providers.get(&key), key) {
            (Some(found), _) => found.address.clone(),
            // Without a configuration anywhere up the tree, the provider has an empty default in the root module.
            (None, (provider, None)) => AbsProviderConfig::root(provider),
            (None, (provider, alias)) => AbsProviderConfig::new(self.path.clone(), provider, alias),
        }
    }
}

impl Config {
    /// Returns every provider configuration, in order of address: the blocks of all modules, except those that a
    /// passed configuration replaces, and the default configurations that are needed without being written.
    #[must_use]
    pub fn provider_configs(&self) -> Vec<ProviderSource<'_>> {
        let mut out: BTreeMap<AbsProviderConfig, ProviderSource<'_>> = BTreeMap::new();
        let nodes = self.nodes();
        for node in &nodes {
            for (local, block) in &node.module.provider_configs {
                let address = node.provider(local);
                // A block that a passed configuration replaces has no effect.
                if address.module == node.path {
                    out.insert(
                        address.clone(),
                        ProviderSource {
                            address,
                            node,
                            block: Some(block),
                        },
                    );
                }
            }
        }
        let mut needed: BTreeSet<AbsProviderConfig> = BTreeSet::new();
        for node in &nodes {
            needed.extend(
                node.module
                    .resources
                    .values()
                    .map(|r| node.provider(&r.local_provider())),
            );
            needed.extend(node.module.actions.values().map(|a| node.provider(&a.local_provider())));
            needed.extend(node.module.imports.iter().map(|i| match &i.provider_ref {
                Some(r) => node.provider(&r.config),
                None => self.provider_for(&i.target(&node.path)),
            }));
        }
        for address in needed {
            if let Some(node) = self.node(&address.module) {
                out.entry(address.clone()).or_insert(ProviderSource {
                    address,
                    node,
                    block: None,
                });
            }
        }
        out.into_values().collect()
    }

    /// Returns the version constraints of each required provider, combined over all modules. Invalid constraints are
    /// errors.
    pub fn version_constraints(&self) -> Result<BTreeMap<Provider, Constraints>, Diagnostics> {
        let mut problems = Diagnostics::new();
        let mut out = BTreeMap::new();
        for (provider, requirements) in self.provider_requirements() {
            let mut all = Constraints::any();
            for constraint in requirements
                .into_iter()
                .filter_map(|requirement| requirement.constraint)
            {
                match Constraints::parse(&constraint.text) {
                    Ok(more) => all = all.and(more),
                    Err(e) => problems
                        .push(Diagnostic::error("Invalid version constraint", format!("{e}.")).at(&constraint.range)),
                }
            }
            // A provider without any constraint must be installed too.
            out.insert(provider, all);
        }
        problems.into_result(out)
    }

    /// Returns the providers that all modules together need, with the requirements of each.
    #[must_use]
    pub fn provider_requirements(&self) -> BTreeMap<Provider, Vec<Requirement>> {
        let mut out: BTreeMap<Provider, Vec<Requirement>> = BTreeMap::new();
        for node in self.nodes() {
            let module = &node.module;
            let mut need = |provider: Provider,
                            constraint: Option<crate::version::Constraint>,
                            origin: RequirementOrigin,
                            range: &Range| {
                out.entry(provider).or_default().push(Requirement {
                    constraint,
                    origin,
                    range: range.clone(),
                    module: node.path.clone(),
                });
            };
            // Other uses of the provider in this module add nothing to its entry in required_providers.
            let mut said: BTreeSet<Provider> = BTreeSet::new();
            for required in module.required_providers.values() {
                said.insert(required.provider.clone());
                need(
                    required.provider.clone(),
                    required.constraint.clone(),
                    RequirementOrigin::RequiredProviders,
                    &required.range,
                );
            }
            for config in module.provider_configs.values() {
                let provider = module.provider_for_local_name(&config.address.name);
                if said.insert(provider.clone()) || config.version.is_some() {
                    need(
                        provider,
                        config.version.clone(),
                        RequirementOrigin::ProviderBlock,
                        &config.range,
                    );
                }
            }
            for resource in module.resources.values() {
                if said.insert(resource.provider.clone()) {
                    let origin = RequirementOrigin::Resource(resource.address.clone());
                    need(resource.provider.clone(), None, origin, &resource.range);
                }
            }
            for action in module.actions.values() {
                if said.insert(action.provider.clone()) {
                    let origin = RequirementOrigin::Action(action.address.clone());
                    need(action.provider.clone(), None, origin, &action.range);
                }
            }
            // An import into a called module uses the provider of the resource in that module, which requires the
            // provider itself.
            for import in module.imports.iter().filter(|i| i.to_resource.module.is_root()) {
                if said.insert(import.provider.clone()) {
                    need(import.provider.clone(), None, RequirementOrigin::Import, &import.range);
                }
            }
        }
        out
    }
}
