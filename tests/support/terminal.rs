//! A program on a pseudo-terminal: typed keys, received text, and the content of the screen.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use nix::pty::{Winsize, openpty};
use rustix::termios;

/// Time limit for an answer, far longer than a busy machine needs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program on its own pseudo-terminal.
pub struct Terminal {
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    child: Child,
    /// Received text that no call has returned yet, without control sequences and carriage returns.
    seen: String,
    raw: Vec<u8>,
    /// All bytes of the output.
    pub all: Vec<u8>,
    /// Screen after all bytes.
    shown: Screen,
}

/// Number of lines that are kept after they have left the screen.
const HISTORY: usize = 2000;

impl Terminal {
    /// Starts a program on a terminal of 24 rows and 100 columns.
    pub fn start(command: &mut Command) -> Terminal {
        Terminal::sized(command, 24, 100)
    }

    /// Starts a program on a terminal of this size.
    pub fn sized(command: &mut Command, rows: u16, columns: u16) -> Terminal {
        let size = Winsize {
            ws_row: rows,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let pair = openpty(&size, None).unwrap();
        let end = || pair.slave.try_clone().unwrap();
        if !command.get_envs().any(|(name, _)| name == "TERM") {
            command.env("TERM", "xterm");
        }
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        let keyboard = File::from(pair.master);
        let mut master = keyboard.try_clone().unwrap();
        let (send, screen) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // A read fails when the other end is closed; on Linux it may fail once before the last output has
            // arrived.
            let mut errors = 0;
            while errors < 5 {
                match master.read(&mut bytes) {
                    Ok(n @ 1..) => {
                        errors = 0;
                        if send.send(bytes[..n].to_vec()).is_err() {
                            break;
                        }
                    }
                    _ => {
                        errors += 1;
                        std::thread::sleep(Duration::from_millis(20));
                    }
                }
            }
        });
        Terminal {
            keyboard,
            screen,
            child,
            seen: String::new(),
            raw: Vec::new(),
            all: Vec::new(),
            shown: Screen::new(rows, columns),
        }
    }

    /// Returns the process ID.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the program has turned off the echo of typed keys.
    #[track_caller]
    pub fn hides(&mut self) {
        crate::running::until("hidden input", || {
            let modes = termios::tcgetattr(&self.keyboard).unwrap().local_modes;
            !modes.contains(termios::LocalModes::ECHO)
        });
    }

    /// Types keys, control sequences included.
    pub fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    fn receive(&mut self, bytes: &[u8]) {
        self.all.extend(bytes);
        self.shown.process(bytes);
        self.raw.extend(bytes);
        let used = plain(&self.raw, &mut self.seen);
        self.raw.drain(..used);
    }

    /// Waits until `text` is received; returns and drops all text up to its end.
    #[track_caller]
    pub fn sees(&mut self, text: &str) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.seen.find(text) {
                return self.seen.drain(..at + text.len()).collect();
            }
            match self.screen.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.receive(&bytes),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("{text:?} is not to be seen in {:?}", self.seen)
                }
            }
        }
    }

    /// Returns the rows of the screen, from the top.
    pub fn rows(&self) -> Vec<String> {
        let screen = self.shown.parser.screen();
        screen.rows(0, screen.size().1).collect()
    }

    /// Returns the row and the column of the cursor, from 0.
    pub fn cursor(&self) -> (u16, u16) {
        self.shown.parser.screen().cursor_position()
    }

    /// Waits until the rows of the screen fulfil a condition; returns the rows.
    #[track_caller]
    pub fn shows(&mut self, like_this: impl Fn(&[String]) -> bool) -> Vec<String> {
        let end = Instant::now() + PATIENCE;
        loop {
            let rows = self.rows();
            if like_this(&rows) {
                return rows;
            }
            match self.screen.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.receive(&bytes),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("the screen is not like this:\n{}", rows.join("\n"))
                }
            }
        }
    }

    /// Changes the size of the terminal, as a resized window does; the program gets SIGWINCH.
    pub fn resize(&mut self, rows: u16, columns: u16) {
        let mut size = termios::tcgetwinsize(&self.keyboard).unwrap();
        (size.ws_row, size.ws_col) = (rows, columns);
        termios::tcsetwinsize(&self.keyboard, size).unwrap();
        self.shown.parser.screen_mut().set_size(rows, columns);
    }

    /// Waits for the end of the program; returns the status, all lines including those of the scrollback, and all bytes.
    #[track_caller]
    pub fn leaves(mut self) -> (ExitStatus, Vec<String>, Vec<u8>) {
        let status = self.wait();
        let screen = self.shown.parser.screen_mut();
        screen.set_scrollback(HISTORY);
        let mut lines = Vec::new();
        let width = screen.size().1;
        for offset in (1..=screen.scrollback()).rev() {
            screen.set_scrollback(offset);
            lines.extend(screen.rows(0, width).next());
        }
        screen.set_scrollback(0);
        lines.extend(screen.rows(0, width));
        (status, lines, std::mem::take(&mut self.all))
    }

    /// Waits for the end of the program; returns the status, the text since the last [`Terminal::sees`], and all bytes.
    #[track_caller]
    pub fn ends(mut self) -> (ExitStatus, String, Vec<u8>) {
        let status = self.wait();
        (status, std::mem::take(&mut self.seen), std::mem::take(&mut self.all))
    }

    #[track_caller]
    fn wait(&mut self) -> ExitStatus {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait().unwrap() {
                // The reading thread ends when no process has the other end of the terminal open.
                while let Ok(bytes) = self.screen.recv_timeout(Duration::from_secs(5)) {
                    self.receive(&bytes);
                }
                return status;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        panic!("the program does not end: {:?}", self.seen)
    }
}

