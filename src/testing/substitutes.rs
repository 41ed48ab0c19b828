//! The provider configurations and overrides of a test file, as a run's module sees them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use addrs::{AbsProviderConfig, LocalProviderConfig, Mode, Target};
use config::{
    Config, Mock as MockBlock, MockProvider, Module, Override, OverrideKind, ProviderConfig, TestProvider, TestRun,
};
use cty::{Type, Value};
use lang::eval::{Context, evaluate};
use syntax::ast::{Attribute, Body};
use syntax::content::{did_you_mean, suggest};
use syntax::{Diagnostic, Diagnostics};

use crate::file::FileRun;
use crate::mock::{Given, Source, no_ephemerals};
use crate::providers::RunProviders;
use crate::scope::{FileScope, FunctionsOnly};

/// Why a run cannot have its providers.
pub(crate) enum NoProviders {
    /// Something in the run is wrong.
    Wrong(Diagnostics),
    /// A provider of the file failed, which has been reported with the file.
    OfFile,
}

type Key = (addrs::Provider, Option<Arc<str>>);

/// The provider configurations that a module needs.
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

/// All of a tree: called modules use the configurations of their callers.
fn needed_by_all(config: &Config) -> BTreeSet<Key> {
    let mut out = needed(&config.root.module);
    for node in config.nodes() {
        let defaults = needed(&node.module).into_iter().filter(|(_, alias)| alias.is_none());
        out.extend(defaults);
    }
    out
}

/// The provider configurations of a file that a run uses: those that it names, or those that its module needs.
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

impl<'s> FileRun<'s> {
    /// The module of a run with the provider configurations of the file, and its providers.
    pub(crate) async fn substituted(&self, index: usize) -> Result<(Arc<Config>, RunProviders<'s>), NoProviders> {
        let run = &self.of.file.runs[index];
        let module = &self.of.modules[index];
        let mut out = RunProviders::new(self.pool);
        let pairs = self.pairs(run, module).map_err(NoProviders::Wrong)?;
        let mut mocks = Vec::new();
        let mut blocks = Vec::new();
        let mut failed = false;
        for ((provider, alias), of_file) in pairs {
            let address = AbsProviderConfig {
                module: addrs::Module::root(),
                provider: provider.clone(),
                alias: alias.clone(),
            };
            let range = match &of_file {
                TestProvider::Mock(mock) => {
                    let source = match self.mock_source(mock) {
                        Ok(source) => source,
                        Err(problems) => {
                            self.report_once(problems);
                            failed = true;
                            continue;
                        }
                    };
                    out.mocks.insert(address.clone(), source);
                    mocks.push((address, mock.clone()));
                    mock.range.clone()
                }
                TestProvider::Real(block) => {
                    let Ok(configured) = self.configured(&provider, block).await else {
                        // What is wrong with the others is worth knowing as well.
                        failed = true;
                        continue;
                    };
                    out.configured.insert(address, configured);
                    block.range.clone()
                }
            };
            blocks.push(ProviderConfig {
                address: LocalProviderConfig {
                    name: module.root.module.local_name_for(&provider),
                    alias,
                },
                body: Arc::new(Body::empty(&range)),
                version: None,
                name_range: range.clone(),
                range,
            });
        }
        if failed {
            return Err(NoProviders::OfFile);
        }
        let config = self.with_blocks(index, module, blocks).map_err(NoProviders::Wrong)?;
        let mut problems = Diagnostics::new();
        for node in config.nodes() {
            for resource in node.module.resources.values() {
                let used = node_provider(&config, &node.path, resource);
                if resource.address.mode == Mode::Ephemeral && out.mocks.contains_key(&used) {
                    // Whether it has instances does not matter: a count that is 0 here is another one elsewhere.
                    let about = resource.address.in_module(&node.path);
                    problems.push(no_ephemerals().at(&resource.range).about(&about));
                }
                if out.mocks.contains_key(&used) || out.configured.contains_key(&used) {
                    continue;
                }
                out.real.insert(used.provider);
            }
        }
        if problems.has_errors() {
            return Err(NoProviders::Wrong(problems));
        }
        self.overrides(run, &mocks, &mut out).map_err(NoProviders::Wrong)?;
        Ok((config, out))
    }

    /// Which configuration of the file stands for which of the module.
    fn pairs(&self, run: &TestRun, module: &Config) -> Result<Vec<(Key, TestProvider)>, Diagnostics> {
        let of_file = &self.of.file.providers;
        let root = &module.root.module;
        if !run.providers.is_empty() {
            let mut problems = Diagnostics::new();
            let mut out = Vec::new();
            for passed in &run.providers {
                let key = (
                    root.provider_for_local_name(&passed.child.config.name),
                    passed.child.config.alias.clone(),
                );
                match of_file.get(&passed.parent.config) {
                    Some(found) => out.push((key, found.clone())),
                    None => problems.push(undefined(&passed.parent)),
                }
            }
            return problems.into_result(out);
        }
        if of_file.is_empty() {
            return Ok(Vec::new());
        }
        let needed = needed_by_all(module);
        let key = |local: &LocalProviderConfig| (root.provider_for_local_name(&local.name), local.alias.clone());
        let pairs = of_file.iter().map(|(local, found)| (key(local), found.clone()));
        Ok(pairs.filter(|(key, _)| needed.contains(key)).collect())
    }

