//! Child programs of plugins: their search by name, and their end.

#![expect(clippy::disallowed_methods, reason = "programs are found by PATH")]

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use system::processes;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout_at};

/// The reason that a program cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum NotRunnable {
    /// No directory of `PATH` has the program.
    #[error("not found on PATH")]
    NotFound,
    /// The path is a directory.
    #[error("is a directory")]
    Directory,
    /// The file has no execute permission.
    #[error("permission denied")]
    NotExecutable,
    /// The file cannot be examined.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Returns the path of a program. A name with a slash is a path relative to the current directory; any other is
/// searched in `PATH`.
pub fn find(name: &str) -> Result<PathBuf, NotRunnable> {
    if name.contains('/') {
        return runnable(Path::new(name)).map(|()| name.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut problem = NotRunnable::NotFound;
    for dir in std::env::split_paths(&path) {
        // An empty entry of `PATH` is the current directory.
        let candidate = if dir.as_os_str().is_empty() {
            Path::new(".").join(name)
        } else {
            dir.join(name)
        };
        match runnable(&candidate) {
            Ok(()) if !name.is_empty() => return Ok(candidate),
            // The search goes on after a file without permission, which is the reason if nothing else is found.
            Err(e) if candidate.is_file() => problem = e,
            _ => {}
        }
    }
    Err(problem)
}

fn runnable(path: &Path) -> Result<(), NotRunnable> {
    let found = path.metadata()?;
    if found.is_dir() {
        return Err(NotRunnable::Directory);
    }
    if found.permissions().mode() & 0o111 == 0 {
        return Err(NotRunnable::NotExecutable);
    }
    Ok(())
}

/// A running program. Its descendants end with it if it is ended early: by [`Running::end`], by dropping this value,
/// and even if the plugin is killed.
///
/// The program gets its own process group, which is then ended. On a terminal it stays in the plugin's group, since it
/// could not ask the user anything otherwise; the terminal's interrupts reach it directly, and its descendants are
/// ended one by one.
#[derive(Debug)]
pub struct Running {
    child: Child,
    pid: Option<Pid>,
    own_group: bool,
    /// The process that ends the program if this process dies. Its standard input is a pipe from here.
    guard: Option<Child>,
}

impl Running {
    /// Starts a program, which is killed when the result is dropped.
    pub fn start(command: &mut Command) -> io::Result<Running> {
        let own_group = !on_terminal();
        if own_group {
            command.process_group(0);
        }
        let child = command.kill_on_drop(true).spawn()?;
        let pid = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        Ok(Running {
            guard: pid.and_then(|pid| guard(pid, own_group)),
            child,
            pid,
            own_group,
        })
    }

    /// Returns the program's process, for access to its streams.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Waits until the program ends. Its descendants may go on.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        // The process number may now belong to another program, which a later signal would reach.
        self.pid = None;
        self.guard = None;
        Ok(status)
    }

    /// Ends the program and its descendants: interrupts them, sends SIGTERM to those that remain when the program
    /// itself has ended, and kills the rest after `grace`.
    pub async fn end(&mut self, grace: Duration) -> io::Result<ExitStatus> {
        let deadline = Instant::now() + grace;
        // On a terminal, interrupts reach the program directly.
        if self.own_group {
            self.signal(Signal::INT);
        }
        let ended = timeout_at(deadline, self.child.wait()).await.ok();
        // Shells make background processes ignore interrupts.
        if self.own_group && self.is_alive() {
            self.signal(Signal::TERM);
            self.gone(deadline).await;
        }
        self.signal(Signal::KILL);
        let status = match ended {
            Some(status) => status,
            None => self.child.wait().await,
        };
        // Killed processes end at once, unless the system is in trouble.
        self.gone(Instant::now() + Duration::from_secs(1)).await;
        self.pid = None;
        self.guard = None;
        status
    }

    /// Waits until no process of the group is running, or until `deadline`.
    async fn gone(&self, deadline: Instant) {
        while self.own_group && self.is_alive() && Instant::now() < deadline {
            sleep(Duration::from_millis(10)).await;
        }
    }

    /// Returns true if a process of the group is running.
    fn is_alive(&self) -> bool {
        let Some(pid) = self.pid else { return false };
        processes::all()
            .values()
            .any(|p| p.group == pid.as_raw_pid() && !p.ended)
    }

    /// Sends a signal to the program and its descendants. Ended processes are not an error.
    fn signal(&self, signal: Signal) {
        let Some(pid) = self.pid else { return };
        if self.own_group {
            kill_process_group(pid, signal).unwrap_or_default();
            return;
        }
        for pid in processes::descendants(pid.as_raw_pid()) {
            if let Some(pid) = Pid::from_raw(pid) {
                kill_process(pid, signal).unwrap_or_default();
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // No process number is left after a wait.
        self.signal(Signal::KILL);
    }
}

/// Returns true if this process has a terminal and is in its foreground.
fn on_terminal() -> bool {
    let group = std::fs::File::open("/dev/tty")
        .ok()
        .and_then(|tty| rustix::termios::tcgetpgrp(tty).ok());
    group == Some(rustix::process::getpgrp())
}

/// Starts a process that ends the program if this process dies for any reason. Returns `None` on a system without a
/// shell.
fn guard(pid: Pid, own_group: bool) -> Option<Child> {
    // End of input without a line: the plugin died before it could end the program.
    let script = r#"read -r line || { kill -s INT -- "$0"; sleep 2; kill -s KILL -- "$0"; }"#;
    let target = format!("{}{}", if own_group { "-" } else { "" }, pid.as_raw_pid());
    Command::new("/bin/sh")
        .args(["-c", script, &target])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Its own group, so that signals to the group of the plugin or the program do not end it.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .ok()
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt, BufReader};

    use super::*;

    /// Starts a shell. Returns it with the process numbers that it prints.
    async fn shell(script: &str, lines: usize) -> (Running, Vec<i32>) {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut running = Running::start(&mut command).unwrap();
        let mut output = BufReader::new(running.child().stdout.take().unwrap()).lines();
        let mut numbers = Vec::new();
        while numbers.len() < lines {
            numbers.push(output.next_line().await.unwrap().unwrap().parse().unwrap());
        }
        (running, numbers)
    }

    async fn ended(pids: &[i32]) {
        loop {
            let all = processes::all();
            if pids.iter().all(|pid| all.get(pid).is_none_or(|p| p.ended)) {
                return;
            }
            sleep(Duration::from_millis(10)).await;
        }
    }

    #[tokio::test]
    async fn what_a_program_started_ends_with_it() {
        let (mut running, pids) = shell("sleep 300 & echo $!; sh -c 'echo $$; sleep 301; true'", 2).await;
        // The inner shell, and its sleep once that has begun.
        while processes::descendants(pids[1]).len() < 2 {
            sleep(Duration::from_millis(10)).await;
        }
        running.end(Duration::from_secs(60)).await.unwrap();
        ended(&pids).await;
    }

    #[tokio::test]
    async fn what_ignores_interrupts_is_killed_after_the_grace() {
        let (mut running, pids) = shell("trap '' INT; sleep 300 & echo $!; wait", 1).await;
        let status = running.end(Duration::from_millis(50)).await.unwrap();
        assert!(!status.success());
        ended(&pids).await;
    }

    #[tokio::test]
    async fn a_dropped_program_is_killed_with_what_it_started() {
        let (running, pids) = shell("sleep 300 & echo $!; wait", 1).await;
        drop(running);
        ended(&pids).await;
    }

    #[tokio::test]
    async fn what_is_left_by_a_program_that_ended_is_left_alone() {
        let (mut running, pids) = shell("sleep 300 & echo $!", 1).await;
        running.wait().await.unwrap();
        drop(running);
        assert!(!processes::all()[&pids[0]].ended);
        kill_process(Pid::from_raw(pids[0]).unwrap(), Signal::KILL).unwrap();
    }

    #[tokio::test]
    async fn the_guard_ends_a_program_whose_plugin_is_gone() {
        let (mut running, pids) = shell("sleep 300 & echo $!; wait", 1).await;
        // As if this process had been killed: only the pipe to the guard closes.
        let mut guard = running.guard.take().unwrap();
        drop(guard.stdin.take());
        ended(&pids).await;
        running.wait().await.unwrap();
        guard.kill().await.unwrap();
    }
}
