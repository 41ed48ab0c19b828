//! Backends: the block of the configuration, the settings of `init -backend-config`, and the record that the last
//! `init` wrote about both.
//!
//! `init` records the backend in `.terraform/terraform.tfstate`, in Terraform's format. From then on the record
//! decides, since it also has the settings of the command line; after a change of the block, `init` must be run first,
//! which offers to migrate the state (`migrate`). A backend `local` in a directory that was never initialized needs no
//! record: the block has everything.
//!
//! The backend `local` is here ([`local`]); every other one is a state store, a plugin ([`store`]). [`Place`] is
//! either.

pub mod configure;
pub mod elsewhere;
pub mod local;
pub mod migrate;
mod owner;
mod process;
pub mod record;
pub mod select;
pub mod settings;
pub mod store;
pub mod third_party;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::Config;
use config::model::Backend;
use cty::Value;
use schema::Schema;
use syntax::ast::Body;
use syntax::{Diagnostic, Diagnostics, Range};

use crate::{Context, workspace};
pub use local::Local;
use owner::Owner;
use record::{Record, Saved};
use store::{Store, StorePlugin};

/// Backend type that represents a `cloud` block.
pub const CLOUD: &str = "cloud";

/// Place of the states of a configuration.
#[derive(Clone)]
pub enum Place {
    Local(Local),
    Store(Arc<Store>),
}

impl Place {
    /// Returns true if a workspace can be called `default`.
    #[must_use]
    pub fn has_default(&self) -> bool {
        match self {
            Place::Local(_) => true,
            Place::Store(store) => store.has_default(),
        }
    }
}

#[derive(Clone)]
pub enum Source {
    File(PathBuf),
    /// State of a workspace in a store.
    Workspace(Arc<Store>, String),
}

/// Place of one state: the backend, and the workspace that the state belongs to.
#[derive(Clone)]
pub struct StatePlace {
    pub place: Place,
    pub workspace: String,
}

impl StatePlace {
    /// Returns the place of the selected workspace's state; the default one without a configuration.
    ///
    /// # Errors
    /// The backend or the workspace cannot be determined.
    pub fn selected(context: &Context<'_>, config: Option<&Config>) -> Result<StatePlace, Diagnostics> {
        let workspace = workspace::selected(context)?;
        let place = current(context, config)?;
        Ok(StatePlace { place, workspace })
    }

    #[must_use]
    pub fn source(&self) -> Source {
        self.place.state(&self.workspace)
    }
}

impl Default for Place {
    fn default() -> Place {
        Place::Local(Local::default())
    }
}

impl Place {
    #[must_use]
    pub fn ty(&self) -> &str {
        match self {
            Place::Local(_) => "local",
            Place::Store(store) => store.ty(),
        }
    }

    /// Returns the place of a workspace's state.
    #[must_use]
    pub fn state(&self, workspace: &str) -> Source {
        match self {
            Place::Local(local) => Source::File(local.state(workspace)),
            Place::Store(store) => Source::Workspace(store.clone(), workspace.to_owned()),
        }
    }

    /// Takes the backend's warnings about its settings.
    #[must_use]
    pub fn take_warnings(&self) -> Diagnostics {
        match self {
            Place::Local(_) => Diagnostics::new(),
            Place::Store(store) => store.take_warnings(),
        }
    }

    /// Lists the workspaces, the default one first; `None` if the backend has one state only.
    ///
    /// # Errors
    /// The workspaces cannot be listed.
    pub fn workspaces(&self) -> Result<Option<Vec<String>>, Diagnostics> {
        match self {
            Place::Local(local) => Ok(Some(local.workspaces()?)),
            Place::Store(store) => store.workspaces(),
        }
    }
}

/// A backend type that is not configured yet.
enum Kind {
    Local,
    Store(StorePlugin),
}

/// Backend types of earlier Terraform versions.
const REMOVED: &[&str] = &["artifactory", "atlas", "azure", "etcd", "etcdv3", "manta", "swift"];

