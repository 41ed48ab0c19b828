//! Planning of action invocations: those that changes trigger, and those that the user requests.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use addrs::{AbsActionInstance, AbsResourceInstance, ConfigAction, ConfigResource, ModuleInstance, Referenceable};
use config::{ActionEvent, ActionRef, ActionTrigger, Config};
use cty::Value;
use lang::refs::references_in_body;
use lang::scope::EvaluationError;
use provider::Schemas;
use syntax::content::suggest;
use syntax::{Diagnostic, Diagnostics};

use super::{PlannedResource, Planner};
use crate::actions::{ActionCall, ConfiguredAction, as_warning, condition_holds, has_ephemeral, key_of};
use crate::blocks::Block;
use crate::blocks::actions::calls;
use crate::eval::{Repetition, Reported};
use crate::inputs::PlanOptions;
use crate::instance::located;
use crate::invocation::{ActionInvocation, InvocationTrigger, LifecycleTrigger};
use crate::plan::{Action, Mode};

/// Actions that a plan may invoke.
pub(super) struct ActionSelection {
    /// The action that the user requests with `-invoke`. If it refers to `caller`, also the resources that trigger it.
    pub(super) invoked: Option<(ConfigAction, BTreeSet<ConfigResource>)>,
    /// In a destroy plan, the only actions that are planned: those that destructions trigger. `None` in other plans.
    destroying: Option<HashSet<ConfigAction>>,
}

impl ActionSelection {
    pub(super) fn new(config: &Config, schemas: &Schemas, options: &PlanOptions) -> ActionSelection {
        let invoked = options.invoke.as_ref().map(|target| {
            let action = ConfiguredAction::find(config, schemas, &target.config());
            // If the action does not exist, `missing_action` reports that.
            let callers = action
                .map(|action| requested_callers(config, &action))
                .unwrap_or_default();
            (target.config(), callers)
        });
        let destroying = (options.mode == Mode::Destroy).then(|| destroying(config));
        ActionSelection { invoked, destroying }
    }

    /// Returns true if an action may be planned.
    pub(super) fn may_plan(&self, action: &ConfigAction) -> bool {
        self.destroying.as_ref().is_none_or(|actions| actions.contains(action))
    }

    /// Returns the blocks that `-invoke` selects for the plan.
    pub(super) fn selected(&self) -> impl Iterator<Item = Block> {
        let blocks = |(action, callers): &(ConfigAction, BTreeSet<ConfigResource>)| {
            let callers = callers.iter().cloned().map(Block::Resource);
            callers.chain([Block::Action(action.clone())]).collect::<Vec<_>>()
        };
        self.invoked.as_ref().map(blocks).unwrap_or_default().into_iter()
    }
}

/// Returns the actions that `before_destroy` and `after_destroy` events trigger.
fn destroying(config: &Config) -> HashSet<ConfigAction> {
    let mut out = HashSet::new();
    for node in config.nodes().into_iter().filter(|n| !n.module.actions.is_empty()) {
        let resources = node.module.managed_resources();
        for trigger in resources.flat_map(|r| &r.lifecycle.action_triggers) {
            if trigger.events.iter().any(|event| event.is_destroy()) {
                out.extend(trigger.actions.iter().map(|a| a.action.in_module(&node.path)));
            }
        }
    }
    out
}

pub(super) struct TriggeringChange<'c> {
    pub(super) address: &'c AbsResourceInstance,
    pub(super) action: Action,
    pub(super) before: &'c Value,
    pub(super) after: &'c Value,
    pub(super) repetition: &'c Repetition,
}

/// One action in the `actions` list of a trigger, for one event.
struct Reference<'r> {
    trigger: &'r ActionTrigger,
    reference: &'r ActionRef,
    event: ActionEvent,
    /// Indexes of the `action_trigger` block, and of the action in its list.
    at: (usize, usize),
}

/// Returns true if a planned change with this action causes the event.
fn has_event(action: Action, event: ActionEvent) -> bool {
    match event {
        ActionEvent::BeforeCreate | ActionEvent::AfterCreate => action == Action::Create || action.is_replace(),
        ActionEvent::BeforeUpdate | ActionEvent::AfterUpdate => action == Action::Update,
        ActionEvent::BeforeDestroy | ActionEvent::AfterDestroy => {
            action == Action::Delete || (action.is_replace() && !action.forgets())
        }
    }
}

