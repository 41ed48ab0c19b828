//! Creating and updating an object.

use std::sync::Arc;
use std::time::Instant;

use cty::Value;
use provider::{Answer, Applied, ApplyRequest, PlanRequest};
use schema::marking::without_write_only;
use state::ObjectStatus;
use syntax::{Diagnostic, Diagnostics};

use super::{Applier, ObjectOperation};
use crate::eval::checks::{Checked, ConditionKind, Conditions, FailureSeverity};
use crate::eval::{Repetition, Reported};
use crate::events::Event;
use crate::instance::{
    decode, encode, identity, located, nulls_for_unknowns, returned_write_only, unknowns, with_marks,
    without_ephemeral_marks,
};
use crate::objchange::{Problem, applied_problems, plan_problems, proposed_new, with_ignored_changes};
use crate::object_config;
use crate::plan::Action;

impl Applier<'_> {
    /// Creates an object (that of a replacement, too) or updates it.
    pub(super) async fn change(&self, index: u32, s: &ObjectOperation<'_>) -> Result<(), Reported> {
        let Some(block) = self.inputs.config.resource(&s.address.config()) else {
            return Err(self.reported(not_configured(s.address).into()));
        };
        let expansion = self
            .evaluator
            .resource_expansion(&s.address.module, &s.address.resource.resource)?;
        let repetition = expansion.repetition(&s.address.resource.key);
        let scope = self
            .evaluator
            .scope_with(&s.address.module, repetition.clone(), None)
            .ok_or(Reported)?;
        self.conditions(&block.lifecycle.preconditions, ConditionKind::Precondition, &scope, s)?;
        let (config, marks) = self.known_config(s, block, &scope)?;
        let null = Value::null(s.schema.implied_type());
        let update = s.change.action == Action::Update;
        let prior = if update { self.current(s)? } else { null.clone() };
        let planned = s.change.after.clone().unmark_deep().0;
        let (planned, private) = if s.change.config_known {
            (planned, s.change.private.clone())
        } else {
            self.plan_again(s, &prior, &config, &planned, &block.lifecycle.ignore_changes)
                .await?
        };
        let action = if update { Action::Update } else { Action::Create };
        let id = if update { identity(&s.change.before) } else { None };
        if update && planned == prior {
            // Only what is sensitive changes, or what was unknown came to the same: the provider has nothing to do.
            let value = with_marks(planned, &marks, s.schema);
            self.store(s, value.clone(), private, false)?;
            if s.change.before.paths_with_marks() != value.paths_with_marks() {
                self.report_mark_update(s, id, &value);
            }
            let scope = self
                .evaluator
                .scope_with(&s.address.module, repetition, Some(value))
                .ok_or(Reported)?;
            return self.conditions(&block.lifecycle.postconditions, ConditionKind::Postcondition, &scope, s);
        }
        let deposed = self.depose(index, s);
        let event = |event: Event| self.inputs.events.event(event);
        event(Event::OperationStart {
            address: s.address.clone(),
            deposed: None,
            action,
            id,
        });
        let began = Instant::now();
        let answer = s
            .provider
            .apply(
                s.ty,
                ApplyRequest {
                    prior: prior.clone(),
                    planned: planned.clone(),
                    config: config.clone(),
                    planned_private: private,
                    meta: None,
                },
            )
            .await
            .unwrap_or_else(|diagnostics| lost(diagnostics, &s.change.private, &null));
        let written = Some((&*block.body, s.schema));
        let result = self.take_result(s, answer, &planned, &marks, written, update);
        let result = match result {
            Ok(value) => self.create_provisioners(s, block, &repetition, update, value).await,
            Err(Reported) => Err(Reported),
        };
        if let (Err(Reported), Some(key)) = (&result, &deposed) {
            self.restore_deposed(index, s, key);
        }
        self.report_end(s, action, began, result.as_ref().ok());
        let value = result?;
        self.evaluator.set_object(s.address, value.clone());
        let scope = self
            .evaluator
            .scope_with(&s.address.module, repetition, Some(value))
            .ok_or(Reported)?;
        self.conditions(&block.lifecycle.postconditions, ConditionKind::Postcondition, &scope, s)
    }

    /// Makes the current object of a create_before_destroy replacement a deposed one.
    fn depose(&self, index: u32, s: &ObjectOperation<'_>) -> Option<state::DeposedKey> {
        let deposed = match s.change.action {
            Action::CreateThenDelete => self.update(s.change, |state| state.depose(s.address)),
            _ => None,
        };
        if let Some(key) = &deposed {
            self.deposed
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .insert(index, key.clone());
        }
        deposed
    }

    /// Makes the deposed object of a failed replacement the current one again, if there is no new object.
    fn restore_deposed(&self, index: u32, s: &ObjectOperation<'_>, key: &state::DeposedKey) {
        let restored = self.update(s.change, |state| state.restore_deposed(s.address, key));
        if restored {
            self.deposed
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .remove(&index);
        }
    }

    /// Sends the event for the end of an operation; without a value, it failed.
    fn report_end(&self, s: &ObjectOperation<'_>, action: Action, began: Instant, value: Option<&Value>) {
        let (address, deposed, elapsed) = (s.address.clone(), None, began.elapsed());
        self.inputs.events.event(match value {
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

    /// The configuration of an object, without marks, wholly known; and its marks.
    fn known_config(
        &self,
        s: &ObjectOperation<'_>,
        block: &config::Resource,
        scope: &crate::eval::ModuleScope<'_>,
    ) -> Result<(Value, Vec<(cty::Path, cty::Marks)>), Reported> {
        let config = object_config::object_config(self.evaluator, s.address, &block.body, s.schema, scope)?;
        let marks = without_ephemeral_marks(config.paths_with_marks());
        let (config, _) = config.unmark_deep();
        if !config.is_wholly_known() {
            return Err(self.reported(
                Diagnostic::error(
                    "Configuration contains unknown value",
                    format!(
                        "The configuration of {} still contains values that are not known during apply. This is a \
                         defect of Monoform; please report it.",
                        s.address
                    ),
                )
                .at(&block.range)
                .about(s.address)
                .into(),
            ));
        }
        Ok((config, marks))
    }

    /// Sends the events of an update that changes only sensitivity: it was planned, so it is counted.
    fn report_mark_update(&self, s: &ObjectOperation<'_>, id: Option<(String, String)>, value: &Value) {
        let (address, deposed, action) = (s.address.clone(), None, Action::Update);
        self.inputs.events.event(Event::OperationStart {
            address: address.clone(),
            deposed: None,
            action,
            id,
        });
        self.inputs.events.event(Event::OperationComplete {
            address,
            deposed,
            action,
            id: identity(value),
            elapsed: std::time::Duration::ZERO,
        });
    }

    pub(super) fn conditions(
        &self,
        rules: &[config::CheckRule],
        kind: ConditionKind,
        scope: &crate::eval::ModuleScope<'_>,
        s: &ObjectOperation<'_>,
    ) -> Result<(), Reported> {
        self.evaluator.check_all(&Conditions {
            rules,
            kind,
            scope,
            of: &Checked::Resource(s.address.clone()),
            severity: FailureSeverity::Error,
        })
    }

    /// The current object as it is stored.
    fn current(&self, s: &ObjectOperation<'_>) -> Result<Value, Reported> {
        let object = self.state().current(s.address).cloned();
        match object {
            Some(object) => Ok(decode(s.schema, &object, s.address)
                .map_err(|d| self.reported(d))?
                .value),
            None => Ok(Value::null(s.schema.implied_type())),
        }
    }

    /// Plans again with the whole configuration known, and checks that the result conforms to the plan.
    async fn plan_again(
        &self,
        s: &ObjectOperation<'_>,
        prior: &Value,
        config: &Value,
        planned: &Value,
        ignore: &config::IgnoreChanges,
    ) -> Result<(Value, Vec<u8>), Reported> {
        let effective = with_ignored_changes(&s.schema.block, prior, config, ignore);
        let proposed = proposed_new(&s.schema.block, prior, &effective);
        let stored_private = self.state().current(s.address).map(|o| o.private.clone());
        let private = if prior.is_null() {
            Vec::new()
        } else {
            stored_private.unwrap_or_default()
        };
        let answer = s
            .provider
            .plan(
                s.ty,
                PlanRequest {
                    prior: prior.clone(),
                    proposed,
                    config: effective.clone(),
                    prior_private: private,
                    meta: None,
                },
            )
            .await
            .map_err(|d| self.reported(d))?;
        let problems = located(answer.diagnostics, None, s.address);
        let failed = problems.has_errors();
        self.evaluator.report(problems);
        if failed {
            return Err(Reported);
        }
        let again = answer.value;
        let mut problems = plan_problems(&s.schema.block, prior, &effective, &again.planned);
        problems.extend(applied_problems(&s.schema.block, planned, &again.planned));
        if again.legacy_type_system {
            for problem in &problems {
                // What is wrong there may say values, which do not belong into a log.
                tracing::warn!("{}: the final plan breaks a rule at {}", s.address, problem.path);
            }
        } else if !problems.is_empty() {
            return Err(self.reported(inconsistent(
                s,
                "Provider produced inconsistent final plan",
                "When it was planned again with the values that apply has found, the provider returned an invalid \
                 value",
                &problems,
            )));
        }
        Ok((again.planned, again.private))
    }

    /// Checks the response of a provider to an apply call, and stores the object. Returns the new object, with marks.
    fn take_result(
        &self,
        s: &ObjectOperation<'_>,
        answer: Answer<Applied>,
        planned: &Value,
        marks: &[(cty::Path, cty::Marks)],
        written: Option<(&syntax::ast::Body, &schema::Schema)>,
        update: bool,
    ) -> Result<Value, Reported> {
        let mut problems = located(answer.diagnostics, written, s.address);
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
            let broken = applied_problems(&s.schema.block, planned, &state);
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
        self.evaluator.report(problems);
        if state.is_null() {
            // A failed update leaves the object as it was; a failed creation leaves nothing.
            return Err(Reported);
        }
        let value = with_marks(state, marks, s.schema);
        self.store(s, value.clone(), applied.private, failed && !update)?;
        if failed { Err(Reported) } else { Ok(value) }
    }

    /// Records an object in the state.
    pub(super) fn store(
        &self,
        s: &ObjectOperation<'_>,
        value: Value,
        private: Vec<u8>,
        tainted: bool,
    ) -> Result<(), Reported> {
        let mut object =
            encode(s.schema, &value, private, self.record(s.address, s.schema)).map_err(|d| self.reported(d))?;
        if tainted {
            object.status = ObjectStatus::Tainted;
        }
        self.update_current(s.change, Some(Arc::new(object)));
        self.evaluator.set_object(s.address, value);
        Ok(())
    }

    /// Runs the provisioners of a new object. A failure leaves it tainted.
    async fn create_provisioners(
        &self,
        s: &ObjectOperation<'_>,
        block: &config::Resource,
        repetition: &Repetition,
        update: bool,
        value: Value,
    ) -> Result<Value, Reported> {
        if update || block.provisioners.is_empty() {
            return Ok(value);
        }
        let result = self
            .provision(block.into(), config::ProvisionerWhen::Create, s, repetition, &value)
            .await;
        if result.is_err() {
            let object = self
                .state()
                .current(s.address)
                .map(|o| o.with_status(ObjectStatus::Tainted));
            if let Some(object) = object {
                self.update_current(s.change, Some(Arc::new(object)));
            }
        }
        result.map(|()| value)
    }
}

/// The response in place of that of a provider that could not be reached: no change is known.
fn lost(diagnostics: Diagnostics, private: &[u8], null: &Value) -> Answer<Applied> {
    Answer {
        value: Applied {
            state: null.clone(),
            private: private.to_vec(),
            legacy_type_system: false,
        },
        diagnostics: diagnostics
            .into_iter()
            .map(|diagnostic| provider::PluginDiagnostic {
                diagnostic,
                attribute: cty::Path::root(),
            })
            .collect(),
    }
}

fn bug(s: &ObjectOperation<'_>, summary: &str, what: &str) -> Diagnostic {
    Diagnostic::error(
        summary,
        format!(
            "{what}\n\nThis is a defect of the provider {}; please report it to its maintainers.",
            s.change.provider.provider
        ),
    )
    .about(s.address)
}

fn inconsistent(s: &ObjectOperation<'_>, summary: &str, what: &str, problems: &[Problem]) -> Diagnostics {
    problems
        .iter()
        .map(|p| {
            bug(
                s,
                summary,
                &format!("{what} for {}{}: {}.", s.address, p.path, p.message),
            )
        })
        .collect()
}

fn not_configured(address: &addrs::AbsResourceInstance) -> Diagnostic {
    Diagnostic::error(
        "Resource not in configuration",
        format!("The plan changes {address}, which the configuration no longer has."),
    )
}