/// Checks that the type of the configuration's backend exists, without starting a plugin.
pub fn check_type(context: &Context<'_>, config: &Config) -> Option<Diagnostic> {
    let backend = config
        .root
        .module
        .backend
        .as_ref()
        .filter(|block| block.provider.is_none())?;
    let ty = &*backend.ty;
    let mut stores = context.builtin.iter();
    let exists = ty == "local" || ty != CLOUD && stores.any(|name| name == ty);
    (!exists).then(|| no_such_type(context.builtin, context.left_out, ty).at(&backend.type_range))
}

fn no_such_type(builtin: &[String], left_out: &[(&str, &str)], ty: &str) -> Diagnostic {
    let stores = builtin.iter().map(String::as_str);
    let mut known: Vec<&str> = stores.filter(|name| *name != CLOUD).collect();
    known.push("local");
    known.sort_unstable();
    let (summary, detail) = if ty == CLOUD {
        (
            "Unsupported backend type",
            "HCP Terraform is configured by a block of its own, \"cloud\", and not by a backend of that name."
                .to_owned(),
        )
    } else if REMOVED.contains(&ty) {
        (
            "Backend not supported",
            format!("The backend \"{ty}\" is not supported any more since Terraform 1.3."),
        )
    } else if let Some((_, feature)) = left_out.iter().find(|(name, _)| *name == ty) {
        (
            "Backend left out of this build",
            format!(
                "This executable was built without the backend \"{ty}\". Use a complete build, or one with the feature \
                 \"{feature}\"."
            ),
        )
    } else {
        let hint = syntax::content::did_you_mean(syntax::content::suggest(ty, known.iter().copied()));
        (
            "Unsupported backend type",
            format!(
                "There is no backend type named \"{ty}\". There are: {}.{hint}",
                known.join(", ")
            ),
        )
    };
    Diagnostic::error(summary, detail)
}

impl Kind {
    /// Finds the type of a block.
    fn of_block(context: &Context<'_>, config: &Config, block: &Backend) -> Result<Kind, Diagnostics> {
        match &block.provider {
            Some(provider) => third_party::of_block(context, config, block, provider).map(Kind::Store),
            None => Kind::find(context, &block.ty, Some(&block.type_range)),
        }
    }

    /// Finds the type of a record or a saved plan.
    fn of_saved(context: &Context<'_>, saved: &Saved) -> Result<Kind, Diagnostics> {
        match &saved.provider {
            Some(provider) => third_party::of_saved(context, saved, provider).map(Kind::Store),
            None => Kind::find(context, &saved.ty, None),
        }
    }

    /// Returns the third-party provider that serves the store.
    fn owner(&self) -> Option<&Owner> {
        match self {
            Kind::Local => None,
            Kind::Store(plugin) => plugin.owner(),
        }
    }

    /// Computes the hash of a block of this type with these settings.
    fn hash(&self, ty: &str, config: &Value) -> u32 {
        match self.owner() {
            Some(owner) => owner.hash(ty, config),
            None => settings::hash(ty, config),
        }
    }

    /// Describes the change of the third-party provider that serves the store.
    fn change(&self, saved: &Saved) -> Option<String> {
        self.owner()?.change(saved.provider.as_ref()?)
    }

    fn find(context: &Context<'_>, ty: &str, range: Option<&Range>) -> Result<Kind, Diagnostics> {
        if ty == "local" {
            return Ok(Kind::Local);
        }
        if context.builtin.iter().any(|name| name == ty) {
            return StorePlugin::start(context, ty).map(Kind::Store);
        }
        let mut problem = no_such_type(context.builtin, context.left_out, ty);
        Err(match range {
            Some(range) => problem.at(range),
            None => {
                problem.detail.push_str(&format!(
                    " The state of this working directory is in it, so it cannot be migrated. Migrate the state with a program \
                     that has this backend, or continue without it: \"{} init -reconfigure\".",
                    context.program.command
                ));
                problem
            }
        }
        .into())
    }

    fn schema(&self) -> Arc<Schema> {
        match self {
            Kind::Local => local::schema(),
            Kind::Store(plugin) => plugin.schema().clone(),
        }
    }

