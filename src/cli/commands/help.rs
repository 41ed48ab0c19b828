//! `help`: the commands and the topics, a guide, or the page of a command.

use syntax::content::did_you_mean;

use crate::args::flags::{self, Flags, FromFlags};
use crate::commands::{Command, find, overview, page};
use crate::guide;
use crate::program;
use crate::session::{Session, Status};

pub const COMMAND: Command = Command {
    path: "help",
    about: "Show a guide, or the page of a command",
    positional: "[TOPIC]",
    details: "Shows a guide or the page of a command; without an argument, the list of both. The guides are part of this \
      executable: nothing is requested from a network.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| Ok(run(session, &flags::read(matches))),
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

fn run(session: &Session, arguments: &Arguments) -> Status {
    let subject = arguments.positional.join(" ");
    if subject.is_empty() {
        session.ui.out(overview::general());
        return 0;
    }
    if let Some(text) = text(session, &subject) {
        session.ui.out(text);
        return 0;
    }
    let hint = did_you_mean(guide::nearest(&subject, overview::paths()));
    session.fail(
        "No such topic or command",
        format!(
            "There is no help about \"{subject}\".{hint} To see all commands and topics, run: {} help",
            program::command()
        ),
    )
}

/// The text about a topic, a command or a family of commands.
fn text(session: &Session, subject: &str) -> Option<String> {
    if let Some(topic) = guide::find(subject) {
        return Some(topic.shown(session.ui.style(), session.ui.width()));
    }
    match find(subject) {
        Some(command) => Some(page(command)),
        None => overview::family(subject),
    }
}
