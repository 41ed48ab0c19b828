//! Questions: on a terminal, through a pipe, and interrupted.

use std::io::Write as _;
use std::process::Stdio;

use crate::{files, no_orphans};
use support::terminal::Terminal;
use support::{Ran, Workspace, monoform};

const CONTROL_C: &str = "\x03";

const ASKING: &str = r#"
variable "n" {
  type = number
}

variable "secret" {
  type      = string
  sensitive = true
}

resource "terraform_data" "a" {
  input = "${var.n} ${var.secret}"
}
"#;

const PLAIN: &str = "resource \"terraform_data\" \"a\" {\n  input = 1\n}\n";

fn terminal(w: &Workspace, args: &[&str]) -> Terminal {
    // In its own session, the program gets the signals of keys from the terminal.
    Terminal::start(w.command("setsid").args(["--ctty", monoform()]).args(args))
}

fn piped(w: &Workspace, args: &[&str], input: &str) -> Ran {
    let mut child = w
        .command(monoform())
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("monoform starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(input.as_bytes()).expect("it is read");
    drop(stdin);
    support::ran(child.wait_with_output().expect("its output"))
}

#[test]
fn answers_come_through_a_pipe() {
    let w = Workspace::with(&[("main.tf", ASKING)]);
    let ran = piped(&w, &["apply", "-no-color"], "5\nhidden\nyes\n").ok();
    assert!(
        ran.stdout.contains("Apply complete! Resources: 1 added"),
        "{}",
        ran.all()
    );
    assert_eq!(
        w.state()["resources"][0]["instances"][0]["attributes"]["input"]["value"],
        "5 hidden"
    );
    let args = ["destroy", "-no-color", "-var=n=5", "-var=secret=hidden"];
    let ran = piped(&w, &args, "no\n");
    assert_eq!(ran.status, 1);
    assert!(ran.stdout.contains("Destroy cancelled."), "{}", ran.all());
    // As in Terraform, -input=false and TF_INPUT are about variables, not about approval.
    let args = ["destroy", "-no-color", "-input=false", "-var=n=5", "-var=secret=hidden"];
    piped(&w, &args, "yes\n").ok();
    let w = w.env("TF_INPUT", "false");
    let ran = piped(&w, &["plan", "-no-color"], "5\nhidden\n");
    assert_eq!(ran.status, 1);
    assert!(!ran.stdout.contains("Enter a value"), "{}", ran.all());
    assert!(ran.stderr.contains("No value for required variable"), "{}", ran.all());
    no_orphans(&w);
}

#[test]
fn a_wrong_answer_through_a_pipe_is_an_error() {
    let w = Workspace::with(&[("main.tf", ASKING)]);
    let ran = piped(&w, &["plan", "-no-color"], "many\nhidden\n");
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.contains("a number is required"), "{}", ran.all());
}

#[test]
fn other_commands_read_answers_from_a_pipe() {
    let w = Workspace::with(&[("main.tf", PLAIN)]);
    w.run(&["apply", "-auto-approve"]).ok();
    let args = [
        "state",
        "replace-provider",
        "-no-color",
        "terraform.io/builtin/terraform",
        "example.com/a/b",
    ];
    let ran = piped(&w, &args, "no\n").ok();
    assert!(ran.stdout.contains("Cancelled replacing providers."), "{}", ran.all());
    assert_eq!(piped(&w, &args, "").status, 1, "there is no answer");
    piped(&w, &args, "yes\n").ok();
    assert!(w.read("terraform.tfstate").contains("example.com/a/b"));
    let ran = piped(&w, &["force-unlock", "-no-color", "x"], "no\n");
    assert_eq!(ran.status, 1);
    assert!(ran.stdout.contains("force-unlock cancelled."), "{}", ran.all());
}

#[test]
fn a_sensitive_value_is_not_echoed_and_a_wrong_one_asked_again() {
    let w = Workspace::with(&[("main.tf", ASKING)]);
    let mut screen = terminal(&w, &["apply", "-no-color"]);
    screen.sees("var.n\n  Enter a value: ");
    screen.press("many\r");
    screen.sees("a number is required");
    screen.sees("var.n\n  Enter a value: ");
    screen.press("7\r");
    screen.sees("var.secret\n  Enter a value: ");
    // Waits until input is hidden, because keys that are pressed earlier would be shown.
    screen.hides();
    screen.press("hunter2\r");
    screen.sees("Only 'yes' will be accepted to approve.\n\n  Enter a value: ");
    screen.press("yes\r");
    screen.sees("Apply complete!");
    let (status, _, all) = screen.ends();
    assert_eq!(status.code(), Some(0));
    let all = String::from_utf8_lossy(&all);
    assert!(!all.contains("hunter2"), "{all}");
    // Answers that are not secret are visible.
    assert!(all.contains("many") && all.contains("yes\r"), "{all}");
    assert_eq!(
        w.state()["resources"][0]["instances"][0]["attributes"]["input"]["value"],
        "7 hunter2"
    );
}

