//! Connections of provisioners to other machines over SSH or WinRM, from the arguments of a `connection` block.
//!
//! The provisioners `file` and `remote-exec` use this crate. External provisioners can use it, too:
//!
//! ```no_run
//! # use monoform_sdk::{Output, Stop, cty::Value};
//! # async fn run(connection: Value, output: Output, mut stop: Stop) -> Result<(), connection::Error> {
//! let settings = connection::Settings::read(&connection)?;
//! let mut machine = connection::connect(&settings, Some(&output), &mut stop).await?;
//! machine.upload("/etc/motd", connection::Content::Bytes(b"Welcome\n".to_vec())).await?;
//! machine.run("uptime", &output, &mut stop).await?;
//! machine.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! Both kinds of connection are retried, with growing pauses, until the `timeout` of the block. Commands and copies have no time limit. An
//! interrupted command is ended on the other machine. Files are streamed.
//!
//! WinRM has been tested with a simulated service only, and SSH to Windows not at all, because no Windows machine was available. Messages
//! after an NTLM login are not encrypted, so a server must allow unencrypted messages or be used over `https`.
//!
//! Begin with [`Settings`], then `ssh/mod.rs`.

mod error;
mod files;
mod resolve;
mod retry;
mod settings;
mod ssh;
mod winrm;
mod words;

use std::path::Path;

use monoform_sdk::{Output, Stop};

pub use error::{Error, Result};
pub use files::{Content, Progress};
pub use settings::Settings;

use crate::settings::Kind;

/// A connection to a machine, over SSH or WinRM.
pub struct Connection(Inner);

enum Inner {
    Ssh(Box<ssh::Ssh>),
    Winrm(Box<winrm::Winrm>),
}

/// Connects to a machine. If there is an output, the settings of the connection are shown on it.
///
/// # Errors
///
/// The machine could not be reached, or refused the connection, until the timeout; or the user interrupted.
pub async fn connect(settings: &Settings, output: Option<&Output>, stop: &mut Stop) -> Result<Connection> {
    retry::retry(settings.timeout, stop, || once(settings, output)).await
}

async fn once(settings: &Settings, output: Option<&Output>) -> Result<Connection> {
    Ok(Connection(match &settings.kind {
        Kind::Ssh(inner) => Inner::Ssh(Box::new(ssh::Ssh::connect(inner, output).await?)),
        Kind::Winrm(inner) => Inner::Winrm(Box::new(winrm::Winrm::connect(inner, output).await?)),
    }))
}

impl Connection {
    /// Runs a command and shows its output line by line.
    ///
    /// # Errors
    ///
    /// The command could not be started, failed, or was interrupted by the user; an interrupted command is ended.
    pub async fn run(&mut self, command: &str, output: &Output, stop: &mut Stop) -> Result<()> {
        match &mut self.0 {
            Inner::Ssh(ssh) => ssh.run(command, output, stop).await,
            Inner::Winrm(winrm) => winrm.run(command, output, stop).await,
        }
    }

    /// Runs a script that [`upload_script`](Connection::upload_script) has written to this path. The path is always quoted. A tilde at its
    /// beginning stands for the home directory.
    ///
    /// # Errors
    ///
    /// As for [`run`](Connection::run).
    pub async fn run_script(&mut self, path: &str, output: &Output, stop: &mut Stop) -> Result<()> {
        match &mut self.0 {
            Inner::Ssh(ssh) => ssh.run_script(path, output, stop).await,
            Inner::Winrm(winrm) => winrm.run_script(path, output, stop).await,
        }
    }

    /// Writes a file. Over SSH, a new file has mode 0644 minus the umask of the account.
    ///
    /// # Errors
    ///
    /// The local file cannot be read, or the remote one cannot be written.
    pub async fn upload(&mut self, path: &str, content: Content) -> Result<()> {
        match &mut self.0 {
            Inner::Ssh(ssh) => ssh.upload(path, content).await,
            Inner::Winrm(winrm) => winrm.upload(path, content).await,
        }
    }

    /// Writes a script for [`run_script`](Connection::run_script). Over SSH, except on Windows, the script gets mode 0777, and a first line
    /// `#!/bin/sh` if it has no `#!` line.
    ///
    /// # Errors
    ///
    /// As for [`upload`](Connection::upload).
    pub async fn upload_script(&mut self, path: &str, script: Vec<u8>) -> Result<()> {
        match &mut self.0 {
            Inner::Ssh(ssh) => ssh.upload_script(path, script).await,
            // Windows selects the interpreter by the extension of the file, so the script needs neither a `#!` line nor an execute bit.
            Inner::Winrm(winrm) => winrm.upload(path, Content::Bytes(script)).await,
        }
    }

    /// Copies a directory into another one, or only its contents. Symbolic links are followed.
    ///
    /// # Errors
    ///
    /// As for [`upload`](Connection::upload), for any of the files.
    pub async fn upload_directory(&mut self, destination: &str, source: &Path, contents_only: bool) -> Result<()> {
        match &mut self.0 {
            Inner::Ssh(ssh) => ssh.upload_directory(destination, source, contents_only).await,
            Inner::Winrm(winrm) => winrm.upload_directory(destination, source, contents_only).await,
        }
    }

    /// Returns the counter of copied bytes, which also advances while a copy is running.
    #[must_use]
    pub fn progress(&self) -> Progress {
        match &self.0 {
            Inner::Ssh(ssh) => ssh.progress.clone(),
            Inner::Winrm(winrm) => winrm.progress.clone(),
        }
    }

    /// Ends the connection.
    pub async fn close(self) {
        match self.0 {
            Inner::Ssh(ssh) => ssh.close().await,
            // Each command has deleted its shell, and an idle HTTP connection needs no request to close it.
            Inner::Winrm(_) => {}
        }
    }
}