    /// Configures the backend. Problems are located in `body`, if the settings come from one.
    fn configure(self, config: Value, body: Option<&Body>) -> Result<Place, Diagnostics> {
        match self {
            Kind::Local => {
                let problems = local::problems(&config).into_iter();
                let parts = problems.map(|(name, problem)| (problem, cty::Path::root().attribute(name)));
                let problems = settings::located(parts, body, &local::schema());
                problems.into_result(Place::Local(Local::from_config(&config)))
            }
            Kind::Store(plugin) => plugin
                .configure(config, body)
                .map(|store| Place::Store(Arc::new(store))),
        }
    }
}

/// Returns the place of the states of this configuration, for every command but `init`.
///
/// # Errors
/// `init` must be run first, or the backend refuses its settings.
pub fn current(context: &Context<'_>, config: Option<&Config>) -> Result<Place, Diagnostics> {
    if let Some(problem) = config.and_then(|config| check_type(context, config)) {
        return Err(problem.into());
    }
    let block = settings::block(config);
    let record = Record::read(context.data_dir)?;
    let (Some(config), Some(block)) = (config, &block) else {
        // A directory without any configuration has lost it, or never had one: with a record, it must be initialized
        // first.
        return match record.backend {
            None => Ok(Place::default()),
            Some(saved) => {
                let reason = format!("Unsetting the previously set {} \"{}\"", saved.noun(), saved.ty);
                Err(needs_init(context, ',', &reason).into())
            }
        };
    };
    let kind = Kind::of_block(context, config, block);
    let Some(saved) = record.backend else {
        return first_use(context, block, kind?);
    };
    if !saved.is_of(block) {
        // An unknown backend type is reported first. A provider that must be installed is not, since init does that.
        if block.provider.is_none() {
            kind?;
        }
        return Err(other_type(context, block, &saved).into());
    }
    let kind = kind?;
    let schema = kind.schema();
    let config = settings::decode_block(block, &schema)?;
    let recorded = saved.value(&schema)?;
    let provider_change = kind.change(&saved);
    // A different hash alone is no change: the block may have been written differently, or the hash computed by another
    // program.
    if saved.hash != kind.hash(&block.ty, &config) && (recorded != config || provider_change.is_some()) {
        if *block.ty == *CLOUD {
            return Err(needs_cloud_init(context, "HCP Terraform configuration block has changed").into());
        }
        let reason = match (&block.provider, provider_change) {
            (_, Some(reason)) => reason,
            (Some(_), None) => format!("State store \"{}\" configuration changed", block.ty),
            (None, None) => return Err(needs_init(context, ':', "Backend configuration block has changed").into()),
        };
        return Err(needs_store_init(context, &reason).at(&block.range).into());
    }
    // The recorded settings are used, since they have those of the command line.
    kind.configure(recorded, Some(&block.body))
}

/// Configures a block that has no record yet. `init` records it, and moves existing states to it. Where the data
/// directory cannot be written, nothing can be recorded: there the backend is used as it is configured, unless there is
/// a state to move.
fn first_use(context: &Context<'_>, block: &Backend, kind: Kind) -> Result<Place, Diagnostics> {
    if block.provider.is_some() {
        let reason = format!("Initial configuration of a state store \"{}\"", block.ty);
        return Err(needs_store_init(context, &reason).at(&block.range).into());
    }
    if *block.ty == *CLOUD {
        return Err(needs_cloud_init(
            context,
            "Initial configuration of HCP Terraform or Terraform Enterprise",
        )
        .into());
    }
    // Without a record, states so far are where the local backend keeps them.
    let before = Local::default();
    let has_state = before.file().exists() || before.others().exists();
    let needs_record = has_state || can_be_made(context.data_dir);
    if !matches!(kind, Kind::Local) && needs_record {
        let reason = format!("Initial configuration of the requested backend \"{}\"", block.ty);
        return Err(needs_init(context, ',', &reason).into());
    }
    let config = settings::decode_block(block, &kind.schema())?;
    kind.configure(config, Some(&block.body))
}

