//! Runs in HCP Terraform and Terraform Enterprise: plan, apply, destroy and refresh of a workspace whose execution mode is not
//! `local` happen on the server, and are followed from here.
//!
//! [`perform`] is asked by these commands first. It finds out from the record of the last `init` whether the workspace is such a
//! one ([`hosted`]); the store process of the backend is not needed for that, nor for anything here, since states stay where they
//! are. Then the configuration is uploaded ([`upload`]), a run is started ([`request`]), waited for ([`waiting`]) and followed
//! ([`follow`]): its logs ([`logs`]), tasks ([`tasks`]), costs and policies ([`checks`]), and the questions on the way
//! ([`confirm`]). What a workspace keeps for its own runs, some commands that run here want, too ([`variables`]). A plan that is kept on the server is known by a small file ([`bookmark`]).
//!
//! An interrupt ends the wait for whatever is going on, and leads to the question whether the run is to be cancelled; the second
//! one leaves the run alone and ends the program.

pub mod bookmark;
mod checks;
mod confirm;
mod follow;
pub mod hosted;
mod logs;
mod output;
pub mod outputs;
mod request;
pub mod show;
mod tasks;
mod upload;
pub mod variables;
mod waiting;

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::inputs::PlanOptions;
use engine::plan::Mode;
use engine::stop::Stop;
use syntax::{Diagnostic, Diagnostics};
use tfe::{ApiError, Run, RunStatus, Server};

use crate::args::groups::StateFlags;
use crate::args::operation::OperationArguments;
use crate::interrupt;
use crate::outcome::{Failure, Status, Within as _};
use crate::session::Session;
use crate::workdir;
use hosted::Hosted;
use output::Output;
use views::verb::Verb;

/// An operation that may have to run on a server.
pub struct Request<'a> {
    /// The command.
    pub verb: Verb,
    /// The arguments of the operation.
    pub arguments: &'a OperationArguments<'a>,
    /// The plan.
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
}

/// Why a step was not the last one.
enum Ended {
    /// An interrupt.
    Stopped,
    /// Something went wrong.
    Failed(Diagnostics),
}

impl From<Diagnostic> for Ended {
    fn from(problem: Diagnostic) -> Ended {
        Ended::Failed(problem.into())
    }
}

impl Ended {
    /// An error that needs no more words than its summary.
    fn said(summary: impl Into<String>) -> Ended {
        Diagnostic::error(summary, "").into()
    }
}

type Step<T> = Result<T, Ended>;

/// An operation that runs on a server.
struct Remote<'r> {
    session: &'r Session,
    request: &'r Request<'r>,
    hosted: Hosted,
    server: Server,
    /// The kind of plan, which `refresh` has one of its own for.
    mode: Mode,
    output: Output<'r>,
    stop: Stop,
    /// Whether questions are left out.
    auto_approve: AtomicBool,
    /// The run, once it has been started.
    run: Mutex<Option<String>>,
}

/// Runs an operation on a server, if the workspace is one whose operations run there; `None` for all others.
///
/// # Errors
/// The operation failed.
pub fn perform(session: &Session, request: &Request<'_>) -> Result<Option<Status>, Failure> {
    if !hosted::may_be(session) || !workdir::has_configuration() {
        return Ok(None);
    }
    let (mut project, problems) = workdir::read(session);
    if problems.has_errors() {
        // The operation reports them, and what else is wrong.
        return Ok(None);
    }
    let Some(hosted) = hosted::of_operation(session, &project.config).within(&project.sources)? else {
        return Ok(None);
    };
    session.show_now(&problems, &project.sources);
    let result = Remote::start(session, request, hosted).and_then(|remote| {
        let options = request::check(&remote, &mut project);
        Ok((remote, options?))
    });
    let (remote, options) = result.within(&project.sources)?;
    Ok(Some(remote.carry_out(options)?))
}

impl<'r> Remote<'r> {
    fn start(session: &'r Session, request: &'r Request<'r>, hosted: Hosted) -> Result<Remote<'r>, Diagnostics> {
        let server = session.runtime()?.block_on(hosted.connection.server());
        let server = server.map_err(|e| output::general_error(&Server::default(), "Failed to reach the server", &e))?;
        Ok(Remote {
            session,
            request,
            mode: match request.verb {
                Verb::Refresh => Mode::RefreshOnly,
                _ => request.options.mode,
            },
            output: Output::new(session),
            stop: Stop::new(),
            auto_approve: AtomicBool::new(request.auto_approve || request.verb == Verb::Refresh),
            run: Mutex::default(),
            hosted,
            server,
        })
    }

    fn carry_out(self, options: tfe::RunOptions) -> Result<Status, Diagnostics> {
        let runtime = self.session.runtime()?;
        let status = runtime.block_on(async {
            interrupt::listen_telling(
                self.session.ui.clone(),
                self.session.stream.clone(),
                self.stop.clone(),
                std::sync::Arc::default(),
            );
            tokio::select! {
                status = self.operate(options) => status,
                () = self.stop.cancelled() => Ok(1),
            }
        });
        // What hangs, such as a question nobody answers, is not waited for.
        runtime.shutdown_background();
        self.session.ui.flush();
        status
    }

    async fn operate(&self, options: tfe::RunOptions) -> Result<Status, Diagnostics> {
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
    async fn conclude(&self, stopped: bool) -> Result<Status, Diagnostics> {
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
        let timeout = self.request.arguments.lock.timeout.unwrap_or_default();
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

    fn is_auto_approved(&self) -> bool {
        self.auto_approve.load(Ordering::SeqCst)
    }

    /// Whether questions can be asked.
    fn has_input(&self) -> bool {
        self.session.env.input() && self.request.arguments.input && self.session.stream.is_none()
    }

    fn current_run(&self) -> Option<String> {
        self.run
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone()
    }

    fn set_run(&self, run: &Run) {
        *self.run.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(run.id.clone());
    }

    fn error(&self, summary: &str, error: &ApiError) -> Diagnostics {
        output::general_error(&self.server, summary, error)
    }

    /// Waits for something, or for an interrupt.
    async fn unless_stopped<T>(&self, work: impl Future<Output = T>) -> Step<T> {
        tokio::select! {
            biased;
            () = self.stop.requested() => Err(Ended::Stopped),
            result = work => Ok(result),
        }
    }

    /// Asks the server; `failed` is the summary where that goes wrong.
    async fn ask<T>(&self, failed: &str, work: impl Future<Output = Result<T, ApiError>>) -> Step<T> {
        let result = self.unless_stopped(work).await?;
        result.map_err(|e| Ended::Failed(self.error(failed, &e)))
    }

    async fn read_run(&self, id: &str) -> Step<Run> {
        self.ask("Failed to retrieve run", self.hosted.connection.run(id)).await
    }

    async fn pause(&self, time: std::time::Duration) -> Step<()> {
        self.unless_stopped(tokio::time::sleep(time)).await
    }
}

/// Flags that have no meaning where the server keeps and locks the state.
fn useless_flags(files: &StateFlags, lock: bool) -> Option<Diagnostic> {
    let flags = [
        ("-state", files.state.is_some()),
        ("-state-out", files.out.is_some()),
        ("-backup", files.backup.is_some()),
        ("-lock=false", !lock),
    ];
    let given: Vec<&str> = flags
        .iter()
        .filter(|(_, given)| *given)
        .map(|(flag, _)| *flag)
        .collect();
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
