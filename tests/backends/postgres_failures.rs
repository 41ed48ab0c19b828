//! Kills of programs and servers, with states in rows of objects: nothing is lost, and what was not finished is named.
//!
//! Everything is killed after a number of objects was created, never after a time.

use std::sync::Arc;

use serde_json::Value as Json;
use support::{Workspace, crash};

use crate::lab::{Tool, run};
use crate::postgres::{Server, lab_with_objects_on, query};
use crate::postgres_runs::{Meeting, SLOW, end, names, pulled, start};
use crate::scenarios::wait_for;

pub const TESTS: &[(&str, fn())] = &[
    ("killed_applies_lose_no_object", killed_programs),
    ("applies_go_on_after_the_server_was_killed", killed_server),
    ("applies_go_on_on_the_standby_of_a_killed_server", failover),
    (
        "an_apply_whose_server_does_not_come_back_leaves_its_results_in_a_file",
        lost_server,
    ),
];

/// Objects of two halves. Provisioners record those that were created and destroyed.
const HALVES: &str = r#"
resource "terraform_data" "one" {
  count = 12
  provisioner "local-exec" {
    command = "echo ${self.id} >> PLACE/created"
  }
  provisioner "local-exec" {
    when    = destroy
    command = "echo ${self.id} >> PLACE/destroyed"
  }
}
resource "terraform_data" "two" {
  count = 12
  provisioner "local-exec" {
    command = "echo ${self.id} >> PLACE/created"
  }
  provisioner "local-exec" {
    when    = destroy
    command = "echo ${self.id} >> PLACE/destroyed"
  }
}
"#;

fn lines(meeting: &Meeting, name: &str) -> Vec<String> {
    match meeting.is_there(name) {
        true => meeting.place.read(name).lines().map(str::to_owned).collect(),
        false => Vec::new(),
    }
}

/// Returns the identifiers of all objects of a state.
fn ids(state: &Json) -> Vec<String> {
    let resources = state["resources"].as_array().expect("resources").iter();
    let instances = resources.flat_map(|resource| resource["instances"].as_array().expect("instances"));
    let ids = instances.map(|instance| instance["attributes"]["id"].as_str().expect("an identifier"));
    ids.map(str::to_owned).collect()
}

/// Asserts that each created object is in the state or was destroyed. `tainted` has the tainted objects of earlier states, and gets
/// those of this one: no provisioner runs at their destruction.
fn nothing_is_lost(meeting: &Meeting, w: &Workspace, tainted: &mut Vec<String>) {
    let state = pulled(w);
    let there = ids(&state);
    let destroyed = lines(meeting, "destroyed");
    for id in lines(meeting, "created") {
        let is_known = there.contains(&id) || destroyed.contains(&id) || tainted.contains(&id);
        assert!(is_known, "{id} is lost");
    }
    let resources = state["resources"].as_array().expect("resources").iter();
    let instances = resources.flat_map(|resource| resource["instances"].as_array().expect("instances"));
    let instances = instances.filter(|instance| instance["status"] == "tainted");
    tainted.extend(instances.map(|instance| instance["attributes"]["id"].as_str().expect("an identifier").to_owned()));
}

fn killed_programs() {
    let meeting = Meeting::new();
    let (one, two) = (meeting.directory(HALVES), meeting.directory(HALVES));
    let mut tainted = Vec::new();
    for more in [1, 3, 5] {
        let before = lines(&meeting, "created").len();
        let mut runs = [
            start(&one, &["-target=terraform_data.one", "-parallelism=2"]),
            start(&two, &["-target=terraform_data.two", "-parallelism=2"]),
        ];
        wait_for("some objects", || lines(&meeting, "created").len() >= before + more);
        crash::kill(&[runs[0].id(), runs[1].id()]);
        for run in &mut runs {
            run.wait().expect("its end");
        }
        wait_for("the end of the killed sessions", || {
            query(&meeting.lab, "SELECT count(*) FROM monoform_state.current_locks") == "0"
        });
        // Provisioners are processes of their own, which may still write their lines.
        nothing_is_lost(&meeting, &one, &mut tainted);
        let open = meeting.count("operations");
        let plan = run(&one, Tool::Monoform, &["plan", "-input=false"]).ok();
        assert_eq!(
            open > 0,
            plan.all().contains("whose result is unknown"),
            "{open}: {}",
            plan.all()
        );
    }
    end(start(&one, &[])).ok();
    nothing_is_lost(&meeting, &one, &mut tainted);
    assert_eq!(names(&pulled(&one)).len(), 24);
    run(&one, Tool::Monoform, &["plan", "-input=false", "-detailed-exitcode"]).ok();
    assert_eq!(meeting.count("operations"), 0);
}

