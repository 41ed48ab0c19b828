//! `state restore`: brings objects of an earlier state back into the state.

use std::collections::BTreeSet;

use addrs::AbsResourceInstance;
use state::State;
use stores::session::Backup;

use super::{edit, no_state};
use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::{LockFlags, StateFlags, VariableFlags};
use crate::commands::Command;
use crate::outcome::{Failure, Outcome};
use crate::session::Session;
use crate::state_session::{self, Closing as _};

pub const COMMAND: Command = Command {
    path: "state restore",
    about: "Bring back objects of an earlier state",
    positional: "ADDRESS...",
    details: "Replaces the resource instances at the given addresses by what the state had after a run: their objects as they were \
              recorded then; instances that there were not are removed. Only the state changes, and not the objects themselves: a \
              plan afterwards shows how these differ. For the backend pg with layout = \"objects\", which keeps the history.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    positional: Vec<String>,
    lock: LockFlags,
    run: Option<String>,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        VariableFlags::read(flags);
        Arguments {
            positional: flags.positional(),
            lock: LockFlags::read(flags),
            run: flags.value(
                "run",
                "RUN",
                "Required: the run after which the state had the objects. \"state history\" lists the runs.",
            ),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    let (Some(run), false) = (&arguments.run, arguments.positional.is_empty()) else {
        return Err(Failure::usage(
            "Required argument missing",
            "Give the number of a run with -run, and at least one address.",
        ));
    };
    let run = state_session::run_number(run)?;
    let addresses = &arguments.positional;
    let targets = addresses
        .iter()
        .map(|text| edit::address(text))
        .collect::<Result<Vec<_>, _>>()?;
    let (store, workspace) = state_session::with_history(session)?;
    let codec = session.stores().encryption.states()?;
    let earlier = store.state_at(&workspace, run, &codec)?;
    drop(store);
    let files = StateFlags::default();
    let mut opened = state_session::open_for_edit(session, &files, arguments.lock, "state-restore", Backup::None)?;
    let Some(mut state) = opened.state.take() else {
        return Err(opened.fail(no_state(session)));
    };
    let all = |state: &State| -> BTreeSet<AbsResourceInstance> {
        let instances = state.instances();
        instances
            .map(|(resource, _, key, _)| resource.instance(key.clone()))
            .collect()
    };
    let instances: BTreeSet<AbsResourceInstance> = all(&earlier).union(&all(&state)).cloned().collect();
    let mut outcome = Outcome::success();
    for (target, text) in targets.iter().zip(addresses) {
        let selected: Vec<_> = instances.iter().filter(|address| target.selects(address)).collect();
        if selected.is_empty() {
            let detail = format!("There is no {text} in the state, and there was none after the run {run}.");
            return opened.close(Err(Failure::new("Invalid target address", detail)));
        }
        for address in selected {
            let kept = earlier.resources.get(&address.containing_resource());
            let line = match (earlier.instance(address), kept) {
                (Some(instance), Some(kept)) => {
                    state.set_instance(address, &kept.provider, Some(instance.clone()));
                    format!("Restored {address}")
                }
                _ => {
                    state.remove_instance(address);
                    format!("Removed {address}, which the state did not have after the run {run}")
                }
            };
            outcome = outcome.and_line(line);
        }
    }
    let result = match opened.write(&state) {
        Ok(()) => {
            outcome.and_line("Only the state was changed. Run a plan to see how the objects themselves differ from it.")
        }
        Err(failure) => outcome.and_failure(failure),
    };
    opened.close(Ok(result))
}
