//! Events for a reader of standard input.

/// An event of [`console::Input`](crate::console::Input).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Some input; empty if a wakeup was spurious.
    Input(Vec<u8>),
    /// The end of the input.
    End,
    /// Another thread has woken the reader, for this reason.
    Woken(u8),
}
