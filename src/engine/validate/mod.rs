//! Validation of a configuration, without values of variables, a state, or objects.

mod actions;
mod ephemeral;
mod imports;
mod lists;
mod overlap;
mod provider_keys;

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use addrs::{ConfigAction, ConfigResource, InstanceKey, Mode, Module, ModuleInstance};
use config::{Config, IgnoreChanges, ModuleNode, Resource};
use cty::{Marks, Step, Value};
use futures::StreamExt;
use lang::body::{Own, decode_body, decode_body_of};
use lang::eval::Context;
use provider::Schemas;
use schema::{BlockSchema, Schema};
use syntax::ast::TraversalStep;
use syntax::{Diagnostic, Diagnostics};

use crate::blocks::{Block, Blocks, ProviderBlocks};
use crate::connection::connection_schema;
use crate::eval::checks::{Checked, ConditionKind, Conditions, FailureSeverity};
use crate::eval::objects::{ObjectSource, ReferencedResource, unknown_attributes};
use crate::eval::{Evaluator, Expansion, Reported};
use crate::inputs::Inputs;
use crate::instance::{forbidden_ephemeral, located};
use crate::object_config;
use crate::provider_opening;
use crate::providers::Providers;
use crate::walk::{Outcome, walk};

pub use overlap::beyond_loading;
use overlap::{incomplete, independent, without_duplicates};

/// Validates a configuration. The state and the values of variables in `inputs` are not used.
pub async fn validate(inputs: Inputs<'_>) -> Diagnostics {
    let nothing = state::State::new();
    // A plugin that does not start must not prevent the validation of blocks that do not need it.
    let started = Providers::start_available_of(inputs.providers, inputs.config, &nothing).await;
    let mut diagnostics = started.diagnostics;
    // A provider that is also started for its functions would report the same error twice.
    diagnostics.0.dedup();
    diagnostics.extend(with_providers(inputs, &started.providers, ProviderBlocks::All).await);
    started.providers.close().await;
    diagnostics
}

/// Object source of static evaluation: all objects are unknown, and so are the instances of resources with repetition arguments.
struct UnknownObjects<'a>(&'a Schemas);

impl ObjectSource for UnknownObjects<'_> {
    fn is_static(&self) -> bool {
        true
    }

    fn value(&self, resource: &ReferencedResource<'_>) -> Result<Value, Reported> {
        Ok(match resource.address().resource.mode {
            Mode::Ephemeral => Value::dynamic().with_marks(Marks::EPHEMERAL),
            Mode::List => Value::dynamic(),
            Mode::Managed | Mode::Data => resource.without_objects(self.0),
        })
    }
}

fn static_evaluator<'a>(inputs: Inputs<'a>, providers: &'a Providers<'_>) -> Evaluator<'a> {
    let mut environment = inputs.environment.clone();
    environment.functions.pure = true;
    Evaluator::new(
        inputs.config,
        environment,
        &inputs.variables.values,
        Box::new(UnknownObjects(providers.schemas())),
    )
    .with_functions(providers.functions())
    .with_schemas(providers.schemas())
}

/// Validates a configuration with running providers. `judged` selects the provider blocks that are validated.
pub(crate) async fn with_providers(
    inputs: Inputs<'_>,
    providers: &Providers<'_>,
    judged: ProviderBlocks,
) -> Diagnostics {
    let (mut blocks, mut diagnostics) = Blocks::build_to_validate(inputs.config, providers.schemas(), judged);
    let cyclic = if diagnostics.has_errors() {
        blocks.break_cycles()
    } else {
        Vec::new()
    };
    let evaluator = static_evaluator(inputs, providers);
    // Blocks on a cycle and blocks with syntax errors cannot be evaluated. All other blocks are evaluated, so that one run reports all
    // errors.
    let incomplete = incomplete(inputs.config, &blocks);
    for block in cyclic.iter().chain(&incomplete) {
        if let Some(module) = block.module() {
            evaluator.mark_reported(&representative(module), block);
        }
    }
    let validator = Validator {
        config: inputs.config,
        providers,
        evaluator: &evaluator,
        visited: Mutex::default(),
        called: actions::called(inputs.config),
        left_out: match judged {
            ProviderBlocks::All => HashSet::new(),
            ProviderBlocks::Used => blocks.unused_providers(),
        },
    };
    // Every block is visited, even after failures of its dependencies, because references to failed values report
    // nothing.
    walk(&blocks.graph, inputs.parallelism.max(BLOCKS_AT_ONCE), |node| {
        let (validator, block) = (&validator, &blocks.graph[node]);
        async move {
            if !inputs.stop.is_requested() {
                // `visit` reports its failures itself, and other blocks are visited nevertheless.
                let _: Result<(), Reported> = validator.visit(block).await;
            }
            Outcome::Done
        }
    })
    .await;
    if inputs.stop.is_requested() {
        evaluator.report([Diagnostic::error(
            "Operation interrupted",
            "Validation was interrupted.",
        )]);
    }
    validator.imports();
    let evaluated = evaluator.take_diagnostics();
    // The graph has reported invalid references, which the evaluation reports again, so duplicates are removed.
    let others = independent(&diagnostics, evaluated);
    diagnostics.extend(others);
    without_duplicates(diagnostics)
}

