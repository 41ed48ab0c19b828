//! Process of a plugin. It is watched, so that its end is noticed and explained, and it is killed with its connection.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use files::temporary::PrivateDirectory;
use tokio::io::{AsyncRead, BufReader};
use tokio::process::Child;
use tokio::sync::watch;

use crate::logs::{self, Tail};

/// Callback that reports to the user which host a plugin waits for.
#[derive(Clone)]
pub struct ReportWaiting(pub Arc<dyn Fn(&str) + Send + Sync>);

impl std::fmt::Debug for ReportWaiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ReportWaiting")
    }
}

/// Time to wait for the exit status and the rest of the output of a process that seems to have ended.
const EXIT_GRACE: Duration = Duration::from_millis(500);

/// Running process of a plugin. Dropping it kills the process.
pub struct Process {
    program: PathBuf,
    exit: watch::Receiver<Option<Exit>>,
    stderr_open: watch::Receiver<bool>,
    tail: Arc<Tail>,
    // Sending a value or dropping this sender asks the task that owns the child to kill it.
    kill: watch::Sender<bool>,
    // This is the directory of the plugin's socket. It is removed on drop.
    _socket_dir: Option<PrivateDirectory>,
}

/// End of a plugin's process.
#[derive(Clone, Debug)]
pub enum Exit {
    Status(ExitStatus),
    /// Waiting for the process failed.
    Unknown(String),
}

impl Process {
    /// Watches a child process. Its standard error goes to the log, the rest of its standard output is discarded.
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
            // Read all the time, because a full pipe would block the plugin.
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
                    // The process is waited for even after a kill, because a child that nobody waits for
                    // remains a zombie.
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

    #[must_use]
    pub fn program(&self) -> &std::path::Path {
        &self.program
    }

    /// Adds to the exit report a line that did not come from standard error.
    pub fn remember(&self, line: &str) {
        self.tail.push(line);
    }

    /// Returns how the process ended; `None` while it runs.
    #[must_use]
    pub fn exit(&self) -> Option<Exit> {
        self.exit.borrow().clone()
    }

    /// Waits up to `limit` for the end of the process; `None` if it still runs.
    pub async fn wait(&self, limit: Duration) -> Option<Exit> {
        let mut exit = self.exit.clone();
        let waiting = exit.wait_for(Option::is_some);
        match tokio::time::timeout(limit, waiting).await {
            Ok(Ok(exit)) => exit.clone(),
            _ => None,
        }
    }

    /// Kills the process and waits up to [`EXIT_GRACE`] until it has ended.
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
            // The last output may still be in the pipe. The wait is limited, because a child of the plugin may keep the
            // pipe open.
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

/// Describes the end of a process, as the end of a sentence about it.
#[must_use]
pub fn describe(exit: &Exit) -> String {
    match exit {
        Exit::Status(status) => {
            if let Some(signal) = system::processes::signal(status) {
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

/// Message that the limit of processes and threads is reached, with advice.
pub(crate) const AT_LIMIT: &str =
    "The limit of processes and threads for this user is reached: raise it (\"ulimit -u\"), or end others.";

/// Returns true if the system refuses to start one of [`TRIED_THREADS`] threads.
fn is_at_thread_limit() -> bool {
    // If the system refuses a thread to a plugin, the plugin panics inside of its libraries, and cannot report that.
    // So the same number of threads is started here as a test.
    let threads: Vec<_> = std::iter::repeat_with(|| {
        let (release, released) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::Builder::new().stack_size(1 << 16).spawn(move || {
            // All threads are held until the last one has started, because the limit applies to threads that
            // live at the same time.
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
        // The thread does nothing, so it cannot panic.
        let _ = thread.map(std::thread::JoinHandle::join);
    }
    limit
}

/// Number of threads that a call of a plugin may need.
const TRIED_THREADS: usize = 4;
