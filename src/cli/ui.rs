//! What a person sees: two streams, colours, widths, questions.

use std::io::{self, BufWriter, IsTerminal as _, Write};
#[cfg(test)]
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use unicode_width::UnicodeWidthStr as _;

use crate::prompt::{self, Answer, Echo};
use crate::terminal::{SGR, shown};

/// Colours and other attributes of text, or none of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Whether there are any.
    pub on: bool,
}

impl Style {
    /// Plain text.
    #[cfg(test)]
    pub const PLAIN: Style = Style { on: false };

    fn paint(self, code: &str, text: impl std::fmt::Display) -> String {
        if self.on {
            format!("{SGR}{code}m{text}{SGR}0m")
        } else {
            text.to_string()
        }
    }

    /// Bold.
    pub fn bold(self, text: impl std::fmt::Display) -> String {
        self.paint("1", text)
    }

    /// Underlined.
    pub fn underline(self, text: impl std::fmt::Display) -> String {
        self.paint("4", text)
    }

    /// Red.
    pub fn red(self, text: impl std::fmt::Display) -> String {
        self.paint("31", text)
    }

    /// Green.
    pub fn green(self, text: impl std::fmt::Display) -> String {
        self.paint("32", text)
    }

    /// Yellow.
    pub fn yellow(self, text: impl std::fmt::Display) -> String {
        self.paint("33", text)
    }

    /// Light grey.
    pub fn light(self, text: impl std::fmt::Display) -> String {
        self.paint("37", text)
    }

    /// Grey.
    pub fn dim(self, text: impl std::fmt::Display) -> String {
        self.paint("90", text)
    }

    /// Bold and green.
    pub fn good(self, text: impl std::fmt::Display) -> String {
        self.paint("1;32", text)
    }

    /// Bold and red.
    pub fn bad(self, text: impl std::fmt::Display) -> String {
        self.paint("1;31", text)
    }
}

/// One of the two streams.
struct Stream {
    writer: Mutex<Box<dyn Write + Send>>,
    style: Style,
    width: usize,
    terminal: bool,
    /// The first error of writing.
    error: Mutex<Option<io::Error>>,
}

