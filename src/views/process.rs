//! The system clock, and the immediate end of the process.

#![expect(
    clippy::disallowed_methods,
    reason = "this module is where the crate uses what the whole process shares"
)]

#[must_use]
pub fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

/// Ends the process with status 1 while other threads run: nothing is unlocked or flushed. Only the live area is erased, so that
/// it does not remain on the terminal.
pub fn abort() -> ! {
    crate::area::close();
    std::process::exit(1)
}
