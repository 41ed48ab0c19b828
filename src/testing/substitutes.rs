//! Provider configurations and overrides of a test file, applied to the module of a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use addrs::{AbsProviderConfig, LocalProviderConfig, Mode};
use config::{Config, Mock as MockBlock, MockProvider, Override, OverrideKind, ProviderConfig, TestProvider, TestRun};
use cty::{Type, Value};
use lang::eval::{Context, evaluate};
use syntax::ast::{Attribute, Body};
use syntax::{Diagnostic, Diagnostics};

use crate::file::FileRun;
use crate::mock::{Given, Source, no_ephemerals};
use crate::providers::RunProviders;
use crate::run_providers::{Key, needed_by_all, undefined};
use crate::scope::{FileScope, FunctionsOnly};

/// Reason why the providers of a run are not available.
pub(crate) enum NoProviders {
    Wrong(Diagnostics),
    /// A provider of the file failed. The error has been reported with the file.
    OfFile,
}

impl<'s> FileRun<'s> {
    /// Returns the module of a run with the provider configurations of the file, and its providers.
    pub(crate) async fn substituted(&self, index: usize) -> Result<(Arc<Config>, RunProviders<'s>), NoProviders> {
        let run = &self.of.file.runs[index];
        let module = &self.of.modules[index];
        let mut out = RunProviders::new(self.pool);
        let pairs = self.pairs(run, module).map_err(NoProviders::Wrong)?;
        let mut mocks = Vec::new();
        let mut blocks = Vec::new();
        let mut failed = false;
        for ((provider, alias), of_file) in pairs {
            let address = AbsProviderConfig::new(addrs::Module::root(), provider.clone(), alias.clone());
            let local = LocalProviderConfig {
                name: module.root.module.local_name_for(&provider),
                alias,
            };
            let mut for_each = None;
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
                    let own = module.root.module.provider_configs.get(&local);
                    for_each = mock.for_each.clone().or_else(|| own?.for_each.clone());
                    mock.range.clone()
                }
                TestProvider::Real(block) => {
                    let Ok(configured) = self.configured(&provider, block).await else {
                        // Continues, so that the problems of the other providers are reported, too.
                        failed = true;
                        continue;
                    };
                    out.configured.insert(address, configured);
                    block.range.clone()
                }
            };
            blocks.push(ProviderConfig {
                address: local,
                for_each,
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
                    // The error is reported even if the block has no instances, because a count that is 0 here may
                    // be higher in other runs.
                    let about = resource.address.in_module(&node.path);
                    problems.push(no_ephemerals().at(&resource.range).about(&about));
                }
                if out.mocks.contains_key(&used) || out.configured.contains_key(&used) {
                    continue;
                }
                out.real.insert(used.provider.clone());
            }
        }
        if problems.has_errors() {
            return Err(NoProviders::Wrong(problems));
        }
        self.overrides(run, &mocks, &mut out).map_err(NoProviders::Wrong)?;
        Ok((config, out))
    }

    /// Pairs the provider configurations of the module with those of the file.
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

    /// Evaluates a value of a mock or an override, which must be an object; `None` if the attribute is not set.
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

    /// Adds the overrides of a run, of its file, and of mock providers, in this order. The first of several
    /// overrides of the same target takes precedence.
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

    /// Evaluates the `provider` block of a file.
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

fn node_provider(config: &Config, path: &addrs::Module, resource: &config::Resource) -> AbsProviderConfig {
    config.provider_for(&resource.address.in_module(path))
}
