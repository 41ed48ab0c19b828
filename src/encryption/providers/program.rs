//! Programs that make keys, or that encrypt: one process for each request.
//!
//! A program first prints a line that names the protocol. Then it reads a JSON document from its standard input, and
//! prints another one.

use std::process::Stdio;
use std::time::Duration;

use process::lines::Tail;
use process::program::{Running, find};
use serde::Deserialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

use super::request::block_on;

/// Time limit of a request.
const LIMIT: Duration = Duration::from_secs(60);

/// The first line of a program's output.
pub(crate) struct Header {
    pub magic: &'static str,
    /// The program in the words of a message.
    pub what: &'static str,
}

#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    magic: String,
    #[serde(default)]
    version: i64,
}

impl Header {
    fn check(&self, line: &[u8]) -> Result<(), String> {
        let Header { magic, what } = self;
        let found: Line = serde_json::from_slice(line).map_err(|e| {
            format!(
                "the first line of {what} is not its header ({})",
                ::files::json_reason(e)
            )
        })?;
        if found.magic != *magic {
            return Err(format!("invalid magic received from {what}: {}", found.magic));
        }
        if found.version != 1 {
            return Err(format!(
                "invalid version number received from {what}: {}",
                found.version
            ));
        }
        Ok(())
    }
}

/// Runs a program; returns its output after the header.
pub(crate) fn run(command: &[String], input: &[u8], header: &Header) -> Result<Vec<u8>, String> {
    block_on(async {
        match tokio::time::timeout(LIMIT, exchange(command, input, header)).await {
            Ok(result) => result,
            Err(_) => Err(format!(
                "{} did not end within {} seconds",
                header.what,
                LIMIT.as_secs()
            )),
        }
    })?
}

async fn exchange(command: &[String], input: &[u8], header: &Header) -> Result<Vec<u8>, String> {
    let Some((name, arguments)) = command.split_first() else {
        return Err("the command is empty".to_owned());
    };
    let path = find(name).map_err(|e| format!("the program \"{name}\" cannot be run: {e}"))?;
    let mut command = Command::new(path);
    command.args(arguments);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut running = Running::start(&mut command)
        .map_err(|e| format!("the program \"{name}\" cannot be run: {}", ::files::io_reason(&e)))?;
    let child = running.child();
    let (Some(mut stdin), Some(mut stdout), Some(mut stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err(format!("the program \"{name}\" has no standard streams"));
    };
    let write = async {
        // A program that ignores its input may end before it has been written.
        let _ = stdin.write_all(input).await;
        drop(stdin);
        Ok::<(), String>(())
    };
    let read = async {
        let mut output = Vec::new();
        let mut start = None;
        loop {
            let read = stdout.read_buf(&mut output).await;
            let read =
                read.map_err(|e| format!("the output of \"{name}\" cannot be read: {}", ::files::io_reason(&e)))?;
            if start.is_none()
                && let Some(end) = output.iter().position(|byte| *byte == b'\n')
            {
                // At once, as a program that is none of this kind may wait for other input.
                header.check(&output[..end])?;
                start = Some(end + 1);
            }
            if read == 0 {
                return Ok((output, start));
            }
        }
    };
    let errors = async {
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
        .map_err(|e| format!("the end of \"{name}\" cannot be waited for: {}", ::files::io_reason(&e)))?;
    if !status.success() {
        let said = match errors.trim() {
            "" => String::new(),
            text => format!("\n\nStderr:\n-------\n{text}"),
        };
        return Err(format!(
            "the external command exited with a non-zero exit code ({status}){said}"
        ));
    }
    match start {
        Some(start) => Ok(output[start..].to_vec()),
        None => Err(format!("{} printed no header", header.what)),
    }
}
