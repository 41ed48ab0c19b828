//! Stages of a run in which the organization's tasks and policies are evaluated.

use std::time::{Duration, Instant};

use tfe::{Evaluation, Run, Stage, TaskResult};

use crate::confirm::Keyword;
use crate::output::RULE;
use crate::run::{Ended, Remote, Step};
use crate::waiting::{elapsed, pause};

/// Shortest pause between two requests for a stage.
const FIRST_PAUSE: Duration = Duration::from_secs(4);
/// Longest pause between two requests for a stage.
const LONGEST_PAUSE: Duration = Duration::from_secs(12);

/// Parts of a stage that have been shown, and the time when waiting for it began.
struct Shown {
    started: Instant,
    results: bool,
    policies_begun: bool,
    policies: bool,
}

/// Progress of the evaluation of a stage.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Pending,
    Done,
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().collect::<String>() + letters.as_str()
    })
}

impl Remote<'_> {
    /// If a run has a stage of this kind, waits for it and shows its results.
    pub(crate) async fn tasks_of(&self, run: &Run, kind: &str, title: &str) -> Step<()> {
        let connection = &self.hosted.connection;
        let stages = self
            .ask("Failed to retrieve run", connection.task_stages(&run.id))
            .await?;
        let Some(stage) = stages.into_iter().find(|stage| stage.stage == kind) else {
            return Ok(());
        };
        self.output.line("");
        self.output
            .line(format!("{}\n", self.output.style().bold(format!("{title}:"))));
        let mut shown = Shown {
            started: Instant::now(),
            results: false,
            policies_begun: false,
            policies: false,
        };
        for n in 0.. {
            self.pause(pause(FIRST_PAUSE, LONGEST_PAUSE, n)).await?;
            let stage = self
                .ask("Failed to retrieve task stage", connection.stage(&stage.id))
                .await?;
            match &*stage.status {
                "pending" => continue,
                // The run ended before the stage, so its results will never arrive.
                "unreachable" => return Ok(()),
                "running" => {
                    self.show_stage(&stage, &mut shown).await?;
                    continue;
                }
                _ => {}
            }
            // The stage may end before the server's answer contains all of its results.
            if self.show_stage(&stage, &mut shown).await? == Progress::Pending {
                self.output.line(RULE);
                continue;
            }
            match &*stage.status {
                "passed" => return Ok(()),
                "awaiting_override" => return self.override_stage(run, &stage).await,
                "canceled" | "errored" | "failed" => {
                    return Err(Ended::with_error(format!("Task Stage {}.", stage.status)));
                }
                other => return Err(Ended::with_error(format!("Invalid Task stage status: {other}"))),
            }
        }
        Ok(())
    }

    async fn show_stage(&self, stage: &Stage, shown: &mut Shown) -> Step<Progress> {
        if !stage.results.is_empty() && !shown.results {
            if self.show_results(&stage.results, shown.started) == Progress::Pending {
                return Ok(Progress::Pending);
            }
            shown.results = true;
        }
        if stage.evaluations.is_empty() || shown.policies {
            return Ok(Progress::Done);
        }
        if !std::mem::replace(&mut shown.policies_begun, true) {
            // The line is written only once, although the stage is shown again in each round.
            self.output.line(format!("{RULE}\n"));
            self.output
                .line(format!("{}\n", self.output.style().bold("Policy Evaluations")));
        }
        let is = |names: &[&str]| stage.evaluations.iter().any(|e| names.contains(&&*e.status));
        if is(&["unreachable"]) {
            self.output.line("Skipping policy evaluation.");
            self.output.line(format!("\n{RULE}\n"));
        } else if is(&["running", "pending", "queued"]) {
            self.with_time("Evaluating ... ", shown.started);
            return Ok(Progress::Pending);
        } else {
            for evaluation in &stage.evaluations {
                self.show_evaluation(evaluation).await?;
            }
        }
        shown.policies = true;
        Ok(Progress::Done)
    }

    fn with_time(&self, text: &str, started: Instant) {
        let time = format!("({} elapsed)", elapsed(started.elapsed().as_secs()));
        self.output.line(format!("{text:<50}{}", self.output.style().dim(time)));
    }

    fn show_results(&self, results: &[TaskResult], started: Instant) -> Progress {
        if results.iter().any(|result| result.status == "unreachable") {
            self.output.line("Skipping task results.");
            self.output.line(format!("\n{RULE}\n"));
            return Progress::Done;
        }
        let count = |names: &[&str]| results.iter().filter(|r| names.contains(&&*r.status)).count();
        let (pending, passed) = (count(&["running", "pending"]), count(&["passed"]));
        let failed = results.len() - pending - passed;
        if pending > 0 {
            let text = format!("{pending} tasks still pending, {passed} passed, {failed} failed ... ");
            self.with_time(&text, started);
            return Progress::Pending;
        }
        self.with_time(
            &format!("All tasks completed! {passed} passed, {failed} failed"),
            started,
        );
        self.output.line("");
        let (output, style) = (&self.output, self.output.style());
        let inner = |text: String| output.foreign(&format!("│ {text}"));
        for result in results {
            let status = capitalised(&result.status);
            let status = match result.status == "passed" {
                true => style.green(status),
                false => style.red(format!("{status} ({})", capitalised(&result.level))),
            };
            inner(format!("{} ⸺   {status}", result.name));
            if !result.message.is_empty() {
                inner(style.dim(&result.message));
            }
            if !result.url.is_empty() {
                inner(style.dim(format!("Details: {}", result.url)));
            }
            inner(String::new());
        }
        let breached: Vec<&TaskResult> = results
            .iter()
            .filter(|r| r.status != "passed" && r.level == "mandatory")
            .collect();
        match breached.as_slice() {
            [] => {}
            [task] => output.line(format!(
                "{} the run failed because the run task, {}, is required to succeed",
                style.bad("Error:"),
                task.name
            )),
            tasks => output.line(format!(
                "{} the run failed because {} mandatory tasks are required to succeed",
                style.bad("Error:"),
                tasks.len()
            )),
        }
        let overall = match (breached.len(), failed) {
            (0, 0) => style.green("Passed"),
            (0, _) => style.green("Passed with advisory failures"),
            _ => style.red("Failed"),
        };
        inner(String::new());
        inner(format!("{} {overall}", style.bold("Overall Result:")));
        output.line(format!("\n{RULE}\n"));
        Progress::Done
    }

    async fn show_evaluation(&self, evaluation: &Evaluation) -> Step<()> {
        let (output, style) = (&self.output, self.output.style());
        let kind = if evaluation.kind == "opa" { "OPA" } else { "Sentinel" };
        let passed = evaluation.status == "passed";
        let mut result = match passed {
            true => style.green("PASSED"),
            false => style.red("FAILED"),
        };
        if passed && evaluation.advisory_failed > 0 {
            result.push_str(" (with advisory)");
        }
        output.line("--------------------------------\n");
        output.line(format!("{}\n", style.bold(format!("{kind} Policy Evaluation"))));
        output.line(format!("{} {result}", style.bold("→→ Overall Result:")));
        output.line(style.dim(match passed {
            true => format!(" No {kind} policy that must hold has failed: the run may go on."),
            false => format!(" At least one {kind} policy has failed. What it found is listed below."),
        }));
        output.line(format!("{} policies evaluated\n", evaluation.evaluated));
        let outcomes = self.hosted.connection.policy_outcomes(&evaluation.id);
        let outcomes = self.ask("Failed to retrieve policy outcomes", outcomes).await?;
        for (i, set) in outcomes.iter().enumerate() {
            let name = style.bold(format!("{} ({})", set.name, set.policies.len()));
            output.line(format!("→ Policy set {}: {name}", i + 1));
            for policy in &set.policies {
                output.foreign(&format!("  ↳ Policy name: {}", style.bold(&policy.name)));
                match (&*policy.status, &*policy.level) {
                    ("passed", _) => output.line(format!("     | {}", style.green("✓ Passed"))),
                    ("failed", "advisory") => output.line(format!("     | {}", style.yellow("Ⓘ Advisory"))),
                    ("failed", _) => output.line(format!("     | {}", style.red("× Failed"))),
                    _ => {}
                }
                let description = match &*policy.description {
                    "" => "No description available",
                    text => text,
                };
                output.foreign(&format!("     | {}", style.dim(description)));
            }
        }
        Ok(())
    }

    /// Asks whether to override the failures of a stage, and overrides them unless another user has done that on the server.
    /// A refusal is an error.
    async fn override_stage(&self, run: &Run, stage: &Stage) -> Step<()> {
        self.output.line("--------------------------------\n");
        self.output.bold("→→ Override");
        if !self.has_input() {
            return Err(Ended::with_error(
                "Policies failed, and -input=false leaves nobody to ask. Override them on the page of the run.",
            ));
        }
        let decided_on_server = self
            .confirm(
                run,
                "Do you want to override the failed policies?",
                "Only 'override' will be accepted to override.",
                Keyword::Override,
            )
            .await?;
        if !decided_on_server {
            let overridden = self.hosted.connection.override_stage(&stage.id);
            self.ask("Failed to override policy check", overridden).await?;
        }
        self.output.line(RULE);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_begin_with_a_capital() {
        assert_eq!(capitalised("passed"), "Passed");
        assert_eq!(capitalised(""), "");
    }
}
