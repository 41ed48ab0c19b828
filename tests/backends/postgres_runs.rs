//! Many runs at once on one state in PostgreSQL, in rows of objects.
//!
//! Runs meet at barriers: a provisioner creates a file and waits for the files of other runs. So no result depends on the speed of a run.

use std::process::{Child, Stdio};

use serde_json::Value as Json;
use support::{Ran, Workspace, crash, ran};

use crate::lab::{Lab, Tool, run};
use crate::postgres::{self, end_sessions, query};
use crate::scenarios::wait_for;

pub const TESTS: &[(&str, fn())] = &[
    ("two_applies_of_different_objects_run_at_once", two_at_once),
    ("twenty_applies_of_different_objects_run_at_once", twenty_at_once),
    ("an_apply_of_an_object_that_is_changed_names_the_holder", named_holder),
    ("an_apply_that_has_waited_plans_again_and_says_whose_run_it_was", waited),
    ("twenty_applies_of_one_object_follow_each_other", twenty_of_one),
    ("an_object_is_not_changed_while_others_depend_on_it", dependencies),
    (
        "a_saved_plan_holds_though_others_have_changed_other_objects",
        saved_plan,
    ),
    ("commands_on_the_whole_state_wait_for_all_applies", whole_state),
    ("a_killed_apply_leaves_its_results_and_names_what_it_was_doing", killed),
    (
        "applies_go_on_after_the_server_has_ended_their_sessions",
        ended_sessions,
    ),
    ("a_lock_of_one_apply_is_broken_and_the_other_goes_on", broken_lock),
];

/// Directory in which runs meet.
pub struct Meeting {
    pub lab: Lab,
    pub place: Workspace,
}

impl Meeting {
    pub fn new() -> Meeting {
        Meeting::in_lab(postgres::lab_with_objects())
    }

    pub fn in_lab(lab: Lab) -> Meeting {
        Meeting {
            lab,
            place: Workspace::with(&[]),
        }
    }

    /// Returns a working directory with a configuration in which `PLACE` is this directory.
    pub fn directory(&self, configuration: &str) -> Workspace {
        let w = self.lab.without();
        w.write("backend.tf", &self.lab.block(""));
        w.write(
            "main.tf",
            &configuration.replace("PLACE", &self.place.dir().display().to_string()),
        );
        run(&w, Tool::Monoform, &["init", "-input=false"]).ok();
        w
    }

    pub fn is_there(&self, name: &str) -> bool {
        self.place.exists(name)
    }

    pub fn count(&self, what: &str) -> usize {
        query(&self.lab, &format!("SELECT count(*) FROM monoform_state.{what}"))
            .parse()
            .expect("a number")
    }
}

/// Two objects whose creation takes until the file `go-NAME` exists, and an output of each.
pub const SLOW: &str = r#"
variable "word" {
  default = "x"
}
resource "terraform_data" "one" {
  triggers_replace = var.word
  provisioner "local-exec" {
    command = "touch PLACE/one; while [ ! -e PLACE/go-one ]; do sleep 0.05; done"
  }
}
resource "terraform_data" "two" {
  triggers_replace = var.word
  provisioner "local-exec" {
    command = "touch PLACE/two; while [ ! -e PLACE/go-two ]; do sleep 0.05; done"
  }
}
output "one" {
  value = terraform_data.one.id
}
output "two" {
  value = terraform_data.two.id
}
"#;

