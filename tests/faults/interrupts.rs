//! Interrupts: a graceful stop, an immediate one, and an end without warning.

use std::process::Command;
use std::time::Instant;

use crate::{WAITING, no_orphans, start, until};
use nix::sys::signal::Signal;
use support::Workspace;
use support::running::Running;

fn inputs(w: &Workspace) -> Vec<(String, serde_json::Value, serde_json::Value)> {
    let state = w.state();
    let resources = state["resources"].as_array().expect("resources");
    let one = |r: &serde_json::Value| {
        let instance = &r["instances"][0];
        (
            r["name"].as_str().expect("a name").to_owned(),
            instance["attributes"]["input"]["value"].clone(),
            instance["status"].clone(),
        )
    };
    resources.iter().map(one).collect()
}

#[test]
fn an_interrupted_apply_stops_and_saves() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        // An empty value means that the variable is not set.
        let automation = if signal == Signal::SIGHUP { "1" } else { "" };
        let w = Workspace::with(&[("main.tf", WAITING)]).env("TF_IN_AUTOMATION", automation);
        let apply = start(&w, &["apply", "-no-color", "-auto-approve"]);
        until("the provisioner runs", || w.exists("started"));
        let began = Instant::now();
        apply.signal(signal);
        let apply = apply.ends();
        assert_eq!(apply.status, 1, "{}", apply.all());
        assert!(began.elapsed().as_secs() < 20, "the command is not waited for");
        for text in [
            "Interrupt received.",
            "Gracefully shutting down...",
            "running providers and commands are asked to stop",
        ] {
            assert!(
                apply.stdout.to_lowercase().contains(&text.to_lowercase()),
                "{}",
                apply.all()
            );
        }
        // The command was interrupted, and no message may claim that it was completed.
        let words = apply
            .stderr
            .replace('│', " ")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(words.contains("some operations may have been cut short"), "{words}");
        assert!(apply.stderr.contains("Error: "), "{}", apply.all());
        no_orphans(&w);

        assert!(
            apply
                .stderr
                .contains("Apply incomplete: of 3 operations, 1 completed, 1 failed, 0 aborted, 1 not begun.")
                && apply.stderr.contains("terraform_data.after (create)"),
            "{}",
            apply.all()
        );
        let hint = "\nTo go on, run again:\n  monoform apply -no-color -auto-approve\n";
        assert_eq!(apply.stderr.ends_with(hint), automation.is_empty(), "{}", apply.all());
        assert_eq!(
            apply.stderr.contains("To go on"),
            automation.is_empty(),
            "{}",
            apply.all()
        );

        // Completed operations are recorded, the one in progress is tainted, and others have not begun.
        let found = inputs(&w);
        assert_eq!(
            found.iter().map(|f| f.0.as_str()).collect::<Vec<_>>(),
            ["before", "waiting"],
            "{}",
            apply.all()
        );
        assert_eq!(
            (&found[0].1, &found[0].2),
            (&"done before".into(), &serde_json::Value::Null)
        );
        assert_eq!(found[1].2, "tainted");

        // The next run completes the work.
        w.write("go", "");
        let next = w.run(&["apply", "-no-color", "-auto-approve"]).ok();
        assert!(
            next.stdout.contains("Resources: 2 added, 0 changed, 1 destroyed."),
            "{}",
            next.all()
        );
    }
}

#[test]
fn a_second_interrupt_in_a_provisioner_leaves_the_object_tainted() {
    // The command ignores signals, and the program does not wait for it after the second one.
    let config = WAITING.replace("touch started;", "trap '' INT TERM HUP; touch started;");
    let w = Workspace::with(&[("main.tf", &config)]);
    let mut run = start(&w, &["apply", "-no-color", "-auto-approve"]);
    until("the provisioner runs", || w.exists("started"));
    crate::interrupt(&mut run);
    run.signal(Signal::SIGINT);
    let run = run.ends();
    w.write("go", "");
    assert_eq!(run.status, 1, "{}", run.all());
    assert_eq!(inputs(&w)[1].2, "tainted", "{}", run.all());
    assert!(
        run.stderr
            .contains("  - terraform_data.waiting (create): in the state as tainted, so the next apply replaces it\n"),
        "{}",
        run.all()
    );
    no_orphans(&w);
    w.run(&["apply", "-no-color", "-auto-approve"])
        .ok()
        .shows(&["Resources: 2 added, 0 changed, 1 destroyed."]);
}

#[test]
fn a_second_interrupt_ends_at_once() {
    // The command cannot be stopped: it leaves its process group and ignores signals, and its output stays open.
    let w = Workspace::new();
    let fifo = w.dir().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    w.write("main.tf", "data \"local_file\" \"a\" {\n  filename = \"fifo\"\n}\n");
    let mut plan = start(&w, &["plan", "-no-color", "-out=the.plan"]);
    let writer = crate::open_when_read(&fifo);
    crate::interrupt(&mut plan);
    plan.signal(Signal::SIGINT);
    let plan = plan.ends();
    assert_eq!(plan.status, 1, "{}", plan.all());
    assert!(!w.exists("the.plan"));
    drop(writer);
    no_orphans(&w);
}