/// Returns the warnings of providers about the configuration of these resources: the user who applies a saved plan may not have seen them.
pub(crate) async fn warnings_of_providers(
    inputs: Inputs<'_>,
    providers: &Providers<'_>,
    resources: BTreeSet<ConfigResource>,
) -> Diagnostics {
    let evaluator = static_evaluator(inputs, providers);
    let validator = Validator {
        config: inputs.config,
        providers,
        evaluator: &evaluator,
        visited: Mutex::default(),
        called: actions::called(inputs.config),
        left_out: HashSet::new(),
    };
    let found: Vec<Option<Diagnostics>> = futures::stream::iter(&resources)
        .map(|resource| validator.warnings(resource))
        // `buffered` keeps the order of the resources, so that the output does not depend on the order of the responses.
        .buffered(BLOCKS_AT_ONCE)
        .collect()
        .await;
    found
        .into_iter()
        .flatten()
        .flatten()
        // The configuration is valid, because a plan with errors is not saved.
        .filter(|d| !d.is_error())
        .collect()
}

struct Validator<'a> {
    config: &'a Config,
    providers: &'a Providers<'a>,
    evaluator: &'a Evaluator<'a>,
    /// Start positions of the blocks that have been visited. The flag is set if deprecations are ignored. Calls of the same module share a
    /// position, so the module's blocks are visited once for each value of the flag.
    visited: Mutex<HashSet<(Arc<str>, u32, bool)>>,
    /// Actions that resources trigger.
    called: HashSet<ConfigAction>,
    /// Provider configurations that are not validated, because no block depends on them. Empty if all are validated.
    left_out: HashSet<addrs::AbsProviderConfig>,
}

/// Minimum for the limit of concurrently validated blocks. It may exceed `-parallelism`, because validation calls no service behind the
/// provider.
const BLOCKS_AT_ONCE: usize = 64;

/// Returns the instance without keys, which represents all instances of a module in static evaluation.
fn representative(module: &Module) -> ModuleInstance {
    module.0.iter().fold(ModuleInstance::root(), |m, name| {
        m.child(name.clone(), InstanceKey::None)
    })
}

/// Returns the arguments and blocks of a resource block that Terraform defines, not the provider.
fn own_of(mode: Mode) -> Own {
    Own {
        attributes: &["count", "for_each", "depends_on", "provider"],
        blocks: match mode {
            Mode::Managed => &["lifecycle", "connection", "provisioner"],
            Mode::Data | Mode::Ephemeral => &["lifecycle"],
            Mode::List => &[],
        },
    }
}

