//! Running processes.

use std::collections::{HashMap, HashSet};
use std::process::ExitStatus;

/// A process in the list of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    pub parent: i32,
    /// ID of the process group.
    pub group: i32,
    /// True for a zombie: it has ended, and its parent has not read the status yet.
    pub ended: bool,
}

/// Lists the processes that the system shows, by process ID.
#[cfg(target_os = "linux")]
#[must_use]
pub fn all() -> HashMap<i32, Process> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let one = |entry: std::fs::DirEntry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        // `PID (NAME) STATE PARENT GROUP …`, where the name may have any characters, parentheses included.
        let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
        let ended = matches!(fields.next()?, "Z" | "X");
        let (parent, group) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        Some((pid, Process { parent, group, ended }))
    };
    entries.filter_map(one).collect()
}

/// Lists the processes that the system shows, by process ID.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn all() -> HashMap<i32, Process> {
    listed()
}

/// Lists all processes by `ps`: macOS has no `/proc`, and FreeBSD usually mounts none.
#[cfg(any(not(target_os = "linux"), test))]
fn listed() -> HashMap<i32, Process> {
    let mut command = std::process::Command::new("/bin/ps");
    command.args(["-A", "-o", "pid=", "-o", "ppid=", "-o", "pgid=", "-o", "stat="]);
    let output = command.stdin(std::process::Stdio::null()).output();
    let text = output.map(|output| output.stdout).unwrap_or_default();
    let one = |line: &str| {
        let mut fields = line.split_ascii_whitespace();
        let mut number = || fields.next()?.parse().ok();
        let (pid, parent, group) = (number()?, number()?, number()?);
        let ended = fields.next()?.starts_with('Z');
        Some((pid, Process { parent, group, ended }))
    };
    String::from_utf8_lossy(&text).lines().filter_map(one).collect()
}

/// Returns a process and all its descendants.
#[must_use]
pub fn descendants(pid: i32) -> HashSet<i32> {
    let all = all();
    let mut found = HashSet::from([pid]);
    loop {
        let more: Vec<i32> = all
            .iter()
            .filter(|(pid, process)| found.contains(&process.parent) && !found.contains(pid))
            .map(|(pid, _)| *pid)
            .collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

/// Error number for a file that is not a program for this machine: `ENOEXEC`.
pub const NOT_EXECUTABLE: i32 = 8;

/// Request to end, by a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// SIGINT, as by Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

/// Sends a signal to a process; returns false if there is no such process, or it may not be signaled.
#[must_use]
pub fn ask(id: u32, ask: Ask) -> bool {
    use rustix::process::{Pid, Signal, kill_process};
    let signal = match ask {
        Ask::Interrupt => Signal::INT,
        Ask::Terminate => Signal::TERM,
    };
    let pid = i32::try_from(id).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| kill_process(pid, signal).is_ok())
}

/// Returns the signal that ended a process; `None` if no signal did.
#[must_use]
pub fn signal(status: &ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(status)
}

/// The process that started this one.
#[derive(Debug)]
pub struct Parent(u32);

impl Parent {
    /// Finds the parent.
    #[must_use]
    pub fn of_this_process() -> Parent {
        Parent(std::os::unix::process::parent_id())
    }

    /// Returns true if the parent has ended.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        // The parent has ended if another process has become the parent.
        std::os::unix::process::parent_id() != self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `ps`, which systems without `/proc` need, must return the same process as `/proc`.
    #[test]
    fn list_has_a_child_with_its_parent_and_group_until_it_is_waited_for() {
        let own = i32::try_from(std::process::id()).unwrap();
        let mut child = std::process::Command::new("/bin/cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let of = |all: HashMap<i32, Process>| all.get(&pid).copied();
        if let Some(found) = of(listed()) {
            assert_eq!((found.parent, found.ended), (own, false));
            assert_eq!(of(all()), Some(found));
        } else {
            eprintln!("SKIPPED: no ps");
        }
        assert!(descendants(own).contains(&pid));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!(of(all()), None);
    }
}
