//! Reading a data source that had to wait for apply.

use std::sync::Arc;
use std::time::Instant;

use super::{Applier, ObjectOperation};
use crate::eval::Reported;
use crate::eval::checks::{Checked, ConditionKind};
use crate::events::Event;
use crate::instance::{
    data_problems, encode_data, identity, located, not_read_yet, nulls_for_unknowns, with_marks,
    without_ephemeral_marks,
};
use crate::object_config;
use crate::plan::Action;

impl Applier<'_> {
    /// Reads a data source.
    pub(super) async fn read(&self, s: &ObjectOperation<'_>) -> Result<(), Reported> {
        let block = self.inputs.config.resource(&s.address.config()).ok_or(Reported)?;
        let expansion = self
            .evaluator
            .resource_expansion(&s.address.module, &s.address.resource.resource)?;
        let repetition = expansion.repetition(&s.address.resource.key);
        let scope = self
            .evaluator
            .scope_with(&s.address.module, repetition.clone(), None)
            .ok_or(Reported)?;
        self.conditions(&block.lifecycle.preconditions, ConditionKind::Precondition, &scope, s)?;
        let config = object_config::object_config(self.evaluator, s.address, &block.body, s.schema, &scope)?;
        let marks = without_ephemeral_marks(config.paths_with_marks());
        let (config, _) = config.unmark_deep();
        let event = |event: Event| self.inputs.events.event(event);
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
            // Whatever goes wrong in a check must not stop anything else. The state has what was asked for.
            let asked = with_marks(not_read_yet(s.schema, &config), &marks, s.schema);
            let object = encode_data(s.schema, &nulls_for_unknowns(&asked)).map_err(|d| self.reported(d))?;
            self.update_current(s.change, Some(Arc::new(object)));
            self.unread_checks
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .insert((s.address.module.clone(), check.clone()));
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
        let object = encode_data(s.schema, &value).map_err(|d| self.reported(d))?;
        self.update_current(s.change, Some(Arc::new(object)));
        self.evaluator.set_object(s.address, value.clone());
        let scope = self
            .evaluator
            .scope_with(&s.address.module, repetition, Some(value))
            .ok_or(Reported)?;
        self.conditions(&block.lifecycle.postconditions, ConditionKind::Postcondition, &scope, s)
    }

    async fn read_checked(
        &self,
        s: &ObjectOperation<'_>,
        config: cty::Value,
        body: &syntax::ast::Body,
        check: Option<&Arc<str>>,
    ) -> Result<cty::Value, Reported> {
        let answer = s.provider.read_data(s.ty, config, None).await;
        let (value, mut problems) = match answer {
            Ok(answer) => (
                Some(answer.value),
                located(answer.diagnostics, Some((body, s.schema)), s.address),
            ),
            Err(problems) => (None, problems),
        };
        if let Some(value) = &value
            && !problems.has_errors()
        {
            let provider = &s.change.provider.provider;
            problems.extend(data_problems(value, s.schema, provider, s.address));
        }
        let failed = problems.has_errors();
        match check {
            Some(check) => {
                let of = Checked::Check(s.address.module.clone(), check.clone());
                self.evaluator.report_of_check(&of, problems);
            }
            None => self.evaluator.report(problems),
        }
        value.filter(|_| !failed).ok_or(Reported)
    }
}
