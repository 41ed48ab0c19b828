//! A run: plan, apply, destroy or refresh on the server, in a workspace whose execution mode is not `local`.
//!
//! The first interrupt ends the command's wait, and the user is asked whether to cancel the run. The second one ends the program without
//! canceling the run.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use config::values::SetVariables;
use engine::inputs::PlanOptions;
use engine::plan::Mode;
use engine::stop::Stop;
use syntax::{Diagnostic, Diagnostics};
use tfe::{ApiError, Run, RunStatus, Server};
use views::verb::Verb;

use crate::Context;
use crate::output::{self, Output};
use crate::workspace::Hosted;

/// An operation that runs on the server if the workspace requires it.
pub struct Request<'a> {
    pub verb: Verb,
    /// Values of the root module's variables, as set by the user.
    pub set: &'a SetVariables,
    /// True if questions are allowed.
    pub input: bool,
    /// Time limit for a run to leave the queue (`-lock-timeout`). Zero means no limit.
    pub patience: Duration,
    /// Flags that have no effect because the server stores and locks the state.
    pub useless: Vec<&'static str>,
    /// True if `-parallelism` is set, which the server does not accept.
    pub parallelism: bool,
    pub options: &'a PlanOptions,
    /// True if the plan is applied without asking.
    pub auto_approve: bool,
    /// Flag that is set and that only local operations support.
    pub only_local: Option<&'static str>,
    /// File for the bookmark of a saved plan.
    pub out: Option<&'a str>,
    /// File for generated configuration.
    pub generate: Option<&'a str>,
    /// True if the exit status tells whether there are changes.
    pub detailed_exitcode: bool,
    pub saved: Option<&'a Path>,
    /// True if the saved plan was made locally and not on the server.
    pub saved_here: bool,
}

/// Reason why a run was not followed to its end.
pub(crate) enum Ended {
    Stopped,
    Failed(Diagnostics),
}

impl From<Diagnostic> for Ended {
    fn from(problem: Diagnostic) -> Ended {
        Ended::Failed(problem.into())
    }
}

impl Ended {
    /// Creates an error that has only a summary.
    pub(crate) fn with_error(summary: impl Into<String>) -> Ended {
        Diagnostic::error(summary, "").into()
    }
}

pub(crate) type Step<T> = Result<T, Ended>;

/// An operation that runs on a server.
pub(crate) struct Remote<'r> {
    pub(crate) context: &'r Context<'r>,
    pub(crate) request: &'r Request<'r>,
    pub(crate) hosted: Hosted,
    pub(crate) server: Server,
    /// Mode of the plan; `refresh` has its own mode.
    pub(crate) mode: Mode,
    pub(crate) output: Output<'r>,
    pub(crate) stop: Stop,
    /// True if questions are approved without asking. A lock timeout also sets this during the run.
    pub(crate) auto_approve: AtomicBool,
    /// Identifier of the run, once it has been started.
    pub(crate) run: Mutex<Option<String>>,
}

