//! A plugin's process: watched, so that its death is noticed and can be explained, and ended with us.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use files::temporary::PrivateDirectory;
use tokio::io::{AsyncRead, BufReader};
use tokio::process::Child;
use tokio::sync::watch;

use crate::logs::{self, Tail};

/// Tells a user which host a plugin waits for.
#[derive(Clone)]
pub struct ReportWaiting(pub Arc<dyn Fn(&str) + Send + Sync>);

impl std::fmt::Debug for ReportWaiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ReportWaiting")
    }
}

/// Time to wait for the exit status and the rest of the output of a process that seems to have ended.
const EXIT_GRACE: Duration = Duration::from_millis(500);

/// A running plugin. Dropping it kills the process.
pub struct Process {
    program: PathBuf,
    exit: watch::Receiver<Option<Exit>>,
    stderr_open: watch::Receiver<bool>,
    tail: Arc<Tail>,
    // Closing this channel asks the task that owns the child to kill it.
    kill: watch::Sender<bool>,
    // The directory for its socket, removed with us.
    _socket_dir: Option<PrivateDirectory>,
}

/// How a process ended.
#[derive(Clone, Debug)]
pub enum Exit {
    /// By itself or by a signal.
    Status(ExitStatus),
    /// Unknown: waiting for it failed.
    Unknown(String),
}

impl Process {
    /// Watches a child. Its standard error goes to the log, the rest of its standard output nowhere.
    pub fn watch(
        mut child: Child,
        title: &str,
        program: PathBuf,
        stdout: Option<impl AsyncRead + Send + Unpin + 'static>,
        socket_dir: Option<PrivateDirectory>,
        waiting: Option<ReportWaiting>,
    ) -> Process {
        let tail = Arc::new(Tail::default());
        let (stderr_sender, stderr_open) = watch::channel(true);
        if let Some(stderr) = child.stderr.take() {
            let (tail, title) = (tail.clone(), logs::name(title, Some(&program)));
            tokio::spawn(async move {
                let mut reader = BufReader::new(stderr);
                while let Ok(Some(line)) = logs::read_line(&mut reader).await {
                    if let Some(report) = &waiting
                        && let Some(host) = logs::waiting_for(&line)
                    {
                        report.0(&host);
                    }
                    tail.push(&line);
                    logs::relay(&title, &line);
                }
                stderr_sender.send_replace(false);
            });
        } else {
            stderr_sender.send_replace(false);
        }
        if let Some(mut stdout) = stdout {
            // A full pipe would block the plugin.
            tokio::spawn(async move {
                let _ = tokio::io::copy(&mut stdout, &mut tokio::io::sink()).await;
            });
        }
        let (kill, mut killed) = watch::channel(false);
        let (exit_sender, exit) = watch::channel(None);
        tokio::spawn(async move {
            let ended = tokio::select! {
                ended = child.wait() => ended,
                _ = killed.changed() => {
                    let _ = child.start_kill();
                    child.wait().await
                }
            };
            let exit = match ended {
                Ok(status) => Exit::Status(status),
                Err(error) => Exit::Unknown(error.to_string()),
            };
            exit_sender.send_replace(Some(exit));
        });
        Process {
            program,
            exit,
            stderr_open,
            tail,
            kill,
            _socket_dir: socket_dir,
        }
    }

    /// The executable.
    #[must_use]
    pub fn program(&self) -> &std::path::Path {
        &self.program
    }

    /// Takes a line that the plugin wrote, but not to its standard error.
    pub fn remember(&self, line: &str) {
        self.tail.push(line);
    }

    /// How it ended, if it did.
    #[must_use]
    pub fn exit(&self) -> Option<Exit> {
        self.exit.borrow().clone()
    }

    /// Waits for its end, so long at most.
    pub async fn wait(&self, limit: Duration) -> Option<Exit> {
        let mut exit = self.exit.clone();
        let waiting = exit.wait_for(Option::is_some);
        match tokio::time::timeout(limit, waiting).await {
            Ok(Ok(exit)) => exit.clone(),
            _ => None,
        }
    }

    /// Kills it and waits until it is gone.
    pub async fn kill(&self) {
        self.kill.send_replace(true);
        self.wait(EXIT_GRACE).await;
    }

    /// Describes how the process ended: exit status and final log lines. Waits up to [`EXIT_GRACE`] for both.
    pub async fn exit_report(&self) -> String {
        let end = match self.wait(EXIT_GRACE).await {
            Some(exit) => describe(&exit),
            None => "is still running".to_owned(),
        };
        let limit = match is_at_thread_limit() {
            true => format!("\n\n{AT_LIMIT}"),
            false => String::new(),
        };
        format!("Its process {end}.{}{limit}", self.final_log_lines().await)
    }

    /// Returns the final lines of standard error as a paragraph of their own; empty if there are none.
    pub async fn final_log_lines(&self) -> String {
        if self.exit().is_some() {
            // What it wrote may still be on its way.
            let mut open = self.stderr_open.clone();
            let _ = tokio::time::timeout(EXIT_GRACE, open.wait_for(|open| !open)).await;
        }
        let lines = self.tail.lines();
        if lines.is_empty() {
            String::new()
        } else {
            format!("\n\nThe last it wrote:\n  {}", lines.join("\n  "))
        }
    }
}

/// The end of a process as the end of a sentence.
#[must_use]
pub fn describe(exit: &Exit) -> String {
    match exit {
        Exit::Status(status) => {
            #[cfg(unix)]
            if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(status) {
                return match signal_name(signal) {
                    Some(name) => format!("was killed by signal {signal} ({name})"),
                    None => format!("was killed by signal {signal}"),
                };
            }
            match status.code() {
                Some(code) => format!("ended with exit status {code}"),
                None => "ended".to_owned(),
            }
        }
        Exit::Unknown(why) => format!("is gone, and its exit status is not known ({why})"),
    }
}

#[cfg(unix)]
fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        4 => "SIGILL",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL; it may have used more memory than there is",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        _ => return None,
    })
}

/// The limit of processes and threads is reached, and what to do about it.
pub(crate) const AT_LIMIT: &str =
    "The limit of processes and threads for this user is reached: raise it (\"ulimit -u\"), or end others.";

/// Returns true if the system refuses to start threads. A plugin that is refused one panics inside of its libraries, and cannot tell.
fn is_at_thread_limit() -> bool {
    let threads: Vec<_> = std::iter::repeat_with(|| {
        let (release, released) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::Builder::new().stack_size(1 << 16).spawn(move || {
            let _ = released.recv();
        });
        (release, thread)
    })
    .take(TRIED_THREADS)
    .collect();
    let refused = |error: &std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
    let limit = threads.iter().any(|(_, thread)| thread.as_ref().is_err_and(refused));
    for (release, thread) in threads {
        drop(release);
        // A thread that does nothing does not panic.
        let _ = thread.map(std::thread::JoinHandle::join);
    }
    limit
}

/// As many threads as a call of a plugin may need.
const TRIED_THREADS: usize = 4;
