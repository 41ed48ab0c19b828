//! Plans an instance of a managed resource.

use provider::ObjectRead;
use std::collections::BTreeSet;
use std::sync::Arc;

use addrs::{AbsProviderConfig, AbsResourceInstance, ConfigResource, InstanceKey};
use cty::{Marks, Path, Value};
use schema::Schema;
use state::Object;
use syntax::Diagnostic;

use super::actions::TriggeringChange;
use super::{PlannedResource, Planner};
use crate::eval::instance_conditions::ConfiguredInstance;
use crate::eval::{ModuleScope, Repetition, Reported};
use crate::events::Refreshing;
use crate::identity::{is_current, is_recorded};
use crate::instance::{
    StoredObject, decode, encode, forbidden_ephemeral, identity, is_repeated, located, read_problems, unanswered,
    upgrade, with_marks, without_ephemeral_marks,
};
use crate::object_config;
use crate::plan::{Action, ImportedBy, Reason, ResourceChange};

/// A stored object and the refreshed one.
pub(super) struct Refreshed {
    /// The refreshed object.
    pub(super) now: StoredObject,
    /// The stored object, upgraded to the current version of its schema.
    pub(super) was: StoredObject,
    /// True if a partial refresh has left the object out.
    pub(super) unread: bool,
}

/// Returns true if the stored object lacks sensitive paths of its schema: an earlier release has written it, or the
/// schema has changed. Terraform plans an update for that.
pub(super) fn learns_marks(was: &StoredObject, now: &StoredObject, schema: &Schema) -> bool {
    if now.value.is_null() {
        return false;
    }
    let marked = now.marked(schema).paths_with_marks();
    if marked.is_empty() && was.marks.is_empty() {
        return false;
    }
    let recorded = was.value.clone().mark_paths(&was.marks).paths_with_marks();
    let paths = |marks: Vec<(Path, Marks)>| {
        marks
            .into_iter()
            .map(|(path, _)| path)
            .filter(|path| !is_repeated(schema, path))
            .map(|path| path.to_string())
            .collect::<BTreeSet<_>>()
    };
    paths(marked) != paths(recorded)
}