impl Validator<'_> {
    fn fail(&self, diagnostics: Diagnostics) -> Reported {
        self.evaluator.report(diagnostics);
        Reported
    }

    /// Returns true if a block is visited for the first time. Static evaluation has the same result for a block in
    /// every call of its module, except for input variables and provider configurations, which calls pass in.
    fn is_first(&self, block: &Block) -> bool {
        let module = |path: &Module| self.config.node(path).map(|node| &node.module);
        let place = match block {
            Block::Local(path, name) => module(path).and_then(|m| m.locals.get(name)).map(|l| l.expr.range()),
            Block::Output(path, name) => module(path).and_then(|m| m.outputs.get(name)).map(|o| &o.range),
            Block::Check(path, name) => module(path).and_then(|m| m.checks.get(name)).map(|c| &c.range),
            Block::Resource(address) => self.config.resource(address).map(|r| &r.range),
            Block::Action(address) => self.config.action(address).map(|a| &a.range),
            Block::Variable(..) | Block::Call(..) | Block::Provider(_) => None,
        };
        place.is_none_or(|range| {
            let mut visited = self.visited.lock().unwrap_or_else(PoisonError::into_inner);
            let ignores = block.module().is_some_and(|m| self.evaluator.ignores_deprecations(m));
            visited.insert((range.file.clone(), range.start.byte, ignores))
        })
    }

    async fn visit(&self, block: &Block) -> Result<(), Reported> {
        if !self.is_first(block) {
            return Ok(());
        }
        match block {
            Block::Variable(module, name) => {
                let (instance, node) = self.place(module)?;
                let value = self.evaluator.input_value(&instance, node, name)?;
                let rules = node
                    .module
                    .variables
                    .get(name)
                    .map(|v| v.validations.as_slice())
                    .unwrap_or_default();
                let scope = self
                    .evaluator
                    .validation_scope(&instance, name, value)
                    .ok_or(Reported)?;
                self.check(&Conditions {
                    rules,
                    kind: ConditionKind::Variable,
                    scope: &scope,
                    of: &Checked::Variable(instance, name.clone()),
                    severity: FailureSeverity::Error,
                });
                Ok(())
            }
            Block::Local(module, name) => {
                let (instance, node) = self.place(module)?;
                self.evaluator.local(&instance, node, name).map(|_| ())
            }
            Block::Output(module, name) => {
                let (instance, node) = self.place(module)?;
                let rules = node
                    .module
                    .outputs
                    .get(name)
                    .map(|o| o.preconditions.as_slice())
                    .unwrap_or_default();
                let scope = self.evaluator.scope(&instance).ok_or(Reported)?;
                self.check(&Conditions {
                    rules,
                    kind: ConditionKind::Output,
                    scope: &scope,
                    of: &Checked::Output(instance.clone(), name.clone()),
                    severity: FailureSeverity::Error,
                });
                self.evaluator.output(&instance, node, name).map(|_| ())
            }
            Block::Call(module, name) => {
                let (instance, _) = self.place(module)?;
                let expansion = self.evaluator.call_expansion(&instance, name)?;
                self.passed_keys(&instance, name, &expansion)
            }
            Block::Check(module, name) => {
                let (instance, node) = self.place(module)?;
                let scope = self.evaluator.scope(&instance).ok_or(Reported)?;
                self.check(&Conditions {
                    rules: node.module.checks.get(name).map(|c| &*c.asserts).unwrap_or_default(),
                    kind: ConditionKind::Assertion,
                    scope: &scope,
                    of: &Checked::Check(instance, name.clone()),
                    // Assertions of check blocks never fail an operation, as in Terraform.
                    severity: FailureSeverity::Warning,
                });
                Ok(())
            }
            Block::Provider(address) => self.provider(address).await,
            Block::Resource(address) => self.resource(address).await,
            Block::Action(address) => self.action(address).await,
        }
    }

    /// Evaluates conditions without recording the results, which only plans do.
    fn check(&self, conditions: &Conditions<'_>) {
        for rule in conditions.rules {
            self.evaluator.check(rule, conditions);
        }
    }

    fn place(&self, module: &Module) -> Result<(ModuleInstance, &ModuleNode), Reported> {
        Ok((representative(module), self.config.node(module).ok_or(Reported)?))
    }

    async fn provider(&self, address: &addrs::AbsProviderConfig) -> Result<(), Reported> {
        if self.left_out.contains(address) || self.providers.has_stand_in(address) {
            return Ok(());
        }
        let Some(schema) = self.providers.schemas().providers.get(&address.provider) else {
            return Ok(());
        };
        let sources = self.config.provider_configs();
        let Some(block) = sources.iter().find(|s| s.address == *address).and_then(|s| s.block) else {
            // A missing block is no error here: the provider reports missing arguments when it is used.
            return Ok(());
        };
        let value = provider_opening::provider_config_value(self.evaluator, &schema.provider, address)?;
        let running = self
            .providers
            .unconfigured(&address.provider)
            .await
            .map_err(|d| self.fail(d))?;
        let answer = running.validate_provider(value).await.map_err(|d| self.fail(d))?;
        self.evaluator.report(located(
            answer.diagnostics,
            Some((&block.body, &schema.provider)),
            address,
        ));
        Ok(())
    }

    async fn resource(&self, address: &ConfigResource) -> Result<(), Reported> {
        let Some(block) = self.config.resource(address) else {
            return Ok(());
        };
        let (instance, _) = self.place(&address.module)?;
        // The expansion reports its failures itself, and they do not affect the body.
        let expanded = self.evaluator.resource_expansion(&instance, &address.resource);
        let provider = self.config.provider_for(address).provider.clone();
        if !self.providers.schemas().providers.contains_key(&provider) {
            // The provider could not be started, which has been reported.
            return Err(Reported);
        }
        let schema = object_config::resource_schema(
            self.providers.schemas(),
            &provider,
            &address.resource,
            Some(&block.type_range),
        )
        .map_err(|d| self.fail(d))?;
        let expansion = Expansion::of_any(block.count.is_some(), block.for_each.is_some());
        let repetition = expansion.repetition(&InstanceKey::None);
        let scope = self
            .evaluator
            .scope_with(&instance, repetition.clone(), None)
            .ok_or(Reported)?;
        if let Some(reference) = &block.provider_ref {
            self.provider_key(reference, &scope, address)?;
        }
        let own = own_of(address.resource.mode);
        let (value, diagnostics) = decode_body_of(&block.body, &schema.block, own, Context::new(&scope));
        let failed = diagnostics.has_errors();
        let (value, warnings) = scope.without_deprecations(value, &block.body, &schema.block);
        self.evaluator.report(
            diagnostics
                .into_iter()
                .chain(warnings.into_iter().map(|d| d.about(address))),
        );
        self.ignored_changes(block, &schema.block);
        if let Some(expr) = &block.lifecycle.prevent_destroy_if {
            // The evaluation reports errors, and the value is not needed.
            let _ = self.evaluator.prevent_destroy_in(expr, &scope);
        }
        // As in Terraform, `self` is an object with unknown attributes, so that references to undeclared attributes
        // are reported here.
        let own = match address.resource.mode {
            Mode::Managed | Mode::Data => self.evaluator.marked_self(address, block, unknown_attributes(schema)),
            Mode::Ephemeral | Mode::List => Value::dynamic(),
        };
        let any_repetition = repetition.clone();
        let with_self = self
            .evaluator
            .scope_with(&instance, repetition, Some(own))
            .ok_or(Reported)?;
        for (rules, scope) in [
            (&block.lifecycle.preconditions, &scope),
            (&block.lifecycle.postconditions, &with_self),
        ] {
            for rule in rules {
                // Only errors of the evaluation matter here, not the result.
                let _: Result<_, Reported> = self.evaluator.evaluate(&rule.condition, scope);
                let _: Result<_, Reported> = self.evaluator.evaluate(&rule.error_message, scope);
            }
        }
        self.provisioners(address, block, &with_self).await;
        if !block.lifecycle.action_triggers.is_empty() {
            self.triggers(address, block, schema, &any_repetition).await;
        }
        if failed {
            return Err(Reported);
        }
        if address.resource.mode == Mode::List {
            return self.list(address, block, schema, &scope, value).await;
        }
        let left_to_plan =
            || ephemeral::is_left_to_plan(self.config, address, block, &schema.block, expanded.as_deref().ok());
        if address.resource.mode != Mode::Ephemeral && value.deep_marks().is_ephemeral() && !left_to_plan() {
            self.evaluator
                .report(forbidden_ephemeral(&value, schema, &block.body, address));
        }
        self.ask_provider(address, block, schema, value.unmark_deep().0).await
    }

    /// Requests the validation of a resource's arguments from the provider.
    async fn ask_provider(
        &self,
        address: &ConfigResource,
        block: &Resource,
        schema: &Schema,
        value: Value,
    ) -> Result<(), Reported> {
        let provider = self.config.provider_for(address).provider.clone();
        let running = self.providers.unconfigured(&provider).await.map_err(|d| self.fail(d))?;
        let ty = &address.resource.ty;
        let answer = match address.resource.mode {
            Mode::Managed => running.validate_resource(ty, value).await,
            Mode::Data => running.validate_data(ty, value).await,
            Mode::Ephemeral => running.validate_ephemeral(ty, value).await,
            // `list` validates the `config` block of a list resource with another request.
            Mode::List => return Ok(()),
        };
        let problems = answer.map_err(|d| self.fail(d))?.diagnostics;
        self.evaluator
            .report(located(problems, Some((&block.body, schema)), address));
        Ok(())
    }

    /// Returns the provider's diagnostics for the configuration of a resource; `None` if its block was visited before, or if the
    /// configuration cannot be evaluated.
    async fn warnings(&self, address: &ConfigResource) -> Option<Diagnostics> {
        let block = self.config.resource(address)?;
        if !self.is_first(&Block::Resource(address.clone())) {
            return None;
        }
        let addrs::Resource { mode, ty, .. } = &address.resource;
        let provider = self.config.provider_for(address).provider.clone();
        let schema = self.providers.schemas().resource(&provider, *mode, ty)?;
        let expansion = Expansion::of_any(block.count.is_some(), block.for_each.is_some());
        let repetition = expansion.repetition(&InstanceKey::None);
        let scope = self
            .evaluator
            .scope_with(&representative(&address.module), repetition, None)?;
        let (value, problems) = decode_body(&block.body, &schema.block, Context::new(&scope));
        if problems.has_errors() {
            return None;
        }
        let (value, _) = value.unmark_deep();
        let running = self.providers.unconfigured(&provider).await.ok()?;
        let answer = match mode {
            Mode::Managed => running.validate_resource(ty, value).await,
            Mode::Data => running.validate_data(ty, value).await,
            Mode::Ephemeral | Mode::List => return None,
        };
        let problems = answer.ok()?.diagnostics;
        Some(located(problems, Some((&block.body, schema)), address))
    }

    /// Checks that `ignore_changes` names attributes of the schema that the configuration can set.
    fn ignored_changes(&self, block: &Resource, schema: &BlockSchema) {
        let IgnoreChanges::Paths(paths) = &block.lifecycle.ignore_changes else {
            return;
        };
        for (path, ranges) in paths {
            let steps: Vec<TraversalStep> = path
                .0
                .iter()
                .zip(ranges)
                .map(|(step, range)| match step {
                    Step::Attribute(name) => TraversalStep::Attribute {
                        name: name.clone(),
                        range: range.clone(),
                    },
                    Step::Index(key) => TraversalStep::Index {
                        key: key.clone(),
                        range: range.clone(),
                    },
                })
                .collect();
            if let Err(problem) = lang::checks::block_steps(schema, &steps) {
                self.evaluator.report([problem]);
                continue;
            }
            let [Step::Attribute(name)] = path.0.as_slice() else {
                continue;
            };
            if schema.attributes.get(name).is_some_and(|a| a.computed && !a.optional) {
                self.evaluator.report([Diagnostic::warning(
                    "Redundant ignore_changes element",
                    format!(
                        "The provider alone decides what \"{name}\" is, so the configuration has no changes of it to ignore. Remove \
                         it from ignore_changes.",
                    ),
                )
                .at(&block.type_range)]);
            }
        }
    }

    async fn provisioners(&self, address: &ConfigResource, block: &Resource, scope: &crate::eval::ModuleScope<'_>) {
        let decode = |body: &syntax::ast::Body, schema: &Schema| {
            let (value, diagnostics) = decode_body(body, &schema.block, Context::new(scope));
            let failed = diagnostics.has_errors();
            let (value, warnings) = scope.without_deprecations(value, body, &schema.block);
            self.evaluator.report(
                diagnostics
                    .into_iter()
                    .chain(warnings.into_iter().map(|d| d.about(address))),
            );
            (!failed).then(|| value.unmark_deep().0)
        };
        for connection in block
            .connection
            .iter()
            .chain(block.provisioners.iter().filter_map(|p| p.connection.as_ref()))
        {
            decode(&connection.body, connection_schema());
        }
        for provisioner in &block.provisioners {
            let Some(schema) = self.providers.schemas().provisioners.get(&provisioner.ty) else {
                continue;
            };
            let Some(value) = decode(&provisioner.body, schema) else {
                continue;
            };
            let Some(running) = self.providers.provisioner(&provisioner.ty) else {
                continue;
            };
            match running.validate(value).await {
                Ok(answer) => {
                    self.evaluator
                        .report(located(answer.diagnostics, Some((&provisioner.body, schema)), address));
                }
                Err(diagnostics) => self.evaluator.report(diagnostics),
            }
        }
    }
}
