//! The prompt before a plan is applied, at a terminal: inspecting the plan before the answer.

use std::io::Write as _;
use std::process::Stdio;

use support::terminal::Terminal;
use support::{Workspace, monoform};

pub const TESTS: &[(&str, fn())] = &[
    ("review::plan_is_looked_at_before_the_answer", looked_at),
    ("review::any_other_answer_cancels", cancelled),
    ("review::scripts_give_one_answer", scripts),
];

const MAIN: &str = "resource \"terraform_data\" \"a\" {\n  input = \"text of a\"\n}\n\nresource \"terraform_data\" \"b\" {\n  input = \
                    terraform_data.a.id\n}\n\nresource \"terraform_data\" \"c\" {}\n";

const PROMPT: &str = "Enter a value: ";

fn looked_at() {
    let w = Workspace::with(&[("main.tf", MAIN)]);
    let mut terminal = Terminal::start(w.command(monoform()).args(["apply", "-verbosity=brief"]));
    terminal.sees("? lists them.");
    terminal.sees(PROMPT);
    terminal.press("?\n");
    terminal.sees("d ADDRESS   shows the change of one object");
    terminal.sees(PROMPT);
    terminal.press("d terraform_data.a\n");
    terminal.sees("+ input  = \"text of a\"");
    terminal.sees(PROMPT);
    terminal.press("d terraform_data.aa\n");
    terminal.sees("Did you mean \"terraform_data.a\"?");
    terminal.sees(PROMPT);
    terminal.press("e terraform_data.b\n");
    terminal.sees("terraform_data.a.id");
    terminal.sees(PROMPT);
    terminal.press("w kept.plan\n");
    terminal.sees("The plan is in kept.plan. Nothing was changed so far.");
    terminal.sees(PROMPT);
    terminal.press("x terraform_data.b\n");
    terminal.sees("Plan: 2 to add");
    terminal.sees(PROMPT);
    // Excluded objects stay excluded.
    terminal.press("x terraform_data.c\n");
    terminal.sees("Plan: 1 to add");
    terminal.sees(PROMPT);
    terminal.press("yes\n");
    terminal.sees("Apply complete! Resources: 1 added");
    assert!(terminal.leaves().0.success());
    assert_eq!(w.run(&["state", "list"]).ok().stdout, "terraform_data.a\n");
    // The saved plan contains everything.
    w.run(&["show", "-verbosity=brief", "kept.plan"])
        .ok()
        .shows(&["Plan: 3 to add"]);
}

fn cancelled() {
    let w = Workspace::with(&[("main.tf", MAIN)]);
    for answer in ["y\n", "yes please\n", "d\n", "q\n", "\n"] {
        let mut terminal = Terminal::start(w.command(monoform()).args(["apply"]));
        terminal.sees(PROMPT);
        terminal.press(answer);
        terminal.sees("Apply cancelled.");
        let (status, ..) = terminal.leaves();
        assert_eq!(status.code(), Some(1), "{answer:?}");
    }
    // With `-target`, no further object can be excluded.
    let mut terminal = Terminal::start(w.command(monoform()).args(["apply", "-target=terraform_data.a"]));
    terminal.sees(PROMPT);
    terminal.press("x terraform_data.a\n");
    terminal.sees("limited by -target");
    terminal.sees(PROMPT);
    terminal.press("no\n");
    terminal.sees("Apply cancelled.");
    assert!(!w.exists("terraform.tfstate"));
}

fn scripts() {
    let w = Workspace::with(&[("main.tf", MAIN)]);
    let mut child = w
        .command(monoform())
        .arg("apply")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("monoform starts");
    let mut input = child.stdin.take().expect("an input");
    // The program may have ended before it has read all of its input.
    let _ = input.write_all(b"x terraform_data.b\nyes\n");
    drop(input);
    let output = child.wait_with_output().expect("an end");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("Apply cancelled."), "{text}");
    assert!(!text.contains("lists them"), "{text}");
    assert!(!w.exists("terraform.tfstate"));
}
