//! Windows.
//!
//! Its functions are called through `windows-sys`, whose declarations are all unsafe.

#![allow(unsafe_code, reason = "the functions of the system are foreign functions")]

pub mod console;
pub mod files;
pub mod groups;
#[cfg(feature = "tokio")]
pub mod listening;
pub mod locks;
pub mod processes;
#[cfg(feature = "tokio")]
pub mod signals;
#[cfg(feature = "tokio")]
pub mod streams;
pub mod user;

use std::io;

/// Converts the result of a system function: zero is a failure, whose reason the system keeps.
fn checked(answer: windows_sys::core::BOOL) -> io::Result<()> {
    match answer {
        0 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
