//! Checks between the plan and the apply of a run: cost estimates and policies.

use tfe::{PolicyCheck, Run, RunStatus};
use views::verb::Verb;

use crate::confirm::Keyword;
use crate::output::RULE;
use crate::run::{Ended, Remote, Step};
use crate::waiting::{Patience, usual_pause};

impl Remote<'_> {
    /// Formats a title as Terraform does for the same backend.
    fn title(&self, words: &str) -> String {
        if self.hosted.is_cloud() {
            return words.to_owned();
        }
        // In titles of `backend "remote"`, only the first word has a capital letter.
        let (first, rest) = words.split_once(' ').unwrap_or((words, ""));
        format!("{first} {}", rest.to_lowercase())
    }

    fn show_title(&self, title: &str) {
        match self.hosted.is_cloud() {
            true => self
                .output
                .line(format!("{}\n", self.output.style().bold(format!("{title}:")))),
            false => self.output.line(format!("{title}:\n")),
        }
    }

    /// Returns true if the run continues with an apply, so that a separator is printed after this part of the output.
    fn goes_on(&self, run: &Run) -> bool {
        run.has_changes && self.request.verb != Verb::Plan
    }

    /// Waits for the cost estimate, and shows it.
    pub(crate) async fn costs(&self, run: &Run, id: &str) -> Step<()> {
        let title = self.title("Cost Estimation");
        let has_ended = matches!(run.status, RunStatus::Canceled | RunStatus::Errored);
        let mut patience = Patience::new();
        for n in 0.. {
            self.pause(usual_pause(n)).await?;
            let read = self.hosted.connection.cost_estimate(id);
            let estimate = self.ask("Failed to retrieve cost estimate", read).await?;
            // The run has ended, so its estimate will not be completed any more.
            if estimate.status != "finished" && has_ended {
                return Ok(());
            }
            if n == 0 {
                self.output.line(format!("\n{RULE}\n"));
            }
            match &*estimate.status {
                "finished" => {
                    let (sign, amount) = match estimate.delta.strip_prefix('-') {
                        Some(amount) => ('-', amount),
                        None => ('+', &*estimate.delta),
                    };
                    self.show_title(&title);
                    self.output.line(format!(
                        "Resources: {} of {} estimated",
                        estimate.matched, estimate.resources
                    ));
                    self.output
                        .line(format!("           ${}/mo {sign}${amount}", estimate.proposed));
                    if run.policy_checks.is_empty() && self.goes_on(run) {
                        self.output.line(format!("\n{RULE}"));
                    }
                    return Ok(());
                }
                "pending" | "queued" => {
                    if let Some(elapsed) = patience.remind() {
                        self.show_title(&title);
                        self.output
                            .line(format!("Waiting for cost estimate to complete...{elapsed}\n"));
                    }
                }
                "skipped_due_to_targeting" => {
                    self.show_title(&title);
                    self.output
                        .line("Not available for this plan, because it was created with the -target option.");
                    self.output.line(format!("\n{RULE}"));
                    return Ok(());
                }
                "errored" => {
                    self.output.line(format!("{title} errored.\n"));
                    self.output.line(format!("\n{RULE}"));
                    return Ok(());
                }
                "canceled" => return Err(Ended::with_error(format!("{title} canceled."))),
                // An unknown status may never change, so it is not waited for.
                other => {
                    return Err(Ended::with_error(format!(
                        "Unknown or unexpected cost estimate state: {other}"
                    )));
                }
            }
        }
        Ok(())
    }

    /// Waits for the policy checks, and shows their results. An apply asks whether to override a soft failure; a plan ends with it.
    pub(crate) async fn policies(&self, run: &Run) -> Step<()> {
        self.output.line(format!("\n{RULE}\n"));
        let connection = &self.hosted.connection;
        for (i, id) in run.policy_checks.iter().enumerate() {
            let output = connection.policy_output(id);
            let output = self.ask("Failed to retrieve policy check logs", output).await?;
            let check = connection.policy_check(id);
            let check = self.ask("Failed to retrieve policy check", check).await?;
            let has_ended = matches!(run.status, RunStatus::Canceled | RunStatus::Errored);
            // The run ended before this check, so the check has no result to show.
            if has_ended && matches!(&*check.status, "pending" | "queued" | "unreachable") {
                continue;
            }
            let title = match &*check.scope {
                "organization" => self.title("Organization Policy Check"),
                "workspace" => self.title("Workspace Policy Check"),
                scope => format!("Unknown policy check ({scope})"),
            };
            self.show_title(&title);
            for line in output.lines() {
                self.output.foreign(line);
            }
            match &*check.status {
                "passed" => {
                    if self.goes_on(run) || i + 1 < run.policy_checks.len() {
                        self.output.line(format!("\n{RULE}"));
                    }
                }
                "errored" => return Err(Ended::with_error(format!("{title} errored."))),
                "hard_failed" => return Err(Ended::with_error(format!("{title} hard failed."))),
                "soft_failed" => {
                    self.soft_failed(run, &check, &title).await?;
                    self.output.line(RULE);
                }
                "overridden" => {}
                other => {
                    return Err(Ended::with_error(format!(
                        "Unknown or unexpected policy state: {other}"
                    )));
                }
            }
        }
        Ok(())
    }

    async fn soft_failed(&self, run: &Run, check: &PolicyCheck, title: &str) -> Step<()> {
        let address = self.hosted.run_url(&run.id);
        // Only an apply needs the override, so a plan does not ask for it.
        if self.request.verb == Verb::Plan || !check.can_be_overridden {
            let detail = format!("To view this run in the browser, visit:\n{address}");
            return Err(syntax::Diagnostic::error(format!("{title} soft failed."), detail).into());
        }
        if !self.is_auto_approved() {
            if !self.has_input() {
                return Err(Ended::with_error(
                    "Policy checks failed softly, and -input=false leaves nobody to ask. Override them on the page of the run.",
                ));
            }
            let decided_on_server = self
                .confirm(
                    run,
                    "Do you want to override the soft failed policy check?",
                    "Only 'override' will be accepted to override.",
                    Keyword::Override,
                )
                .await?;
            if decided_on_server {
                return Ok(());
            }
        }
        let overridden = self.hosted.connection.override_policy(&check.id);
        self.ask("Failed to override policy check", overridden).await
    }
}
