//! The guides: texts about more than one command, in this executable. `help TOPIC` shows them.
//!
//! They use a small part of Markdown, so that they are readable both in the repository and on a terminal: headings, paragraphs,
//! lists with `-` and numbers, tables, fenced blocks of code, and code in backticks.
//!
//! A test runs the commands of each guide in order (`tests/commands/guides.rs`). Comments before a block of code are instructions
//! for it: `<!-- not run: REASON -->`, or `<!-- status: N -->` for a command with another exit status than 0.

mod documents;
mod functions;
pub mod markdown;
#[cfg(test)]
mod tests;
mod text;

use syntax::content::suggest;
use views::ui::Style;

/// A topic of `help`.
#[derive(Clone, Copy, Debug)]
pub struct Topic {
    /// Name in `help NAME`.
    pub name: &'static str,
    /// One-line description.
    pub about: &'static str,
    text: Text,
}

/// Source of a topic's text.
#[derive(Clone, Copy, Debug)]
enum Text {
    /// Markdown of a guide.
    Guide(&'static str),
    Functions,
    Documents,
    /// The manual page in roff, generated from the table of commands.
    Manual,
}

/// Topics, in the order of their list.
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
    guide(
        "compatibility",
        "What works as in Terraform, what differs, what is missing",
        include_str!("compatibility.md"),
    ),
    guide(
        "opentofu",
        "Features of OpenTofu, and the modes of this program",
        include_str!("opentofu.md"),
    ),
    guide(
        "additions",
        "Commands and options that Terraform does not have",
        include_str!("additions.md"),
    ),
    guide(
        "plugins",
        "Built-in plugins, and which version is used",
        include_str!("plugins.md"),
    ),
    guide(
        "encryption",
        "Encrypted states and saved plans",
        include_str!("encryption.md"),
    ),
    guide(
        "postgres",
        "States in PostgreSQL: rows of objects, history, queries",
        include_str!("postgres.md"),
    ),
    guide(
        "speed",
        "Plans of large configurations: read less, or more at a time",
        include_str!("speed.md"),
    ),
    guide("air-gapped", "Work without a network", include_str!("air-gapped.md")),
    guide("ci", "Check, plan and apply in CI", include_str!("ci.md")),
    guide(
        "interrupts",
        "When a run ends early: interrupts, kills, crashes",
        include_str!("interrupts.md"),
    ),
    guide(
        "troubleshooting",
        "Locks, killed runs, logs and crashes",
        include_str!("troubleshooting.md"),
    ),
    guide("provider", "Write a provider", include_str!("provider.md")),
    guide(
        "tutorial",
        "A provider in twelve chapters, with its code",
        include_str!("tutorial.md"),
    ),
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
    /// Returns the Markdown of a guide; `None` for pages that are generated.
    #[must_use]
    pub fn markdown(&self) -> Option<&'static str> {
        match self.text {
            Text::Guide(markdown) => Some(markdown),
            Text::Functions | Text::Documents | Text::Manual => None,
        }
    }

    /// Renders the text for a terminal of this width. `manual` makes the manual page.
    #[must_use]
    pub fn shown(&self, style: Style, width: usize, command: &str, manual: fn() -> String) -> String {
        match self.text {
            Text::Guide(markdown) => text::page(&markdown::parse(markdown), style, width),
            Text::Functions => functions::page(style, width, command),
            Text::Documents => documents::page(style, width, command),
            Text::Manual => manual(),
        }
    }
}

#[must_use]
pub fn find(name: &str) -> Option<&'static Topic> {
    TOPICS.iter().find(|topic| topic.name == name)
}

/// Returns the most similar command or topic, if there is one.
#[must_use]
pub fn nearest<'c>(name: &str, commands: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    suggest(name, TOPICS.iter().map(|topic| topic.name).chain(commands))
}
