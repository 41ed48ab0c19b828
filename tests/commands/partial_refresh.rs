//! Plans that read a part of the objects (`-refresh=changed`, `-refresh=older-than=AGE`), and limits of operations for each
//! provider (`-parallelism`).

use serde_json::{Value as Json, json};
use support::{Ran, Workspace};

pub const TESTS: &[(&str, fn())] = &[
    (
        "partial_refresh::changed_objects_are_read_and_the_others_counted",
        changed_objects_are_read_and_the_others_counted,
    ),
    (
        "partial_refresh::what_was_read_lately_is_not_read_again",
        what_was_read_lately_is_not_read_again,
    ),
    (
        "partial_refresh::saved_plan_says_what_it_has_not_read",
        saved_plan_says_what_it_has_not_read,
    ),
    (
        "partial_refresh::parallelism_is_set_for_each_provider",
        parallelism_is_set_for_each_provider,
    ),
    (
        "partial_refresh::modes_that_do_not_fit_are_refused",
        modes_that_do_not_fit_are_refused,
    ),
];

/// Checks that the output contains texts, whatever its line breaks are.
trait Says {
    fn says(self, texts: &[&str]) -> Ran;
}

impl Says for Ran {
    #[track_caller]
    fn says(self, texts: &[&str]) -> Ran {
        let flat = |text: &str| {
            let words = text.split_whitespace().filter(|word| !matches!(*word, "│" | "╷" | "╵"));
            words.collect::<Vec<_>>().join(" ")
        };
        let all = flat(&format!("{} {}", self.stdout, self.stderr));
        for text in texts {
            assert!(all.contains(text), "{text:?} is not in\n{}", self.all());
        }
        self
    }
}

#[track_caller]
fn lacks(ran: &Ran, text: &str) {
    assert!(!ran.stdout.contains(text), "{text:?} is in\n{}", ran.all());
}

/// Configuration of files as objects: one with this content, and others.
fn text(content: &str) -> String {
    format!(
        "resource \"local_file\" \"one\" {{\n  filename = \"one.txt\"\n  content  = \"{content}\"\n}}\n\nresource \"local_file\" \"others\" {{\n  \
         count    = 3\n  filename = \"other-${{count.index}}.txt\"\n  content  = \"same\"\n}}\n"
    )
}

fn applied() -> Workspace {
    let w = Workspace::with(&[("main.tf", &text("a"))]);
    w.run(&["apply", "-auto-approve"]).ok();
    w
}

fn changed_objects_are_read_and_the_others_counted() {
    let w = applied();
    std::fs::remove_file(w.dir().join("other-1.txt")).expect("a file");
    let plan = w.run(&["plan", "-refresh=changed"]).ok();
    let plan = plan.says(&["No changes.", "4 of 4 objects and data sources were not read"]);
    lacks(&plan, "Refreshing state");
    w.write("main.tf", &text("b"));
    let plan = w.run(&["plan", "-refresh=changed"]).ok();
    let plan = plan.says(&["local_file.one: Refreshing state"]);
    lacks(&plan, "local_file.others[0]: Refreshing state");
    plan.says(&["3 of 4 objects and data sources were not read"]);
    // The default is a full refresh, which finds the missing object.
    w.run(&["plan"]).ok().says(&["local_file.others[1] will be created"]);
    let stream = w.run(&["plan", "-refresh=changed", "-json"]).ok();
    let lines = stream
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Json>(line).expect("JSON"));
    let unread: Vec<Json> = lines
        .filter(|line| line["type"] == "unread")
        .map(|line| line["unread"].clone())
        .collect();
    assert_eq!(unread, [json!({"refresh": "changed", "read": 1, "not_read": 3})]);
    w.run(&["apply", "-auto-approve", "-refresh=changed"])
        .ok()
        .says(&["1 added, 0 changed, 1 destroyed"]);
    w.run(&["plan", "-refresh=true"])
        .ok()
        .says(&["1 to add, 0 to change, 0 to destroy"]);
}

