//! `help`: lists commands and guides, or shows a guide or the page of a command.

use syntax::content::did_you_mean;
use views::json::documents;

use crate::args::flags::{self, Flags, FromFlags};
use crate::commands::{Command, find, man, overview, page};
use crate::guide;
use crate::outcome::{Failure, Outcome};
use crate::session::Session;

pub const COMMAND: Command = Command {
    path: "help",
    about: "Show a guide, or the page of a command",
    positional: "[TOPIC]",
    details: "Shows a guide or the page of a command; without an argument, the list of both. With json and the name of a document, \
      it prints the JSON Schema of that; with man, the manual page. All of it is part of this executable: nothing is requested from \
      a network.",
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

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    let subject = arguments.positional.join(" ");
    if subject.is_empty() {
        return Ok(Outcome::text(overview::general(session.ui.program.command)));
    }
    if let Some(text) = text(session, &subject) {
        return Ok(Outcome::text(text));
    }
    if let Some(name) = subject.strip_prefix("json ") {
        return match documents::find(name) {
            Some(document) => Ok(Outcome::text(document.schema)),
            None => Err(Failure::new(
                "No such document",
                format!(
                    "There is no JSON document \"{name}\".{} To see all of them, run: {} help json",
                    did_you_mean(documents::nearest(name)),
                    session.ui.program.command
                ),
            )),
        };
    }
    let hint = did_you_mean(guide::nearest(&subject, overview::paths()));
    Err(Failure::new(
        "No such topic or command",
        format!(
            "There is no help about \"{subject}\".{hint} To see all commands and topics, run: {} help",
            session.ui.program.command
        ),
    ))
}

/// Returns the text of a topic, a command or a family of commands; `None` if `subject` names
/// none of them.
fn text(session: &Session, subject: &str) -> Option<String> {
    if let Some(topic) = guide::find(subject) {
        return Some(topic.shown(
            session.ui.style(),
            session.ui.width(),
            session.ui.program.command,
            man::page,
        ));
    }
    match find(subject) {
        Some(command) => Some(page(command, session.ui.program)),
        None => overview::family(subject, session.ui.program.command),
    }
}

#[cfg(test)]
mod tests {
    use packages::builtin::Builtins;
    use packages::cli_config::CliConfig;

    use super::*;
    use crate::env::Env;
    use crate::outcome::Status;
    use crate::session::{Invocation, Surroundings};
    use views::ui::Ui;

    /// Returns the status, standard output and standard error of `help` with these arguments.
    fn help(words: &[&str]) -> (Status, String, String) {
        let (ui, out, err) = Ui::captured();
        let (env, builtins, cli_config) = (Env::default(), Builtins::default(), CliConfig::default());
        let surroundings = Surroundings::new(ui, env, builtins, cli_config, ".".into());
        let session = Session::new(surroundings, Invocation::default());
        let positional = words.iter().map(|word| (*word).to_owned()).collect();
        let outcome = run(&session, &Arguments { positional }).unwrap_or_else(Outcome::from);
        let status = session.render(outcome);
        session.ui.flush();
        (status, out.text(), err.text())
    }

    #[test]
    fn topics_commands_and_families_have_a_page() {
        for (words, begin) in [
            (&[][..], "Usage: monoform [global options] <subcommand>"),
            (&["ci"], "In CI\n"),
            (&["functions"], "Functions\n"),
            (&["json"], "JSON documents\n"),
            (&["json", "validate"], "{\n  \"$schema\": "),
            (&["json", "state", "list"], "{\n  \"$schema\": "),
            (&["man"], ".\\\" Made by: monoform help man\n.TH MONOFORM 1 "),
            (&["plan"], "Usage: monoform [global options] plan"),
            (&["state", "mv"], "Usage: monoform [global options] state mv"),
            (&["state"], "Usage: monoform [global options] state <subcommand>"),
        ] {
            let (status, out, err) = help(words);
            assert!(
                status == 0 && out.starts_with(begin) && err.is_empty(),
                "{words:?}\n{out}{err}"
            );
        }
    }

    #[test]
    fn unknown_topic_has_suggestion_and_status_1() {
        for (words, hint) in [
            (&["enviroment"][..], "Did you mean \"environment\"?"),
            (&["state", "lst"], "Did you mean \"state list\"?"),
            (&["xyzzy"], "run: monoform help"),
            (&["json", "validat"], "Did you mean \"validate\"?"),
        ] {
            let (status, out, err) = help(words);
            let err = err.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(
                status == 1 && out.is_empty() && err.contains(hint),
                "{words:?}\n{out}{err}"
            );
        }
    }
}
