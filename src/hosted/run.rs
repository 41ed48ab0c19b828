//! An operation of a workspace whose execution mode is not `local`: plan, apply, destroy or refresh as a run on the server.
//!
//! An interrupt ends the wait for whatever is going on, and leads to the question whether the run is to be cancelled; the second
//! one leaves the run alone and ends the program.

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
    /// The root module's variables, as they are set.
    pub set: &'a SetVariables,
    /// Questions are allowed.
    pub input: bool,
    /// How long the run may wait for its turn; forever without a time.
    pub patience: Duration,
    /// Flags that have no meaning where the server keeps and locks the state.
    pub useless: Vec<&'static str>,
    /// A parallelism is set, which is not up to the command.
    pub parallelism: bool,
    pub options: &'a PlanOptions,
    /// Whether nobody is asked before the plan is applied.
    pub auto_approve: bool,
    /// The file that leads to the plan later.
    pub out: Option<&'a str>,
    /// The file for configuration that is generated.
    pub generate: Option<&'a str>,
    /// Whether the status says if there are changes.
    pub detailed_exitcode: bool,
    /// A saved plan to apply.
    pub saved: Option<&'a Path>,
    /// The saved plan was made on a machine, and not on the server.
    pub saved_here: bool,
}

/// Why a step was not the last one.
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
    /// An error that needs no more words than its summary.
    pub(crate) fn said(summary: impl Into<String>) -> Ended {
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
    /// The kind of plan, which `refresh` has one of its own for.
    pub(crate) mode: Mode,
    pub(crate) output: Output<'r>,
    pub(crate) stop: Stop,
    /// Whether questions are left out.
    pub(crate) auto_approve: AtomicBool,
    /// The run, once it has been started.
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
            auto_approve: AtomicBool::new(request.auto_approve || request.verb == Verb::Refresh),
            run: Mutex::default(),
            hosted,
            server,
        })
    }

    pub(crate) fn carry_out(self, options: tfe::RunOptions) -> Result<u8, Diagnostics> {
        let runtime = self.context.stores.plugins.runtime()?;
        let status = runtime.block_on(async {
            self.context.interrupts.listen(self.stop.clone());
            tokio::select! {
                status = self.operate(options) => status,
                () = self.stop.cancelled() => Ok(1),
            }
        });
        // What hangs, such as a question nobody answers, is not waited for.
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

    /// The status that the run gives; after an interrupt, the run is cancelled, if that is what is wanted.
    async fn conclude(&self, stopped: bool) -> Result<u8, Diagnostics> {
        views::prompt::resumed();
        let Some(id) = self.current_run() else {
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

    /// Cancels a run that is still waiting after the time that `-lock-timeout` gives it.
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
                self.auto_approve.store(true, Ordering::SeqCst);
                self.stop.request();
            }
        }
        std::future::pending().await
    }

    pub(crate) fn is_auto_approved(&self) -> bool {
        self.auto_approve.load(Ordering::SeqCst)
    }

    /// Whether questions can be asked.
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

    /// Waits for something, or for an interrupt.
    pub(crate) async fn unless_stopped<T>(&self, work: impl Future<Output = T>) -> Step<T> {
        tokio::select! {
            biased;
            () = self.stop.requested() => Err(Ended::Stopped),
            result = work => Ok(result),
        }
    }

    /// Asks the server; `failed` is the summary where that goes wrong.
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

/// The warning about flags that have no meaning where the server keeps and locks the state.
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
