//! The plugin at the other end, and how to tell people what it did wrong.

use std::time::Duration;

use syntax::{Diagnostic, Diagnostics};
use tonic::{Code, Status};

use crate::process::Process;

/// A plugin at the other end of a connection.
pub struct Peer {
    title: String,
    process: Option<Process>,
}

impl Peer {
    /// A plugin; without a process of ours if somebody else started it.
    #[must_use]
    pub fn new(title: String, process: Option<Process>) -> Peer {
        Peer { title, process }
    }

    /// What it is: `provider "hashicorp/null"`.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Its process, if we started it.
    #[must_use]
    pub fn process(&self) -> Option<&Process> {
        self.process.as_ref()
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
                let what = match &self.process {
                    Some(process) => {
                        let mut text = process.obituary().await;
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
        if let Some(process) = &self.process
            && process.wait(patience).await.is_none()
        {
            tracing::debug!(plugin = self.title, "plugin did not end by itself and is killed");
            process.kill().await;
        }
    }
}

/// An error with all its causes.
fn chain(status: &Status) -> String {
    let mut text = status.message().to_owned();
    let mut source = std::error::Error::source(status);
    while let Some(error) = source {
        let next = error.to_string();
        if !text.contains(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        source = error.source();
    }
    text
}
