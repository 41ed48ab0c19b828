//! The user and the machine.

use windows_sys::Win32::Foundation::FILETIME;
use windows_sys::Win32::Security::Authentication::Identity::{GetUserNameExW, NameSamCompatible};
use windows_sys::Win32::System::Threading::{GetCurrentThread, GetThreadTimes};
use windows_sys::Win32::System::WindowsProgramming::GetComputerNameW;

/// Returns `unknown`, which stands for a user whose name is not known: users of Windows have no numeric IDs.
#[must_use]
pub fn id() -> String {
    "unknown".to_owned()
}

/// Returns the name of the user of this process, as in Go's library: `DOMAIN\name`. `None` if the system does not return it.
#[must_use]
pub fn name() -> Option<String> {
    let mut name = [0; 512];
    let mut length = name.len() as u32;
    // SAFETY: the system writes at most `length` characters.
    let found = unsafe { GetUserNameExW(NameSamCompatible, name.as_mut_ptr(), &mut length) };
    found.then(|| text(&name, length)).flatten()
}

/// Returns the name of the machine; an empty one if the system has none.
#[must_use]
pub fn machine() -> String {
    let mut name = [0; 256];
    let mut length = name.len() as u32;
    // SAFETY: the system writes at most `length` characters.
    let found = unsafe { GetComputerNameW(name.as_mut_ptr(), &mut length) };
    (found != 0).then(|| text(&name, length)).flatten().unwrap_or_default()
}

fn text(characters: &[u16], length: u32) -> Option<String> {
    let used = characters.get(..usize::try_from(length).ok()?)?;
    Some(String::from_utf16_lossy(used))
}

/// Returns the processor time that this thread has used.
#[must_use]
pub fn thread_time() -> std::time::Duration {
    let [mut created, mut ended, mut kernel, mut user] = [FILETIME::default(); 4];
    // SAFETY: the handle of the own thread needs no closing, and the system fills in four times.
    let found = unsafe { GetThreadTimes(GetCurrentThread(), &mut created, &mut ended, &mut kernel, &mut user) };
    if found == 0 {
        return std::time::Duration::ZERO;
    }
    let count = |time: FILETIME| u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime);
    // The counts are in units of 100 ns.
    std::time::Duration::from_nanos((count(kernel) + count(user)).saturating_mul(100))
}

/// Returns the pipe of OpenSSH's agent, if the agent is running.
#[must_use]
pub fn ssh_agent() -> Option<std::path::PathBuf> {
    let pipe = std::path::PathBuf::from(r"\\.\pipe\openssh-ssh-agent");
    pipe.exists().then_some(pipe)
}
