//! Wrong arguments, and the exit statuses that programs rely on.

use crate::{no_orphans, refused};
use support::Workspace;

#[test]
fn wrong_arguments() {
    let w = Workspace::with(&[("main.tf", "resource \"terraform_data\" \"a\" {\n  input = 1\n}\n")]);
    for (args, texts) in [
        (
            &["aply"][..],
            &["has no command named \"aply\". Did you mean \"apply\"?", "-help"][..],
        ),
        (&["sate", "list"], &["\"sate\"", "Did you mean \"state\"?"]),
        (
            &["plan", "-nope"],
            &["flag provided but not defined: -nope", "monoform plan -help"],
        ),
        (&["plan", "-refresh=maybe"], &["invalid boolean value \"maybe\""]),
        (&["plan", "-parallelism=many"], &["many", "parallelism"]),
        (
            &["plan", "-parallelism=-1"],
            &["Invalid parallelism value", "has the value -1", "0 means the default"],
        ),
        (&["apply", "-parallelism=-1"], &["Invalid parallelism value"]),
        (
            &["import", "-parallelism=-1", "terraform_data.a", "x"],
            &["Invalid parallelism value"],
        ),
        (&["plan", "-out"], &["-out"]),
        (&["plan", "extra"], &["Too many command line arguments", "-chdir"]),
        (
            &["plan", "-destroy", "-refresh-only"],
            &["Use either -destroy or -refresh-only"],
        ),
        (&["plan", "-target=1"], &["Invalid target \"1\""]),
        (
            &["plan", "-replace=data.x.y"],
            &["Invalid force-replace address", "takes addresses of managed resources"],
        ),
        (&["plan", "-lock-timeout=soon"], &["soon"]),
        (&["destroy", "some.plan"], &["destroy"]),
        (&["apply", "one.plan", "two.plan"], &["Too many command line arguments"]),
        (
            &["-chdir", "plan"],
            &["Invalid -chdir option: must include an equals sign"],
        ),
        (
            &["-chdir=nowhere", "plan"],
            &["Error handling -chdir option", "nowhere"],
        ),
        (&["show", "nowhere"], &["nowhere"]),
        (&["output", "x"], &["Output \"x\" not found"]),
        (&["state", "list"], &["No state file was found!"]),
    ] {
        refused(&w, args, texts);
    }
}

#[test]
fn any_number_of_operations_at_a_time() {
    let w = Workspace::with(&[("main.tf", "resource \"terraform_data\" \"a\" {\n  count = 3\n}\n")]);
    let with = |command: &str, count: &str| {
        let parallelism = format!("-parallelism={count}");
        let args = [command, "-no-color", &parallelism, "-auto-approve"];
        let args = if command == "plan" { &args[..3] } else { &args[..] };
        w.run(args).ok()
    };
    // Zero selects the default. A huge number has the same effect as no limit.
    for count in ["0", "9223372036854775807"] {
        with("plan", count).shows(&["3 to add"]);
        with("apply", count).shows(&["3 added"]);
        with("destroy", count).shows(&["3 destroyed"]);
    }
}

#[test]
fn exit_statuses() {
    let w = Workspace::new();
    let status = |args: &[&str]| w.run(args).status;
    let help = w.run(&[]);
    assert_eq!(help.status, 127);
    assert!(
        help.stdout.contains("Main commands:") && help.stderr.is_empty(),
        "{}",
        help.all()
    );
    for args in [
        &["-help"][..],
        &["plan", "-help"],
        &["-help", "plan"],
        &["-version"],
        &["plan", "-version"],
        &["version", "-json"],
    ] {
        let ran = w.run(args).ok();
        assert!(
            !ran.stdout.is_empty() && ran.stderr.is_empty(),
            "{args:?} {}",
            ran.all()
        );
    }
    let state = w.run(&["state"]);
    assert_eq!(state.status, 1);
    assert!(state.stdout.contains("state <subcommand>"), "{}", state.all());
    assert_eq!(status(&["state", "nope"]), 1);

    // The directory is empty.
    assert_eq!(status(&["init"]), 0);
    assert_eq!(status(&["validate"]), 0);
    refused(&w, &["plan", "-no-color"], &["No configuration files"]);
    refused(
        &w,
        &["apply", "-no-color", "-auto-approve"],
        &["No configuration files"],
    );
    let outputs = w.run(&["output", "-no-color"]).ok();
    assert!(
        outputs.stdout.contains("Warning: No outputs found"),
        "{}",
        outputs.all()
    );
    assert_eq!(status(&["output", "-json"]), 0);

    w.write("main.tf", "output \"o\" {\n  value = 1\n}\n");
    assert_eq!(status(&["plan", "-detailed-exitcode"]), 2, "outputs count");
    assert_eq!(status(&["plan"]), 0);
    assert_eq!(status(&["apply", "-auto-approve"]), 0);
    assert_eq!(status(&["plan", "-detailed-exitcode"]), 0);
    assert_eq!(status(&["destroy", "-auto-approve"]), 0);
    w.write("main.tf", "output \"o\" {\n  value = 1 +\n}\n");
    assert_eq!(status(&["plan", "-detailed-exitcode"]), 1);
    assert!(
        !w.exists(".terraform") && !w.exists(".terraform.lock.hcl"),
        "nothing was installed"
    );
    no_orphans(&w);
}

#[test]
fn nobody_there_to_approve() {
    let w = Workspace::with(&[("main.tf", "resource \"terraform_data\" \"a\" {\n  input = 1\n}\n")]);
    for args in [&["apply", "-no-color", "-input=false"][..], &["apply", "-no-color"]] {
        refused(
            &w,
            args,
            &["Error asking for approval: EOF", "input has ended", "-auto-approve"],
        );
    }
    assert!(!w.exists("terraform.tfstate"));
    w.run(&["apply", "-no-color", "-auto-approve"]).ok();
    refused(&w, &["destroy", "-no-color", "-input=false"], &["-auto-approve"]);
    // There is nothing to approve, so no question is asked.
    w.run(&["apply", "-no-color", "-input=false"]).ok();
    no_orphans(&w);
}
