//! Plans as Markdown, for comments on pull requests: totals, the objects that are replaced, destroyed or forgotten, counts
//! by module and type, and the changes as folded blocks.
//!
//! The text stays below the size that code hosts accept for a comment. Sensitive values are hidden as in other texts.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use engine::change_kind::ChangeKind;
use engine::plan::{Action, PlanView, ResourceChange};
use provider::Schemas;

use crate::diff;
use crate::summary::{counts, reasons};

/// Limit of the text in bytes. GitHub accepts 65,536 characters in a comment; wrappers add a heading and a link.
const LIMIT: usize = 60_000;

/// Limit of one change in bytes, so that a large document leaves room for the other changes.
const CHANGE_LIMIT: usize = 8_000;

/// Limit of the replaced, destroyed or forgotten objects that are named, of each kind.
const NAMED: usize = 50;

/// Limit of the table's lines.
const LINES: usize = 60;

/// Bytes that are reserved for the note about changes that are left out.
const NOTE: usize = 200;

/// Returns the plan as Markdown, of at most [`LIMIT`] bytes, with or without the single changes.
#[must_use]
pub fn text(plan: PlanView<'_>, schemas: &Schemas, style: diff::Style, with_changes: bool) -> String {
    let changes: Vec<(ChangeKind, &ResourceChange)> = plan
        .changes
        .iter()
        .filter_map(|change| Some((ChangeKind::from_change(change)?, change)))
        .collect();
    let mut out = String::new();
    let outputs = plan
        .outputs
        .values()
        .filter(|output| output.action != Action::NoOp)
        .count();
    let moved = plan.changes.iter().filter(|change| change.is_moved()).count();
    if changes.is_empty() && plan.invocations.is_empty() && outputs + moved + plan.drift.len() == 0 {
        out.push_str(if plan.errored {
            "### Planning failed\n"
        } else {
            "### No changes\n"
        });
        note_unread(&mut out, plan);
        return out;
    }
    let _ = writeln!(out, "### Plan: {}", plan.totals());
    if plan.errored {
        out.push_str("\n> **Planning ended with errors: this is not all of it.**\n");
    }
    for (kind, title) in [
        (ChangeKind::Replace, "Replaced"),
        (ChangeKind::Delete, "Destroyed"),
        (ChangeKind::Forget, "No longer managed, and not destroyed"),
    ] {
        let of_kind: Vec<&ResourceChange> = changes.iter().filter(|(k, _)| *k == kind).map(|(_, c)| *c).collect();
        named(&mut out, title, &of_kind);
    }
    table(&mut out, &changes);
    let others = [
        (moved, "moved in the state", "moved in the state"),
        (
            plan.drift.len(),
            "changed outside since the last apply",
            "changed outside since the last apply",
        ),
        (outputs, "output changes", "outputs change"),
    ];
    let others: Vec<String> = others
        .into_iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, one, several)| format!("{count} {}", if count == 1 { one } else { several }))
        .collect();
    if !others.is_empty() {
        let _ = writeln!(out, "\nAlso: {}.", others.join(", "));
    }
    note_unread(&mut out, plan);
    if with_changes {
        details(&mut out, plan, schemas, style, &changes);
    }
    out
}

fn note_unread(out: &mut String, plan: PlanView<'_>) {
    if let Some(unread) = plan.unread {
        let _ = writeln!(out, "\n{}", crate::unread::text(unread));
    }
}

fn named(out: &mut String, title: &str, changes: &[&ResourceChange]) {
    if changes.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n**{title}** ({})\n", changes.len());
    let mut written = 0;
    for change in changes.iter().take(NAMED) {
        let mut line = format!("- {}", code(&change.address.to_string()));
        if let Some(key) = &change.deposed {
            let _ = write!(line, " (deposed object {key})");
        }
        let reasons = reasons(change);
        if !reasons.is_empty() {
            let names: Vec<String> = reasons.iter().map(|name| code(name)).collect();
            let _ = write!(line, " because of {}", names.join(", "));
        }
        if !has_room(out, &line) {
            break;
        }
        out.push_str(&line);
        out.push('\n');
        written += 1;
    }
    if changes.len() > written {
        let _ = writeln!(out, "- and {} more", changes.len() - written);
    }
}

/// Returns true if a line of the overview has room. Half of the text is reserved for the changes, even if addresses are
/// long.
fn has_room(out: &str, line: &str) -> bool {
    out.len() + line.len() <= LIMIT / 2
}

