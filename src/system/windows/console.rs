//! The console, and standard input for answers to questions.

use std::collections::VecDeque;
use std::io::{self, IsTerminal as _, Read as _};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

use windows_sys::Win32::Foundation::HANDLE;
use windows_sys::Win32::Storage::FileSystem::WriteFile;
use windows_sys::Win32::System::Console::{
    ENABLE_ECHO_INPUT, ENABLE_PROCESSED_OUTPUT, ENABLE_VIRTUAL_TERMINAL_PROCESSING, FlushConsoleInputBuffer,
    GetConsoleMode, GetStdHandle, STD_ERROR_HANDLE, STD_HANDLE, STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, SetConsoleCP,
    SetConsoleMode, SetConsoleOutputCP,
};

use crate::input::Event;

/// The code page of UTF-8.
const UTF8: u32 = 65001;

fn standard(which: STD_HANDLE) -> HANDLE {
    // SAFETY: the handle belongs to the process, and is not closed here.
    unsafe { GetStdHandle(which) }
}

/// Prepares the console for text in UTF-8 with escape sequences, as Terraform does. Has no effect without a console.
pub fn prepare() {
    // SAFETY: numbers only. Without a console these fail, which changes nothing.
    unsafe {
        SetConsoleOutputCP(UTF8);
        SetConsoleCP(UTF8);
    }
    for which in [STD_OUTPUT_HANDLE, STD_ERROR_HANDLE] {
        if let Some(mode) = mode(which) {
            set_mode(
                which,
                mode | ENABLE_PROCESSED_OUTPUT | ENABLE_VIRTUAL_TERMINAL_PROCESSING,
            );
        }
    }
}

/// Returns the mode of a console; `None` if the handle is not that of a console.
fn mode(which: STD_HANDLE) -> Option<u32> {
    let mut mode = 0;
    // SAFETY: the system fills in the mode.
    (unsafe { GetConsoleMode(standard(which), &mut mode) } != 0).then_some(mode)
}

fn set_mode(which: STD_HANDLE, mode: u32) {
    // SAFETY: numbers only. A console that refuses a mode keeps the one it has.
    unsafe { SetConsoleMode(standard(which), mode) };
}

/// Writes to standard output past its buffer and its lock. An error is ignored: the console may be closed.
pub fn write_at_once(bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).unwrap_or_default();
    let mut written = 0;
    // SAFETY: the bytes live until the call returns.
    unsafe {
        WriteFile(
            standard(STD_OUTPUT_HANDLE),
            bytes.as_ptr(),
            length,
            &mut written,
            std::ptr::null_mut(),
        )
    };
}

/// Standard input, whose readers can be woken by another thread.
///
/// The system cannot wait for a pipe and another event at once, so a thread reads. It reads only on request: input that
/// a command does not read is left for the programs that it runs.
#[derive(Debug)]
pub struct Input {
    sender: Mutex<Sender<io::Result<Event>>>,
    waiting: Mutex<Waiting>,
    requests: Mutex<Sender<()>>,
}

#[derive(Debug)]
struct Waiting {
    receiver: Receiver<io::Result<Event>>,
    /// Events that arrived while reasons were discarded.
    kept: VecDeque<io::Result<Event>>,
    /// True while the thread reads.
    reading: bool,
}

impl Input {
    /// Creates the channel that wakes readers. Nothing is read yet.
    ///
    /// # Errors
    /// The reading thread cannot be started.
    pub fn new() -> io::Result<Input> {
        let (sender, receiver) = channel();
        let (requests, requested) = channel();
        let found = sender.clone();
        let read = move || {
            for () in requested {
                let mut buffer = [0; 4096];
                let event = io::stdin().lock().read(&mut buffer).map(|count| match count {
                    0 => Event::End,
                    count => Event::Input(buffer[..count].to_vec()),
                });
                if found.send(event).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("standard-input".into()).spawn(read)?;
        Ok(Input {
            sender: Mutex::new(sender),
            waiting: Mutex::new(Waiting {
                receiver,
                kept: VecDeque::new(),
                reading: false,
            }),
            requests: Mutex::new(requests),
        })
    }

    /// Wakes the current or the next reader with a reason.
    pub fn wake(&self, reason: u8) {
        // Sending cannot fail, since the receiver lives as long as this value.
        let _ = lock(&self.sender).send(Ok(Event::Woken(reason)));
    }

    /// Discards reasons that were meant for earlier readers.
    pub fn forget(&self) {
        let mut waiting = lock(&self.waiting);
        while let Ok(event) = waiting.receiver.try_recv() {
            if !matches!(event, Ok(Event::Woken(_))) {
                waiting.kept.push_back(event);
            }
        }
    }

    /// Waits for input or for a reason to wake, whichever comes first.
    ///
    /// # Errors
    /// Standard input cannot be read.
    pub fn next(&self) -> io::Result<Event> {
        let mut waiting = lock(&self.waiting);
        let event = match waiting.kept.pop_front() {
            Some(event) => event,
            None => {
                if !waiting.reading {
                    waiting.reading = lock(&self.requests).send(()).is_ok();
                }
                waiting.receiver.recv().unwrap_or(Ok(Event::End))
            }
        };
        if !matches!(event, Ok(Event::Woken(_))) {
            waiting.reading = false;
        }
        event
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The console of standard input with its echo switched off; restored on drop.
#[derive(Debug)]
pub struct Hidden(u32);

impl Hidden {
    /// Switches off the echo. Returns `None` if standard input is not a console.
    #[must_use]
    pub fn new() -> Option<Hidden> {
        let before = mode(STD_INPUT_HANDLE).filter(|_| io::stdin().is_terminal())?;
        set_mode(STD_INPUT_HANDLE, before & !ENABLE_ECHO_INPUT);
        // SAFETY: this discards input that was typed before the question.
        unsafe { FlushConsoleInputBuffer(standard(STD_INPUT_HANDLE)) };
        Some(Hidden(before))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        set_mode(STD_INPUT_HANDLE, self.0);
    }
}
