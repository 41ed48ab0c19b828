//! Requests to end the program, from the user or the system.

/// A request to end, from the user or the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// Ctrl-C: SIGINT; Ctrl-Break, too.
    Interrupt,
    /// SIGTERM, or the end of a Windows session.
    Terminate,
    /// Closing of the terminal: SIGHUP, or the closing of the console.
    Hangup,
}
