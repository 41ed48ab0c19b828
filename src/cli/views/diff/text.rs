//! Differences in text: several lines as a heredoc, JSON as a structure.

use cty::Value;

use crate::views::diff::render::{Options, Writer};
use crate::views::diff::sequence::{Step, steps};
use crate::views::diff::{Change, Diff, build};

/// The JSON structure that text is, if it is an object or a list.
fn json(text: &str) -> Option<Value> {
    let start = text.trim_start();
    if !start.starts_with(['{', '[']) {
        return None;
    }
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    Some(cty::json::from_simple_json(&value))
}

impl Writer {
    /// Text on one side only: that which comes, goes or stays.
    pub(super) fn one_text(&self, text: &str, change: Change, indent: usize, options: Options) -> String {
        if let Some(value) = json(text) {
            let inner = match change {
                Change::Delete => build::anything(Some(&value), None),
                Change::Create => build::anything(None, Some(&value)),
                _ => build::anything(Some(&value), Some(&value)),
            };
            return self.jsonencode(&inner, "", false, indent, options);
        }
        if text.contains('\n') {
            let lines: Vec<String> = heredoc_lines(text)
                .iter()
                .map(|line| format!("{}{}", self.indent(indent + 1), self.escaped(line)))
                .collect();
            return format!("<<-EOT\n{}\n{}EOT", lines.join("\n"), self.indent(indent));
        }
        crate::views::diff::render::quoted(text)
    }

    /// Text that changes, if that can be shown better than side by side.
    pub(super) fn changed_text(
        &self,
        before: &str,
        after: &str,
        replace: bool,
        indent: usize,
        options: Options,
    ) -> Option<String> {
        match (json(before), json(after)) {
            (Some(old), Some(new)) => {
                let inner = build::anything(Some(&old), Some(&new));
                let note = match (inner.change, replace) {
                    (Change::None, false) => " # whitespace changes",
                    (Change::None, true) => " # whitespace changes force replacement",
                    (_, true) => " # forces replacement",
                    _ => "",
                };
                let shown = Options {
                    show_unchanged: options.show_unchanged || inner.change == Change::None,
                    ..options
                };
                return Some(self.jsonencode(&inner, note, inner.change == Change::Update, indent, shown));
            }
            (None, None) => {}
            _ => return None,
        }
        if !before.contains('\n') && !after.contains('\n') {
            return None;
        }
        let (old, new) = (heredoc_lines(before), heredoc_lines(after));
        let mut out = format!(
            "<<-EOT{}\n",
            if replace {
                self.forces_replacement()
            } else {
                String::new()
            }
        );
        for step in steps(&old, &new, |a, b| a == b, |_, _| false) {
            let (change, line) = match step {
                Step::Both(b, _) => (Change::None, old[b]),
                Step::Before(b) => (Change::Delete, old[b]),
                Step::After(a) => (Change::Create, new[a]),
            };
            out.push_str(&format!(
                "{}{}{}\n",
                self.indent_for_symbol(indent + 1),
                self.symbol(change),
                self.escaped(line)
            ));
        }
        Some(format!("{out}{}EOT", self.indent(indent)))
    }

    fn jsonencode(&self, inner: &Diff, note: &str, symbol: bool, indent: usize, options: Options) -> String {
        let body = self.render(
            inner,
            indent + 1,
            Options {
                no_null: true,
                ..options
            },
        );
        let empty = !body.contains('\n');
        if empty && note.is_empty() {
            return format!("jsonencode({body})");
        }
        let symbol = if symbol {
            self.symbol(Change::Update)
        } else {
            self.symbol(Change::None)
        };
        format!(
            "jsonencode({}\n{}{symbol}{body}\n{})",
            self.note(note),
            self.indent_for_symbol(indent + 1),
            self.indent(indent)
        )
    }
}

/// The lines of text; a line break at the very end does not begin another.
fn heredoc_lines(text: &str) -> Vec<&str> {
    text.strip_suffix('\n').unwrap_or(text).split('\n').collect()
}
