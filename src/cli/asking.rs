//! Questions for the values of variables.

use config::model::Variable;
use config::values::{self, VariableValue};
use syntax::{Diagnostic, Diagnostics, SourceMap};
use views::console::Console;
use views::prompt::{Answer, Echo};

/// Asks for a variable that is needed before a plan is made, and returns the typed text.
pub fn answer(console: &Console, variable: &Variable) -> Option<String> {
    match asked(console, &SourceMap::default(), variable) {
        Ok(Some((text, Ok(_)))) => Some(text),
        Ok(_) => None,
        Err(interrupted) => {
            console.show_now(&interrupted.into(), &SourceMap::default());
            None
        }
    }
}

/// Text that was typed for a variable, and its value.
pub type Typed = (String, Result<VariableValue, Diagnostics>);

/// Asks for the value of a variable; returns none if the input has ended. At a terminal, the question is repeated after
/// an invalid value.
pub fn asked(console: &Console, sources: &SourceMap, variable: &Variable) -> Result<Option<Typed>, Diagnostic> {
    let ui = &console.ui;
    let style = ui.style();
    let description = variable
        .description
        .as_deref()
        .map(str::trim)
        .filter(|d| !d.is_empty())
        .map(|d| format!("  {}\n\n", d.replace('\n', "\n  ")))
        .unwrap_or_default();
    let prompt = format!(
        "{}\n{description}  {} ",
        style.bold(format!("var.{}", variable.name)),
        style.bold("Enter a value:")
    );
    let echo = if variable.sensitive { Echo::Off } else { Echo::On };
    loop {
        let answer = ui.ask(&prompt, echo);
        ui.line("");
        match answer {
            Answer::Line(text) => {
                let found = values::from_prompt(variable, &text);
                // A script sends no second answer: the question would read the answer to the next one.
                match &found {
                    Err(problems) if ui.is_interactive() => {
                        console.show_now(problems, sources);
                    }
                    _ => return Ok(Some((text, found))),
                }
            }
            Answer::End => return Ok(None),
            Answer::Interrupted => {
                return Err(Diagnostic::error(
                    "Interrupted",
                    format!(
                        "The question for the value of var.{} was interrupted, and nothing was changed.",
                        variable.name
                    ),
                ));
            }
        }
    }
}
