//! A running `providers serve`, for tests: start, requests and interrupt.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{SocketAddrV4, TcpStream};
use std::process::{Child, Stdio};

use super::Workspace;

/// Makes a certificate for this machine and its key, both in PEM.
pub fn certificate() -> (String, String) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    (made.cert.pem(), made.signing_key.serialize_pem())
}

/// Connects to `127.0.0.1:PORT` from another address of this machine, 127.0.0.LAST.
pub fn connect_from(last: u8, host: &str) -> TcpStream {
    use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    bind(&socket, &SocketAddrV4::new([127, 0, 0, last].into(), 0)).expect("bound");
    connect(&socket, &host.parse::<SocketAddrV4>().expect("an address")).expect("connected");
    socket.into()
}

/// A running `providers serve`. Dropping it kills the process.
pub struct Serving {
    process: Child,
    /// Address of the server, `127.0.0.1:PORT`.
    pub host: String,
    pub said: String,
}

impl Serving {
    /// Starts `providers serve` with these arguments in a workspace, and waits until it listens.
    pub fn start(w: &Workspace, args: &[&str]) -> Serving {
        let mut command = w.command(super::lean());
        command
            .args([&["providers", "serve", "-no-color", "-listen=127.0.0.1:0"], args].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut process = command.spawn().expect("started");
        let mut out = BufReader::new(process.stdout.as_mut().expect("a pipe"));
        let mut shown = String::new();
        let host = loop {
            let mut line = String::new();
            assert!(out.read_line(&mut line).expect("read") > 0, "it has ended: {shown}");
            shown.push_str(&line);
            if let Some((_, rest)) = line.split_once("url = \"https://") {
                break rest.split('/').next().expect("a host").to_owned();
            }
        };
        assert!(shown.contains("provider_installation {"), "{shown}");
        Serving {
            process,
            host,
            said: shown,
        }
    }

    /// Returns a CLI configuration that installs providers from this server only.
    pub fn network_mirror(&self) -> String {
        format!(
            "provider_installation {{\n  network_mirror {{\n    url = \"https://{}/providers/\"\n  }}\n}}\n",
            self.host
        )
    }

    /// Interrupts the server and returns its log. Fails the test if the server ends with an error.
    pub fn end(mut self) -> String {
        let pid = i32::try_from(self.process.id()).expect("a process");
        let pid = nix::unistd::Pid::from_raw(pid);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).expect("interrupted");
        let mut log = String::new();
        let mut err = self.process.stderr.take().expect("a pipe");
        err.read_to_string(&mut log).expect("read");
        let status = self.process.wait().expect("ended");
        assert!(status.success(), "{status} {log}");
        log
    }
}

/// Kills the process of a test that has failed.
impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
