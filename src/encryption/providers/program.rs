//! External programs that provide keys or encrypt, with a separate process for each request.
//!
//! A program first prints a line that names the protocol. Then it reads a JSON document from its standard input, and prints a JSON document
//! as the answer.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use ::files::io_reason;
use process::lines::Tail;
use process::program::{NotRunnable, Running, find};
use serde::Deserialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

use super::request::{WaitError, block_on};

/// Time limit of a request to a user's program.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// Protocol of a kind of program: the first line of the output, the description for messages, and the time limit.
pub(crate) struct Header {
    pub magic: &'static str,
    /// Description of the program for messages.
    pub what: &'static str,
    /// Time limit of a request.
    pub limit: Duration,
}

#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    magic: String,
    #[serde(default)]
    version: i64,
}

/// Reason why a program has returned no result, as a clause.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProgramError {
    #[error("the command is empty")]
    NoCommand,
    #[error("the program \"{name}\" cannot be run: {source}")]
    NotRunnable { name: String, source: NotRunnable },
    #[error("the program \"{name}\" cannot be run: {}", io_reason(source))]
    Start { name: String, source: io::Error },
    #[error("the program \"{0}\" has no standard streams")]
    NoStreams(String),
    #[error("the output of \"{name}\" cannot be read: {}", io_reason(source))]
    Read { name: String, source: io::Error },
    #[error("the end of \"{name}\" cannot be waited for: {}", io_reason(source))]
    End { name: String, source: io::Error },
    #[error("the external command exited with a non-zero exit code ({status}){stderr}")]
    Status {
        status: std::process::ExitStatus,
        /// Last lines of the program's error output, below a title; or empty.
        stderr: String,
    },
    #[error("{what} printed no header")]
    NoHeader { what: &'static str },
    #[error("the first line of {what} is not its header ({reason})")]
    NotHeader { what: &'static str, reason: String },
    #[error("invalid magic received from {what}: {magic}")]
    Magic { what: &'static str, magic: String },
    #[error("invalid version number received from {what}: {version}")]
    Version { what: &'static str, version: i64 },
    #[error("{what} did not end within {} seconds", limit.as_secs())]
    TimedOut { what: &'static str, limit: Duration },
    #[error(transparent)]
    Wait(#[from] WaitError),
}

impl Header {
    fn check(&self, line: &[u8]) -> Result<(), ProgramError> {
        let Header { magic, what, .. } = *self;
        let found: Line = serde_json::from_slice(line).map_err(|e| ProgramError::NotHeader {
            what,
            reason: ::files::json_reason(e),
        })?;
        if found.magic != magic {
            return Err(ProgramError::Magic {
                what,
                magic: found.magic,
            });
        }
        if found.version != 1 {
            return Err(ProgramError::Version {
                what,
                version: found.version,
            });
        }
        Ok(())
    }
}

/// Runs a program, and returns its output after the first line.
pub(crate) fn run(command: &[String], input: &[u8], header: &Header) -> Result<Vec<u8>, ProgramError> {
    block_on(async {
        match tokio::time::timeout(header.limit, exchange(command, input, header)).await {
            Ok(result) => result,
            Err(_) => Err(ProgramError::TimedOut {
                what: header.what,
                limit: header.limit,
            }),
        }
    })?
}

async fn exchange(command: &[String], input: &[u8], header: &Header) -> Result<Vec<u8>, ProgramError> {
    let Some((name, arguments)) = command.split_first() else {
        return Err(ProgramError::NoCommand);
    };
    let named = || name.clone();
    let path = find(name).map_err(|source| ProgramError::NotRunnable { name: named(), source })?;
    let mut command = Command::new(path);
    command.args(arguments);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut running = Running::start(&mut command).map_err(|source| ProgramError::Start { name: named(), source })?;
    let child = running.child();
    let (Some(mut stdin), Some(mut stdout), Some(mut stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(ProgramError::NoStreams(named()));
    };
    let write = async {
        // Writing fails if the program has ended without reading its input, which is not an error.
        let _ = stdin.write_all(input).await;
        // The program may read its input to the end before it answers, so the input is closed.
        drop(stdin);
        Ok::<(), ProgramError>(())
    };
    let read = async {
        let mut output = Vec::new();
        let mut start = None;
        loop {
            let read = stdout.read_buf(&mut output).await;
            let read = read.map_err(|source| ProgramError::Read { name: named(), source })?;
            if start.is_none()
                && let Some(end) = output.iter().position(|byte| *byte == b'\n')
            {
                // The header is checked before the rest is read: a program that is not meant for this protocol may be waiting for other
                // input.
                header.check(&output[..end])?;
                start = Some(end + 1);
            }
            if read == 0 {
                return Ok((output, start));
            }
        }
    };
    let errors = async {
        // The error output is read to the end, because the program would block on a full pipe. Only its last part is used.
        let mut tail = Tail::new(4096);
        let mut buffer = [0; 1024];
        while let Ok(read @ 1..) = stderr.read(&mut buffer).await {
            tail.push(&buffer[..read]);
        }
        Ok(tail.text())
    };
    let ((), (output, start), errors) = tokio::try_join!(write, read, errors)?;
    let status = running
        .wait()
        .await
        .map_err(|source| ProgramError::End { name: named(), source })?;
    if !status.success() {
        let stderr = match errors.trim() {
            "" => String::new(),
            text => format!("\n\nStderr:\n-------\n{text}"),
        };
        return Err(ProgramError::Status { status, stderr });
    }
    match start {
        Some(start) => Ok(output[start..].to_vec()),
        None => Err(ProgramError::NoHeader { what: header.what }),
    }
}