/// Starts two applies of different objects that wait for their files, and returns what ends them.
fn during(meeting: &Meeting, fails: impl FnOnce()) -> Workspace {
    let (one, two) = (meeting.directory(SLOW), meeting.directory(SLOW));
    let first = start(&one, &["-target=terraform_data.one"]);
    let second = start(&two, &["-target=terraform_data.two"]);
    wait_for("both applies", || meeting.is_there("one") && meeting.is_there("two"));
    // Results come while the server is down.
    meeting.place.write("go-one", "");
    meeting.place.write("go-two", "");
    fails();
    end(first).ok();
    end(second).ok();
    one
}

fn killed_server() {
    let server = Arc::new(Server::start());
    let hosts = format!("127.0.0.1:{}", server.port);
    let meeting = Meeting::in_lab(lab_with_objects_on(server.clone(), &hosts));
    let w = during(&meeting, || {
        server.kill();
        server.start_again();
    });
    assert_eq!(names(&pulled(&w)), ["one", "two"]);
    run(&w, Tool::Monoform, &["plan", "-input=false", "-detailed-exitcode"]).ok();
    assert_eq!(meeting.count("runs WHERE result = 'finished'"), 2);
    assert_eq!(meeting.count("locks") + meeting.count("operations"), 0);
}

fn failover() {
    let server = Arc::new(Server::start());
    let standby = server.standby();
    let hosts = format!("127.0.0.1:{},127.0.0.1:{}", server.port, standby.port);
    let meeting = Meeting::in_lab(lab_with_objects_on(server.clone(), &hosts));
    let w = during(&meeting, || {
        server.kill();
        assert!(standby.sql("postgres", "SELECT pg_promote()"));
    });
    assert_eq!(names(&pulled(&w)), ["one", "two"]);
    run(&w, Tool::Monoform, &["plan", "-input=false", "-detailed-exitcode"]).ok();
}

fn lost_server() {
    let server = Arc::new(Server::start());
    let hosts = format!("127.0.0.1:{}", server.port);
    let meeting = Meeting::in_lab(lab_with_objects_on(server.clone(), &hosts));
    let (w, two) = (meeting.directory(SLOW), meeting.directory(SLOW));
    // The run waits for the server as long. It is also the limit of each answer before the kill, so it must be long on a busy machine.
    let w = w.env("MONOFORM_PG_TIMEOUT", "20");
    let first = start(&w, &["-target=terraform_data.one"]);
    wait_for("the apply", || meeting.is_there("one"));
    server.kill();
    meeting.place.write("go-one", "");
    end(first).fails_with(&["errored.tfstate"]);
    let rescued: Json = serde_json::from_str(&w.read("errored.tfstate")).expect("a state");
    assert_eq!(names(&rescued), ["one"]);
    server.start_again();
    // The object was in the state before its provisioner had begun.
    run(&two, Tool::Monoform, &["plan", "-input=false"])
        .ok()
        .shows(&["provision terraform_data.one with local-exec"]);
    two.write("errored.tfstate", &w.read("errored.tfstate"));
    // The serial of the store has risen with each result.
    run(&two, Tool::Monoform, &["state", "push", "-force", "errored.tfstate"]).ok();
    assert_eq!(names(&pulled(&two)), ["one"]);
}
