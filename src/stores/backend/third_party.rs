//! State stores of third parties: which provider has one, which program serves it, and what records and saved plans keep of that.

use std::path::Path;
use std::sync::Arc;

use config::Config;
use config::model::{Backend, StoreProvider};
use cty::Value;
use schema::Schema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};
use syntax::ast::Body;
use syntax::{Diagnostic, Diagnostics};
use versions::{Constraints, Version};

use super::process::Process;
use super::record::Saved;
use super::settings;
use super::store::{JOURNALS, StorePlugin};
use crate::Context;

/// How a provider comes to be here, as records call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SupplyMode {
    /// Its version is selected, by `init` and the lock file.
    ManagedByTerraform,
    /// It is a part of the language.
    BuiltIn,
    /// The CLI configuration says where it is developed.
    DevOverride,
    /// The user started it.
    Reattached,
}

impl SupplyMode {
    /// The warning about a provider whose version is not in the lock file.
    fn warning(self) -> Option<Diagnostic> {
        let (summary, what) = match self {
            SupplyMode::ManagedByTerraform => return None,
            SupplyMode::BuiltIn => ("State store is from a builtin provider", "is a part of this program"),
            SupplyMode::DevOverride => (
                "State store is from a developer override provider",
                "is taken from where dev_overrides of the CLI configuration say",
            ),
            SupplyMode::Reattached => (
                "State store provider is not managed by Terraform",
                "runs already, as TF_REATTACH_PROVIDERS says",
            ),
        };
        Some(Diagnostic::warning(
            summary,
            format!(
                "The provider of the state store {what}, so its version is not recorded. If another version of it keeps states in \
                 another way, init cannot tell."
            ),
        ))
    }
}

/// What records and saved plans have of the provider of a state store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavedProvider {
    /// Its version; `None` for providers without version selection (built-in, reattached, `dev_overrides`).
    pub version: Option<String>,
    pub source: String,
    pub config: Map<String, Json>,
    /// How it came to be here.
    pub supply_mode: SupplyMode,
}

impl SavedProvider {
    /// The part of a record that stands for a state store of this provider.
    #[must_use]
    pub fn record(&self, saved: &Saved) -> Json {
        json!({
            "type": saved.ty,
            "provider": {"version": self.version, "source": self.source, "config": self.config},
            "config": saved.config,
            "hash": saved.hash,
            "provider_supply_mode": self.supply_mode,
        })
    }

    /// What [`SavedProvider::record`] has written, or Terraform; nothing if something is missing.
    #[must_use]
    pub fn read_record(json: &Json) -> Option<Saved> {
        let object = |json: &Json| {
            json.get("config")
                .and_then(Json::as_object)
                .cloned()
                .unwrap_or_default()
        };
        let provider = json.get("provider")?;
        Some(Saved {
            ty: json.get("type")?.as_str()?.to_owned(),
            config: object(json),
            hash: u32::try_from(json.get("hash")?.as_u64()?).ok()?,
            provider: Some(SavedProvider {
                version: provider.get("version").and_then(Json::as_str).map(ToOwned::to_owned),
                source: provider.get("source")?.as_str()?.to_owned(),
                config: object(provider),
                supply_mode: serde_json::from_value(json.get("provider_supply_mode")?.clone()).ok()?,
            }),
        })
    }

    fn address(&self) -> Result<addrs::Provider, Diagnostics> {
        addrs::Provider::parse(&self.source).map_err(|e| {
            Diagnostic::error(
                "Cannot read the backend record",
                format!(
                    "The provider of the recorded state store is \"{}\". {}",
                    self.source, e.detail
                ),
            )
            .into()
        })
    }
}

/// The provider that has a store, with its configuration.
pub struct Owner {
    /// Its part of the backend record.
    pub saved: SavedProvider,
    name: Arc<str>,
    config: Value,
    schema: Arc<Schema>,
    body: Option<Arc<Body>>,
}

impl Owner {
    /// The number of a `state_store` block with this provider.
    #[must_use]
    pub fn hash(&self, ty: &str, config: &Value) -> u32 {
        let version = self.saved.version.as_deref().unwrap_or_default();
        settings::store_hash(ty, config, [&self.saved.source, version, &self.name], &self.config)
    }

    /// What is different from the recorded provider, in words.
    #[must_use]
    pub fn change(&self, before: &SavedProvider) -> Option<String> {
        let now = &self.saved;
        if before.source != now.source {
            return Some(format!(
                "State store provider changed from {} to {}",
                before.source, now.source
            ));
        }
        if before.supply_mode != now.supply_mode {
            return Some(format!(
                "The provider {} comes from another place than before",
                now.source
            ));
        }
        if before.version != now.version {
            let text = |version: &Option<String>| version.clone().unwrap_or_else(|| "none".to_owned());
            return Some(format!(
                "State store provider {} version changed from {} to {}",
                now.source,
                text(&before.version),
                text(&now.version)
            ));
        }
        let same = |(name, value): (&String, &Json)| before.config.get(name).unwrap_or(&Json::Null) == value;
        let all_same = now.config.iter().all(same);
        (!all_same).then(|| format!("State store provider {} configuration changed", now.source))
    }

    /// Configures the provider; what it warns of is added.
    ///
    /// # Errors
    /// It refuses the configuration.
    pub(super) fn configure(&self, process: &Process, warnings: &mut Diagnostics) -> Result<(), Diagnostics> {
        let mut missing = Diagnostics::new();
        for (name, attribute) in &self.schema.block.attributes {
            if attribute.required && self.config.get(name).is_none_or(Value::is_null) {
                let detail = format!(
                    "The provider \"{}\" of the state store needs the argument \"{name}\": write it in the \"provider\" block of \
                     the \"state_store\" block.",
                    self.name
                );
                missing.push(Diagnostic::error("Missing required argument", detail));
            }
        }
        let body = self.body.as_deref();
        let parts = missing.into_iter().map(|problem| (problem, cty::Path::default()));
        settings::located(parts, body, &self.schema).into_result(())?;
        let answer = process.wait(process.plugin().configure_provider(self.config.clone()))?;
        let parts = answer.diagnostics.into_iter().map(|p| (p.diagnostic, p.attribute));
        let problems = settings::located(parts, body, &self.schema);
        if problems.has_errors() {
            return Err(problems);
        }
        warnings.extend(problems);
        warnings.extend(self.saved.supply_mode.warning());
        Ok(())
    }
}

struct Started {
    process: Process,
    schema: Arc<Schema>,
    provider_schema: Arc<Schema>,
    version: Option<Version>,
    supply_mode: SupplyMode,
}

/// Starts the provider that has a store of this type.
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

/// The word of the block inside a `state_store` block is no argument of a store.
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
         of that name. This is a bug in the provider {}; its developers should be told.",
        provider.for_display()
    );
    Err(Diagnostic::error(summary, detail).into())
}

/// The store of a `state_store` block.
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

/// The store that a record or a saved plan has.
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
        // A working directory has one version of a provider: where another one has been selected since then, that is all there is.
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