/// Returns true if a directory exists and can be written, or can be created.
fn can_be_made(dir: &str) -> bool {
    let there = Path::new(dir).ancestors().find(|dir| dir.exists());
    let there = there.unwrap_or(Path::new("."));
    system::files::can_create_in(there)
}

/// Creates the error for a block of another type than the recorded one.
fn other_type(context: &Context<'_>, block: &Backend, saved: &Saved) -> Diagnostic {
    if block.provider.is_some() {
        let reason = format!(
            "Migrating from {} \"{}\" to state store \"{}\"",
            saved.noun(),
            saved.ty,
            block.ty
        );
        return needs_store_init(context, &reason).at(&block.range);
    }
    if *block.ty == *CLOUD {
        let reason = format!("Changed from {} \"{}\" to HCP Terraform", saved.noun(), saved.ty);
        return needs_cloud_init(context, &reason);
    }
    let reason = match (&*saved.ty, &saved.provider) {
        (CLOUD, None) => format!("Changed from HCP Terraform to backend \"{}\"", block.ty),
        (before, Some(_)) => format!("Migrating from state store \"{before}\" to backend \"{}\"", block.ty),
        (before, None) => format!("Backend type changed from \"{before}\" to \"{}\"", block.ty),
    };
    needs_init(context, ',', &reason)
}

/// Returns the place of the states according to the record, whatever the configuration says now.
///
/// # Errors
/// The record cannot be read, or names a backend that is not supported.
pub fn as_recorded(context: &Context<'_>) -> Result<Place, Diagnostics> {
    match Record::read(context.data_dir)?.backend {
        Some(saved) => of_saved(context, &saved),
        None => Ok(Place::default()),
    }
}

/// Configures the backend of a record or a saved plan.
///
/// # Errors
/// The backend is not supported, or refuses its settings.
pub fn of_saved(context: &Context<'_>, saved: &Saved) -> Result<Place, Diagnostics> {
    let kind = Kind::of_saved(context, saved)?;
    let config = saved.value(&kind.schema())?;
    kind.configure(config, None)
}

fn needs_cloud_init(context: &Context<'_>, reason: &str) -> Diagnostic {
    let command = context.program.command;
    Diagnostic::error(
        format!("HCP Terraform or Terraform Enterprise initialization required: please run \"{command} init\""),
        format!(
            "Reason: {reason}.\n\nThe \"cloud\" block says where the state is kept, and it does not agree with what the last init \
             wrote down. Run \"{command} init\", which asks about states that are elsewhere.\n\nNothing was changed."
        ),
    )
}

fn needs_store_init(context: &Context<'_>, reason: &str) -> Diagnostic {
    let command = context.program.command;
    Diagnostic::error(
        format!("State store initialization required, please run \"{command} init\""),
        format!(
            "Reason: {reason}\n\nThe \"state_store\" block says where the state is kept, and it does not agree with what the last \
             init wrote down. To go on with the block as it is, run \"{command} init\"; where there was another place before, with \
             -migrate-state, which brings the state along, or with -reconfigure, which leaves it where it is.\n\nNothing was \
             changed."
        ),
    )
}

fn needs_init(context: &Context<'_>, sign: char, reason: &str) -> Diagnostic {
    let command = context.program.command;
    Diagnostic::error(
        format!("Backend initialization required{sign} please run \"{command} init\""),
        format!(
            "Reason: {reason}\n\nThe \"backend\" block says where the state is kept, and it does not agree with what the last init \
             wrote down. To go on with the block as it is, run \"{command} init\" with -migrate-state, which brings the state \
             along, or with -reconfigure, which leaves it where it is.\n\nNothing was changed."
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backend_of_another_build_is_named_with_its_feature() {
        let builtin = ["http".to_owned(), "s3".to_owned()];
        let left_out = [("gcs", "cloud-stores")];
        let detail = |ty| no_such_type(&builtin, &left_out, ty).detail.clone();
        assert!(detail("gcs").contains("\"cloud-stores\""), "{}", detail("gcs"));
        assert!(detail("htp").contains("Did you mean \"http\"?"), "{}", detail("htp"));
    }
}
