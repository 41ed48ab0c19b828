//! Runs on one state in PostgreSQL, in rows of objects, that lock one object or nothing.

use std::io::Write as _;
use std::process::{Command, Stdio};

use support::{Ran, crash, ran};

use crate::lab::{Tool, run};
use crate::postgres::{lab_with_objects, query, statement};
use crate::postgres_runs::{Meeting, SLOW, end, names, pulled, start};
use crate::scenarios::wait_for;

pub const TESTS: &[(&str, fn())] = &[
    ("an_import_locks_its_object_only", import),
    ("an_import_after_another_one_of_the_object_is_refused", imported_twice),
    ("applies_without_locks_wait_for_nobody_and_write_each_result", unlocked),
    (
        "an_apply_without_locks_does_not_overwrite_what_others_have_changed",
        overwritten,
    ),
    ("a_killed_apply_without_locks_names_what_it_was_doing", killed),
    ("a_copy_of_a_state_is_continued_by_later_changes", copy),
];

/// Runs a command with this text as its standard input.
pub fn answered(mut command: Command, input: &str) -> Ran {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdin = child.stdin.take().expect("its input");
    stdin.write_all(input.as_bytes()).expect("read");
    drop(stdin);
    ran(child.wait_with_output().expect("its output"))
}

const FOUND: &str = r#"
resource "terraform_data" "found" {
}
output "found" {
  value = terraform_data.found.id
}
"#;

fn import() {
    let meeting = Meeting::new();
    let configuration = format!("{SLOW}{FOUND}");
    let (one, two) = (meeting.directory(&configuration), meeting.directory(&configuration));
    let first = start(&one, &["-target=terraform_data.one"]);
    wait_for("the first apply", || meeting.is_there("one"));
    let importing = |address: &str| run(&two, Tool::Monoform, &["import", "-input=false", address, "elsewhere"]);
    importing("terraform_data.found").ok().shows(&["Import successful!"]);
    importing("terraform_data.one").fails_with(&["Resource already managed by Terraform"]);
    let importing = run(
        &two,
        Tool::Monoform,
        &[
            "import",
            "-input=false",
            "-lock=false",
            "terraform_data.two",
            "elsewhere",
        ],
    );
    importing.ok().shows(&["Import successful!"]);
    assert!(!two.exists(".terraform/journals"), "the results are in the database");
    let runs = "SELECT string_agg(DISTINCT operation || ' ' || address, ', ' ORDER BY operation || ' ' || address) FROM \
                monoform_state.changes WHERE operation = 'import'";
    assert_eq!(
        query(&meeting.lab, runs),
        "import output.found, import output.two, import terraform_data.found, import terraform_data.two"
    );
    meeting.place.write("go-one", "");
    end(first).ok();
    let state = pulled(&one);
    assert_eq!(names(&state), ["found", "one", "two"]);
    assert_eq!(state["outputs"]["found"]["value"], "elsewhere");
    assert_eq!(meeting.count("locks") + meeting.count("operations"), 0);
}

fn imported_twice() {
    let meeting = Meeting::new();
    let (one, two) = (meeting.directory(FOUND), meeting.directory(FOUND));
    let import = ["import", "-input=false", "terraform_data.found"];
    run(&one, Tool::Monoform, &[&import[..], &["first"]].concat()).ok();
    run(&two, Tool::Monoform, &[&import[..], &["second"]].concat())
        .fails_with(&["Resource already managed by Terraform", "state rm"]);
    assert_eq!(pulled(&two)["outputs"]["found"]["value"], "first");
}

fn unlocked() {
    let meeting = Meeting::new();
    let (one, two) = (meeting.directory(SLOW), meeting.directory(SLOW));
    let first = start(&one, &["-target=terraform_data.one", "-lock=false"]);
    wait_for("the first apply", || meeting.is_there("one"));
    // The object is in the state before its provisioner has ended.
    assert_eq!(names(&pulled(&two)), ["one"]);
    meeting.place.write("go-two", "");
    end(start(&two, &["-target=terraform_data.two"])).ok();
    run(
        &two,
        Tool::Monoform,
        &["state", "mv", "terraform_data.two", "terraform_data.other"],
    )
    .ok();
    meeting.place.write("go-one", "");
    end(first).ok();
    assert_eq!(names(&pulled(&one)), ["one", "other"]);
    assert!(!one.exists(".terraform/journals"), "the results are in the database");
    assert_eq!(meeting.count("runs WHERE result = 'finished'"), 3);
    assert_eq!(meeting.count("locks") + meeting.count("operations"), 0);
}

