//! The terminal, and standard input for answers to questions.

use std::io::{self, IsTerminal as _, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::AsFd as _;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::termios::{self, LocalModes, OptionalActions, Termios};

use crate::input::Event;

/// Does nothing: Unix terminals accept UTF-8 and escape sequences.
pub fn prepare() {}

/// Writes to standard output past its buffer and its lock. An error is ignored: the terminal may be
/// closed.
pub fn write_at_once(bytes: &[u8]) {
    let _ = rustix::io::write(io::stdout(), bytes);
}

/// Standard input, whose readers can be woken by another thread.
#[derive(Debug)]
pub struct Input {
    reader: PipeReader,
    writer: PipeWriter,
}

impl Input {
    /// Creates the pipe that wakes readers. Nothing is read yet.
    ///
    /// # Errors
    /// The pipe cannot be created.
    pub fn new() -> io::Result<Input> {
        let (reader, writer) = io::pipe()?;
        Ok(Input { reader, writer })
    }

    /// Wakes the current or the next reader with a reason.
    pub fn wake(&self, reason: u8) {
        // Writing cannot fail, since the reading end lives as long as this value.
        let _ = (&self.writer).write_all(&[reason]);
    }

    /// Discards reasons that were meant for earlier readers.
    pub fn forget(&self) {
        while self.take().is_some() {}
    }

    /// Waits for input or for a reason to wake, whichever comes first.
    ///
    /// # Errors
    /// Standard input cannot be read.
    pub fn next(&self) -> io::Result<Event> {
        if self.is_woken() {
            return Ok(self.take().map_or(Event::Input(Vec::new()), Event::Woken));
        }
        let mut buffer = [0; 4096];
        loop {
            match rustix::io::read(io::stdin(), &mut buffer) {
                Ok(0) => return Ok(Event::End),
                Ok(n) => return Ok(Event::Input(buffer[..n].to_vec())),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return Ok(Event::Input(Vec::new())),
                // The terminal has been closed.
                Err(rustix::io::Errno::IO) => return Ok(Event::End),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits until standard input can be read or has ended. Returns true if a reason to wake arrived
    /// first.
    fn is_woken(&self) -> bool {
        let input = io::stdin();
        loop {
            let mut waiting = [
                PollFd::new(self.reader.as_fd(), PollFlags::POLLIN),
                PollFd::new(input.as_fd(), PollFlags::POLLIN),
            ];
            match poll(&mut waiting, PollTimeout::NONE) {
                Ok(_) => return waiting[0].any().unwrap_or_default(),
                Err(Errno::EINTR) => {}
                // The read that follows returns the error.
                Err(_) => return false,
            }
        }
    }

    /// Takes a pending reason, if there is one.
    fn take(&self) -> Option<u8> {
        let mut waiting = [PollFd::new(self.reader.as_fd(), PollFlags::POLLIN)];
        let readable = poll(&mut waiting, PollTimeout::ZERO).is_ok_and(|n| n > 0);
        let mut byte = [0];
        (readable && (&self.reader).read(&mut byte).is_ok_and(|n| n == 1)).then_some(byte[0])
    }
}

/// The terminal of standard input with its echo switched off; restored on drop.
#[derive(Debug)]
pub struct Hidden(Termios);

impl Hidden {
    /// Switches off the echo. Returns `None` if standard input is not a terminal.
    #[must_use]
    pub fn new() -> Option<Hidden> {
        let input = io::stdin();
        if !input.is_terminal() {
            return None;
        }
        let before = termios::tcgetattr(&input).ok()?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        // `Flush` discards input that was typed before the question.
        termios::tcsetattr(&input, OptionalActions::Flush, &hidden).ok()?;
        Some(Hidden(before))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        // An error is ignored: the terminal may be closed.
        let _ = termios::tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}