#[test]
fn a_second_interrupt_of_an_apply_cancels_saves_and_unlocks() {
    for command in [&["apply", "-no-color", "-auto-approve"][..], &["refresh", "-no-color"]] {
        let w = Workspace::new();
        let fifo = w.dir().join("fifo");
        assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
        w.write(
            "main.tf",
            r#"
resource "terraform_data" "before" {
  input = "done before"
}

resource "terraform_data" "after" {
  input = data.local_file.a.content
}
"#,
        );
        w.write("file", "");
        let data = |filename: &str| {
            let text =
                "data \"local_file\" \"a\" {\n  filename = \"FILE\"\n  depends_on = [terraform_data.before]\n}\n";
            w.write("data.tf", &text.replace("FILE", filename));
        };
        let refresh = command[0] == "refresh";
        if refresh {
            data("file");
            w.run(&["apply", "-no-color", "-auto-approve"]).ok();
        }
        data("fifo");
        let state = refresh.then(|| w.read("terraform.tfstate"));
        let mut run = start(&w, command);
        until("the plugin waits for the file", || {
            crate::processes(&w).iter().any(|p| p.contains("provider local"))
                && (refresh
                    || std::fs::read_to_string(w.dir().join("terraform.tfstate"))
                        .is_ok_and(|s| s.contains("done before")))
        });
        let writer = crate::open_when_read(&fifo);
        crate::interrupt(&mut run);
        run.signal(Signal::SIGINT);
        let run = run.ends();
        assert_eq!(run.status, 1, "{}", run.all());
        assert!(run.stderr.contains("Two interrupts received."), "{}", run.all());
        assert!(run.stderr.contains("Operation canceled"), "{}", run.all());
        assert!(!w.exists(".terraform.tfstate.lock.info"), "the lock is released");
        match state {
            Some(state) => assert_eq!(w.read("terraform.tfstate"), state),
            None => {
                assert_eq!(inputs(&w)[0].1, "done before");
                let text = "Aborted; they may have taken effect, in whole or in part:\n  - data.local_file.a (read)";
                assert!(run.stderr.contains(text), "{}", run.all());
            }
        }
        drop(writer);
        no_orphans(&w);
        let left: Vec<_> = std::fs::read_dir(w.dir().parent().expect("a parent"))
            .expect("a directory")
            .map(|e| e.expect("an entry").file_name())
            .collect();
        assert_eq!(left.len(), 2, "{left:?}");
    }
}

#[test]
fn a_hangup_is_ignored_where_it_was_ignored_before() {
    let w = Workspace::with(&[("main.tf", WAITING)]);
    let mut command = w.command("sh");
    command.args(["-c", "trap '' HUP; exec \"$0\" \"$@\"", support::monoform()]);
    command.args(["apply", "-no-color", "-auto-approve"]);
    let apply = Running::start(&mut command);
    until("the provisioner runs", || w.exists("started"));
    apply.signal(Signal::SIGHUP);
    w.write("go", "");
    apply.ends().ok();
}

#[test]
fn an_interrupted_plan() {
    let w = Workspace::new();
    let fifo = w.dir().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    w.write(
        "main.tf",
        r#"
data "local_file" "a" {
  filename = "fifo"
}

data "local_file" "b" {
  filename = trimspace(data.local_file.a.content)
}

output "o" {
  value = data.local_file.b.content
}
"#,
    );
    let mut plan = start(&w, &["plan", "-no-color", "-out=the.plan"]);
    let mut writer = crate::open_when_read(&fifo);
    crate::interrupt(&mut plan);
    // Lets the read in progress finish.
    std::io::Write::write_all(&mut writer, b"main.tf\n").expect("the pipe takes it");
    drop(writer);
    let plan = plan.ends();
    assert_eq!(plan.status, 1, "{}", plan.all());
    assert!(plan.stdout.contains("Interrupt received."), "{}", plan.all());
    assert!(!w.exists("the.plan"), "an interrupted plan is none");
    assert!(!w.exists("terraform.tfstate"));
    no_orphans(&w);
}

#[test]
fn killed_without_warning() {
    let w = Workspace::with(&[("main.tf", WAITING)]);
    let apply = start(&w, &["apply", "-no-color", "-auto-approve"]);
    until("the provisioner runs", || w.exists("started"));
    apply.signal(Signal::SIGKILL);
    assert_eq!(apply.ends().status, -1);
    // Built-in plugins notice the end of the program. A command that a plugin runs is an external program, and ends by
    // itself as soon as the file `go` exists.
    until("our plugins end", || {
        !crate::processes(&w).iter().any(|p| p.contains("internal-plugin"))
    });
    w.write("go", "");
    no_orphans(&w);

    // The lock is released when its holder ends, so the state can be used.
    let next = w.run(&["apply", "-no-color", "-auto-approve"]).ok();
    assert!(next.stdout.contains("Apply complete!"), "{}", next.all());
    w.run(&["plan", "-no-color", "-detailed-exitcode"]).ok();
    w.run(&["destroy", "-no-color", "-auto-approve"]).ok();
}

#[test]
fn successful_commands_leave_no_files() {
    let w = Workspace::with(&[("main.tf", WAITING), ("go", "")]);
    for command in [
        &["plan", "-no-color"][..],
        &["apply", "-no-color", "-auto-approve"],
        &["validate", "-no-color"],
    ] {
        w.run(command).ok();
        no_orphans(&w);
    }
    // No sockets or certificates are left over either.
    let root = w.dir().parent().expect("a parent").to_owned();
    let mut left: Vec<_> = std::fs::read_dir(&root)
        .expect("a directory")
        .map(|e| e.expect("an entry").file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["home", "work"], "in the directory for temporary files");
}
