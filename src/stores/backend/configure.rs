//! What `init` does about the backend: compares the configuration with the record, brings states along, and writes the record.

use std::time::Duration;

use config::Config;
use config::model::Backend;
use cty::Value;
use syntax::{Diagnostic, Diagnostics, SourceMap};

use super::local::{empty_with_backup, same_place};
use super::migrate::{Migration, migrate};
use super::record::{Record, Saved};
use super::{CLOUD, Kind, Local, Place, Source, of_saved, select, settings};
use crate::session::read_source;
use crate::{Context, Tone};

/// What the flags of `init` say about the backend.
pub struct BackendOptions<'a> {
    /// `-backend-config`: files, or settings as NAME=VALUE.
    pub settings: &'a [String],
    /// `-reconfigure`.
    pub reconfigure: bool,
    /// `-migrate-state`.
    pub migrate: bool,
    /// `-force-copy`.
    pub force_copy: bool,
    /// Whether questions can be asked.
    pub input: bool,
    /// How long to try for the locks of both states; `None` for no locks.
    pub lock: Option<Duration>,
}

pub struct Configured {
    /// Where states are from now on.
    pub place: Place,
    /// What is to be told at the end.
    pub warnings: Diagnostics,
}

impl Configured {
    /// Where states are, the warnings given away.
    #[must_use]
    pub fn on_to(self, warnings: &mut Diagnostics) -> Place {
        warnings.extend(self.warnings);
        self.place
    }
}

/// Compares, migrates, records.
///
/// # Errors
/// The settings are wrong, or the change was not agreed to. The record is as it was.
pub fn configure(
    context: &Context<'_>,
    options: &BackendOptions<'_>,
    config: &Config,
    sources: &mut SourceMap,
) -> Result<Configured, Diagnostics> {
    if let Some(problem) = super::check_type(context, config) {
        return Err(problem.into());
    }
    let mut record = Record::read(context.data_dir)?;
    let block = settings::block(Some(config));
    check_options(options, block.as_ref(), record.backend.as_ref())?;
    let change = Change {
        context,
        config,
        options,
        previous: record.backend.take().filter(|_| !options.reconfigure),
        migration: Migration {
            context,
            force: options.force_copy,
            input: options.input,
            lock: options.lock,
        },
    };
    let mut warnings = Diagnostics::new();
    let place = match &block {
        Some(block) => change.to_block(record, block, sources)?,
        None => {
            if options.settings.iter().any(|o| !o.is_empty()) {
                warnings.push(missing_block());
            }
            change.to_none(&record)?
        }
    };
    warnings.extend(place.take_warnings());
    if let Place::Store(_) = &place {
        select::existing(context, &place, change.migration.input)?;
    }
    Ok(Configured { place, warnings })
}

/// From what the record says to what the configuration says.
struct Change<'a> {
    context: &'a Context<'a>,
    config: &'a Config,
    options: &'a BackendOptions<'a>,
    previous: Option<Saved>,
    migration: Migration<'a>,
}

impl Change<'_> {
    /// Whether a change of the backend was asked for.
    fn agreed(&self) -> bool {
        self.options.migrate || self.options.force_copy
    }

    /// To a configuration without a block.
    fn to_none(&self, record: &Record) -> Result<Place, Diagnostics> {
        let context = self.context;
        let Some(previous) = &self.previous else {
            // With -reconfigure there may be a record that counts no more.
            if record.exists {
                record.write(context.data_dir)?;
            }
            return Ok(Place::default());
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
        migrate(&self.migration, &of_saved(context, previous)?, &Place::default())?;
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
        Ok(Place::default())
    }

    /// To a configuration with a block.
    fn to_block(&self, mut record: Record, block: &Backend, sources: &mut SourceMap) -> Result<Place, Diagnostics> {
        let context = self.context;
        let data_dir = context.data_dir;
        let kind = Kind::of_block(context, self.config, block)?;
        let provider = kind.owner().map(|owner| owner.saved.clone());
        let schema = kind.schema();
        let in_block = settings::decode(&block.body, &schema)?;
        let hash = kind.hash(&block.ty, &in_block);
        let merged = settings::with_overrides(&block.ty, &schema, in_block, self.options.settings, sources)?;
        let connect = |kind: Kind, config: Value| kind.configure(config, Some(&block.body));
        let previous = self.previous.as_ref().filter(|saved| saved.is_of(block));
        if let Some(saved) = previous {
            let recorded = saved.value(&schema)?;
            // What came from the command line before holds as long as the block is the same.
            if saved.hash == hash && self.options.settings.is_empty() {
                return connect(kind, recorded);
            }
            if recorded == merged && kind.change(saved).is_none() {
                let place = connect(kind, recorded)?;
                if saved.hash != hash {
                    record.backend = Some(Saved { hash, ..saved.clone() });
                    record.write(data_dir)?;
                }
                return Ok(place);
            }
        }
        let in_place = self.tell_or_refuse(block)?;
        let asked = settings::asked(context.console, &schema, merged, self.migration.input)?;
        let place = connect(kind, asked.clone())?;
        match &self.previous {
            // The workspaces have their states, wherever the block leads now.
            Some(_) if in_place => {}
            Some(saved) => {
                migrate(&self.migration, &of_saved(context, saved)?, &place)?;
            }
            None => self.bring_local_states(&place)?,
        }
        let saved = Saved {
            provider,
            ..Saved::new(&block.ty, &asked, &schema, hash)?
        };
        self.record(record, saved)?;
        Ok(place)
    }

    /// Tells of a change, or refuses it where nobody has agreed to it; says whether it is one from a `cloud` block to another.
    fn tell_or_refuse(&self, block: &Backend) -> Result<bool, Diagnostics> {
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
            _ => self.tell_of_change(block),
        }
        Ok(false)
    }

    fn tell_of_change(&self, block: &Backend) {
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

    /// The first time, states come from where they are by default.
    fn bring_local_states(&self, place: &Place) -> Result<(), Diagnostics> {
        let source = Local::default();
        if matches!(place, Place::Local(local) if same_place(&source, local)) {
            return Ok(());
        }
        let mut moved = Vec::new();
        for workspace in source.workspaces()? {
            let file = source.state(&workspace);
            if read_source(&Source::File(file.clone()))?.is_some_and(|state| !state.is_empty()) {
                moved.push(file);
            }
        }
        if moved.is_empty() || !migrate(&self.migration, &Place::Local(source), place)? {
            return Ok(());
        }
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
        // What is said at the end of init says this, too.
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

/// Options that have no meaning where a `cloud` block is, or was.
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
            "Init asks what is to be done with states that are elsewhere.",
        );
    }
    if options.migrate {
        return refused(
            "-migrate-state",
            "Init asks what is to be done with states that are elsewhere.",
        );
    }
    Ok(())
}

fn changed(context: &Context<'_>) -> Diagnostic {
    let command = context.program.command;
    Diagnostic::error(
        "Backend configuration changed",
        format!(
            "The \"backend\" block says something else than what the last init recorded.\n\nTo bring the states \
             along, run \"{command} init -migrate-state\". To take the block as it is now and leave the states where \
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
