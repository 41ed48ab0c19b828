//! Destroys objects.

use std::sync::Arc;
use std::time::Instant;

use config::ActionEvent;
use cty::Value;
use provider::{ApplyRequest, ObjectRead, PlanRequest};
use state::DeposedKey;
use state::journal::IntentAction;
use syntax::Diagnostic;

use super::{Applier, ObjectOperation, without_response};
use crate::eval::{Repetition, Reported};
use crate::events::Event;
use crate::identity::identity_problems;
use crate::instance::{StoredObject, decode, encode, identity, located};
use crate::plan::Action;

impl Applier<'_> {
    /// Destroys the object of a deletion, or the old object of a replacement.
    pub(super) async fn destroy(&self, index: u32, s: &ObjectOperation<'_>) -> Result<(), Reported> {
        let deposed: Option<DeposedKey> = match &s.change.deposed {
            Some(key) => Some(DeposedKey(key.clone())),
            None if s.change.action == Action::CreateThenDelete => match self.results.deposed().get(&index) {
                Some(key) => Some(key.clone()),
                // The new object was never created, so the old one stays in use.
                None => return Ok(()),
            },
            None => None,
        };
        let object = {
            let state = self.state();
            let instance = state.instance(s.address);
            match &deposed {
                Some(key) => instance.and_then(|i| i.deposed.get(key)).cloned(),
                None => instance.and_then(|i| i.current.as_ref()).cloned(),
            }
        };
        // Nothing is left to destroy: an earlier operation of this apply has removed the object.
        let Some(object) = object else { return Ok(()) };
        let stored = decode(s.schema, &object, s.address).map_err(|d| self.context.fail(d))?;
        let began = Instant::now();
        let shown = deposed.as_ref().map(|k| k.0.clone());
        let event = |event: Event| self.context.inputs.events.event(event);
        event(Event::OperationStart {
            address: s.address.clone(),
            deposed: shown.clone(),
            action: Action::Delete,
            id: identity(&stored.marked(s.schema)),
        });
        let result = self.destroy_object(s, &stored, deposed.as_ref()).await;
        let (address, elapsed) = (s.address.clone(), began.elapsed());
        event(match result {
            Ok(()) => Event::OperationComplete {
                address,
                deposed: shown,
                action: Action::Delete,
                id: None,
                elapsed,
            },
            Err(Reported) => Event::OperationFailed {
                address,
                deposed: shown,
                action: Action::Delete,
                elapsed,
            },
        });
        result
    }

    async fn destroy_object(
        &self,
        s: &ObjectOperation<'_>,
        stored: &StoredObject,
        deposed: Option<&DeposedKey>,
    ) -> Result<(), Reported> {
        // As in Terraform: a tainted object may be incomplete, so its destroy-time provisioners are skipped.
        if deposed.is_none() && !stored.is_tainted() {
            self.destroy_provisioners(s, stored).await?;
        }
        // A deposed object from an earlier run triggers no actions: they were invoked when that run replaced it.
        let triggers = s.change.deposed.is_none();
        if triggers {
            self.invoke_destroying(s, ActionEvent::BeforeDestroy).await?;
        }
        let null = Value::null(s.schema.implied_type());
        let (private, planned_identity) = if deposed.is_some() {
            // The plan has no private data for this object, or data from before the replacement.
            Box::pin(self.plan_destruction(s, stored)).await?
        } else if s.change.action == Action::Delete {
            (s.change.private.clone(), s.change.planned_identity().cloned())
        } else {
            (stored.private.clone(), None)
        };
        let meta = self.context.provider_meta(s.address, &s.change.provider.provider)?;
        // The intent must be durable before the provider is called, so that after a crash the journal names the object.
        let intent = self.intend(s, deposed, IntentAction::Delete, None).await?;
        let began = Instant::now();
        let answer = s
            .provider
            .apply(
                s.ty,
                ApplyRequest {
                    prior: stored.value.clone(),
                    planned: null.clone(),
                    config: null,
                    planned_private: private,
                    planned_identity,
                    meta,
                },
            )
            .await
            .unwrap_or_else(|diagnostics| {
                let (value, private) = (stored.value.clone(), stored.private.clone());
                without_response(diagnostics, value, private, stored.identity.clone())
            });
        self.slots.took(began.elapsed());
        let mut problems = located(answer.diagnostics, None, s.address);
        let left = answer.value.state;
        if !problems.has_errors() && !left.is_null() {
            problems.push(object_remains(s));
        }
        let failed = problems.has_errors();
        self.context.evaluator.report(problems);
        if !failed {
            match deposed {
                Some(key) => self.update_deposed(s.change, key.clone(), None),
                None => {
                    self.update_current(s.change, None);
                    if s.change.action == Action::Delete {
                        self.context.evaluator.remove_object(s.address);
                    }
                }
            }
            if triggers {
                // The removal must be durable before actions rely on it.
                self.results.sink.settled().await;
                self.invoke_destroying(s, ActionEvent::AfterDestroy).await?;
            }
            return Ok(());
        }
        let left = ObjectRead {
            object: left,
            private: answer.value.private,
            identity: answer.value.identity,
        };
        self.record_remaining(s, stored, deposed, left);
        // The intent is ended after the object is recorded: if a crash comes in between, the intent is still
        // open.
        self.results.sink.end(&intent);
        Err(Reported)
    }

    /// Runs the destroy-time provisioners of an object, from its resource block or a `removed` block.
    async fn destroy_provisioners(&self, s: &ObjectOperation<'_>, stored: &StoredObject) -> Result<(), Reported> {
        let provisioners = self.provisioners(&s.address.config());
        if provisioners.is_empty() {
            return Ok(());
        }
        let repetition = Repetition::of_existing(&s.address.resource.key);
        let value = stored.marked(s.schema);
        self.provision(provisioners, config::ProvisionerWhen::Destroy, s, &repetition, &value)
            .await
    }

    /// Records the object that a failed destroy operation returned, which may differ from the stored one. Null together
    /// with an error means that no change is known.
    fn record_remaining(
        &self,
        s: &ObjectOperation<'_>,
        stored: &StoredObject,
        deposed: Option<&DeposedKey>,
        left: ObjectRead,
    ) {
        let ObjectRead {
            object,
            private,
            identity,
        } = left;
        // An object with unknown values cannot be stored; the old record is better than none.
        if object.is_present() && object.is_wholly_known() {
            let marked = crate::instance::with_marks(object, &stored.marks, s.schema);
            let left = state::Object {
                create_before_destroy: false,
                ..(*stored.object).clone()
            };
            let object = encode(s.schema, &marked, identity.as_ref(), private, left);
            match object {
                Ok(object) => match deposed {
                    Some(key) => self.update_deposed(s.change, key.clone(), Some(Arc::new(object))),
                    None => self.update_current(s.change, Some(Arc::new(object))),
                },
                Err(diagnostics) => self.context.evaluator.report(diagnostics),
            }
        }
    }

    /// Requests a plan of the destruction, if the provider has the capability `plan_destroy`. Returns the private data for apply, and the
    /// planned identity.
    async fn plan_destruction(
        &self,
        s: &ObjectOperation<'_>,
        stored: &StoredObject,
    ) -> Result<(Vec<u8>, Option<Value>), Reported> {
        let schemas = &self.context.providers.schemas().providers;
        let schema = schemas.get(&s.change.provider.provider);
        // Without the capability a provider does not expect a plan whose proposed object is null.
        if !schema.is_some_and(|p| p.capabilities.plan_destroy) {
            return Ok((stored.private.clone(), None));
        }
        let null = Value::null(s.schema.implied_type());
        let (prior, private) = (stored.value.clone(), stored.private.clone());
        let answer = s
            .provider
            .plan(
                s.ty,
                PlanRequest {
                    prior,
                    proposed: null.clone(),
                    config: null,
                    prior_private: private,
                    prior_identity: stored.identity.clone(),
                    planned_private: Vec::new(),
                    meta: self.context.provider_meta(s.address, &s.change.provider.provider)?,
                },
            )
            .await;
        let answer = answer.map_err(|d| self.context.fail(d))?;
        let block = self.context.inputs.config.resource(&s.address.config());
        let written = block.map(|b| (&*b.body, s.schema));
        self.context.report(located(answer.diagnostics, written, s.address))?;
        let change = answer.value;
        let provider = &s.change.provider.provider;
        let problems = identity_problems(change.identity.as_ref(), s.schema, true, provider, s.address);
        self.context.report(problems)?;
        Ok((change.private, change.identity))
    }
}

fn object_remains(s: &ObjectOperation<'_>) -> Diagnostic {
    Diagnostic::error(
        "Provider returned invalid result object after apply",
        format!(
            "The provider was asked to destroy {} and returned an object instead of null. This is a bug in the provider {}; \
             please report it to its maintainers.",
            s.address, s.change.provider.provider
        ),
    )
    .about(s.address)
}
