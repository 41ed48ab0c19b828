//! Time limit for programs that tests wait for. A program that never ends fails its test, with the output of the program, and does not
//! block the other tests.

use std::io::Result;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Far more time than any program of a test needs, even on a busy machine.
const LIMIT: Duration = Duration::from_secs(600);

/// Runs a program to its end, and returns what it printed. After ten minutes the program is killed.
///
/// # Panics
///
/// If the program was killed: with its arguments and what it printed.
///
/// # Errors
///
/// If the program cannot be started.
pub fn output(command: &mut Command) -> Result<Output> {
    output_within(command, LIMIT)
}

#[track_caller]
fn output_within(command: &mut Command, limit: Duration) -> Result<Output> {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let id = Pid::from_raw(child.id().try_into().expect("an id of a process"));
    let (ended, end) = channel::<()>();
    let guard = std::thread::spawn(move || {
        let late = end.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
        late && kill(id, Signal::SIGKILL).is_ok()
    });
    let output = child.wait_with_output();
    drop(ended);
    let was_killed = guard.join().expect("the guard of the limit");
    if let Ok(output) = &output {
        assert!(
            !was_killed || output.status.signal() != Some(Signal::SIGKILL as i32),
            "{command:?} did not end in {limit:?}. It printed:\n{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    output
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "did not end in 300ms. It printed:\nbegun")]
    fn a_program_that_never_ends_fails_its_test() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo begun; exec sleep 1000"]);
        let _ = output_within(&mut command, Duration::from_millis(300));
    }

    #[test]
    fn a_program_that_ends_gives_its_output() {
        let output = output_within(Command::new("echo").arg("done"), LIMIT).expect("a program");
        assert_eq!(output.stdout, b"done\n");
    }
}
