//! Questions for approval, and their answers.

use views::prompt::{Answer, Echo};
use views::wrap::indented;

use crate::outcome::Failure;
use crate::session::Session;

/// Asks for confirmation by the word "yes"; returns true if that is the answer. `skip` is the option
/// that omits the question.
pub(super) fn confirmed(session: &Session, question: &str, explanation: &str, skip: &str) -> Result<bool, Failure> {
    let style = session.ui.style();
    let prompt = format!(
        "\n{}\n{}\n\n  {} ",
        style.bold(question),
        indented(explanation, session.ui.width()),
        style.bold("Enter a value:")
    );
    approval(session, &prompt, skip)
}

/// Shows a prompt of the caller; returns true if the answer is "yes".
pub(super) fn approval(session: &Session, prompt: &str, skip: &str) -> Result<bool, Failure> {
    let answer = session.ui.ask(prompt, Echo::On);
    session.ui.line("");
    match answer {
        // As in Terraform, no other word approves, such as "y" or "Yes".
        Answer::Line(answer) => Ok(answer.trim_end() == "yes"),
        other => Err(unanswered(&other, skip)),
    }
}

/// Returns the failure of a question without an answer. `skip` is the option that omits the question.
pub(super) fn unanswered(answer: &Answer, skip: &str) -> Failure {
    match answer {
        Answer::Interrupted => Failure::new(
            "Error asking for approval: interrupted",
            "The question was not answered, and nothing was changed.",
        ),
        Answer::End | Answer::Line(_) => Failure::new(
            "Error asking for approval: EOF",
            format!("There is no answer: the input has ended. To go on without a question, use {skip}."),
        ),
    }
}
