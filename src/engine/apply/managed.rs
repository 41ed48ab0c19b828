//! Creates and updates objects.

use std::sync::Arc;
use std::time::Instant;

use cty::Value;
use provider::{Answer, Applied, ApplyRequest, PlanRequest, PlannedChange};
use schema::marking::without_write_only;
use state::ObjectStatus;
use state::journal::{Answers, Intent, IntentAction};
use syntax::Diagnostic;

use super::actions::Triggered;
use super::problems::{bug, inconsistent, may_exist, not_configured};
use super::provision::Provisioners;
use super::{Applier, ObjectOperation, without_response};
use crate::eval::Reported;
use crate::eval::checks::FailureSeverity;
use crate::eval::instance_conditions::ConfiguredInstance;
use crate::events::Event;
use crate::identity::{identity_problems, stored_identity};
use crate::instance::{
    decode, encode, identity, located, nulls_for_unknowns, planned_write_only, returned_write_only, unknowns,
    with_marks, without_ephemeral_marks,
};
use crate::objchange::{Proposal, applied_problems, plan_problems};
use crate::object_config;
use crate::plan::Action;

/// Values for the apply request of a creation or an update, with the marks of the configuration.
struct ChangeValues {
    /// Object before an update; null for a creation, also for that of a replacement.
    prior: Value,
    /// Configuration, wholly known, without marks.
    config: Value,
    /// Marks of the configuration.
    marks: Vec<(cty::Path, cty::Marks)>,
    /// Planned object, without marks.
    planned: Value,
    /// Private data of the plan.
    private: Vec<u8>,
    /// Planned identity.
    identity: Option<Value>,
}

