//! Questions to the user or a script: answered by one line of standard input, or by an interrupt.
//!
//! A question waits for input or a signal, whichever comes first. An interrupt ends the question at once, even if other code listens for
//! interrupts, too: at that time, nothing has been changed. Lines beyond the answer are kept for the next question, so that several
//! questions can be answered through one pipe.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use system::Event;
use system::console::{Hidden, Input};
use system::signals::Interrupts;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Line, without its end.
    Line(String),
    /// No answer: the input has ended, or the question was withdrawn.
    End,
    /// No answer: the question was interrupted.
    Interrupted,
}

/// Display of an answer while it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Echo {
    /// Visible.
    On,
    /// Hidden, for secrets.
    Off,
}

/// Input after the line of the answer.
static READ_AHEAD: Mutex<Vec<u8>> = Mutex::new(Vec::new());
/// True while a question is open, and after it was interrupted until [`resumed`].
static ASKING: AtomicBool = AtomicBool::new(false);
/// True if the command itself handles interrupts between questions.
static LISTENING: AtomicBool = AtomicBool::new(false);

/// Returns true while a question is open, and after it was interrupted until [`resumed`]. Other listeners report no interrupt then.
#[must_use]
pub fn is_asking() -> bool {
    ASKING.load(Ordering::SeqCst)
}

/// Declares that the command itself handles interrupts between questions.
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
        && let Ok(input) = input()
    {
        input.wake(WITHDRAWN);
    }
}

/// Asks a question through `show`, and reads the answer from standard input.
pub fn ask(show: &dyn Fn(&str), prompt: &str, echo: Echo) -> Answer {
    let input = match input() {
        Ok(input) => input,
        Err(error) => {
            tracing::error!("a question cannot be asked, because signals cannot be listened for: {error}");
            return Answer::End;
        }
    };
    // A signal from before the question does not answer it.
    input.forget();
    ASKING.store(true, Ordering::SeqCst);
    show(prompt);
    let hidden = (echo == Echo::Off).then(Hidden::new).flatten();
    let answer = read_line(input);
    if hidden.is_some() {
        // The line break that the user typed was hidden, too.
        show("\n");
    }
    drop(hidden);
    // After an interrupt the flag stays set until the command has handled it, so that no other listener handles it again.
    if answer != Answer::Interrupted {
        ASKING.store(false, Ordering::SeqCst);
    }
    answer
}

fn read_line(input: &Input) -> Answer {
    loop {
        // One read may have returned several lines, such as those of a pasted text.
        if let Some(line) = take_line(false) {
            return Answer::Line(line);
        }
        match input.next() {
            Ok(Event::Input(bytes)) => ahead().extend_from_slice(&bytes),
            Ok(Event::Woken(WITHDRAWN)) => return Answer::End,
            Ok(Event::Woken(_)) => return Answer::Interrupted,
            // The last line may lack its line break.
            Ok(Event::End) => return take_line(true).map_or(Answer::End, Answer::Line),
            Err(error) => {
                tracing::error!("standard input cannot be read: {error}");
                return Answer::End;
            }
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

/// Byte that wakes the reader when an interrupt ends a question.
const INTERRUPTED: u8 = b'!';
/// Byte that wakes the reader when a question is withdrawn.
const WITHDRAWN: u8 = b'?';

/// Returns standard input, whose reader is woken by each signal that ends a question. A signal with a listener no longer ends the
/// process by itself. Between questions, unless the command itself handles interrupts, the thread that listens therefore ends the
/// process.
fn input() -> io::Result<&'static Input> {
    static INPUT: OnceLock<Input> = OnceLock::new();
    static STARTING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(input) = INPUT.get() {
        return Ok(input);
    }
    let new = Input::new()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut interrupts = {
        let _inside = runtime.enter();
        Interrupts::listen()?
    };
    let input = INPUT.get_or_init(|| new);
    // A thread with its own runtime is started, because questions are asked from synchronous code, where no
    // runtime runs.
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        runtime.block_on(async {
            loop {
                interrupts.next().await;
                if is_asking() {
                    input.wake(INTERRUPTED);
                } else if !LISTENING.load(Ordering::SeqCst) {
                    crate::process::abort();
                }
            }
        });
    })?;
    Ok(input)
}
