//! The backend steps of `init`: comparing the configuration with the record, migrating states, and writing the record.

use std::time::Duration;

use config::Config;
use config::model::Backend;
use cty::Value;
use syntax::{Diagnostic, Diagnostics, SourceMap};

use super::current::of_saved;
use super::kind::{Kind, check_type};
use super::local::{Local, empty_with_backup, same_file};
use super::location::{Source, StateBackend};
use super::migrate::{CloudMigration, Migration, migrate};
use super::record::{CLOUD, Record, Saved};
use super::{select, settings};
use crate::session::read_source;
use crate::{Context, Tone};

/// Flags of `init` that concern the backend, and the migration into `cloud` workspaces.
pub struct BackendOptions<'a> {
    /// Values of `-backend-config`: files, or settings as NAME=VALUE.
    pub settings: &'a [String],
    /// `-reconfigure`.
    pub reconfigure: bool,
    /// `-migrate-state`.
    pub migrate: bool,
    /// `-force-copy`.
    pub force_copy: bool,
    /// True if questions can be asked (`-input`).
    pub input: bool,
    /// Timeout for the locks of both states; `None` for no locks.
    pub lock: Option<Duration>,
    /// Migration into the workspaces of a `cloud` block.
    pub cloud: &'a dyn CloudMigration,
}

pub struct Configured {
    /// Backend to use from now on.
    pub backend: StateBackend,
    /// Warnings to show at the end.
    pub warnings: Diagnostics,
}

impl Configured {
    /// Returns the backend, and moves the warnings into `warnings`.
    #[must_use]
    pub fn on_to(self, warnings: &mut Diagnostics) -> StateBackend {
        warnings.extend(self.warnings);
        self.backend
    }
}

/// Compares the configuration with the record, migrates states, and writes the record.
///
/// # Errors
/// The settings are invalid, or the user did not agree to the change. The record is then unchanged.
pub fn configure(
    context: &Context<'_>,
    options: &BackendOptions<'_>,
    config: &Config,
    sources: &mut SourceMap,
) -> Result<Configured, Diagnostics> {
    if let Some(problem) = check_type(context, config) {
        return Err(problem.into());
    }
    let mut record = Record::read(context.data_dir)?;
    let block = settings::block(Some(config));
    check_options(options, block.as_ref(), record.backend.as_ref())?;
    let change = Change {
        context,
        config,
        options,
        // With -reconfigure the record is ignored: nothing is compared with it, and no state is migrated from its backend.
        previous: record.backend.take().filter(|_| !options.reconfigure),
        migration: Migration {
            context,
            cloud: options.cloud,
            force: options.force_copy,
            input: options.input,
            lock: options.lock,
        },
    };
    let mut warnings = Diagnostics::new();
    let backend = match &block {
        Some(block) => change.to_block(record, block, sources)?,
        None => {
            if options.settings.iter().any(|o| !o.is_empty()) {
                warnings.push(missing_block());
            }
            change.to_none(&record)?
        }
    };
    warnings.extend(backend.take_warnings());
    if let StateBackend::Store(_) = &backend {
        select::existing(context, &backend, change.migration.input)?;
    }
    Ok(Configured { backend, warnings })
}

/// A change from the recorded backend to the configured one.
struct Change<'a> {
    context: &'a Context<'a>,
    config: &'a Config,
    options: &'a BackendOptions<'a>,
    previous: Option<Saved>,
    migration: Migration<'a>,
}

