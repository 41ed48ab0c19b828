//! State of the process as a whole: working directory and clock.

#![expect(
    clippy::disallowed_methods,
    reason = "this module is where the crate uses what the whole process shares"
)]

use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

pub use views::process::{abort, now};

/// Returns the working directory.
///
/// # Errors
/// The directory was removed, or cannot be read.
pub fn working_dir() -> io::Result<PathBuf> {
    std::env::current_dir()
}

/// Changes the working directory. Must be called before anything is opened by a relative path.
///
/// # Errors
/// The directory does not exist, or cannot be entered.
pub fn change_dir(dir: impl AsRef<Path>) -> io::Result<()> {
    std::env::set_current_dir(dir)
}

/// Returns true if the clock is set to a time before 1970.
#[must_use]
pub fn clock_is_unset() -> bool {
    SystemTime::now() < UNIX_EPOCH
}
