//! Programs that are run for their output.

use std::future::Future;
use std::io;
use std::process::{Output, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

use crate::program::Running;

/// Time between an interrupt and the kill of the process group.
const GRACE: Duration = Duration::from_secs(5);

/// Runs a program to its end and collects its output. `input` is its standard input, which is empty if absent. Returns `None` if
/// `stop` completed first; the program and its descendants have then been ended.
pub async fn output(
    command: &mut Command,
    input: Option<Vec<u8>>,
    stop: impl Future<Output = ()>,
) -> io::Result<Option<Output>> {
    // A program without input must not read the input of this process.
    command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = Running::start(command)?;
    let child = running.child();
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let feed = async {
        if let Some((mut pipe, input)) = stdin.zip(input) {
            // A program may end without reading all of its input.
            drop(pipe.write_all(&input).await);
        }
        Ok(())
    };
    // All pipes are served at once: a program that waits for its output to be read might never read its input.
    let work = async { tokio::try_join!(feed, whole(stdout), whole(stderr), running.wait()) };
    let ended = tokio::select! {
        ended = work => Some(ended),
        () = stop => None,
    };
    match ended {
        Some(ended) => {
            let ((), stdout, stderr, status) = ended?;
            Ok(Some(Output { status, stdout, stderr }))
        }
        None => {
            drop(running.end(GRACE).await);
            Ok(None)
        }
    }
}

/// Reads a pipe to its end.
async fn whole(pipe: Option<impl AsyncRead + Unpin>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        pipe.read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn input_is_read_and_output_collected() {
        let mut command = Command::new("sh");
        command.args(["-c", "cat; echo error >&2; exit 3"]);
        let never = std::future::pending();
        let output = output(&mut command, Some(b"text".to_vec()), never)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(output.status.code(), Some(3));
        assert_eq!(
            (&output.stdout[..], &output.stderr[..]),
            (&b"text"[..], &b"error\n"[..])
        );
    }

    #[tokio::test]
    async fn a_program_that_is_stopped_ends_with_what_it_started() {
        let dir = tempfile::tempdir().unwrap();
        let pid = dir.path().join("pid");
        let mut command = Command::new("sh");
        command.args(["-c", &format!("sleep 300 & echo $! > {}; wait", pid.display())]);
        let mut child = String::new();
        let started = async {
            while !child.ends_with('\n') {
                tokio::time::sleep(Duration::from_millis(5)).await;
                child = std::fs::read_to_string(&pid).unwrap_or_default();
            }
        };
        let output = output(&mut command, None, started).await.unwrap();
        assert!(output.is_none());
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.trim()));
        assert!(
            stat.is_err() || stat.is_ok_and(|stat| stat.contains(") Z ")),
            "no child is left"
        );
    }
}
