//! Connection to a plugin, and conversion of a gRPC status to diagnostics.

use std::sync::OnceLock;
use std::time::Duration;

use syntax::{Diagnostic, Diagnostics};
use tokio::sync::{Semaphore, SemaphorePermit};
use tonic::{Code, Status};

use crate::process::Process;

/// Maximum number of requests to one plugin in flight: sent, and their answers not read yet. Further ones wait,
/// whatever the parallelism and the number of ready blocks.
// The buffers of a connection and of a plugin are limited: too many unread answers close the connection (see
// `channel`).
pub const MAX_CALLS: usize = 4096;
/// Maximum number of renewals of ephemeral resources in flight, in addition to the other requests.
// Renewals are counted separately, because a token that expires must not wait for operations that take an hour.
const MAX_RENEWALS: usize = 64;

/// Connection to a plugin, with its process unless the user started it.
pub struct PluginConnection {
    title: String,
    process: OnceLock<Process>,
    calls: Semaphore,
    renewals: Semaphore,
}

impl PluginConnection {
    /// Creates a connection. `process` is `None` if the user started the plugin, or until it has been started.
    #[must_use]
    pub fn new(title: String, process: Option<Process>) -> PluginConnection {
        PluginConnection {
            title,
            process: process.map_or_else(OnceLock::new, OnceLock::from),
            calls: Semaphore::new(MAX_CALLS),
            renewals: Semaphore::new(MAX_RENEWALS),
        }
    }

    /// Waits until one more request may be sent. The permit is held until the answer is read. `None` only if the
    /// semaphore was closed, which never happens while there are requests.
    pub async fn permit(&self) -> Option<SemaphorePermit<'_>> {
        self.calls.acquire().await.ok()
    }

    /// Waits until one more renewal of an ephemeral resource may be sent: see [`PluginConnection::permit`].
    pub async fn renewal_permit(&self) -> Option<SemaphorePermit<'_>> {
        self.renewals.acquire().await.ok()
    }

    /// Returns the name of the plugin in messages, such as `provider "hashicorp/null"`.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Returns the process of the plugin; `None` if the user started it, or if it has not been started yet.
    #[must_use]
    pub fn process(&self) -> Option<&Process> {
        self.process.get()
    }

    /// Sets the process after it was started.
    pub fn set_process(&self, process: Process) {
        // A connection is started once. If there were a second process, it would end here.
        let _ = self.process.set(process);
    }

    /// Converts the status of a failed call to a diagnostic, with an exit report if the plugin did not answer.
    pub async fn failure(&self, method: &str, status: &Status) -> Diagnostics {
        let title = &self.title;
        // tonic sets a source only in a status that it created itself, which means that the plugin's answer
        // never arrived.
        let silent = status.code() == Code::Unavailable || std::error::Error::source(status).is_some();
        let diagnostic = match status.code() {
            Code::Cancelled if !silent => Diagnostic::error(
                "Request canceled",
                format!("The {title} stopped as requested and canceled the request {method}."),
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
                            // The plugin still runs, but may have closed the connection, so the connection's error
                            // is the best explanation.
                            text = format!("{text}\n\nThe connection says: {}.", chain(status));
                        }
                        format!("{text}\n\nIts file is {}.", process.program().display())
                    }
                    None => format!(
                        "Another program started it, and it may have ended. The connection says: {}.",
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

    /// Returns the error for an answer that breaks the rules of the protocol.
    #[must_use]
    pub fn fault(&self, method: &str, what: &str) -> Diagnostic {
        Diagnostic::error(
            "Invalid answer from plugin",
            format!(
                "The {} answered {method} in a way that cannot be understood: {what}.\n\nThis is a bug in the plugin; report it \
                 to its developers.",
                self.title
            ),
        )
    }

    /// Returns the error for a type or function that the plugin does not have.
    #[must_use]
    pub fn lacks(&self, kind: &str, name: &str) -> Diagnostics {
        Diagnostic::error(
            format!("Unsupported {kind}"),
            format!("The {} does not have the {kind} \"{name}\".", self.title),
        )
        .into()
    }

    /// Waits up to `patience` for the process to end, then kills it.
    pub async fn end(&self, patience: Duration) {
        if let Some(process) = self.process()
            && process.wait(patience).await.is_none()
        {
            tracing::debug!(plugin = self.title, "plugin did not end by itself and is killed");
            process.kill().await;
        }
    }
}

/// Formats a status and the chain of its sources. A text that occurs several times is included once.
fn chain(status: &Status) -> String {
    // tonic's own text, which only means that there is a source.
    const NO_REASON: &str = "transport error";
    let mut parts = vec![files::plain(status.message())];
    let mut source = std::error::Error::source(status);
    while let Some(error) = source {
        let next = files::plain(&error.to_string());
        // Many errors repeat the text of their source, which is then left out.
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
