//! Questions during a run. If another user decides on the page of the run, the question is withdrawn.

use std::time::Duration;

use engine::plan::Mode;
use syntax::Diagnostics;
use tfe::{Run, RunStatus};
use views::prompt::{self, Answer, Echo};
use views::wrap::indented;

use crate::run::{Ended, Remote, Step};

/// Interval of the requests that find out whether another user has decided.
const PAUSE: Duration = Duration::from_secs(3);

/// Keyword that answers a question with yes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keyword {
    /// Approve the plan.
    Yes,
    /// Override failed policies.
    Override,
}

impl Keyword {
    fn word(self) -> &'static str {
        match self {
            Keyword::Yes => "yes",
            Keyword::Override => "override",
        }
    }

    fn id(self) -> &'static str {
        match self {
            Keyword::Yes => "approve",
            Keyword::Override => "override",
        }
    }

    /// Returns true if the question has been decided.
    fn is_decided(self, run: &Run) -> bool {
        match self {
            Keyword::Yes => !run.is_confirmable,
            Keyword::Override => !matches!(
                run.status,
                RunStatus::PolicyOverride | RunStatus::PostPlanAwaitingDecision
            ),
        }
    }

    fn decided_on_server(self) -> &'static str {
        match self {
            Keyword::Yes => "approved using the UI or API",
            Keyword::Override => "overridden using the UI or API",
        }
    }
}

impl Remote<'_> {
    fn prompt(&self, question: &str, explanation: &str) -> String {
        let style = self.output.style();
        format!(
            "\n{}\n{}\n\n  {} ",
            style.bold(question),
            indented(explanation, self.context.console.ui.width()),
            style.bold("Enter a value:")
        )
    }

    /// Asks for a decision. Returns true if another user has made the decision on the server. Any answer other than the keyword discards
    /// the run.
    pub(crate) async fn confirm(&self, run: &Run, question: &str, explanation: &str, keyword: Keyword) -> Step<bool> {
        let (ui, prompt) = (self.context.console.ui.clone(), self.prompt(question, explanation));
        // Reading from the terminal blocks, so a separate thread does it, while this task polls the server.
        let mut asked = tokio::task::spawn_blocking(move || {
            let answer = ui.ask(&prompt, Echo::On);
            ui.line("");
            ui.flush();
            answer
        });
        let answer = loop {
            tokio::select! {
                answer = &mut asked => break answer,
                () = tokio::time::sleep(PAUSE) => {}
            }
            // A failed request is not an error, because the question is still open: the next round repeats the request.
            let Ok(now) = self.hosted.connection.run(&run.id).await else {
                continue;
            };
            if !keyword.is_decided(&now) {
                continue;
            }
            // Without the withdrawal, the thread would read the answer to the next question.
            prompt::withdraw();
            let _ = asked.await;
            if now.status == RunStatus::Discarded {
                self.output.yellow("discarded using the UI or API");
                return Err(self.discarded());
            }
            self.output.yellow(keyword.decided_on_server());
            return Ok(true);
        };
        let eof = || Ended::with_error(format!("Error asking {}: EOF", keyword.id()));
        match answer.map_err(|_| eof())? {
            Answer::Line(line) if line.trim_end() == keyword.word() => Ok(false),
            Answer::Line(_) => {
                // The run may have ended meanwhile, and then cannot be discarded, so it is read again.
                let now = self.read_run(&run.id).await?;
                self.discard(&now).await?;
                Err(self.discarded())
            }
            Answer::Interrupted => {
                self.stop.request();
                Err(Ended::Stopped)
            }
            Answer::End => Err(eof()),
        }
    }

    fn discarded(&self) -> Ended {
        Ended::with_error(match self.mode {
            Mode::Destroy => "Destroy discarded.",
            _ => "Apply discarded.",
        })
    }

    /// Discards a run, if it can be discarded.
    pub(crate) async fn discard(&self, run: &Run) -> Step<()> {
        if !run.is_discardable {
            return Ok(());
        }
        let failed = match self.mode {
            Mode::Destroy => "Failed to discard destroy",
            _ => "Failed to discard apply",
        };
        self.ask(failed, self.hosted.connection.discard_run(&run.id)).await
    }

    /// Cancels a run after an interrupt, if it can be canceled and the user agrees.
    pub(crate) async fn cancel(&self, run: &Run) -> Result<(), Diagnostics> {
        if !run.is_cancelable {
            return Ok(());
        }
        // With -auto-approve or machine-readable output there may be nobody to answer, so the run is canceled without a question.
        if self.is_auto_approved() || self.context.console.stream.is_some() {
            self.output.line("");
        } else {
            let (ui, prompt) = (
                self.context.console.ui.clone(),
                self.prompt(
                    "Do you want to cancel the remote operation?",
                    "  Only 'yes' will be accepted to cancel.",
                ),
            );
            let asked = tokio::task::spawn_blocking(move || {
                let answer = ui.ask(&prompt, Echo::On);
                ui.line("");
                answer
            });
            let answer = asked.await.unwrap_or(Answer::End);
            if !matches!(answer, Answer::Line(line) if line.trim_end() == "yes") {
                self.output.red("The remote operation was not cancelled.");
                return Ok(());
            }
        }
        let cancelled = self.hosted.connection.cancel_run(&run.id).await;
        cancelled.map_err(|e| self.error("Failed to cancel run", &e))?;
        self.output.red("The remote operation was successfully cancelled.");
        Ok(())
    }
}
