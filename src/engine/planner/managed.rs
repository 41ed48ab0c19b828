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

/// An object before and after its refresh.
pub(super) struct Refreshed {
    /// The refreshed object.
    pub(super) now: StoredObject,
    /// The object before the refresh, upgraded to the current version of its schema.
    pub(super) was: StoredObject,
    /// True if a partial refresh has skipped the object, so that `now` is the stored object.
    pub(super) unread: bool,
}

/// Returns true if the sensitive paths of the stored object differ from those of the refreshed object, which include the sensitive
/// attributes of the schema. An earlier release may have written the object, or the schema may have changed. Such an object is stored
/// again, which is not drift, as in Terraform.
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
    /// Plans an instance that is in the configuration.
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
            // A plan for the command `import` does not plan other objects, so the planned value of this one is unknown, unless it is in the
            // state.
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

    /// Refreshes an object that a partial refresh has skipped, because the plan turned out to change it. If it no longer exists, an
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

    /// Adds the change of an object, and returns its action. Fails if `prevent_destroy` forbids the change, but adds it nevertheless.
    fn add_change(
        &self,
        p: &PlannedResource<'_>,
        address: &AbsResourceInstance,
        stored: Option<&StoredObject>,
        mut change: ResourceChange,
    ) -> Result<Action, Reported> {
        if change.action == Action::NoOp && change.before.paths_with_marks() != change.after.paths_with_marks() {
            // Only the sensitivity of values has changed, and apply must write that to the state.
            change.action = Action::Update;
        }
        let state_dependencies = stored.map(|s| s.object.dependencies.clone()).unwrap_or_default();
        if change.action == Action::NoOp && change.importing.is_none() {
            // Apply does nothing with this object, so the dependencies of the configuration are recorded now.
            self.record(p, address, p.dependencies.clone());
        }
        let action = change.action;
        self.add(change, action == Action::CreateThenDelete, state_dependencies);
        // The change is added before the error, so that the plan shows what `prevent_destroy` forbids.
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
        // If an instance with a key has no object, it is left out of the collection. A resource without instance keys needs a value.
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

    /// Validates the configuration of an object with the provider. Returns the configuration without marks, and its marks.
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
        // Providers receive values without marks. The caller puts the marks back on the planned object.
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

    /// Records the dependencies of an object after its refresh. If the object was read, the dependencies of the configuration are added to
    /// the recorded ones, which remain until an apply changes the object. Also records the lifecycle arguments that matter after the block
    /// is removed.
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

    /// Records the dependencies and lifecycle arguments of an object, and the provider configuration that manages it.
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
            // The stored object stays in the state, so that nothing is written for it.
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

    /// Generates the resource block of an imported object.
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

    /// Adds the stored object, if there is one, to those that the plan has not read.
    fn conclude_unread(&self, address: &AbsResourceInstance, stored: Option<&StoredObject>) {
        if let Some(stored) = stored {
            self.note_unread(address, &stored.object);
        }
    }

    /// Refreshes the object of an instance, unless the options exclude it from the refresh, and records drift. Returns the object before
    /// and after, or `None` if the state has no object or the refresh found that it does not exist any more. `changes` is true if it is
    /// certain that the plan changes the object.
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
        // An object that exists only in the state and has the current schema version needs no upgrade call.
        let as_it_stands = (state_only && current)
            .then(|| decode(p.schema, &object, address).ok())
            .flatten();
        let stored = match as_it_stands {
            Some(stored) => stored,
            None => upgrade(&*p.provider, p.schema, ty, &object, address)
                .await
                .map_err(|d| self.context.fail(d))?,
        };
        // An object that exists only in the state is always up to date, so a partial refresh counts it neither as read nor as unread.
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
        // The refresh is reported as complete only after these checks, because an invalid answer is a failed refresh.
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

    /// Returns true if the provider declares that objects of this type exist only in the state, so that a refresh cannot change them.
    pub(super) fn is_state_only(&self, p: &PlannedResource<'_>, ty: &str) -> bool {
        let schemas = self.context.providers.schemas();
        let provider = schemas.providers.get(&p.provider_address.provider);
        provider.is_some_and(|s| s.state_only.contains(ty))
    }

    /// Records the refreshed object in the prior state. Differences from the stored object are recorded as drift.
    fn record_refreshed(
        &self,
        p: &PlannedResource<'_>,
        address: &AbsResourceInstance,
        now: &StoredObject,
        was: Option<&StoredObject>,
    ) -> Result<(), Reported> {
        // A destroy plan shows no drift.
        let records_drift = !self.spec.kind.is_destroy();
        // If the schema marks more values as sensitive than the state, the object is stored again, but that is not drift (as in Terraform
        // 1.16).
        let drifted = was.is_some_and(|was| was.value != now.value);
        let changed = drifted || was.is_some_and(|was| learns_marks(was, now, p.schema));
        let previous_address = self.moved_from(address);
        // Only refresh-only plans show a move as drift. Other plans show it with the change of the object.
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

    /// Returns the provider configuration that the state records for an object, or that of the resource if the state records none.
    pub(super) fn recorded_provider(
        &self,
        p: &PlannedResource<'_>,
        address: &AbsResourceInstance,
    ) -> AbsProviderConfig {
        let resources = &self.context.inputs.state.resources;
        let recorded = resources.get(&address.containing_resource());
        recorded.map_or_else(|| p.provider_address.clone(), |r| r.provider_of(&address.resource.key))
    }

    /// Encodes a refreshed object; `None` if it has not changed. The stored object then stays in the state, so that nothing is written for
    /// it.
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
            // An object in the flat form of old states is always encoded again, as JSON.
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

    /// Reports an error if `prevent_destroy` forbids the destruction of an instance.
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
                // The module instance is not configured any more, so the expression cannot be evaluated.
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
