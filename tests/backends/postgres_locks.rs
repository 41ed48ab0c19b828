//! Locks of PostgreSQL. The first applies of states in different schemas and workspaces do not wait for each other in Monoform; in
//! Terraform they do.

use std::path::Path;
use std::process::{Child, Stdio};

use support::{Workspace, monoform};

use crate::lab::{Lab, Tool, run};
use crate::postgres;

pub const TESTS: &[(&str, fn())] = &[
    ("first_applies_of_other_states_do_not_wait", apart),
    ("a_lock_without_a_write_leaves_no_row", no_row),
];

/// Configuration whose apply lasts until the file `go` exists.
const SLOW: &str = "resource \"terraform_data\" \"a\" {\n  provisioner \"local-exec\" {\n    command = \"touch begun; while [ ! -e go ]; \
                    do sleep 0.1; done\"\n  }\n}\n";
const QUICK: &str = "resource \"terraform_data\" \"a\" {\n}\n";

fn directory(lab: &Lab, configuration: &str, schema: &str) -> Workspace {
    let w = Workspace::with(&[("main.tf", configuration)]);
    w.write("backend.tf", &lab.block(&format!("schema_name = \"{schema}\"")));
    run(&w, Tool::Monoform, &["init", "-input=false"]).ok();
    w
}

/// Starts an apply, and returns when the state is locked and the object is being created.
fn begun(w: &Workspace) -> Child {
    let child = w
        .command(monoform())
        .args(["apply", "-auto-approve", "-input=false", "-no-color"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let begun = w.dir().join("begun");
    while !Path::new(&begun).exists() {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    child
}

fn apart() {
    let lab = postgres::lab();
    let apply = ["apply", "-auto-approve", "-input=false"];
    let first = directory(&lab, SLOW, "one");
    let mut applying = begun(&first);
    // Another schema, and another workspace of the same schema, are not locked.
    run(&directory(&lab, QUICK, "two"), Tool::Monoform, &apply).ok();
    let other = directory(&lab, QUICK, "one");
    run(&other, Tool::Monoform, &["workspace", "new", "other"]).ok();
    run(&other, Tool::Monoform, &apply).ok();
    // The same state is locked for both programs.
    let same = directory(&lab, QUICK, "one");
    for tool in [Tool::Monoform, Tool::Terraform] {
        if tool != Tool::Monoform && support::which(tool.name()).is_none() {
            continue;
        }
        run(&same, tool, &apply).fails_with(&["Workspace is already locked: default"]);
    }
    first.write("go", "");
    assert!(applying.wait().expect("its end").success());
    let state = run(&same, Tool::Monoform, &["state", "pull"]).ok().json();
    assert_eq!(state["resources"][0]["name"], "a", "{state:#}");
    run(&same, Tool::Monoform, &apply).ok();
    if support::which(Tool::Terraform.name()).is_some() {
        run(&same, Tool::Terraform, &["plan", "-input=false"]).ok();
    }
}

fn no_row() {
    let lab = postgres::lab();
    let w = directory(&lab, QUICK, "one");
    run(&w, Tool::Monoform, &["plan", "-input=false"]).ok();
    assert!(
        postgres::statement(
            &lab,
            "DO $$ BEGIN IF EXISTS (SELECT 1 FROM one.states) THEN RAISE 'a row'; END IF; END $$"
        ),
        "nothing is left of the lock"
    );
    // A killed program leaves a row that both programs read as an empty state.
    let left = "INSERT INTO one.states (name, data) VALUES ('default', '{\"version\":4,\"terraform_version\":\"1.0.0\",\"serial\":0,\
                \"lineage\":\"\",\"outputs\":{},\"resources\":[]}')";
    assert!(postgres::statement(&lab, left));
    assert_eq!(run(&w, Tool::Monoform, &["state", "pull"]).ok().stdout, "");
    if support::which(Tool::Terraform.name()).is_some() {
        run(&w, Tool::Terraform, &["plan", "-input=false"]).ok();
    }
    run(&w, Tool::Monoform, &["apply", "-auto-approve", "-input=false"]).ok();
}
