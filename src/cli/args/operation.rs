//! Arguments of commands that plan, and the plan options that they select.

use std::sync::Arc;

use addrs::Program;
use engine::inputs::{PartialRefresh, PlanOptions, RefreshPart};
use engine::plan::Mode;

use crate::args::UsageError;
use crate::args::groups::{LockFlags, ModeFlags, OperationFlags, Parallelism, Refresh, StateFlags, TargetFlags};
use crate::last_reads::timestamp;
use crate::process::now;

/// Arguments of an operation that do not depend on the command.
#[derive(Debug, Default)]
pub struct OperationArguments {
    pub files: StateFlags,
    pub lock: LockFlags,
    /// True if missing variables may be prompted for.
    pub input: bool,
    pub parallelism: Parallelism,
}

impl OperationArguments {
    /// Returns the arguments of a command that plans.
    #[must_use]
    pub fn new(files: StateFlags, operation: &OperationFlags) -> OperationArguments {
        OperationArguments {
            files,
            lock: operation.lock,
            input: operation.input,
            parallelism: operation.parallelism.clone(),
        }
    }
}

/// Returns the plan options that flags select.
///
/// # Errors
/// Flags contradict each other, an address cannot be parsed, or a file of addresses cannot be read.
pub fn plan_options(flags: &ModeFlags, program: Program) -> Result<PlanOptions, UsageError> {
    if flags.destroy && flags.refresh_only {
        return Err(UsageError::new(
            "Incompatible plan mode options",
            "Use either -destroy or -refresh-only: each is a mode of its own.",
        ));
    }
    if flags.refresh_only && flags.refresh == Refresh::Nothing {
        return Err(UsageError::new(
            "Incompatible refresh options",
            format!(
                "With -refresh=false there is nothing that -refresh-only could do: {} would neither read objects nor change \
                 any. Use one of the two.",
                program.tool
            ),
        ));
    }
    let invoke = invoked(&flags.invoke)?;
    if invoke.is_some() {
        return invocation_options(flags, invoke);
    }
    let mode = match (flags.destroy, flags.refresh_only) {
        (true, _) => Mode::Destroy,
        (_, true) => Mode::RefreshOnly,
        _ => Mode::Normal,
    };
    let mut options = targeted(mode, &flags.refresh, &flags.targets)?;
    for text in &flags.replace {
        let invalid = |detail: String| UsageError::new(format!("Invalid force-replace address \"{text}\""), detail);
        let address = addrs::parse::resource_instance(text).map_err(|e| invalid(e.detail))?;
        if address.resource.resource.mode != addrs::Mode::Managed {
            return Err(invalid(
                "A data source is only read, so it cannot be replaced: -replace takes addresses of managed resources."
                    .into(),
            ));
        }
        options.force_replace.push(address);
    }
    if !options.force_replace.is_empty() && mode != Mode::Normal {
        return Err(UsageError::new(
            "Unsupported plan mode",
            "The -replace option has a meaning only in a plan that changes objects, without -destroy and -refresh-only.",
        ));
    }
    Ok(options)
}

/// Returns the action that `-invoke` names; `None` if the flag is not set.
fn invoked(texts: &[String]) -> Result<Option<addrs::AbsActionInstance>, UsageError> {
    let Some(text) = texts.first() else { return Ok(None) };
    if texts.len() > 1 {
        return Err(UsageError::new(
            "Invalid arguments",
            "Only one action can be invoked at a time: the option -invoke can be given once.",
        ));
    }
    match addrs::parse::action(text) {
        Ok(address) => Ok(Some(address)),
        Err(e) => Err(UsageError::new(format!("Invalid target \"{text}\""), e.detail)),
    }
}

