//! The user and the machine.

/// Returns the ID of the user of this process.
#[must_use]
pub fn id() -> String {
    rustix::process::getuid().as_raw().to_string()
}

/// Returns the name of the user of this process, according to `/etc/passwd`; `None` if the user is not listed there.
#[must_use]
pub fn name() -> Option<String> {
    let uid = id();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == uid).then(|| name.to_owned())
    })
}

/// Returns the name of the machine.
#[must_use]
pub fn machine() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Returns the processor time that this thread has used.
#[must_use]
pub fn thread_time() -> std::time::Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.try_into().unwrap_or_default()
}

/// Returns `None`: on Unix, the socket of the agent has no fixed path, so only `SSH_AUTH_SOCK` names it.
#[must_use]
pub fn ssh_agent() -> Option<std::path::PathBuf> {
    None
}
