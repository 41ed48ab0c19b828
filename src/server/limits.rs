//! Limits that are used both for connections and for bodies.

use std::time::Duration;

/// Minimum rate at which a client must receive a file, in bytes per second, measured after [`FIRST`].
pub const LOWEST_RATE: u64 = 16 << 10;
/// Time after which [`LOWEST_RATE`] applies: the age of a connection, or the time since a body began.
pub const FIRST: Duration = Duration::from_secs(20);