fn table(out: &mut String, changes: &[(ChangeKind, &ResourceChange)]) {
    let counts = counts(changes);
    let kinds: Vec<ChangeKind> = ChangeKind::ALL
        .into_iter()
        .filter(|kind| {
            counts
                .values()
                .any(|row: &BTreeMap<ChangeKind, usize>| row.contains_key(kind))
        })
        .collect();
    if kinds.is_empty() {
        return;
    }
    let titles: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
    let _ = writeln!(out, "\n| module | type | {} |", titles.join(" | "));
    let _ = writeln!(out, "| --- | --- |{}", " ---: |".repeat(kinds.len()));
    let mut written = 0;
    for ((module, ty), row) in counts.iter().take(LINES) {
        let module = match module.is_root() {
            true => "-".to_owned(),
            false => code(&module.to_string()),
        };
        let cells = kinds
            .iter()
            .map(|kind| row.get(kind).map_or_else(|| "-".to_owned(), usize::to_string));
        let cells: Vec<String> = cells.collect();
        let line = format!("| {module} | {} | {} |\n", code(ty), cells.join(" | "));
        if !has_room(out, &line) {
            break;
        }
        out.push_str(&line);
        written += 1;
    }
    if counts.len() > written {
        let _ = writeln!(out, "\n{} more lines are left out.", counts.len() - written);
    }
}

/// Writes each change as a folded block, as long as the limit allows.
fn details(
    out: &mut String,
    plan: PlanView<'_>,
    schemas: &Schemas,
    style: diff::Style,
    changes: &[(ChangeKind, &ResourceChange)],
) {
    // Changes that remove objects come first, so that a reviewer sees them even if there is not enough room for
    // all.
    let urgency = |kind: ChangeKind| match kind {
        ChangeKind::Replace | ChangeKind::Delete | ChangeKind::Forget => 0,
        _ => 1,
    };
    let mut ordered: Vec<&(ChangeKind, &ResourceChange)> = changes.iter().collect();
    ordered.sort_by_key(|(kind, _)| urgency(*kind));
    let mut left_out = 0;
    for (kind, change) in ordered {
        // After the first change that does not fit, all others are left out, too. Otherwise only short changes would follow it.
        if left_out == 0 {
            let block = block(plan, schemas, style, *kind, change);
            if out.len() + block.len() + NOTE <= LIMIT {
                out.push_str(&block);
                continue;
            }
        }
        left_out += 1;
    }
    if left_out > 0 {
        let _ = writeln!(
            out,
            "\n{left_out} more changes are counted above and not shown here, to keep this text below {LIMIT} bytes."
        );
    }
}

fn block(
    plan: PlanView<'_>,
    schemas: &Schemas,
    style: diff::Style,
    kind: ChangeKind,
    change: &ResourceChange,
) -> String {
    let mut lines = String::new();
    let mut cut = false;
    for line in diff::change_text(plan, schemas, style, change).lines() {
        let line = signed(line);
        if lines.len() + line.len() > CHANGE_LIMIT {
            cut = true;
            break;
        }
        lines.push_str(&line);
        lines.push('\n');
    }
    if cut {
        lines.push_str("# the rest is left out\n");
    }
    let fence = fence(&lines);
    format!(
        "\n<details><summary><code>{}</code> ({})</summary>\n\n{fence}diff\n{lines}{fence}\n\n</details>\n",
        html(&change.address.to_string()),
        kind.as_str(),
    )
}

/// Moves the sign of a changed line to its beginning, where viewers of differences expect it. Their only sign for an update
/// is `!`.
fn signed(line: &str) -> String {
    let text = line.trim_start();
    let indent = line.len() - text.len();
    for (sign, shown) in [
        ("-/+ ", '!'),
        ("+/- ", '!'),
        ("+/. ", '!'),
        ("~ ", '!'),
        ("+ ", '+'),
        ("- ", '-'),
        ("# ", '#'),
    ] {
        if let Some(moved) = text.strip_prefix(sign) {
            // The sign of an update or a replacement stays in the text, because `!` is used for both.
            let rest = if shown == '!' { text } else { moved };
            return format!("{shown} {}{rest}", " ".repeat(indent));
        }
    }
    // The line is indented, because a line of a text value with such a sign would look like a change.
    format!("  {line}")
}

/// Returns a fence for a text: longer than any fence in its lines.
fn fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

/// Returns code in a line of Markdown, also in a cell of a table.
fn code(text: &str) -> String {
    let text = text.replace('|', "\\|");
    let fence = "`".repeat(text.split(|c| c != '`').map(str::len).max().unwrap_or(0) + 1);
    let blank = if text.starts_with('`') || text.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{fence}{blank}{text}{blank}{fence}")
}

fn html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_stand_at_the_beginning_of_lines() {
        assert_eq!(signed("      + input  = \"a\""), "+       input  = \"a\"");
        assert_eq!(
            signed("      ~ input  = \"a\" -> \"b\""),
            "!       ~ input  = \"a\" -> \"b\""
        );
        assert_eq!(signed("-/+ resource \"a\" \"b\" {"), "! -/+ resource \"a\" \"b\" {");
        assert_eq!(signed("-text of a value"), "  -text of a value");
    }

    #[test]
    fn names_and_texts_cannot_end_their_fences() {
        assert_eq!(code("a[\"`\"]"), "``a[\"`\"]``");
        assert_eq!(code("a|b"), "`a\\|b`");
        assert_eq!(fence("x ```` y"), "`````");
        assert_eq!(html("a[\"<b>\"]"), "a[\"&lt;b&gt;\"]");
    }
}
