//! `doctor`: finds problems of the installation and the working directory, and suggests solutions.

mod machine;
mod network;
mod states;

use serde_json::{Value as Json, json};
use views::json::Object;
use views::terminal;
use views::wrap::wrap;

use crate::args::flags::{self, Flags, FromFlags};
use crate::commands::{Command, no_positional};
use crate::outcome::{Failure, Outcome};
use crate::session::Session;

pub const COMMAND: Command = Command {
    path: "doctor",
    about: "Look for what is wrong here, and say what mends it",
    positional: "",
    details: "Looks at this program, its configuration, the directories of plugins, proxies, the state of the workspace with \
      its lock, and what crashes have left. It changes nothing. The exit status is 1 if there is a problem.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    positional: Vec<String>,
    network: bool,
    json: bool,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        Arguments {
            positional: flags.positional(),
            network: flags.switch(
                "network",
                false,
                "Ask also for the names and services of the registries. Without it, nothing is requested.",
            ),
            json: flags.switch("json", false, "Output the findings as JSON."),
        }
    }
}

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Ok,
    /// Needs no action; commands work nevertheless.
    Note,
    /// Commands fail, or data may be lost.
    Problem,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Note => "note",
            Level::Problem => "problem",
        }
    }
}

/// Result of one check.
#[derive(Debug)]
struct Finding {
    subject: &'static str,
    level: Level,
    /// Description of the finding, as a sentence.
    found: String,
    /// Suggested solution, as a sentence; empty if there is nothing to do.
    mend: String,
}

#[derive(Debug, Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn add(&mut self, subject: &'static str, level: Level, found: impl Into<String>, mend: impl Into<String>) {
        self.0.push(Finding {
            subject,
            level,
            found: found.into(),
            mend: mend.into(),
        });
    }

    fn ok(&mut self, subject: &'static str, found: impl Into<String>) {
        self.add(subject, Level::Ok, found, "");
    }

    fn note(&mut self, subject: &'static str, found: impl Into<String>, mend: impl Into<String>) {
        self.add(subject, Level::Note, found, mend);
    }

    fn problem(&mut self, subject: &'static str, found: impl Into<String>, mend: impl Into<String>) {
        self.add(subject, Level::Problem, found, mend);
    }

    fn count(&self, level: Level) -> usize {
        self.0.iter().filter(|finding| finding.level == level).count()
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    no_positional(&arguments.positional, "check")?;
    let mut found = Findings::default();
    machine::check(session, &mut found);
    let hosts = states::check(session, &mut found);
    if arguments.network {
        network::check(session, hosts, &mut found);
    }
    let status = u8::from(found.count(Level::Problem) > 0);
    if arguments.json {
        return Ok(Outcome::document(&document(&found)).with_status(status));
    }
    show(session, &found);
    Ok(status.into())
}

fn document(found: &Findings) -> Json {
    let finding = |finding: &Finding| {
        Json::from(
            Object::default()
                .with("subject", finding.subject)
                .with("level", finding.level.name())
                .with("found", finding.found.clone())
                .with_content("mend", finding.mend.clone()),
        )
    };
    json!({
        "format_version": "1.0",
        "problems": found.count(Level::Problem),
        "findings": found.0.iter().map(finding).collect::<Vec<_>>(),
    })
}

fn show(session: &Session, found: &Findings) {
    let style = session.ui.style();
    let width = session.ui.width().clamp(40, 100);
    for finding in &found.0 {
        let mark = match finding.level {
            Level::Ok => style.green("ok     "),
            Level::Note => style.yellow("note   "),
            Level::Problem => style.red("problem"),
        };
        let lines = wrap(&format!("{}: {}", finding.subject, finding.found), width - 9);
        for (at, line) in lines.iter().enumerate() {
            let left = if at == 0 { &*mark } else { "       " };
            // Findings contain names of files and hosts, which may contain control characters.
            session.ui.line(format!("{left}  {}", terminal::shown(line)));
        }
        let mend = Some(&finding.mend).filter(|mend| !mend.is_empty());
        for line in mend.into_iter().flat_map(|mend| wrap(mend, width - 11)) {
            session
                .ui
                .line(format!("           {}", terminal::shown(&line)).trim_end());
        }
    }
    let problems = match found.count(Level::Problem) {
        0 => "No problems".to_owned(),
        1 => "1 problem".to_owned(),
        n => format!("{n} problems"),
    };
    let notes = match found.count(Level::Note) {
        0 => String::new(),
        1 => ", 1 note".to_owned(),
        n => format!(", {n} notes"),
    };
    session
        .ui
        .line(format!("\n{}", style.bold(format!("{problems}{notes}."))));
}
