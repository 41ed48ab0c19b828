//! The live area of a terminal: visible while an operation runs, erased completely afterwards, and never in a pipe.

use std::collections::BTreeMap;
use std::time::Duration;

use support::terminal::Terminal;
use support::{Workspace, monoform};

pub const TESTS: &[(&str, fn())] = &[
    ("live_area::shows_what_runs_and_is_gone_afterwards", what_runs),
    ("live_area::fits_into_a_narrow_terminal", narrow),
    ("live_area::follows_a_terminal_that_is_resized", resized),
    ("live_area::prose_has_the_width_of_the_resized_terminal", wide_prose),
    ("live_area::is_gone_after_an_interrupt", interrupted),
    ("live_area::is_gone_before_a_question_and_after_an_error", asked),
    ("live_area::can_be_turned_off", off),
    ("live_area::log_of_a_job_has_a_section_of_refreshed_objects", section),
];

/// Configuration of three objects whose creation waits for a file `go`, and thirty others.
const SLOW: &str = r#"
resource "terraform_data" "quick" {
  count = 30
}

resource "terraform_data" "slow" {
  count = 3

  provisioner "local-exec" {
    command = "echo begin-${count.index}; while [ ! -e go ]; do sleep 0.05; done; echo end-${count.index}"
  }
}
"#;

fn on(w: &Workspace, rows: u16, columns: u16, args: &[&str]) -> Terminal {
    // In its own session, the program gets the signals of keys from the terminal.
    let mut command = w.command("setsid");
    Terminal::sized(command.args(["--ctty", monoform()]).args(args), rows, columns)
}

fn applying(w: &Workspace, rows: u16, columns: u16) -> Terminal {
    on(w, rows, columns, &["apply", "-auto-approve"])
}

/// Returns the index of the only row with this beginning; `None` if there is no such row.
fn heading(rows: &[String], begin: &str) -> Option<usize> {
    let mut found = rows.iter().enumerate().filter(|(_, row)| row.starts_with(begin));
    let (at, _) = found.next()?;
    assert!(found.next().is_none(), "{}", rows.join("\n"));
    Some(at)
}

/// Returns the lines about objects and the last line of an apply, without parts that differ from run to run. Each has
/// the number of its occurrences.
fn compared<'l>(lines: impl IntoIterator<Item = &'l str>) -> BTreeMap<String, usize> {
    let mut out = BTreeMap::new();
    for line in lines {
        let line = line.split(" [id=").next().unwrap_or_default();
        let line = line.split(" after ").next().unwrap_or_default().trim_end();
        // Other text depends on the width of the terminal, so it is not compared.
        if !is_slow(line) && (line.starts_with("terraform_data.") || line.starts_with("Apply complete!")) {
            *out.entry(line.to_owned()).or_default() += 1;
        }
    }
    out
}

/// Returns true for the message that an operation takes longer than usual, as it does on a busy machine.
fn is_slow(line: &str) -> bool {
    line.contains(": Still ")
}

fn no_remains(lines: &[String]) {
    let remains: Vec<&String> = lines
        .iter()
        .filter(|line| !is_slow(line))
        .filter(|line| line.contains("elapsed") || line.contains("... (local-exec)") || line.contains("33 done"))
        .collect();
    assert!(remains.is_empty(), "{remains:#?}\n{}", lines.join("\n"));
}

fn what_runs() {
    let w = Workspace::with(&[("main.tf", SLOW)]);
    let mut terminal = applying(&w, 24, 160);
    let rows = terminal.shows(|rows| {
        heading(rows, "Applying: 30/33 done, 3 running, ").is_some()
            && rows
                .iter()
                .filter(|row| row.contains("Creating... (local-exec)"))
                .count()
                == 3
    });
    let at = heading(&rows, "Applying: ").expect("the heading");
    for row in &rows[at + 1..at + 4] {
        assert!(row.contains("s  terraform_data.slow["), "{row}");
    }
    assert!(rows[at + 4..].iter().all(String::is_empty), "{}", rows.join("\n"));
    assert_eq!(usize::from(terminal.cursor().0), at, "the cursor is at the heading");
    // Each drawing is below the lines that were written before it.
    terminal.shows(|now| heading(now, "Applying: 30/33 done, 3 running, ").is_some_and(|here| now[here] != rows[at]));
    w.write("go", "");
    let (status, lines, _) = terminal.leaves();
    assert!(status.success());
    no_remains(&lines);
    // The remaining lines are complete, and the same as in a pipe.
    let piped = Workspace::with(&[("main.tf", SLOW), ("go", "")]);
    let ran = piped.run(&["apply", "-auto-approve"]).ok();
    let (seen, expected) = (compared(lines.iter().map(String::as_str)), compared(ran.stdout.lines()));
    assert_eq!(expected.len(), 1 + 33 * 2 + 3 * 4);
    assert_eq!(seen, expected, "{}", lines.join("\n"));
    assert!(
        !ran.stdout.contains('\u{1b}') && !ran.stdout.contains("33 done"),
        "{}",
        ran.all()
    );
}

