//! Signals.

use std::io;
use std::mem::MaybeUninit;

use nix::libc;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::interrupt::Interrupt;

/// Stream of requests to end this process.
#[derive(Debug)]
pub struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
    hangup: Option<Signal>,
}

impl Interrupts {
    /// Starts to listen, after which the signals no longer end this process by themselves. Must be called in a Tokio
    /// runtime.
    ///
    /// # Errors
    /// A signal handler cannot be installed.
    pub fn listen() -> io::Result<Interrupts> {
        Ok(Interrupts {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: Some(signal(SignalKind::hangup())?),
        })
    }

    /// Starts to listen; not for hangups if this process was started with SIGHUP ignored (`nohup`).
    ///
    /// # Errors
    /// A signal handler cannot be installed.
    pub fn listen_as_started() -> io::Result<Interrupts> {
        Ok(Interrupts {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: match hangup_is_ignored() {
                true => None,
                false => signal(SignalKind::hangup()).ok(),
            },
        })
    }

    /// Waits for the next request.
    pub async fn next(&mut self) -> Interrupt {
        let hangup = async {
            match &mut self.hangup {
                Some(signal) => drop(signal.recv().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => Interrupt::Interrupt,
            _ = self.terminate.recv() => Interrupt::Terminate,
            () = hangup => Interrupt::Hangup,
        }
    }
}

/// Returns true if this process ignores SIGHUP. `nohup` starts programs in this way.
fn hangup_is_ignored() -> bool {
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
