//! The system's clock, and the end of the process without a return from main.

#![expect(
    clippy::disallowed_methods,
    reason = "this module is where the crate uses what the whole process shares"
)]

/// The time.
#[must_use]
pub fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

/// Ends the process with status 1 while other threads run: nothing is unlocked or flushed. A terminal shows nothing that was to
/// be replaced.
pub fn abort() -> ! {
    crate::area::close();
    std::process::exit(1)
}
