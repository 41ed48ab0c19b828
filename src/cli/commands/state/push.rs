//! `state push`: replaces the state by a state file.

use std::io::Read as _;

use state::State;
use stores::session::not_written;

use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::{LockFlags, VariableFlags, ignore_remote_version};
use crate::commands::Command;
use crate::core_version;
use crate::outcome::{Failure, Outcome};
use crate::session::Session;
use crate::state_session::{self, Closing as _};

pub const COMMAND: Command = Command {
    path: "state push",
    about: "Update remote state from a local state file",
    positional: "PATH",
    details: "Puts a state file in the place of the state of the selected workspace; \"-\" reads it from standard input. A state \
      that is older than the one there, or has nothing to do with it, is refused.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    lock: LockFlags,
    positional: Vec<String>,
    force: bool,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        flags.json_into();
        VariableFlags::read(flags);
        let lock = LockFlags::read(flags);
        let positional = flags.positional();
        let force = flags.switch(
            "force",
            false,
            "Write even if the lineages differ or the state there has a higher serial.",
        );
        ignore_remote_version(flags);
        Arguments {
            lock,
            positional,
            force,
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    let args = &arguments.positional;
    let [path] = args.as_slice() else {
        return Err(Failure::usage(
            "Required argument missing",
            "Give exactly one argument: the path of the state file to push, or \"-\" for standard input.",
        ));
    };
    push(session, arguments, path)
}

fn push(session: &Session, arguments: &Arguments, path: &str) -> Result<Outcome, Failure> {
    // The new state is read before the state is locked: standard input may take long.
    let new = source(session, path)?;
    let mut opened = state_session::open_for_push(session, arguments.lock, &new)?;
    let existing = opened.state.take();
    // Replacing an empty state loses nothing, so it is not checked.
    if !arguments.force
        && let Some(existing) = existing.as_ref().filter(|s| !s.is_empty())
        && let Some(refusal) = refusal(&new, existing)
    {
        let failure = Failure::new(
            format!("Failed to write state: {refusal}"),
            "The state there stays as it is. To replace it nevertheless, push with -force.",
        );
        return opened.close(Err(failure));
    }
    // As in Terraform, a state that replaces another one is a new snapshot, so it gets a new serial.
    let changed = existing.is_some_and(|existing| !existing.same_content(&new));
    let result = opened.write_snapshot(State {
        serial: new.serial.saturating_add(u64::from(changed)),
        terraform_version: core_version().to_owned(),
        ..new.clone()
    });
    opened.close(match result {
        Ok(()) => Ok(Outcome::success()),
        Err(e) => Err(not_written(&e).into()),
    })
}

fn source(session: &Session, path: &str) -> Result<State, Failure> {
    let text = if path == "-" {
        let mut text = Vec::new();
        std::io::stdin().lock().read_to_end(&mut text).map(|_| text)
    } else {
        std::fs::read(path)
    };
    let text = text.map_err(|e| {
        Failure::new(
            format!("Error reading source state \"{path}\""),
            format!("The state file cannot be read: {}.", ::files::io_reason(&e)),
        )
    })?;
    // A rescue file, which is written when a state cannot be stored, is encrypted like the state. Any other file is
    // plain text.
    let codec = match state::codec::is_sealed(&text) {
        true => session.state_codec()?,
        false => state::Codec::PLAIN,
    };
    match codec.decode(&text) {
        Ok(Some(decoded)) => Ok(decoded.state),
        Ok(None) => Err(Failure::new(
            format!("Error reading source state \"{path}\""),
            "There is no state in it: it is empty.",
        )),
        Err(e) => Err(Failure::new(
            format!("Error reading source state \"{path}\""),
            format!("{e}."),
        )),
    }
}

/// Returns the reason why a state must not replace another one, if there is one.
fn refusal(new: &State, existing: &State) -> Option<String> {
    // Scripts distinguish these refusals by Terraform's wording.
    if new.lineage != existing.lineage {
        Some(format!(
            "cannot import state with lineage \"{}\" over unrelated state with lineage \"{}\"",
            new.lineage, existing.lineage
        ))
    } else if new.serial < existing.serial {
        Some(format!(
            "cannot import state with serial {} over newer state with serial {}",
            new.serial, existing.serial
        ))
    // Two states of the same serial and lineage are branches of one history: neither is the newer one.
    } else if new.serial == existing.serial && !new.same_content(existing) {
        Some(format!(
            "cannot overwrite existing state with serial {} with a different state that has the same serial",
            new.serial
        ))
    } else {
        None
    }
}
