//! Plans on the terminal: the text, and what stands around it.

use engine::plan::Plan;
use engine::providers::Schemas;
use syntax::{Diagnostic, Diagnostics};

use crate::ui::{Style, Ui};
use crate::views::diff;

/// Writes a plan to standard output.
pub fn show(ui: &Ui, plan: &Plan, schemas: &Schemas) {
    ui.out(diff::plan_text(
        plan,
        schemas,
        diff::Style {
            colour: ui.style().on,
            width: ui.width(),
        },
    ));
}

/// A line across.
#[must_use]
pub fn rule(style: Style, width: usize) -> String {
    // One less than the width, so that no terminal breaks the line.
    format!("\n{}\n", style.dim("─".repeat(width.saturating_sub(1))))
}

/// The warning that goes with `-target`.
#[must_use]
pub fn targeting_warning() -> Diagnostics {
    Diagnostic::warning(
        "Resource targeting is in effect",
        "You are creating a plan with the -target option, which means that the result of this plan may not represent all of \
         the changes requested by the current configuration.\n\nThe -target option is not for routine use, and is provided \
         only for exceptional situations such as recovering from errors or mistakes, or when Monoform specifically suggests \
         to use it as part of an error message.",
    )
    .into()
}

/// The warning that goes with applying a plan that was made with `-target`.
#[must_use]
pub fn targeted_warning() -> Diagnostics {
    Diagnostic::warning(
        "Applied changes may be incomplete",
        "The plan was made with the -target option, so some changes that the configuration asks for may have been left out, \
         and output values may not be up to date. Make a plan without -target to see what is still to be done.\n\nThe -target \
         option is meant for exceptional situations only, such as recovering from errors or mistakes.",
    )
    .into()
}
