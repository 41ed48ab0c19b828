//! `taint` and `untaint`: whether an object is to be replaced.

use std::sync::Arc;

use addrs::{AbsResourceInstance, Mode};
use state::{Object, ObjectStatus, State};
use syntax::{Diagnostic, SourceMap};

use crate::args::matches::Given;
use crate::args::{UsageError, flags};
use crate::commands::Command;
use crate::commands::state::nearest;
use crate::session::{Session, Status};
use crate::state_access::{Backup, Opened};

pub const TAINT: Command = Command {
    path: "taint",
    about: "Mark a resource instance as not fully functional",
    positional: "ADDRESS",
    declare: || {
        declare(flags::command(
            "taint",
            "Marks the object of a resource instance as tainted, so that the next plan replaces it. \"plan -replace=ADDRESS\" does \
             the same for one plan, without changing the state first.",
        ))
    },
    refused: &[],
    run: |session, given| run(session, given, ObjectStatus::Tainted),
};

pub const UNTAINT: Command = Command {
    path: "untaint",
    about: "Remove the 'tainted' state from a resource instance",
    positional: "ADDRESS",
    declare: || {
        declare(flags::command(
            "untaint",
            "Takes the mark off the object of a resource instance, so that it is not replaced.",
        ))
    },
    refused: &[],
    run: |session, given| run(session, given, ObjectStatus::Ready),
};

fn declare(command: clap::Command) -> clap::Command {
    let command = flags::local_state(flags::locking(command));
    flags::positional(command, "args")
        .arg(flags::switch(
            "allow-missing",
            false,
            "Succeed even if there is no such resource instance.",
        ))
        .arg(flags::switch(
            "ignore-remote-version",
            false,
            "Go on even if a remote workspace is set to another version.",
        ))
}

fn run(session: &Session, given: &Given, wanted: ObjectStatus) -> Result<Status, UsageError> {
    let name = if wanted == ObjectStatus::Tainted {
        "taint"
    } else {
        "untaint"
    };
    let args = given.values("args");
    let [text] = args.as_slice() else {
        return Err(UsageError::new(
            format!("The {name} command expects exactly one argument."),
            "Give the address of one resource instance.",
        ));
    };
    let address = match addrs::parse::resource_instance(text) {
        Ok(address) => address,
        Err(e) => return Ok(session.fail(e.summary, e.detail)),
    };
    if wanted == ObjectStatus::Tainted && address.resource.resource.mode != Mode::Managed {
        return Ok(session.fail(
            format!("Resource instance {address} cannot be tainted"),
            "Only what is managed can be replaced, and this is only read.",
        ));
    }
    Ok(mark(session, given, name, &address, wanted).unwrap_or_else(|status| status))
}

fn mark(
    session: &Session,
    given: &Given,
    name: &str,
    address: &AbsResourceInstance,
    wanted: ObjectStatus,
) -> Result<Status, Status> {
    let mut opened = Opened::new(session, given, name, Backup::Beside)?;
    let mut state = opened.state.take().unwrap_or_default();
    let object = match find(&state, address) {
        Ok(object) => object,
        Err(problem) => {
            let status = if given.on("allow-missing") {
                let warning = Diagnostic::warning(
                    "No such resource instance",
                    format!("{address} is not in the state, which is allowed, because -allow-missing was set."),
                );
                session.show(&warning.into(), &SourceMap::default());
                0
            } else {
                session.show(&problem.into(), &SourceMap::default());
                1
            };
            return Ok(opened.close(session, status));
        }
    };
    if wanted == ObjectStatus::Ready && object.status == ObjectStatus::Ready {
        let status = session.fail(
            "Resource instance is not tainted",
            format!("There is no mark to take off: {address} is not tainted."),
        );
        return Ok(opened.close(session, status));
    }
    if let Some(provider) = state
        .resources
        .get(&address.containing_resource())
        .map(|r| r.provider.clone())
    {
        state.set_current(address, &provider, Some(Arc::new(object.with_status(wanted))));
    }
    let status = match opened.write(session, &state) {
        Ok(()) => {
            session.ui.line(match wanted {
                ObjectStatus::Tainted => format!("Resource instance {address} has been marked as tainted."),
                ObjectStatus::Ready => format!("Resource instance {address} has been successfully untainted."),
            });
            0
        }
        Err(status) => status,
    };
    Ok(opened.close(session, status))
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