impl Planner<'_> {
    /// Plans a configured instance.
    pub(super) async fn managed(
        &self,
        p: &PlannedResource<'_>,
        address: &AbsResourceInstance,
        repetition: Repetition,
    ) -> Result<(), Reported> {
        if self.import_only(p, address).await? {
            return Ok(());
        }
        let refreshed = self.refreshed(p, address, false).await?;
        let unread = refreshed.as_ref().is_some_and(|refreshed| refreshed.unread);
        let mut stored = refreshed.map(|refreshed| refreshed.now);
        if self.spec.options.import.is_some() {
            // Nothing else is planned: the planned values of this object are not known now.
            let unknown = || Value::unknown(p.schema.implied_type());
            let value = stored.map_or_else(unknown, |stored| stored.marked(p.schema));
            self.context.evaluator.set_object(address, value);
            return Ok(());
        }
        let mut importing = None;
        self.import_missing(p, address, (&mut stored, &mut importing)).await?;
        let generated = match &stored {
            Some(stored) if importing.is_some() && self.spec.written.resource(p.address).is_none() => {
                Some(self.generate(p, address, stored).await?)
            }
            _ => None,
        };
        let with_generated = generated.as_ref().map(|block| p.with_block(block));
        let p = with_generated.as_ref().unwrap_or(p);
        let Some(block) = p.block else { return Err(Reported) };
        if stored.is_some() && importing.is_none() {
            self.record_dependencies_after_refresh(p, address, !unread);
        }
        if self.spec.kind.is_refresh_only() {
            self.conclude_unread(address, stored.as_ref().filter(|_| unread));
            return self.refreshed_only(p, address, block, repetition, stored.as_ref());
        }
        let evaluator = self.context.evaluator;
        let severity = self.spec.kind.condition_severity();
        let instance = ConfiguredInstance {
            address,
            block,
            repetition: &repetition,
        };
        evaluator.check_preconditions(instance, severity)?;
        let scope = evaluator.instance_scope(instance)?;
        let (config, marks) = self.validated_config(p, address, block, &scope).await?;
        let decision = self.decide(p, address, &repetition, stored.as_ref(), &config).await?;
        let decision = if unread && self.reads_changed(decision.action) {
            self.read_changed(p, address, (&mut stored, &mut importing)).await?;
            self.decide(p, address, &repetition, stored.as_ref(), &config).await?
        } else {
            self.conclude_unread(address, stored.as_ref().filter(|_| unread));
            decision
        };
        let config_known = config.is_wholly_known();
        let after = with_marks(decision.planned.clone(), &marks, p.schema);
        self.context.evaluator.set_object(address, after.clone());
        let change = ResourceChange {
            importing,
            config_known,
            ..decision.change(p, address, stored.as_ref(), after.clone())
        };
        let before = change.before.clone();
        let action = self.add_change(p, address, stored.as_ref(), change)?;
        evaluator.check_postconditions(instance, Some(after.clone()), severity)?;
        if block.lifecycle.action_triggers.is_empty() || !self.spec.kind.plans_actions() {
            return Ok(());
        }
        let change = TriggeringChange {
            address,
            action,
            before: &before,
            after: &after,
            repetition: &repetition,
        };
        self.plan_triggers(p, change).await
    }

    /// Refreshes an object that a partial refresh had left out, because the plan changes it. If it no longer exists, an
    /// `import` block may import it.
    async fn read_changed(
        &self,
        p: &PlannedResource<'_>,
        address: &AbsResourceInstance,
        (stored, importing): (&mut Option<StoredObject>, &mut Option<ImportedBy>),
    ) -> Result<(), Reported> {
        *stored = self.refreshed(p, address, true).await?.map(|refreshed| refreshed.now);
        if stored.is_some() {
            self.record_dependencies_after_refresh(p, address, true);
        }
        self.import_missing(p, address, (stored, importing)).await
    }

    /// Imports an object that is not in the state, if an `import` block names it.
    async fn import_missing(
        &self,
        p: &PlannedResource<'_>,
        address: &AbsResourceInstance,
        (stored, importing): (&mut Option<StoredObject>, &mut Option<ImportedBy>),
    ) -> Result<(), Reported> {
        if stored.is_none()
            && self.spec.kind.imports()
            && let Some(target) = self.import_target_of(p, address)?
        {
            let imported = self.import(p, address, target).await?;
            *stored = Some(imported.stored);
            *importing = Some(imported.by);
        }
        Ok(())
    }

    /// Adds the change of an object, and returns its action. An error means that `prevent_destroy` forbids the change,
    /// which is in the plan nevertheless.
    fn add_change(
        &self,
        p: &PlannedResource<'_>,
        address: &AbsResourceInstance,
        stored: Option<&StoredObject>,
        mut change: ResourceChange,
    ) -> Result<Action, Reported> {
        if change.action == Action::NoOp && change.before.paths_with_marks() != change.after.paths_with_marks() {
            // Only sensitivity changes, which apply must write to the state.
            change.action = Action::Update;
        }
        let state_dependencies = stored.map(|s| s.object.dependencies.clone()).unwrap_or_default();
        if change.action == Action::NoOp && change.importing.is_none() {
            // No operation follows that would record the dependencies of the configuration.
            self.record(p, address, p.dependencies.clone());
        }
        let action = change.action;
        self.add(change, action == Action::CreateThenDelete, state_dependencies);
        // The change stays in the plan, so that users see what prevent_destroy forbids.
        if action.is_replace() {
            self.check_prevent_destroy(p, address)?;
        }
        Ok(action)
    }

    /// Plans an instance in a refresh-only plan: sets the refreshed object in the evaluator and evaluates the
    /// conditions.
    fn refreshed_only(
        &self,
        p: &PlannedResource<'_>,
        address: &AbsResourceInstance,
        block: &config::Resource,
        repetition: Repetition,
        stored: Option<&StoredObject>,
    ) -> Result<(), Reported> {
        let value = match stored {
            Some(stored) => stored.marked(p.schema),
            None => Value::unknown(p.schema.implied_type()),
        };
        // In a collection, an instance that does not exist is left out; a single instance needs a value.
        if stored.is_some() || address.resource.key == InstanceKey::None {
            self.context.evaluator.set_object(address, value.clone());
        } else {
            self.context.evaluator.remove_object(address);
        }
        let evaluator = self.context.evaluator;
        let severity = self.spec.kind.condition_severity();
        let instance = ConfiguredInstance {
            address,
            block,
            repetition: &repetition,
        };
        evaluator.check_preconditions(instance, severity)?;
        evaluator.check_postconditions(instance, Some(value), severity)
    }

    /// Returns the configuration of an object, without marks, after the provider has validated it; and its marks.
    async fn validated_config(
        &self,
        p: &PlannedResource<'_>,
        address: &AbsResourceInstance,
        block: &config::Resource,
        scope: &ModuleScope<'_>,
    ) -> Result<(Value, Vec<(Path, Marks)>), Reported> {
        let config = object_config::object_config(self.context.evaluator, address, &block.body, p.schema, scope)?;
        self.forbid_ephemeral(p, address, &config)?;
        let marks = without_ephemeral_marks(config.paths_with_marks());
        // Providers are sent values only; the marks are put back on the result.
        let (config, _) = config.unmark_deep();
        let answer = p
            .provider
            .validate_resource(&address.resource.resource.ty, config.clone())
            .await;
        let written = Some((&*block.body, p.schema));
        let answer = answer.map_err(|d| self.context.fail(unanswered(d, written, address)))?;
        self.context.report(located(answer.diagnostics, written, address))?;
        Ok((config, marks))
    }

    /// Records the dependencies of a refreshed object: those of the configuration beside the recorded ones, which are
    /// in effect until the object is changed; and the lifecycle arguments that are in effect after the block is
    /// removed.
    fn record_dependencies_after_refresh(&self, p: &PlannedResource<'_>, address: &AbsResourceInstance, read: bool) {
        let recorded = self.prior().current(address).map(|o| o.dependencies.clone());
        let Some(recorded) = recorded else { return };
        if !(read && self.spec.options.refresh) || p.dependencies.iter().all(|d| recorded.contains(d)) {
            return self.record(p, address, recorded);
        }
        let mut both: Vec<_> = recorded.iter().chain(&*p.dependencies).cloned().collect();
        both.sort_by_cached_key(ToString::to_string);
        both.dedup();
        self.record(p, address, both.into());
    }

    /// Records the dependencies of an object, and the provider configuration that manages it.
    fn record(&self, p: &PlannedResource<'_>, address: &AbsResourceInstance, dependencies: Arc<[ConfigResource]>) {
        let mut prior = self.prior();
        let Some(object) = prior.current(address) else { return };
        let create_before_destroy = self.is_create_before_destroy(p.address);
        let skip_destroy = p.keeps_objects();
        let destroy_provisioners = p.block.map(config::Resource::destroy_provisioners).unwrap_or_default();
        let at = address.containing_resource();
        let managed_by = prior.resources.get(&at).map(|r| r.provider_of(&address.resource.key));
        if object.dependencies == dependencies
            && object.create_before_destroy == create_before_destroy
            && object.skip_destroy == skip_destroy
            && object.destroy_provisioners == destroy_provisioners
            && managed_by.as_ref() == Some(&p.provider_address)
        {
            // The object stays shared with the state, so that nothing is written.
            return;
        }
        let object = Object {
            dependencies,
            create_before_destroy,
            skip_destroy,
            destroy_provisioners,
            ..(**object).clone()
        };
        prior.set_current(address, &p.provider_address, Some(Arc::new(object)));
    }

    pub(super) fn forbid_ephemeral(
        &self,
        p: &PlannedResource<'_>,
        address: &AbsResourceInstance,
        config: &Value,
    ) -> Result<(), Reported> {
        let Some(block) = p.block else { return Ok(()) };
        self.context
            .report(forbidden_ephemeral(config, p.schema, &block.body, address))
    }

    /// Generates the block of an imported object.
    async fn generate(
        &self,
        p: &PlannedResource<'_>,
        address: &AbsResourceInstance,
        stored: &StoredObject,
    ) -> Result<config::Resource, Reported> {
        let like = p.block.ok_or(Reported)?;
        let ty = &address.resource.resource.ty;
        let config = self.generated_config(p, ty, p.schema, &stored.value, address).await?;
        let (text, block, problems) =
            super::generate::block(address, p.schema, like, p.provider_address.key.as_ref(), &config);
        self.results().generated.insert(address.clone(), text);
        self.context.report(problems)?;
        Ok(block)
    }

    /// Records an object that stays unread.
    fn conclude_unread(&self, address: &AbsResourceInstance, stored: Option<&StoredObject>) {
        if let Some(stored) = stored {
            self.note_unread(address, &stored.object);
        }
    }

    /// Returns the stored object of an instance before and after refresh, unless that is disabled for it. Records drift.
    /// `changes` is true if the object changes in any case.
    pub(super) async fn refreshed(
        &self,
        p: &PlannedResource<'_>,
        address: &AbsResourceInstance,
        changes: bool,
    ) -> Result<Option<Refreshed>, Reported> {
        let Some(object) = self.context.inputs.state.current(address).cloned() else {
            return Ok(None);
        };
        let ty = &address.resource.resource.ty;
        let state_only = self.is_state_only(p, ty);
        let current = object.schema_version == p.schema.version && is_current(p.schema, &object);
        // An object in the state alone, at the current schema version, needs no call of the provider to upgrade it.
        let as_it_stands = (state_only && current)
            .then(|| decode(p.schema, &object, address).ok())
            .flatten();
        let stored = match as_it_stands {
            Some(stored) => stored,
            None => upgrade(&*p.provider, p.schema, ty, &object, address)
                .await
                .map_err(|d| self.context.fail(d))?,
        };
        // An object in the state alone is up to date; a partial refresh has nothing to read or to leave out.
        let partly = self.is_partly_refreshed();
        if (partly && state_only) || !self.reads(address, &object, changes) {
            self.record_refreshed(p, address, &stored, None)?;
            return Ok(Some(Refreshed {
                now: stored.clone(),
                was: stored,
                unread: partly && !state_only,
            }));
        }
        let before = self.answered_before(address, None);
        let refreshing = before.is_none().then(|| {
            let id = identity(&stored.marked(p.schema));
            Refreshing::start(self.context.inputs.events, address, id)
        });
        let read = if state_only {
            ObjectRead {
                object: stored.value.clone(),
                private: stored.private.clone(),
                identity: stored.identity.clone(),
            }
        } else {
            let answer = match before {
                Some(answer) => answer,
                None => self
                    .read_object(p, address, None, &stored)
                    .await
                    .map_err(|d| self.context.fail(unanswered(d, None, address)))?,
            };
            self.context.report(located(answer.diagnostics, None, address))?;
            answer.value
        };
        let provider = &p.provider_address.provider;
        let when = "while reading the object";
        self.context
            .report(read_problems(&read.object, p.schema, provider, when, address))?;
        self.check_identity(p, address, read.identity.as_ref(), true)?;
        // The refresh is reported as ended here, because an invalid answer counts as a failed refresh.
        if let Some(refreshing) = refreshing {
            refreshing.complete();
        }
        self.note_read(address, true);
        let now = StoredObject {
            value: read.object,
            private: read.private,
            identity: read.identity,
            ..stored.clone()
        };
        self.record_refreshed(p, address, &now, Some(&stored))?;
        Ok((!now.value.is_null()).then_some(Refreshed {
            now,
            was: stored,
            unread: false,
        }))
    }

    /// Returns true if the provider announces that the objects of this type exist in the state alone, so that
    /// refreshing them has no effect.
    pub(super) fn is_state_only(&self, p: &PlannedResource<'_>, ty: &str) -> bool {
        let schemas = self.context.providers.schemas();
        let provider = schemas.providers.get(&p.provider_address.provider);
        provider.is_some_and(|s| s.state_only.contains(ty))
    }

    /// Records the refreshed object in the prior state, and drift against the stored one.
    fn record_refreshed(
        &self,
        p: &PlannedResource<'_>,
        address: &AbsResourceInstance,
        now: &StoredObject,
        was: Option<&StoredObject>,
    ) -> Result<(), Reported> {
        // A destroy plan shows no drift.
        let records_drift = !self.spec.kind.is_destroy();
        // A schema that marks more as sensitive is a reason to store the object, but no drift (Terraform 1.16).
        let drifted = was.is_some_and(|was| was.value != now.value);
        let changed = drifted || was.is_some_and(|was| learns_marks(was, now, p.schema));
        let previous_address = self.moved_from(address);
        // A move alone is shown as drift only in refresh-only plans: other plans show it with the change.
        let moved = self.spec.kind.is_refresh_only() && previous_address.is_some();
        if records_drift
            && (drifted || moved)
            && let Some(was) = was
        {
            let null = now.value.is_null();
            let change = ResourceChange {
                address: address.clone(),
                previous_address,
                deposed: None,
                provider: p.provider_address.clone(),
                action: match (drifted, null) {
                    (false, _) => Action::NoOp,
                    (true, true) => Action::Delete,
                    (true, false) => Action::Update,
                },
                reason: Reason::None,
                before: was.marked(p.schema),
                after: if null { now.value.clone() } else { now.marked(p.schema) },
                replace_paths: Vec::new(),
                private: Vec::new(),
                importing: None,
                identity: None,
                config_known: true,
            };
            self.results().drift.push(change);
        }
        if now.value.is_null() {
            self.prior().set_current(address, &p.provider_address, None);
            return Ok(());
        }
        if let Some(object) = self.refreshed_form(p, now, changed)? {
            let provider = self.recorded_provider(p, address);
            self.prior().set_current(address, &provider, Some(object));
        }
        Ok(())
    }

    /// Returns the provider configuration that the state records for an object.
    pub(super) fn recorded_provider(
        &self,
        p: &PlannedResource<'_>,
        address: &AbsResourceInstance,
    ) -> AbsProviderConfig {
        let resources = &self.context.inputs.state.resources;
        let recorded = resources.get(&address.containing_resource());
        recorded.map_or_else(|| p.provider_address.clone(), |r| r.provider_of(&address.resource.key))
    }

    /// Encodes a refreshed object; `None` if it has not changed. An unchanged object stays shared with the state, so
    /// that nothing is written for it.
    pub(super) fn refreshed_form(
        &self,
        p: &PlannedResource<'_>,
        now: &StoredObject,
        changed: bool,
    ) -> Result<Option<Arc<Object>>, Reported> {
        let same = !changed
            && now.private == now.object.private
            && now.object.schema_version == p.schema.version
            && is_recorded(p.schema, now.identity.as_ref(), &now.object)
            // An object in the flat form of old states is rewritten as JSON, even if nothing else has changed.
            && matches!(now.object.attributes, state::Attributes::Json(_));
        if same {
            return Ok(None);
        }
        let like = (*now.object).clone();
        let (value, private) = (now.marked(p.schema), now.private.clone());
        let object = encode(p.schema, &value, now.identity.as_ref(), private, like);
        object
            .map(|object| Some(Arc::new(object)))
            .map_err(|d| self.context.fail(d))
    }

    /// Reports an error if `prevent_destroy` forbids to destroy an instance.
    pub(super) fn check_prevent_destroy(
        &self,
        p: &PlannedResource<'_>,
        address: &AbsResourceInstance,
    ) -> Result<(), Reported> {
        let Some(block) = p.block else { return Ok(()) };
        if !block.lifecycle.may_prevent_destroy() || !self.spec.kind.enforces_prevent_destroy() {
            return Ok(());
        }
        let evaluator = &self.context.evaluator;
        let why = match &block.lifecycle.prevent_destroy_if {
            None if block.lifecycle.prevent_destroy == Some(true) => {
                "which its lifecycle argument prevent_destroy forbids. Remove the argument if the object may go, or leave"
            }
            None => return Ok(()),
            Some(expr) => match evaluator.prevents_destroy(&address.module, expr) {
                Some(Ok(Some(false))) => return Ok(()),
                Some(Ok(Some(true))) => {
                    "which its lifecycle argument prevent_destroy forbids. Change its value if the object may go, or leave"
                }
                Some(Ok(None)) => {
                    "and whether its lifecycle argument prevent_destroy forbids that is known only after apply. Leave"
                }
                Some(Err(Reported)) => return Err(Reported),
                // The values of a module instance that is not configured any more do not exist.
                None => {
                    "and its lifecycle argument prevent_destroy cannot be evaluated, because the configuration does not \
                     have its module instance any more. Remove the argument if the object may go, or leave"
                }
            },
        };
        let diagnostic = Diagnostic::error(
            "Instance cannot be destroyed",
            format!("The plan would destroy {address}, {why} the resource out of the plan with -exclude or -target."),
        )
        .at(&block.range)
        .about(address);
        Err(self.context.fail(diagnostic))
    }
}
