//! Invokes actions: those that the change of an object triggers, and those that the user asks for.

use std::collections::HashMap;
use std::time::Instant;

use addrs::AbsResourceInstance;
use config::{ActionEvent, ActionFailure};
use cty::Value;
use lang::scope::EvaluationError;
use state::ObjectStatus;
use state::journal::{Intent, IntentAction};
use syntax::{Diagnostic, Diagnostics};

use super::{Applier, ObjectOperation};
use crate::actions::{ActionCall, ConfiguredAction, as_warning, condition_holds};
use crate::eval::Reported;
use crate::eval::instance_conditions::ConfiguredInstance;
use crate::events::Event;
use crate::instance::located;
use crate::invocation::{ActionInvocation, InvocationTrigger, LifecycleTrigger};
use crate::plan::{Mode, Plan};

/// Invocations that the changes of each object trigger, in order.
pub(super) struct Triggered<'a>(HashMap<&'a AbsResourceInstance, Vec<&'a ActionInvocation>>);

impl<'a> Triggered<'a> {
    pub(super) fn new(plan: &'a Plan) -> Triggered<'a> {
        let mut out: HashMap<_, Vec<_>> = HashMap::new();
        for invocation in &plan.invocations {
            if let Some(trigger) = invocation.trigger.lifecycle() {
                out.entry(&trigger.resource).or_default().push(invocation);
            }
        }
        Triggered(out)
    }

    /// Returns the invocations that these events of an object trigger.
    fn for_object<'t>(
        &'t self,
        address: &AbsResourceInstance,
        events: impl Fn(ActionEvent) -> bool + 't,
    ) -> impl Iterator<Item = (&'a ActionInvocation, &'a LifecycleTrigger)> + 't {
        let all = self.0.get(address).into_iter().flatten();
        all.filter_map(|invocation| Some((*invocation, invocation.trigger.lifecycle()?)))
            .filter(move |(_, trigger)| events(trigger.event))
    }

    /// Returns true if a change of the object triggers an invocation.
    pub(super) fn concerns(&self, address: &AbsResourceInstance) -> bool {
        self.0.contains_key(address)
    }

    /// Returns true if an action with `on_failure = taint` runs after the creation of the object, so that its failure would taint the
    /// object.
    pub(super) fn may_taint(&self, address: &AbsResourceInstance) -> bool {
        self.for_object(address, |event| event == ActionEvent::AfterCreate)
            .any(|(_, trigger)| taints(trigger))
    }

    /// Returns true if the creation or the update of the object invokes actions that run before it.
    pub(super) fn begins(&self, address: &AbsResourceInstance) -> bool {
        self.for_object(address, |event| event.is_before() && !event.is_destroy())
            .next()
            .is_some()
    }
}

