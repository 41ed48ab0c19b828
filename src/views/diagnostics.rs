//! Diagnostics as text.

use syntax::diag::Extra;
use syntax::{Diagnostic, Diagnostics, Severity, SourceMap};

use crate::snippet::{shown_range, snippet};
use crate::suite::comparison as compared;
use crate::ui::{Style, Ui};
use crate::wrap::wrap;

/// Layout of a diagnostic.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pub style: Style,
    /// Width of the output in columns.
    pub width: usize,
    /// Omits the vertical line on the left.
    pub plain: bool,
}

/// Formats a diagnostic, with its last line break.
#[must_use]
pub fn format(diagnostic: &Diagnostic, sources: &SourceMap, layout: Layout) -> String {
    let style = layout.style;
    let word = match diagnostic.severity {
        Severity::Error => "Error: ",
        Severity::Warning => "Warning: ",
    };
    let colour = |text: &str| match diagnostic.severity {
        Severity::Error => style.bad(text),
        Severity::Warning => style.paint_warning(text),
    };
    let summary = &diagnostic.summary;
    let mut body = format!("{}{}\n\n", colour(word), style.bold(summary));
    source(diagnostic, sources, style, &mut body);
    if !diagnostic.detail.is_empty() {
        // The last column stays free, and the rule and its blank take two columns.
        let width = if layout.plain {
            layout.width.saturating_sub(1)
        } else {
            layout.width.saturating_sub(2)
        };
        for line in wrap(&diagnostic.detail, width) {
            body.push_str(&line);
            body.push('\n');
        }
    }
    let body = body.trim_end_matches('\n');
    if layout.plain {
        return format!("\n{body}\n");
    }
    let rule = |text: &str| match diagnostic.severity {
        Severity::Error => style.red(text),
        Severity::Warning => style.yellow(text),
    };
    let mut out = rule("╷") + "\n";
    for line in body.split('\n') {
        out.push_str(&rule("│"));
        out.push(' ');
        out.push_str(line);
        out.push('\n');
    }
    out + &rule("╵") + "\n"
}

impl Style {
    fn paint_warning(self, text: &str) -> String {
        if self.on {
            self.bold(self.yellow(text))
        } else {
            text.to_owned()
        }
    }
}

fn source(diagnostic: &Diagnostic, sources: &SourceMap, style: Style, out: &mut String) {
    if let Some(address) = &diagnostic.address {
        out.push_str(&style.bold(format!("  with {address},")));
        out.push('\n');
    }
    let Some(range) = shown_range(diagnostic) else { return };
    let Some(found) = snippet(diagnostic, sources) else {
        out.push_str(&style.bold(format!("  on {} line {}:", range.file, range.start.line)));
        out.push_str("\n  (source code not available)\n\n");
        return;
    };
    let context = found
        .context
        .as_deref()
        .map(|c| format!(", in {}", style.bold(c)))
        .unwrap_or_default();
    out.push_str(&format!("  on {} line {}{context}:\n", range.file, range.start.line));
    let mut offset = 0;
    for (i, line) in found.code.split('\n').enumerate() {
        let mut shown = line.to_owned();
        if style.on {
            let inside = |at: usize| at.clamp(offset, offset + line.len()) - offset;
            let (start, end) = (inside(found.highlight_start), inside(found.highlight_end));
            if start < end {
                shown = format!(
                    "{}{}{}",
                    &line[..start],
                    style.underline(&line[start..end]),
                    &line[end..]
                );
            }
        }
        offset += line.len() + 1;
        let number = u64::from(found.start_line) + i as u64;
        // A carriage return would move the cursor to the beginning of the line.
        out.push_str(&format!("{number:4}: {}\n", shown.trim_end_matches('\r')));
    }
    if let Some(context) = &diagnostic.expression
        && (!context.values.is_empty() || context.function.is_some() || context.comparison.is_some())
    {
        out.push_str(&style.dim("    ├────────────────"));
        out.push('\n');
        if let Some(function) = &context.function {
            let shown = function.to_string();
            let (name, parameters) = shown.split_at(function.called_as.len());
            out.push_str(&format!(
                "{} while calling {}{parameters}\n",
                style.dim("    │"),
                style.bold(name)
            ));
        }
        if let Some(comparison) = &context.comparison {
            out.push_str(&compared(comparison, style));
        }
        // The differences are shown instead of the values, except with -verbose.
        let shows_values = context.comparison.as_ref().is_none_or(|c| c.in_full);
        let mut values: Vec<_> = context.values.iter().filter(|_| shows_values).collect();
        values.sort();
        for (name, what) in values {
            let bar = style.dim("    │");
            let what = what.replace('\n', &format!("\n{bar}   "));
            out.push_str(&format!("{bar} {} {what}\n", style.bold(name)));
        }
    }
    if let Some(origin) = &diagnostic.deprecation_origin {
        out.push_str(&format!("\n  The deprecation originates from {origin}\n"));
    }
    out.push('\n');
}