impl Change<'_> {
    /// Returns true if the user has agreed to the change by a flag.
    fn agreed(&self) -> bool {
        self.options.migrate || self.options.force_copy
    }

    /// Changes to the local backend, for a configuration without a block: migrates the states and empties the record.
    fn to_none(&self, record: &Record) -> Result<StateBackend, Diagnostics> {
        let context = self.context;
        let Some(previous) = &self.previous else {
            // With -reconfigure, the old record was ignored but may exist, so an empty one replaces it.
            if record.exists {
                record.write(context.data_dir)?;
            }
            return Ok(StateBackend::default());
        };
        if previous.ty == CLOUD {
            context.console.note(
                Tone::Plain,
                "Migrating from HCP Terraform or Terraform Enterprise to local state.",
            );
        } else if !self.agreed() {
            return Err(changed(self.context).into());
        }
        context.console.note(
            Tone::Plain,
            &format!(
                "The configuration has no {noun} any more; the last one was \"{}\".",
                previous.ty,
                noun = previous.noun()
            ),
        );
        migrate(&self.migration, &of_saved(context, previous)?, &StateBackend::default())?;
        record.write(context.data_dir)?;
        context.console.note(
            Tone::Success,
            &format!(
                "\n\nSuccessfully unset the {} \"{}\". {} will now operate locally.",
                previous.noun(),
                previous.ty,
                context.program.tool
            ),
        );
        Ok(StateBackend::default())
    }

    /// Connects to the backend of the configured block. If the block differs from the record, migrates the states and writes the record.
    fn to_block(
        &self,
        mut record: Record,
        block: &Backend,
        sources: &mut SourceMap,
    ) -> Result<StateBackend, Diagnostics> {
        let context = self.context;
        let data_dir = context.data_dir;
        let kind = Kind::of_block(context, self.config, block)?;
        let provider = kind.owner().map(|owner| owner.saved.clone());
        let schema = kind.schema();
        let in_block = settings::decode_block(block, &schema)?;
        let hash = kind.hash(&block.ty, &in_block);
        let merged = settings::with_overrides(&block.ty, &schema, in_block, self.options.settings, sources)?;
        let connect = |kind: Kind, config: Value| kind.configure(config, Some(&block.body));
        let previous = self.previous.as_ref().filter(|saved| saved.is_of(block));
        if let Some(saved) = previous {
            let recorded = saved.value(&schema)?;
            // The settings of an earlier command line stay in effect while the block is unchanged.
            if saved.hash == hash && self.options.settings.is_empty() {
                return connect(kind, recorded);
            }
            // The settings are the recorded ones, but may have moved between the command line and the block, so at most the hash is
            // updated.
            if recorded == merged && kind.change(saved).is_none() {
                let backend = connect(kind, recorded)?;
                if saved.hash != hash {
                    record.backend = Some(Saved { hash, ..saved.clone() });
                    record.write(data_dir)?;
                }
                return Ok(backend);
            }
        }
        let in_place = self.report_or_refuse(block)?;
        let asked = settings::asked(context.console, &schema, merged, self.migration.input)?;
        let backend = connect(kind, asked.clone())?;
        match &self.previous {
            // A change between `cloud` blocks migrates nothing: the states stay in their workspaces, even if the new block selects others.
            Some(_) if in_place => {}
            Some(saved) => {
                migrate(&self.migration, &of_saved(context, saved)?, &backend)?;
            }
            None => self.bring_local_states(&backend)?,
            // The record is written after the migration. If the migration fails or is refused, the old record remains, so that init can be
            // run again.
        }
        let saved = Saved {
            provider,
            ..Saved::new(&block.ty, &asked, &schema, hash)?
        };
        self.record(record, saved)?;
        Ok(backend)
    }

    /// Reports a change, or refuses it if the user has not agreed to it by a flag. Returns true if both backends are `cloud` blocks.
    fn report_or_refuse(&self, block: &Backend) -> Result<bool, Diagnostics> {
        let Some(previous) = &self.previous else {
            return Ok(false);
        };
        match (&*previous.ty, &*block.ty) {
            (CLOUD, CLOUD) => {
                self.context
                    .console
                    .note(Tone::Plain, "HCP Terraform configuration has changed.");
                return Ok(true);
            }
            (before, CLOUD) => self.context.console.note(
                Tone::Plain,
                &format!("Migrating from backend \"{before}\" to HCP Terraform."),
            ),
            (CLOUD, after) => self.context.console.note(
                Tone::Plain,
                &format!("Migrating from HCP Terraform to backend \"{after}\"."),
            ),
            _ if !self.agreed() => return Err(changed(self.context).into()),
            _ => self.report_change(block),
        }
        Ok(false)
    }

    fn report_change(&self, block: &Backend) {
        let (console, tool) = (self.context.console, self.context.program.tool);
        console.note(
            Tone::Titled,
            &format!(
                "Backend configuration changed!\n\nIts settings are not those of the last init. {tool} looks for states in both \
                 places.\n"
            ),
        );
        if let Some(saved) = self.previous.as_ref().filter(|saved| *saved.ty != *block.ty) {
            let text = format!(
                "{tool} detected that the backend type changed from \"{}\" to \"{}\".\n",
                saved.ty, block.ty
            );
            console.note(Tone::Plain, &text);
        }
    }

    /// Migrates the states in the default files of the local backend, which was in use before the first record.
    fn bring_local_states(&self, backend: &StateBackend) -> Result<(), Diagnostics> {
        let source = Local::default();
        let mut moved = Vec::new();
        let mut shares_files = false;
        for workspace in source.workspaces()? {
            let file = source.state(&workspace);
            if matches!(backend, StateBackend::Local(local) if same_file(&file, &local.state(&workspace))) {
                shares_files = true;
            } else if read_source(self.migration.context, &Source::File(file.clone()))?
                .is_some_and(|state| !state.is_empty())
            {
                moved.push(file);
            }
        }
        if moved.is_empty() || !migrate(&self.migration, &StateBackend::Local(source), backend)? {
            return Ok(());
        }
        if shares_files {
            // As in Terraform: if some states are not migrated, the old files are not emptied.
            return Ok(());
        }
        // The old files are emptied only after all states have been copied, because they have the only other copies.
        for file in moved {
            empty_with_backup(&file)?;
        }
        Ok(())
    }

    fn record(&self, mut record: Record, saved: Saved) -> Result<(), Diagnostics> {
        let context = self.context;
        let (noun, ty) = (saved.noun(), saved.ty.clone());
        record.backend = Some(saved);
        record.write(context.data_dir)?;
        // For HCP Terraform, the last message of `init` reports the success.
        if ty == CLOUD && noun == "backend" {
            return Ok(());
        }
        context.console.note(
            Tone::Success,
            &format!(
                "\nSuccessfully configured the {noun} \"{ty}\"! {} uses it from now on, until its configuration changes.",
                context.program.tool
            ),
        );
        Ok(())
    }
}

