//! Limits that connections and their bodies share.

use std::time::Duration;

/// Lowest rate at which a client must take a file, in bytes a second, measured after [`FIRST`].
pub const LOWEST_RATE: u64 = 16 << 10;
pub const FIRST: Duration = Duration::from_secs(20);
