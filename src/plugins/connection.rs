//! The connection to a plugin, and gRPC status to diagnostics.

use std::sync::OnceLock;
use std::time::Duration;

use syntax::{Diagnostic, Diagnostics};
use tokio::sync::{Semaphore, SemaphorePermit};
use tonic::{Code, Status};

use crate::process::Process;

/// How many requests to one plugin may be in flight: sent, and their answers not read yet. Whatever the parallelism is, and
/// however many blocks are ready at once, the others wait here: the buffers of a connection and of
/// a plugin are limited.
pub const MAX_CALLS: usize = 4096;
/// How many renewals of ephemeral resources may be in flight beside them: a token that runs out must not wait for operations
/// that take an hour.
const MAX_RENEWALS: usize = 64;

/// The connection to a plugin.
pub struct PluginConnection {
    title: String,
    process: OnceLock<Process>,
    calls: Semaphore,
    renewals: Semaphore,
}

impl PluginConnection {
    /// A plugin; without a process of ours if the user started it, or as long as it has not been started.
    #[must_use]
    pub fn new(title: String, process: Option<Process>) -> PluginConnection {
        PluginConnection {
            title,
            process: process.map_or_else(OnceLock::new, OnceLock::from),
            calls: Semaphore::new(MAX_CALLS),
            renewals: Semaphore::new(MAX_RENEWALS),
        }
    }

    /// Waits until one more request may be sent. What this gives is held until the answer is read. `None` only if the
    /// connection is being given up, which never happens while there are requests.
    pub async fn permit(&self) -> Option<SemaphorePermit<'_>> {
        self.calls.acquire().await.ok()
    }

    /// The same for the renewal of an ephemeral resource.
    pub async fn renewal_permit(&self) -> Option<SemaphorePermit<'_>> {
        self.renewals.acquire().await.ok()
    }

    /// What it is: `provider "hashicorp/null"`.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Its process, if we started it.
    #[must_use]
    pub fn process(&self) -> Option<&Process> {
        self.process.get()
    }

    /// Sets the process of a plugin that was started now.
    pub fn set_process(&self, process: Process) {
        // There is one start for each connection; a second process would end here.
        let _ = self.process.set(process);
    }

    /// Why a call failed.
    pub async fn failure(&self, method: &str, status: &Status) -> Diagnostics {
        let title = &self.title;
        // A status with a source was made on our side: the answer never came.
        let silent = status.code() == Code::Unavailable || std::error::Error::source(status).is_some();
        let diagnostic = match status.code() {
            Code::Cancelled if !silent => Diagnostic::error(
                "Request cancelled",
                format!("The {title} was asked to stop and cancelled the request {method}."),
            ),
            Code::Unimplemented if !silent => Diagnostic::error(
                "Unsupported plugin method",
                format!(
                    "The {title} does not know the request {method}. It may be built for an older or newer version of \
                     the plugin protocol: another version of the plugin may help."
                ),
            ),
            Code::OutOfRange if status.message().contains("message length too large") => Diagnostic::error(
                "Plugin message too large",
                format!(
                    "The {title} answered {method} with more than can be received: {}.",
                    status.message()
                ),
            ),
            _ if silent => {
                let what = match self.process() {
                    Some(process) => {
                        let mut text = process.exit_report().await;
                        if process.exit().is_none() {
                            text = format!("{text}\n\nThe connection says: {}.", chain(status));
                        }
                        format!("{text}\n\nIts file is {}.", process.program().display())
                    }
                    None => format!(
                        "It was started by somebody else and may have ended. The connection says: {}.",
                        chain(status)
                    ),
                };
                tracing::debug!(plugin = title, method, error = chain(status), "call failed");
                Diagnostic::error(
                    "Plugin did not respond",
                    format!("The {title} did not answer the request {method}. {what}"),
                )
            }
            code => Diagnostic::error(
                "Plugin error",
                format!(
                    "The {title} failed at the request {method}: {} ({code:?}).",
                    status.message()
                ),
            ),
        };
        diagnostic.into()
    }

    /// The plugin broke the rules of the protocol.
    #[must_use]
    pub fn fault(&self, method: &str, what: &str) -> Diagnostic {
        Diagnostic::error(
            "Invalid answer from plugin",
            format!(
                "The {} answered {method} in a way that cannot be understood: {what}.\n\nThis is a bug in the plugin; its \
                 developers should be told.",
                self.title
            ),
        )
    }

    /// The plugin does not have something that was asked of it.
    #[must_use]
    pub fn lacks(&self, kind: &str, name: &str) -> Diagnostics {
        Diagnostic::error(
            format!("Unsupported {kind}"),
            format!("The {} does not have the {kind} \"{name}\".", self.title),
        )
        .into()
    }

    /// Gives the process this long to end, then kills it.
    pub async fn end(&self, patience: Duration) {
        if let Some(process) = self.process()
            && process.wait(patience).await.is_none()
        {
            tracing::debug!(plugin = self.title, "plugin did not end by itself and is killed");
            process.kill().await;
        }
    }
}

/// An error with all its causes, in words.
fn chain(status: &Status) -> String {
    // The library's own error only says that there is one below it.
    const NO_REASON: &str = "transport error";
    let mut parts = vec![files::plain(status.message())];
    let mut source = std::error::Error::source(status);
    while let Some(error) = source {
        let next = files::plain(&error.to_string());
        if !parts.iter().any(|part| part.contains(&next)) {
            parts.push(next);
        }
        source = error.source();
    }
    if parts.len() > 1 {
        parts.retain(|part| part != NO_REASON);
    }
    parts.join(": ")
}
