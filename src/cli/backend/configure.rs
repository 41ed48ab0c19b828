//! What `init` does about the backend: compares the configuration with the record, brings states along, and writes the record.

use std::time::Duration;

use config::Config;
use syntax::{Diagnostic, Diagnostics, SourceMap};

use super::migrate::{Migration, migrate};
use super::record::{Record, Saved};
use super::{Local, empty, empty_with_backup, in_block, settings};
use crate::program;
use crate::session::Session;

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
    /// `-input`.
    pub input: bool,
    /// How long to try for the locks of both states; `None` for no locks.
    pub lock: Option<Duration>,
}

/// What came of it.
pub struct Configured {
    /// Where states are from now on.
    pub local: Local,
    /// What is to be told at the end.
    pub warnings: Diagnostics,
}

impl Configured {
    /// Where states are, the warnings given away.
    #[must_use]
    pub fn on_to(self, warnings: &mut Diagnostics) -> Local {
        warnings.extend(self.warnings);
        self.local
    }
}

/// Compares, migrates, records.
///
/// # Errors
/// The settings are wrong, or the change was not agreed to. The record is as it was.
pub fn configure(
    session: &Session,
    options: &BackendOptions<'_>,
    config: &Config,
    sources: &mut SourceMap,
) -> Result<Configured, Diagnostics> {
    let data_dir = session.env.data_dir();
    let mut record = Record::read(data_dir)?;
    let previous = record.backend.take().filter(|_| !options.reconfigure);
    let block = in_block(Some(config))?;
    let mut warnings = Diagnostics::new();
    let overrides = options.settings;
    let migration = Migration {
        session,
        force: options.force_copy,
        input: options.input && session.env.input() && session.stream.is_none(),
        lock: options.lock,
    };
    let agreed = options.migrate || options.force_copy;
    let Some((local, _)) = block else {
        if overrides.iter().any(|o| !o.is_empty()) {
            warnings.push(missing_block());
        }
        let Some(previous) = previous else {
            // With -reconfigure there may be a record that counts no more.
            if record.exists {
                record.write(data_dir)?;
            }
            return Ok(Configured {
                local: Local::default(),
                warnings,
            });
        };
        if !agreed {
            return Err(changed().into());
        }
        note(
            session,
            &format!(
                "{} has detected you're unconfiguring your previously set \"{}\" backend.",
                program::tool(),
                previous.ty
            ),
        );
        let source = local_only(&previous)?;
        migrate(&migration, &source, &Local::default())?;
        record.write(data_dir)?;
        note(
            session,
            &session.ui.style().green(format!(
                "\n\nSuccessfully unset the backend \"{}\". {} will now operate locally.",
                previous.ty,
                program::tool()
            )),
        );
        return Ok(Configured {
            local: Local::default(),
            warnings,
        });
    };
    let hash = local.hash();
    let overridden = overrides.iter().any(|o| !o.is_empty());
    let local = apply_overrides(local, overrides, sources)?;
    let saved = Saved::new(&local, hash);
    match previous {
        // What came from the command line before holds as long as the block is the same.
        Some(previous) if previous.ty == "local" && previous.hash == hash && !overridden => {
            return Ok(Configured {
                local: local_only(&previous)?,
                warnings,
            });
        }
        Some(previous) if previous.local().as_ref() == Some(&local) => {
            if previous != saved {
                record.backend = Some(saved);
                record.write(data_dir)?;
            }
            return Ok(Configured { local, warnings });
        }
        Some(previous) => {
            if !agreed {
                return Err(changed().into());
            }
            note(
                session,
                &format!(
                    "Backend configuration changed!\n\n{tool} has detected that the configuration specified for the backend\nhas \
                     changed. {tool} will now check for existing state in the backends.\n",
                    tool = program::tool()
                ),
            );
            let source = local_only(&previous)?;
            migrate(&migration, &source, &local)?;
        }
        None => {
            // The first time, states come from where they are by default.
            let source = Local::default();
            if !same_place(&source, &local) && migrate(&migration, &source, &local)? {
                for workspace in source.workspaces().map_err(Diagnostics::from)? {
                    empty_with_backup(&source.state(&workspace))?;
                }
            }
        }
    }
    record.backend = Some(saved);
    record.write(data_dir)?;
    note(
        session,
        &session.ui.style().green(format!(
            "\nSuccessfully configured the backend \"local\"! {} will automatically\nuse this backend unless the backend \
             configuration changes.",
            program::tool()
        )),
    );
    Ok(Configured { local, warnings })
}

fn same_place(a: &Local, b: &Local) -> bool {
    let absolute = |local: &Local| std::path::absolute(local.file()).unwrap_or_else(|_| local.file());
    absolute(a) == absolute(b)
}

/// The settings of a recorded backend, of which only this type can be read here.
fn local_only(saved: &Saved) -> Result<Local, Diagnostics> {
    saved.local().ok_or_else(|| {
        Diagnostic::error(
            "Backend not supported",
            format!(
                "The state of this working directory was kept by the backend \"{}\", which is not supported by this version of \
                 Monoform, so it cannot be brought along. Move the state with the program that knows this backend, or use \
                 -reconfigure to go on without it.",
                saved.ty
            ),
        )
        .into()
    })
}

fn changed() -> Diagnostic {
    let command = program::command();
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

/// Adds what `-backend-config` says to the settings of a block, in the order of the command line.
fn apply_overrides(mut local: Local, overrides: &[String], sources: &mut SourceMap) -> Result<Local, Diagnostics> {
    for text in overrides.iter().filter(|text| !text.is_empty()) {
        let Some((name, value)) = text.split_once('=') else {
            file(text, &mut local, sources)?;
            continue;
        };
        let name = name.trim();
        let Some(place) = local.get_mut(name) else {
            return Err(Diagnostic::error(
                "Invalid backend configuration argument",
                format!(
                    "The option -backend-config sets \"{name}\", which the backend \"local\" does not have: its \
                     settings are \"path\" and \"workspace_dir\"."
                ),
            )
            .into());
        };
        if value.is_empty() {
            return Err(empty(name).into());
        }
        *place = Some(value.to_owned());
    }
    Ok(local)
}

fn file(path: &str, local: &mut Local, sources: &mut SourceMap) -> Result<(), Diagnostics> {
    let bytes = std::fs::read(path).map_err(|e| {
        Diagnostics::from(Diagnostic::error(
            "Failed to read file",
            format!("The file \"{path}\" could not be read: {}.", files::io_reason(&e)),
        ))
    })?;
    sources.insert(path, &*String::from_utf8_lossy(&bytes));
    let (body, mut problems) = syntax::parse_file(path, &bytes);
    problems.extend(settings(&body, local));
    problems.into_result(())
}

/// Says what goes on, to people or to a program.
fn note(session: &Session, text: &str) {
    match &session.stream {
        Some(stream) => stream.log(text.trim()),
        None => session.ui.line(text),
    }
}
