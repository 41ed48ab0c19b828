//! `state replace-provider`: assigns objects to another provider.

use std::collections::BTreeSet;

use addrs::{AbsResource, Provider};
use syntax::content::suggest;

use super::edit::{self, EditFlags};
use crate::args::flags::{self, Flags, FromFlags};
use crate::commands::{Command, approval};
use crate::outcome::{Failure, Outcome};
use crate::session::Session;
use crate::state_session::Closing as _;

pub const COMMAND: Command = Command {
    path: "state replace-provider",
    about: "Replace provider in the state",
    positional: "FROM TO",
    details: "Says in the state that the objects of one provider belong to another from now on. Both are given as source \
      addresses, such as hashicorp/aws.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    edit: EditFlags,
    positional: Vec<String>,
    auto_approve: bool,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        Arguments {
            edit: EditFlags::read(flags),
            positional: flags.positional(),
            auto_approve: flags.switch("auto-approve", false, "Skip interactive approval."),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    let args = &arguments.positional;
    let [from, to] = args.as_slice() else {
        return Err(Failure::usage(
            "Required argument missing",
            "Give exactly two arguments: the source address of the provider as it is in the state, and that of the one to take its place.",
        ));
    };
    replace(session, arguments, from, to)
}

fn replace(session: &Session, arguments: &Arguments, from: &str, to: &str) -> Result<Outcome, Failure> {
    let provider = |text: &str, which: &str| {
        Provider::parse(text).map_err(|e| {
            Failure::new(
                format!("Invalid \"{which}\" provider \"{text}\""),
                format!("{}: {}", e.summary, e.detail),
            )
        })
    };
    let (from, to) = (provider(from, "from")?, provider(to, "to")?);
    // The state is locked before the question, so that the state cannot change until the answer.
    let (mut opened, mut state) = edit::open(session, &arguments.edit, "state-replace-provider")?;
    let ui = &session.ui;
    let style = ui.style();
    let resources: Vec<AbsResource> = state.resources_of(&from).cloned().collect();
    if resources.is_empty() {
        session.message("No matching resources found.");
        let used: BTreeSet<String> = state
            .resources
            .values()
            .map(|stored| stored.provider.provider.to_string())
            .collect();
        if let Some(near) = suggest(&from.to_string(), used.iter().map(String::as_str)) {
            session.message(format!("Did you mean {near}?"));
        }
        return opened.close(Ok(Outcome::success()));
    }
    let actions = format!(
        "{} will perform the following actions:\n\n  {} {}\n    {} {from}\n    {} {to}\n\n{}\n\n",
        session.ui.program.tool,
        style.yellow("~"),
        "Updating provider:",
        style.red("-"),
        style.green("+"),
        style.bold(format!("Changing {} resources:", resources.len()))
    );
    session.message_beside(&actions);
    session.ui.out(actions);
    for resource in &resources {
        session.message(format!("  {resource}"));
    }
    if !arguments.auto_approve {
        let prompt = format!(
            "\n{}\nOnly 'yes' will be accepted to continue.\n\n{} ",
            style.bold("Do you want to make these changes?"),
            style.bold("Enter a value:")
        );
        match approval(session, &prompt, "-auto-approve") {
            Ok(true) => {}
            Ok(false) => {
                let outcome = Outcome::line("Cancelled replacing providers.");
                return opened.close(Ok(outcome));
            }
            Err(failure) => return opened.close(Err(failure)),
        }
    }
    state.replace_provider(&from, &to);
    let result = opened.write(&state).map_err(Failure::from).map(|()| {
        Outcome::line(format!(
            "\nSuccessfully replaced provider for {} resources.",
            resources.len()
        ))
    });
    opened.close(result)
}
