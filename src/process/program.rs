//! Child programs of plugins: search by name, and termination.

#![expect(clippy::disallowed_methods, reason = "programs are found by PATH")]

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use system::Os;
use system::groups::{self, Group};
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

/// Returns the path of a program. A name with a slash is a path relative to the current directory; any other name is
/// searched for in the directories of `PATH`. On Windows, the extensions in `PATHEXT` may be left out.
pub fn find(name: &str) -> Result<PathBuf, NotRunnable> {
    let extensions = std::env::var("PATHEXT").ok();
    let names = Os::CURRENT.program_names(name, extensions.as_deref());
    if Os::CURRENT.is_path(name) {
        let found = names.iter().find(|name| runnable(Path::new(name)).is_ok());
        return match found {
            Some(found) => Ok(found.into()),
            None => runnable(Path::new(name)).map(|()| name.into()),
        };
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut problem = NotRunnable::NotFound;
    for dir in std::env::split_paths(&path) {
        for candidate in &names {
            // An empty entry of `PATH` is the current directory.
            let candidate = if dir.as_os_str().is_empty() {
                Path::new(".").join(candidate)
            } else {
                dir.join(candidate)
            };
            match runnable(&candidate) {
                Ok(()) if !name.is_empty() => return Ok(candidate),
                // A file without execute permission does not end the search. It is the error only if no later directory has the program.
                Err(e) if candidate.is_file() => problem = e,
                _ => {}
            }
        }
    }
    Err(problem)
}

fn runnable(path: &Path) -> Result<(), NotRunnable> {
    let found = path.metadata()?;
    if found.is_dir() {
        return Err(NotRunnable::Directory);
    }
    if !system::files::is_program(path, &found) {
        return Err(NotRunnable::NotExecutable);
    }
    Ok(())
}

/// A running program. Its descendants end with it if it is ended early: by [`Running::end`], by dropping this value,
/// and even if the plugin is killed.
#[derive(Debug)]
pub struct Running {
    child: Child,
    group: Option<Group>,
}

impl Running {
    /// Starts a program, which is killed when the returned value is dropped.
    pub fn start(command: &mut Command) -> io::Result<Running> {
        let prepared = groups::prepare(command.as_std_mut());
        let child = command.kill_on_drop(true).spawn()?;
        Ok(Running {
            group: child.id().map(|id| Group::of(prepared, id)),
            child,
        })
    }

    /// Returns the program's process, for access to its streams.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Waits until the program ends. Its descendants may continue.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        if let Some(mut group) = self.group.take() {
            group.leave();
        }
        Ok(status)
    }

    /// Ends the program and its descendants: interrupts them, sends SIGTERM to those that remain when the program
    /// itself has ended, and kills the rest after `grace`.
    pub async fn end(&mut self, grace: Duration) -> io::Result<ExitStatus> {
        let deadline = Instant::now() + grace;
        if let Some(group) = &self.group {
            group.interrupt();
        }
        let ended = timeout_at(deadline, self.child.wait()).await.ok();
        // Shells start background processes with interrupts ignored, so the remaining processes get SIGTERM.
        if let Some(group) = &self.group
            && group.is_alive()
        {
            group.terminate();
            gone(group, deadline).await;
        }
        if let Some(group) = &self.group {
            group.kill();
        }
        let status = match ended {
            Some(status) => status,
            None => self.child.wait().await,
        };
        if let Some(mut group) = self.group.take() {
            // Killed processes normally end at once.
            gone(&group, Instant::now() + Duration::from_secs(1)).await;
            group.leave();
        }
        status
    }
}

/// Waits until no process of the group is running, or until `deadline`.
async fn gone(group: &Group, deadline: Instant) {
    while group.is_alive() && Instant::now() < deadline {
        sleep(Duration::from_millis(10)).await;
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use system::processes;
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
        // The inner shell and its `sleep` must have started.
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
        assert!(
            Command::new("kill")
                .arg(pids[0].to_string())
                .status()
                .await
                .unwrap()
                .success()
        );
    }
}
