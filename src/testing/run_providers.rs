//! Provider configurations and overrides of a run, checked before anything is run.

use std::collections::BTreeSet;
use std::sync::Arc;

use addrs::{LocalProviderConfig, Target};
use config::{Config, Module, Override, TestProvider, TestRun};
use syntax::content::{did_you_mean, suggest};
use syntax::{Diagnostic, Diagnostics};

/// A provider and the alias of a configuration of it.
pub(crate) type Key = (addrs::Provider, Option<Arc<str>>);

/// Returns the provider configurations that a module needs.
fn needed(module: &Module) -> BTreeSet<Key> {
    let mut out = BTreeSet::new();
    let mut local = |config: &LocalProviderConfig| {
        out.insert((module.provider_for_local_name(&config.name), config.alias.clone()));
    };
    for required in module.required_providers.values() {
        local(&LocalProviderConfig {
            name: required.name.clone(),
            alias: None,
        });
        required.configuration_aliases.iter().for_each(|a| local(&a.config));
    }
    module.provider_configs.keys().for_each(&mut local);
    module.resources.values().for_each(|r| local(&r.local_provider()));
    for call in module.module_calls.values() {
        call.providers.iter().flatten().for_each(|p| local(&p.parent.config));
    }
    out
}

/// Returns the provider configurations that a module tree needs.
pub(crate) fn needed_by_all(config: &Config) -> BTreeSet<Key> {
    let mut out = needed(&config.root.module);
    for node in config.nodes() {
        // A called module inherits default configurations; those with an alias are passed by its caller, which needs
        // them, too.
        let defaults = needed(&node.module).into_iter().filter(|(_, alias)| alias.is_none());
        out.extend(defaults);
    }
    out
}

/// Returns the provider configurations of a file that a run uses: those that it names, or those that its module needs.
pub(crate) fn used<'f>(
    file: &'f config::TestFile,
    run: &'f TestRun,
    module: &Config,
) -> impl Iterator<Item = &'f TestProvider> {
    let all = if file.providers.is_empty() {
        BTreeSet::new()
    } else {
        needed_by_all(module)
    };
    let root = module.root.module.clone();
    let named = !run.providers.is_empty();
    let is_used = move |local: &LocalProviderConfig| match named {
        true => run.providers.iter().any(|passed| passed.parent.config == *local),
        false => all.contains(&(root.provider_for_local_name(&local.name), local.alias.clone())),
    };
    let own = file.providers.iter().filter(move |(local, _)| is_used(local));
    own.map(|(_, provider)| provider)
}

pub(crate) fn undefined(parent: &config::ProviderRef) -> Diagnostic {
    Diagnostic::error(
        format!("Missing provider definition for {}", parent.config),
        format!(
            "The \"providers\" argument of the run refers to {}, and the file has neither a provider block nor a mock provider of that \
             name.",
            parent.config
        ),
    )
    .at(&parent.range)
}

/// Reports the provider configurations that a run names and that the file does not have.
pub fn check_providers(file: &config::TestFile, run: &TestRun) -> Diagnostics {
    let wrong = run
        .providers
        .iter()
        .filter(|passed| !file.providers.contains_key(&passed.parent.config));
    wrong.map(|passed| undefined(&passed.parent)).collect()
}

/// Returns true if a module has the target of an override.
fn has_target(config: &Config, block: &Override) -> bool {
    match &block.target {
        Target::Module(module) => config.node(module).is_some(),
        Target::ModuleInstance(module) => config.node(&module.module()).is_some(),
        Target::ConfigResource(r) => config.resource(r).is_some(),
        Target::Resource(r) => config.resource(&r.config()).is_some(),
        Target::ResourceInstance(r) => config.resource(&r.config()).is_some(),
    }
}

