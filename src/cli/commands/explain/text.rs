//! Text of an explanation.

use std::fmt::Write as _;

use engine::plan::Action;
use syntax::Range;
use views::terminal;
use views::ui::Style;

use super::document::{changed, shown, why};
use super::origins::Source;
use super::{Explanation, Neighbour, Object};

/// Limit of an expression or a value, in characters.
const WIDTH: usize = 72;
/// Limit of the lines of a list.
const MANY: usize = 40;

pub(super) fn render(explanation: &Explanation, style: Style) -> String {
    let mut out = format!("{}\n", style.bold(&explanation.address));
    let declared = match &explanation.declared {
        Some(range) => format!("Declared at {}", place(range)),
        None => "Not in the configuration".to_owned(),
    };
    let _ = writeln!(out, "  {declared}. Its provider is {}.", explanation.provider);
    section(&mut out, style, "Objects");
    if explanation.objects.is_empty() {
        out.push_str("  None in the state yet.\n");
    }
    listed(&mut out, &explanation.objects, |out, one| object(out, one, explanation));
    origins(&mut out, explanation, style);
    neighbours(&mut out, style, "Depends on", &explanation.depends_on);
    neighbours(&mut out, style, "Needed by", &explanation.needed_by);
    if !explanation.uses.is_empty() {
        section(&mut out, style, "Referred to in its module");
        listed(&mut out, &explanation.uses, |out, (by, range)| {
            let _ = writeln!(out, "  {}: {by}", place(range));
        });
    }
    out
}

fn section(out: &mut String, style: Style, title: &str) {
    let _ = writeln!(out, "\n{}", style.bold(title));
}

/// Writes the lines of a list, up to [`MANY`].
fn listed<T>(out: &mut String, all: &[T], write: impl Fn(&mut String, &T)) {
    for one in all.iter().take(MANY) {
        write(out, one);
    }
    if let Some(more) = all.len().checked_sub(MANY).filter(|more| *more > 0) {
        let _ = writeln!(out, "  ... and {more} more (-json has all)");
    }
}

fn place(range: &Range) -> String {
    format!("{}:{}", range.file, range.start.line)
}

/// Shortens a text to one line without control characters.
fn short(text: &str) -> String {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    let mut out: String = first.chars().take(WIDTH).collect();
    if lines.next().is_some() || out.len() < first.len() {
        out.push_str(" ...");
    }
    terminal::shown(&out).into_owned()
}

fn object(out: &mut String, object: &Object, explanation: &Explanation) {
    let mut facts = vec![
        if object.in_state {
            "in the state"
        } else {
            "not in the state yet"
        }
        .to_owned(),
    ];
    if object.tainted {
        facts.push("tainted: the next plan replaces it".to_owned());
    }
    if !object.deposed.is_empty() {
        facts.push(format!("with deposed objects {}", object.deposed.join(", ")));
    }
    let _ = writeln!(out, "  {}: {}", object.address, facts.join(", "));
    let Some(change) = &object.change else { return };
    let _ = writeln!(out, "    The plan {}.", verb(change.action));
    if let Some(why) = why(change.reason) {
        let _ = writeln!(out, "    {why}");
    }
    if change.reason == engine::plan::Reason::ReplaceByTriggers {
        for (text, range) in &explanation.triggers {
            let _ = writeln!(out, "      {}: {}", place(range), short(text));
        }
    }
    if matches!(change.action, Action::Delete | Action::Forget | Action::NoOp) {
        return;
    }
    for part in changed(change) {
        let note = if part.replaces { "  (requires replacement)" } else { "" };
        let _ = writeln!(
            out,
            "      {}: {} -> {}{note}",
            part.name,
            short(&part.before),
            short(&part.after)
        );
    }
}

fn verb(action: Action) -> &'static str {
    match action {
        Action::NoOp => "leaves it as it is",
        Action::Create => "creates it",
        Action::Read => "reads it during apply",
        Action::Update => "updates it in place",
        Action::Delete => "destroys it",
        Action::DeleteThenCreate => "replaces it: the old object is destroyed before the new one is created",
        Action::CreateThenDelete => "replaces it: the new object is created before the old one is destroyed",
        Action::Forget => "takes it out of the state, and does not destroy it",
        Action::CreateThenForget => "replaces it, and does not destroy the old object",
    }
}

fn origins(out: &mut String, explanation: &Explanation, style: Style) {
    if explanation.origins.is_empty() {
        return;
    }
    section(out, style, "Where its values come from");
    for found in &explanation.origins {
        let (values, sensitive) = explanation.values.clone().unwrap_or_default();
        let value = values
            .get(&found.name)
            .map(|value| shown(value, &sensitive[&found.name]));
        let value = value.map_or_else(String::new, |value| format!(" = {}", short(&value)));
        let _ = writeln!(out, "  {}{value}", found.name);
        match (&found.place, &found.text) {
            (None, _) => out.push_str("    decided by the provider\n"),
            (Some(range), Some(text)) => {
                let _ = writeln!(out, "    {}: {}", place(range), short(text));
            }
            (Some(range), None) => {
                let _ = writeln!(out, "    {}: (not shown: it is sensitive)", place(range));
            }
        }
        sources(out, &found.sources, 6);
    }
}

fn sources(out: &mut String, all: &[Source], indent: usize) {
    for found in all {
        let at = found
            .place
            .as_ref()
            .map_or_else(String::new, |range| format!(", {}", place(range)));
        let _ = writeln!(out, "{:indent$}{}: {}{at}", "", found.reference, found.about);
        sources(out, &found.sources, indent + 2);
    }
}

fn neighbours(out: &mut String, style: Style, title: &str, all: &[Neighbour]) {
    section(out, style, title);
    if all.is_empty() {
        out.push_str("  Nothing.\n");
    }
    listed(out, all, |out, other| {
        let note = if other.direct { "" } else { " (by way of others)" };
        let _ = writeln!(out, "  {}{note}", other.address);
    });
}
