//! Actions of the configuration: their schemas, and the evaluation of their `config` blocks.

use addrs::{AbsActionInstance, AbsProviderConfig, ConfigAction, InstanceKey, ModuleInstance};
use config::{ActionKey, ActionRef, Config};
use cty::{Marks, Type, Value};
use lang::body::decode_body;
use lang::eval::{Context, evaluate_as};
use lang::scope::EvaluationError;
use provider::{Schemas, invalid_schema};
use schema::Schema;
use schema::marking::mark_sensitive;
use syntax::ast::{Body, Expr};
use syntax::content::{did_you_mean, suggest};
use syntax::{Diagnostic, Diagnostics, Range, Severity};

use crate::eval::provider_instances::ProviderUse;
use crate::eval::{Evaluator, Expansion, ModuleScope, Repetition};
use crate::instance::forbidden_ephemeral;

/// An action with its block, provider configuration and schema.
#[derive(Clone)]
pub(crate) struct ConfiguredAction<'a> {
    pub(crate) address: ConfigAction,
    pub(crate) block: &'a config::Action,
    pub(crate) provider: AbsProviderConfig,
    pub(crate) schema: &'a Schema,
}

/// Inputs for the evaluation of the `config` block of one instance of an action.
pub(crate) struct ActionCall<'c> {
    /// Instance of the action's module.
    pub(crate) module: &'c ModuleInstance,
    /// `count.index` and `each` of the action's instance.
    pub(crate) repetition: Repetition,
    /// Value of `caller`: the object whose change triggers the action. `None` if the action is invoked on its own.
    pub(crate) caller: Option<Value>,
    /// Name of the action in diagnostics: its address, followed by the object that triggers it if there is one.
    pub(crate) about: &'c str,
}

impl<'a> ConfiguredAction<'a> {
    /// Finds the action at this address. Fails if the configuration has no such action, or if the provider has no such action type.
    pub(crate) fn find(
        config: &'a Config,
        schemas: &'a Schemas,
        address: &ConfigAction,
    ) -> Result<ConfiguredAction<'a>, Diagnostics> {
        let (Some(block), Some(provider)) = (config.action(address), config.provider_for_action(address)) else {
            return Err(Diagnostic::error(
                "Action not in configuration",
                format!("The configuration has no {address}."),
            )
            .into());
        };
        let Some(schema) = schemas.action(&provider.provider, &block.address.ty) else {
            if let Some(reason) = schemas.action_problem(&provider.provider, &block.address.ty) {
                let invalid = invalid_schema(&provider.provider.for_display(), reason);
                return Err(invalid.at(&block.type_range).about(address).into());
            }
            let known = schemas.providers.get(&provider.provider).map(|p| p.actions.keys());
            let hint = suggest(&block.address.ty, known.into_iter().flatten().map(|k| &**k));
            return Err(Diagnostic::error(
                "Invalid action type",
                format!(
                    "The provider {} does not support the action \"{}\": its schema has none of that name.{}",
                    provider.provider.for_display(),
                    block.address.ty,
                    did_you_mean(hint)
                ),
            )
            .at(&block.type_range)
            .about(address)
            .into());
        };
        Ok(ConfiguredAction {
            address: address.clone(),
            block,
            provider,
            schema,
        })
    }

    /// Selects the instance of the provider configuration that an instance of the action uses.
    pub(crate) fn select_provider(
        &mut self,
        evaluator: &Evaluator<'_>,
        address: &AbsActionInstance,
        repetition: &Repetition,
    ) -> Result<(), EvaluationError> {
        let used = evaluator.provider_used(&ProviderUse {
            module: &address.module,
            local: &self.block.local_provider(),
            reference: self.block.provider_ref.as_ref(),
            repetition,
            about: address,
        });
        self.provider = used.map_err(|_| EvaluationError::Reported)?;
        Ok(())
    }

    /// Returns the body and the schema with which the attribute paths in a provider's diagnostics are resolved to source ranges.
    pub(crate) fn written<'w>(&'w self, body: &'w Body) -> Option<(&'w Body, &'w Schema)> {
        Some((body, self.schema))
    }

    /// Evaluates the `config` block of the action. Without the block, the value is null, or, if `complete` is set, that of an empty block,
    /// so that missing required arguments are reported. Deprecation marks are removed from the value, and returned as warnings.
    pub(crate) fn evaluate(
        &self,
        evaluator: &Evaluator<'_>,
        call: ActionCall<'_>,
        complete: bool,
    ) -> Result<(Value, Diagnostics), EvaluationError> {
        if self.block.config.is_none() && !complete {
            return Ok((Value::null(self.schema.implied_type()), Diagnostics::new()));
        }
        let body = self.block.config_body();
        let Some(scope) = evaluator.scope_with(call.module, call.repetition, None) else {
            return Err(EvaluationError::Reported);
        };
        let scope = match call.caller {
            Some(caller) => scope.called_by(caller),
            None => scope,
        };
        let (value, problems) = decode_body(&body, &self.schema.block, Context::new(&scope));
        let failed = problems.has_errors();
        let (value, warnings) = scope.without_deprecations(value, &body, &self.schema.block);
        let about = |d: Diagnostic| d.about(call.about);
        let mut all: Diagnostics = problems.into_iter().chain(warnings).map(about).collect();
        if failed {
            return Err(all.into());
        }
        all.extend(forbidden_ephemeral(&value, self.schema, &body, &call.about));
        if all.has_errors() {
            return Err(all.into());
        }
        Ok((value, all))
    }

    /// Prepares the configuration of an action for storage in a plan: ephemeral values become null, and values that the schema declares
    /// as sensitive are marked.
    pub(crate) fn to_plan(&self, config: &Value) -> Value {
        let stored = without_ephemeral(config);
        let marks = stored.paths_with_marks();
        let (plain, _) = stored.unmark_deep();
        mark_sensitive(&self.schema.block, plain).mark_paths(&marks)
    }

    /// Checks that the key of a reference fits the repetition argument of the action: a whole number for `count`, a string for
    /// `for_each`, no key without either argument.
    pub(crate) fn check_key(&self, key: &InstanceKey, range: &Range) -> Result<(), Diagnostic> {
        let address = &self.block.address;
        let (summary, detail) = match (&self.block.count, &self.block.for_each, key) {
            (Some(_), _, InstanceKey::Int(_))
            | (None, Some(_), InstanceKey::String(_))
            | (None, None, InstanceKey::None) => return Ok(()),
            (Some(_), _, InstanceKey::None) => (
                "Missing index",
                format!(
                    "{address} has the argument \"count\", so one of its instances must be chosen by a whole number."
                ),
            ),
            (None, Some(_), InstanceKey::None) => (
                "Missing index",
                format!("{address} has the argument \"for_each\", so one of its instances must be chosen by a string."),
            ),
            (Some(_), _, InstanceKey::String(_)) => (
                "Invalid index",
                format!(
                    "{address} has the argument \"count\": the keys of its instances are whole numbers, not strings."
                ),
            ),
            (None, Some(_), InstanceKey::Int(_)) => (
                "Invalid index",
                format!("{address} has the argument \"for_each\": the keys of its instances are strings, not numbers."),
            ),
            (None, None, _) => (
                "Invalid index",
                format!("{address} has neither \"count\" nor \"for_each\", so it has one instance, without a key."),
            ),
        };
        Err(Diagnostic::error(summary, detail).at(range))
    }

    /// Returns the repetition of the instance that a reference names. Fails if the action has no such instance.
    pub(crate) fn instance(
        &self,
        expansion: &Expansion,
        address: &AbsActionInstance,
        range: &Range,
    ) -> Result<Repetition, Diagnostic> {
        let key = &address.action.key;
        self.check_key(key, range)?;
        if !expansion.has(key) {
            return Err(Diagnostic::error(
                "Reference to non-existent action instance",
                format!("{} has no instance {address}.", self.address),
            )
            .at(range));
        }
        Ok(expansion.repetition(key))
    }
}