impl Applier<'_> {
    /// Invokes the actions that the creation or the update of an object triggers: with `before`, those that run before the change (`caller`
    /// is the planned object), otherwise those that run after it (`caller` is the new object). An error means that the operation has
    /// failed.
    ///
    /// If some of the triggers have `on_failure = taint`, the new object is already stored as tainted. It becomes ready when the last of
    /// these actions has succeeded.
    pub(super) async fn invoke_triggered(
        &self,
        s: &ObjectOperation<'_>,
        instance: ConfiguredInstance<'_>,
        before: bool,
        caller: &Value,
    ) -> Result<(), Reported> {
        let events = |event: ActionEvent| event.is_before() == before && !event.is_destroy();
        let mut left = self
            .triggered
            .for_object(s.address, events)
            .filter(|(_, trigger)| taints(trigger))
            .count();
        for (invocation, trigger) in self.triggered.for_object(s.address, events) {
            let invoked = Box::pin(self.invoke_evaluated(s, instance, invocation, trigger, caller)).await;
            let Err(failed) = invoked else {
                if taints(trigger) {
                    left -= 1;
                    if left == 0 {
                        self.set_status(s, ObjectStatus::Ready);
                    }
                }
                continue;
            };
            // An error of the configuration is not a failure of the action, and fails the operation in any case.
            if trigger.on_failure == ActionFailure::Continue && failed.may_continue {
                self.context
                    .evaluator
                    .report(failed.problems.into_iter().map(as_warning));
                continue;
            }
            if !taints(trigger) && left > 0 {
                // Actions with `on_failure = taint` remain, but are not invoked after this failure. They have not failed, so they must not
                // taint the object, and neither must the failed action, whose trigger has another `on_failure`.
                self.set_status(s, ObjectStatus::Ready);
            }
            return Err(self.context.fail(failed.problems));
        }
        Ok(())
    }

    /// Evaluates the condition of a trigger and the configuration of the action with the values of apply, and invokes the action.
    async fn invoke_evaluated(
        &self,
        s: &ObjectOperation<'_>,
        instance: ConfiguredInstance<'_>,
        invocation: &ActionInvocation,
        trigger: &LifecycleTrigger,
        caller: &Value,
    ) -> Result<(), InvocationFailure> {
        if !self.condition_is_true(instance, trigger, caller)? {
            return Ok(());
        }
        let action = self.configured_action(invocation)?;
        let module = &invocation.address.module;
        let evaluator = self.context.evaluator;
        let about = format!("{}, called from {}", action.address, s.address);
        let expansion = evaluator.action_expansion(module, &action.address.action);
        let expansion = expansion.map_err(EvaluationError::from)?;
        let call = ActionCall {
            module,
            repetition: action.instance(&expansion, &invocation.address, &action.block.range)?,
            caller: Some(caller.clone()),
            about: &about,
        };
        let evaluated = action.evaluate(evaluator, call, false);
        // `caller` made the evaluator cache a value for the whole resource. The cache is dropped, because other instances of the resource
        // may still change.
        evaluator.forget_resource_value(&s.address.containing_resource());
        let (config, warnings) = evaluated?;
        evaluator.report(warnings);
        self.invoke(&action, invocation, &config, &about)
            .await
            .map_err(InvocationFailure::of_action)
    }

    /// Returns true if the condition of a trigger holds, or if the trigger has no condition.
    fn condition_is_true(
        &self,
        instance: ConfiguredInstance<'_>,
        trigger: &LifecycleTrigger,
        object: &Value,
    ) -> Result<bool, EvaluationError> {
        let block = instance.block.lifecycle.action_triggers.get(trigger.block);
        let Some(condition) = block.and_then(|block| block.condition.as_ref()) else {
            return Ok(true);
        };
        let scope = self.context.evaluator.scope_with(
            &instance.address.module,
            instance.repetition.clone(),
            Some(object.clone()),
        );
        let Some(scope) = scope else {
            return Err(EvaluationError::Reported);
        };
        condition_holds(condition, &scope)?.ok_or_else(|| {
            Diagnostic::error(
                "Unknown condition when invoking action before apply",
                "The condition must be known before the action is invoked, and it refers to values that are known only after \
                 the change.",
            )
            .at(condition.range())
            .about(instance.address)
            .into()
        })
    }

    fn configured_action(&self, invocation: &ActionInvocation) -> Result<ConfiguredAction<'_>, Diagnostics> {
        let schemas = self.context.providers.schemas();
        ConfiguredAction::find(self.context.inputs.config, schemas, &invocation.address.config())
    }

    /// Invokes the actions that the destruction of an object triggers at this event. Their configuration is the planned one, because a
    /// destruction does not evaluate the blocks of actions. A failure stops the destruction. In destroy mode or with `on_failure =
    /// continue`, it is reported as a warning instead.
    pub(super) async fn invoke_destroying(&self, s: &ObjectOperation<'_>, event: ActionEvent) -> Result<(), Reported> {
        for (invocation, trigger) in self.triggered.for_object(s.address, |e| e == event) {
            let Err(failed) = Box::pin(self.invoke_planned(invocation)).await else {
                continue;
            };
            let problems = failed.unreported();
            // A failed action must not prevent the destruction of objects, so in destroy mode its failure
            // becomes a warning.
            let continues = self.plan.mode == Mode::Destroy || trigger.on_failure == ActionFailure::Continue;
            if !continues {
                return Err(self.context.fail(problems));
            }
            self.context.evaluator.report(problems.into_iter().map(as_warning));
        }
        Ok(())
    }

    pub(super) async fn invoke_requested(&self, invocation: &ActionInvocation) -> Result<(), Reported> {
        let result = Box::pin(self.invoke_planned(invocation)).await;
        result.map_err(|failed| self.context.fail(failed.unreported()))
    }

    async fn invoke_planned(&self, invocation: &ActionInvocation) -> Result<(), EvaluationError> {
        let action = self.configured_action(invocation)?;
        let about = match invocation.trigger.caller() {
            Some(caller) => format!("{}, called from {caller}", action.address),
            None => action.address.to_string(),
        };
        self.invoke(&action, invocation, &invocation.config, &about).await
    }

    /// Calls the provider to invoke an action with a configuration. Warnings are reported, and errors are returned.
    async fn invoke(
        &self,
        action: &ConfiguredAction<'_>,
        invocation: &ActionInvocation,
        config: &Value,
        about: &str,
    ) -> Result<(), EvaluationError> {
        let (plain, _) = config.clone().unmark_deep();
        if !plain.is_wholly_known() {
            return Err(Diagnostic::error(
                "Action configuration unknown during apply",
                format!(
                    "The configuration of {} still has unknown values. Before the change of an object, attributes that the change \
                     determines are not known: refer to \"caller\" in such attributes after the change only.",
                    invocation.address
                ),
            )
            .at(&action.block.range)
            .about(about)
            .into());
        }
        // An interrupt stops between actions: an action that has begun cannot be undone.
        if self.context.inputs.stop.is_requested() {
            return Err(Diagnostic::error(
                "Action not invoked",
                format!("The apply was interrupted before {} was invoked.", invocation.address),
            )
            .about(about)
            .into());
        }
        self.openings.open(&invocation.provider).await?;
        let provider = self.context.providers.get(&invocation.provider).await?;
        let Some(actions) = provider.actions() else {
            return Err(no_actions(invocation).into());
        };
        // The intent must be durable before the provider is called, so that after a crash the journal names the
        // invocation.
        let intent = intent(invocation);
        let begun = self.results.sink.begin(&intent).await;
        begun.map_err(|diagnostic| Diagnostics::from(diagnostic.about(about)))?;
        let (address, trigger) = (invocation.address.clone(), invocation.trigger.clone());
        let event = |event: Event| self.context.inputs.events.event(event);
        event(Event::ActionStart {
            address: address.clone(),
            trigger: trigger.clone(),
        });
        let began = Instant::now();
        let progress = |message: &str| {
            event(Event::ActionProgress {
                address: address.clone(),
                trigger: trigger.clone(),
                message: message.to_owned(),
            });
        };
        let ty = &action.address.action.ty;
        let answer = actions.invoke_action(ty, plain, &progress).await;
        // The provider has responded, so the next run need not report this invocation as unfinished.
        self.results.sink.end(&intent);
        let problems = match answer {
            Ok(answer) => {
                let body = action.block.config_body();
                located(answer.diagnostics, action.written(&body), &about)
            }
            Err(problems) => problems.into_iter().map(|d| d.about(about)).collect(),
        };
        if problems.has_errors() {
            event(Event::ActionFailed {
                address,
                trigger,
                error: as_text(&problems),
            });
            return Err(problems.into());
        }
        tracing::debug!("{}: invoked in {:?}", invocation.address, began.elapsed());
        event(Event::ActionComplete { address, trigger });
        self.context.evaluator.report(problems);
        Ok(())
    }
}

