//! Calls of provider functions in a module, and the selection of the provider process for each call.

use std::sync::Arc;

use addrs::Provider;
use cty::Value;
use lang::functions::CallError;
use lang::provider_function::Signature;
use lang::scope::ProviderCall;
use syntax::{Diagnostic, Diagnostics};

use super::ModuleScope;
use super::provider_instances::ProviderUse;
use crate::functions::{Configured, Functions, anything, configuration_called, malformed, split};
use crate::instance::located;
use crate::provider_opening::provider_config_value;

/// Provider process that answers the call of a function.
enum Answering {
    /// The process of the provider without configuration.
    Unconfigured,
    Configured(Arc<Configured>, Provider),
    /// No process: the provider configuration is not available before a plan, or it has failed and the failure has been reported. The
    /// result of the call is unknown.
    Nothing,
}

impl ModuleScope<'_> {
    /// Returns the signature of a provider function.
    pub(super) fn provider_function_signature(
        &self,
        functions: &Functions<'_>,
        local: &str,
        function: &str,
    ) -> Result<Arc<Signature>, CallError> {
        let (_, name) = split(function);
        match self.answering(functions, local, function)? {
            Answering::Nothing => Ok(Arc::new(anything())),
            Answering::Configured(process, provider) if !functions.is_in_schema(&provider, name) => {
                process.signature(&provider, name)
            }
            Answering::Configured(..) | Answering::Unconfigured => functions.signature(self.node, local, name),
        }
    }

    /// Calls a provider function with arguments that conform to its signature.
    pub(super) fn provider_function_result(
        &self,
        functions: &Functions<'_>,
        call: &ProviderCall<'_>,
    ) -> Result<Value, CallError> {
        let (_, name) = split(call.function);
        match self.answering(functions, call.provider, call.function)? {
            Answering::Nothing => Ok(Value::dynamic()),
            Answering::Unconfigured => functions.call(self.node, call.provider, name, call.arguments),
            Answering::Configured(process, provider) => {
                let in_schema = functions.is_in_schema(&provider, name);
                let signature = self.provider_function_signature(functions, call.provider, call.function)?;
                process.call(name, call.arguments, (&signature, in_schema))
            }
        }
    }

    fn answering(&self, functions: &Functions<'_>, local: &str, function: &str) -> Result<Answering, CallError> {
        let (alias, name) = split(function);
        if alias.is_some() && name.contains("::") {
            return Err(malformed(local, function));
        }
        let evaluator = self.evaluator;
        let in_schema = |provider: &Provider, name: &str| functions.is_in_schema(provider, name);
        let Some(called) = configuration_called(evaluator.config, self.node, (local, function), in_schema) else {
            return Ok(Answering::Unconfigured);
        };
        if evaluator.is_static() {
            return Ok(match functions.is_in_schema(&called.address.provider, name) {
                true => Answering::Unconfigured,
                false => Answering::Nothing,
            });
        }
        let about = format!("provider::{local}::{function}");
        let Ok(address) = evaluator.provider_used(&ProviderUse {
            module: &self.module,
            local: &called.local,
            reference: None,
            repetition: &self.repetition,
            about: &about,
        }) else {
            return Ok(Answering::Nothing);
        };
        match evaluator.has_provider_instance(&address) {
            Ok(true) => {}
            Err(_) => return Ok(Answering::Nothing),
            Ok(false) => {
                return Err(CallError::Unknown(Diagnostic::error(
                    "Provider instance not selected",
                    format!(
                        "The provider configuration {address} has for_each, and the call of a function cannot name one of its \
                         instances. Pass an instance to a module, and call the function there."
                    ),
                )));
            }
        }
        let schema = evaluator
            .schemas
            .and_then(|schemas| schemas.providers.get(&address.provider));
        let Some(schema) = schema else {
            return Ok(Answering::Unconfigured);
        };
        let value = || provider_config_value(evaluator, &schema.provider, &address).ok();
        let report = |answer: Result<_, Diagnostics>| {
            let block = evaluator.config.provider_block(&address);
            let written = block.map(|(_, block)| (&*block.body, &schema.provider));
            let problems = answer.map_or_else(|problems| problems, |found| located(found, written, &address));
            let opened = !problems.has_errors();
            evaluator.report(problems);
            opened
        };
        let configured = functions.configured(&address, value, report);
        Ok(configured.map_or(Answering::Nothing, |process| {
            Answering::Configured(process, address.provider.clone())
        }))
    }
}