/// Folds warnings with the same summary into the first one, whose detail then has the number of the others.
#[must_use]
pub fn fold_warnings(diagnostics: Diagnostics) -> Diagnostics {
    fold(diagnostics, |severity| severity == Severity::Warning)
}

/// Folds diagnostics of these severities with the same summary into the first one. Diagnostics without a range and those of checks are
/// not folded.
fn fold(diagnostics: Diagnostics, folds: impl Fn(Severity) -> bool) -> Diagnostics {
    let mut out: Vec<Diagnostic> = Vec::new();
    let mut places: std::collections::HashMap<(bool, String), usize> = std::collections::HashMap::new();
    let mut more: Vec<(usize, usize)> = Vec::new();
    for diagnostic in diagnostics {
        // Diagnostics without a range are not about a part of the configuration, and have little in common except the
        // summary.
        let alone = diagnostic.subject.is_none() || diagnostic.extra == Extra::OfCheck;
        if !folds(diagnostic.severity) || alone {
            out.push(diagnostic);
            continue;
        }
        match places.get(&(diagnostic.is_error(), diagnostic.summary.clone())) {
            Some(&at) => match more.iter_mut().find(|(i, _)| *i == at) {
                Some((_, n)) => *n += 1,
                None => more.push((at, 1)),
            },
            None => {
                places.insert((diagnostic.is_error(), diagnostic.summary.clone()), out.len());
                out.push(diagnostic);
            }
        }
    }
    for (at, n) in more {
        let first = &mut out[at];
        let what = if first.is_error() { "error" } else { "warning" };
        let words = if n == 1 {
            format!("(and one more similar {what} elsewhere)")
        } else {
            format!("(and {n} more similar {what}s elsewhere)")
        };
        first.detail = format!("{}\n\n{words}", first.detail).trim_start().to_owned();
        first.extra = Extra::Folded(n);
    }
    Diagnostics(out)
}

/// Form of diagnostics in text output.
#[derive(Clone, Copy, Debug, Default)]
pub struct Form {
    /// Shows only summaries: `-compact-warnings`.
    pub compact: bool,
    /// Shows similar warnings one by one: `-consolidate-warnings=false`.
    pub separate_warnings: bool,
    /// Shows similar errors as one: `-consolidate-errors`.
    pub fold_errors: bool,
    /// Writes warnings to standard error, because standard output has a result that programs read.
    pub beside_results: bool,
}

/// Shows diagnostics: errors on standard error, warnings in their selected form. As in Terraform, warnings are shown in full if there
/// is an error, even if the form is compact.
pub fn show(ui: &Ui, diagnostics: &Diagnostics, sources: &SourceMap, form: Form) {
    if diagnostics.is_empty() {
        return;
    }
    // A loop over hundreds of instances can produce the same warning for each.
    let folded = fold(diagnostics.clone(), |severity| match severity {
        Severity::Error => form.fold_errors,
        _ => !form.separate_warnings,
    });
    let mut list = folded.0;
    // The problems are sorted by source range, with those without one first; otherwise in their original order.
    list.sort_by_key(|d| d.subject.as_ref().map(|s| (s.file.clone(), s.start.byte)));
    let (errors, warnings): (Vec<_>, Vec<_>) = list.into_iter().partition(Diagnostic::is_error);
    let err = Layout {
        style: ui.err_style(),
        width: ui.err_width(),
        plain: ui.plain,
    };
    let out = Layout {
        style: ui.style(),
        width: ui.width(),
        plain: ui.plain,
    };
    let (layout, write): (Layout, &dyn Fn(String)) = match form.beside_results {
        true => (err, &|text| ui.err(text)),
        false => (out, &|text| ui.out(text)),
    };
    if form.compact && errors.is_empty() {
        write(compact_warnings(&warnings, layout.style, ui.program.tool));
        return;
    }
    for warning in &warnings {
        write(format(warning, sources, layout));
    }
    for error in &errors {
        ui.err(format(error, sources, err));
    }
}

