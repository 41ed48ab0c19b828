//! Planning of destructions: of instances that are not configured (in a destroy plan, of all instances), and of deposed objects.

use provider::PlanRequest;
use std::sync::Arc;

use addrs::AbsResourceInstance;
use cty::Value;
use state::{DeposedKey, Object};
use syntax::Diagnostic;

use super::actions::TriggeringChange;
use super::managed::{Refreshed, learns_marks};
use super::{PlannedResource, Planner};
use crate::eval::{Repetition, Reported};
use crate::identity::IdentityChange;
use crate::instance::{StoredObject, located, read_problems, upgrade};
use crate::plan::{Action, Reason, ResourceChange};

impl Planner<'_> {
    /// Plans to destroy or forget an instance that is not configured, or any instance in a destroy plan.
    pub(super) async fn delete(
        &self,
        p: &PlannedResource<'_>,
        address: &AbsResourceInstance,
        reason: Reason,
    ) -> Result<(), Reported> {
        let Some(object) = self.context.inputs.state.current(address).cloned() else {
            return Ok(());
        };
        let kept = self.kept(p, &object);
        if let Some(kept) = kept
            && self.spec.kind.compares_with_configuration()
        {
            return self.forget(p, address, &object, None, kept.reason(reason)).await;
        }
        let refreshed = self.refreshed(p, address, true).await?;
        let Some(Refreshed {
            now: stored,
            was,
            unread,
        }) = refreshed
        else {
            self.context.evaluator.remove_object(address);
            return Ok(());
        };
        if unread {
            self.note_unread(address, &stored.object);
        }
        if self.spec.kind.is_refresh_only() {
            // A refresh-only plan destroys nothing, so references see the refreshed object.
            self.context.evaluator.set_object(address, stored.marked(p.schema));
            return Ok(());
        }
        if let Some(kept) = kept {
            self.forget_stored(p, address, &stored, None, kept.reason(reason));
            return Ok(());
        }
        // As in Terraform, the plan shows the stored object, and its changes outside of Terraform separately as drift. A destroy plan shows
        // no drift, so it shows the refreshed object.
        let shown = if self.spec.kind.is_destroy() { &stored } else { &was };
        self.plan_delete(p, address, &stored, shown, None, reason).await?;
        self.note_lost_provisioners(p, address, &stored);
        // The change is added before the error, so that the plan shows what `prevent_destroy` forbids.
        self.check_prevent_destroy(p, address)?;
        let triggers = p.block.is_some_and(|block| !block.lifecycle.action_triggers.is_empty());
        if !(triggers && self.spec.kind.plans_actions()) {
            return Ok(());
        }
        let change = TriggeringChange {
            address,
            action: Action::Delete,
            before: &shown.marked(p.schema),
            after: &Value::null(p.schema.implied_type()),
            repetition: &Repetition::of_existing(&address.resource.key),
        };
        if self.spec.kind.is_destroy() {
            return self.plan_triggers(p, change).await;
        }
        self.plan_triggers_of_orphan(p, change).await;
        Ok(())
    }

    /// Records an object for a warning if its destroy-time provisioners cannot run because its block was removed.
    fn note_lost_provisioners(&self, p: &PlannedResource<'_>, address: &AbsResourceInstance, stored: &StoredObject) {
        let types = &stored.object.destroy_provisioners;
        // A tainted object runs no destroy-time provisioners, so it needs no warning.
        if p.block.is_some() || types.is_empty() || stored.is_tainted() {
            return;
        }
        let removed = self.spec.removals.of_resource(p.address);
        if removed.is_some_and(|removed| !removed.provisioners.is_empty()) {
            return;
        }
        let note = (address.clone(), types.join(", "));
        self.results().lost_provisioners.push(note);
    }

    /// Plans to destroy or forget a deposed object.
    pub(super) async fn delete_deposed(
        &self,
        p: &PlannedResource<'_>,
        address: &AbsResourceInstance,
        key: DeposedKey,
    ) -> Result<(), Reported> {
        let object: Option<Arc<Object>> = self
            .context
            .inputs
            .state
            .instance(address)
            .and_then(|i| i.deposed.get(&key))
            .cloned();
        let Some(object) = object else { return Ok(()) };
        if let Some(kept) = self.kept(p, &object)
            && !self.spec.kind.is_refresh_only()
        {
            return self
                .forget(p, address, &object, Some(key), kept.reason(Reason::None))
                .await;
        }
        let ty = &address.resource.resource.ty;
        let mut stored = upgrade(&*p.provider, p.schema, ty, &object, address)
            .await
            .map_err(|d| self.context.fail(d))?;
        let mut changed = false;
        if self.reads_deposed() {
            let answer = match self.answered_before(address, Some(&key)) {
                Some(answer) => answer,
                None => self
                    .read_object(p, address, Some(&key), &stored)
                    .await
                    .map_err(|d| self.context.fail(d))?,
            };
            self.note_read(address, false);
            self.context.report(located(answer.diagnostics, None, address))?;
            let read = answer.value;
            if read.object.is_null() {
                // The object was deleted outside of Terraform.
                self.prior().set_deposed(address, &p.provider_address, key, None);
                return Ok(());
            }
            let provider = &p.provider_address.provider;
            let when = "while reading the deposed object";
            self.context
                .report(read_problems(&read.object, p.schema, provider, when, address))?;
            self.check_identity(p, address, read.identity.as_ref(), true)?;
            let now = StoredObject {
                value: read.object,
                private: read.private,
                identity: read.identity,
                ..stored.clone()
            };
            changed = stored.value != now.value || learns_marks(&stored, &now, p.schema);
            stored = now;
        }
        // Apply takes the object from the prior state of the plan, where it must follow the current schema.
        if let Some(object) = self.refreshed_form(p, &stored, changed)? {
            let provider = self.recorded_provider(p, address);
            self.prior().set_deposed(address, &provider, key.clone(), Some(object));
        }
        if self.spec.kind.is_refresh_only() {
            return Ok(());
        }
        self.plan_delete(p, address, &stored, &stored, Some(key), Reason::None)
            .await
    }

    /// Returns the source of the decision that an object leaves the state without being destroyed; `None` if it is destroyed. A `removed`
    /// block is a newer decision than the setting of a removed resource block, which the state records, so it takes precedence.
    fn kept(&self, p: &PlannedResource<'_>, object: &Object) -> Option<Kept> {
        let removals = self.spec.removals;
        if p.keeps_objects() {
            return Some(Kept::ByConfiguration);
        }
        if p.block.is_none() {
            if removals.forgets(p.address) && self.spec.kind.compares_with_configuration() {
                return Some(Kept::ByConfiguration);
            }
            if removals.destroys(p.address) {
                return None;
            }
        }
        object.skip_destroy.then_some(Kept::ByState)
    }

    /// Plans to forget an object without refreshing it.
    async fn forget(
        &self,
        p: &PlannedResource<'_>,
        address: &AbsResourceInstance,
        object: &Arc<Object>,
        deposed: Option<DeposedKey>,
        reason: Reason,
    ) -> Result<(), Reported> {
        let ty = &address.resource.resource.ty;
        let stored = upgrade(&*p.provider, p.schema, ty, object, address)
            .await
            .map_err(|d| self.context.fail(d))?;
        self.forget_stored(p, address, &stored, deposed, reason);
        Ok(())
    }

    fn forget_stored(
        &self,
        p: &PlannedResource<'_>,
        address: &AbsResourceInstance,
        stored: &StoredObject,
        deposed: Option<DeposedKey>,
        reason: Reason,
    ) {
        self.add(
            ResourceChange {
                address: address.clone(),
                previous_address: None,
                deposed: deposed.map(|k| k.0),
                provider: p.provider_address.clone(),
                action: Action::Forget,
                reason,
                before: stored.marked(p.schema),
                after: Value::null(p.schema.implied_type()),
                replace_paths: Vec::new(),
                private: Vec::new(),
                importing: None,
                identity: None,
                config_known: true,
            },
            false,
            stored.object.dependencies.clone(),
        );
    }

    async fn plan_delete(
        &self,
        p: &PlannedResource<'_>,
        address: &AbsResourceInstance,
        stored: &StoredObject,
        shown: &StoredObject,
        deposed: Option<DeposedKey>,
        reason: Reason,
    ) -> Result<(), Reported> {
        let null = Value::null(p.schema.implied_type());
        let mut private = stored.private.clone();
        let mut planned_identity = None;
        let capabilities = self
            .context
            .providers
            .schemas()
            .providers
            .get(&p.provider_address.provider);
        // Only providers with this capability expect a plan whose proposed object is null.
        if capabilities.is_some_and(|s| s.capabilities.plan_destroy) {
            let ty = &address.resource.resource.ty;
            let answer = p
                .provider
                .plan(
                    ty,
                    PlanRequest {
                        prior: stored.value.clone(),
                        proposed: null.clone(),
                        config: null.clone(),
                        prior_private: private.clone(),
                        prior_identity: stored.identity.clone(),
                        planned_private: Vec::new(),
                        meta: self.context.provider_meta(address, &p.provider_address.provider)?,
                    },
                )
                .await
                .map_err(|d| self.context.fail(d))?;
            let written = p.block.map(|b| (&*b.body, p.schema));
            self.context.report(located(answer.diagnostics, written, address))?;
            if !answer.value.planned.is_null() {
                return Err(self.context.fail(planned_object(p, address)));
            }
            self.check_identity(p, address, answer.value.identity.as_ref(), true)?;
            private = answer.value.private;
            planned_identity = answer.value.identity;
        }
        // Set if the object was created with create_before_destroy, or if its resource is replaced in this order now. In both cases the
        // object is destroyed in the group *destroy last*.
        let create_before_destroy =
            stored.object.create_before_destroy || self.is_create_before_destroy(&address.config());
        self.add(
            ResourceChange {
                address: address.clone(),
                previous_address: None,
                deposed: deposed.map(|k| k.0),
                provider: p.provider_address.clone(),
                action: Action::Delete,
                reason,
                before: shown.marked(p.schema),
                after: null,
                replace_paths: Vec::new(),
                private,
                importing: None,
                identity: IdentityChange::new(shown.identity.clone(), planned_identity),
                config_known: true,
            },
            create_before_destroy,
            stored.object.dependencies.clone(),
        );
        Ok(())
    }
}

/// Builds the error for a provider that planned an object where null is required, because the object is to be destroyed.
fn planned_object(p: &PlannedResource<'_>, address: &AbsResourceInstance) -> Diagnostic {
    let detail = format!(
        "Provider \"{}\" planned an object for {address}, which is to be destroyed, where null is required. This is a bug in the \
         provider; please report it to its maintainers.",
        p.provider_address.provider
    );
    Diagnostic::error("Provider produced invalid plan", detail).about(address)
}

/// Source of the decision that an object leaves the state without being destroyed.
#[derive(Clone, Copy)]
enum Kept {
    ByConfiguration,
    ByState,
}

impl Kept {
    /// Returns the reason for the change. If the configuration has decided, the reason is `without`.
    fn reason(self, without: Reason) -> Reason {
        match self {
            Kept::ByConfiguration => without,
            Kept::ByState => Reason::ForgetBecauseState,
        }
    }
}
