//! Plans with one line for each object: its action, and the attributes that change or force its
//! replacement.

use std::fmt::Write as _;

use engine::plan::{Action, PlanView, Reason, ResourceChange};

use crate::summary::reasons;
use crate::ui::Style;

/// Limit of the attributes that a line names.
const NAMED: usize = 8;

/// Renders the plan without its values.
#[must_use]
pub fn text(plan: PlanView<'_>, style: Style) -> String {
    let mut out = String::new();
    if plan.errored {
        out.push_str("\nPlanning ended with errors: this is not all of it.\n");
    }
    // Drift without an action is a move, which is listed among the changes.
    let drift: Vec<&ResourceChange> = plan.drift.iter().filter(|c| c.action != Action::NoOp).collect();
    section(&mut out, "Changed outside since the last apply:", &drift, style);
    let changes: Vec<&ResourceChange> = plan
        .changes
        .iter()
        .filter(|c| (c.action != Action::NoOp || c.is_moved() || c.importing.is_some()) && !c.drops_data_source())
        .collect();
    section(&mut out, "Changes:", &changes, style);
    if !plan.invocations.is_empty() {
        out.push_str("\nActions to invoke:\n");
        for invocation in plan.invocations {
            let _ = writeln!(out, "      {}", invocation.address);
        }
    }
    let outputs = plan.outputs.iter().filter(|(_, o)| o.action != Action::NoOp);
    let outputs: Vec<&str> = outputs.map(|(name, _)| &**name).collect();
    if !outputs.is_empty() {
        let _ = writeln!(out, "\nOutputs that change: {}", outputs.join(", "));
    }
    if out.is_empty() {
        return "\nNo changes.\n".to_owned();
    }
    if !changes.is_empty() || !plan.invocations.is_empty() {
        let _ = writeln!(out, "\n{} {}", style.bold("Plan:"), plan.totals());
    }
    out
}

fn section(out: &mut String, title: &str, changes: &[&ResourceChange], style: Style) {
    if changes.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{title}");
    for change in changes {
        out.push_str(&line(change, style));
    }
}

fn line(change: &ResourceChange, style: Style) -> String {
    let sign = match change.action {
        Action::Create => style.green("  + "),
        Action::Update => style.yellow("  ~ "),
        Action::Delete => style.red("  - "),
        Action::DeleteThenCreate => style.red("-/+ "),
        Action::CreateThenDelete => style.red("+/- "),
        Action::CreateThenForget => style.red("+/. "),
        Action::Forget => style.red("  . "),
        Action::Read => style.light(" <= "),
        Action::NoOp => "    ".to_owned(),
    };
    let mut out = format!("{sign}{}", change.address);
    if let Some(key) = &change.deposed {
        let _ = write!(out, " (deposed object {key})");
    }
    let notes = notes(change);
    if !notes.is_empty() {
        let _ = write!(out, " ({})", notes.join("; "));
    }
    out.push('\n');
    out
}

/// Returns the notes on a change: its reason and its attributes.
fn notes(change: &ResourceChange) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(from) = change.previous_address.as_ref().filter(|_| change.is_moved()) {
        notes.push(format!("moved from {from}"));
    }
    if change.importing.is_some() {
        notes.push("imported".to_owned());
    }
    match change.action {
        Action::Update => notes.extend(named("", changed(change))),
        action if action.is_replace() => {
            notes.extend(named("because of ", reasons(change).into_iter().collect()));
            notes.extend(reason(change.reason));
        }
        Action::Delete => notes.extend(reason(change.reason)),
        _ => {}
    }
    notes
}

/// Describes a reason; `None` for [`Reason::None`], and for the reason that the list of attributes shows.
fn reason(reason: Reason) -> Option<String> {
    let word = match reason {
        Reason::ReplaceBecauseCannotUpdate => return None,
        other => other.as_json()?,
    };
    let words = ["replace_because_", "delete_because_", "replace_"];
    let short = words.iter().find_map(|begin| word.strip_prefix(begin));
    Some(short.unwrap_or(word).replace('_', " "))
}

fn named(begin: &str, names: Vec<String>) -> Option<String> {
    if names.is_empty() {
        return None;
    }
    let more = match names.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let first: Vec<String> = names.into_iter().take(NAMED).collect();
    Some(format!("{begin}{}{more}", first.join(", ")))
}

/// Returns the attributes whose values differ or are not known yet. Names of attributes are not secret.
fn changed(change: &ResourceChange) -> Vec<String> {
    let (before, _) = change.before.clone().unmark_deep();
    let (after, _) = change.after.clone().unmark_deep();
    let entries = after.entries().into_iter().flatten();
    entries
        .filter(|(name, value)| before.get(name) != Some(*value))
        .map(|(name, _)| name.to_string())
        .collect()
}
