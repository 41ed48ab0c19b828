//! How long a request waits.

use std::time::Duration;

/// How long making a connection may take: the system repeats its first packet two times in this time.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) use trust::http::SILENCE;
