//! Opening a URL in the user's browser.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Time to wait for an opener (such as `xdg-open`) to fail.
const PATIENCE: Duration = Duration::from_secs(3);

/// Opens a URL in the browser. Returns true if an opener has succeeded, or still runs after [`PATIENCE`].
#[must_use]
pub fn open(url: &str) -> bool {
    let openers = system::Os::CURRENT.openers();
    openers.iter().any(|opener| opened_by(opener, url))
}

fn opened_by(opener: &[&str], url: &str) -> bool {
    let [program, arguments @ ..] = opener else {
        return false;
    };
    let started = Command::new(program)
        .args(arguments)
        .arg(url)
        // Openers print warnings of the desktop environment, which would clutter the command's output.
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = started else {
        return false;
    };
    let began = Instant::now();
    // The process is polled, since the standard library cannot wait for a process with a limit.
    while began.elapsed() < PATIENCE {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) => std::thread::sleep(Duration::from_millis(20)),
            Err(_) => return false,
        }
    }
    // The opener still runs, so it has not failed: some openers run as long as the browser is open.
    true
}
