//! The manual page in roff, from the data of the help pages.

use addrs::Program;

use super::{COMMANDS, Command, examples, overview};
use crate::args;
use crate::guide::TOPICS;
use crate::{TERRAFORM_VERSION, VERSION};

/// Name of the program on its page.
const NAME: &str = "monoform";

fn text(plain: &str) -> String {
    let mut out = String::with_capacity(plain.len() + 16);
    for (i, line) in plain.lines().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        // A line that begins with one of these is a request of roff.
        if line.starts_with(['.', '\'']) {
            out.push_str("\\&");
        }
        for c in line.chars() {
            match c {
                '\\' => out.push_str("\\e"),
                '-' => out.push_str("\\-"),
                '\'' => out.push_str("\\(aq"),
                '^' => out.push_str("\\(ha"),
                '`' => out.push_str("\\(ga"),
                '~' => out.push_str("\\(ti"),
                c => out.push(c),
            }
        }
    }
    out
}

/// Writes an entry: a term in bold, and its description.
fn entry(out: &mut String, term: &str, about: &str) {
    out.push_str(&format!(".TP\n\\fB{}\\fR\n{}\n", text(term), text(about)));
}

/// Renders the manual page.
pub fn page() -> String {
    let mut out = format!(
        ".\\\" Made by: {NAME} help man\n.TH MONOFORM 1 \"\" \"Monoform {version}\" \"User Commands\"\n.SH NAME\n{NAME} \\- {about}\n\
         .SH SYNOPSIS\n.B {NAME}\n[\\fIglobal options\\fR] \\fIsubcommand\\fR [\\fIoptions\\fR] [\\fIarguments\\fR]\n.SH DESCRIPTION\n",
        version = text(VERSION),
        about = "infrastructure as code, compatible with Terraform",
    );
    out.push_str(&text(&format!(
        "Monoform reads a configuration, compares it with the state and with the objects that exist, and creates, changes and destroys \
         objects until they are as the configuration says. It does what Terraform {TERRAFORM_VERSION} does, and carries the official \
         utility providers, the provisioners and the backends in its own executable."
    )));
    out.push_str("\n.SH GLOBAL OPTIONS\n");
    for (flag, about) in overview::GLOBALS {
        entry(&mut out, flag, about);
    }
    out.push_str(".SH COMMANDS\n");
    out.push_str(&text(
        "A flag has one dash or two, and its value after an equals sign or as the next argument.",
    ));
    out.push('\n');
    let shown = COMMANDS.iter().filter(|command| !overview::is_hidden(command.path));
    let mut shown: Vec<&&Command> = shown.collect();
    shown.sort_by_key(|command| command.path);
    for command in shown {
        of_command(&mut out, command);
    }
    out.push_str(".SH GUIDES\n");
    out.push_str(&text(&format!("To read one, run \"{NAME} help TOPIC\".")));
    out.push('\n');
    for topic in TOPICS {
        entry(&mut out, topic.name, topic.about);
    }
    out.push_str(".SH EXIT STATUS\n");
    for (status, about) in [
        ("0", "The command has done what it was asked for."),
        ("1", "There was an error, or a check found a problem."),
        (
            "2",
            "With -detailed-exitcode, a plan has changes; fmt could not read or write a file.",
        ),
        ("3", "With -check, fmt has found a file that is not formatted."),
        ("11", "The program has a bug; it printed the path of the report."),
    ] {
        entry(&mut out, status, about);
    }
    out.push_str(".SH ENVIRONMENT\n");
    out.push_str(&text(&format!("See \"{NAME} help environment\".")));
    out.push_str("\n.SH FILES\n");
    out.push_str(&text(&format!(
        "See \"{NAME} help files\" and \"{NAME} help cli-config\"."
    )));
    out.push_str("\n.SH SEE ALSO\n.BR terraform (1)\n");
    out
}

fn of_command(out: &mut String, command: &Command) {
    let positional = match command.positional {
        "" => String::new(),
        positional => format!(" {}", text(positional)),
    };
    out.push_str(&format!(
        ".SS {path}\n.B {NAME} {path}\n[\\fIoptions\\fR]{positional}\n.PP\n{about}\n",
        path = text(command.path),
        about = text(command.details),
    ));
    for argument in command.declared(Program::MONOFORM).get_arguments() {
        if argument.get_long().is_some() && !argument.is_hide_set() {
            entry(out, &args::help::shown(argument), &args::help::about(argument));
        }
    }
    let examples = examples::for_command(command.path);
    if !examples.is_empty() {
        out.push_str(".PP\nExamples:\n");
    }
    for (arguments, about) in examples {
        let line = format!("{NAME} {} {arguments}", command.path);
        entry(out, line.trim_end(), about);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_is_an_instruction() {
        assert_eq!(
            text(".terraform is\n'a' \\n -x"),
            "\\&.terraform is\n\\&\\(aqa\\(aq \\en \\-x"
        );
    }

    #[test]
    fn every_command_and_flag_that_help_shows_is_on_the_page() {
        let page = page();
        for command in COMMANDS.iter().filter(|command| !overview::is_hidden(command.path)) {
            let section = format!(".SS {}\n", text(command.path));
            let (_, rest) = page.split_once(&section).unwrap_or_else(|| panic!("{}", command.path));
            let own = rest.split(".SS ").next().unwrap();
            for flag in command
                .declared(Program::MONOFORM)
                .get_arguments()
                .filter(|flag| !flag.is_hide_set())
            {
                if flag.get_long().is_some() {
                    let shown = text(&args::help::shown(flag));
                    assert!(own.contains(&format!("\\fB{shown}\\fR\n")), "{} {shown}", command.path);
                }
            }
        }
        for line in page.lines().filter(|line| line.starts_with('.')) {
            let known = [".\\\"", ".TH ", ".SH ", ".SS ", ".B ", ".BR ", ".TP", ".PP"];
            assert!(known.iter().any(|request| line.starts_with(request)), "{line}");
        }
    }
}
