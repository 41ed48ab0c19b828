//! The command `console` on a terminal: typed keys and seen text.

use std::path::Path;
use std::process::Command;

use support::terminal::Terminal;

const ENTER: &str = "\r";
const UP: &str = "\x1b[A";
const LEFT: &str = "\x1b[D";
const CONTROL_C: &str = "\x03";
const CONTROL_D: &str = "\x04";

fn console(dir: &Path) -> Terminal {
    let mut command = Command::new(env!("CARGO_BIN_EXE_monoform"));
    support::isolated(&mut command, dir);
    Terminal::start(command.args(["console", "-no-color"]).current_dir(dir))
}

/// Types a line, and waits for its result and the next prompt.
fn gives(console: &mut Terminal, line: &str, answer: &str) {
    console.press(line);
    console.press(ENTER);
    console.sees(&format!("\n{answer}\n> "));
}

#[test]
fn lines_are_edited_and_recalled() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("main.tf"), "locals {\n  n = 20\n}\n").unwrap();
    let mut terminal = console(dir.path());
    terminal.sees("> ");
    gives(&mut terminal, "local.n + 1", "21");
    // The previous line is edited at its end, and the one before that in the middle.
    gives(&mut terminal, &format!("{UP} * 100"), "120");
    gives(&mut terminal, &format!("{UP}{UP}{LEFT}{LEFT}{LEFT}* 2 "), "41");
    gives(&mut terminal, "\"caf\u{e9}\"", "\"caf\u{e9}\"");
    terminal.press("nope(1)\r");
    terminal.sees("Call to unknown function");
    terminal.sees("\n> ");
    gives(&mut terminal, "\"still\"", "\"still\"");
    terminal.press("exit\r");
    assert_eq!(terminal.ends().0.code(), Some(0));
}

#[test]
fn an_entry_of_several_lines_ends_when_all_is_closed() {
    let dir = tempfile::tempdir().unwrap();
    let mut terminal = console(dir.path());
    terminal.sees("> ");
    terminal.press("{\r");
    terminal.sees("\n: ");
    terminal.press("a = upper(\r");
    terminal.sees("\n: ");
    terminal.press("\"x\")\r");
    terminal.sees("\n: ");
    gives(&mut terminal, "}", "{\n  \"a\" = \"X\"\n}");
    terminal.press("<<EOT\r");
    terminal.sees("\n: ");
    terminal.press("text (\r");
    terminal.sees("\n: ");
    gives(&mut terminal, "EOT", "<<EOT\ntext (\n\nEOT");
    terminal.press(CONTROL_D);
    assert_eq!(terminal.ends().0.code(), Some(0));
}

#[test]
fn interrupt_discards_the_entry_or_ends_the_console() {
    let dir = tempfile::tempdir().unwrap();
    let mut terminal = console(dir.path());
    terminal.sees("> ");
    terminal.press("1 + ");
    terminal.sees("1 + ");
    terminal.press(CONTROL_C);
    terminal.sees("\n> ");
    gives(&mut terminal, "7", "7");
    terminal.press("[\r");
    terminal.sees("\n: ");
    terminal.press("8,");
    terminal.press(CONTROL_C);
    terminal.sees("\n(multi-line entry canceled)\n> ");
    gives(&mut terminal, "9", "9");
    terminal.press(CONTROL_C);
    assert_eq!(terminal.ends().0.code(), Some(0));
}
