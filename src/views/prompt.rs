//! Questions to the user or a script: answered by one line of standard input, or by an interrupt.
//!
//! A question waits for input or a signal, whichever comes first. An interrupt ends the question at once, with nothing changed,
//! whatever else listens for interrupts. Lines beyond the answer are kept for the next question, so that several questions can be
//! answered through one pipe.

use std::io::{self, IsTerminal as _, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::termios::{self, LocalModes, OptionalActions, Termios};
use tokio::signal::unix::{SignalKind, signal};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Line, without its end.
    Line(String),
    /// No answer: the input has ended, or the question was withdrawn.
    End,
    /// No answer: the question was interrupted.
    Interrupted,
}

/// Visibility of an answer while it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Echo {
    /// Visible.
    On,
    /// Hidden, for secrets.
    Off,
}

/// Input beyond the line of the answer.
static READ_AHEAD: Mutex<Vec<u8>> = Mutex::new(Vec::new());
/// True while a question is open, and after it was interrupted until [`resumed`].
static ASKING: AtomicBool = AtomicBool::new(false);
/// True if something else reacts to interrupts between questions.
static LISTENING: AtomicBool = AtomicBool::new(false);

/// Returns true if an interrupt would end a question. Other listeners then report nothing.
#[must_use]
pub fn is_asking() -> bool {
    ASKING.load(Ordering::SeqCst)
}

/// Declares that something else reacts to interrupts between questions.
pub fn listened() {
    LISTENING.store(true, Ordering::SeqCst);
}

/// Declares that the interrupt of a question was handled, so that the next one is not for that question.
pub fn resumed() {
    ASKING.store(false, Ordering::SeqCst);
}

/// Withdraws the open question, if there is one.
pub fn withdraw() {
    if is_asking()
        && let Ok(signals) = signals()
    {
        // Writing cannot fail, since the reading end lives as long as the process.
        let _ = (&signals.writer).write_all(&[WITHDRAWN]);
    }
}

/// Asks a question through `show`, and reads the answer from standard input.
pub fn ask(show: &dyn Fn(&str), prompt: &str, echo: Echo) -> Answer {
    let signals = match signals() {
        Ok(signals) => signals,
        Err(error) => {
            tracing::error!("a question cannot be asked, because signals cannot be listened for: {error}");
            return Answer::End;
        }
    };
    // A signal that came before the question is not an answer to it.
    signals.forget();
    ASKING.store(true, Ordering::SeqCst);
    show(prompt);
    let hidden = (echo == Echo::Off).then(Hidden::new).flatten();
    let answer = read_line(signals);
    if hidden.is_some() {
        // The user's line break was hidden, too.
        show("\n");
    }
    drop(hidden);
    // After an interrupt the flag stays set until the command has handled it, so that no other listener handles it again.
    if answer != Answer::Interrupted {
        ASKING.store(false, Ordering::SeqCst);
    }
    answer
}

fn read_line(signals: &Signals) -> Answer {
    loop {
        // One read may have returned several lines, such as those of a pasted text.
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
            // The last line may lack its line break.
            Ok(false) => return take_line(true).map_or(Answer::End, Answer::Line),
            Err(error) => {
                tracing::error!("standard input cannot be read: {error}");
                return Answer::End;
            }
        }
    }
}

/// Waits until standard input can be read or has ended. Returns true if a signal came first.
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

/// Reads the available input. Returns false at its end.
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
            // The terminal is gone.
            Err(rustix::io::Errno::IO) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
    }
}

fn ahead() -> std::sync::MutexGuard<'static, Vec<u8>> {
    READ_AHEAD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes a line off the input that was read. At the end of the input, the last line needs no line break.
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

/// Terminal with its echo switched off; restored on drop.
struct Hidden(Termios);

impl Hidden {
    /// Switches off the echo. Returns none if standard input is no terminal.
    fn new() -> Option<Hidden> {
        let input = io::stdin();
        if !input.is_terminal() {
            return None;
        }
        let before = termios::tcgetattr(&input).ok()?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        // Flush discards input that was typed before the question.
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

/// Bytes in the pipe, for the two ways in which a question ends without an answer.
const INTERRUPTED: u8 = b'!';
const WITHDRAWN: u8 = b'?';

/// Pipe that ends questions.
struct Signals {
    reader: PipeReader,
    writer: PipeWriter,
}

impl Signals {
    /// Takes a byte out of the pipe, if there is one.
    fn take(&self) -> Option<u8> {
        let mut waiting = [PollFd::new(self.reader.as_fd(), PollFlags::POLLIN)];
        let readable = poll(&mut waiting, PollTimeout::ZERO).is_ok_and(|n| n > 0);
        let mut byte = [0];
        (readable && (&self.reader).read(&mut byte).is_ok_and(|n| n == 1)).then_some(byte[0])
    }

    /// Drops bytes that were meant for earlier questions.
    fn forget(&self) {
        while self.take().is_some() {}
    }
}

/// Returns the pipe, which gets a byte for each signal that ends a question. A signal with a listener has no effect of its own
/// any more. So between questions, if nothing else listens, this function's thread ends the process.
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
    // A thread with its own runtime: questions are asked from synchronous code, where no runtime runs.
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        runtime.block_on(async {
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                    _ = hangup.recv() => {}
                }
                if is_asking() {
                    // Writing cannot fail, since the reading end lives as long as the process.
                    let _ = at_signal.write_all(&[INTERRUPTED]);
                } else if !LISTENING.load(Ordering::SeqCst) {
                    crate::process::abort();
                }
            }
        });
    })?;
    Ok(SIGNALS.get_or_init(|| Signals { reader, writer }))
}
