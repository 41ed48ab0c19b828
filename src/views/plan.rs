//! Plans on the terminal, with the text around them.

use engine::plan::PlanView;
use provider::Schemas;
use syntax::Diagnostic;

use crate::ui::{Style, Ui};
use crate::wrap::{wrap, wrapped};
use crate::{brief, diff, markdown, summary, unread};

/// Extent of a plan's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// Every change in full.
    #[default]
    Whole,
    /// Replaced and destroyed objects by name, and counts of the others: `-summary`.
    Summary,
}

/// Extent of the changes in a plan's text: `-verbosity`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verbosity {
    /// One line an object.
    Brief,
    #[default]
    Normal,
    /// The plan with unchanged attributes.
    Full,
}

/// Format of a plan's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    #[default]
    Text,
    /// Markdown for a comment on a pull request: `-format=markdown`.
    Markdown,
}

/// Display options of plans, states and outputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    pub form: Form,
    pub format: Format,
    pub verbosity: Verbosity,
    /// Shows sensitive values: `-show-sensitive`.
    pub sensitive: bool,
}

impl Shown {
    /// Returns the style of plans and states.
    #[must_use]
    pub fn style(self, ui: &Ui) -> diff::Style {
        diff::Style {
            colour: ui.style().on,
            width: ui.width(),
            revealed: self.sensitive,
            // Without a terminal, a program may compare the text with Terraform's.
            short: self.verbosity == Verbosity::Normal && ui.is_terminal(),
            unchanged: self.verbosity == Verbosity::Full,
            program: ui.program,
        }
    }
}

pub fn show(ui: &Ui, plan: PlanView<'_>, schemas: &Schemas, shown: Shown) {
    if shown.format == Format::Markdown {
        let style = diff::Style {
            colour: false,
            short: true,
            ..shown.style(ui)
        };
        return ui.out_bytes(markdown::text(plan, schemas, style, shown.form == Form::Whole).as_bytes());
    }
    ui.out(match (shown.form, shown.verbosity) {
        (Form::Summary, _) => summary::text(plan),
        (Form::Whole, Verbosity::Brief) => brief::text(plan, ui.style()),
        (Form::Whole, _) => diff::plan_text(plan, schemas, shown.style(ui)),
    });
    if let Some(unread) = plan.unread {
        ui.out(format!("\n{}\n", wrapped(&unread::text(unread), ui.width())));
    }
}

/// Returns a horizontal rule, for output of this width.
#[must_use]
pub fn rule(style: Style, width: usize) -> String {
    // The last column stays free, because some terminals wrap a line that fills it.
    format!("\n{}\n", style.dim("─".repeat(width.saturating_sub(1))))
}

/// Returns the advice for applying a saved plan. The path is wrapped as in Terraform, whose wrappers search the output for it.
#[must_use]
pub fn saved(out: &str, width: usize, command: &str) -> String {
    let place = wrap(&format!("Saved the plan to: {out}"), width).join("\n");
    format!(
        "\n{place}\n\nTo perform exactly these actions, run the following command to apply:\n    {command} apply \"{out}\"\n"
    )
}

/// Returns the note that a plan is not saved, for output of this width.
#[must_use]
pub fn not_saved(width: usize, command: &str) -> String {
    let text = format!(
        "Note: This plan is not saved. \"{command} apply\" makes a new one, which may differ. To apply exactly these actions, save the plan \
         with -out=FILE first."
    );
    format!("\n{}\n", wrap(&text, width).join("\n"))
}

/// Returns the warning for applying a plan of a part of the configuration.
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