#[test]
fn an_interrupt_ends_a_question_at_once_and_leaves_nothing() {
    for (args, question) in [
        (&["apply", "-no-color", "-var=secret=s"][..], "var.n"),
        (
            &["apply", "-no-color", "-var=n=1", "-var=secret=s"],
            "Do you want to perform these actions?",
        ),
        (&["plan", "-no-color", "-var=n=1"], "var.secret"),
    ] {
        for signal in ["Control-C", "INT", "TERM", "HUP"] {
            let w = Workspace::with(&[("main.tf", ASKING)]);
            let before = files(&w);
            let mut screen = terminal(&w, args);
            screen.sees(question);
            screen.sees("Enter a value: ");
            if signal == "Control-C" {
                screen.press(CONTROL_C);
            } else {
                let id = screen.id().to_string();
                let sent = std::process::Command::new("kill").args(["-s", signal, &id]).status();
                assert!(sent.expect("kill runs").success());
            }
            let (status, seen, _) = screen.ends();
            assert_eq!(status.code(), Some(1), "{signal}: {seen}");
            assert!(seen.contains("nterrupted"), "{signal}: {seen}");
            assert!(before == files(&w), "{signal} {args:?} left {:?}", files(&w).keys());
            no_orphans(&w);
        }
    }
}

#[test]
fn an_interrupted_question_of_a_state_command_releases_the_lock() {
    let w = Workspace::with(&[("main.tf", PLAIN)]);
    w.run(&["apply", "-auto-approve"]).ok();
    let before = files(&w);
    let args = [
        "state",
        "replace-provider",
        "-no-color",
        "terraform.io/builtin/terraform",
        "a/b",
    ];
    let mut screen = terminal(&w, &args);
    screen.sees("Enter a value: ");
    assert!(w.exists(".terraform.tfstate.lock.info"));
    screen.press(CONTROL_C);
    let (status, seen, _) = screen.ends();
    assert_eq!(status.code(), Some(1), "{seen}");
    assert!(before == files(&w), "{:?}", files(&w).keys());
}

#[test]
fn control_characters_are_shown_as_text() {
    let w = Workspace::with(&[(
        "main.tf",
        r#"
variable "v" {
  default = "first\u001b[2J\nsecond\u0007\u001b]0;title\u0007\u202e"
}

resource "terraform_data" "a" {
  for_each = { "k\u001b[31m" = var.v }
  input    = each.value
  provisioner "local-exec" {
    command = "printf 'from\\033[2Jthe\\rcommand\\n'"
  }
}

check "c" {
  assert {
    condition     = length(terraform_data.a) == 0
    error_message = "told\u001b[2J"
  }
}

output "o" {
  value = var.v
}
"#,
    )]);
    let mut screen = terminal(&w, &["apply", "-auto-approve"]);
    // A carriage return ends a line in a provisioner's output.
    screen.sees("(local-exec): from\\x1b[2Jthe");
    screen.sees("(local-exec): command");
    screen.sees("told\\x1b[2J");
    screen.sees("second\\a\\x1b]0;title\\a\\u202e");
    let (status, _, all) = screen.ends();
    assert_eq!(status.code(), Some(0));
    let all = String::from_utf8_lossy(&all);
    for foreign in ["\x1b[2J", "\x1b]0", "\x07", "\u{202e}", "k\x1b"] {
        assert!(!all.contains(foreign), "{foreign:?} in {all:?}");
    }
    assert!(all.contains("\x1b[1m"), "our own colours are there: {all:?}");
    // Output for programs is not changed.
    let exact = "first\u{1b}[2J\nsecond\u{7}\u{1b}]0;title\u{7}\u{202e}";
    assert_eq!(w.run(&["output", "-raw", "o"]).ok().stdout, exact);
    assert_eq!(w.run(&["output", "-json", "o"]).ok().json(), exact);
    let shown = w.run(&["output", "o"]).ok().stdout;
    assert!(!shown.contains('\u{1b}') && shown.contains("\\x1b[2J"), "{shown:?}");
}

#[test]
fn no_color_in_the_environment_counts() {
    // On a slow machine the live area would be drawn, which has control sequences although no colours.
    let w = Workspace::with(&[("main.tf", PLAIN)])
        .env("MONOFORM_PROGRESS", "off")
        .env("NO_COLOR", "1");
    let (status, _, all) = terminal(&w, &["plan"]).ends();
    assert_eq!(status.code(), Some(0));
    assert!(!all.contains(&0x1b), "{}", String::from_utf8_lossy(&all));
    let w = w.env("NO_COLOR", "");
    let (_, _, all) = terminal(&w, &["plan"]).ends();
    assert!(all.contains(&0x1b), "empty counts as absent");
}