fn section() {
    let w = Workspace::with(&[("main.tf", "resource \"terraform_data\" \"a\" {}\n")]);
    w.run(&["apply", "-auto-approve"]).ok();
    let w = w.env("GITHUB_ACTIONS", "true");
    let planned = w.run(&["plan"]).ok().stdout;
    assert!(
        planned.starts_with("::group::Refreshing state\nterraform_data.a: Refreshing state..."),
        "{planned}"
    );
    assert!(planned.contains("]\n::endgroup::\n\nNo changes."), "{planned}");
    // Called as `terraform`, the program writes no group markers, because Terraform writes none. Neither do modes with
    // less output.
    let link = w.dir().join("terraform");
    std::os::unix::fs::symlink(monoform(), &link).expect("a link");
    let as_terraform = w.run_program(&link, &["plan"]).ok().stdout;
    assert!(
        as_terraform.starts_with("terraform_data.a: Refreshing"),
        "{as_terraform}"
    );
    for arguments in [&["plan", "-concise"][..], &["plan", "-summary"], &["plan", "-json"]] {
        let other = w.run(arguments).ok().stdout;
        assert!(!other.contains("::group::"), "{other}");
    }
}

fn narrow() {
    let text = SLOW.replace("\"slow\"", "\"slow_with_a_long_name\"");
    let w = Workspace::with(&[("main.tf", &text)]);
    let mut terminal = applying(&w, 6, 30);
    let rows = terminal.shows(|rows| {
        heading(rows, "Applying: 30/33 done, 3 runn…").is_some()
            && rows.iter().any(|row| row.contains("s  terraf…ame["))
    });
    // The terminal has six rows, and the area leaves one of them free.
    let at = heading(&rows, "Applying: ").expect("the heading");
    assert!((1..=2).contains(&at), "{}", rows.join("\n"));
    w.write("go", "");
    let (status, lines, _) = terminal.leaves();
    assert!(status.success());
    assert!(!lines.iter().any(|line| line.contains('…')), "{}", lines.join("\n"));
    let all: String = lines.concat();
    for i in 0..3 {
        let end = format!("terraform_data.slow_with_a_long_name[{i}] (local-exec): end-{i}");
        assert!(all.contains(&end), "{}", lines.join("\n"));
    }
    assert!(
        all.contains("Apply complete! Resources: 33 added"),
        "{}",
        lines.join("\n")
    );
}

fn resized() {
    let w = Workspace::with(&[("main.tf", SLOW)]);
    let mut terminal = applying(&w, 24, 160);
    let running = "Applying: 30/33 done, 3 running, ";
    terminal.shows(|rows| heading(rows, running).is_some());
    terminal.resize(10, 30);
    terminal.shows(|rows| heading(rows, "Applying: 30/33 done, 3 runn…").is_some());
    terminal.resize(40, 120);
    terminal.shows(|rows| {
        rows.iter()
            .any(|row| row.starts_with(running) && row.ends_with(" elapsed"))
    });
    w.write("go", "");
    let (status, lines, _) = terminal.leaves();
    assert!(status.success());
    no_remains(&lines);
    assert!(
        lines
            .iter()
            .any(|line| line.contains("Apply complete! Resources: 33 added"))
    );
}

