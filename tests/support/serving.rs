//! A running `providers serve` or `state serve`, for tests: start, requests and interrupt.

use std::io::Read as _;
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

/// A running `providers serve` or `state serve`. Dropping it kills the process.
pub struct Serving {
    process: Child,
    /// Address of the server, `127.0.0.1:PORT`.
    pub host: String,
    /// Text that the server printed until it listened.
    pub said: String,
}

impl Serving {
    /// Starts `providers serve` with these arguments in a workspace, and waits until it listens.
    pub fn start(w: &Workspace, args: &[&str]) -> Serving {
        let args = [&["providers", "serve", "-no-color", "-listen=127.0.0.1:0"], args].concat();
        let mut serving = Serving::spawn(w, &args);
        serving.host = serving.read_until("url = \"https://");
        assert!(serving.said.contains("provider_installation {"), "{}", serving.said);
        serving
    }

    /// Starts `state serve` with these arguments in a workspace, and waits until it listens. Returns the password, too.
    pub fn states(w: &Workspace, args: &[&str]) -> (Serving, String) {
        let args = [&["state", "serve", "-no-color", "-listen=127.0.0.1:0"], args].concat();
        let mut serving = Serving::spawn(w, &args);
        serving.host = serving.read_until("address        = \"http://");
        let password = serving.read_until("TF_HTTP_PASSWORD=");
        (serving, password)
    }

    fn spawn(w: &Workspace, args: &[&str]) -> Serving {
        let mut command = w.command(super::lean());
        command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        Serving {
            process: command.spawn().expect("started"),
            host: String::new(),
            said: String::new(),
        }
    }

    /// Reads the output of the server until a line has this text. Returns the text behind it, until a slash or the end of the line.
    fn read_until(&mut self, text: &str) -> String {
        // Byte by byte, so that nothing is lost between two calls.
        let out = self.process.stdout.as_mut().expect("a pipe");
        let mut line = Vec::new();
        loop {
            let mut byte = [0];
            assert!(out.read(&mut byte).expect("read") > 0, "it has ended: {}", self.said);
            line.extend(byte);
            if byte == *b"\n" {
                let read = String::from_utf8(std::mem::take(&mut line)).expect("text");
                self.said.push_str(&read);
                if let Some((_, rest)) = read.trim_end().split_once(text) {
                    return rest.split('/').next().expect("a part").to_owned();
                }
            }
        }
    }

    /// Returns a CLI configuration that installs providers from this server only.
    pub fn network_mirror(&self) -> String {
        format!(
            "provider_installation {{\n  network_mirror {{\n    url = \"https://{}/providers/\"\n  }}\n}}\n",
            self.host
        )
    }

    /// Interrupts the server and returns its log, followed by the rest of its output. Fails the test if the server ends with an error.
    pub fn end(mut self) -> String {
        let pid = i32::try_from(self.process.id()).expect("a process");
        let pid = nix::unistd::Pid::from_raw(pid);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).expect("interrupted");
        let mut log = String::new();
        let mut err = self.process.stderr.take().expect("a pipe");
        err.read_to_string(&mut log).expect("read");
        let mut out = self.process.stdout.take().expect("a pipe");
        out.read_to_string(&mut log).expect("read");
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
