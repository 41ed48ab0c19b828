//! What belongs to the process as a whole: its working directory, the system's clock, and its end without a return from main.

#![expect(
    clippy::disallowed_methods,
    reason = "this module is where the crate uses what the whole process shares"
)]

use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

pub use views::process::{abort, now};

/// The working directory.
///
/// # Errors
/// It was removed, or may not be read.
pub fn working_dir() -> io::Result<PathBuf> {
    std::env::current_dir()
}

/// Changes the working directory. To be called before anything is opened by a relative path.
///
/// # Errors
/// There is no such directory, or it may not be entered.
pub fn change_dir(dir: impl AsRef<Path>) -> io::Result<()> {
    std::env::set_current_dir(dir)
}

/// Whether the clock is set to a time before 1970.
#[must_use]
pub fn clock_is_unset() -> bool {
    SystemTime::now() < UNIX_EPOCH
}