/// Refuses options that have no effect on a `cloud` block, or on a change to or from one.
fn check_options(
    options: &BackendOptions<'_>,
    block: Option<&Backend>,
    previous: Option<&Saved>,
) -> Result<(), Diagnostics> {
    let now = block.is_some_and(|block| *block.ty == *CLOUD);
    let before = previous.is_some_and(|saved| saved.ty == CLOUD);
    let refused = |option: &str, why: &str| {
        let detail = format!("The option {option} is for state backends, and has no meaning for HCP Terraform. {why}");
        Err(Diagnostic::error("Invalid command-line option", detail).into())
    };
    if now && options.settings.iter().any(|setting| !setting.is_empty()) {
        return refused("-backend-config", "Change the \"cloud\" block itself.");
    }
    if !now && !before {
        return Ok(());
    }
    if options.reconfigure {
        return refused("-reconfigure", "Init takes a changed \"cloud\" block as it is.");
    }
    if options.force_copy {
        return refused(
            "-force-copy",
            "Init asks what is to be done with the states in the other backend.",
        );
    }
    if options.migrate {
        return refused(
            "-migrate-state",
            "Init asks what is to be done with the states in the other backend.",
        );
    }
    Ok(())
}

fn changed(context: &Context<'_>) -> Diagnostic {
    let command = context.program.command;
    Diagnostic::error(
        "Backend configuration changed",
        format!(
            "The \"backend\" block differs from the one that the last init recorded.\n\nTo copy the states to the \
             new backend, run \"{command} init -migrate-state\". To use the new block and leave the states where \
             they are, run \"{command} init -reconfigure\"."
        ),
    )
}

fn missing_block() -> Diagnostic {
    Diagnostic::warning(
        "Missing backend configuration",
        "The option -backend-config adds to a \"backend\" block, and the configuration has none, so the option has no effect. To \
         choose where the state is, add a block:\n\nterraform {\n  backend \"local\" {}\n}",
    )
}
