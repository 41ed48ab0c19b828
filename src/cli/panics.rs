//! Panic hook: a panic is reported as a bug in this program, with an exit status of its own.
//!
//! The report is written to a file that only its owner can read, so that it can be attached to an issue. It contains no values: a
//! panic's message is included only if it is a constant text of the program.

#![expect(clippy::disallowed_methods, reason = "the report has the time in its name")]

use std::backtrace::Backtrace;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::panic::PanicHookInfo;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use addrs::program::Mode;
use system::files::OpenOptionsExt as _;

/// Exit status after a panic, as in Terraform.
pub const STATUS: u8 = 11;

/// Name of the running command, without its arguments.
static COMMAND: OnceLock<String> = OnceLock::new();

/// True once a panic was reported.
static REPORTED: AtomicBool = AtomicBool::new(false);

/// Installs the hook that reports panics as bugs.
pub fn install() {
    std::panic::set_hook(Box::new(report));
}

/// Sets the running command.
pub fn command(path: &str) {
    COMMAND.get_or_init(|| path.to_owned());
}

/// Returns true if any thread of this process has panicked.
#[must_use]
pub fn happened() -> bool {
    REPORTED.load(Ordering::SeqCst)
}

/// True if the first panic came from the system's refusal to start a thread.
static NO_THREAD: AtomicBool = AtomicBool::new(false);

/// Returns the exit status after a panic: that of an error if the thread limit is the cause.
#[must_use]
pub fn status() -> u8 {
    match NO_THREAD.load(Ordering::SeqCst) {
        true => 1,
        false => STATUS,
    }
}

/// Returns true if a library panicked because the system refused to start a thread.
fn is_refused_thread(info: &PanicHookInfo<'_>) -> bool {
    let payload = info.payload();
    let text = payload
        .downcast_ref::<String>()
        .map(String::as_str)
        .or(payload.downcast_ref::<&'static str>().copied());
    text.is_some_and(|text| text.contains("spawn") && text.contains("Resource temporarily unavailable"))
}

fn report(info: &PanicHookInfo<'_>) {
    if is_refused_thread(info) && !REPORTED.swap(true, Ordering::SeqCst) {
        NO_THREAD.store(true, Ordering::SeqCst);
        views::area::close();
        let _ = writeln!(
            io::stderr(),
            "\nError: Cannot start threads\n\nThe limit of processes and threads for this user is reached. Raise it (\"ulimit -u\"), or end\n\
             others. What was done so far is saved as far as possible, and the next command names what\nwas going on.\n",
        );
        return;
    }
    let text = text(info, &Backtrace::force_capture());
    tracing::error!("panic\n{text}");
    // Later panics are usually consequences of the first one.
    if REPORTED.swap(true, Ordering::SeqCst) {
        return;
    }
    let kept = match write(&text) {
        Ok(path) => format!("The report is in {}.", path.display()),
        Err(e) => format!("The report could not be written ({}):\n\n{text}", files::io_reason(&e)),
    };
    views::area::close();
    // If standard error is closed, too, the panic cannot be reported.
    let _ = writeln!(
        io::stderr(),
        "\n!!!!!!!!!!!!!!!!!!!!!!!!!!! MONOFORM CRASH !!!!!!!!!!!!!!!!!!!!!!!!!!!!\n\n\
         Monoform has a bug, and stopped here. What was done so far is saved as far as\npossible, and the next command names \
         what was going on. Please report the bug\nwith the report, which has no values of yours, and with the log of another \
         run\nunder TF_LOG=trace if you can. Do not send secrets along.\n\n{kept}\n",
    );
}

/// Describes a panic, without any value.
fn text(info: &PanicHookInfo<'_>, backtrace: &Backtrace) -> String {
    let mut text = format!(
        "Monoform {} ({} {})\n",
        crate::VERSION,
        Mode::current().tool(),
        crate::core_version()
    );
    let command = COMMAND.get().map_or("not known yet", |command| command);
    let place = info.location().map(ToString::to_string).unwrap_or_default();
    let thread = std::thread::current();
    // A formatted message may contain a secret, so only constant messages are recorded.
    let message = info.payload().downcast_ref::<&'static str>().copied();
    // Writing to a string does not fail.
    let _ = write!(
        text,
        "command: {command}\nplace: {place}\nthread: {}\nmessage: {}\n\n{backtrace}\n",
        thread.name().unwrap_or("without a name"),
        message.unwrap_or("left out, since it may have values")
    );
    text
}

/// Writes the report to a new file in the working directory or, if that is not possible, in the directory for temporary files.
fn write(text: &str) -> io::Result<PathBuf> {
    let seconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    let name = format!("monoform-crash-{seconds}-{}.txt", std::process::id());
    let write = |dir: &Path| {
        let path = dir.join(&name);
        // `create_new` never opens an existing file, which may be a link in the shared directory for temporary
        // files.
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        file.write_all(text.as_bytes())?;
        Ok(path)
    };
    write(Path::new("")).or_else(|_: io::Error| write(&std::env::temp_dir()))
}
