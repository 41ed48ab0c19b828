//! The `local-exec` provisioner: runs a command on the machine that applies the configuration.
//!
//! The output of the command is shown line by line. An incomplete line is shown after a short time without output. When the run is
//! interrupted, the command and its descendants are interrupted. Those that still run after some seconds are killed.

use std::collections::BTreeMap;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use monoform_sdk::cty::Value;
use monoform_sdk::lines::{Lines, Tail};
use monoform_sdk::program::Running;
use monoform_sdk::schema::{optional, required};
use monoform_sdk::{
    Attr, Diagnostic, Diagnostics, HANDSHAKE_VARIABLES, Output, Provisioner, Result, Stop, async_trait, model,
};
use system::Os;
use system::streams::{self, PipeStream};
use tokio::io::AsyncReadExt;
use tokio::process::Command;

/// Name of the provisioner in configurations.
pub const NAME: &str = "local-exec";

/// Creates the provisioner for the plugin server.
#[must_use]
pub fn provisioner() -> impl Provisioner {
    LocalExec
}

model! {
    /// The arguments.
    pub struct Config {
        /// The command to run.
        pub command: Attr<String> = required(),
        /// The program that runs the command, and arguments in front of it: `/bin/sh -c` by default, `cmd /C` on Windows.
        pub interpreter: Attr<Vec<Attr<String>>> = optional(),
        /// The working directory of the command.
        pub working_dir: Attr<String> = optional(),
        /// Environment variables added to those of this process.
        pub environment: Attr<BTreeMap<String, Attr<String>>> = optional(),
        /// If true, the command itself is not shown.
        pub quiet: Attr<bool> = optional(),
    }
}

/// Time limit for an interrupted command to end before it is killed.
const GRACE: Duration = Duration::from_secs(5);

/// Time without output after which an incomplete line is shown, since it may be a prompt.
const SILENCE: Duration = Duration::from_millis(100);

/// Number of bytes from the end of the output in the error for a failed command.
const TAIL: usize = 8 * 1024;

struct LocalExec;

#[async_trait]
impl Provisioner for LocalExec {
    type Config = Config;
    const BLOCKS: bool = false;

    async fn run(&self, config: Config, _connection: Value, output: Output, stop: Stop) -> Result<()> {
        let text = config.command.text().to_owned();
        if text.is_empty() {
            return Err(Diagnostic::error(
                "Invalid local-exec provisioner command",
                "The argument \"command\" is empty: write what is to be run.",
            )
            .at_attribute("command")
            .into());
        }
        let mut words: Vec<String> = match config.interpreter {
            Attr::Known(list) if !list.is_empty() => list.into_iter().filter_map(Attr::into_known).collect(),
            _ => Os::CURRENT.shell().map(str::to_owned).to_vec(),
        };
        words.push(text.clone());

        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        // Removed, because a command may itself be a host of plugins, and must not pass on this handshake.
        for name in HANDSHAKE_VARIABLES {
            command.env_remove(name);
        }
        for (name, value) in config.environment.or(BTreeMap::new()) {
            if let Attr::Known(value) = value {
                command.env(name, value);
            }
        }
        if let Some(dir) = config.working_dir.as_str().filter(|dir| !dir.is_empty()) {
            command.current_dir(dir);
        }
        output
            .show(if config.quiet.or(false) {
                "local-exec: Executing: Suppressed by quiet=true".to_owned()
            } else {
                format!("Executing: {}", quoted_list(&words))
            })
            .await;

        let mut tail = Tail::new(TAIL);
        let ended = execute(command, &output, &mut tail, stop).await;
        let problem = match ended {
            Ok(status) if status.success() => return Ok(()),
            Ok(status) => ending(status),
            Err(error) => error.to_string(),
        };
        Err(failure(&text, &problem, &tail.text()))
    }
}

fn failure(command: &str, problem: &str, output: &str) -> Diagnostics {
    Diagnostic::error(
        "local-exec provisioner error",
        format!("Error running command '{command}': {problem}. Output: {output}"),
    )
    .into()
}

/// Describes the end of a command in the wording of Go's `os/exec`, which users search for.
fn ending(status: ExitStatus) -> String {
    match (status.code(), system::processes::signal(&status)) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(9)) => "signal: killed".to_owned(),
        (None, Some(2)) => "signal: interrupt".to_owned(),
        (None, Some(15)) => "signal: terminated".to_owned(),
        (None, Some(signal)) => format!("signal: {signal}"),
        (None, None) => "unknown end".to_owned(),
    }
}

/// Runs the command and shows its output. Background processes of the command are not awaited.
async fn execute(mut command: Command, output: &Output, tail: &mut Tail, mut stop: Stop) -> io::Result<ExitStatus> {
    // Standard output and standard error share one pipe, which keeps their lines in order.
    let (reader, writer) = io::pipe()?;
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    let mut running = Running::start(&mut command)?;
    // The command object holds a writing end of the pipe. The pipe would never end if it were kept.
    drop(command);
    let mut reader = streams::pipe(reader)?;

    let mut lines = Lines::new();
    let mut buffer = vec![0; 16 * 1024];
    let mut open = true;
    let status = loop {
        tokio::select! {
            // `biased`: the output is read first, so that lines written before the end of the command are shown before it.
            biased;
            read = reader.read(&mut buffer), if open => match read? {
                0 => open = false,
                n => show(&mut lines, &buffer[..n], output, tail).await,
            },
            status = running.wait() => break status?,
            () = stop.requested() => break end(&mut running, &mut reader, &mut lines, output, tail).await?,
            () = tokio::time::sleep(SILENCE), if lines.is_waiting() => {
                if let Some(line) = lines.rest() {
                    output.show(line).await;
                }
            }
        }
    };
    // All output of the command is in the pipe now. Anything later can only come from background processes.
    if open {
        drain(&mut reader, &mut lines, output, tail).await?;
    }
    if let Some(line) = lines.rest() {
        output.show(line).await;
    }
    Ok(status)
}

/// Ends the command and its descendants. Their output is shown in the meantime.
async fn end(
    running: &mut Running,
    reader: &mut PipeStream,
    lines: &mut Lines,
    output: &Output,
    tail: &mut Tail,
) -> io::Result<ExitStatus> {
    let mut buffer = vec![0; 16 * 1024];
    let mut open = true;
    let mut ending = std::pin::pin!(running.end(GRACE));
    loop {
        tokio::select! {
            status = &mut ending => return status,
            read = reader.read(&mut buffer), if open => match read? {
                0 => open = false,
                n => show(lines, &buffer[..n], output, tail).await,
            },
        }
    }
}

/// Shows the content of the pipe, and does not wait for more. The number of reads is limited because background processes may continue to
/// write; a pipe holds far less than the limit.
async fn drain(reader: &mut PipeStream, lines: &mut Lines, output: &Output, tail: &mut Tail) -> io::Result<()> {
    let mut buffer = vec![0; 16 * 1024];
    for _ in 0..64 {
        match streams::read_now(reader, &mut buffer).await? {
            None | Some(0) => return Ok(()),
            Some(n) => show(lines, &buffer[..n], output, tail).await,
        }
    }
    Ok(())
}

async fn show(lines: &mut Lines, bytes: &[u8], output: &Output, tail: &mut Tail) {
    tail.push(bytes);
    for line in lines.push(bytes) {
        output.show(line).await;
    }
}

/// Formats a list of words as Go does: `["/bin/sh" "-c" "echo"]`.
fn quoted_list(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| gotext::quote::quoted(word)).collect();
    format!("[{}]", words.join(" "))
}

#[cfg(test)]
mod tests;
