//! Reads data sources whose read was deferred to apply.

use std::sync::Arc;
use std::time::Instant;

use super::{Applier, ObjectOperation};
use crate::eval::Reported;
use crate::eval::checks::{Checked, FailureSeverity};
use crate::eval::instance_conditions::ConfiguredInstance;
use crate::events::Event;
use crate::instance::{
    data_problems, encode_data, identity, located, not_read_yet, nulls_for_unknowns, unanswered, with_marks,
    without_ephemeral_marks,
};
use crate::object_config;
use crate::plan::Action;

impl Applier<'_> {
    /// Reads a data source, and stores its result. If the data source of a check block cannot be read, its configuration is stored instead
    /// of a result, and the operation succeeds.
    pub(super) async fn read(&self, s: &ObjectOperation<'_>) -> Result<(), Reported> {
        let block = self
            .context
            .inputs
            .config
            .resource(&s.address.config())
            .ok_or(Reported)?;
        let evaluator = self.context.evaluator;
        let expansion = evaluator.resource_expansion(&s.address.module, &s.address.resource.resource)?;
        let instance = ConfiguredInstance {
            address: s.address,
            block,
            repetition: &expansion.repetition(&s.address.resource.key),
        };
        // Preconditions are checked before the read, because a precondition may be meant to prevent it.
        evaluator.check_preconditions(instance, FailureSeverity::Error)?;
        let scope = evaluator.instance_scope(instance)?;
        let config = object_config::object_config(evaluator, s.address, &block.body, s.schema, &scope)?;
        let marks = without_ephemeral_marks(config.paths_with_marks());
        let (config, _) = config.unmark_deep();
        let event = |event: Event| self.context.inputs.events.event(event);
        let action = Action::Read;
        event(Event::OperationStart {
            address: s.address.clone(),
            deposed: None,
            action,
            id: None,
        });
        let began = Instant::now();
        let read = self
            .read_checked(s, config.clone(), &block.body, block.check.as_ref())
            .await;
        let (address, elapsed) = (s.address.clone(), began.elapsed());
        let Ok(value) = read else {
            event(Event::OperationFailed {
                address,
                deposed: None,
                action,
                elapsed,
            });
            let Some(check) = &block.check else {
                return Err(Reported);
            };
            // A failure in a check does not fail the operation. The state records the configuration of the data source.
            let unread = with_marks(not_read_yet(s.schema, &config), &marks, s.schema);
            let object = encode_data(s.schema, &nulls_for_unknowns(&unread)).map_err(|d| self.context.fail(d))?;
            self.update_current(s.change, Some(Arc::new(object)));
            let unread = (s.address.module.clone(), check.clone());
            self.results.unread_checks().insert(unread);
            return Ok(());
        };
        let value = with_marks(value, &marks, s.schema);
        event(Event::OperationComplete {
            address,
            deposed: None,
            action,
            id: identity(&value),
            elapsed,
        });
        let object = encode_data(s.schema, &value).map_err(|d| self.context.fail(d))?;
        self.update_current(s.change, Some(Arc::new(object)));
        // Dependents are evaluated with this value, so it is set before the operation ends.
        evaluator.set_object(s.address, value.clone());
        evaluator.check_postconditions(instance, Some(value), FailureSeverity::Error)
    }

    async fn read_checked(
        &self,
        s: &ObjectOperation<'_>,
        config: cty::Value,
        body: &syntax::ast::Body,
        check: Option<&Arc<str>>,
    ) -> Result<cty::Value, Reported> {
        let meta = self.context.provider_meta(s.address, &s.change.provider.provider)?;
        let answer = s.provider.read_data(s.ty, config, meta).await;
        let (value, mut problems) = match answer {
            Ok(answer) => (
                Some(answer.value),
                located(answer.diagnostics, Some((body, s.schema)), s.address),
            ),
            Err(problems) => (None, unanswered(problems, Some((body, s.schema)), s.address)),
        };
        if let Some(value) = &value
            && !problems.has_errors()
        {
            let provider = &s.change.provider.provider;
            problems.extend(data_problems(value, s.schema, provider, s.address));
        }
        let failed = problems.has_errors();
        // If the data source of a check block cannot be read, the check fails, but not the apply.
        match check {
            Some(check) => {
                let of = Checked::Check(s.address.module.clone(), check.clone());
                self.context.evaluator.report_of_check(&of, problems);
            }
            None => self.context.evaluator.report(problems),
        }
        value.filter(|_| !failed).ok_or(Reported)
    }
}
