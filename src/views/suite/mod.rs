//! Test suites as text, as a stream of JSON objects, and as a JUnit report.

mod coverage;
mod human;
mod junit;
mod stream;

use syntax::diag::Comparison;
use testing::Counts;

use crate::ui::Style;

pub use coverage::{document, lcov, text as coverage_text};
pub use human::Human;
pub use junit::Report;
pub use stream::Machine;

/// Returns the totals for the last line of a suite, like `3 passed, 1 failed`.
fn totals(counts: Counts) -> String {
    let mut out = format!("{} passed, {} failed", counts.passed, counts.failed + counts.errored);
    if counts.skipped > 0 {
        out.push_str(&format!(", {} skipped", counts.skipped));
    }
    out.push('.');
    out
}

/// Renders both sides of a comparison that failed, and their differences.
pub fn comparison(comparison: &Comparison, style: Style) -> String {
    let bar = style.dim("    │");
    let mut out = String::new();
    let line = |out: &mut String, text: &str| out.push_str(&format!("{bar} {text}\n"));
    if comparison.in_full {
        for (name, side) in [("LHS:", &comparison.left), ("RHS:", &comparison.right)] {
            line(&mut out, &style.bold(name));
            side.lines().for_each(|text| line(&mut out, &format!("  {text}")));
        }
    }
    if comparison.types_differ {
        line(
            &mut out,
            &format!(
                "{} {}",
                style.yellow(style.bold("Warning:")),
                "LHS and RHS values are of different types"
            ),
        );
    }
    let difference = differences(&comparison.left, &comparison.right);
    if !difference.is_empty() {
        line(&mut out, &style.bold("Diff:"));
        line(&mut out, &style.red("--- actual"));
        line(&mut out, &style.green("+++ expected"));
        for (sign, text) in difference {
            let text = format!("{sign} {text}");
            let text = match sign {
                '-' => style.red(text),
                '+' => style.green(text),
                _ => text,
            };
            line(&mut out, &text);
        }
        out.push('\n');
    }
    out
}

/// Compares lines by position. Returns all lines with a sign, or nothing if all are equal. Equal lines have the sign ' '. In a run of
/// different lines, those of the left side ('-') come first, then those of the right ('+').
fn differences<'t>(left: &'t str, right: &'t str) -> Vec<(char, &'t str)> {
    let mut out = Vec::new();
    let (left, right): (Vec<&str>, Vec<&str>) = (left.lines().collect(), right.lines().collect());
    let (mut removed, mut added) = (Vec::new(), Vec::new());
    let mut differ = false;
    for i in 0..left.len().max(right.len()) {
        match (left.get(i), right.get(i)) {
            (Some(a), Some(b)) if a == b => {
                out.append(&mut removed);
                out.append(&mut added);
                out.push((' ', *a));
            }
            (a, b) => {
                differ = true;
                removed.extend(a.map(|a| ('-', *a)));
                added.extend(b.map(|b| ('+', *b)));
            }
        }
    }
    out.append(&mut removed);
    out.append(&mut added);
    if differ { out } else { Vec::new() }
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn lines_are_compared_by_position() {
        assert_eq!(
            differences("{\na\n}", "{\nb\n}"),
            [(' ', "{"), ('-', "a"), ('+', "b"), (' ', "}")]
        );
        assert!(differences("x", "x").is_empty());
        assert_eq!(differences("a", "b\nc"), [('-', "a"), ('+', "b"), ('+', "c")]);
    }
}