/// Returns the first module call in the target of an override that has instances, but no key in the target. Such an
/// override applies to none of the instances.
fn repeated_step(config: &Config, block: &Override) -> Option<addrs::Module> {
    let unkeyed = |module: &addrs::Module| module.0.iter().map(|name| (name.clone(), false)).collect::<Vec<_>>();
    let keyed = |module: &addrs::ModuleInstance| {
        let steps = module.0.iter();
        steps.map(|step| (step.name.clone(), !step.key.is_none())).collect()
    };
    let mut steps = match &block.target {
        Target::Module(module) => unkeyed(module),
        Target::ModuleInstance(module) => keyed(module),
        Target::ConfigResource(r) => unkeyed(&r.module),
        Target::Resource(r) => keyed(&r.module),
        Target::ResourceInstance(r) => keyed(&r.module),
    };
    if matches!(block.target, Target::Module(_)) {
        // If the target is a module, all of its instances are meant.
        steps.pop();
    }
    let mut parent = addrs::Module::root();
    for (name, has_key) in steps {
        let call = config.node(&parent)?.module.module_calls.get(&name)?;
        parent = parent.child(name);
        if !has_key && (call.count.is_some() || call.for_each.is_some()) {
            return Some(parent);
        }
    }
    None
}

fn no_instance(block: &Override, module: &addrs::Module) -> Diagnostic {
    Diagnostic::warning(
        "Invalid override target",
        format!(
            "The module {module} has instances, and {} names none of them, so that the {} block has no effect. Write a block for each \
             instance, with its key in brackets.",
            block.target,
            block.kind.block()
        ),
    )
    .at(&block.target_range)
}

fn no_target(block: &Override, place: &str) -> Diagnostic {
    Diagnostic::warning(
        "Invalid override target",
        format!(
            "There is no {} in {place}, so that the {} block has no effect.",
            block.target,
            block.kind.block()
        ),
    )
    .at(&block.target_range)
}

/// Warns of the overrides of a run whose targets its module does not have.
#[must_use]
pub fn check_overrides_of_run(run: &TestRun, module: &Config) -> Diagnostics {
    let problem = |o: &Override| match repeated_step(module, o) {
        _ if !has_target(module, o) => Some(no_target(o, "the module of the run")),
        Some(step) => Some(no_instance(o, &step)),
        None => None,
    };
    run.overrides.iter().filter_map(problem).collect()
}

/// Reports the provider blocks of a file for providers that none of these modules requires. Probably their names are
/// wrong, and the runs would use other providers than intended.
#[must_use]
pub fn check_known_providers(file: &config::TestFile, modules: &[&Config]) -> Diagnostics {
    let required: Vec<(&Module, BTreeSet<Key>)> = modules
        .iter()
        .map(|config| (&*config.root.module, needed_by_all(config)))
        .collect();
    let unknown = |(local, block): (&LocalProviderConfig, &TestProvider)| {
        let mut meant = required
            .iter()
            .map(|(module, needed)| (module.provider_for_local_name(&local.name), needed));
        if meant.any(|(provider, needed)| provider.is_builtin() || needed.iter().any(|(p, _)| *p == provider)) {
            return None;
        }
        let provider = required.first()?.0.provider_for_local_name(&local.name);
        let names = required.iter().flat_map(|(module, _)| module.required_providers.keys());
        let detail = format!(
            "No module that is tested requires {provider}, the provider of the name \"{}\".{} Correct the name, or remove the \
             block.",
            local.name,
            did_you_mean(suggest(&local.name, names.map(|name| &**name)))
        );
        let range = match block {
            TestProvider::Real(block) => &block.range,
            TestProvider::Mock(mock) => &mock.range,
        };
        Some(Diagnostic::error("Unknown provider", detail).at(range))
    };
    file.providers.iter().filter_map(unknown).collect()
}

/// Warns of the overrides of a file, and of its mocked providers, whose targets none of its modules has.
#[must_use]
pub fn check_overrides_of_file(file: &config::TestFile, modules: &[Arc<Config>]) -> Diagnostics {
    let of_providers = file.providers.values().flat_map(|provider| match provider {
        TestProvider::Mock(mock) => mock.overrides.as_slice(),
        TestProvider::Real(_) => &[],
    });
    let problem = |o: &Override| {
        let mut with_target = modules.iter().filter(|module| has_target(module, o)).peekable();
        if with_target.peek().is_none() {
            return Some(no_target(o, "any module that the file tests"));
        }
        let steps: Option<Vec<addrs::Module>> = with_target.map(|module| repeated_step(module, o)).collect();
        Some(no_instance(o, steps?.first()?))
    };
    of_providers.chain(&file.overrides).filter_map(problem).collect()
}
