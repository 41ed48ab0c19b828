//! Questions to a person or a script: one line of standard input, or an interrupt.
//!
//! What is asked waits for a key or a signal, whichever comes first: an interrupt ends a question at once, with nothing
//! changed, whatever else listens for interrupts. Standard input is read to the end of the line and no further, so that
//! several questions can be answered through one pipe.

use std::io::{self, IsTerminal as _, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::termios::{self, LocalModes, OptionalActions, Termios};
use tokio::signal::unix::{SignalKind, signal};

/// The answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A line, without its end.
    Line(String),
    /// There is none: the input has ended, or the question was taken back.
    End,
    /// There is none: the question was interrupted.
    Interrupted,
}

/// Whether an answer is seen while it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Echo {
    /// It is.
    On,
    /// It is a secret.
    Off,
}

/// Input that was read beyond the line of the answer.
static READ_AHEAD: Mutex<Vec<u8>> = Mutex::new(Vec::new());
/// Whether a question is open, or was interrupted.
static ASKING: AtomicBool = AtomicBool::new(false);
/// Whether something else reacts to interrupts between questions.
static LISTENING: AtomicBool = AtomicBool::new(false);

/// Whether an interrupt now ends a prompt: other listeners then report nothing.
#[must_use]
pub fn is_asking() -> bool {
    ASKING.load(Ordering::SeqCst)
}

/// Says that interrupts between questions are listened for.
pub fn listened() {
    LISTENING.store(true, Ordering::SeqCst);
}

/// Says that the interrupt of a question has been dealt with: the next one is one of its own.
pub fn resumed() {
    ASKING.store(false, Ordering::SeqCst);
}

/// Takes back the question that is open, if one is.
pub fn withdraw() {
    if is_asking()
        && let Ok(signals) = signals()
    {
        // The reading end lives as long as the process.
        let _ = (&signals.writer).write_all(&[WITHDRAWN]);
    }
}

/// Asks by what `show` writes, and reads the answer from standard input.
pub fn ask(show: &dyn Fn(&str), prompt: &str, echo: Echo) -> Answer {
    let signals = match signals() {
        Ok(signals) => signals,
        Err(error) => {
            tracing::error!("a question cannot be asked, because signals cannot be listened for: {error}");
            return Answer::End;
        }
    };
    signals.forget();
    ASKING.store(true, Ordering::SeqCst);
    show(prompt);
    let hidden = (echo == Echo::Off).then(Hidden::new).flatten();
    let answer = read_line(signals);
    if hidden.is_some() {
        // The line break was not seen either.
        show("\n");
    }
    drop(hidden);
    if answer != Answer::Interrupted {
        ASKING.store(false, Ordering::SeqCst);
    }
    answer
}

fn read_line(signals: &Signals) -> Answer {
    loop {
        if let Some(line) = take_line(false) {
            return Answer::Line(line);
        }
        if interrupted(signals) {
            return match signals.take() {
                Some(WITHDRAWN) => Answer::End,
                _ => Answer::Interrupted,
            };
        }
        match read() {
            Ok(true) => {}
            Ok(false) => return take_line(true).map_or(Answer::End, Answer::Line),
            Err(error) => {
                tracing::error!("standard input cannot be read: {error}");
                return Answer::End;
            }
        }
    }
}

/// Waits until standard input can be read, or has ended; returns whether a signal came first.
fn interrupted(signals: &Signals) -> bool {
    let input = io::stdin();
    loop {
        let mut waiting = [
            PollFd::new(signals.reader.as_fd(), PollFlags::POLLIN),
            PollFd::new(input.as_fd(), PollFlags::POLLIN),
        ];
        match poll(&mut waiting, PollTimeout::NONE) {
            Ok(_) => return waiting[0].any().unwrap_or_default(),
            Err(Errno::EINTR) => {}
            // The following read returns the error.
            Err(_) => return false,
        }
    }
}

/// Reads what is available; returns whether it was not the end.
fn read() -> io::Result<bool> {
    let mut buffer = [0; 4096];
    loop {
        match rustix::io::read(io::stdin(), &mut buffer) {
            Ok(0) => return Ok(false),
            Ok(n) => {
                ahead().extend_from_slice(&buffer[..n]);
                return Ok(true);
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::AGAIN) => return Ok(true),
            // A terminal that is gone.
            Err(rustix::io::Errno::IO) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
}

fn ahead() -> std::sync::MutexGuard<'static, Vec<u8>> {
    READ_AHEAD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes a line off what was read; at the end of the input one without a line break, too.
fn take_line(at_end: bool) -> Option<String> {
    let mut read = ahead();
    let end = match read.iter().position(|b| *b == b'\n') {
        Some(end) => end + 1,
        None if at_end && !read.is_empty() => read.len(),
        None => return None,
    };
    let line: Vec<u8> = read.drain(..end).collect();
    let text = String::from_utf8_lossy(&line);
    Some(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// A terminal that does not show what is typed, as long as this lives.
struct Hidden(Termios);

impl Hidden {
    /// `None` where there is no terminal.
    fn new() -> Option<Hidden> {
        let input = io::stdin();
        if !input.is_terminal() {
            return None;
        }
        let before = termios::tcgetattr(&input).ok()?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        termios::tcsetattr(&input, OptionalActions::Flush, &hidden).ok()?;
        Some(Hidden(before))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        // If the terminal is gone, nothing is left to do.
        let _ = termios::tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}

/// The bytes that end a question.
const INTERRUPTED: u8 = b'!';
const WITHDRAWN: u8 = b'?';

/// A pipe that ends questions.
struct Signals {
    reader: PipeReader,
    writer: PipeWriter,
}

impl Signals {
    /// A byte, if there is one.
    fn take(&self) -> Option<u8> {
        let mut waiting = [PollFd::new(self.reader.as_fd(), PollFlags::POLLIN)];
        let readable = poll(&mut waiting, PollTimeout::ZERO).is_ok_and(|n| n > 0);
        let mut byte = [0];
        (readable && (&self.reader).read(&mut byte).is_ok_and(|n| n == 1)).then_some(byte[0])
    }

    /// Forgets what was meant for questions before.
    fn forget(&self) {
        while self.take().is_some() {}
    }
}

/// Where a byte arrives for each signal that ends a question. Once a signal is listened for it does nothing by itself any more,
/// so that between questions, where nothing else listens, it ends the process from here.
fn signals() -> io::Result<&'static Signals> {
    static SIGNALS: OnceLock<Signals> = OnceLock::new();
    static STARTING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(signals) = SIGNALS.get() {
        return Ok(signals);
    }
    let (reader, writer) = io::pipe()?;
    let mut at_signal = writer.try_clone()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let [mut interrupt, mut terminate, mut hangup] = {
        let _inside = runtime.enter();
        [
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        ]
    };
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        runtime.block_on(async {
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                    _ = hangup.recv() => {}
                }
                if is_asking() {
                    // The reading end lives as long as the process.
                    let _ = at_signal.write_all(&[INTERRUPTED]);
                } else if !LISTENING.load(Ordering::SeqCst) {
                    crate::process::abort();
                }
            }
        });
    })?;
    Ok(SIGNALS.get_or_init(|| Signals { reader, writer }))
}