pub fn start(w: &Workspace, more: &[&str]) -> Child {
    w.command(Tool::Monoform.path())
        .args(["apply", "-auto-approve", "-input=false", "-no-color"])
        .args(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts")
}

pub fn end(child: Child) -> Ran {
    ran(child.wait_with_output().expect("its output"))
}

pub fn pulled(w: &Workspace) -> Json {
    run(w, Tool::Monoform, &["state", "pull"]).ok().json()
}

/// Returns the names of the objects in a state, with the keys of instances.
pub fn names(state: &Json) -> Vec<String> {
    let resources = state["resources"].as_array().expect("resources");
    let instances = resources.iter().flat_map(|resource| {
        let name = resource["name"].as_str().expect("a name");
        let instances = resource["instances"].as_array().expect("instances");
        instances
            .iter()
            .map(move |instance| match instance["index_key"].as_u64() {
                Some(key) => format!("{name}{key}"),
                None => name.to_owned(),
            })
    });
    instances.collect()
}

fn two_at_once() {
    let meeting = Meeting::new();
    // Each run ends only after the other one has begun.
    let meet = SLOW.replace("go-one", "two").replace("go-two", "one");
    let (one, two) = (meeting.directory(&meet), meeting.directory(&meet));
    let first = start(&one, &["-target=terraform_data.one"]);
    let second = start(&two, &["-target=terraform_data.two"]);
    end(first).ok();
    end(second).ok();
    let state = pulled(&one);
    assert_eq!(names(&state), ["one", "two"]);
    for name in ["one", "two"] {
        assert!(
            state["outputs"][name]["value"].is_string(),
            "the output of each: {state}"
        );
    }
    run(&one, Tool::Monoform, &["plan", "-input=false", "-detailed-exitcode"]).ok();
    assert_eq!(meeting.count("runs WHERE result = 'finished'"), 2);
    assert_eq!(
        meeting.count("locks") + meeting.count("lock_claims") + meeting.count("operations"),
        0
    );
}

const MANY: &str = r#"
resource "terraform_data" "many" {
  count = 20
  provisioner "local-exec" {
    command = "touch PLACE/${count.index}; while [ $(ls PLACE | wc -l) -lt 20 ]; do sleep 0.2; done"
  }
}
"#;

fn twenty_at_once() {
    let meeting = Meeting::new();
    let directories: Vec<Workspace> = (0..20).map(|_| meeting.directory(MANY)).collect();
    let runs: Vec<Child> = directories
        .iter()
        .enumerate()
        .map(|(i, w)| start(w, &[&format!("-target=terraform_data.many[{i}]")]))
        .collect();
    for run in runs {
        end(run).ok();
    }
    let state = pulled(&directories[0]);
    let expected: Vec<String> = (0..20).map(|i| format!("many{i}")).collect();
    assert_eq!(names(&state), expected);
    assert_eq!(meeting.count("runs WHERE result = 'finished'"), 20);
    let revisions = "SELECT count(*) = max(revision) AND count(DISTINCT revision) = count(*) FROM monoform_state.history WHERE kind = \
                     'state'";
    assert_eq!(query(&meeting.lab, revisions), "t", "each transaction has its revision");
    run(
        &directories[1],
        Tool::Monoform,
        &["plan", "-input=false", "-detailed-exitcode"],
    )
    .ok();
}

fn named_holder() {
    let meeting = Meeting::new();
    let (one, two) = (meeting.directory(SLOW), meeting.directory(SLOW));
    let first = start(&one, &["-target=terraform_data.one"]);
    wait_for("the first apply", || meeting.is_there("one"));
    let refused = end(start(&two, &["-target=terraform_data.one"]));
    refused.fails_with(&[
        "Error acquiring the state lock",
        "terraform_data.one",
        "OperationTypeApply",
        "Who:",
    ]);
    assert_eq!(meeting.count("locks"), 1, "the refused request is withdrawn");
    let listed = run(
        &two,
        Tool::Monoform,
        &[
            "state",
            "query",
            "-json",
            "SELECT status, whole_state, addresses FROM current_locks",
        ],
    );
    listed.ok().shows(&["held", "terraform_data.one", "output.one"]);
    meeting.place.write("go-one", "");
    end(first).ok();
}

fn waited() {
    let meeting = Meeting::new();
    let (one, two) = (meeting.directory(SLOW), meeting.directory(SLOW));
    let first = start(&one, &["-target=terraform_data.one"]);
    wait_for("the first apply", || meeting.is_there("one"));
    let second = start(&two, &["-target=terraform_data.one", "-lock-timeout=300s"]);
    wait_for("the second request", || meeting.count("locks WHERE NOT granted") == 1);
    meeting.place.write("go-one", "");
    end(first).ok();
    let before = pulled(&one);
    // The second plan was not approved by a user, so it may be made again, based on the state of the first apply.
    let second = end(second).ok();
    for part in [
        "Objects changed since the plan",
        "terraform_data.one, by run ",
        "No changes.",
    ] {
        assert!(second.all().contains(part), "{part}\n{}", second.all());
    }
    assert_eq!(pulled(&one)["resources"], before["resources"]);
}

fn twenty_of_one() {
    let meeting = Meeting::new();
    let counted = "variable \"word\" {\n  default = \"x\"\n}\nresource \"terraform_data\" \"a\" {\n  triggers_replace = var.word\n  \
                   provisioner \"local-exec\" {\n    command = \"echo ${self.id} >> PLACE/log\"\n  }\n}\n";
    let directories: Vec<Workspace> = (0..20).map(|_| meeting.directory(counted)).collect();
    let runs: Vec<Child> = directories
        .iter()
        .enumerate()
        .map(|(i, w)| start(w, &[&format!("-var=word={i}"), "-lock-timeout=300s"]))
        .collect();
    for run in runs {
        end(run).ok();
    }
    // Each object that was created has been destroyed by the next run, except the last one.
    let created: Vec<String> = meeting.place.read("log").lines().map(str::to_owned).collect();
    assert_eq!(created.len(), 20);
    let state = pulled(&directories[0]);
    let last = state["resources"][0]["instances"][0]["attributes"]["id"].as_str();
    assert_eq!(last, created.last().map(String::as_str));
    let changes = "SELECT count(DISTINCT run_id) FROM monoform_state.changes";
    assert_eq!(query(&meeting.lab, changes), "20");
}

/// Configuration in which `b` and `c` depend on `a`, which can be changed in place.
const CHAIN: &str = r#"
variable "word" {
  default = "x"
}
resource "terraform_data" "a" {
  input = var.word
}
resource "terraform_data" "b" {
  input = terraform_data.a.id
  provisioner "local-exec" {
    command = "touch PLACE/b; while [ ! -e PLACE/go-b ]; do sleep 0.05; done"
  }
}
resource "terraform_data" "c" {
  input = terraform_data.a.id
}
"#;

fn dependencies() {
    let meeting = Meeting::new();
    let (one, two) = (meeting.directory(CHAIN), meeting.directory(CHAIN));
    end(start(&one, &["-target=terraform_data.a"])).ok();
    let first = start(&one, &["-target=terraform_data.b"]);
    wait_for("the first apply", || meeting.is_there("b"));
    // The first apply does not change `a`, but relies on it for `b`. So another run must not change `a` meanwhile.
    end(start(&two, &["-target=terraform_data.a", "-var=word=y"])).fails_with(&[
        "Error acquiring the state lock",
        "which changes it or depends on it: terraform_data.a",
    ]);
    end(start(&two, &["-target=terraform_data.c"])).ok();
    meeting.place.write("go-b", "");
    end(first).ok();
    assert_eq!(names(&pulled(&one)), ["a", "b", "c"]);
    end(start(&two, &["-target=terraform_data.a", "-var=word=y"])).ok();
}

fn saved_plan() {
    let meeting = Meeting::new();
    for name in ["go-one", "go-two"] {
        meeting.place.write(name, "");
    }
    let (one, two) = (meeting.directory(SLOW), meeting.directory(SLOW));
    let plan = ["plan", "-input=false", "-out=saved", "-target=terraform_data.one"];
    run(&one, Tool::Monoform, &plan).ok();
    end(start(&two, &["-target=terraform_data.two"])).ok();
    // The serial of the state has changed, but the object in the plan has not, so the plan can be applied.
    run(&one, Tool::Monoform, &["apply", "-input=false", "saved"]).ok();
    assert_eq!(names(&pulled(&one)), ["one", "two"]);
    run(
        &one,
        Tool::Monoform,
        &["plan", "-input=false", "-out=saved", "-var=word=y"],
    )
    .ok();
    end(start(&two, &["-target=terraform_data.one", "-var=word=z"])).ok();
    let before = pulled(&two);
    run(&one, Tool::Monoform, &["apply", "-input=false", "saved"])
        .fails_with(&["Saved plan is stale", "terraform_data.one, by run "]);
    assert_eq!(pulled(&two), before);
}

fn whole_state() {
    let meeting = Meeting::new();
    let (one, two) = (meeting.directory(SLOW), meeting.directory(SLOW));
    let first = start(&one, &["-target=terraform_data.one"]);
    wait_for("the first apply", || meeting.is_there("one"));
    run(&two, Tool::Monoform, &["state", "rm", "terraform_data.one"]).fails_with(&[
        "Error acquiring the state lock",
        "Workspace is already locked: default",
        "OperationTypeApply",
    ]);
    let waiting = two
        .command(Tool::Monoform.path())
        .args(["state", "rm", "-lock-timeout=300s", "terraform_data.one"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    wait_for("the request for the whole state", || {
        meeting.count("locks WHERE NOT granted") == 1
    });
    // A later request does not get its lock before an earlier one that still waits.
    end(start(&one, &["-target=terraform_data.two"]))
        .fails_with(&["Workspace is already waited for by an earlier run: default"]);
    meeting.place.write("go-one", "");
    end(first).ok();
    end(waiting).ok();
    assert_eq!(names(&pulled(&one)), [""; 0]);
}

fn killed() {
    let meeting = Meeting::new();
    let configuration = format!("{SLOW}resource \"terraform_data\" \"first\" {{\n}}\n");
    let (one, two) = (meeting.directory(&configuration), meeting.directory(&configuration));
    let mut first = start(
        &one,
        &[
            "-target=terraform_data.one",
            "-target=terraform_data.first",
            "-parallelism=1",
        ],
    );
    let second = start(&two, &["-target=terraform_data.two"]);
    wait_for("both applies", || meeting.is_there("one") && meeting.is_there("two"));
    crash::kill(&[first.id()]);
    first.wait().expect("its end");
    meeting.place.write("go-one", "");
    meeting.place.write("go-two", "");
    end(second).ok();
    // The session of the killed run ends when its plugin has noticed that the run is gone.
    wait_for("the end of the killed run's session", || {
        // Other tests have locks in other databases of the server.
        let query = "SELECT count(*) AS locks FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database \
                     WHERE datname = current_database())";
        run(&two, Tool::Monoform, &["state", "query", query]).ok().stdout == "locks\n0\n"
    });
    let state = pulled(&two);
    let tainted = state["resources"].as_array().expect("resources").iter();
    let tainted: Vec<&Json> = tainted.filter(|r| r["instances"][0]["status"] == "tainted").collect();
    assert_eq!(tainted.len(), 1, "{state}");
    // Every working directory is informed of the interrupted operation: by each plan, and by one apply of the object.
    for _ in 0..2 {
        run(&two, Tool::Monoform, &["plan", "-input=false"]).ok().shows(&[
            "Operations of an earlier run whose result is unknown",
            "provision terraform_data.one with local-exec, since ",
        ]);
    }
    let next = end(start(&two, &[])).ok();
    assert_eq!(
        next.all().matches("provision terraform_data.one").count(),
        1,
        "{}",
        next.all()
    );
    let again = run(&one, Tool::Monoform, &["plan", "-input=false", "-detailed-exitcode"]).ok();
    assert!(!again.all().contains("earlier run"), "{}", again.all());
    assert_eq!(meeting.count("runs WHERE result = 'interrupted'"), 1);
    assert_eq!(names(&pulled(&one)), ["first", "one", "two"]);
}

fn ended_sessions() {
    let meeting = Meeting::new();
    let (one, two) = (meeting.directory(SLOW), meeting.directory(SLOW));
    let first = start(&one, &["-target=terraform_data.one"]);
    let second = start(&two, &["-target=terraform_data.two"]);
    wait_for("both applies", || meeting.is_there("one") && meeting.is_there("two"));
    end_sessions(&meeting.lab);
    meeting.place.write("go-one", "");
    meeting.place.write("go-two", "");
    end(first).ok();
    end(second).ok();
    let state = pulled(&one);
    assert_eq!(names(&state), ["one", "two"]);
    run(&one, Tool::Monoform, &["plan", "-input=false", "-detailed-exitcode"]).ok();
}

fn broken_lock() {
    let meeting = Meeting::new();
    let (one, two) = (meeting.directory(SLOW), meeting.directory(SLOW));
    let first = start(&one, &["-target=terraform_data.one"]);
    let second = start(&two, &["-target=terraform_data.two"]);
    wait_for("both applies", || meeting.is_there("one") && meeting.is_there("two"));
    let id = query(
        &meeting.lab,
        "SELECT lock_id FROM monoform_state.current_locks WHERE 'terraform_data.one' = ANY(addresses)",
    );
    run(&two, Tool::Monoform, &["force-unlock", "-force", &id]).ok();
    // After the lock of the first run is broken, the next run replaces the object that the first run was creating.
    meeting.place.write("go-one", "");
    meeting.place.write("go-two", "");
    end(first).fails_with(&["lock lost: "]);
    end(second).ok();
    let next = end(start(&two, &["-target=terraform_data.one"])).ok();
    next.shows(&["provision terraform_data.one"]);
    run(&two, Tool::Monoform, &["plan", "-input=false", "-detailed-exitcode"]).ok();
}
