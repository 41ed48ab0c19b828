//! `state replace-provider`: says that objects belong to another provider from now on.

use addrs::{AbsResource, Provider};

use super::edit;
use crate::args::matches::Given;
use crate::args::{UsageError, flags};
use crate::commands::{Command, approval};
use crate::program;
use crate::session::{Session, Status};

pub const COMMAND: Command = Command {
    path: "state replace-provider",
    about: "Replace provider in the state",
    positional: "FROM TO",
    declare: || {
        let command = flags::command(
            "replace-provider",
            "Says in the state that the objects of one provider belong to another from now on. Both are given as source \
             addresses, such as hashicorp/aws.",
        );
        flags::positional(edit::declare(command), "args").arg(flags::switch(
            "auto-approve",
            false,
            "Skip interactive approval.",
        ))
    },
    refused: &[],
    run,
};

fn run(session: &Session, given: &Given) -> Result<Status, UsageError> {
    let args = given.values("args");
    let [from, to] = args.as_slice() else {
        return Err(UsageError::new(
            "Exactly two arguments expected.",
            "Give the source address of the provider as it is in the state, and that of the one to take its place.",
        ));
    };
    Ok(replace(session, given, from, to).unwrap_or_else(|status| status))
}

fn replace(session: &Session, given: &Given, from: &str, to: &str) -> Result<Status, Status> {
    let provider = |text: &str, which: &str| {
        Provider::parse(text).map_err(|e| {
            session.fail(
                format!("Invalid \"{which}\" provider \"{text}\""),
                format!("{}: {}", e.summary, e.detail),
            )
        })
    };
    let (from, to) = (provider(from, "from")?, provider(to, "to")?);
    let (mut opened, mut state) = edit::open(session, given, "state-replace-provider")?;
    let ui = &session.ui;
    let style = ui.style();
    let resources: Vec<AbsResource> = state.resources_of(&from).cloned().collect();
    if resources.is_empty() {
        ui.line("No matching resources found.");
        return Ok(opened.close(session, 0));
    }
    ui.out(format!(
        "{} will perform the following actions:\n\n  {} {}\n    {} {from}\n    {} {to}\n\n{}\n\n",
        program::tool(),
        style.yellow("~"),
        "Updating provider:",
        style.red("-"),
        style.green("+"),
        style.bold(format!("Changing {} resources:", resources.len()))
    ));
    for resource in &resources {
        ui.line(format!("  {resource}"));
    }
    if !given.on("auto-approve") {
        let prompt = format!(
            "\n{}\nOnly 'yes' will be accepted to continue.\n\n{} ",
            style.bold("Do you want to make these changes?"),
            style.bold("Enter a value:")
        );
        match approval(session, &prompt, "-auto-approve") {
            Ok(true) => {}
            Ok(false) => {
                ui.line("Cancelled replacing providers.");
                return Ok(opened.close(session, 0));
            }
            Err(status) => return Ok(opened.close(session, status)),
        }
    }
    state.replace_provider(&from, &to);
    if let Err(status) = opened.write(session, &state) {
        return Ok(opened.close(session, status));
    }
    ui.line(format!(
        "\nSuccessfully replaced provider for {} resources.",
        resources.len()
    ));
    Ok(opened.close(session, 0))
}
