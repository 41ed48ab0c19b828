//! Local sockets, and pipes for the output of programs.

use std::io::{self, PipeReader};
use std::path::{Path, PathBuf};

/// Connection to a local program, through a socket with a path.
pub type LocalStream = tokio::net::UnixStream;

/// Connects to the socket at a path.
///
/// # Errors
/// No program listens at the path.
pub async fn connect(path: &Path) -> io::Result<LocalStream> {
    LocalStream::connect(path).await
}

/// Connects to the socket that a plugin has announced. On Linux, `@` and a name mean an abstract socket (`unix(7)`), which is not a file.
///
/// # Errors
/// No program listens at the socket.
pub async fn connect_to_plugin(path: &Path) -> io::Result<LocalStream> {
    let path = match path.to_str().and_then(|text| text.strip_prefix('@')) {
        Some(name) if cfg!(target_os = "linux") => PathBuf::from(format!("\0{name}")),
        _ => path.to_owned(),
    };
    LocalStream::connect(path).await
}

/// The reading end of a pipe.
pub type PipeStream = tokio::net::unix::pipe::Receiver;

/// Converts the reading end of a pipe for asynchronous use. Must be called in a Tokio runtime.
///
/// # Errors
/// The pipe cannot be registered with the runtime.
pub fn pipe(reader: PipeReader) -> io::Result<PipeStream> {
    PipeStream::from_owned_fd(reader.into())
}

/// Reads the available bytes of a pipe; `None` if there are none.
///
/// # Errors
/// The pipe cannot be read.
pub async fn read_now(pipe: &mut PipeStream, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    match pipe.try_read(buffer) {
        Ok(count) => Ok(Some(count)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}