pub(super) fn compact_warnings(warnings: &[Diagnostic], style: Style, tool: &str) -> String {
    let mut out = format!("{}\n", style.paint_warning("Warnings:"));
    out.push('\n');
    for warning in warnings {
        out.push_str(&format!("- {}\n", &warning.summary));
        if let Some(range) = &warning.subject {
            out.push_str(&format!("  on {} line {}", range.file, range.start.line));
            match warning.extra {
                Extra::Folded(n) => out.push_str(&format!(" (and {n} more)\n")),
                _ => out.push('\n'),
            }
        }
    }
    out.push_str(&format!(
        "\nTo see the full warning notes, run {} without -compact-warnings.\n",
        tool
    ));
    out
}

#[cfg(test)]
mod tests {
    use syntax::diag::ExpressionContext;
    use syntax::{Pos, Range};

    use super::*;

    const PLAIN: Layout = Layout {
        style: Style::PLAIN,
        width: 78,
        plain: true,
    };

    fn example() -> (Diagnostic, SourceMap) {
        let text = "resource \"terraform_data\" \"b\" {\n  input = terraform_data.a[7]\n}\n";
        let mut sources = SourceMap::default();
        sources.insert("main.tf", text);
        let pos = |line, byte| Pos { line, column: 1, byte };
        let range = Range {
            file: "main.tf".into(),
            start: pos(2, 58),
            end: pos(2, 61),
        };
        let mut diagnostic = Diagnostic::error(
            "Invalid index",
            "The given key does not identify an element in this collection value, and this goes on for a bit.",
        )
        .at(&range);
        diagnostic.expression = Some(Box::new(ExpressionContext {
            values: vec![("terraform_data.a".into(), "is tuple with 2 elements".into())],
            ..ExpressionContext::default()
        }));
        (diagnostic, sources)
    }

    #[test]
    fn a_problem_without_rule() {
        let (diagnostic, sources) = example();
        let expected = "
Error: Invalid index

  on main.tf line 2, in resource \"terraform_data\" \"b\":
   2:   input = terraform_data.a[7]
    ├────────────────
    │ terraform_data.a is tuple with 2 elements

The given key does not identify an element in this collection value, and this
goes on for a bit.
";
        assert_eq!(format(&diagnostic, &sources, PLAIN), expected);
    }

    #[test]
    fn a_problem_with_rule() {
        let layout = Layout { plain: false, ..PLAIN };
        let text = format(
            &Diagnostic::warning("Summary", "Detail.").about("a.b"),
            &SourceMap::default(),
            layout,
        );
        assert_eq!(text, "╷\n│ Warning: Summary\n│ \n│   with a.b,\n│ Detail.\n╵\n");
        let (diagnostic, sources) = example();
        let text = format(
            &diagnostic,
            &sources,
            Layout {
                style: Style { on: true },
                ..layout
            },
        );
        let text = crate::terminal::shown(&text);
        assert!(text.contains("terraform_data.a\u{1b}[4m[7]\u{1b}[0m\n"), "{text}");
    }

    #[test]
    fn similar_warnings_are_folded() {
        let place = Range::synthetic("x");
        let all: Diagnostics = (0..4)
            .map(|i| Diagnostic::warning("Old", format!("Number {i}.")).at(&place))
            .collect();
        let folded = fold_warnings(all);
        assert_eq!(folded.len(), 1);
        assert_eq!(
            folded.0[0].detail,
            "Number 0.\n\n(and 3 more similar warnings elsewhere)"
        );
    }

    #[test]
    fn compact_warnings_have_one_line_each() {
        let text = compact_warnings(&[Diagnostic::warning("A", "b")], Style::PLAIN, "Monoform");
        assert_eq!(
            text,
            "Warnings:\n\n- A\n\nTo see the full warning notes, run Monoform without -compact-warnings.\n"
        );
    }
}
