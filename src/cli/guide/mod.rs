//! The guides: texts about more than one command, which are part of the executable. `help TOPIC` shows them.
//!
//! They are Markdown of a few forms only, so that they can be read in the repository as well as on a terminal: headings,
//! paragraphs, lists with `-` and numbers, blocks of code between fences, and code in backticks. Lines are not broken again.

mod documents;
mod functions;
#[cfg(test)]
mod tests;

use syntax::content::suggest;
use views::ui::Style;

use crate::commands::man;

/// A topic of `help`.
#[derive(Clone, Copy, Debug)]
pub struct Topic {
    /// Its name, as it is written behind `help`.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    text: Text,
}

/// Where the text of a topic comes from.
#[derive(Clone, Copy, Debug)]
enum Text {
    /// A guide.
    Guide(&'static str),
    /// The list of functions.
    Functions,
    /// The list of JSON documents.
    Documents,
    /// The manual page, in roff.
    Manual,
}

/// The topics, in the order in which they are listed.
pub const TOPICS: &[Topic] = &[
    guide(
        "install",
        "Install, replace and remove this program",
        include_str!("install.md"),
    ),
    guide(
        "migrate",
        "From Terraform to Monoform, and back",
        include_str!("migrate.md"),
    ),
    guide("air-gapped", "Work without a network", include_str!("air-gapped.md")),
    guide("ci", "Check, plan and apply in CI", include_str!("ci.md")),
    guide(
        "troubleshooting",
        "Locks, killed runs, logs and crashes",
        include_str!("troubleshooting.md"),
    ),
    guide("provider", "Write a provider", include_str!("provider.md")),
    guide(
        "cli-config",
        "The CLI configuration file",
        include_str!("cli-config.md"),
    ),
    guide("environment", "Environment variables", include_str!("environment.md")),
    guide("files", "Files that are written, and where", include_str!("files.md")),
    Topic {
        name: "functions",
        about: "The functions of the language, by what they are for",
        text: Text::Functions,
    },
    Topic {
        name: "json",
        about: "The JSON documents that commands print, and their schemas",
        text: Text::Documents,
    },
    Topic {
        name: "man",
        about: "The manual page, for the program man",
        text: Text::Manual,
    },
];

const fn guide(name: &'static str, about: &'static str, text: &'static str) -> Topic {
    Topic {
        name,
        about,
        text: Text::Guide(text),
    }
}

impl Topic {
    /// The text for a terminal of this width.
    #[must_use]
    pub fn shown(&self, style: Style, width: usize, command: &str) -> String {
        match self.text {
            Text::Guide(markdown) => plain(markdown, style),
            Text::Functions => functions::page(style, width, command),
            Text::Documents => documents::page(style, width, command),
            Text::Manual => man::page(),
        }
    }
}

/// The topic of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Topic> {
    TOPICS.iter().find(|topic| topic.name == name)
}

/// The name of a command or a topic that may have been meant.
#[must_use]
pub fn nearest<'c>(name: &str, commands: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    suggest(name, TOPICS.iter().map(|topic| topic.name).chain(commands))
}

/// Markdown as text: headings in bold, code indented in place of its fences.
fn plain(markdown: &str, style: Style) -> String {
    let mut out = String::with_capacity(markdown.len() + markdown.len() / 8);
    let mut code = false;
    for line in markdown.lines() {
        if line.trim_start().starts_with("```") {
            code = !code;
            continue;
        }
        let heading = line.trim_start_matches('#');
        if code && !line.is_empty() {
            out.push_str("    ");
            out.push_str(line);
        } else if !code && heading.len() < line.len() {
            out.push_str(&style.bold(heading.trim_start()));
        } else {
            out.push_str(line);
        }
        out.push('\n');
    }
    out
}