    /// A value of a mock or an override, which must be an object.
    fn object(&self, attribute: Option<&Attribute>, summary: &str) -> Result<Option<Value>, Diagnostics> {
        let Some(attribute) = attribute else { return Ok(None) };
        let expr = &attribute.expr;
        let scope = FunctionsOnly(&self.suite.environment.functions);
        let (value, problems) = evaluate(expr, Context::new(&scope));
        if problems.has_errors() {
            return Err(problems);
        }
        let value = value.unmark_deep().0;
        if !matches!(value.ty(), Type::Object(_) | Type::Map(_)) || value.is_null() {
            let detail = format!(
                "An object is required here, and the value is {}.",
                value.ty().friendly_name()
            );
            return Err(Diagnostic::error(summary, detail).at(&attribute.name_range).into());
        }
        Ok(Some(value))
    }

    fn mock_source(&self, mock: &MockProvider) -> Result<Arc<Source>, Diagnostics> {
        if let Some(known) = self.known_mock(&mock.address) {
            return Ok(known);
        }
        let given = |all: &BTreeMap<Arc<str>, MockBlock>| {
            all.iter()
                .map(|(ty, block)| {
                    let values = self.object(block.defaults.as_ref(), "Invalid replacement value")?;
                    Ok((
                        ty.clone(),
                        Given {
                            values,
                            during_plan: block.during_plan,
                        },
                    ))
                })
                .collect::<Result<BTreeMap<_, _>, Diagnostics>>()
        };
        let source = Arc::new(Source::Types {
            resources: given(&mock.resources)?,
            data: given(&mock.data)?,
            during_plan: mock.during_plan,
        });
        self.remember_mock(&mock.address, source.clone());
        Ok(source)
    }

    /// Adds the overrides of a run, of its file, and of mock providers: what comes first wins.
    fn overrides(
        &self,
        run: &TestRun,
        mocks: &[(AbsProviderConfig, MockProvider)],
        out: &mut RunProviders<'_>,
    ) -> Result<(), Diagnostics> {
        let of_run = run.overrides.iter().map(|o| (None, o));
        let of_file = self.of.file.overrides.iter().map(|o| (None, o));
        let of_mocks = mocks
            .iter()
            .flat_map(|(address, mock)| mock.overrides.iter().map(move |o| (Some(address), o)));
        let mut problems = Diagnostics::new();
        for (of, block) in of_run.chain(of_file).chain(of_mocks) {
            if let Err(found) = self.add_override(of, block, out) {
                problems.extend(found);
            }
        }
        problems.into_result(())
    }

    fn add_override(
        &self,
        of: Option<&AbsProviderConfig>,
        block: &Override,
        out: &mut RunProviders<'_>,
    ) -> Result<(), Diagnostics> {
        if block.kind == OverrideKind::Module {
            let outputs = self.object(block.values.as_ref(), "Invalid outputs attribute")?;
            let outputs = outputs.iter().filter_map(Value::entries).flatten();
            let outputs = outputs.map(|(name, value)| (name.clone(), value.clone())).collect();
            out.overrides.add_module(block.target.clone(), outputs);
            return Ok(());
        }
        let given = Given {
            values: self.object(block.values.as_ref(), "Invalid outputs attribute")?,
            during_plan: block.during_plan,
        };
        out.overrides.add_object(block.target.clone(), of.cloned(), given);
        Ok(())
    }

    /// The value of a `provider` block of the file.
    pub(crate) fn provider_value(
        &self,
        block: &ProviderConfig,
        schema: &provider::ProviderSchema,
    ) -> Result<Value, Diagnostics> {
        let scope = FileScope::new(self);
        let (value, problems) = lang::body::decode_body(&block.body, &schema.provider.block, Context::new(&scope));
        self.report_once(scope.into_warnings());
        problems.into_result(value.unmark_deep().0)
    }
}

/// The provider configuration of a resource.
fn node_provider(config: &Config, path: &addrs::Module, resource: &config::Resource) -> AbsProviderConfig {
    config.provider_for(&resource.address.in_module(path))
}

fn undefined(parent: &config::ProviderRef) -> Diagnostic {
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

/// What is wrong with the providers that a run asks for, before it is run.
pub fn check_providers(file: &config::TestFile, run: &TestRun) -> Diagnostics {
    let wrong = run
        .providers
        .iter()
        .filter(|passed| !file.providers.contains_key(&passed.parent.config));
    wrong.map(|passed| undefined(&passed.parent)).collect()
}

/// Whether a module has what an override stands in for.
fn has_target(config: &Config, block: &Override) -> bool {
    match &block.target {
        Target::Module(module) => config.node(module).is_some(),
        Target::ModuleInstance(module) => config.node(&module.module()).is_some(),
        Target::ConfigResource(r) => config.resource(r).is_some(),
        Target::Resource(r) => config.resource(&r.config()).is_some(),
        Target::ResourceInstance(r) => config.resource(&r.config()).is_some(),
    }
}

/// The module call with instances that an override names without a key, so that it is for none of them.
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
        // It names all instances.
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

/// The overrides of a run whose targets its module does not have.
#[must_use]
pub fn check_overrides_of_run(run: &TestRun, module: &Config) -> Diagnostics {
    let problem = |o: &Override| match repeated_step(module, o) {
        _ if !has_target(module, o) => Some(no_target(o, "the module of the run")),
        Some(step) => Some(no_instance(o, &step)),
        None => None,
    };
    run.overrides.iter().filter_map(problem).collect()
}

/// The provider blocks of a file for providers that none of these modules requires: most probably their names are wrong, and the runs
/// would have other providers than their author thinks.
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
            "No module that is tested requires {provider}, which the name \"{}\" stands for.{} Correct the name, or remove the block.",
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

/// The overrides of a file, and of its mocked providers, whose targets none of its modules has.
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
