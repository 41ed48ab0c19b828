//! Connections over SSH.
//!
//! [`client`] connects, [`auth`] authenticates, [`keys`] reads private keys and verifies host keys, [`proxy`] opens the TCP connection, and
//! [`agent`] uses the SSH agent. [`exec`] runs commands. [`sftp`] copies files; on a machine without SFTP, [`scp`] does. Terraform and
//! OpenTofu have scp only, which needs a round trip for every file; the copies are the same.

mod agent;
mod auth;
mod client;
mod exec;
pub(crate) mod keys;
pub(crate) mod proxy;
mod scp;
mod settings;
mod sftp;
#[cfg(test)]
mod tests;

use std::path::Path;

use monoform_sdk::{Output, Stop};
use russh::Channel;
use russh::client::Msg;

pub(crate) use self::agent::AgentSettings;
use self::client::Connected;
pub(crate) use self::settings::{Hop, Settings};
use self::sftp::Sftp;
use crate::files::{Content, Progress};
use crate::words::{command, command_for_windows, quoted, without_tilde};
use crate::{Error, Result};

/// An open connection to a machine.
pub(crate) struct Ssh {
    settings: Settings,
    connected: Connected,
    sftp: FileTransfer,
    pub progress: Progress,
}

/// State of file transfer. The first copy finds out whether the machine has SFTP.
enum FileTransfer {
    Untried,
    Sftp(Box<Sftp>),
    Absent,
}

impl Ssh {
    /// Shows the settings if there is an output, connects, and shows a message on success.
    pub async fn connect(settings: &Settings, output: Option<&Output>) -> Result<Ssh> {
        if let Some(output) = output {
            show(settings, output).await;
        }
        let connected = Connected::to(settings).await?;
        if let Some(output) = output {
            output.show("Connected!").await;
        }
        Ok(Ssh {
            settings: settings.clone(),
            connected,
            sftp: FileTransfer::Untried,
            progress: Progress::default(),
        })
    }

    /// Opens a session. If the connection is lost, it is established again, once.
    async fn session(&mut self) -> Result<Channel<Msg>> {
        // A connection may be lost because a provisioner has rebooted the machine.
        if let Ok(channel) = self.connected.handle.channel_open_session().await {
            return Ok(channel);
        }
        self.connected = Connected::to(&self.settings).await?;
        self.sftp = FileTransfer::Untried;
        Ok(self.connected.handle.channel_open_session().await?)
    }

    /// Runs a command and shows its output.
    pub async fn run(&mut self, command: &str, output: &Output, stop: &mut Stop) -> Result<()> {
        let channel = self.session().await?;
        let how = exec::How {
            // Commands on Windows get no terminal, as in Terraform.
            terminal: !self.settings.windows,
            forward_agent: self.settings.agent.is_some(),
        };
        exec::run(channel, command, how, output, stop).await
    }

    /// Runs a script that was uploaded to this path.
    pub async fn run_script(&mut self, path: &str, output: &Output, stop: &mut Stop) -> Result<()> {
        let command = match self.settings.windows {
            true => command_for_windows(path)?,
            false => command(path),
        };
        self.run(&command, output, stop).await
    }

    /// Removes a tilde at the beginning of a path on the other machine, because only a shell would expand it. Paths on Windows stay as they
    /// are.
    fn remote(&self, path: &str) -> String {
        match self.settings.windows {
            true => path.to_owned(),
            false => without_tilde(path),
        }
    }

    /// Writes a file.
    pub async fn upload(&mut self, path: &str, content: Content) -> Result<()> {
        let path = &self.remote(path);
        match self.sftp().await? {
            Some(sftp) => sftp.upload(path, content).await,
            None => {
                let windows = self.settings.windows;
                let progress = self.progress.clone();
                scp::upload(self.session().await?, path, content, windows, progress).await
            }
        }
    }

