//! A program with its descendants, as a job object.

use std::io;
use std::os::windows::io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle};
use std::process::Command;
use std::sync::OnceLock;

use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
    JOBOBJECT_BASIC_ACCOUNTING_INFORMATION, JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JobObjectBasicAccountingInformation,
    JobObjectExtendedLimitInformation, QueryInformationJobObject, SetInformationJobObject, TerminateJobObject,
};
use windows_sys::Win32::System::Threading::{OpenProcess, PROCESS_SET_QUOTA, PROCESS_TERMINATE};

use super::checked;

/// Start options of a program, for [`Group::of`].
#[derive(Debug)]
pub struct Prepared(());

/// Prepares a command whose descendants are to end with it.
pub fn prepare(_command: &mut Command) -> Prepared {
    Prepared(())
}

/// A running program with its descendants. The system ends them when this value is dropped, even if this process is killed,
/// unless the group was [left](Group::leave) before.
#[derive(Debug)]
pub struct Group {
    job: Option<OwnedHandle>,
}

impl Group {
    /// Returns the group of a program that was started.
    #[must_use]
    pub fn of(_prepared: Prepared, id: u32) -> Group {
        // Programs that the new process starts before it is assigned to the job are not in the job. It has had only microseconds for that.
        Group {
            job: job().and_then(|job| assign(&job, id).map(|()| job)).ok(),
        }
    }

    /// Does nothing: an interrupt of the console reaches all of its programs, and other interrupts do not exist.
    pub fn interrupt(&self) {}

    /// Ends all processes.
    pub fn terminate(&self) {
        self.kill();
    }

    /// Ends all processes.
    pub fn kill(&self) {
        if let Some(job) = &self.job {
            // SAFETY: the handle is open. Processes that have ended already are skipped.
            unsafe { TerminateJobObject(job.as_raw_handle(), 1) };
        }
    }

    /// Returns true if a process of the group is running.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        let mut counts = JOBOBJECT_BASIC_ACCOUNTING_INFORMATION::default();
        let known = self.job.as_ref().is_some_and(|job| {
            let size = size_of_val(&counts) as u32;
            let to = (&raw mut counts).cast();
            // SAFETY: the handle is open, and the system fills in the counts.
            let done = unsafe {
                QueryInformationJobObject(
                    job.as_raw_handle(),
                    JobObjectBasicAccountingInformation,
                    to,
                    size,
                    std::ptr::null_mut(),
                )
            };
            done != 0
        });
        known && counts.ActiveProcesses > 0
    }

    /// Leaves the descendants running after the program has ended.
    pub fn leave(&mut self) {
        if let Some(job) = self.job.take() {
            // The last handle is closed when this function returns, and that must not end the processes.
            let _ = limit(&job, 0);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Makes the system end a process when this process ends, for any reason.
pub fn tie(id: u32) {
    static JOB: OnceLock<Option<OwnedHandle>> = OnceLock::new();
    if let Some(job) = JOB.get_or_init(|| job().ok()) {
        // A process that has ended already cannot be assigned.
        let _ = assign(job, id);
    }
}

/// Creates a job whose processes end when its last handle is closed.
fn job() -> io::Result<OwnedHandle> {
    // SAFETY: the handle is checked, and owned from here on.
    let job = unsafe {
        let job = CreateJobObjectW(std::ptr::null(), std::ptr::null());
        if job.is_null() {
            return Err(io::Error::last_os_error());
        }
        OwnedHandle::from_raw_handle(job)
    };
    limit(&job, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE)?;
    Ok(job)
}

fn limit(job: &OwnedHandle, flags: u32) -> io::Result<()> {
    let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
    limits.BasicLimitInformation.LimitFlags = flags;
    let size = size_of_val(&limits) as u32;
    let from = (&raw const limits).cast();
    // SAFETY: the handle is open, and the system reads the limits.
    checked(unsafe { SetInformationJobObject(job.as_raw_handle(), JobObjectExtendedLimitInformation, from, size) })
}

fn assign(job: &OwnedHandle, id: u32) -> io::Result<()> {
    // SAFETY: the handle is checked, and owned from here on. The number is that of a child whose handle is still open, so that
    // no other process has it.
    unsafe {
        let process = OpenProcess(PROCESS_SET_QUOTA | PROCESS_TERMINATE, 0, id);
        if process.is_null() {
            return Err(io::Error::last_os_error());
        }
        let process = OwnedHandle::from_raw_handle(process);
        checked(AssignProcessToJobObject(job.as_raw_handle(), process.as_raw_handle()))
    }
}
