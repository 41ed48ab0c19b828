//! Running processes.

use std::os::windows::io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle};
use std::process::ExitStatus;

use windows_sys::Win32::Foundation::{INVALID_HANDLE_VALUE, WAIT_TIMEOUT};
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, PROCESSENTRY32, Process32First, Process32Next, TH32CS_SNAPPROCESS,
};
use windows_sys::Win32::System::Threading::{OpenProcess, PROCESS_SYNCHRONIZE, WaitForSingleObject};

/// Error number for a file that is not a program for this machine: `ERROR_BAD_EXE_FORMAT`.
pub const NOT_EXECUTABLE: i32 = 193;

/// Request to end, by a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// SIGINT, as by Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

/// Returns false: Windows has no signals.
#[must_use]
pub fn ask(_id: u32, _ask: Ask) -> bool {
    false
}

/// Returns `None`: signals do not exist on Windows.
#[must_use]
pub fn signal(_status: &ExitStatus) -> Option<i32> {
    None
}

/// The process that started this one.
#[derive(Debug)]
pub struct Parent(Option<OwnedHandle>);

impl Parent {
    /// Finds the parent. A parent that cannot be found counts as running.
    #[must_use]
    pub fn of_this_process() -> Parent {
        // SAFETY: the handle is checked, and owned from here on.
        let handle = parent_number().map(|number| unsafe { OpenProcess(PROCESS_SYNCHRONIZE, 0, number) });
        Parent(handle.filter(|handle| !handle.is_null()).map(|handle| {
            // SAFETY: as above.
            unsafe { OwnedHandle::from_raw_handle(handle) }
        }))
    }

    /// Returns true if the parent has ended.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        // SAFETY: the handle is open. It refers to this process even after the process ID is assigned to another one.
        self.0
            .as_ref()
            .is_some_and(|parent| unsafe { WaitForSingleObject(parent.as_raw_handle(), 0) } != WAIT_TIMEOUT)
    }
}

/// Returns the ID of the process that started this one. The system keeps this ID even after that process has ended.
fn parent_number() -> Option<u32> {
    // SAFETY: the list is checked, and closed by its owner; the size tells the system which form an entry has.
    unsafe {
        let list = CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0);
        if list == INVALID_HANDLE_VALUE {
            return None;
        }
        let list = OwnedHandle::from_raw_handle(list);
        let mut entry = PROCESSENTRY32 {
            dwSize: size_of::<PROCESSENTRY32>() as u32,
            ..PROCESSENTRY32::default()
        };
        let mut found = Process32First(list.as_raw_handle(), &mut entry);
        while found != 0 {
            if entry.th32ProcessID == std::process::id() {
                return Some(entry.th32ParentProcessID);
            }
            found = Process32Next(list.as_raw_handle(), &mut entry);
        }
        None
    }
}
