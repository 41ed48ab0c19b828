//! States: their locks, leftovers of killed runs, and states that move between systems.

use support::running::until;

use crate::machine::Windows;

/// A command that runs until the file `go` exists. Wine's `ping` waits for one second.
const WAITING: &str = r#"
resource "terraform_data" "first" {
  input = 1
}

resource "terraform_data" "second" {
  depends_on = [terraform_data.first]
  provisioner "local-exec" {
    command = "wait.bat"
  }
}
"#;

const WAIT: &str =
    "@echo off\r\necho waiting\r\n:again\r\nif exist go exit 0\r\nping -n 2 127.0.0.1 >nul\r\ngoto again\r\n";

#[test]
fn locked_state_can_be_read_but_not_written() {
    let files = [("main.tf", WAITING), ("wait.bat", WAIT)];
    let Some(w) = Windows::with(&files, "locked_state_can_be_read_but_not_written") else {
        return;
    };
    let mut running = w.start(&["apply", "-no-color", "-auto-approve"]);
    running.sees("(local-exec): waiting");
    w.run(&["apply", "-no-color", "-auto-approve"])
        .fails_with(&["Error acquiring the state lock", "Operation: OperationTypeApply"]);
    w.run(&["output", "-json"]).ok();
    w.run(&["plan", "-no-color", "-lock=false"]).ok();
    w.files.write("go", "");
    running.ends().ok().shows(&["Apply complete! Resources: 2 added"]);
    w.run(&["plan", "-no-color", "-detailed-exitcode"]).ok();
}

#[test]
fn killed_run_leaves_its_results_and_no_process() {
    let files = [("main.tf", WAITING), ("wait.bat", WAIT)];
    let Some(w) = Windows::with(&files, "killed_run_leaves_its_results_and_no_process") else {
        return;
    };
    let mut running = w.start(&["apply", "-no-color", "-auto-approve"]);
    running.sees("(local-exec): waiting");
    // Dropping the value kills the process.
    drop(running);
    let list = w.run(&["state", "list"]).ok();
    assert!(list.stdout.contains("terraform_data.first\n"), "{}", list.all());
    // The lock ends with the killed process and the processes that it had started.
    w.files.write("go", "");
    until("a state that nobody has locked", || {
        w.run(&["apply", "-no-color", "-auto-approve"]).status == 0
    });
    let list = w.run(&["state", "list"]).ok();
    assert_eq!(list.stdout, "terraform_data.first\nterraform_data.second\n");
}

#[test]
fn state_goes_on_from_linux_to_windows_and_back() {
    let Some(w) = Windows::with(&[], "state_goes_on_from_linux_to_windows_and_back") else {
        return;
    };
    support::exchange::state_goes_there_and_back(&w.files, &|args| w.run(args));
}