impl<'r> Remote<'r> {
    pub(crate) fn start(
        context: &'r Context<'r>,
        request: &'r Request<'r>,
        hosted: Hosted,
    ) -> Result<Remote<'r>, Diagnostics> {
        let server = context.stores.plugins.runtime()?.block_on(hosted.connection.server());
        let server = server.map_err(|e| output::general_error(&Server::default(), "Failed to reach the server", &e))?;
        Ok(Remote {
            context,
            request,
            mode: match request.verb {
                Verb::Refresh => Mode::RefreshOnly,
                _ => request.options.mode,
            },
            output: Output::new(context),
            stop: Stop::new(),
            // Refresh is `apply -refresh-only -auto-approve`, as in Terraform.
            auto_approve: AtomicBool::new(request.auto_approve || request.verb == Verb::Refresh),
            run: Mutex::default(),
            hosted,
            server,
        })
    }

    pub(crate) fn carry_out(self, options: tfe::RunOptions) -> Result<u8, Diagnostics> {
        let runtime = self.context.stores.plugins.runtime()?;
        // After the first interrupt, the steps end early. The second one drops all work of this program.
        let status = runtime.block_on(async {
            self.context.interrupts.listen(self.stop.clone());
            tokio::select! {
                status = self.operate(options) => status,
                () = self.stop.cancelled() => Ok(1),
            }
        });
        // A thread may still be reading from the terminal. It cannot be stopped, so it is not waited for.
        runtime.shutdown_background();
        self.context.console.ui.flush();
        status
    }

    async fn operate(&self, options: tfe::RunOptions) -> Result<u8, Diagnostics> {
        let work = async {
            match self.request.verb {
                Verb::Plan => self.plan_only(options).await,
                _ => self.apply(options).await,
            }
        };
        let result = tokio::select! {
            result = work => result,
            never = self.give_up_waiting() => match never {},
        };
        match result {
            Err(Ended::Failed(problems)) => Err(problems),
            Ok(()) => self.conclude(false).await,
            Err(Ended::Stopped) => self.conclude(true).await,
        }
    }

    /// Returns the exit status of the command. After an interrupt, asks whether to cancel the run.
    async fn conclude(&self, stopped: bool) -> Result<u8, Diagnostics> {
        // The interrupt of the last question has been handled, so the next interrupt does not belong to that question.
        views::prompt::resumed();
        let Some(id) = self.current_run() else {
            // No run was started, so there is nothing to cancel.
            return Ok(1);
        };
        let run = self.hosted.connection.run(&id).await;
        let run = run.map_err(|e| self.error("Failed to retrieve run", &e))?;
        if stopped {
            self.cancel(&run).await?;
        }
        Ok(match run.status {
            RunStatus::Canceled | RunStatus::Errored => 1,
            _ if stopped => 1,
            _ if self.request.detailed_exitcode && run.has_changes => 2,
            _ => 0,
        })
    }

    /// Waits for the time of `-lock-timeout`, and then cancels the run if it is still pending.
    async fn give_up_waiting(&self) -> std::convert::Infallible {
        let timeout = self.request.patience;
        if !timeout.is_zero() {
            tokio::time::sleep(timeout).await;
            if let Some(id) = self.current_run()
                && let Ok(run) = self.hosted.connection.run(&id).await
                && run.status == RunStatus::Pending
                && run.is_cancelable
            {
                self.output
                    .red("Lock timeout exceeded, sending interrupt to cancel the remote operation.");
                // The run is canceled without a question, because there may be nobody to answer.
                self.auto_approve.store(true, Ordering::SeqCst);
                self.stop.request();
            }
        }
        std::future::pending().await
    }

    pub(crate) fn is_auto_approved(&self) -> bool {
        self.auto_approve.load(Ordering::SeqCst)
    }

    /// Returns true if the user can be asked.
    pub(crate) fn has_input(&self) -> bool {
        self.request.input && self.context.console.stream.is_none()
    }

    pub(crate) fn current_run(&self) -> Option<String> {
        self.run
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn set_run(&self, run: &Run) {
        *self.run.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(run.id.clone());
    }

    pub(crate) fn error(&self, summary: &str, error: &ApiError) -> Diagnostics {
        output::general_error(&self.server, summary, error)
    }

    /// Awaits a future, but ends early after an interrupt.
    pub(crate) async fn unless_stopped<T>(&self, work: impl Future<Output = T>) -> Step<T> {
        // Biased, so that the interrupt takes precedence over work that is always ready, such as a growing log.
        tokio::select! {
            biased;
            () = self.stop.requested() => Err(Ended::Stopped),
            result = work => Ok(result),
        }
    }

    /// Awaits a request. If it fails, `failed` is the summary of the error.
    pub(crate) async fn ask<T>(&self, failed: &str, work: impl Future<Output = Result<T, ApiError>>) -> Step<T> {
        let result = self.unless_stopped(work).await?;
        result.map_err(|e| Ended::Failed(self.error(failed, &e)))
    }

    pub(crate) async fn read_run(&self, id: &str) -> Step<Run> {
        self.ask("Failed to retrieve run", self.hosted.connection.run(id)).await
    }

    pub(crate) async fn pause(&self, time: Duration) -> Step<()> {
        self.unless_stopped(tokio::time::sleep(time)).await
    }
}

/// Warns of flags that have no effect because the server stores and locks the state.
pub(crate) fn useless_flags(given: &[&str]) -> Option<Diagnostic> {
    (!given.is_empty()).then(|| {
        Diagnostic::warning(
            "Options without effect",
            format!(
                "This operation runs on a server, which keeps the state of the workspace and locks it by itself. These options do \
                 nothing here: {}.",
                given.join(", ")
            ),
        )
    })
}
