//! Planning of data sources: reads, or reads that are deferred to apply.

use std::cell::LazyCell;
use std::sync::Arc;
use std::time::Instant;

use addrs::{AbsResourceInstance, Referenceable};
use cty::{Marks, Path, Value};
use lang::refs::{references_in_body, references_in_expr};

use super::visit::PlanResults;
use super::{PlannedResource, Planner};
use crate::blocks::Block;
use crate::data_reads::{DataRead, ReadAnswer};
use crate::eval::checks::{Checked, Status};
use crate::eval::instance_conditions::ConfiguredInstance;
use crate::eval::{Repetition, Reported};
use crate::events::Event;
use crate::instance::{
    StoredObject, data_problems, decode, encode_data, identity, located, not_read_yet, nulls_for_unknowns, unanswered,
    with_marks, without_ephemeral_marks,
};
use crate::object_config;
use crate::plan::{Action, Reason, ResourceChange};

impl Planner<'_> {
    /// Reads a data source, or plans to read it during apply.
    pub(super) async fn data(
        &self,
        p: &PlannedResource<'_>,
        address: &AbsResourceInstance,
        repetition: Repetition,
    ) -> Result<(), Reported> {
        let Some(block) = p.block else { return Err(Reported) };
        let evaluator = self.context.evaluator;
        let severity = self.spec.kind.condition_severity();
        let instance = ConfiguredInstance {
            address,
            block,
            repetition: &repetition,
        };
        evaluator.check_preconditions(instance, severity)?;
        let scope = evaluator.instance_scope(instance)?;
        let (config, marks) = self.validated_data_config(p, address, block, &scope).await?;
        let wait = if !config.is_wholly_known() {
            Some(Reason::ReadBecauseConfigUnknown)
        } else if self.spec.kind.compares_with_configuration() && self.dependencies_pending(p) {
            Some(Reason::ReadBecauseDependencyPending)
        } else {
            None
        };
        if let Some(reason) = wait {
            return self.deferred_read(p, address, block, (&config, &marks), reason);
        }
        let nested = block.check.as_ref();
        // A check is about the present, so its data source is read even if a partial refresh leaves other data sources out.
        if nested.is_none()
            && let Some(stored) = self.unread_data(p, address, &config)
        {
            self.note_unread(address, &stored.object);
            let value = with_marks(stored.value, &marks, p.schema);
            evaluator.set_object(address, value.clone());
            return evaluator.check_postconditions(instance, Some(value), severity);
        }
        let read = self.read_data(p, address, &config, nested).await?;
        if let Some(check) = nested
            && self.spec.kind.compares_with_configuration()
        {
            // Apply reads the data source of a check again, so that the check is about the changed objects.
            let value = match &read {
                Some(value) => value.clone(),
                None => not_read_yet(p.schema, &config),
            };
            let after = with_marks(value, &marks, p.schema);
            self.add_read_of_check(p, address, after.clone());
            if read.is_none() {
                let object = encode_data(p.schema, &nulls_for_unknowns(&after)).map_err(|d| self.context.fail(d))?;
                self.prior()
                    .set_current(address, &p.provider_address, Some(Arc::new(object)));
                self.context.evaluator.set_object(address, after);
                self.results()
                    .unread_checks
                    .insert((address.module.clone(), check.clone()));
                return Ok(());
            }
        }
        let Some(value) = read else {
            self.context
                .evaluator
                .set_object(address, with_marks(not_read_yet(p.schema, &config), &marks, p.schema));
            return Ok(());
        };
        let value = with_marks(value, &marks, p.schema);
        self.set_result(p, address, &value)?;
        evaluator.check_postconditions(instance, Some(value), severity)
    }

    /// Stores the result of a read in the prior state, and sets it in the evaluator.
    fn set_result(
        &self,
        p: &PlannedResource<'_>,
        address: &AbsResourceInstance,
        value: &Value,
    ) -> Result<(), Reported> {
        let object = encode_data(p.schema, value).map_err(|d| self.context.fail(d))?;
        // If the result has not changed, the stored object stays in the state, so that nothing is written for it.
        let stored = self.context.inputs.state.current(address);
        if stored.is_none_or(|old| **old != object) {
            self.prior()
                .set_current(address, &p.provider_address, Some(Arc::new(object)));
        }
        self.context.evaluator.set_object(address, value.clone());
        Ok(())
    }

    /// Validates the configuration of a data source with the provider. Returns the configuration without marks, and its marks.
    async fn validated_data_config(
        &self,
        p: &PlannedResource<'_>,
        address: &AbsResourceInstance,
        block: &config::Resource,
        scope: &crate::eval::ModuleScope<'_>,
    ) -> Result<(Value, Vec<(Path, Marks)>), Reported> {
        let config = object_config::object_config(self.context.evaluator, address, &block.body, p.schema, scope)?;
        self.forbid_ephemeral(p, address, &config)?;
        let marks = without_ephemeral_marks(config.paths_with_marks());
        let (config, _) = config.unmark_deep();
        let ty = &address.resource.resource.ty;
        let written = Some((&*block.body, p.schema));
        let answer = p
            .provider
            .validate_data(ty, config.clone())
            .await
            .map_err(|d| self.context.fail(unanswered(d, written, address)))?;
        self.context.report(located(answer.diagnostics, written, address))?;
        Ok((config, marks))
    }

    /// Plans the read during apply of a data source that belongs to a check.
    fn add_read_of_check(&self, p: &PlannedResource<'_>, address: &AbsResourceInstance, after: Value) {
        self.add(
            ResourceChange {
                address: address.clone(),
                previous_address: None,
                deposed: None,
                provider: p.provider_address.clone(),
                action: Action::Read,
                reason: Reason::ReadBecauseCheckNested,
                before: Value::null(p.schema.implied_type()),
                after,
                replace_paths: Vec::new(),
                private: Vec::new(),
                importing: None,
                identity: None,
                config_known: true,
            },
            false,
            Arc::default(),
        );
    }

    /// Defers a read to apply. In plans whose apply does not read data sources, expressions refer to the stored result.
    fn deferred_read(
        &self,
        p: &PlannedResource<'_>,
        address: &AbsResourceInstance,
        block: &config::Resource,
        (config, marks): (&Value, &[(Path, Marks)]),
        reason: Reason,
    ) -> Result<(), Reported> {
        if !block.lifecycle.postconditions.is_empty() {
            self.context
                .evaluator
                .record(&Checked::Resource(address.clone()), &Status::Unknown);
        }
        if !self.spec.kind.compares_with_configuration() {
            // The apply of this plan does not read data sources, so expressions refer to the stored result.
            if let Some(stored) = self.stored_data(p, address) {
                self.context.evaluator.set_object(address, stored.marked(p.schema));
            }
            return Ok(());
        }
        let after = with_marks(not_read_yet(p.schema, config), marks, p.schema);
        self.context.evaluator.set_object(address, after.clone());
        // The plan shows a read with no prior object, because a result is not an update of the stored one.
        let before = Value::null(p.schema.implied_type());
        self.prior().set_current(address, &p.provider_address, None);
        self.add(
            ResourceChange {
                address: address.clone(),
                previous_address: None,
                deposed: None,
                provider: p.provider_address.clone(),
                action: Action::Read,
                reason,
                before,
                after,
                replace_paths: Vec::new(),
                private: Vec::new(),
                importing: None,
                identity: None,
                config_known: false,
            },
            false,
            Arc::default(),
        );
        Ok(())
    }

    /// Requests the result of a data source, or returns the result of an equal data source.
    async fn data_answer(
        &self,
        p: &PlannedResource<'_>,
        address: &AbsResourceInstance,
        config: &Value,
        check: Option<&Arc<str>>,
    ) -> Result<ReadAnswer, Reported> {
        let meta = self.context.provider_meta(address, &p.provider_address.provider)?;
        let ty = &address.resource.resource.ty;
        let read = || p.provider.read_data(ty, config.clone(), meta.clone());
        let answer = if check.is_none() && self.may_share_read(p, address).await {
            let data = DataRead {
                resource: p.address,
                provider: &p.provider_address,
                ty: p.schema.implied_type(),
                config,
                meta: meta.as_ref(),
                stored: self.stored_data(p, address).map(|stored| stored.value),
            };
            self.reading.data_reads.answer(self.context.blocks, data, read).await
        } else {
            read().await
        };
        self.keep_data(address, config, &answer);
        Ok(answer)
    }

    /// Reads a data source. If the data source of a check cannot be read, the check fails instead of the plan, and the result is `None`.
    async fn read_data(
        &self,
        p: &PlannedResource<'_>,
        address: &AbsResourceInstance,
        config: &Value,
        check: Option<&Arc<str>>,
    ) -> Result<Option<Value>, Reported> {
        let written = p.block.map(|block| (&*block.body, p.schema));
        let before = self.data_answered_before(address, config);
        let shown = before.is_none();
        let event = |event: Event| {
            if shown {
                self.context.inputs.events.event(event);
            }
        };
        event(Event::OperationStart {
            address: address.clone(),
            deposed: None,
            action: Action::Read,
            id: None,
        });
        let began = Instant::now();
        let answer = match before {
            Some(before) => before,
            None => self.data_answer(p, address, config, check).await?,
        };
        let (value, mut problems) = match answer {
            Ok(answer) => (Some(answer.value), located(answer.diagnostics, written, address)),
            Err(problems) => (None, unanswered(problems, written, address)),
        };
        if let Some(value) = &value
            && !problems.has_errors()
        {
            let provider = &p.provider_address.provider;
            problems.extend(data_problems(value, p.schema, provider, address));
        }
        let failed = problems.has_errors();
        if let Some(check) = check {
            let of = Checked::Check(address.module.clone(), check.clone());
            self.context.evaluator.report_of_check(&of, problems);
        } else {
            self.context.evaluator.report(problems);
        }
        let (address, elapsed) = (address.clone(), began.elapsed());
        let (deposed, action) = (None, Action::Read);
        match value.filter(|_| !failed) {
            Some(value) => {
                self.note_data_read(&address, config, p.schema);
                event(Event::OperationComplete {
                    address,
                    deposed,
                    action,
                    // Events are displayed, and the `id` attribute may be sensitive, so sensitive attributes are marked first.
                    id: identity(&schema::marking::mark_sensitive(&p.schema.block, value.clone())),
                    elapsed,
                });
                Ok(Some(value))
            }
            None => {
                event(Event::OperationFailed {
                    address,
                    deposed,
                    action,
                    elapsed,
                });
                if check.is_some() { Ok(None) } else { Err(Reported) }
            }
        }
    }

    /// Returns true if the data source may share the answer of an equal read, see [`crate::data_reads`].
    async fn may_share_read(&self, p: &PlannedResource<'_>, address: &AbsResourceInstance) -> bool {
        let config = self.context.inputs.config;
        let ordered = p.block.is_none_or(|block| !block.depends_on.is_empty())
            || std::iter::successors(Some(address.module.module()), |at| {
                at.parent().map(|(parent, _)| parent)
            })
            .any(|at| config.call(&at).is_some_and(|call| !call.depends_on.is_empty()));
        if ordered || self.context.providers.has_stand_in(&p.provider_address) {
            return false;
        }
        // If an override applies to this object, its provider is another one than that of its configuration.
        let usual = self.context.providers.get(&p.provider_address).await;
        usual.is_ok_and(|usual| Arc::ptr_eq(&usual, &p.provider))
    }

    /// Returns the result of a data source in the state, if it fits the schema.
    pub(super) fn stored_data(&self, p: &PlannedResource<'_>, address: &AbsResourceInstance) -> Option<StoredObject> {
        let stored = self.context.inputs.state.current(address)?;
        decode(p.schema, stored, address).ok()
    }

    /// Returns true if the read must wait for planned changes of managed resources.
    ///
    /// These are the resources in `depends_on`, of the block or of the calls of its module, and the resources that the block refers to.
    /// They count even if the referenced values are known, because the data source may read what the resources create. A data source in
    /// `depends_on` changes nothing, so it does not delay other reads. If the data source has preconditions or postconditions, all its
    /// direct and indirect dependencies count.
    fn dependencies_pending(&self, p: &PlannedResource<'_>) -> bool {
        let Some(block) = p.block else { return false };
        let results = self.results();
        if results.pending.is_empty() {
            return false;
        }
        let own = &p.address.module;
        // Conditions must be evaluated after all dependencies have changed, so any planned change of a dependency delays the read.
        let has_conditions = !(block.lifecycle.preconditions.is_empty() && block.lifecycle.postconditions.is_empty());
        if has_conditions
            && self
                .resources
                .dependencies
                .get(p.address)
                .into_iter()
                .flatten()
                .any(|d| results.pending.contains(d))
        {
            return true;
        }
        let (mut references, _) = references_in_body(&block.body, &p.schema.block);
        for expression in block.repetition() {
            references.extend(references_in_expr(expression).0);
        }
        references.retain(|r| match &r.subject {
            Referenceable::Resource(r)
            | Referenceable::ResourceInstance(addrs::ResourceInstance { resource: r, .. }) => {
                r.mode == addrs::Mode::Managed
            }
            _ => false,
        });
        let mut named: Vec<(addrs::Module, &Referenceable)> = block
            .depends_on
            .iter()
            .chain(&references)
            .map(|r| (own.clone(), &r.subject))
            .collect();
        // `depends_on` of a module call applies to all blocks of the module.
        let mut path = own.clone();
        while let Some((parent, _)) = path.parent() {
            if let Some(call) = self.context.inputs.config.call(&path) {
                named.extend(call.depends_on.iter().map(|r| (parent.clone(), &r.subject)));
            }
            path = parent;
        }
        named.iter().any(|(module, subject)| match subject {
            Referenceable::Resource(r)
            | Referenceable::ResourceInstance(addrs::ResourceInstance { resource: r, .. }) => {
                r.mode == addrs::Mode::Managed && results.pending.contains(&r.in_module(module))
            }
            Referenceable::ModuleOutput(n, _, output) => {
                self.made_from_pending(&results, Block::Output(module.child(n.clone()), output.clone()))
            }
            Referenceable::Module(n) | Referenceable::ModuleInstance(n, _) => {
                let below = module.child(n.clone());
                let mut pending = results
                    .pending
                    .iter()
                    .filter(|r| r.resource.mode == addrs::Mode::Managed);
                // As in Terraform, a reference to a module includes what the module depends on.
                let before = LazyCell::new(|| self.context.blocks.resources_before_module(&below));
                pending.any(|r| below.contains(&r.module) || before.contains(r))
            }
            // A local value or variable stands for the resources that it depends on.
            Referenceable::Local(name) => self.made_from_pending(&results, Block::Local(module.clone(), name.clone())),
            Referenceable::Variable(name) => {
                self.made_from_pending(&results, Block::Variable(module.clone(), name.clone()))
            }
            _ => false,
        })
    }

    /// Returns true if a block depends on a managed resource with planned changes.
    fn made_from_pending(&self, results: &PlanResults, block: Block) -> bool {
        let before = self.context.blocks.resources_before(&block);
        before
            .iter()
            .any(|r| r.resource.mode == addrs::Mode::Managed && results.pending.contains(r))
    }
}