impl Planner<'_> {
    /// Plans the invocations that a change triggers.
    pub(super) async fn plan_triggers(
        &self,
        p: &PlannedResource<'_>,
        change: TriggeringChange<'_>,
    ) -> Result<(), Reported> {
        let (planned, problems) = self.triggered_invocations(p, &change).await;
        self.context.evaluator.report(problems);
        self.results().invocations.extend(planned?);
        Ok(())
    }

    /// Plans the invocations that the destruction of an orphan triggers: an instance that the configuration of its resource does not have
    /// any more. The trigger may refer to configuration that was removed, so a failure to plan an invocation is only a warning, and no
    /// action is invoked.
    pub(super) async fn plan_triggers_of_orphan(&self, p: &PlannedResource<'_>, change: TriggeringChange<'_>) {
        let (planned, mut problems) = self.triggered_invocations(p, &change).await;
        if planned.is_err() {
            problems.push(
                Diagnostic::warning(
                    "Orphaned action failed to plan",
                    format!(
                        "{} was removed from the configuration, and its actions cannot be planned without it. Its destruction will \
                         not invoke them.",
                        change.address
                    ),
                )
                .about(change.address),
            );
        }
        self.results().invocations.extend(planned.unwrap_or_default());
        // The actions of the removed block must not make the destruction fail.
        self.context.evaluator.report(problems.into_iter().map(as_warning));
    }

    /// Returns the invocations that a change triggers, in order, and the problems found. If planning one of them fails, no invocations are
    /// returned.
    async fn triggered_invocations(
        &self,
        p: &PlannedResource<'_>,
        change: &TriggeringChange<'_>,
    ) -> (Result<Vec<ActionInvocation>, Reported>, Diagnostics) {
        let mut planned = Ok(Vec::new());
        let mut problems = Diagnostics::new();
        // All triggers are visited even after a failure, so that all problems are reported at once.
        let fail = |planned: &mut Result<_, _>, problems: &mut Diagnostics, failed: EvaluationError| {
            *planned = Err(Reported);
            problems.extend(failed.unreported());
        };
        let Some(block) = p.block else {
            return (planned, problems);
        };
        for (number, trigger) in block.lifecycle.action_triggers.iter().enumerate() {
            match self.may_hold(trigger, change) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(failed) => {
                    fail(&mut planned, &mut problems, failed);
                    continue;
                }
            }
            for event in trigger.events.iter().filter(|event| has_event(change.action, **event)) {
                for (index, reference) in trigger.actions.iter().enumerate() {
                    let reference = Reference {
                        trigger,
                        reference,
                        event: *event,
                        at: (number, index),
                    };
                    match self.plan_reference(change, &reference).await {
                        Ok((invocation, warnings)) => {
                            planned.iter_mut().for_each(|p| p.push(invocation.clone()));
                            problems.extend(warnings);
                        }
                        Err(failed) => fail(&mut planned, &mut problems, failed),
                    }
                }
            }
        }
        (planned, problems)
    }

    /// Returns true if the condition of a trigger holds or is unknown.
    fn may_hold(&self, trigger: &ActionTrigger, change: &TriggeringChange<'_>) -> Result<bool, EvaluationError> {
        let Some(condition) = &trigger.condition else {
            return Ok(true);
        };
        let evaluator = self.context.evaluator;
        let Some(scope) = evaluator.scope_with(
            &change.address.module,
            change.repetition.clone(),
            Some(change.after.clone()),
        ) else {
            return Err(EvaluationError::Reported);
        };
        Ok(condition_holds(condition, &scope)? != Some(false))
    }

    async fn plan_reference(
        &self,
        change: &TriggeringChange<'_>,
        reference: &Reference<'_>,
    ) -> Result<(ActionInvocation, Diagnostics), EvaluationError> {
        let module = &change.address.module;
        let range = &reference.reference.range;
        let mut action = self.configured(&reference.reference.action.in_module(&module.module()))?;
        // The resource is expanded, so the key is known.
        let key = key_of(reference.reference, change.repetition)?.unwrap_or_default();
        let address = reference.reference.action.instance(key).absolute(module);
        // A destroy plan visits only some blocks, so the dependencies of the action may not have been evaluated.
        if self.spec.kind.is_destroy() {
            self.dependency_evaluation
                .evaluate(self.context.evaluator, &Block::Action(action.address.clone()))?;
        }
        let expansion = self
            .context
            .evaluator
            .action_expansion(module, &action.address.action)?;
        let repetition = action.instance(&expansion, &address, range)?;
        action.select_provider(self.context.evaluator, &address, &repetition)?;
        let destroy = reference.event.is_destroy();
        let caller = if destroy { change.before } else { change.after };
        let about = format!("{}, called from {}", action.address, change.address);
        let call = ActionCall {
            module,
            repetition,
            caller: Some(caller.clone()),
            about: &about,
        };
        let evaluated = action.evaluate(self.context.evaluator, call, false);
        // `caller` made the evaluator cache a value for the whole resource. The cache is dropped, because other instances of the resource
        // may still change.
        self.context
            .evaluator
            .forget_resource_value(&change.address.containing_resource());
        let (config, mut warnings) = evaluated?;
        if destroy {
            check_storable(&config, &action)?;
        }
        warnings.extend(self.plan_action(&action, &config, &about).await?);
        let trigger = LifecycleTrigger {
            resource: change.address.clone(),
            event: reference.event,
            block: reference.at.0,
            action: reference.at.1,
            on_failure: reference.trigger.on_failure,
        };
        let invocation = ActionInvocation {
            address,
            provider: action.provider.clone(),
            config: action.to_plan(&config),
            trigger: Arc::new(InvocationTrigger::Lifecycle(trigger)),
        };
        Ok((invocation, warnings))
    }

    fn configured(&self, address: &ConfigAction) -> Result<ConfiguredAction<'_>, Diagnostics> {
        ConfiguredAction::find(self.context.inputs.config, self.context.providers.schemas(), address)
    }

    /// Requests the plan of an invocation from the provider. Returns the provider's warnings.
    async fn plan_action(
        &self,
        action: &ConfiguredAction<'_>,
        config: &Value,
        about: &str,
    ) -> Result<Diagnostics, Diagnostics> {
        let provider = self.context.providers.get(&action.provider).await?;
        let Some(actions) = provider.actions() else {
            return Ok(Diagnostics::new());
        };
        let (plain, _) = config.clone().unmark_deep();
        let answer = actions.plan_action(&action.address.action.ty, plain).await?;
        let body = action.block.config_body();
        let problems = located(answer.diagnostics, action.written(&body), &about);
        if problems.has_errors() {
            Err(problems)
        } else {
            Ok(problems)
        }
    }

    /// Returns the error for an action of `-invoke` that the configuration does not have.
    pub(super) fn missing_action(&self) -> Diagnostics {
        let mut problems = Diagnostics::new();
        if let Some(target) = &self.spec.options.invoke {
            let address = target.config();
            if self.context.inputs.config.action(&address).is_none() {
                let nodes = self.context.inputs.config.nodes();
                let known: Vec<String> = nodes
                    .iter()
                    .flat_map(|node| {
                        node.module
                            .actions
                            .keys()
                            .map(|action| action.in_module(&node.path).to_string())
                    })
                    .collect();
                let near = suggest(&address.to_string(), known.iter().map(String::as_str));
                let hint = near.map_or_else(String::new, |near| format!(" Did you mean {near}?"));
                let why = format!("The configuration has no {address}.{hint}");
                problems.push(invoked_not_found(target, why));
            }
        }
        problems
    }

    /// Plans the invocations that the user requests. Everything that the action refers to must have been refreshed.
    pub(super) async fn plan_requested(&self, target: &AbsActionInstance) -> Result<(), Reported> {
        let address = target.config();
        let action = self.configured(&address).map_err(|d| self.context.fail(d))?;
        let module = &target.module;
        if !self
            .context
            .evaluator
            .module_instances(&address.module)?
            .contains(module)
        {
            let why = format!("There is no instance {module} of the module. If it has several, choose one by its key.");
            return Err(self.context.fail(invoked_not_found(target, why)));
        }
        let callers = requested_callers(self.context.inputs.config, &action);
        if callers.is_empty() {
            return self.plan_requested_in(target, &action, module, None).await;
        }
        for caller in &callers {
            for caller in self.existing_callers(caller, module, target)? {
                self.plan_requested_in(target, &action, module, Some(&caller)).await?;
            }
        }
        Ok(())
    }

    /// Returns the instances of a resource that exist in the state, and are targeted if there are targets. Fails if none exists.
    fn existing_callers(
        &self,
        caller: &ConfigResource,
        module: &ModuleInstance,
        target: &AbsActionInstance,
    ) -> Result<Vec<AbsResourceInstance>, Reported> {
        let resource = caller.resource.absolute(module);
        let mut existing: Vec<AbsResourceInstance> = {
            let prior = self.prior();
            let instances = prior.resources.get(&resource).into_iter().flat_map(|r| &r.instances);
            let current = instances.filter(|(_, instance)| instance.current.is_some());
            current.map(|(key, _)| resource.instance(key.clone())).collect()
        };
        if existing.is_empty() {
            return Err(self.context.fail(Diagnostic::error(
                "Partially applied configuration",
                format!(
                    "The configuration of {target} refers to the resource that calls it, and {caller} has no object yet. Apply the \
                     configuration without -invoke first."
                ),
            )));
        }
        let targets = &self.spec.options.targets;
        existing.retain(|address| targets.is_empty() || targets.iter().any(|t| t.selects(address)));
        Ok(existing)
    }

    async fn plan_requested_in(
        &self,
        target: &AbsActionInstance,
        action: &ConfiguredAction<'_>,
        module: &ModuleInstance,
        caller: Option<&AbsResourceInstance>,
    ) -> Result<(), Reported> {
        let evaluator = self.context.evaluator;
        let expansion = evaluator.action_expansion(module, &action.address.action)?;
        let keys = match &target.action.key {
            key if key.is_none() => expansion.keys(),
            key if expansion.has(key) => vec![key.clone()],
            _ => {
                let summary = format!("invoked target {} not found", target.action.absolute(module));
                return Err(self.context.fail(Diagnostic::error(summary, "")));
            }
        };
        for key in keys {
            let repetition = expansion.repetition(&key);
            let (mut action, address) = (action.clone(), action.address.action.instance(key).absolute(module));
            let selected = action.select_provider(evaluator, &address, &repetition);
            selected.map_err(|e| self.context.fail(e.unreported()))?;
            let about = match caller {
                Some(caller) => format!("{}, called from {caller}", action.address),
                None => action.address.to_string(),
            };
            let call = ActionCall {
                module,
                repetition,
                caller: caller.map(|caller| evaluator.object(caller).unwrap_or_else(Value::dynamic)),
                about: &about,
            };
            let evaluated = action.evaluate(evaluator, call, false);
            let (config, warnings) = evaluated.map_err(|e| self.context.fail(e.unreported()))?;
            evaluator.report(warnings);
            // The plan changes nothing before the invocation, so unknown values would stay unknown.
            if !config.is_wholly_known() {
                return Err(self.context.fail(
                    Diagnostic::error(
                        "Partially applied configuration",
                        format!(
                            "The configuration of {target} has unknown values: it refers to resources that do not exist yet. Apply \
                             the configuration without -invoke first."
                        ),
                    )
                    .at(&action.block.range),
                ));
            }
            let planned = self.plan_action(&action, &config, &about).await;
            evaluator.report(planned.map_err(|d| self.context.fail(d))?);
            let trigger = InvocationTrigger::Invoke {
                caller: caller.cloned(),
            };
            self.results().invocations.push(ActionInvocation {
                address,
                provider: action.provider.clone(),
                config: action.to_plan(&config),
                trigger: Arc::new(trigger),
            });
        }
        Ok(())
    }
}

