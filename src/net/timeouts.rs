//! How long a request waits.

use std::time::Duration;

/// How long making a connection may take: the system repeats its first packet two times in this time.
pub(crate) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a server may take to begin its answer, where a request says nothing else.
pub(crate) const FIRST_BYTE: Duration = Duration::from_secs(30);
/// How long a peer may be silent in the middle of an answer.
pub(crate) const SILENCE: Duration = Duration::from_secs(60);