/// Returns the instance key of an action reference, evaluated for the resource instance with this repetition. Returns `None` if the key is
/// `count.index` or `each.key` and is not known yet, as in static evaluation.
pub(crate) fn key_of(reference: &ActionRef, repetition: &Repetition) -> Result<Option<InstanceKey>, Diagnostic> {
    let missing = |summary: &str, argument: &str| {
        Diagnostic::error(
            summary,
            format!("The resource that triggers the action has no argument \"{argument}\"."),
        )
        .at(&reference.key_range)
    };
    match &reference.key {
        ActionKey::Static(key) => Ok(Some(key.clone())),
        ActionKey::CountIndex => {
            let index = repetition
                .index
                .as_ref()
                .ok_or_else(|| missing("Reference to \"count\" in non-counted context", "count"))?;
            let number = index.as_number().and_then(cty::Number::to_i64);
            Ok(number.and_then(|n| u64::try_from(n).ok()).map(InstanceKey::Int))
        }
        ActionKey::EachKey => {
            let (key, _) = repetition
                .each
                .as_ref()
                .ok_or_else(|| missing("Reference to \"each\" in context without for_each", "for_each"))?;
            Ok(key.as_arc_str().cloned().map(InstanceKey::String))
        }
    }
}

/// Replaces ephemeral values by null.
pub(crate) fn without_ephemeral(value: &Value) -> Value {
    if !value.deep_marks().is_ephemeral() {
        return value.clone();
    }
    if value.marks().is_ephemeral() {
        return Value::null(value.ty().clone());
    }
    let (plain, marks) = value.clone().unmark();
    plain.map_parts(|_, part| without_ephemeral(part)).with_marks(marks)
}

pub(crate) fn has_ephemeral(value: &Value) -> bool {
    value.deep_marks().contains(Marks::EPHEMERAL)
}

/// Evaluates the condition of a trigger; `None` if the result is not known.
pub(crate) fn condition_holds(condition: &Expr, scope: &ModuleScope<'_>) -> Result<Option<bool>, Diagnostics> {
    let (value, problems) = evaluate_as(condition, &Type::Bool, Context::new(scope));
    if problems.has_errors() {
        return Err(problems);
    }
    let (value, _) = value.unmark_deep();
    if value.is_null() {
        return Err(Diagnostic::error(
            "Incorrect value type",
            "The condition of a trigger is null, where true or false is required.",
        )
        .at(condition.range())
        .into());
    }
    Ok(value.as_bool())
}

pub(crate) fn as_warning(diagnostic: Diagnostic) -> Diagnostic {
    let mut warning = diagnostic;
    warning.severity = Severity::Warning;
    warning
}