/// Returns the resources that trigger an action, if the configuration of the action refers to `caller`.
pub(super) fn requested_callers(config: &Config, action: &ConfiguredAction<'_>) -> BTreeSet<ConfigResource> {
    let refers = action.block.config.as_ref().is_some_and(|body| {
        let (references, _) = references_in_body(body, &action.schema.block);
        references.iter().any(|r| r.subject == Referenceable::Caller)
    });
    let node = config.node(&action.address.module).filter(|_| refers);
    let resources = node.into_iter().flat_map(|node| node.module.managed_resources());
    resources
        .filter(|resource| calls(resource, &action.address.action))
        .map(|resource| resource.address.in_module(&action.address.module))
        .collect()
}

/// Checks that the configuration of an action can be stored in the plan. If a destruction triggers the action, apply uses the stored
/// configuration without evaluating it again.
fn check_storable(config: &Value, action: &ConfiguredAction<'_>) -> Result<(), Diagnostic> {
    if !config.is_wholly_known() {
        return Err(Diagnostic::error(
            "Unknown action config",
            "The configuration of an action that a destruction triggers must be known when the destruction is planned.",
        )
        .at(&action.block.range));
    }
    if has_ephemeral(config) {
        return Err(Diagnostic::error(
            "Action config contains ephemeral values",
            "The configuration of an action that the destruction of an object triggers is kept in the plan, so it cannot contain \
             ephemeral values.",
        )
        .at(&action.block.range));
    }
    Ok(())
}

fn invoked_not_found(target: &AbsActionInstance, why: String) -> Diagnostic {
    Diagnostic::error(format!("invoke target {target} not found"), why)
}
