//! Events of the console.

use std::io;

use tokio::signal::windows::{CtrlBreak, CtrlC, CtrlClose, CtrlLogoff, CtrlShutdown};
use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close, ctrl_logoff, ctrl_shutdown};

use crate::interrupt::Interrupt;

/// Stream of requests to end this process.
#[derive(Debug)]
pub struct Interrupts {
    interrupt: CtrlC,
    again: CtrlBreak,
    close: CtrlClose,
    logoff: CtrlLogoff,
    shutdown: CtrlShutdown,
}

impl Interrupts {
    /// Starts to listen. From then on, requests do not end this process by themselves. Only after the console is closed or the session
    /// ends, the system ends the process within five seconds. Must be called in a Tokio runtime.
    ///
    /// # Errors
    /// A console handler cannot be installed.
    pub fn listen() -> io::Result<Interrupts> {
        Ok(Interrupts {
            interrupt: ctrl_c()?,
            again: ctrl_break()?,
            close: ctrl_close()?,
            logoff: ctrl_logoff()?,
            shutdown: ctrl_shutdown()?,
        })
    }

    /// Starts to listen as [`Interrupts::listen`] does: Windows has no equivalent of `nohup`.
    ///
    /// # Errors
    /// A console handler cannot be installed.
    pub fn listen_as_started() -> io::Result<Interrupts> {
        Interrupts::listen()
    }

    /// Waits for the next request.
    pub async fn next(&mut self) -> Interrupt {
        tokio::select! {
            _ = self.interrupt.recv() => Interrupt::Interrupt,
            _ = self.again.recv() => Interrupt::Interrupt,
            _ = self.close.recv() => Interrupt::Hangup,
            _ = self.logoff.recv() => Interrupt::Terminate,
            _ = self.shutdown.recv() => Interrupt::Terminate,
        }
    }
}