impl Stream {
    fn note(&self, result: io::Result<()>) {
        if let Err(e) = result {
            self.error
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .get_or_insert(e);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Box<dyn Write + Send>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The width of text that does not go to a terminal.
pub const DEFAULT_WIDTH: usize = 78;

/// Where output goes and answers come from.
pub struct Ui {
    out: Stream,
    err: Stream,
    /// Whether `-no-color` is set: then diagnostics have no rule on their left either.
    pub plain: bool,
    input: Input,
    /// Whether the last line of the terminal is a status line.
    passing: AtomicBool,
}

enum Input {
    /// Standard input.
    Standard,
    /// Nobody to ask.
    #[cfg(test)]
    Nobody,
}

impl Ui {
    /// The streams of the process.
    #[must_use]
    pub fn process(no_color: bool) -> Ui {
        let width = |fd: Option<(terminal_size::Width, terminal_size::Height)>| {
            fd.map_or(DEFAULT_WIDTH, |(w, _)| usize::from(w.0).max(20))
        };
        let (out, err) = (io::stdout(), io::stderr());
        let out_terminal = out.is_terminal();
        let err_terminal = err.is_terminal();
        Ui {
            out: Stream {
                style: Style {
                    on: out_terminal && !no_color,
                },
                width: width(terminal_size::terminal_size_of(&out)),
                terminal: out_terminal,
                error: Mutex::default(),
                writer: Mutex::new(Box::new(BufWriter::with_capacity(1 << 16, out))),
            },
            err: Stream {
                style: Style {
                    on: err_terminal && !no_color,
                },
                width: width(terminal_size::terminal_size_of(&err)),
                terminal: err_terminal,
                error: Mutex::default(),
                writer: Mutex::new(Box::new(err)),
            },
            plain: no_color,
            input: Input::Standard,
            passing: AtomicBool::new(false),
        }
    }

    /// Streams that end in memory, as with `-no-color`, without input.
    #[cfg(test)]
    #[must_use]
    pub fn captured() -> (Arc<Ui>, Captured, Captured) {
        let (out, err) = (Captured::default(), Captured::default());
        let stream = |writer: &Captured| Stream {
            writer: Mutex::new(Box::new(writer.clone())),
            style: Style::PLAIN,
            width: DEFAULT_WIDTH,
            terminal: false,
            error: Mutex::default(),
        };
        let ui = Ui {
            out: stream(&out),
            err: stream(&err),
            plain: true,
            input: Input::Nobody,
            passing: AtomicBool::new(false),
        };
        (Arc::new(ui), out, err)
    }

    /// Writes text for people to standard output. What goes wrong stops nothing; it is reported at the end
    /// ([`Ui::write_error`]).
    pub fn out(&self, text: impl AsRef<str>) {
        self.out_bytes(shown(text.as_ref()).as_bytes());
    }

    /// Writes to standard output what is read by programs, or need not be text, as it is.
    pub fn out_bytes(&self, bytes: &[u8]) {
        let result = self.written().write_all(bytes);
        self.out.note(result);
    }

    /// Writes a line for people to standard output.
    pub fn line(&self, text: impl AsRef<str>) {
        self.exact_line(shown(text.as_ref()));
    }

    /// Writes a line for programs to standard output, as it is.
    pub fn exact_line(&self, text: impl AsRef<str>) {
        let mut out = self.written();
        let result = out
            .write_all(text.as_ref().as_bytes())
            .and_then(|()| out.write_all(b"\n"));
        drop(out);
        self.out.note(result);
    }

    /// The first error of writing to standard output, if not all could be written.
    pub fn write_error(&self) -> Option<io::Error> {
        self.flush();
        self.out.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Writes over the last line of the terminal, which is to be replaced later.
    pub fn status(&self, text: &str) {
        self.out_bytes(format!("\r\x1b[2K{}", shown(text)).as_bytes());
    }

    /// Takes away what [`Ui::status`] wrote.
    pub fn clear_status(&self) {
        self.out_bytes(b"\r\x1b[2K");
    }

    /// Says on the last line of the terminal how far something is, until anything else is written. Without a terminal, or
    /// without colours, nothing is said.
    pub fn passing(&self, text: &str) {
        if !self.is_terminal() || self.plain || text.width() >= self.width() {
            return;
        }
        let mut out = self.written();
        let _ = out.write_all(shown(text).as_bytes());
        let _ = out.flush();
        self.passing.store(true, Ordering::SeqCst);
    }

    /// Standard output, to be written to; the status line is removed.
    fn written(&self) -> MutexGuard<'_, Box<dyn Write + Send>> {
        let mut out = self.out.lock();
        if self.passing.swap(false, Ordering::SeqCst) {
            let _ = out.write_all(b"\r\x1b[K");
        }
        out
    }

    /// Writes text for people to standard error, after everything that went to standard output before.
    pub fn err(&self, text: impl AsRef<str>) {
        drop(self.written());
        self.flush();
        let mut err = self.err.lock();
        let _ = err.write_all(shown(text.as_ref()).as_bytes());
        let _ = err.flush();
    }

    /// Lets everything written so far go out.
    pub fn flush(&self) {
        let result = self.out.lock().flush();
        self.out.note(result);
    }

    /// The style of standard output.
    #[must_use]
    pub fn style(&self) -> Style {
        self.out.style
    }

    /// The style of standard error.
    #[must_use]
    pub fn err_style(&self) -> Style {
        self.err.style
    }

    /// The width of standard output.
    #[must_use]
    pub fn width(&self) -> usize {
        self.out.width
    }

    /// The width of standard error.
    #[must_use]
    pub fn err_width(&self) -> usize {
        self.err.width
    }

    /// Whether a person watches standard output.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        self.out.terminal
    }

    /// Whether a person types the answers. Scripts pipe theirs in.
    #[must_use]
    pub fn is_interactive(&self) -> bool {
        match self.input {
            Input::Standard => io::stdin().is_terminal(),
            #[cfg(test)]
            Input::Nobody => false,
        }
    }

    /// Asks for one line.
    #[must_use]
    pub fn ask(&self, question: &str, echo: Echo) -> Answer {
        match self.input {
            Input::Standard => prompt::ask(self, question, echo),
            #[cfg(test)]
            Input::Nobody => Answer::End,
        }
    }
}

/// A stream's end in memory.
#[cfg(test)]
#[derive(Clone, Debug, Default)]
pub struct Captured(Arc<Mutex<Vec<u8>>>);

#[cfg(test)]
impl Captured {
    /// What was written.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

#[cfg(test)]
impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