impl Applier<'_> {
    /// Creates an object (also the new object of a replacement) or updates it.
    pub(super) async fn change(&self, index: u32, s: &ObjectOperation<'_>) -> Result<(), Reported> {
        let evaluator = self.context.evaluator;
        let Some(block) = self.context.inputs.config.resource(&s.address.config()) else {
            return Err(self.context.fail(not_configured(s.address)));
        };
        let expansion = evaluator.resource_expansion(&s.address.module, &s.address.resource.resource)?;
        let instance = ConfiguredInstance {
            address: s.address,
            block,
            repetition: &expansion.repetition(&s.address.resource.key),
        };
        evaluator.check_preconditions(instance, FailureSeverity::Error)?;
        let values = self.change_values(s, instance).await?;
        let update = s.change.action == Action::Update;
        if self.triggered.begins(s.address) {
            self.invoke_before(s, instance, &values).await?;
        }
        let value = if update && values.planned == values.prior {
            // Either only sensitivity changes, or unknown values turned out to be unchanged, so no request to the
            // provider is needed.
            let value = with_marks(values.planned, &values.marks, s.schema);
            self.store(s, value.clone(), values.identity, values.private, false)?;
            let invoked = self.invoke_triggered(s, instance, false, &value).await;
            if self.triggered.begins(s.address) {
                self.report_end(s, Action::Update, Instant::now(), invoked.ok().map(|()| &value));
            } else if s.change.before.paths_with_marks() != value.paths_with_marks() {
                self.report_mark_update(s, identity(&s.change.before), &value);
            }
            invoked?;
            value
        } else {
            self.apply_change(index, s, instance, values).await?
        };
        evaluator.check_postconditions(instance, Some(value), FailureSeverity::Error)
    }

    /// Invokes the actions with a `before_` event. The operation counts as started when the first of them is invoked.
    async fn invoke_before(
        &self,
        s: &ObjectOperation<'_>,
        instance: ConfiguredInstance<'_>,
        values: &ChangeValues,
    ) -> Result<(), Reported> {
        self.report_start(s);
        let began = Instant::now();
        let planned = with_marks(values.planned.clone(), &values.marks, s.schema);
        let result = self.invoke_triggered(s, instance, true, &planned).await;
        if result.is_err() {
            self.report_end(s, applied_as(s), began, None);
        }
        result
    }

    /// Returns the values of a change. The change is planned again if the configuration was not wholly known in the plan, and for every
    /// replacement.
    async fn change_values(
        &self,
        s: &ObjectOperation<'_>,
        instance: ConfiguredInstance<'_>,
    ) -> Result<ChangeValues, Reported> {
        let scope = self.context.evaluator.instance_scope(instance)?;
        let (config, marks) = self.known_config(s, instance.block, &scope)?;
        let prior = if s.change.action == Action::Update {
            self.current(s)?
        } else {
            Value::null(s.schema.implied_type())
        };
        let mut values = ChangeValues {
            prior,
            config,
            marks,
            planned: s.change.after.clone().unmark_deep().0,
            private: s.change.private.clone(),
            identity: s.change.planned_identity().cloned(),
        };
        // In the plan of a replacement, the provider saw the private data of the old object. The new object must have none of it, so it is
        // planned again without private data.
        if !s.change.config_known || s.change.action.is_replace() {
            let ignore = &instance.block.lifecycle.ignore_changes;
            let again = Box::pin(self.plan_again(s, &values, ignore)).await?;
            (values.planned, values.private, values.identity) = (again.planned, again.private, again.identity);
        }
        Ok(values)
    }

    /// Calls the provider to apply a change, stores the object, and runs its provisioners and actions. Returns the object, with marks.
    async fn apply_change(
        &self,
        index: u32,
        s: &ObjectOperation<'_>,
        instance: ConfiguredInstance<'_>,
        values: ChangeValues,
    ) -> Result<Value, Reported> {
        let update = s.change.action == Action::Update;
        let action = applied_as(s);
        let intended = match update {
            true => IntentAction::Update,
            false => IntentAction::Create,
        };
        let meta = self.context.provider_meta(s.address, &s.change.provider.provider)?;
        // The old object is deposed before the intent, because the slot of the current object must be free for
        // the new one when the provider answers.
        let deposed = self.depose(index, s);
        let intended = self.intend(s, None, intended, Some(&values.planned)).await;
        let begun = match intended {
            Ok(intent) => self.take_turn(s, intent).await,
            Err(Reported) => Err(Reported),
        };
        // The operation did not begin, so the old object is still the current one.
        if let (Err(Reported), Some(key)) = (&begun, &deposed) {
            self.restore_deposed(index, s, key);
        }
        let intent = begun?;
        if !self.triggered.begins(s.address) {
            self.report_start(s);
        }
        let began = Instant::now();
        let request = ApplyRequest {
            prior: values.prior.clone(),
            planned: values.planned.clone(),
            config: values.config.clone(),
            planned_private: values.private.clone(),
            planned_identity: values.identity.clone(),
            meta,
        };
        // A provider that has ended before the call cannot have created anything.
        let reached = !s.provider.has_ended();
        let answer = s.provider.apply(s.ty, request).await;
        // Without an encoded value in the intent, the request could not be encoded either, so the provider never received it.
        let unanswered = !update && reached && answer.is_err() && !intent.planned.is_empty();
        let answer = answer.unwrap_or_else(|diagnostics| {
            let null = Value::null(s.schema.implied_type());
            without_response(diagnostics, null, s.change.private.clone(), None)
        });
        self.slots.took(began.elapsed());
        let steps = match update {
            true => CreationSteps::default(),
            false => CreationSteps::new(s, &self.triggered, instance.block),
        };
        let taken = self.take_result(s, answer, &values, instance.block, steps);
        if unanswered {
            // The intent is not ended, so that the next run also warns that the object may exist.
            self.context.evaluator.report([may_exist(s)]);
        } else {
            self.results.sink.end(&intent);
        }
        let result = match taken {
            Ok(value) => self.complete(s, instance, value, steps).await,
            Err(Reported) => Err(Reported),
        };
        match (&result, deposed) {
            (Err(Reported), Some(key)) => self.restore_deposed(index, s, &key),
            (Ok(_), Some(key)) if s.change.action == Action::CreateThenForget => {
                self.update_deposed(s.change, key, None);
            }
            _ => {}
        }
        // This operation gives up its slot while it waits until its result is on the disk, so that the next one
        // can start.
        self.settle(s.slot).await;
        self.report_end(s, action, began, result.as_ref().ok());
        result
    }

    /// Runs the steps after the creation or update of an object: the provisioners of a new object, then the actions with an `after_`
    /// event. Returns the object.
    async fn complete(
        &self,
        s: &ObjectOperation<'_>,
        instance: ConfiguredInstance<'_>,
        value: Value,
        steps: CreationSteps,
    ) -> Result<Value, Reported> {
        let value = match s.change.action {
            Action::Update => value,
            _ => self.create_provisioners(s, instance, value, steps).await?,
        };
        self.invoke_triggered(s, instance, false, &value).await?;
        Ok(value)
    }

    /// Waits until an operation whose intent is already written may send requests. If the user interrupted the run meanwhile, the intent is
    /// ended and the operation does not begin.
    async fn take_turn(&self, s: &ObjectOperation<'_>, intent: Intent) -> Result<Intent, Reported> {
        if s.slot.run().await && self.context.inputs.stop.is_requested() {
            self.results.sink.end(&intent);
            return Err(Reported);
        }
        Ok(intent)
    }

    /// If the change is a replacement that creates first, deposes the current object and returns the key of the deposed one.
    fn depose(&self, index: u32, s: &ObjectOperation<'_>) -> Option<state::DeposedKey> {
        let deposed = match s.change.action {
            Action::CreateThenDelete | Action::CreateThenForget => {
                self.update(s.change, Answers::Nothing, |state| state.depose(s.address))
            }
            _ => None,
        };
        if let Some(key) = &deposed {
            self.results.deposed().insert(index, key.clone());
        }
        deposed
    }

    /// Makes the deposed object of a failed replacement the current one again, if there is no new object.
    fn restore_deposed(&self, index: u32, s: &ObjectOperation<'_>, key: &state::DeposedKey) {
        let restored = self.update(s.change, Answers::Nothing, |state| {
            state.restore_deposed(s.address, key)
        });
        if restored {
            self.results.deposed().remove(&index);
        }
    }

    /// Sends the event for the start of an operation.
    fn report_start(&self, s: &ObjectOperation<'_>) {
        let action = applied_as(s);
        self.context.inputs.events.event(Event::OperationStart {
            address: s.address.clone(),
            deposed: None,
            action,
            id: (action == Action::Update).then(|| identity(&s.change.before)).flatten(),
        });
    }

    /// Sends the event for the end of an operation; `None` means that it failed.
    fn report_end(&self, s: &ObjectOperation<'_>, action: Action, began: Instant, value: Option<&Value>) {
        let (address, deposed, elapsed) = (s.address.clone(), None, began.elapsed());
        self.context.inputs.events.event(match value {
            Some(value) => Event::OperationComplete {
                address,
                deposed,
                action,
                id: identity(value),
                elapsed,
            },
            None => Event::OperationFailed {
                address,
                deposed,
                action,
                elapsed,
            },
        });
    }

    /// Returns the configuration of an object without marks, and its marks. A configuration that is not wholly known is an error.
    fn known_config(
        &self,
        s: &ObjectOperation<'_>,
        block: &config::Resource,
        scope: &crate::eval::ModuleScope<'_>,
    ) -> Result<(Value, Vec<(cty::Path, cty::Marks)>), Reported> {
        let config = object_config::object_config(self.context.evaluator, s.address, &block.body, s.schema, scope)?;
        let marks = without_ephemeral_marks(config.paths_with_marks());
        // Providers are sent values only; the marks are put back on the result.
        let (config, _) = config.unmark_deep();
        if !config.is_wholly_known() {
            return Err(self.context.fail(
                Diagnostic::error(
                    "Configuration contains unknown value",
                    format!(
                        "The configuration of {} still contains values that are not known during apply. This is a \
                         bug in Monoform; please report it.",
                        s.address
                    ),
                )
                .at(&block.range)
                .about(s.address),
            ));
        }
        Ok((config, marks))
    }

    /// Sends the start and end events of an update that changes only sensitivity. No request is made, but the plan counts it as an update.
    fn report_mark_update(&self, s: &ObjectOperation<'_>, id: Option<(String, String)>, value: &Value) {
        let (address, deposed, action) = (s.address.clone(), None, Action::Update);
        self.context.inputs.events.event(Event::OperationStart {
            address: address.clone(),
            deposed: None,
            action,
            id,
        });
        self.context.inputs.events.event(Event::OperationComplete {
            address,
            deposed,
            action,
            id: identity(value),
            elapsed: std::time::Duration::ZERO,
        });
    }

    /// Returns the current object of the instance in the state, without marks; null if there is none.
    fn current(&self, s: &ObjectOperation<'_>) -> Result<Value, Reported> {
        let object = self.state().current(s.address).cloned();
        match object {
            Some(object) => Ok(decode(s.schema, &object, s.address)
                .map_err(|d| self.context.fail(d))?
                .value),
            None => Ok(Value::null(s.schema.implied_type())),
        }
    }

    /// Requests another plan with the wholly known configuration, and checks that it conforms to the first plan.
    async fn plan_again(
        &self,
        s: &ObjectOperation<'_>,
        values: &ChangeValues,
        ignore: &config::IgnoreChanges,
    ) -> Result<PlannedChange, Reported> {
        let ChangeValues {
            prior, config, planned, ..
        } = values;
        let Proposal { config, proposed } = Proposal::new(s.schema, prior, config, ignore);
        let stored = self.state().current(s.address).filter(|_| !prior.is_null()).cloned();
        let prior_identity = match &stored {
            Some(object) => stored_identity(s.schema, object, s.address).map_err(|d| self.context.fail(d))?,
            None => None,
        };
        let private = stored.map(|o| o.private.clone()).unwrap_or_default();
        let answer = s
            .provider
            .plan(
                s.ty,
                PlanRequest {
                    prior: prior.clone(),
                    proposed,
                    config: config.clone(),
                    prior_private: private,
                    prior_identity,
                    planned_private: values.private.clone(),
                    meta: self.context.provider_meta(s.address, &s.change.provider.provider)?,
                },
            )
            .await
            .map_err(|d| self.context.fail(d))?;
        self.context.report(located(answer.diagnostics, None, s.address))?;
        let again = answer.value;
        let provider = &s.change.provider.provider;
        self.context
            .report(planned_write_only(&again.planned, s.schema, provider, s.address))?;
        // The final plan must match the approved one: only values that were unknown may differ.
        let mut problems = plan_problems(&s.schema.block, prior, &config, &again.planned);
        problems.extend(applied_problems(&s.schema.block, planned, &again.planned));
        // Providers with the legacy type system may break these rules, as in Terraform.
        if again.legacy_type_system {
            for problem in &problems {
                // The message of the problem may contain values, which must not be logged.
                tracing::warn!("{}: the final plan breaks a rule at {}", s.address, problem.path);
            }
        } else if !problems.is_empty() {
            return Err(self.context.fail(inconsistent(
                s,
                "Provider produced inconsistent final plan",
                "The object was planned again with the values that are known now, and the provider returned an invalid \
                 value",
                &problems,
            )));
        }
        let known = s.change.action == Action::Update;
        self.context.report(identity_problems(
            again.identity.as_ref(),
            s.schema,
            known,
            provider,
            s.address,
        ))?;
        Ok(again)
    }

    /// Checks the response of a provider to an apply call, and stores the object. Returns the new object, with marks.
    fn take_result(
        &self,
        s: &ObjectOperation<'_>,
        answer: Answer<Applied>,
        values: &ChangeValues,
        block: &config::Resource,
        steps: CreationSteps,
    ) -> Result<Value, Reported> {
        let mut problems = located(answer.diagnostics, Some((&*block.body, s.schema)), s.address);
        let mut failed = problems.has_errors();
        let applied = answer.value;
        let returned = returned_write_only(
            &applied.state,
            s.schema,
            &s.change.provider.provider,
            "Provider produced invalid object",
            "after applying",
            s.address,
        );
        failed |= !returned.is_empty();
        problems.extend(returned);
        let provider = &s.change.provider.provider;
        let wrong = identity_problems(applied.identity.as_ref(), s.schema, true, provider, s.address);
        failed |= !wrong.is_empty();
        problems.extend(wrong);
        let mut state = without_write_only(&s.schema.block, &applied.state);
        if !state.is_wholly_known() {
            if !failed {
                problems.extend(unknowns(&state, s.address, |path| {
                    let what = format!(
                        "The provider returned an unknown value for {}{path} from apply. After apply every value must \
                         be known; the known ones are stored in the state.",
                        s.address
                    );
                    ("Provider returned invalid result object after apply", what)
                }));
                failed = true;
            }
            // A state cannot store unknown values, so they become null. The known ones are kept, because the object exists.
            state = nulls_for_unknowns(&state);
        }
        if !failed && state.is_null() {
            problems.push(bug(
                s,
                "Provider produced inconsistent result after apply",
                &format!(
                    "Provider \"{}\" was to create or update {} and returned no object.",
                    s.change.provider.provider, s.address
                ),
            ));
            failed = true;
        } else if !failed {
            let broken = applied_problems(&s.schema.block, &values.planned, &state);
            if applied.legacy_type_system {
                for problem in &broken {
                    tracing::warn!("{}: the result breaks a rule at {}", s.address, problem.path);
                }
            } else if !broken.is_empty() {
                problems.extend(inconsistent(
                    s,
                    "Provider produced inconsistent result after apply",
                    "The object that the provider returned from apply contradicts the plan",
                    &broken,
                ));
                failed = true;
            }
        }
        self.context.evaluator.report(problems);
        if state.is_null() {
            // After a failed update the state keeps the old object. After a failed creation there is no object to record.
            return Err(Reported);
        }
        let value = with_marks(state, &values.marks, s.schema);
        // A new object is complete only when its provisioners and actions have succeeded. Until then it is stored as
        // tainted, so that the next plan replaces it if the run ends in between.
        let tainted = (failed && s.change.action != Action::Update) || steps.remain();
        self.store(s, value.clone(), applied.identity, applied.private, tainted)?;
        // The object is stored even after an error, because the object exists and would be forgotten otherwise.
        if failed { Err(Reported) } else { Ok(value) }
    }

    /// Stores the current object of an instance in the state, and sets it in the evaluator.
    pub(super) fn store(
        &self,
        s: &ObjectOperation<'_>,
        value: Value,
        identity: Option<Value>,
        private: Vec<u8>,
        tainted: bool,
    ) -> Result<(), Reported> {
        let record = self.record(s.address, s.schema);
        let mut object =
            encode(s.schema, &value, identity.as_ref(), private, record).map_err(|d| self.context.fail(d))?;
        if tainted {
            object.status = ObjectStatus::Tainted;
        }
        self.update_current(s.change, Some(Arc::new(object)));
        self.context.evaluator.set_object(s.address, value);
        Ok(())
    }

    /// Runs the provisioners of a new object. A failure leaves it tainted.
    async fn create_provisioners(
        &self,
        s: &ObjectOperation<'_>,
        instance: ConfiguredInstance<'_>,
        value: Value,
        steps: CreationSteps,
    ) -> Result<Value, Reported> {
        let when = config::ProvisionerWhen::Create;
        let (decisive, rest) = Provisioners::from(instance.block).split_after_last_decisive(when);
        let mut result = self.provision(decisive, when, s, instance.repetition, &value).await;
        if result.is_ok() {
            // If no action can taint the object, it is ready once the last provisioner that can taint it has succeeded. Otherwise the
            // actions, which run later, set the status.
            if steps.provisioners && !steps.actions {
                self.set_status(s, ObjectStatus::Ready);
            }
            result = self.provision(rest, when, s, instance.repetition, &value).await;
        }
        if result.is_err() {
            self.set_status(s, ObjectStatus::Tainted);
        }
        result.map(|()| value)
    }

    /// Sets the status of the current object, unless it has that status already.
    pub(super) fn set_status(&self, s: &ObjectOperation<'_>, status: ObjectStatus) {
        let object = self.state().current(s.address).cloned();
        if let Some(object) = object.filter(|object| object.status != status) {
            self.update_current(s.change, Some(Arc::new(object.with_status(status))));
        }
    }
}

/// Tells which steps after the creation of an object can taint it by their failure.
#[derive(Clone, Copy, Default)]
struct CreationSteps {
    /// Set if there are creation-time provisioners without `on_failure = continue`.
    provisioners: bool,
    /// Set if the creation triggers actions with `on_failure = taint` that run after it.
    actions: bool,
}

impl CreationSteps {
    fn new(s: &ObjectOperation<'_>, triggered: &Triggered<'_>, block: &config::Resource) -> CreationSteps {
        CreationSteps {
            provisioners: block
                .provisioners
                .iter()
                .any(|p| p.when == config::ProvisionerWhen::Create && p.on_failure == config::OnFailure::Fail),
            actions: triggered.may_taint(s.address),
        }
    }

    fn remain(self) -> bool {
        self.provisioners || self.actions
    }
}

/// Returns the action that the change operation of a plan entry performs: update, or else create, because a replacement destroys in a
/// separate operation.
fn applied_as(s: &ObjectOperation<'_>) -> Action {
    match s.change.action {
        Action::Update => Action::Update,
        _ => Action::Create,
    }
}
