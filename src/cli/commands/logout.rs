//! `logout`: removes the stored token of a host.

use crate::args::flags::{self, Flags, FromFlags};
use crate::commands::Command;
use crate::credentials::{Location, Stored, host_argument};
use crate::outcome::{Failure, Outcome};
use crate::session::Session;

pub const COMMAND: Command = Command {
    path: "logout",
    about: "Remove locally-stored credentials for a remote host",
    positional: "[HOSTNAME]",
    details: "Removes the token that login has stored for a host, app.terraform.io if none is named. The token stays valid until \
      it is revoked at the host.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    positional: Vec<String>,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        flags.json_into();
        Arguments {
            positional: flags.positional(),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    let (host, given) = host_argument(&arguments.positional, "log out of")?;
    let Some(host) = host else {
        return Err(Failure::new(
            "Invalid hostname",
            format!("The given hostname \"{given}\" is not valid: it must be the name of a host, and perhaps a port."),
        ));
    };
    let shown = host.display();
    let stored = Stored::find(session, host);
    match stored.location() {
        Location::OtherFile => {
            return Err(Failure::from(
                stored.maintained_by_user("log out", session.ui.program.command),
            ));
        }
        Location::Nowhere => {
            return Ok(Outcome::line(format!("No credentials for {shown} are stored.\n")));
        }
        Location::Helper(helper) => session.message(format!(
            "Removing the stored credentials for {shown} from the configured\n\"{}\" credentials helper.\n",
            helper.name
        )),
        Location::File => session.message(format!(
            "Removing the stored credentials for {shown} from the following file:\n    {}\n",
            stored.file()
        )),
    }
    let removed = session.runtime()?.block_on(stored.store(&session.net(), None));
    removed.map_err(|why| {
        let detail = format!("The stored token could not be removed: {why}.");
        Failure::new("Failed to remove API token", detail)
    })?;
    let style = session.ui.style();
    Ok(Outcome::line(format!(
        "{} {}\n",
        style.good("Success!"),
        style.bold(format!(
            "{} has removed the stored API token for {shown}.",
            session.ui.program.tool
        ))
    )))
}