fn overwritten() {
    let meeting = Meeting::new();
    let configuration = format!("{SLOW}resource \"terraform_data\" \"first\" {{\n}}\n");
    let (one, two) = (meeting.directory(&configuration), meeting.directory(&configuration));
    let targets = ["-target=terraform_data.one", "-target=terraform_data.first"];
    let first = start(&one, &[&targets[..], &["-lock=false"]].concat());
    wait_for("the first apply", || meeting.is_there("one"));
    run(&two, Tool::Monoform, &["state", "rm", "terraform_data.one"]).ok();
    meeting.place.write("go-one", "");
    end(first).fails_with(&["without a lock: terraform_data.one", "errored.tfstate"]);
    // The other object is in the state, and the refused one is in the file.
    assert_eq!(names(&pulled(&two)), ["first"]);
    let rescued: serde_json::Value = serde_json::from_str(&one.read("errored.tfstate")).expect("a state");
    assert_eq!(names(&rescued), ["first", "one"]);
}

fn killed() {
    let meeting = Meeting::new();
    let (one, two) = (meeting.directory(SLOW), meeting.directory(SLOW));
    let mut first = start(&one, &["-target=terraform_data.one", "-lock=false"]);
    wait_for("the apply", || meeting.is_there("one"));
    crash::kill(&[first.id()]);
    first.wait().expect("its end");
    meeting.place.write("go-one", "");
    wait_for("the end of the killed run's session", || {
        query(&meeting.lab, "SELECT count(*) FROM monoform_state.current_locks") == "0"
    });
    run(&two, Tool::Monoform, &["plan", "-input=false"]).ok().shows(&[
        "Operations of an earlier run whose result is unknown",
        "provision terraform_data.one with local-exec, since ",
    ]);
    assert_eq!(pulled(&two)["resources"][0]["instances"][0]["status"], "tainted");
}

fn copy() {
    let lab = lab_with_objects();
    let (one, two) = (lab.directory(Tool::Monoform), lab.without());
    let backend = lab.block("local_copy = true");
    let main = "variable \"word\" {\n  default = \"x\"\n}\nresource \"terraform_data\" \"many\" {\n  count = 50\n  input = count.index \
                == 7 ? var.word : \"same\"\n}\noutput \"word\" {\n  value = var.word\n}\n";
    for w in [&one, &two] {
        w.write("main.tf", main);
    }
    two.write("backend.tf", &backend);
    run(&two, Tool::Monoform, &["init", "-input=false"]).ok();
    let apply = ["apply", "-auto-approve", "-input=false"];
    run(&one, Tool::Monoform, &apply).ok();
    let same = || assert_eq!(pulled(&one), pulled(&two));
    same();
    let kept = || {
        let found = std::fs::read_dir(two.dir().join(".terraform/state-copies")).expect("copies");
        let found: Vec<Vec<u8>> = found
            .map(|entry| std::fs::read(entry.expect("a file").path()).expect("a copy"))
            .collect();
        found
    };
    let before = kept();
    assert_eq!(before.len(), 1);
    // Only the history is read: a changed row that is not in it is not noticed.
    let hide = "UPDATE monoform_state.objects SET attributes = jsonb_set(attributes, '{input,value}', '\"hidden\"') WHERE address = \
                'terraform_data.many[3]'";
    run(&one, Tool::Monoform, &[&apply[..], &["-var=word=y"]].concat()).ok();
    run(&one, Tool::Monoform, &["state", "rm", "terraform_data.many[9]"]).ok();
    same();
    assert!(statement(&lab, hide));
    assert!(!pulled(&two).to_string().contains("hidden"), "the row was not read");
    assert_eq!(kept(), before);
    // A run with a copy writes what the others read.
    run(&two, Tool::Monoform, &[&apply[..], &["-var=word=z"]].concat()).ok();
    assert_eq!(pulled(&one)["outputs"]["word"]["value"], "z");
    // Without a complete history, all rows are read again.
    assert!(statement(
        &lab,
        "DELETE FROM monoform_state.history WHERE id = (SELECT max(id) FROM monoform_state.history WHERE kind = 'state')"
    ));
    same();
    // A damaged copy is not used.
    let entry = std::fs::read_dir(two.dir().join(".terraform/state-copies"))
        .expect("copies")
        .next()
        .expect("a copy");
    std::fs::write(entry.expect("a file").path(), "{}\n{}").expect("written");
    same();
    two.write(
        "backend.tf",
        &backend.replace("layout = \"objects\"", "layout = \"states\""),
    );
    run(&two, Tool::Monoform, &["init", "-reconfigure", "-input=false"]).fails_with(&["set layout"]);
}
