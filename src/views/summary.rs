//! Summaries of plans that are too long to read: replaced and destroyed objects by name, the others as counts by module and
//! type.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use addrs::Module;
use engine::change_kind::ChangeKind;
use engine::plan::{Action, PlanView, ResourceChange};

/// Limit of the replaced or destroyed objects that are named, of each kind.
const NAMED: usize = 50;

/// Limit of the table's lines. Those with the most changes are kept.
const LINES: usize = 60;

fn counted(change: &ResourceChange) -> Option<(ChangeKind, &ResourceChange)> {
    Some((ChangeKind::from_change(change)?, change))
}

/// Returns the summary of a plan.
#[must_use]
pub fn text(plan: PlanView<'_>) -> String {
    let changes: Vec<(ChangeKind, &ResourceChange)> = plan.changes.iter().filter_map(counted).collect();
    let mut out = String::new();
    if plan.errored {
        out.push_str("\nPlanning ended with errors: this is not all of it.\n");
    }
    // Only changes that remove objects are listed. Thousands of others would hide them.
    for (kind, title) in [
        (ChangeKind::Replace, "Replaced:"),
        (ChangeKind::Delete, "Destroyed:"),
        (ChangeKind::Forget, "No longer managed, and not destroyed:"),
    ] {
        named(
            &mut out,
            title,
            changes.iter().filter(|(k, _)| *k == kind).map(|(_, change)| *change),
        );
    }
    table(&mut out, &changes);
    others(&mut out, plan);
    if out.is_empty() {
        out.push_str("\nNo changes.\n");
    }
    if !changes.is_empty() || !plan.invocations.is_empty() {
        let _ = writeln!(out, "\nPlan: {}", plan.totals());
    }
    out
}

/// Lists objects by address, with the attributes that force their replacement.
fn named<'p>(out: &mut String, title: &str, changes: impl Iterator<Item = &'p ResourceChange>) {
    let all: Vec<&ResourceChange> = changes.collect();
    if all.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{title}");
    for change in all.iter().take(NAMED) {
        let _ = write!(out, "  {}", change.address);
        if let Some(key) = &change.deposed {
            let _ = write!(out, " (deposed object {key})");
        }
        let reasons: Vec<String> = reasons(change).into_iter().collect();
        if !reasons.is_empty() {
            let _ = write!(out, " (because of {})", reasons.join(", "));
        }
        out.push('\n');
    }
    if all.len() > NAMED {
        let _ = writeln!(out, "  and {} more", all.len() - NAMED);
    }
}

/// Returns the attributes that force the replacement of an object.
pub(crate) fn reasons(change: &ResourceChange) -> BTreeSet<String> {
    let first = |path: &cty::Path| match path.0.first() {
        // Only the first step is shown, because keys of a map may be sensitive.
        Some(cty::Step::Attribute(name)) => Some(name.to_string()),
        _ => None,
    };
    change.replace_paths.iter().filter_map(first).collect()
}

/// Numbers of changes by kind, of each module and type.
pub(crate) type Counts<'p> = BTreeMap<(Module, &'p str), BTreeMap<ChangeKind, usize>>;

/// Counts changes by module, type and kind.
pub(crate) fn counts<'p>(changes: &[(ChangeKind, &'p ResourceChange)]) -> Counts<'p> {
    let mut counts = Counts::new();
    for (kind, change) in changes {
        let place = (change.address.config().module, &*change.address.resource.resource.ty);
        *counts.entry(place).or_default().entry(*kind).or_default() += 1;
    }
    counts
}

/// Writes the counts by module and type. If there are too many lines, only those with the most changes are kept.
fn table(out: &mut String, changes: &[(ChangeKind, &ResourceChange)]) {
    let counts = counts(changes);
    let total = |row: &BTreeMap<ChangeKind, usize>| row.values().sum::<usize>();
    let mut rows: Vec<_> = counts.iter().collect();
    let left_out = rows.len().saturating_sub(LINES);
    if left_out > 0 {
        rows.sort_by_key(|(_, row)| std::cmp::Reverse(total(row)));
        rows.truncate(LINES);
        // The rows are sorted by address again, because users search by address.
        rows.sort_by_key(|(place, _)| *place);
    }
    let kinds: Vec<ChangeKind> = ChangeKind::ALL
        .into_iter()
        .filter(|kind| counts.values().any(|row| row.contains_key(kind)))
        .collect();
    if rows.is_empty() {
        return;
    }
    let mut lines = vec![vec!["module".to_owned(), "type".to_owned()]];
    lines[0].extend(kinds.iter().map(|kind| kind.as_str().to_owned()));
    for ((module, ty), row) in rows {
        let module = if module.is_root() {
            "-".to_owned()
        } else {
            module.to_string()
        };
        let mut line = vec![module, (*ty).to_owned()];
        line.extend(kinds.iter().map(|kind| match row.get(kind) {
            Some(count) => count.to_string(),
            None => "-".to_owned(),
        }));
        lines.push(line);
    }
    let width = |column: usize| {
        lines
            .iter()
            .map(|line| line[column].chars().count())
            .max()
            .unwrap_or_default()
    };
    let widths: Vec<usize> = (0..kinds.len() + 2).map(width).collect();
    out.push('\n');
    for line in &lines {
        let cells = line
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(column, (cell, width))| match column {
                0 | 1 => format!("{cell:width$}"),
                _ => format!("{cell:>width$}"),
            });
        let _ = writeln!(out, "  {}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    if left_out > 0 {
        let _ = writeln!(out, "  and {left_out} more lines with fewer changes");
    }
}

/// Writes the counts of moves, drift and changed outputs.
fn others(out: &mut String, plan: PlanView<'_>) {
    let mut lines = Vec::new();
    let moved = plan.changes.iter().filter(|c| c.is_moved());
    lines.push(("Moved in the state", moved.count()));
    lines.push(("Changed outside since the last apply", plan.drift.len()));
    let outputs = plan.outputs.values().filter(|output| output.action != Action::NoOp);
    lines.push(("Outputs that change", outputs.count()));
    lines.retain(|(_, count)| *count > 0);
    if !lines.is_empty() {
        out.push('\n');
    }
    for (what, count) in lines {
        let _ = writeln!(out, "{what}: {count}");
    }
}
