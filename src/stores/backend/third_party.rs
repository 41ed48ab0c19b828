//! State stores of third-party providers: finding the provider and its executable, and the provider's part of records and saved plans.

use std::path::Path;
use std::sync::Arc;

use config::Config;
use config::model::{Backend, StoreProvider};
use schema::Schema;
use syntax::{Diagnostic, Diagnostics};
use versions::{Constraints, Version};

use super::owner::Owner;
use super::process::Process;
use super::record::{Saved, SavedProvider, SupplyMode};
use super::settings;
use super::store::{JOURNALS, StorePlugin};
use crate::Context;

struct Started {
    process: Process,
    schema: Arc<Schema>,
    provider_schema: Arc<Schema>,
    version: Option<Version>,
    supply_mode: SupplyMode,
}

/// Starts the provider of a store of this type.
fn start(
    context: &Context<'_>,
    ty: &str,
    provider: &addrs::Provider,
    constraints: Constraints,
) -> Result<Started, Diagnostics> {
    let runtime = context.plugins.runtime()?;
    let selected = context.plugins.select(provider, constraints, &runtime)?;
    let host = context.plugins.host()?;
    let work = async {
        let plugin = host.state_store_of(provider, selected.program, ty).await?;
        let asked = async { Ok::<_, Diagnostics>((plugin.schema().await?, plugin.provider_schema().await?)) }.await;
        match asked {
            Ok((schema, provider_schema)) => Ok((plugin, schema, provider_schema)),
            Err(problems) => {
                // The provider is running, so it is closed properly. Dropping the connection would kill it.
                plugin.close().await;
                Err(problems)
            }
        }
    };
    let (plugin, schema, provider_schema) = runtime.block_on(work)?;
    let process = Process::new(plugin, runtime);
    check_schema(&schema, provider)?;
    Ok(Started {
        process,
        schema,
        provider_schema,
        version: selected.version,
        supply_mode: selected.supply_mode,
    })
}

/// Checks that the store's schema has no argument with the name of the nested `provider` block.
fn check_schema(schema: &Schema, provider: &addrs::Provider) -> Result<(), Diagnostics> {
    let word = "provider";
    let summary = if schema.block.attributes.contains_key(word) {
        "Protected argument name \"provider\" in state store schema"
    } else if schema.block.blocks.contains_key(word) {
        "Protected block name \"provider\" in state store schema"
    } else {
        return Ok(());
    };
    let detail = format!(
        "In a \"state_store\" block, \"provider\" is the block of the store's provider, and no store can have an argument or block \
         of that name. This is a bug in the provider {}; report it to its developers.",
        provider.for_display()
    );
    Err(Diagnostic::error(summary, detail).into())
}

/// Starts the store of a `state_store` block.
///
/// # Errors
/// Its provider is not installed, does not start, or has no such store.
pub(super) fn of_block(
    context: &Context<'_>,
    config: &Config,
    block: &Backend,
    provider: &StoreProvider,
) -> Result<StorePlugin, Diagnostics> {
    let mut all = config.version_constraints()?;
    let constraints = all.remove(&provider.provider).unwrap_or_else(Constraints::any);
    let started = start(context, &block.ty, &provider.provider, constraints).map_err(|problems| {
        let placed = |problem: Diagnostic| match problem.subject {
            Some(_) => problem,
            None => problem.at(&block.range),
        };
        problems.into_iter().map(placed).collect::<Diagnostics>()
    })?;
    let value = settings::decode(&provider.body, &started.provider_schema)?;
    let config = Saved::new(&block.ty, &value, &started.provider_schema, 0)?.config;
    let owner = Owner {
        saved: SavedProvider {
            version: started.version.map(|v| v.to_string()),
            source: provider.provider.to_string(),
            config,
            supply_mode: started.supply_mode,
        },
        name: provider.name.clone(),
        config: value,
        schema: started.provider_schema,
        body: Some(provider.body.clone()),
    };
    Ok(finish(context, &block.ty, started.process, started.schema, owner))
}

/// Starts the store of a record or a saved plan.
///
/// # Errors
/// Its provider is not installed any more, does not start, or has no such store.
pub(super) fn of_saved(
    context: &Context<'_>,
    saved: &Saved,
    provider: &SavedProvider,
) -> Result<StorePlugin, Diagnostics> {
    let address = provider.address()?;
    let exact = provider
        .version
        .as_deref()
        .and_then(|version| Constraints::parse(version).ok());
    let attempt = match exact {
        // The recorded version is tried first. If another version has been selected since, that is the only one in the working directory.
        Some(exact) => start(context, &saved.ty, &address, exact)
            .or_else(|first| start(context, &saved.ty, &address, Constraints::any()).map_err(|_| first)),
        None => start(context, &saved.ty, &address, Constraints::any()),
    };
    let started = attempt.map_err(|mut problems| {
        for problem in &mut problems.0 {
            problem.detail.push_str(&format!(
                "\n\nThe state is in the store \"{}\" of this provider. It must be required by the configuration and installed for \
                 the state to be read. To go on without that state: \"{} init -reconfigure\".",
                saved.ty,
                context.program.command
            ));
        }
        problems
    })?;
    let recorded = Saved {
        config: provider.config.clone(),
        provider: None,
        ..saved.clone()
    };
    let owner = Owner {
        saved: provider.clone(),
        name: address.ty.clone(),
        config: recorded.value(&started.provider_schema)?,
        schema: started.provider_schema,
        body: None,
    };
    Ok(finish(context, &saved.ty, started.process, started.schema, owner))
}

fn finish(context: &Context<'_>, ty: &str, process: Process, schema: Arc<Schema>, owner: Owner) -> StorePlugin {
    let journals = Path::new(context.data_dir).join(JOURNALS);
    StorePlugin::new(ty, process, schema, journals, Some(owner))
}
