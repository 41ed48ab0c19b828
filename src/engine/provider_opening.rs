//! Opening of provider configurations: the block is evaluated, the provider validates the value, and a process is
//! configured with it.

use addrs::{AbsProviderConfig, InstanceKey, ModuleInstance};
use config::Config;
use cty::Value;
use schema::Schema;
use syntax::Diagnostic;

use crate::eval::{Evaluator, Expansion, Repetition, Reported};
use crate::instance::located;
use crate::object_config::object_config;
use crate::providers::Providers;

/// Returns the evaluated value of a provider configuration, without marks.
pub fn provider_config_value(
    evaluator: &Evaluator<'_>,
    schema: &Schema,
    address: &AbsProviderConfig,
) -> Result<Value, Reported> {
    let sources = evaluator.config().provider_configs();
    let block = address.block();
    let source = sources.iter().find(|s| s.address == block);
    let Some((source, block)) = source.and_then(|s| Some((s, s.block?))) else {
        return Ok(schema.block.empty_object());
    };
    // A module that contains provider blocks cannot have `count` or `for_each`, so it has one instance.
    let instance = source.node.path.0.iter().fold(ModuleInstance::root(), |m, name| {
        m.child(name.clone(), InstanceKey::None)
    });
    let repetition = match (evaluator.provider_expansion(address)?, &address.key) {
        (None, _) => Repetition::default(),
        (Some(expansion), Some(key)) => expansion.repetition(&InstanceKey::String(key.clone())),
        // In static evaluation, the block represents all instances.
        (Some(_), None) => Expansion::Unknown { counted: false }.repetition(&InstanceKey::None),
    };
    let scope = evaluator.scope_with(&instance, repetition, None).ok_or(Reported)?;
    let scope = scope.allowing_changed_files();
    let value = object_config(evaluator, address, &block.body, schema, &scope)?;
    Ok(value.unmark_deep().0)
}

/// Returns true if a provider configuration exists: it has a block, or it is a default configuration of the root
/// module, which does not require one.
#[must_use]
pub fn is_declared(config: &Config, address: &AbsProviderConfig) -> bool {
    (address.module.is_root() && address.alias.is_none())
        || config.provider_configs().iter().any(|s| s.address == address.block())
}

/// Evaluates a provider configuration, has the provider validate it, and configures a process with it. If the plugin source offers a
/// running provider in place of a process, only adopts that provider.
pub async fn open(
    evaluator: &Evaluator<'_>,
    providers: &Providers<'_>,
    address: &AbsProviderConfig,
) -> Result<(), Reported> {
    if providers.adopt(address).await {
        return Ok(());
    }
    let fail = |diagnostics| {
        evaluator.report(diagnostics);
        Reported
    };
    let Some(schema) = providers.schemas().providers.get(&address.provider) else {
        return Err(fail(
            Diagnostic::error(
                "Provider not available",
                format!("The provider {} was not started.", address.provider),
            )
            .into(),
        ));
    };
    let value = provider_config_value(evaluator, &schema.provider, address)?;
    if evaluator.lacks_files() && !value.is_wholly_known() {
        // A provider whose configuration lacks a value could connect to the wrong service, and report existing objects as missing.
        let detail = format!("The configuration of {address} depends on a file that does not exist.");
        return Err(fail(Diagnostic::error("Invalid provider configuration", detail).into()));
    }
    let sources = evaluator.config().provider_configs();
    let block = sources
        .iter()
        .find(|s| s.address == address.block())
        .and_then(|s| s.block);
    let written = block.map(|b| (&*b.body, &schema.provider));
    let validated = providers.validate_config(&address.provider, value.clone()).await;
    let answer = validated.map_err(fail)?;
    let mut problems = located(answer.diagnostics, written, address);
    // The provider reports missing arguments, but cannot know that the whole block is missing.
    if problems.has_errors() && block.is_none() && schema.provider.block.attributes.values().any(|a| a.required) {
        problems.push(
            Diagnostic::error(
                format!("Invalid provider configuration: {}", address.provider),
                "The provider has required arguments, and the root module has no provider block for it. Add one, with \
                 the arguments that the documentation of the provider names.",
            )
            .about(address),
        );
    }
    if problems.has_errors() {
        return Err(fail(problems));
    }
    evaluator.report(problems);
    let configured = providers.configure(address, value).await.map_err(fail)?;
    let problems = located(configured, written, address);
    let failed = problems.has_errors();
    evaluator.report(problems);
    if failed { Err(Reported) } else { Ok(()) }
}
