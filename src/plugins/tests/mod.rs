//! Tests of the host side against servers and programs of every kind.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking"
)]

mod bad_plugins;
mod fake;
mod listing;
mod protocols;
