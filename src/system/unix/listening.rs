//! Sockets on which plugins listen: Unix sockets.

use std::fs::DirBuilder;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, chown};
use std::path::{Path, PathBuf};

pub use tokio::net::{UnixListener as Listener, UnixStream as Stream};

use super::files::set_mode;
use crate::listen::SocketRequest;

/// A Unix socket in a directory of its own, which is removed when this value is dropped.
#[derive(Debug)]
pub struct Socket {
    pub listener: Listener,
    /// Kind of network in the handshake of plugins.
    pub network: &'static str,
    /// Path of the socket; for an abstract socket (`unix(7)`), which is not a file, `@` and its name.
    pub address: String,
    _dir: Option<OwnDirectory>,
}

/// A directory that only this user can use. It is removed with what is in it when this value is dropped.
#[derive(Debug)]
struct OwnDirectory(PathBuf);

impl OwnDirectory {
    /// Creates a directory with a new name.
    fn create_in(base: &Path) -> io::Result<OwnDirectory> {
        loop {
            // Short, since the path of a socket has about a hundred bytes.
            let path = base.join(format!("plugin-{:08x}", random() >> 32));
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(OwnDirectory(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for OwnDirectory {
    fn drop(&mut self) {
        // The process is ending, so nobody could be told.
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// Returns a number for a name that only has to be unused. A new hasher begins with random keys.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

impl Socket {
    /// Opens a socket that only this user (and the requested group) can reach. If no file can be created, a secured request without a
    /// directory gets an abstract socket, which every user can reach. Must be called in a Tokio runtime.
    ///
    /// # Errors
    /// The socket's directory cannot be created, or the group does not exist.
    pub fn open(request: &SocketRequest) -> io::Result<Socket> {
        let base = request.dir.clone().unwrap_or_else(std::env::temp_dir);
        let dir = match OwnDirectory::create_in(&base) {
            Ok(dir) => dir,
            // Every user can connect to an abstract socket, but connections require the certificate of the client.
            Err(error) if request.secured && request.dir.is_none() => {
                return Socket::without_file().map_err(|_| error);
            }
            Err(error) => return Err(error),
        };
        // The mode is set explicitly, because the umask may have changed it.
        set_mode(&dir.0, 0o700)?;
        let path = dir.0.join("socket");
        let listener = Listener::bind(&path)?;
        set_mode(&path, 0o700)?;
        if let Some(group) = &request.group {
            let group = group_id(group)?;
            open_to_group(&dir.0, group, 0o710)?;
            open_to_group(&path, group, 0o660)?;
        }
        Ok(Socket {
            listener,
            network: "unix",
            address: path.display().to_string(),
            _dir: Some(dir),
        })
    }

    /// Opens an abstract socket, for systems without a writable directory.
    #[cfg(target_os = "linux")]
    fn without_file() -> io::Result<Socket> {
        use std::os::linux::net::SocketAddrExt as _;
        let name = format!("monoform-plugin-{:016x}", random());
        let address = std::os::unix::net::SocketAddr::from_abstract_name(&name)?;
        let listener = std::os::unix::net::UnixListener::bind_addr(&address)?;
        listener.set_nonblocking(true)?;
        Ok(Socket {
            listener: Listener::from_std(listener)?,
            network: "unix",
            address: format!("@{name}"),
            _dir: None,
        })
    }

    #[cfg(not(target_os = "linux"))]
    fn without_file() -> io::Result<Socket> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

fn open_to_group(path: &Path, group: u32, mode: u32) -> io::Result<()> {
    chown(path, None, Some(group))?;
    set_mode(path, mode)
}

/// Returns the ID of a group that is given by its ID or its name.
fn group_id(group: &str) -> io::Result<u32> {
    if let Ok(id) = group.parse() {
        return Ok(id);
    }
    let groups = std::fs::read_to_string("/etc/group")?;
    let id = groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(group))
            .then(|| fields.nth(1)?.parse().ok())
            .flatten()
    });
    id.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("there is no group {group:?}")))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_without_a_file_is_reached_by_its_name() {
        let socket = Socket::without_file().unwrap();
        assert!(socket.address.starts_with('@') && !Path::new(&socket.address).exists());
        let (connected, accepted) = tokio::join!(
            crate::streams::connect_to_plugin(Path::new(&socket.address)),
            socket.listener.accept()
        );
        assert!(connected.is_ok() && accepted.is_ok());
    }
}