fn what_was_read_lately_is_not_read_again() {
    let w = applied();
    let before = w.read("terraform.tfstate");
    assert!(!w.exists(".terraform"), "without the option, plans write nothing");
    let plan = w.run(&["plan", "-refresh=older-than=1h"]).ok();
    plan.says(&[
        "local_file.one: Refreshing state",
        "all 4 objects and data sources were read",
    ]);
    let plan = w.run(&["plan", "-refresh=older-than=1h"]).ok();
    lacks(&plan, "Refreshing state");
    plan.says(&["4 of 4 objects and data sources were not read", "Last read: 20"]);
    w.run(&["plan", "-refresh=older-than=1ns"])
        .ok()
        .says(&["Refreshing state"]);
    // An apply records the objects that it has changed as just refreshed.
    w.write("main.tf", &text("b"));
    w.run(&["apply", "-auto-approve"]).ok();
    lacks(&w.run(&["plan", "-refresh=older-than=1h"]).ok(), "Refreshing state");
    assert!(!w.read("terraform.tfstate").contains("last_read") && !before.contains("last_read"));
    // A refresh-only plan can be partial, too.
    w.run(&["plan", "-refresh-only", "-refresh=older-than=1h"])
        .ok()
        .says(&["4 of 4"]);
}

fn saved_plan_says_what_it_has_not_read() {
    let w = applied();
    w.write("main.tf", &text("b"));
    w.run(&["plan", "-refresh=changed", "-out=p"]).ok();
    w.run(&["show", "p"])
        .ok()
        .says(&["3 of 4 objects and data sources were not read"]);
    let document: Json = serde_json::from_str(&w.run(&["show", "-json", "p"]).ok().stdout).expect("JSON");
    assert_eq!(document["unread"]["not_read"], 3);
    assert_eq!(document["unread"]["instances"][0]["address"], "local_file.others[0]");
    w.run(&["show", "-summary", "p"]).ok().says(&["were not read"]);
    w.run(&["show", "-format=markdown", "p"]).ok().says(&["were not read"]);
    w.run(&["apply", "p"]).ok().says(&["1 added, 0 changed, 1 destroyed"]);
}

fn parallelism_is_set_for_each_provider() {
    let w = Workspace::with(&[("main.tf", &text("a"))]);
    let adapted = w.run(&["apply", "-auto-approve", "-parallelism=auto"]).ok();
    adapted.says(&["4 added", "Operations at a time: local 1"]);
    lacks(&w.run(&["plan", "-parallelism=1"]).ok(), "Operations at a time");
    lacks(&w.run(&["plan", "-parallelism=local=2"]).ok(), "Operations at a time");
    let stream = w.run(&["plan", "-parallelism=hashicorp/local=auto:1-3", "-json"]).ok();
    let lines = stream
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Json>(line).expect("JSON"));
    let limits: Vec<Json> = lines.filter(|line| line["type"] == "parallelism").collect();
    assert_eq!(limits.len(), 1, "{}", stream.all());
    assert_eq!(
        limits[0]["parallelism"][0],
        json!({"provider": "registry.terraform.io/hashicorp/local", "limit": 3, "throttled": 0})
    );
    w.run(&["plan", "-parallelism=aws=40"]).fails_with(&[
        "Unknown provider in -parallelism",
        "They need: local (hashicorp/local).",
    ]);
    w.run(&["plan", "-parallelism=aws=some"])
        .fails_with(&["Invalid parallelism value"]);
    w.run(&["test", "-parallelism=auto"])
        .fails_with(&["takes a number here"]);
}

fn modes_that_do_not_fit_are_refused() {
    let w = applied();
    for (arguments, why) in [
        (
            &["destroy", "-auto-approve", "-refresh=changed"][..],
            "A destroy plan changes every object",
        ),
        (
            &["plan", "-destroy", "-refresh=older-than=1h"],
            "A destroy plan changes every object",
        ),
        (
            &["plan", "-refresh-only", "-refresh=changed"],
            "nothing counts as changed",
        ),
        (&["plan", "-refresh=older-than=soon"], "such as 30m"),
        (&["plan", "-refresh=some"], "invalid boolean value"),
        (&["plan", "-invoke=action.a.b", "-refresh=changed"], "-invoke"),
    ] {
        let ran = w.run(arguments);
        assert_eq!(ran.status, 1, "{arguments:?}");
        ran.says(&[why]);
    }
}
