//! `logout`: forgets the stored token of a host.

use crate::args::UsageError;
use crate::args::flags::{self, Flags, FromFlags};
use crate::commands::Command;
use crate::credentials::{Location, Stored, host_argument};
use crate::session::{Session, Status};
use syntax::SourceMap;
use views::program;

pub const COMMAND: Command = Command {
    path: "logout",
    about: "Remove locally-stored credentials for a remote host",
    positional: "[HOSTNAME]",
    details: "Removes the token that login has stored for a host, app.terraform.io if none is named. The host is not told: the \
      token is good until it is revoked there.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    positional: Vec<String>,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        Arguments {
            positional: flags.positional(),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Status, UsageError> {
    let (host, given) = host_argument(&arguments.positional, "log out of")?;
    let Some(host) = host else {
        return Ok(session.fail(
            "Invalid hostname",
            format!("The given hostname \"{given}\" is not valid: it must be the name of a host, and perhaps a port."),
        ));
    };
    let shown = host.display();
    let stored = Stored::find(session, host);
    let ui = &session.ui;
    match stored.location() {
        Location::OtherFile => {
            session.show(&stored.elsewhere("log out").into(), &SourceMap::default());
            return Ok(1);
        }
        Location::Nowhere => {
            ui.line(format!("No credentials for {shown} are stored.\n"));
            return Ok(0);
        }
        Location::Helper(helper) => ui.line(format!(
            "Removing the stored credentials for {shown} from the configured\n\"{}\" credentials helper.\n",
            helper.name
        )),
        Location::File => ui.line(format!(
            "Removing the stored credentials for {shown} from the following file:\n    {}\n",
            stored.file()
        )),
    }
    let removed = session
        .runtime()
        .map(|runtime| runtime.block_on(stored.store(&session.net(), None)));
    match removed {
        Ok(Ok(())) => {}
        Ok(Err(why)) => {
            let detail = format!("The stored token could not be removed: {why}.");
            return Ok(session.fail("Failed to remove API token", detail));
        }
        Err(problems) => {
            session.show(&problems, &SourceMap::default());
            return Ok(1);
        }
    }
    let style = ui.style();
    ui.line(format!(
        "{} {}\n",
        style.good("Success!"),
        style.bold(format!(
            "{} has removed the stored API token for {shown}.",
            program::tool()
        ))
    ));
    Ok(0)
}