/// Returns true if the failure of this action taints the object that was just created.
fn taints(trigger: &LifecycleTrigger) -> bool {
    trigger.on_failure == ActionFailure::Taint && trigger.event == ActionEvent::AfterCreate
}

/// Error of an invocation, and whether `on_failure = continue` applies to it.
struct InvocationFailure {
    problems: Diagnostics,
    /// True if the action itself has failed. An error of the configuration fails the operation regardless of `on_failure`.
    may_continue: bool,
}

impl InvocationFailure {
    fn of_action(error: EvaluationError) -> InvocationFailure {
        InvocationFailure {
            problems: error.unreported(),
            may_continue: true,
        }
    }
}

impl From<EvaluationError> for InvocationFailure {
    fn from(error: EvaluationError) -> InvocationFailure {
        InvocationFailure::from(error.unreported())
    }
}

impl From<Diagnostics> for InvocationFailure {
    fn from(problems: Diagnostics) -> InvocationFailure {
        InvocationFailure {
            problems,
            may_continue: false,
        }
    }
}

impl From<Diagnostic> for InvocationFailure {
    fn from(problem: Diagnostic) -> InvocationFailure {
        Diagnostics::from(problem).into()
    }
}

fn no_actions(invocation: &ActionInvocation) -> Diagnostics {
    Diagnostic::error(
        "Provider has no actions",
        format!(
            "The running provider {} offers no actions, so {} cannot be invoked.",
            invocation.provider.provider.for_display(),
            invocation.address
        ),
    )
    .into()
}

/// Returns the intent of an invocation. The intent of a triggered invocation has the address of the resource instance, so that the
/// journal lists it beside the intent of the change itself.
fn intent(invocation: &ActionInvocation) -> Intent {
    let (address, by) = match &*invocation.trigger {
        InvocationTrigger::Lifecycle(trigger) => (trigger.resource.to_string(), invocation.address.to_string()),
        InvocationTrigger::Invoke { caller: None } => (invocation.address.to_string(), invocation.provider.to_string()),
        InvocationTrigger::Invoke { caller: Some(caller) } => (
            format!("{}, called from {caller}", invocation.address),
            invocation.provider.to_string(),
        ),
    };
    Intent {
        address,
        deposed: None,
        action: IntentAction::Invoke,
        by,
        planned: String::new(),
    }
}

/// Renders the errors of an invocation, one line each.
fn as_text(problems: &Diagnostics) -> String {
    let errors = problems.iter().filter(|d| d.is_error());
    let lines: Vec<String> = errors
        .map(|d| match d.detail.is_empty() {
            true => d.summary.clone(),
            false => format!("{}: {}", d.summary, d.detail),
        })
        .collect();
    lines.join("\n")
}
