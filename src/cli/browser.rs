//! Opening an address in the browser of whoever sits at this machine.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What opens addresses, where it is there.
const OPENERS: &[&str] = if cfg!(target_os = "macos") {
    &["open"]
} else {
    &["xdg-open", "wslview"]
};

/// How long an opener may take to say that it cannot.
const PATIENCE: Duration = Duration::from_secs(3);

/// Tries to open an address; says whether that seems to have worked. Programs that are still running after a while have done it.
#[must_use]
pub fn open(url: &str) -> bool {
    OPENERS.iter().any(|opener| opened_by(opener, url))
}

fn opened_by(opener: &str, url: &str) -> bool {
    let started = Command::new(opener)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = started else {
        return false;
    };
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) => std::thread::sleep(Duration::from_millis(20)),
            Err(_) => return false,
        }
    }
    true
}
