//! `init` for the backend `local`: its record, its questions, and migrations. Each step was compared with Terraform's.

use std::io::Write as _;
use std::process::Stdio;

use support::{Ran, Workspace, monoform};

pub const TESTS: &[(&str, fn())] = &[
    ("backend::the_record_is_terraforms", the_record_is_terraforms),
    (
        "backend::a_changed_path_must_go_through_init",
        a_changed_path_must_go_through_init,
    ),
    ("backend::states_are_brought_along", states_are_brought_along),
    (
        "backend::a_state_that_is_there_is_replaced_only_when_agreed",
        a_state_that_is_there_is_replaced_only_when_agreed,
    ),
    (
        "backend::all_workspaces_are_brought_along",
        all_workspaces_are_brought_along,
    ),
    (
        "backend::states_are_brought_along_if_only_some_of_their_files_change",
        states_are_brought_along_if_only_some_of_their_files_change,
    ),
    (
        "backend::settings_come_from_the_command_line",
        settings_come_from_the_command_line,
    ),
    (
        "backend::init_without_backend_leaves_it_alone",
        init_without_backend_leaves_it_alone,
    ),
    (
        "backend::all_missing_settings_are_named_at_once",
        all_missing_settings_are_named_at_once,
    ),
    (
        "backend::options_that_contradict_are_refused",
        options_that_contradict_are_refused,
    ),
];

const RECORD: &str = ".terraform/terraform.tfstate";

fn all_missing_settings_are_named_at_once() {
    let w = Workspace::with(&[("main.tf", "terraform {\n  backend \"s3\" {}\n}\n")]);
    // The region is required only if it is not in the environment.
    let failed = w.run(&["init", "-input=false", "-backend-config=key=k"]);
    let text = support::words(&failed.all());
    assert_eq!(failed.status, 1, "{text}");
    assert!(
        text.contains("needs the argument \"bucket\"") && text.contains("Missing region value"),
        "{text}"
    );
    assert_eq!(text.matches("Error: ").count(), 2, "{text}");
    let w = w.env("AWS_REGION", "eu-west-1");
    let failed = w.run(&["init", "-input=false", "-backend-config=key=k"]);
    assert_eq!(failed.all().matches("Error: ").count(), 1, "{}", failed.all());
}

fn configure(w: &Workspace, settings: &str) {
    let block = match settings {
        "" => String::new(),
        "{}" => "terraform {\n  backend \"local\" {}\n}\n".to_owned(),
        settings => format!("terraform {{\n  backend \"local\" {{\n    {settings}\n  }}\n}}\n"),
    };
    w.write("main.tf", &format!("{block}resource \"terraform_data\" \"a\" {{}}\n"));
}

