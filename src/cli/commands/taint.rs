//! `taint` and `untaint`: marks an object for replacement, or removes the mark.

use std::sync::Arc;

use addrs::{AbsResourceInstance, Mode};
use state::{Object, ObjectStatus, State};
use stores::session::Backup;
use syntax::Diagnostic;

use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::{LockFlags, StateFlags, VariableFlags, ignore_remote_version};
use crate::commands::Command;
use crate::commands::state::nearest;
use crate::outcome::{Failure, Outcome};
use crate::session::Session;
use crate::state_session::{self, Closing as _};

pub const TAINT: Command = Command {
    path: "taint",
    about: "Mark a resource instance as not fully functional",
    positional: "ADDRESS",
    details: "Marks the object of a resource instance as tainted, so that the next plan replaces it. \"plan -replace=ADDRESS\" does \
      the same for one plan, without changing the state first.",
    declare: flags::declare::<TaintArguments>,
    refused: &[],
    run: |session, matches| {
        run(
            session,
            &flags::read::<TaintArguments>(matches).0,
            ObjectStatus::Tainted,
        )
    },
};

pub const UNTAINT: Command = Command {
    path: "untaint",
    about: "Remove the 'tainted' state from a resource instance",
    positional: "ADDRESS",
    details: "Takes the mark off the object of a resource instance, so that it is not replaced.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches), ObjectStatus::Ready),
};

struct Arguments {
    lock: LockFlags,
    state: StateFlags,
    positional: Vec<String>,
    allow_missing: bool,
}

/// Arguments of `taint`. Unlike `untaint`, it accepts variables.
struct TaintArguments(Arguments);

impl FromFlags for TaintArguments {
    fn read(flags: &mut Flags<'_>) -> TaintArguments {
        VariableFlags::read(flags);
        TaintArguments(Arguments::read(flags))
    }
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        flags.json_into();
        let out = Arguments {
            lock: LockFlags::read(flags),
            state: StateFlags::read(flags),
            positional: flags.positional(),
            allow_missing: flags.switch(
                "allow-missing",
                false,
                "Succeed even if there is no such resource instance.",
            ),
        };
        ignore_remote_version(flags);
        out
    }
}

fn run(session: &Session, arguments: &Arguments, wanted: ObjectStatus) -> Result<Outcome, Failure> {
    let name = if wanted == ObjectStatus::Tainted {
        "taint"
    } else {
        "untaint"
    };
    let args = &arguments.positional;
    let [text] = args.as_slice() else {
        return Err(Failure::usage(
            if args.is_empty() {
                "Required argument missing"
            } else {
                "Too many command line arguments"
            },
            format!("The {name} command takes one argument: the address of a resource instance."),
        ));
    };
    let address = match addrs::parse::resource_instance(text) {
        Ok(address) => address,
        Err(e) => return Err(Failure::new(e.summary, e.detail)),
    };
    if wanted == ObjectStatus::Tainted && address.resource.resource.mode != Mode::Managed {
        return Err(Failure::new(
            format!("Resource instance {address} cannot be tainted"),
            "Only managed resources can be replaced, and this is not one.",
        ));
    }
    mark(session, arguments, name, &address, wanted)
}

fn mark(
    session: &Session,
    arguments: &Arguments,
    name: &str,
    address: &AbsResourceInstance,
    wanted: ObjectStatus,
) -> Result<Outcome, Failure> {
    let backup = Backup::optional(arguments.state.backup.as_deref());
    let mut opened = state_session::open_for_edit(session, &arguments.state, arguments.lock, name, backup)?;
    // From here on every return path goes through `close`, which releases the lock.
    let mut state = opened.state.take().unwrap_or_default();
    let object = match find(&state, address) {
        Ok(object) => object,
        Err(_) if arguments.allow_missing => {
            let warning = Diagnostic::warning(
                "No such resource instance",
                format!("{address} is not in the state, which is allowed, because -allow-missing was set."),
            );
            return opened.close(Ok(Outcome::success().and_unplaced(warning)));
        }
        Err(problem) => return opened.close(Err(problem.into())),
    };
    if wanted == ObjectStatus::Ready && object.status == ObjectStatus::Ready {
        let failure = Failure::new(
            "Resource instance is not tainted",
            format!("There is no mark to take off: {address} is not tainted."),
        );
        return opened.close(Err(failure));
    }
    if let Some(provider) = state
        .resources
        .get(&address.containing_resource())
        .map(|r| r.provider_of(&address.resource.key))
    {
        state.set_current(address, &provider, Some(Arc::new(object.with_status(wanted))));
    }
    let result = opened.write(&state).map_err(Failure::from).map(|()| {
        Outcome::line(match wanted {
            ObjectStatus::Tainted => format!("Resource instance {address} has been marked as tainted."),
            ObjectStatus::Ready => format!("Resource instance {address} has been successfully untainted."),
        })
    });
    opened.close(result)
}

fn find(state: &State, address: &AbsResourceInstance) -> Result<Arc<Object>, Diagnostic> {
    if state.instance_count() == 0 {
        return Err(Diagnostic::error(
            "No such resource instance",
            "There is no resource instance in the state at all: the configuration was never applied, or everything was destroyed.",
        ));
    }
    let Some(instance) = state.instance(address) else {
        return Err(Diagnostic::error(
            "No such resource instance",
            format!(
                "There is no resource instance {address} in the state. What is new in the configuration is in the state only after \
                 the next apply.{}",
                nearest(state, &address.to_string())
            ),
        ));
    };
    instance.current.clone().ok_or_else(|| {
        Diagnostic::error(
            "No such resource instance",
            format!(
                "{address} has no object in use, only deposed ones, which the next apply destroys. There is nothing to mark."
            ),
        )
    })
}
