//! Plans on the terminal: the text, and what stands around it.

use engine::plan::PlanView;
use provider::Schemas;
use syntax::Diagnostic;

use crate::ui::{Style, Ui};
use crate::wrap::wrap;
use crate::{diff, summary};

/// How much of a plan is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// All of it.
    #[default]
    Whole,
    /// What is replaced and destroyed by name, and counts of the rest: `-summary`.
    Summary,
}

/// What people are shown of plans, states and outputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// How much of a plan.
    pub form: Form,
    /// Whether sensitive values are shown: `-show-sensitive`.
    pub sensitive: bool,
}

impl Shown {
    /// The style in which plans and states are shown.
    #[must_use]
    pub fn style(self, ui: &Ui) -> diff::Style {
        diff::Style {
            colour: ui.style().on,
            width: ui.width(),
            revealed: self.sensitive,
            program: ui.program,
        }
    }
}

/// Writes a plan to standard output.
pub fn show(ui: &Ui, plan: PlanView<'_>, schemas: &Schemas, shown: Shown) {
    if shown.form == Form::Summary {
        return ui.out(summary::text(plan));
    }
    ui.out(diff::plan_text(plan, schemas, shown.style(ui)));
}

/// A line across.
#[must_use]
pub fn rule(style: Style, width: usize) -> String {
    // One less than the width, so that no terminal breaks the line.
    format!("\n{}\n", style.dim("─".repeat(width.saturating_sub(1))))
}

/// How to go on with a saved plan. The path is broken over lines as in Terraform, whose drivers look for it.
#[must_use]
pub fn saved(out: &str, width: usize, command: &str) -> String {
    let place = wrap(&format!("Saved the plan to: {out}"), width).join("\n");
    format!(
        "\n{place}\n\nTo perform exactly these actions, run the following command to apply:\n    {command} apply \"{out}\"\n"
    )
}

/// The end of a plan that was not saved, for output of this width.
#[must_use]
pub fn not_saved(width: usize, command: &str) -> String {
    let text = format!(
        "Note: This plan is not saved. \"{command} apply\" makes a new one, which may differ. To apply exactly these actions, save the plan \
         with -out=FILE first."
    );
    format!("\n{}\n", wrap(&text, width).join("\n"))
}

/// The warning that goes with the application of a plan for a part of the configuration.
#[must_use]
pub fn incomplete_warning(command: &str) -> Diagnostic {
    Diagnostic::warning(
        "Applied changes may be incomplete",
        format!(
            "The plan was made with the -target or -exclude option, so some of the changes that the configuration asks for may \
             have been left out, and output values may not be up to date. This command shows what is pending:\n    {command} plan"
        ),
    )
}