fn answer(w: &Workspace, args: &[&str], input: &str) -> Ran {
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

fn applied(settings: &str) -> Workspace {
    let w = Workspace::new();
    configure(&w, settings);
    w.run(&["init"]).ok();
    w.run(&["apply", "-auto-approve"]).ok();
    w
}

fn record(w: &Workspace) -> serde_json::Value {
    serde_json::from_str(&w.read(RECORD)).expect("JSON")
}

fn the_record_is_terraforms() {
    let w = Workspace::new();
    configure(&w, "{}");
    let ran = w.run(&["init", "-no-color"]).ok();
    assert!(
        ran.stdout.contains("Successfully configured the backend \"local\"!"),
        "{}",
        ran.all()
    );
    // Equal byte for byte to the record that Terraform 1.16 writes.
    assert_eq!(
        w.read(RECORD),
        "{\n  \"version\": 3,\n  \"terraform_version\": \"1.16.0\",\n  \"backend\": {\n    \"type\": \"local\",\n    \"config\": {\n      \
         \"path\": null,\n      \"workspace_dir\": null\n    },\n    \"hash\": 666019178\n  }\n}"
    );
    let again = w.run(&["init", "-no-color"]).ok();
    assert!(!again.stdout.contains("Successfully configured"), "{}", again.all());
    // Without a backend block there is nothing to record.
    let w = Workspace::new();
    configure(&w, "");
    w.run(&["init"]).ok();
    assert!(!w.exists(".terraform"));
}

fn a_changed_path_must_go_through_init() {
    let w = applied("path = \"one.tfstate\"");
    configure(&w, "path = \"two.tfstate\"");
    let before = w.read(RECORD);
    for args in [
        &["plan"][..],
        &["apply", "-auto-approve"],
        &["output"],
        &["state", "list"],
        &["workspace", "list"],
        &["show"],
        &["console"],
    ] {
        w.run(args).fails_with(&[
            "Backend initialization required: please run \"monoform init\"",
            "block has changed",
        ]);
    }
    w.run(&["validate"]).ok();
    w.run(&["init"]).fails_with(&[
        "Backend configuration changed",
        "init -migrate-state",
        "init -reconfigure",
    ]);
    assert_eq!(w.read(RECORD), before);
    configure(&w, "");
    w.run(&["plan"]).fails_with(&[
        "Backend initialization required, please",
        "Unsetting the previously set backend \"local\"",
    ]);
    // -reconfigure leaves the state at its old path.
    configure(&w, "path = \"two.tfstate\"");
    w.run(&["init", "-reconfigure"]).ok();
    assert!(w.exists("one.tfstate") && !w.exists("two.tfstate"));
    assert_eq!(record(&w)["backend"]["config"]["path"], "two.tfstate");
    w.run(&["plan"]).ok();
}

fn states_are_brought_along() {
    let w = applied("");
    let state = w.read("terraform.tfstate");
    configure(&w, "path = \"one.tfstate\"");
    for (args, error) in [
        (&["init", "-input=false"][..], "Can't ask approval for state migration"),
        (&["init"], "Error asking for confirmation: EOF"),
    ] {
        w.run(args).fails_with(&[error]);
        assert!(!w.exists(RECORD) && !w.exists("one.tfstate"));
        assert_eq!(w.read("terraform.tfstate"), state);
    }
    let ran = answer(&w, &["init", "-no-color"], "yes\n").ok();
    assert!(
        ran.stdout
            .contains("Do you want to copy existing state to the new backend?"),
        "{}",
        ran.all()
    );
    assert_eq!(w.read("one.tfstate"), state);
    // The old state file is left empty, and has a backup.
    assert_eq!(
        (w.read("terraform.tfstate"), w.read("terraform.tfstate.backup")),
        (String::new(), state.clone())
    );
    configure(&w, "path = \"two.tfstate\"");
    answer(&w, &["init", "-migrate-state"], "yes\n").ok();
    assert_eq!(
        (w.read("one.tfstate"), w.read("two.tfstate")),
        (state.clone(), state.clone())
    );
    configure(&w, "path = \"three.tfstate\"");
    w.run(&["init", "-force-copy"]).ok();
    assert_eq!(w.read("three.tfstate"), state);
    configure(&w, "");
    let ran = answer(&w, &["init", "-no-color", "-migrate-state"], "yes\n").ok();
    assert!(
        ran.stdout.contains("Successfully unset the backend \"local\"."),
        "{}",
        ran.all()
    );
    assert_eq!(w.read("terraform.tfstate"), state);
    assert!(record(&w)["backend"].is_null());
    let plan = w.run(&["plan", "-no-color"]).ok();
    assert!(plan.stdout.contains("No changes."), "{}", plan.all());
    // After the answer "no", nothing has changed.
    let w = applied("");
    configure(&w, "path = \"one.tfstate\"");
    answer(&w, &["init"], "no\n").ok();
    assert_ne!(w.read("terraform.tfstate"), "");
    assert!(!w.exists("one.tfstate"));
}

fn a_state_that_is_there_is_replaced_only_when_agreed() {
    let w = applied("path = \"one.tfstate\"");
    let one = w.read("one.tfstate");
    let two = one.replace("\"name\": \"a\"", "\"name\": \"b\"");
    w.write("two.tfstate", &two);
    configure(&w, "path = \"two.tfstate\"");
    let ran = answer(&w, &["init", "-no-color", "-migrate-state"], "no\n").ok();
    assert!(ran.stdout.contains("Both backends have a state."), "{}", ran.all());
    assert_eq!(w.read("two.tfstate"), two);
    configure(&w, "path = \"one.tfstate\"");
    w.run(&["init", "-reconfigure"]).ok();
    configure(&w, "path = \"two.tfstate\"");
    answer(&w, &["init", "-migrate-state"], "yes\n").ok();
    assert_eq!((w.read("two.tfstate"), w.read("two.tfstate.backup")), (one, two));
    // The temporary copies that the question shows were removed.
    let root = w.dir().parent().expect("a parent").to_owned();
    let left = std::fs::read_dir(root).expect("a directory").filter_map(Result::ok);
    let left: Vec<_> = left
        .filter(|e| e.file_name().to_string_lossy().contains("states"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

fn all_workspaces_are_brought_along() {
    let w = applied("path = \"one.tfstate\"");
    w.run(&["workspace", "new", "w"]).ok();
    w.run(&["apply", "-auto-approve"]).ok();
    configure(&w, "path = \"two.tfstate\"\n    workspace_dir = \"ws\"");
    let ran = answer(&w, &["init", "-no-color", "-migrate-state"], "no\n");
    assert!(
        ran.status == 1 && ran.stderr.contains("Migration aborted by user."),
        "{}",
        ran.all()
    );
    assert!(!w.exists("ws") && !w.exists("two.tfstate"));
    let ran = answer(&w, &["init", "-no-color", "-migrate-state"], "yes\n").ok();
    assert!(
        ran.stdout
            .contains("Do you want to migrate all workspaces to \"local\"?"),
        "{}",
        ran.all()
    );
    assert!(w.exists("two.tfstate") && w.exists("ws/w/terraform.tfstate"));
    assert_eq!(w.run(&["workspace", "list"]).ok().stdout, "  default\n* w\n\n");
}

fn states_are_brought_along_if_only_some_of_their_files_change() {
    const NAMED: &str = "terraform.tfstate.d/w/terraform.tfstate";
    let with_two = || {
        let w = applied("");
        w.run(&["workspace", "new", "w"]).ok();
        w.run(&["apply", "-auto-approve"]).ok();
        w
    };
    // The state of the default workspace stays in its file.
    let w = with_two();
    let (default, named) = (w.read("terraform.tfstate"), w.read(NAMED));
    configure(&w, "workspace_dir = \"ws\"");
    w.run(&["init", "-force-copy"]).ok();
    assert_eq!(w.read("terraform.tfstate"), default);
    assert_eq!(
        (w.read("ws/w/terraform.tfstate"), w.read(NAMED)),
        (named.clone(), named)
    );
    // The other workspaces stay unchanged.
    let w = with_two();
    let (default, named) = (w.read("terraform.tfstate"), w.read(NAMED));
    configure(&w, "path = \"one.tfstate\"");
    w.run(&["init", "-force-copy"]).ok();
    assert_eq!(
        (w.read("one.tfstate"), w.read("terraform.tfstate")),
        (default.clone(), default)
    );
    assert_eq!(w.read(NAMED), named, "it is the only copy");
}

fn settings_come_from_the_command_line() {
    let w = Workspace::new();
    configure(&w, "{}");
    w.write("b.hcl", "path = \"x.tfstate\"\n");
    w.run(&["init", "-backend-config=path=y.tfstate"]).ok();
    assert_eq!(record(&w)["backend"]["config"]["path"], "y.tfstate");
    assert_eq!(record(&w)["backend"]["hash"], 666_019_178);
    w.run(&["init"]).ok();
    w.run(&["apply", "-auto-approve"]).ok();
    assert!(
        w.exists("y.tfstate") && !w.exists("terraform.tfstate"),
        "the record decides"
    );
    w.run(&["init", "-backend-config=b.hcl"])
        .fails_with(&["Backend configuration changed"]);
    answer(&w, &["init", "-migrate-state", "-backend-config=b.hcl"], "yes\n").ok();
    assert!(w.exists("x.tfstate"));
    for (setting, error) in [
        ("nope=1", "Invalid backend configuration argument"),
        ("none.hcl", "Failed to read file"),
        ("path=", "Invalid local state file path"),
        ("bad.hcl", "Unsupported block type"),
    ] {
        w.write("bad.hcl", "foo {}\n");
        w.run(&["init", "-reconfigure", &format!("-backend-config={setting}")])
            .fails_with(&[error]);
    }
    let w = Workspace::new();
    configure(&w, "");
    let ran = w.run(&["init", "-no-color", "-backend-config=path=z"]).ok();
    assert!(
        ran.stdout.contains("Warning: Missing backend configuration"),
        "{}",
        ran.all()
    );
}

fn init_without_backend_leaves_it_alone() {
    let w = Workspace::new();
    configure(&w, "path = \"one.tfstate\"");
    let ran = w.run(&["init", "-no-color", "-backend=false"]).ok();
    assert!(!ran.stdout.contains("Initializing the backend"), "{}", ran.all());
    assert!(!w.exists(RECORD));
    // With -backend=false, the backend's type is not checked.
    w.write("main.tf", "terraform {\n  backend \"manta\" {}\n}\n");
    w.run(&["init", "-backend=false"]).ok();
    w.run(&["init"]).fails_with(&["Backend not supported", "manta"]);
    std::fs::create_dir_all(w.dir().join(".terraform")).expect("a directory");
    w.write(
        RECORD,
        "{\"version\": 3, \"backend\": {\"type\": \"manta\", \"config\": {}, \"hash\": 1}}",
    );
    configure(&w, "path = \"one.tfstate\"");
    w.run(&["init", "-migrate-state"])
        .fails_with(&["Backend not supported", "manta", "-reconfigure"]);
    w.run(&["init", "-reconfigure"]).ok();
    w.write(RECORD, "{");
    w.run(&["plan"]).fails_with(&["Cannot read the backend record"]);
}

fn options_that_contradict_are_refused() {
    let w = Workspace::new();
    configure(&w, "{}");
    w.run(&["init", "-migrate-state", "-reconfigure"])
        .fails_with(&["Invalid init options", "either -migrate-state or -reconfigure"]);
    let ran = w.run(&["init", "-migrate-state", "-json"]);
    assert!(
        ran.status == 1 && ran.stdout.contains("-migrate-state and -json"),
        "{}",
        ran.all()
    );
}