    /// Writes a script. Except on Windows, it gets mode 0777, and a first line `#!/bin/sh` if it has no `#!` line.
    pub async fn upload_script(&mut self, path: &str, script: Vec<u8>) -> Result<()> {
        // Terraform reads the first two bytes to look for `#!`. If they are missing, it fails with this text.
        if script.len() < 2 {
            return Err(Error::fatal(
                "Error reading script: EOF: a script has at least two bytes",
            ));
        }
        let mut text = Vec::with_capacity(script.len() + 10);
        if !self.settings.windows && !script.starts_with(b"#!") {
            text.extend_from_slice(b"#!/bin/sh\n");
        }
        text.extend(script);
        self.upload(path, Content::Bytes(text)).await?;
        if self.settings.windows {
            return Ok(());
        }
        let path = &self.remote(path);
        let result = match &mut self.sftp {
            FileTransfer::Sftp(sftp) => sftp.set_mode(path, 0o777).await,
            // A file copied by scp has mode 0644, so a command sets the mode.
            _ => {
                let (output, mut lines) = Output::channel();
                let mut never = Stop::never();
                // The output is read while the command runs, because a full channel would block the command.
                let collect = async {
                    let mut all = Vec::new();
                    while let Some(line) = lines.recv().await {
                        all.push(line);
                    }
                    all.join("\n")
                };
                let work = async {
                    let result = self
                        .run(&format!("chmod 0777 {}", quoted(path)), &output, &mut never)
                        .await;
                    drop(output);
                    result
                };
                let (result, said) = tokio::join!(work, collect);
                result.map_err(|error| Error::new(format!("{error} {said}")))
            }
        };
        result.map_err(|error| error.context("The script cannot be made executable on the remote machine"))
    }

    /// Copies a directory, or only its contents.
    pub async fn upload_directory(&mut self, destination: &str, source: &Path, contents_only: bool) -> Result<()> {
        let destination = &self.remote(destination);
        match self.sftp().await? {
            Some(sftp) => sftp.upload_directory(destination, source, contents_only).await,
            None => {
                let windows = self.settings.windows;
                let progress = self.progress.clone();
                let channel = self.session().await?;
                scp::upload_directory(channel, destination, source, contents_only, windows, progress).await
            }
        }
    }

    /// Returns the SFTP session, which is opened on first use; `None` if the machine has no SFTP.
    async fn sftp(&mut self) -> Result<Option<&mut Sftp>> {
        if let FileTransfer::Sftp(sftp) = &self.sftp
            && sftp.is_closed()
        {
            self.sftp = FileTransfer::Untried;
        }
        if matches!(self.sftp, FileTransfer::Untried) {
            // SFTP has other path rules on Windows (`/C:/…`), so files are copied by scp, as in Terraform.
            self.sftp = if self.settings.windows {
                FileTransfer::Absent
            } else {
                match Sftp::open(self.session().await?, self.progress.clone()).await? {
                    Some(sftp) => FileTransfer::Sftp(Box::new(sftp)),
                    None => FileTransfer::Absent,
                }
            };
        }
        Ok(match &mut self.sftp {
            FileTransfer::Sftp(sftp) => Some(sftp),
            FileTransfer::Untried | FileTransfer::Absent => None,
        })
    }

    /// Ends the connection.
    pub async fn close(self) {
        self.connected.close().await;
    }
}

/// Shows the settings of a connection in the format of Terraform. For passwords and keys, it only shows whether they are set.
async fn show(settings: &Settings, output: &Output) {
    let platform = if settings.windows { "windows" } else { "unix" };
    let lines = |hop: &Hop| {
        format!(
            "  Host: {}\n  User: {}\n  Password: {}\n  Private key: {}\n  Certificate: {}\n  SSH Agent: {}\n  Checking Host Key: {}",
            hop.shown(),
            hop.user,
            hop.password.is_some(),
            hop.key.is_some(),
            hop.key.as_ref().is_some_and(|key| key.certificate.is_some()),
            settings.agent.is_some(),
            hop.host_key.is_some(),
        )
    };
    output
        .show(format!(
            "Connecting to remote host via SSH...\n{}\n  Target Platform: {platform}\n",
            lines(&settings.target)
        ))
        .await;
    if let Some(bastion) = &settings.bastion {
        output
            .show(format!("Using configured bastion host...\n{}", lines(bastion)))
            .await;
    }
    if let Some(proxy) = &settings.proxy {
        output
            .show(format!(
                "Using configured proxy host...\n  ProxyHost: {}\n  ProxyPort: {}\n  ProxyUserName: {}\n  ProxyUserPassword: {}",
                proxy.host,
                proxy.port,
                proxy.user,
                !proxy.password.is_empty(),
            ))
            .await;
    }
}
