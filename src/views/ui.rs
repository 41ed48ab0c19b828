//! Terminal output and input: two streams, colours, widths, questions and the live area.

use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use addrs::Program;

use crate::area::{self, Line, Size};
use crate::prompt::{self, Answer, Echo};
pub use crate::style::Style;
use crate::terminal::shown;

struct Stream {
    writer: Mutex<Box<dyn Write + Send>>,
    style: Style,
    width: usize,
    terminal: bool,
    /// First write error.
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

/// Least width for wrapping, in columns. A terminal may report zero.
const NARROWEST: usize = 20;

/// Width of text that does not go to a terminal, in columns.
pub const DEFAULT_WIDTH: usize = 78;

/// Output streams and source of answers.
pub struct Ui {
    out: Stream,
    err: Stream,
    /// True with `-no-color`: diagnostics then also have no vertical rule.
    pub plain: bool,
    pub program: Program,
    input: Input,
    /// True if there may be a live area.
    live: bool,
    /// True if the live area is on the screen. Like `line_begins`, it is only changed while standard output is locked.
    drawn: AtomicBool,
    /// True if the cursor is at the beginning of a line.
    line_begins: AtomicBool,
}

enum Input {
    Standard,
    /// No input: every question stays unanswered.
    Nobody,
}

impl Ui {
    /// Returns the streams of the process. With `live`, progress is redrawn in place if standard output is a terminal.
    #[must_use]
    pub fn process(no_color: bool, live: bool) -> Ui {
        let width = |fd: Option<(terminal_size::Width, terminal_size::Height)>| {
            fd.map_or(DEFAULT_WIDTH, |(w, _)| usize::from(w.0).max(NARROWEST))
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
                // A plan can have thousands of lines, and each would be a system call.
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
            program: Program::default(),
            input: Input::Standard,
            live: live && out_terminal,
            drawn: AtomicBool::new(false),
            line_begins: AtomicBool::new(true),
        }
    }

    /// Returns streams for `-json-into`: standard output goes to the file. Standard error is discarded, and there is no input.
    #[must_use]
    pub fn to_file(file: std::fs::File) -> Ui {
        let stream = |writer: Box<dyn Write + Send>| Stream {
            writer: Mutex::new(writer),
            style: Style::PLAIN,
            width: DEFAULT_WIDTH,
            terminal: false,
            error: Mutex::default(),
        };
        Ui {
            out: stream(Box::new(BufWriter::new(file))),
            err: stream(Box::new(io::sink())),
            plain: true,
            program: Program::default(),
            input: Input::Nobody,
            live: false,
            drawn: AtomicBool::new(false),
            line_begins: AtomicBool::new(true),
        }
    }

    /// Returns streams that write to memory, as with `-no-color`, without input.
    #[must_use]
    pub fn captured() -> (Arc<Ui>, Captured, Captured) {
        Ui::captured_with(false)
    }

    /// Returns streams that write to memory, with or without a live area.
    fn captured_with(live: bool) -> (Arc<Ui>, Captured, Captured) {
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
            program: Program::default(),
            input: Input::Nobody,
            live,
            drawn: AtomicBool::new(false),
            line_begins: AtomicBool::new(true),
        };
        (Arc::new(ui), out, err)
    }

    /// Sets the names of the program.
    #[must_use]
    pub fn named(self, program: Program) -> Ui {
        Ui { program, ..self }
    }

    /// Writes text for people to standard output. A write error does not stop the command; it is reported at the end
    /// ([`Ui::write_error`]).
    pub fn out(&self, text: impl AsRef<str>) {
        self.out_bytes(shown(text.as_ref()).as_bytes());
    }

    /// Writes bytes for programs to standard output, unchanged.
    pub fn out_bytes(&self, bytes: &[u8]) {
        self.write(&[bytes]);
    }

    /// Writes a line of text for people to standard output.
    pub fn line(&self, text: impl AsRef<str>) {
        self.exact_line(shown(text.as_ref()));
    }

    /// Writes a line for programs to standard output, unchanged.
    pub fn exact_line(&self, text: impl AsRef<str>) {
        self.write(&[text.as_ref().as_bytes(), b"\n"]);
    }

    /// Writes to standard output, after erasing the live area.
    fn write(&self, parts: &[&[u8]]) {
        let mut out = self.out.lock();
        self.take_away(&mut **out);
        let result = parts.iter().try_for_each(|part| out.write_all(part));
        // The live area may be drawn only at the beginning of a line.
        if let Some(last) = parts.iter().rev().find_map(|part| part.last()) {
            self.line_begins.store(*last == b'\n', Ordering::SeqCst);
        }
        drop(out);
        self.out.note(result);
    }

    /// Returns the first write error of standard output, if there was one.
    pub fn write_error(&self) -> Option<io::Error> {
        // The buffered output is written first, since that may fail, too.
        self.clear_area();
        self.flush();
        self.out.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns true if there may be a live area.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.live
    }

    /// Returns true if the live area is on the screen. Any other output erases it.
    #[must_use]
    pub fn is_drawn(&self) -> bool {
        self.drawn.load(Ordering::SeqCst)
    }

    /// Returns the current size of standard output's terminal; 24 lines of [`DEFAULT_WIDTH`] columns if standard output is no terminal.
    #[must_use]
    pub fn size(&self) -> Size {
        match terminal_size::terminal_size_of(io::stdout()) {
            Some((width, height)) => Size {
                width: usize::from(width.0),
                height: usize::from(height.0),
            },
            None => Size {
                width: DEFAULT_WIDTH,
                height: 24,
            },
        }
    }

