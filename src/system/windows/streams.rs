//! Named pipes, and pipes for the output of programs.

use std::io::{self, PipeReader};
use std::os::windows::io::OwnedHandle;
use std::path::Path;
use std::time::Duration;

use tokio::net::windows::named_pipe::{ClientOptions, NamedPipeClient};
use windows_sys::Win32::Foundation::ERROR_PIPE_BUSY;

/// Connection to a local program, through a named pipe.
pub type LocalStream = NamedPipeClient;

/// Connects to a named pipe, such as `\\.\pipe\openssh-ssh-agent`.
///
/// # Errors
/// No program listens at the pipe, or all of its instances remain in use.
pub async fn connect(path: &Path) -> io::Result<LocalStream> {
    let busy = i32::try_from(ERROR_PIPE_BUSY).ok();
    // All instances of the pipe may be in use by other clients. The number of attempts is limited, because the server
    // may hang.
    for _ in 0..100 {
        match ClientOptions::new().open(path) {
            Err(error) if error.raw_os_error() == busy => tokio::time::sleep(Duration::from_millis(20)).await,
            opened => return opened,
        }
    }
    ClientOptions::new().open(path)
}

/// Returns an error: plugins listen on TCP on Windows.
///
/// # Errors
/// Always.
pub async fn connect_to_plugin(_path: &Path) -> io::Result<LocalStream> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The reading end of a pipe.
pub type PipeStream = tokio::fs::File;

/// Converts the reading end of a pipe for asynchronous use, on threads of the runtime: anonymous pipes cannot be read
/// asynchronously.
///
/// # Errors
/// None.
pub fn pipe(reader: PipeReader) -> io::Result<PipeStream> {
    Ok(PipeStream::from_std(OwnedHandle::from(reader).into()))
}

/// Reads the available bytes of a pipe; `None` if there are none.
///
/// # Errors
/// The pipe cannot be read.
pub async fn read_now(pipe: &mut PipeStream, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    use tokio::io::AsyncReadExt as _;
    // A thread reads, and continues after this timeout. The next call receives what it has read.
    let read = tokio::time::timeout(Duration::from_millis(50), pipe.read(buffer));
    read.await.ok().transpose()
}
