//! Programs that control Terraform: they must get the same results from Monoform.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::Value;

use crate::{build, with_cli_config};
use support::{Workspace, monoform};

/// Runs the driver with this executable. Returns the name of each step, and the line that the driver printed about it.
fn steps(executable: &Path) -> Vec<(String, Value)> {
    let driver = build("driver", "driver");
    let w = Workspace::new();
    // The links lead to the executable itself. A link to another file would be an external plugin in place of the
    // built-in one, which causes a message.
    let mirror = w.home().join("mirror");
    w.run(&["internal-plugin", "link", &mirror.display().to_string()]).ok();
    let w = with_cli_config(w, &support::only_from(&mirror));
    let directory = w.dir().display().to_string();
    let ran = w
        .run_program(driver, &[&executable.display().to_string(), &directory])
        .ok();
    let lines = ran.stdout.lines().map(|line| {
        let value: Value = serde_json::from_str(line).expect("JSON");
        (value["step"].as_str().expect("a name").to_owned(), value)
    });
    lines.collect()
}

/// Tests a program that uses HashiCorp's Go module `terraform-exec`. The executable has the name `terraform`, for
/// which the program searches.
pub fn terraform_exec_gets_the_same_from_both() {
    let names = Workspace::new();
    let ours = names.dir().join("terraform");
    symlink(monoform(), &ours).expect("a link");
    let theirs = support::which("terraform").expect("Terraform");
    let expected: BTreeMap<String, Value> = steps(&theirs).into_iter().collect();
    let found = steps(&ours);
    assert_eq!(found.len(), expected.len());
    let mut differences = String::new();
    for (name, value) in found {
        if expected.get(&name) != Some(&value) {
            let theirs = expected.get(&name).map_or_else(String::new, Value::to_string);
            differences.push_str(&format!("{name}:\n  ours   {value}\n  theirs {theirs}\n"));
        }
    }
    assert!(differences.is_empty(), "{differences}");
}
