//! Requests to end a program.

/// A request to end, from the user or the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// Ctrl-C: SIGINT; Ctrl-Break, too.
    Interrupt,
    /// SIGTERM; the end of the session of Windows.
    Terminate,
    /// The end of the terminal: SIGHUP, or the closing of the console.
    Hangup,
}
