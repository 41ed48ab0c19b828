//! Actions that run while the user interrupts, or while all processes are killed.

use nix::sys::signal::Signal;
use support::Workspace;

use crate::{no_orphans, start, until};

/// Configuration of an action that runs until a file ends it, another one after it, and a resource that waits for both.
const SLOW: &str = r#"
resource "terraform_data" "a" {
  lifecycle {
    action_trigger {
      events  = [after_create]
      actions = [action.local_command.slow, action.local_command.next]
    }
  }
}

resource "terraform_data" "b" {
  depends_on = [terraform_data.a]
}

action "local_command" "slow" {
  config {
    command   = "sh"
    arguments = ["-c", "touch started; while [ ! -e go ]; do sleep 0.05; done"]
  }
}

action "local_command" "next" {
  config {
    command   = "touch"
    arguments = ["next"]
  }
}
"#;

#[test]
fn a_killed_invocation_is_named_by_the_next_command() {
    for arguments in [
        &["apply", "-auto-approve"][..],
        &["apply", "-auto-approve", "-invoke=action.local_command.slow"],
    ] {
        let w = Workspace::with(&[("main.tf", SLOW)]);
        let run = start(&w, &[arguments, &["-no-color"]].concat());
        until("the action runs", || w.exists("started"));
        run.signal(Signal::SIGKILL);
        assert_eq!(run.ends().status, -1);
        w.write("go", "");
        no_orphans(&w);
        let next = w.run(&["plan", "-no-color"]).ok();
        let text = next.all().split_whitespace().collect::<Vec<_>>().join(" ");
        let named = if arguments.len() == 2 {
            "invoke terraform_data.a with action.local_command.slow"
        } else {
            "invoke action.local_command.slow with provider"
        };
        assert!(text.contains(named), "{}", next.all());
    }
}

#[test]
fn a_killed_invocation_taints_where_its_failure_would() {
    for (on_failure, status) in [
        ("taint", serde_json::Value::from("tainted")),
        ("halt", serde_json::Value::Null),
    ] {
        let config = SLOW.replacen("events  =", &format!("on_failure = {on_failure}\n      events ="), 1);
        assert_ne!(config, SLOW);
        let w = Workspace::with(&[("main.tf", &config)]);
        let run = start(&w, &["apply", "-auto-approve", "-no-color"]);
        until("the action runs", || w.exists("started"));
        run.signal(Signal::SIGKILL);
        assert_eq!(run.ends().status, -1);
        w.write("go", "");
        no_orphans(&w);
        // The next command that locks the state takes over the journal.
        let next = w.run(&["plan", "-no-color"]).ok();
        let state = w.state();
        assert_eq!(
            state["resources"][0]["instances"][0]["status"],
            status,
            "{}",
            next.all()
        );
        let words = next
            .all()
            .replace('│', " ")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert_eq!(
            words.contains("The object is tainted"),
            on_failure == "taint",
            "{words}"
        );
        w.run(&["apply", "-auto-approve", "-no-color"]).ok();
        assert_eq!(
            w.state()["resources"][0]["instances"][0]["status"],
            serde_json::Value::Null
        );
    }
}

#[test]
fn an_interrupt_stops_an_invocation_and_what_comes_after_it() {
    let w = Workspace::with(&[("main.tf", SLOW)]);
    let run = start(&w, &["apply", "-auto-approve", "-no-color"]);
    until("the action runs", || w.exists("started"));
    run.signal(Signal::SIGINT);
    let ran = run.ends();
    assert_eq!(ran.status, 1, "{}", ran.all());
    assert!(ran.all().contains("stopped on request"), "{}", ran.all());
    assert!(!w.exists("next"));
    no_orphans(&w);
    // The new object is in the state, and not tainted.
    let state = w.state();
    let instances = &state["resources"][0]["instances"];
    assert_eq!(instances.as_array().map(Vec::len), Some(1), "{state:#}");
    assert_eq!(instances[0]["status"], serde_json::Value::Null);
    assert_eq!(state["resources"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_saved_plan_invokes_what_it_shows() {
    let w = Workspace::with(&[("main.tf", SLOW)]);
    w.write("go", "");
    w.run(&["plan", "-no-color", "-out=p", "-invoke=action.local_command.next"])
        .ok();
    w.run(&["show", "-no-color", "p"])
        .ok()
        .shows(&["# action.local_command.next will be invoked", "Actions: 1 to invoke."]);
    w.run(&["apply", "-no-color", "p"]).ok().shows(&[
        "Action complete: action.local_command.next (triggered by CLI)",
        "Actions: 1 invoked.",
    ]);
    assert!(w.exists("next"));
}
