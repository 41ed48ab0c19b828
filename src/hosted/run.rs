//! A run: plan, apply, destroy or refresh on the server, for a workspace whose execution mode is not `local`.
//!
//! The first interrupt ends any wait and asks whether to cancel the run; the second one ends the program without
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

/// An operation that may have to run on a server.
pub struct Request<'a> {
    pub verb: Verb,
    /// Values of the root module's variables, as set by the user.
    pub set: &'a SetVariables,
    /// Questions are allowed.
    pub input: bool,
    /// Time limit for a run to leave the queue; zero for no limit.
    pub patience: Duration,
    /// Flags that have no effect because the server stores and locks the state.
    pub useless: Vec<&'static str>,
    /// Set if `-parallelism` is used, which the server does not accept.
    pub parallelism: bool,
    pub options: &'a PlanOptions,
    /// Apply the plan without asking.
    pub auto_approve: bool,
    /// Flag that is set and applies to local operations only.
    pub only_local: Option<&'static str>,
    /// File for the bookmark of a saved plan.
    pub out: Option<&'a str>,
    /// File for generated configuration.
    pub generate: Option<&'a str>,
    /// The exit status reports whether there are changes.
    pub detailed_exitcode: bool,
    pub saved: Option<&'a Path>,
    /// The saved plan was made locally, not on the server.
    pub saved_here: bool,
}

/// Reason why the steps of a run have ended.
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
    /// Creates an error that consists of its summary.
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
    /// Approve without asking. Set during the run by a lock timeout.
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
        // The first interrupt requests a stop, after which the steps end; the second one cancels all work here.
        let status = runtime.block_on(async {
            self.context.interrupts.listen(self.stop.clone());
            tokio::select! {
                status = self.operate(options) => status,
                () = self.stop.cancelled() => Ok(1),
            }
        });
        // A thread that reads the terminal cannot be stopped, and must not be waited for.
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

    /// Returns the exit status of the command; after an interrupt, asks whether to cancel the run.
    async fn conclude(&self, stopped: bool) -> Result<u8, Diagnostics> {
        // The question has handled its interrupt, so the next interrupt is a new one.
        views::prompt::resumed();
        let Some(id) = self.current_run() else {
            // No run was started, so the interrupt ends the operation itself.
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

    /// Cancels a run that is still pending when the time of `-lock-timeout` is over.
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
                // The cancellation must not ask, as possibly nobody can answer.
                self.auto_approve.store(true, Ordering::SeqCst);
                self.stop.request();
            }
        }
        std::future::pending().await
    }

    pub(crate) fn is_auto_approved(&self) -> bool {
        self.auto_approve.load(Ordering::SeqCst)
    }

    /// Returns true if questions can be asked.
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

    /// Awaits a future or an interrupt.
    pub(crate) async fn unless_stopped<T>(&self, work: impl Future<Output = T>) -> Step<T> {
        // The selection is biased, so that an interrupt takes precedence over work that is always ready, such
        // as a log that keeps arriving.
        tokio::select! {
            biased;
            () = self.stop.requested() => Err(Ended::Stopped),
            result = work => Ok(result),
        }
    }

    /// Awaits a request; `failed` is the summary of its error.
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
