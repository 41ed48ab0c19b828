//! Signals.

use std::mem::MaybeUninit;

use nix::libc;

/// Returns true if this process ignores SIGHUP, the end of its terminal: so does a program that `nohup` starts.
#[must_use]
pub fn hangup_is_ignored() -> bool {
    let mut now = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: without a new disposition nothing changes, and the system fills in the present one.
    #[allow(
        unsafe_code,
        reason = "no library has this question without a change of the disposition"
    )]
    let handler = unsafe {
        if libc::sigaction(libc::SIGHUP, std::ptr::null(), now.as_mut_ptr()) != 0 {
            return false;
        }
        now.assume_init().sa_sigaction
    };
    handler == libc::SIG_IGN
}