/// An emulated screen. The emulator does not know the mode in which lines are broken at the right edge (DECAWM), so
/// this type adds it.
struct Screen {
    parser: vt100::Parser,
    /// True if text that reaches the right edge continues on the next line.
    wraps: bool,
    /// Incomplete control sequence or character.
    begun: Vec<u8>,
}

impl Screen {
    fn new(rows: u16, columns: u16) -> Screen {
        Screen {
            parser: vt100::Parser::new(rows, columns, HISTORY),
            wraps: true,
            begun: Vec::new(),
        }
    }

    fn process(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.begun.push(*byte);
            let whole = match self.begun.as_slice() {
                [0x1b] | [0x1b, b'['] => false,
                [0x1b, b'[', .., last] => (0x40..=0x7e).contains(last),
                [0x1b, ..] => true,
                other => std::str::from_utf8(other).is_ok() || other.len() > 3,
            };
            if !whole {
                continue;
            }
            let unit = std::mem::take(&mut self.begun);
            match unit.as_slice() {
                b"\x1b[?7l" => self.wraps = false,
                b"\x1b[?7h" => self.wraps = true,
                [0x00..=0x1f, ..] => self.parser.process(&unit),
                _ => {
                    let screen = self.parser.screen();
                    let full = screen.cursor_position().1 >= screen.size().1;
                    if self.wraps || !full {
                        self.parser.process(&unit);
                    }
                }
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A failed test must leave no process. Killing an ended process fails, which does not matter.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Adds the text among these bytes to `out` and returns the number of bytes that form complete sequences and characters.
fn plain(bytes: &[u8], out: &mut String) -> usize {
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let used = match rest {
            [0x1b, b'[', parameters @ ..] => match parameters.iter().position(|b| (0x40..=0x7e).contains(b)) {
                Some(last) => last + 3,
                None => return at,
            },
            [0x1b] => return at,
            [0x1b, ..] => 2,
            _ => {
                let end = rest.iter().position(|b| *b == 0x1b).unwrap_or(rest.len());
                let text = match std::str::from_utf8(&rest[..end]) {
                    Ok(text) => text,
                    // The rest of a character has not arrived yet.
                    Err(e) => std::str::from_utf8(&rest[..e.valid_up_to()]).unwrap(),
                };
                out.extend(text.chars().filter(|c| !matches!(c, '\r' | '\x08' | '\x07')));
                if text.len() < end {
                    return at + text.len();
                }
                end
            }
        };
        at += used;
    }
    at
}
