//! Waiting until a run begins to plan or apply.

use std::time::{Duration, Instant};

use tfe::{Run, RunStatus};
use views::verb::Verb;

use crate::run::{Remote, Step};

/// Interval at which the reason of the wait is repeated.
const REMINDER: Duration = Duration::from_secs(30);

/// Returns the pause before the n-th repetition of a request. It grows from `first` to `longest`.
pub(crate) fn pause(first: Duration, longest: Duration, n: u32) -> Duration {
    // The exponent is limited, so that the power remains finite.
    first.mul_f64(2_f64.powf(f64::from(n.min(50)) / 5.0)).min(longest)
}

/// Returns the n-th pause of most waits, from one to three seconds.
pub(crate) fn usual_pause(n: u32) -> Duration {
    pause(Duration::from_secs(1), Duration::from_secs(3), n)
}

/// Timer of a wait, which also tells when a reminder is due.
pub(crate) struct Patience {
    started: Instant,
    said: Instant,
    first: bool,
}

impl Patience {
    pub fn new() -> Patience {
        let now = Instant::now();
        Patience {
            started: now,
            said: now,
            first: true,
        }
    }

    /// If a reminder is due, returns the elapsed time as text, which is empty for the first reminder.
    pub fn remind(&mut self) -> Option<String> {
        if std::mem::take(&mut self.first) {
            return Some(String::new());
        }
        if self.said.elapsed() <= REMINDER {
            return None;
        }
        self.said = Instant::now();
        // Rounded down to a multiple of the interval, so that reminders show round times.
        let seconds = self.started.elapsed().as_secs() / REMINDER.as_secs() * REMINDER.as_secs();
        Some(format!(" ({} elapsed)", elapsed(seconds)))
    }
}

/// Formats seconds as a duration: `1m30s`.
pub(crate) fn elapsed(seconds: u64) -> String {
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{s}s"),
        (0, m, s) => format!("{m}m{s}s"),
        (h, m, s) => format!("{h}h{m}m{s}s"),
    }
}

impl Remote<'_> {
    /// Waits while a run is pending or confirmed and has not begun. `what` is `plan` or `apply`.
    pub(crate) async fn wait_for(&self, run: &Run, what: &str) -> Step<Run> {
        let mut patience = Patience::new();
        for n in 0.. {
            self.pause(usual_pause(n)).await?;
            let run = self.read_run(&run.id).await?;
            if !matches!(run.status, RunStatus::Pending | RunStatus::Confirmed) {
                if n == 0 && what == "plan" {
                    self.output.line(format!("Waiting for the {what} to start...\n"));
                }
                if n > 0 {
                    self.output.line("");
                }
                return Ok(run);
            }
            if let Some(elapsed) = patience.remind() {
                let text = self.obstacle(&run, what).await?;
                self.output.line(format!("{text}{elapsed}"));
            }
        }
        Ok(run.clone())
    }

    /// Describes what a run is waiting for.
    async fn obstacle(&self, run: &Run, what: &str) -> Step<String> {
        let connection = &self.hosted.connection;
        let name = &self.hosted.workspace.name;
        let workspace = self
            .ask("Failed to retrieve workspace", connection.workspace(name))
            .await?;
        let workspace = workspace.unwrap_or_else(|| self.hosted.workspace.clone());
        // If the current run of a locked workspace is still pending, the lock belongs to a user and not to a run.
        if let Some(current) = workspace.current_run.as_deref().filter(|_| workspace.locked) {
            let current = self
                .ask("Failed to retrieve current run", connection.run(current))
                .await?;
            if current.status == RunStatus::Pending {
                return Ok("Waiting for the manually locked workspace to be unlocked...".to_owned());
            }
        }
        if workspace.current_run.as_deref() != Some(&run.id) {
            let plan_only = self.request.verb == Verb::Plan;
            let before = connection.runs_before(run, &workspace, plan_only);
            let before = self.ask("Failed to retrieve run list", before).await?;
            if before > 0 {
                return Ok(format!("Waiting for {before} run(s) to finish before being queued..."));
            }
        }
        let before = self
            .ask("Failed to retrieve queue", connection.queued_before(run))
            .await?;
        if before > 0 {
            return Ok(format!(
                "Waiting for {before} queued run(s) to finish before starting..."
            ));
        }
        Ok(format!("Waiting for the {what} to start..."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_from_one_to_three_seconds() {
        assert_eq!(usual_pause(0), Duration::from_secs(1));
        assert!(usual_pause(5) == Duration::from_secs(2));
        assert_eq!(usual_pause(u32::MAX), Duration::from_secs(3));
    }

    #[test]
    fn times_are_written_as_durations() {
        assert_eq!(elapsed(30), "30s");
        assert_eq!(elapsed(90), "1m30s");
        assert_eq!(elapsed(3600), "1h0m0s");
        let mut patience = Patience::new();
        assert_eq!(patience.remind().as_deref(), Some(""));
        assert_eq!(patience.remind(), None);
    }
}
