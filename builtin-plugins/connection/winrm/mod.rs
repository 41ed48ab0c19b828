//! Connections over WinRM: the remote shells of Windows, over SOAP and HTTP.
//!
//! [`http`] has the connection, [`ntlm`] an authentication method, [`soap`] the messages. [`copy`] writes files by means of commands, since
//! the protocol has no file transfer.

mod copy;
mod http;
mod ntlm;
mod settings;
mod soap;
#[cfg(test)]
mod tests;
mod tls;

use std::path::Path;

use monoform_sdk::lines::Lines;
use monoform_sdk::{Output, Stop};

use self::http::Http;
pub(crate) use self::settings::Settings;
use self::soap::{Received, Request};
use crate::files::Progress;
use crate::words::command_for_windows;
use crate::{Content, Error, Result};

/// Minimum operation timeout in seconds. The service waits this long for output of a command before it responds without output; with zero
/// it would not wait.
const SHORTEST_WAIT: u64 = 1;

/// A connection to a service that has accepted the credentials.
pub(crate) struct Winrm {
    settings: Settings,
    http: Http,
    pub progress: Progress,
}

/// Output and exit status of a command whose output is not shown.
struct Ran {
    status: i64,
    output: [Vec<u8>; 2],
}

impl Winrm {
    /// Creates a shell and deletes it, which tests the credentials and the service.
    pub async fn connect(settings: &Settings, output: Option<&Output>) -> Result<Winrm> {
        if let Some(output) = output {
            output
                .show(format!(
                    "Connecting to remote host via WinRM...\n  Host: {}\n  Port: {}\n  User: {}\n  Password: {}\n  HTTPS: {}\n  \
                     Insecure: {}\n  NTLM: {}\n  CACert: {}",
                    settings.shown_host(),
                    settings.port,
                    settings.user,
                    !settings.password.is_empty(),
                    settings.https,
                    settings.insecure,
                    settings.ntlm,
                    settings.cacert.is_some(),
                ))
                .await;
        }
        let mut winrm = Winrm {
            settings: settings.clone(),
            http: Http::new(settings),
            progress: Progress::default(),
        };
        let shell = winrm.create().await?;
        winrm.ask(&Request::Delete { shell: &shell }).await?;
        if let Some(output) = output {
            output.show("Connected!").await;
        }
        Ok(winrm)
    }

    /// Runs a script that was uploaded to this path.
    pub async fn run_script(&mut self, path: &str, output: &Output, stop: &mut Stop) -> Result<()> {
        self.run(&command_for_windows(path)?, output, stop).await
    }

    /// Runs a command in a new shell and shows its output.
    pub async fn run(&mut self, command: &str, output: &Output, stop: &mut Stop) -> Result<()> {
        let shell = self.create().await?;
        let result = self.run_shown(&shell, command, output, stop).await;
        // A failure is not reported, since the service removes an abandoned shell after its idle timeout.
        drop(self.ask(&Request::Delete { shell: &shell }).await);
        match result? {
            0 => Ok(()),
            status => Err(Error::fatal(format!("{command:?} exit status: {status}"))),
        }
    }

    async fn run_shown(&mut self, shell: &str, command: &str, output: &Output, stop: &mut Stop) -> Result<i64> {
        let id = self.start(shell, command).await?;
        let mut streams = [Lines::new(), Lines::new()];
        let ended = loop {
            let received = tokio::select! {
                received = self.receive(shell, &id) => received?,
                () = stop.requested() => {
                    // The connection is busy with the request that waits for output, so the signal needs another connection.
                    self.http = Http::new(&self.settings);
                    self.terminate(shell, &id).await;
                    return Err(Error::fatal(format!("error executing {command:?}: interrupted")));
                }
            };
            for (lines, data) in streams.iter_mut().zip(&received.streams) {
                for line in lines.push(data) {
                    output.show(line).await;
                }
                // The service answers when the command pauses, so an incomplete line may be a prompt.
                if let Some(line) = lines.rest() {
                    output.show(line).await;
                }
            }
            if let Some(status) = received.ended {
                break status;
            }
        };
        for lines in &mut streams {
            while let Some(line) = lines.rest() {
                output.show(line).await;
            }
        }
        self.terminate(shell, &id).await;
        Ok(ended)
    }

    /// Runs a command in a shell to its end and collects its output.
    async fn run_quietly(&mut self, shell: &str, command: &str) -> Result<Ran> {
        let id = self.start(shell, command).await?;
        let mut output = [Vec::new(), Vec::new()];
        loop {
            let received = self.receive(shell, &id).await?;
            for (all, new) in output.iter_mut().zip(received.streams) {
                all.extend(new);
            }
            if let Some(status) = received.ended {
                self.terminate(shell, &id).await;
                return Ok(Ran { status, output });
            }
        }
    }

    async fn create(&mut self) -> Result<String> {
        soap::shell_id(&self.ask(&Request::Create).await?)
    }

    async fn start(&mut self, shell: &str, command: &str) -> Result<String> {
        soap::command_id(&self.ask(&Request::Command { shell, command }).await?)
    }

    /// Waits until a command has written output, or has ended.
    async fn receive(&mut self, shell: &str, command: &str) -> Result<Received> {
        loop {
            // While the command is silent, the service answers with a timeout, and the request is sent again.
            if let Some(answer) = self.answered(&Request::Receive { shell, command }).await? {
                return soap::received(&answer);
            }
        }
    }

    /// Ends a command. If the command has already ended, this frees its resources in the service.
    async fn terminate(&mut self, shell: &str, command: &str) {
        drop(self.ask(&Request::Terminate { shell, command }).await);
    }

    async fn ask(&mut self, request: &Request<'_>) -> Result<String> {
        let answer = self.answered(request).await?;
        answer.ok_or_else(|| Error::new("the WinRM service did nothing within its time"))
    }

    /// Sends a request; `None` if the operation timeout of the service was reached.
    async fn answered(&mut self, request: &Request<'_>) -> Result<Option<String>> {
        let seconds = self.settings.timeout.as_secs().max(SHORTEST_WAIT);
        let message = soap::envelope(&self.settings.url(), request, seconds);
        let (status, text) = self.http.post(message).await?;
        match soap::fault(&text) {
            Some((true, _)) => Ok(None),
            Some((false, reason)) => Err(Error::new(format!("http response error: {status} - {reason}"))),
            None if status.is_success() => Ok(Some(text)),
            None => Err(Error::new(format!("http response error: {status}"))),
        }
    }

    /// Writes a file.
    pub async fn upload(&mut self, path: &str, content: Content) -> Result<()> {
        copy::file(self, path, content).await
    }

    /// Copies a directory into another one, or only its contents.
    pub async fn upload_directory(&mut self, destination: &str, source: &Path, contents_only: bool) -> Result<()> {
        copy::directory(self, destination, source, contents_only).await
    }
}
