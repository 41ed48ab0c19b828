//! The backend of a command: from the configuration and the record of the last `init`.

use std::path::Path;

use config::Config;
use config::model::Backend;
use syntax::{Diagnostic, Diagnostics};

use super::kind::{Kind, check_type};
use super::local::Local;
use super::location::{StateBackend, StateLocation};
use super::record::{CLOUD, Record, Saved};
use super::settings;
use crate::{Context, workspace};

/// Returns the location of the selected workspace's state. Without a `backend` block, the state is in a local file.
///
/// # Errors
/// The backend or the workspace cannot be determined.
pub fn selected(context: &Context<'_>, config: Option<&Config>) -> Result<StateLocation, Diagnostics> {
    let workspace = workspace::selected(context)?;
    let backend = current(context, config)?;
    Ok(StateLocation { backend, workspace })
}

/// Returns the backend of this configuration, for every command except `init`.
///
/// # Errors
/// `init` must be run first, or the backend refuses its settings.
pub fn current(context: &Context<'_>, config: Option<&Config>) -> Result<StateBackend, Diagnostics> {
    if let Some(problem) = config.and_then(|config| check_type(context, config)) {
        return Err(problem.into());
    }
    let block = settings::block(config);
    let record = Record::read(context.data_dir)?;
    let (Some(config), Some(block)) = (config, &block) else {
        // Without a block, the local backend is used. If there is a record, the block or the whole configuration was removed since the last
        // `init`, which must be run again.
        return match record.backend {
            None => Ok(StateBackend::default()),
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
        // An unknown backend type is reported first. A provider that is not installed is not reported here, because `init` installs it.
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
    // A different hash alone does not count as a change: the settings may be the same in another form, or another program has computed the
    // hash.
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
    // The recorded settings are used, because they include those of the command line.
    kind.configure(recorded, Some(&block.body))
}

/// Configures a block that has no record yet. Only a block `local` needs no record. For any other backend, the result is an error that
/// demands `init`, which records the backend and migrates existing states. There is one exception: if the data directory cannot be written,
/// nothing can be recorded, so a `backend` block is used without a record if there is no state to migrate.
fn first_use(context: &Context<'_>, block: &Backend, kind: Kind) -> Result<StateBackend, Diagnostics> {
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
    // Without a record, the local backend with default settings was in use until now.
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

/// Returns the backend according to the record, whatever the configuration says now.
///
/// # Errors
/// The record cannot be read, or names a backend that is not supported.
pub fn as_recorded(context: &Context<'_>) -> Result<StateBackend, Diagnostics> {
    match Record::read(context.data_dir)?.backend {
        Some(saved) => of_saved(context, &saved),
        None => Ok(StateBackend::default()),
    }
}

/// Configures the backend of a record or a saved plan.
///
/// # Errors
/// The backend is not supported, or refuses its settings.
pub fn of_saved(context: &Context<'_>, saved: &Saved) -> Result<StateBackend, Diagnostics> {
    let kind = Kind::of_saved(context, saved)?;
    let config = saved.value(&kind.schema())?;
    kind.configure(config, None)
}

fn needs_cloud_init(context: &Context<'_>, reason: &str) -> Diagnostic {
    let command = context.program.command;
    Diagnostic::error(
        format!("HCP Terraform or Terraform Enterprise initialization required: please run \"{command} init\""),
        format!(
            "Reason: {reason}.\n\nThe \"cloud\" block, which sets the location of the state, differs from the record of the last \
             init. Run \"{command} init\", which asks about states in the other backend.\n\nNothing was changed."
        ),
    )
}

fn needs_store_init(context: &Context<'_>, reason: &str) -> Diagnostic {
    let command = context.program.command;
    Diagnostic::error(
        format!("State store initialization required, please run \"{command} init\""),
        format!(
            "Reason: {reason}\n\nThe \"state_store\" block, which sets the location of the state, differs from the record of the \
             last init. To use the block as it is, run \"{command} init\". If the state is in another place so far, add \
             -migrate-state to copy it, or -reconfigure to leave it where it is.\n\nNothing was \
             changed."
        ),
    )
}

fn needs_init(context: &Context<'_>, sign: char, reason: &str) -> Diagnostic {
    let command = context.program.command;
    Diagnostic::error(
        format!("Backend initialization required{sign} please run \"{command} init\""),
        format!(
            "Reason: {reason}\n\nThe \"backend\" block, which sets the location of the state, differs from the record of the last \
             init. To use the block as it is, run \"{command} init\" with -migrate-state to copy the state, or with -reconfigure to \
             leave it where it is.\n\nNothing was changed."
        ),
    )
}