    /// Shows these lines in the live area, until anything else is written. Nothing is shown without a live area, or if the cursor
    /// is not at the beginning of a line, since a question may be open there.
    pub fn area(&self, lines: &[Line]) {
        if !self.live {
            return;
        }
        let mut out = self.out.lock();
        let ready = self.line_begins.load(Ordering::SeqCst) && !prompt::is_asking() && !area::is_closed();
        if lines.is_empty() || !ready {
            self.take_away(&mut **out);
        } else {
            let result = out.write_all(area::drawing(lines, self.size(), self.out.style).as_bytes());
            self.out.note(result);
            self.drawn.store(true, Ordering::SeqCst);
        }
        self.flush_locked(&mut **out);
    }

    /// Erases the live area.
    pub fn clear_area(&self) {
        self.area(&[]);
    }

    fn take_away(&self, out: &mut dyn Write) {
        if self.drawn.swap(false, Ordering::SeqCst) {
            // If erasing fails, the output that follows fails, too, and that error is kept.
            let _ = out.write_all(area::ERASE.as_bytes());
        }
    }

    /// Writes text for people to standard error, after everything that was written to standard output before.
    pub fn err(&self, text: impl AsRef<str>) {
        // Standard output stays locked, so that the area is not drawn meanwhile: both streams may be the same terminal.
        let mut out = self.out.lock();
        self.take_away(&mut **out);
        self.flush_locked(&mut **out);
        let text = shown(text.as_ref());
        let mut err = self.err.lock();
        // If writing to standard error fails, that cannot be reported.
        let _ = err.write_all(text.as_bytes());
        let _ = err.flush();
        // If both streams are the same terminal, they share a cursor.
        if let Some(last) = text.as_bytes().last().filter(|_| self.err.terminal) {
            self.line_begins.store(*last == b'\n', Ordering::SeqCst);
        }
    }

    /// Flushes standard output.
    pub fn flush(&self) {
        self.flush_locked(&mut **self.out.lock());
    }

    fn flush_locked(&self, out: &mut dyn Write) {
        let result = out.flush();
        self.out.note(result);
        // The output is flushed, because only flushed output is on the screen, where the area is erased.
        if self.live {
            area::on_screen(self.is_drawn());
        }
    }

    #[must_use]
    pub fn style(&self) -> Style {
        self.out.style
    }

    #[must_use]
    pub fn err_style(&self) -> Style {
        self.err.style
    }

    /// Returns the width of standard output in columns. A terminal is queried each time, since its window may be resized.
    #[must_use]
    pub fn width(&self) -> usize {
        match self.out.terminal {
            true => self.size().width.max(NARROWEST),
            false => self.out.width,
        }
    }

    #[must_use]
    pub fn err_width(&self) -> usize {
        self.err.width
    }

    /// Returns true if standard output is a terminal.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        self.out.terminal
    }

    /// Returns true if answers are typed at a terminal, not piped in by a script.
    #[must_use]
    pub fn is_interactive(&self) -> bool {
        match self.input {
            Input::Standard => io::stdin().is_terminal(),
            Input::Nobody => false,
        }
    }

    /// Shows a question, and reads one line as the answer.
    #[must_use]
    pub fn ask(&self, question: &str, echo: Echo) -> Answer {
        match self.input {
            Input::Standard => {
                let show = |text: &str| {
                    self.out(text);
                    self.flush();
                };
                prompt::ask(&show, question, echo)
            }
            Input::Nobody => Answer::End,
        }
    }
}

/// In-memory stream, whose clones share the content.
#[derive(Clone, Debug, Default)]
pub struct Captured(Arc<Mutex<Vec<u8>>>);

impl Captured {
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_area_makes_room_for_whatever_is_written() {
        let (ui, out, err) = Ui::captured_with(true);
        let area = [Line::heading("Applying")];
        let drawn = "\r\x1b[?7lApplying\x1b[J\x1b[?7h\r";
        ui.area(&area);
        assert!(ui.is_drawn());
        ui.line("a");
        assert!(!ui.is_drawn());
        ui.area(&area);
        ui.area(&area);
        ui.err("b\n");
        assert_eq!(out.text(), format!("{drawn}\r\x1b[Ja\n{drawn}{drawn}\r\x1b[J"));
        assert_eq!(err.text(), "b\n");
        ui.area(&area);
        ui.clear_area();
        ui.clear_area();
        assert!(out.text().ends_with(&format!("\r\x1b[J{drawn}\r\x1b[J")));
    }

    #[test]
    fn there_is_no_area_on_a_line_that_has_begun() {
        let (ui, out, _) = Ui::captured_with(true);
        ui.out("Enter a value: ");
        ui.area(&[Line::heading("Applying")]);
        assert_eq!(out.text(), "Enter a value: ");
        ui.line("");
        ui.area(&[Line::heading("Applying")]);
        assert_eq!(out.text(), "Enter a value: \n\r\x1b[?7lApplying\x1b[J\x1b[?7h\r");
    }

    #[test]
    fn without_a_live_area_nothing_is_drawn() {
        let (ui, out, _) = Ui::captured();
        ui.area(&[Line::heading("Applying")]);
        ui.clear_area();
        assert_eq!(out.text(), "");
    }
}
