//! Limits of a connection.

/// Size limit of a message in either direction.
pub(crate) const MESSAGE_LIMIT: usize = 256 * 1024 * 1024;

/// Limit of the bytes of one request that are in flight before they are acknowledged.
pub(crate) const STREAM_WINDOW: u32 = 8 << 20;

/// Limit of the bytes of all requests that are in flight. The HTTP/2 library counts each small DATA frame that is not read yet with about
/// 256 bytes against half of this window, and closes the connection when that is spent: thousands of requests may come at
/// once, before the first of them is read.
pub(crate) const CONNECTION_WINDOW: u32 = 256 << 20;
