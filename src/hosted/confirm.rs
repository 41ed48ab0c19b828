//! Questions on the way of a run. While one is open, somebody may answer it on the page of the run: then it is taken back here.

use std::time::Duration;

use engine::plan::Mode;
use syntax::Diagnostics;
use tfe::{Run, RunStatus};
use views::prompt::{self, Answer, Echo};
use views::wrap::indented;

use crate::run::{Ended, Remote, Step};

/// How often it is asked whether somebody else has decided.
const PAUSE: Duration = Duration::from_secs(3);

/// The word that means yes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keyword {
    /// To apply.
    Yes,
    /// To override what has failed.
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

    /// Whether the question has no object any more.
    fn is_decided(self, run: &Run) -> bool {
        match self {
            Keyword::Yes => !run.is_confirmable,
            Keyword::Override => !matches!(
                run.status,
                RunStatus::PolicyOverride | RunStatus::PostPlanAwaitingDecision
            ),
        }
    }

    fn decided_elsewhere(self) -> &'static str {
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

    /// Asks for a decision; whether it was taken elsewhere. Everything but the word discards the run.
    pub(crate) async fn confirm(&self, run: &Run, question: &str, explanation: &str, keyword: Keyword) -> Step<bool> {
        let (ui, prompt) = (self.context.console.ui.clone(), self.prompt(question, explanation));
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
            // What cannot be found out now is asked again.
            let Ok(now) = self.hosted.connection.run(&run.id).await else {
                continue;
            };
            if !keyword.is_decided(&now) {
                continue;
            }
            prompt::withdraw();
            let _ = asked.await;
            if now.status == RunStatus::Discarded {
                self.output.yellow("discarded using the UI or API");
                return Err(self.discarded());
            }
            self.output.yellow(keyword.decided_elsewhere());
            return Ok(true);
        };
        let eof = || Ended::said(format!("Error asking {}: EOF", keyword.id()));
        match answer.map_err(|_| eof())? {
            Answer::Line(line) if line.trim_end() == keyword.word() => Ok(false),
            Answer::Line(_) => {
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
        Ended::said(match self.mode {
            Mode::Destroy => "Destroy discarded.",
            _ => "Apply discarded.",
        })
    }

    /// Discards a run, if that can be done.
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

    /// Cancels a run after an interrupt, if that can be done and is wanted.
    pub(crate) async fn cancel(&self, run: &Run) -> Result<(), Diagnostics> {
        if !run.is_cancelable {
            return Ok(());
        }
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
