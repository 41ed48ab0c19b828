//! Process group of a program with its descendants.

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::processes;

/// Start options of a program, for [`Group::of`].
#[derive(Debug)]
pub struct Prepared {
    own_group: bool,
}

/// Prepares a command whose descendants are to end with it.
///
/// The program gets its own process group, which is then ended. On a terminal it stays in the group of this process, because
/// otherwise it could not prompt the user; the terminal's interrupts reach it directly, and its descendants are ended one by
/// one.
pub fn prepare(command: &mut Command) -> Prepared {
    let own_group = !on_terminal();
    if own_group {
        command.process_group(0);
    }
    Prepared { own_group }
}

/// A running program with its descendants. They are killed when this value is dropped, and ended if this process is killed,
/// unless the group was [left](Group::leave) before.
#[derive(Debug)]
pub struct Group {
    pid: Option<Pid>,
    own_group: bool,
    /// Process that ends the program if this process dies. Its standard input is a pipe from this process.
    guard: Option<Child>,
}

impl Group {
    /// Returns the group of a program that was started.
    #[must_use]
    pub fn of(prepared: Prepared, id: u32) -> Group {
        let Prepared { own_group } = prepared;
        let pid = i32::try_from(id).ok().and_then(Pid::from_raw);
        Group {
            pid,
            own_group,
            guard: pid.and_then(|pid| guard(pid, own_group)),
        }
    }

    /// Sends SIGINT to all processes. Does nothing on a terminal, whose interrupts reach the processes directly.
    pub fn interrupt(&self) {
        if self.own_group {
            self.signal(Signal::INT);
        }
    }

    /// Requests all processes to end (SIGTERM).
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Kills all processes.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Returns true if the program has a group of its own, and a process of it is running.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        let Some(pid) = self.pid.filter(|_| self.own_group) else {
            return false;
        };
        let all = processes::all();
        all.values().any(|p| p.group == pid.as_raw_pid() && !p.ended)
    }

    /// Leaves the descendants running after the program has ended.
    pub fn leave(&mut self) {
        // The process ID may now belong to another program, which a later signal would reach.
        self.pid = None;
        self.dismiss();
    }

    /// Ends the guard.
    fn dismiss(&mut self) {
        if let Some(mut guard) = self.guard.take() {
            // The guard is killed before its input is closed, because the end of its input would make it end the program.
            let _ = guard.kill();
            let _ = guard.wait();
        }
    }

    /// Sends a signal to the program and its descendants. Processes that have ended are skipped.
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

impl Drop for Group {
    fn drop(&mut self) {
        // After [`Group::leave`], no process ID is recorded, and no signal is sent.
        self.kill();
        self.dismiss();
    }
}

/// Does nothing: on Linux, a child sets its parent-death signal when it starts. Other Unix systems have no such signal.
pub fn tie(_id: u32) {}

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
    // If the input ends without a line, this process died before it could end the program.
    let script = r#"read -r line || { kill -s INT -- "$0"; sleep 2; kill -s KILL -- "$0"; }"#;
    let target = format!("{}{}", if own_group { "-" } else { "" }, pid.as_raw_pid());
    Command::new("/bin/sh")
        .args(["-c", script, &target])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // The guard has its own process group, so that signals to the groups of this process and of the program do not end the guard.
        .process_group(0)
        .spawn()
        .ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn guard_ends_a_program_whose_plugin_is_gone() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "sleep 300 & wait"]);
        let prepared = prepare(&mut command);
        let mut child = command.spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let mut group = Group::of(prepared, child.id());
        while processes::descendants(pid).len() < 2 {
            std::thread::sleep(Duration::from_millis(10));
        }
        let all = processes::descendants(pid);
        // Closing only the pipe to the guard has the effect of killing this process.
        drop(group.guard.as_mut().unwrap().stdin.take());
        child.wait().unwrap();
        while processes::all().iter().any(|(pid, p)| all.contains(pid) && !p.ended) {
            std::thread::sleep(Duration::from_millis(10));
        }
        group.guard.take().unwrap().wait().unwrap();
        group.leave();
    }
}
