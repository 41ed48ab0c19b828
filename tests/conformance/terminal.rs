//! The command `console` on a terminal: what is typed, key by key, and what is seen.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use nix::pty::{Winsize, openpty};

const ENTER: &str = "\r";
const UP: &str = "\x1b[A";
const LEFT: &str = "\x1b[D";
const CONTROL_C: &str = "\x03";
const CONTROL_D: &str = "\x04";

/// Far beyond what an answer takes, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(60);

/// A console on a pseudo-terminal.
struct Terminal {
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    child: Child,
    /// What has been seen and not been asked for, control sequences and carriage returns left out.
    seen: String,
    raw: Vec<u8>,
}

impl Terminal {
    fn console(dir: &Path) -> Terminal {
        let size = Winsize {
            ws_row: 24,
            ws_col: 100,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let pair = openpty(&size, None).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_monoform"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("TF_") {
                command.env_remove(name);
            }
        }
        let end = || pair.slave.try_clone().unwrap();
        let child = command
            .args(["console", "-no-color"])
            .env("TERM", "xterm")
            .current_dir(dir)
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        let keyboard = File::from(pair.master);
        let mut master = keyboard.try_clone().unwrap();
        let (send, screen) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // It ends with an error when nobody has the other end any more.
            while let Ok(n @ 1..) = master.read(&mut bytes) {
                if send.send(bytes[..n].to_vec()).is_err() {
                    break;
                }
            }
        });
        Terminal {
            keyboard,
            screen,
            child,
            seen: String::new(),
            raw: Vec::new(),
        }
    }

    fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until this is to be seen, and forgets all that came before.
    fn sees(&mut self, text: &str) {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.seen.find(text) {
                self.seen.drain(..at + text.len());
                return;
            }
            match self.screen.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(bytes) => {
                    self.raw.extend(bytes);
                    let used = plain(&self.raw, &mut self.seen);
                    self.raw.drain(..used);
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("{text:?} is not to be seen in {:?}", self.seen)
                }
            }
        }
    }

    /// Types a line, and waits for what it gives and the next prompt.
    fn gives(&mut self, line: &str, answer: &str) {
        self.press(line);
        self.press(ENTER);
        self.sees(&format!("\n{answer}\n> "));
    }

    /// How it ended.
    fn ends(mut self) -> ExitStatus {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        panic!("the console does not end: {:?}", self.seen)
    }
}

/// Adds the text among these bytes, and says how many of them are complete.
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
                    // The rest of a character is on its way.
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

#[test]
fn lines_are_edited_and_recalled() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("main.tf"), "locals {\n  n = 20\n}\n").unwrap();
    let mut console = Terminal::console(dir.path());
    console.sees("> ");
    console.gives("local.n + 1", "21");
    // The line before, with something behind it; then the one before that, changed in the middle.
    console.gives(&format!("{UP} * 100"), "120");
    console.gives(&format!("{UP}{UP}{LEFT}{LEFT}{LEFT}* 2 "), "41");
    console.gives("\"caf\u{e9}\"", "\"caf\u{e9}\"");
    console.press("nope(1)\r");
    console.sees("Call to unknown function");
    console.sees("\n> ");
    console.gives("\"still\"", "\"still\"");
    console.press("exit\r");
    assert_eq!(console.ends().code(), Some(0));
}

#[test]
fn an_entry_of_several_lines_ends_when_all_is_closed() {
    let dir = tempfile::tempdir().unwrap();
    let mut console = Terminal::console(dir.path());
    console.sees("> ");
    console.press("{\r");
    console.sees("\n: ");
    console.press("a = upper(\r");
    console.sees("\n: ");
    console.press("\"x\")\r");
    console.sees("\n: ");
    console.gives("}", "{\n  \"a\" = \"X\"\n}");
    console.press("<<EOT\r");
    console.sees("\n: ");
    console.press("text (\r");
    console.sees("\n: ");
    console.gives("EOT", "<<EOT\ntext (\n\nEOT");
    console.press(CONTROL_D);
    assert_eq!(console.ends().code(), Some(0));
}

#[test]
fn an_interrupt_drops_what_was_begun_or_ends() {
    let dir = tempfile::tempdir().unwrap();
    let mut console = Terminal::console(dir.path());
    console.sees("> ");
    console.press("1 + ");
    console.sees("1 + ");
    console.press(CONTROL_C);
    console.sees("\n> ");
    console.gives("7", "7");
    console.press("[\r");
    console.sees("\n: ");
    console.press("8,");
    console.press(CONTROL_C);
    console.sees("\n(multi-line entry canceled)\n> ");
    console.gives("9", "9");
    console.press(CONTROL_C);
    assert_eq!(console.ends().code(), Some(0));
}