/// Returns the options of a plan that invokes an action.
fn invocation_options(flags: &ModeFlags, invoke: Option<addrs::AbsActionInstance>) -> Result<PlanOptions, UsageError> {
    if flags.destroy {
        return Err(UsageError::new(
            "Incompatible plan options",
            "The option -invoke changes no objects, so it cannot be used together with -destroy.",
        ));
    }
    if !flags.replace.is_empty() {
        return Err(UsageError::new(
            "Unsupported plan mode",
            "The option -invoke changes no objects, so it cannot be used together with -replace.",
        ));
    }
    if matches!(flags.refresh, Refresh::Changed | Refresh::OlderThan(_)) {
        return Err(UsageError::new(
            "Incompatible plan options",
            "The option -invoke reads what the action refers to, so it cannot be used together with -refresh=changed or \
             -refresh=older-than.",
        ));
    }
    Ok(PlanOptions {
        invoke,
        // An action changes no objects, so its plan only refreshes.
        ..targeted(Mode::RefreshOnly, &flags.refresh, &flags.targets)?
    })
}

/// Returns the options of a plan, limited to the targets of flags.
///
/// # Errors
/// An address cannot be parsed, a file of addresses cannot be read, or the mode contradicts `-refresh`.
pub fn targeted(mode: Mode, refresh: &Refresh, flags: &TargetFlags) -> Result<PlanOptions, UsageError> {
    let targets = addresses(&flags.target, &flags.target_file, "target")?;
    let excludes = addresses(&flags.exclude, &flags.exclude_file, "exclude")?;
    if !targets.is_empty() && !excludes.is_empty() {
        return Err(UsageError::new(
            "Invalid combination of arguments",
            "The -target and -exclude options cannot be used together. Use -target to select objects, or -exclude to leave some out.",
        ));
    }
    Ok(PlanOptions {
        mode,
        refresh: *refresh != Refresh::Nothing,
        partial_refresh: partial_refresh(mode, refresh)?,
        targets,
        excludes,
        strict_addresses: flags.strict,
        ..PlanOptions::default()
    })
}

/// Returns the filter for `-refresh=changed` and `-refresh=older-than=…`; `None` if a plan reads all objects or none. The operation adds
/// the recorded times of earlier reads.
fn partial_refresh(mode: Mode, refresh: &Refresh) -> Result<Option<PartialRefresh>, UsageError> {
    let part = match refresh {
        Refresh::Everything | Refresh::Nothing => return Ok(None),
        Refresh::Changed => RefreshPart::Changed,
        Refresh::OlderThan(age) => {
            let since = jiff::SignedDuration::try_from(age.time)
                .ok()
                .and_then(|time| now().checked_sub(time).ok());
            RefreshPart::OlderThan {
                // The age may reach back before the first date that the calendar supports. Every read is newer than that, so no object is
                // read.
                since: since.map(timestamp).unwrap_or_default(),
                age: age.text.clone(),
            }
        }
    };
    let why = match (mode, &part) {
        (Mode::Destroy, _) => {
            "A destroy plan changes every object, so all are read: leave the option -refresh out, or use -refresh=false to read none."
        }
        (Mode::RefreshOnly, RefreshPart::Changed) => {
            "With -refresh-only, no configuration is compared with the objects, so nothing counts as changed: leave \
             -refresh=changed out, or use -refresh=older-than to read a part."
        }
        _ => {
            return Ok(Some(PartialRefresh {
                part,
                last_reads: Arc::default(),
            }));
        }
    };
    Err(UsageError::new("Incompatible refresh options", why))
}

/// Returns the addresses in a flag and in the files that a second flag names. A file has one address per line; `#` begins a comment.
fn addresses(texts: &[String], files: &[String], what: &str) -> Result<Vec<addrs::Target>, UsageError> {
    let parse = |text: &str, place: String| {
        addrs::parse::target(text)
            .map_err(|e| UsageError::new(format!("Invalid {what} \"{text}\""), format!("{place}{}", e.detail)))
    };
    let mut out = Vec::new();
    for text in texts {
        out.push(parse(text, String::new())?);
    }
    for path in files {
        let text = std::fs::read_to_string(path).map_err(|e| {
            UsageError::new(
                format!("Cannot read the {what}s"),
                format!("The file {path} cannot be read: {}.", files::io_reason(&e)),
            )
        })?;
        for (i, line) in text.lines().enumerate() {
            let address = line.trim();
            if !address.is_empty() && !address.starts_with('#') {
                out.push(parse(address, format!("In {path}, line {}: ", i + 1))?);
            }
        }
    }
    Ok(out)
}