/// Lines after a resize of the terminal have the new width.
fn wide_prose() {
    let text = "data \"external\" \"slow\" {\n  program = [\"sh\", \"-c\", \"while [ ! -e go ]; do sleep 0.05; done; echo '{}'\"]\n}\n\noutput \"o\" {\n  value = data.external.slow.result\n}\n";
    let w = Workspace::with(&[("main.tf", text)]);
    let mut terminal = on(&w, 24, 100, &["plan"]);
    terminal.shows(|rows| heading(rows, "Planning: ").is_some());
    terminal.resize(24, 60);
    w.write("go", "");
    let (status, lines, _) = terminal.leaves();
    assert!(status.success());
    no_remains(&lines);
    assert!(lines.contains(&"─".repeat(59)), "{}", lines.join("\n"));
}

fn interrupted() {
    let w = Workspace::with(&[("main.tf", SLOW)]);
    let mut terminal = applying(&w, 24, 160);
    terminal.shows(|rows| heading(rows, "Applying: 30/33 done, 3 running, ").is_some());
    terminal.press("\x03");
    let (status, lines, _) = terminal.leaves();
    assert_eq!(status.code(), Some(1));
    no_remains(&lines);
    let text = lines.join("\n");
    for line in ["Interrupt received.", "Gracefully shutting down..."] {
        assert_eq!(lines.iter().filter(|l| l.as_str() == line).count(), 1, "{text}");
    }
    assert!(!text.contains("Applying: ") && !text.contains("Stopping: "), "{text}");
    assert!(!text.contains("^C"), "{text}");
}

fn asked() {
    let text = format!(
        "{SLOW}\n{}",
        r#"
data "external" "slow" {
  program = ["sh", "-c", "while [ ! -e read ]; do sleep 0.05; done; echo '{\"a\":\"b\"}'"]
}

resource "terraform_data" "wrong" {
  input = data.external.slow.result.a

  provisioner "local-exec" {
    command = "while [ ! -e go ]; do sleep 0.05; done; exit 3"
  }
}
"#
    );
    let w = Workspace::with(&[("main.tf", &text)]);
    let mut terminal = on(&w, 24, 160, &["apply"]);
    terminal.shows(|rows| {
        heading(rows, "Planning: ").is_some()
            && rows.iter().any(|row| row.contains("s  data.external.slow: Reading..."))
    });
    w.write("read", "");
    let rows = terminal.shows(|rows| rows.iter().any(|row| row.contains("Enter a value:")));
    no_remains(&rows);
    terminal.press("yes\n");
    terminal.shows(|rows| {
        heading(rows, "Applying: 30/34 done, 4 running, ").is_some()
            && rows
                .iter()
                .any(|row| row.contains("terraform_data.wrong: Creating... (local-exec)"))
    });
    w.write("go", "");
    let (status, lines, _) = terminal.leaves();
    assert_eq!(status.code(), Some(1));
    no_remains(&lines);
    let at = lines
        .iter()
        .position(|line| line.contains("Error: "))
        .expect("the error");
    assert_eq!(lines[at - 1], "╷", "{}", lines.join("\n"));
    assert!(lines.iter().skip(at).any(|line| line == "╵"), "{}", lines.join("\n"));
}

fn off() {
    let settings: [(&str, &str, &str); 5] = [
        ("MONOFORM_PROGRESS", "off", "-input=false"),
        ("TF_IN_AUTOMATION", "1", "-input=false"),
        ("TERM", "dumb", "-input=false"),
        ("TF_LOG", "error", "-input=false"),
        ("USER", "somebody", "-no-color"),
    ];
    let all = settings.map(|(name, value, flag)| {
        let w = Workspace::with(&[("main.tf", SLOW)]).env(name, value);
        let mut terminal = on(&w, 24, 160, &["apply", "-auto-approve", flag]);
        terminal.sees("begin-0");
        (w, terminal)
    });
    // In this time, the area would be drawn if it were switched on.
    std::thread::sleep(Duration::from_secs(1));
    for ((w, terminal), (name, value, flag)) in all.into_iter().zip(settings) {
        w.write("go", "");
        let (status, lines, bytes) = terminal.leaves();
        assert!(status.success());
        no_remains(&lines);
        let text = String::from_utf8_lossy(&bytes);
        assert!(
            !text.contains("Applying: ") && !text.contains("\u{1b}[J") && !text.contains("\u{1b}[K"),
            "{name}={value} {flag}: {text}"
        );
        assert!(text.contains("Apply complete! Resources: 33 added"), "{text}");
    }
}
