//! A program that runs during a test: the test collects its output, waits for texts in it, and ends the program.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::{Ran, Workspace, ran};

/// Time limit of every wait; only a failure takes so long.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// Polls a condition until it is true. Fails the test after [`PATIENCE`].
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "{what}: not after {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A running program. Dropping it kills the process.
pub struct Running {
    child: Child,
    stdout: Collected,
    stderr: Collected,
}

impl Running {
    /// Starts a program.
    pub fn start(command: &mut Command) -> Running {
        // Threads read the output all the time, because the program would block on a full pipe.
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stdout = Collected::from(child.stdout.take().expect("a pipe"));
        let stderr = Collected::from(child.stderr.take().expect("a pipe"));
        Running { child, stdout, stderr }
    }

    /// Starts monoform in a workspace.
    pub fn monoform(w: &Workspace, args: &[&str]) -> Running {
        Running::start(w.command(super::monoform()).args(args))
    }

    /// Returns the process ID.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns true if the program has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("a status").is_some()
    }

    /// Returns the output so far: standard output, then standard error.
    pub fn output(&self) -> String {
        self.stdout.text() + &self.stderr.text()
    }

    /// Waits until a text is in the output.
    #[track_caller]
    pub fn sees(&mut self, text: &str) {
        let began = Instant::now();
        while !self.output().contains(text) {
            let ended = self.has_ended() && self.stdout.is_complete() && self.stderr.is_complete();
            let late = ended || began.elapsed() > PATIENCE;
            assert!(
                !late || self.output().contains(text),
                "no {text:?} in: {}",
                self.output()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).expect("a process ID"));
        kill(pid, signal).expect("the signal is sent");
    }

    /// Waits until the program has installed a handler for a signal. Before that, the signal would end it.
    #[track_caller]
    pub fn handles(&mut self, signal: Signal) {
        let path = format!("/proc/{}/status", self.child.id());
        until(&format!("a handler of {signal}"), || {
            let status = std::fs::read_to_string(&path).unwrap_or_default();
            let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
            let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
            assert!(!self.has_ended(), "it has ended: {}", self.output());
            mask.is_some_and(|mask| mask & (1 << (signal as u32 - 1)) != 0)
        });
    }

    /// Waits for the end and returns the status and the output.
    #[track_caller]
    pub fn ends(mut self) -> Ran {
        until("the end of the program", || self.has_ended());
        // A child that the program left behind may hold the pipes open.
        until("the end of the output", || {
            self.stdout.is_complete() && self.stderr.is_complete()
        });
        let status: ExitStatus = self.child.wait().expect("a status");
        ran(Output {
            status,
            stdout: self.stdout.bytes(),
            stderr: self.stderr.bytes(),
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The bytes that a thread has read from a pipe.
struct Collected {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Collected {
    fn from(mut pipe: impl Read + Send + 'static) -> Collected {
        let bytes: Arc<Mutex<Vec<u8>>> = Arc::default();
        let shared = bytes.clone();
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 8 * 1024];
            while let Ok(n @ 1..) = pipe.read(&mut buffer) {
                shared.lock().expect("no panic").extend_from_slice(&buffer[..n]);
            }
        });
        Collected { bytes, reader }
    }

    fn is_complete(&self) -> bool {
        self.reader.is_finished()
    }

    fn bytes(&self) -> Vec<u8> {
        self.bytes.lock().expect("no panic").clone()
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }
}
