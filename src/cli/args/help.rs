//! Usage texts, made from the declarations of commands.

use clap::{Arg, Command};
use views::wrap::wrap;

use crate::args::flags::is_switch;

/// Width of a page, in columns.
const WIDTH: usize = 78;

/// Content of a command's page.
pub struct Page<'a> {
    /// Name that this program was called by.
    pub program: &'a str,
    pub path: &'a str,
    pub positional: &'a str,
    /// Examples: arguments with an explanation.
    pub examples: &'a [(&'a str, &'a str)],
    /// Declaration of the command, with its flags and its description.
    pub declared: &'a Command,
}

/// Groups of flags that many commands share. A flag in none of them is listed under "Options".
const GROUPS: &[(&str, &[&str])] = &[
    (
        "What to plan",
        &[
            "destroy",
            "refresh-only",
            "refresh",
            "replace",
            "target",
            "target-file",
            "exclude",
            "exclude-file",
            "invoke",
        ],
    ),
    ("Values of variables", &["var", "var-file"]),
    (
        "State",
        &[
            "lock",
            "lock-timeout",
            "state",
            "state-out",
            "backup",
            "backup-out",
            "ignore-remote-version",
        ],
    ),
    (
        "Output",
        &["json", "no-color", "compact-warnings", "summary", "verbose", "input"],
    ),
];

/// Returns the usage text of one command.
#[must_use]
pub fn command(page: &Page<'_>) -> String {
    let Page {
        program,
        path,
        positional,
        examples,
        declared,
    } = page;
    let mut out = format!("Usage: {program} [global options] {path} [options]");
    if !positional.is_empty() {
        out.push(' ');
        out.push_str(positional);
    }
    out.push_str("\n\n");
    if let Some(about) = declared.get_about() {
        for line in wrap(&about.to_string(), WIDTH - 2) {
            out.push_str(&format!("  {line}\n"));
        }
    }
    if !examples.is_empty() {
        out.push_str("\nExamples:\n");
    }
    for (arguments, what) in *examples {
        out.push_str(&format!("\n  {}\n", format!("{program} {path} {arguments}").trim_end()));
        for line in wrap(what, WIDTH - 6) {
            out.push_str(&format!("      {line}\n"));
        }
    }
    let flags: Vec<&Arg> = declared
        .get_arguments()
        .filter(|arg| arg.get_long().is_some())
        .collect();
    let shown: Vec<String> = flags.iter().map(|flag| shown(flag)).collect();
    // A few long names must not push all descriptions to the right.
    let width = shown.iter().map(String::len).max().unwrap_or(0).min(24);
    let of_group = |title: Option<&str>| {
        let mut lines = String::new();
        for (flag, shown) in flags.iter().zip(&shown).filter(|(flag, _)| group(flag) == title) {
            describe(&mut lines, shown, &about(flag), width);
        }
        lines
    };
    let own = of_group(None);
    if !own.is_empty() {
        out.push_str(&format!("\nOptions:\n{own}"));
    }
    for (title, _) in GROUPS {
        let lines = of_group(Some(title));
        if !lines.is_empty() {
            out.push_str(&format!("\n{title}:\n{lines}"));
        }
    }
    out
}

fn group(flag: &Arg) -> Option<&'static str> {
    let name = flag.get_long()?;
    let of = |(_, names): &&(&str, &[&str])| names.contains(&name);
    GROUPS.iter().find(of).map(|(title, _)| *title)
}

/// Returns a flag in its written form.
#[must_use]
pub fn shown(flag: &Arg) -> String {
    let name = flag.get_long().unwrap_or_default();
    if is_switch(flag) {
        return match default(flag) {
            // Writing the default of a flag has no effect, so only the other value is shown.
            Some("true") => format!("-{name}=false"),
            _ => format!("-{name}"),
        };
    }
    let placeholder = flag.get_value_names().and_then(|names| names.first());
    format!("-{name}={}", placeholder.map_or("VALUE", |name| name.as_str()))
}

fn default(flag: &Arg) -> Option<&str> {
    flag.get_default_values().first().and_then(|default| default.to_str())
}

/// Returns the description of a flag with its default.
#[must_use]
pub fn about(flag: &Arg) -> String {
    let mut help = flag.get_help().map(ToString::to_string).unwrap_or_default();
    if let (false, Some(default)) = (is_switch(flag), default(flag)) {
        help.push_str(&format!(" Defaults to {default}."));
    }
    help
}

fn describe(out: &mut String, shown: &str, help: &str, width: usize) {
    out.push('\n');
    let lines = wrap(help, (WIDTH - 4).saturating_sub(width).max(30));
    if shown.len() > width {
        out.push_str(&format!("  {shown}\n"));
    }
    for (i, line) in lines.iter().enumerate() {
        let left = if i == 0 && shown.len() <= width { shown } else { "" };
        out.push_str(format!("  {left:width$}  {line}").trim_end());
        out.push('\n');
    }
}
