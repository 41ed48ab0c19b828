//! Limits of a connection.

/// Size limit of a message in either direction.
pub(crate) const MESSAGE_LIMIT: usize = 256 * 1024 * 1024;

/// HTTP/2 flow control window of one stream: a client may send this many bytes of a request before the plugin reads them.
pub(crate) const STREAM_WINDOW: u32 = 8 << 20;

/// HTTP/2 flow control window of the connection, shared by all requests. The library h2 charges about 256 bytes for each small DATA frame
/// that is not read yet, and closes the connection when half of this window is spent. Thousands of requests may arrive before the first of
/// them is read, so the window is large.
pub(crate) const CONNECTION_WINDOW: u32 = 256 << 20;
