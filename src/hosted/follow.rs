//! The steps of a run, from its start to its end.

use engine::plan::Mode;
use tfe::{Run, RunOptions, RunStatus};
use views::verb::Verb;

use crate::bookmark::{self, Bookmark};
use crate::confirm::Keyword;
use crate::logs::Phase;
use crate::run::{Ended, Remote, Step};
use views::wrap::wrapped;

impl Remote<'_> {
    /// Makes a plan. With `-out`, writes the bookmark of the plan.
    pub(crate) async fn plan_only(&self, options: RunOptions) -> Step<()> {
        let run = self.plan(options).await?;
        if let Some(path) = self.request.out {
            let saved = Bookmark::new(&run.id, &self.hosted.connection.settings.hostname).write(path.as_ref());
            saved.map_err(Ended::from)?;
        }
        self.next_step(&run);
        Ok(())
    }

    /// Prints how to apply the plan. Prints nothing in machine-readable output, in automation, or if the run has failed or was canceled.
    fn next_step(&self, run: &Run) {
        let ended = matches!(
            run.status,
            RunStatus::Errored | RunStatus::Canceled | RunStatus::Discarded
        );
        if self.context.console.stream.is_some() || self.context.in_automation || ended {
            return;
        }
        let (width, command) = (self.context.console.ui.width(), self.context.stores.program.command);
        self.output.line(format!("\n{}", crate::output::RULE));
        match self.request.out {
            Some(out) => self.output.line(views::plan::saved(out, width, command)),
            None => self.output.line(views::plan::not_saved(width, command)),
        }
    }

    /// Makes a plan, asks for approval, and applies it; or applies a saved plan.
    pub(crate) async fn apply(&self, options: RunOptions) -> Step<()> {
        let mut approved = self.is_auto_approved();
        let run = match self.request.saved {
            Some(path) => {
                // A saved plan was reviewed when it was made, so it is confirmed here without a question.
                approved = false;
                self.saved_run(path).await?
            }
            None => {
                if self.request.verb == Verb::Refresh {
                    self.output.yellow(&format!(
                        "Proceeding with '{} apply -refresh-only -auto-approve'.\n",
                        self.context.stores.program.command
                    ));
                }
                let run = self.plan(options).await?;
                if !run.has_changes || matches!(run.status, RunStatus::Canceled | RunStatus::Errored) {
                    return Ok(());
                }
                // The run is read again, because the checks may have changed the permitted actions.
                let run = self.read_run(&run.id).await?;
                approved |= !self.hosted.is_cloud() && self.hosted.workspace.auto_apply;
                if !approved && !run.is_confirmable {
                    return Ok(());
                }
                if !approved || !self.hosted.is_cloud() {
                    self.check_right_to_apply(&run).await?;
                }
                if approved {
                    self.output.line("");
                    // Nothing has to be confirmed, because the server continues by itself. Only for `backend "remote"` the run was created
                    // without -auto-approve, so that it must be confirmed unless the workspace applies automatically.
                    approved = self.hosted.is_cloud() || self.hosted.workspace.auto_apply;
                } else {
                    approved = self.confirm_apply(&run).await?;
                }
                run
            }
        };
        if !approved {
            let applied = self.hosted.connection.apply_run(&run.id);
            self.ask("Failed to approve the apply command", applied).await?;
        }
        self.carried_out(&run).await
    }

    /// Follows a confirmed apply.
    async fn carried_out(&self, run: &Run) -> Step<()> {
        if self.hosted.is_cloud() {
            self.tasks_of(run, "pre_apply", "Pre-apply Tasks").await?;
        }
        let run = self.wait_for(run, "apply").await?;
        self.show_log(Phase::Apply, run.apply.as_deref()).await?;
        Ok(())
    }

    /// Asks for approval; returns true if the run was confirmed on the server meanwhile.
    async fn confirm_apply(&self, run: &Run) -> Step<bool> {
        if !self.has_input() {
            return Err(Ended::with_error(
                "The run waits for a confirmation, and -input=false leaves nobody to ask. Confirm it on the page of the run.",
            ));
        }
        let (tool, workspace) = (self.context.stores.program.tool, &self.hosted.workspace.name);
        let (question, explanation) = if self.mode == Mode::Destroy {
            (
                format!("Do you really want to destroy all resources in workspace \"{workspace}\"?"),
                "Every object listed above is deleted for good.\nOnly 'yes' will be accepted to confirm.".to_owned(),
            )
        } else {
            (
                format!("Do you want to perform these actions in workspace \"{workspace}\"?"),
                format!("{tool} will perform the actions described above.\nOnly 'yes' will be accepted to approve."),
            )
        };
        self.confirm(run, &question, &explanation, Keyword::Yes).await
    }

    /// If the user may not apply the run, discards it, because it would block the queue of the workspace.
    async fn check_right_to_apply(&self, run: &Run) -> Step<()> {
        if self.hosted.is_cloud() || self.hosted.workspace.auto_apply || run.can_apply {
            return Ok(());
        }
        self.discard(run).await?;
        Err(syntax::Diagnostic::error(
            "Insufficient rights to approve the pending changes",
            format!(
                "The token may not have the changes applied, so the run was discarded: it would keep others waiting. To have \
                 another user approve it, start the run from the page of the workspace: {}",
                self.hosted.run_url(&run.id)
            ),
        )
        .into())
    }

    /// Uploads the configuration, starts a run, and follows the run until its plan and the checks of that plan have ended.
    async fn plan(&self, mut options: RunOptions) -> Step<Run> {
        self.header(if self.request.verb == Verb::Plan {
            "plan"
        } else {
            "apply"
        });
        options.configuration = self.upload().await?.id;
        let (connection, workspace) = (&self.hosted.connection, &self.hosted.workspace);
        let created = connection.create_run(workspace, &options);
        let run = self.ask("Failed to create run", created).await?;
        // From here on, an interrupt asks whether to cancel the run.
        self.set_run(&run);
        self.address(&run);
        let cloud = self.hosted.is_cloud();
        if cloud {
            let warnings = connection.run_warnings(&run.id);
            for warning in self.ask("Failed to retrieve run events", warnings).await? {
                self.output
                    .line(format!("{} {warning}\n", self.output.style().yellow("Warning:")));
            }
            self.tasks_of(&run, "pre_plan", "Pre-plan Tasks").await?;
        }
        let run = self.wait_for(&run, "plan").await?;
        self.show_log(Phase::Plan, run.plan.as_deref()).await?;
        if cloud {
            self.show_plan(&run).await?;
        }
        let run = self.read_run(&run.id).await?;
        // The results of tasks and policies are shown after a failure, too, because they may be the reason.
        self.tasks_of(&run, "post_plan", "Post-plan Tasks").await?;
        if let Some(estimate) = &run.cost_estimate {
            self.costs(&run, estimate).await?;
        }
        if !run.policy_checks.is_empty() {
            self.policies(&run).await?;
        }
        Ok(run)
    }

    /// Announces the output of a run.
    fn header(&self, what: &str) {
        let place = match self.hosted.is_cloud() {
            true => &*self.server.name,
            false => "the remote backend",
        };
        let more = match what {
            "plan" => "Ctrl-C ends the output here, and asks whether the plan goes on there.",
            _ => "Ctrl-C ends the output here, and asks whether the run goes on there, as long as it can be canceled.",
        };
        let text = format!("Running {what} in {place}. Its output is shown here. {more}");
        self.output.yellow(&wrapped(&text, self.context.console.ui.width()));
        self.output.line(format!("\nPreparing the remote {what}...\n"));
    }

    /// Prints the address of a run.
    fn address(&self, run: &Run) {
        self.output.yellow("To view this run in a browser, visit:");
        self.output.yellow(&self.hosted.run_url(&run.id));
        self.output.line("");
    }

    /// Reads the run of a saved plan, and checks that it can be applied.
    async fn saved_run(&self, path: &std::path::Path) -> Step<Run> {
        let saved = Bookmark::read(path).map_err(Ended::from)?;
        let settings = &self.hosted.connection.settings;
        if saved.hostname != settings.hostname {
            return Err(syntax::Diagnostic::error(
                "Saved plan is for a different hostname",
                format!(
                    "The plan is a run on {}, and the configuration names {}.",
                    saved.hostname, settings.hostname
                ),
            )
            .into());
        }
        let read = self.hosted.connection.run_with(&saved.run_id, "workspace");
        let (run, included) = self.ask("Failed to retrieve run", read).await?;
        let workspace = included.workspace();
        if run.workspace.as_deref() != Some(&self.hosted.workspace.id) {
            let name = workspace.map_or_else(String::new, |workspace| format!(" \"{}\"", workspace.name));
            return Err(syntax::Diagnostic::error(
                "Saved plan is for a different workspace",
                format!(
                    "The plan is a run of the workspace{name}, and \"{}\" of the organization \"{}\" is selected.",
                    self.hosted.workspace.name, settings.organization
                ),
            )
            .into());
        }
        if !run.is_confirmable {
            return Err(bookmark::unusable(&run, &self.hosted.run_url(&run.id)).into());
        }
        self.set_run(&run);
        self.header("apply");
        self.address(&run);
        Ok(run)
    }
}
