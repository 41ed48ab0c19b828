//! Limits on the changes of a plan that may be applied without a person's approval: `-auto-approve=KINDS`,
//! `-max-destroy`, `plan -fail-on`.

use serde_json::{Value as Json, json};
use support::Workspace;

pub const TESTS: &[(&str, fn())] = &[
    (
        "guards::plan_with_other_kinds_is_not_approved",
        plan_with_other_kinds_is_not_approved,
    ),
    (
        "guards::limit_of_destroyed_objects_holds",
        limit_of_destroyed_objects_holds,
    ),
    ("guards::status_tells_guarded_changes", status_tells_guarded_changes),
    ("guards::saved_plan_is_held_to_guards", saved_plan_is_held_to_guards),
    ("guards::drift_fails_in_a_junit_report", drift_fails_in_a_junit_report),
    ("guards::results_are_in_the_stream", results_are_in_the_stream),
    (
        "guards::wrong_values_are_refused_before_planning",
        wrong_values_are_refused_before_planning,
    ),
];

/// Returns a workspace whose state has two objects. The configuration updates one of them, and replaces the other if
/// `replaces` is true.
fn changed(replaces: bool) -> Workspace {
    let text = |input: &str, trigger: &str| {
        format!(
            "resource \"terraform_data\" \"updated\" {{\n  input = \"{input}\"\n}}\n\nresource \"terraform_data\" \"replaced\" {{\n  \
             triggers_replace = \"{trigger}\"\n}}\n"
        )
    };
    let w = Workspace::with(&[("main.tf", &text("a", "a"))]);
    w.run(&["apply", "-auto-approve=safe"]).ok();
    w.write("main.tf", &text("b", if replaces { "b" } else { "a" }));
    w
}

/// Returns the guards in a stream.
fn guards(ran: &support::Ran) -> Vec<Json> {
    let lines = ran.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    let guards = lines.filter(|line: &Json| line["type"] == "guard");
    guards.map(|line| line["guard"].clone()).collect()
}

fn results_are_in_the_stream() {
    let w = changed(true);
    let planned = w.run(&["plan", "-json", "-fail-on=replace,destroy"]);
    assert_eq!(planned.status, 3, "{}", planned.all());
    let expected = json!({
        "option": "fail-on",
        "value": "replace,destroy",
        "passed": false,
        "counts": {"replace": 1},
        "addresses": ["terraform_data.replaced"],
    });
    assert_eq!(guards(&planned), [expected]);
    let applied = w
        .run(&["apply", "-json", "-auto-approve=update,replace", "-max-destroy=1"])
        .ok();
    let passed: Vec<_> = guards(&applied)
        .iter()
        .map(|g| (g["option"].clone(), g["passed"].clone()))
        .collect();
    let passes = |option: &str| (Json::from(option), Json::from(true));
    assert_eq!(passed, [passes("max-destroy"), passes("auto-approve")]);
}

fn drift_fails_in_a_junit_report() {
    let text = |input: &str| {
        format!(
            "resource \"local_file\" \"gone\" {{\n  filename = \"gone.txt\"\n  content  = \"<a>\"\n}}\n\nresource \"terraform_data\" \
             \"planned\" {{\n  input = \"{input}\"\n}}\n"
        )
    };
    let w = Workspace::with(&[("main.tf", &text("a"))]);
    w.run(&["apply", "-auto-approve"]).ok();
    w.run(&["plan", "-junit-xml=report.xml"]).ok();
    assert_eq!(
        w.read("report.xml"),
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><testsuites>\n  <testsuite name=\"plan\" tests=\"2\" skipped=\"0\" \
         failures=\"0\" errors=\"0\">\n    <testcase name=\"local_file.gone\" classname=\"local_file\"></testcase>\n    <testcase \
         name=\"terraform_data.planned\" classname=\"terraform_data\"></testcase>\n  </testsuite>\n</testsuites>\n"
    );
    std::fs::remove_file(w.dir().join("gone.txt")).expect("a file");
    w.write("main.tf", &text("b"));
    w.run(&["plan", "-junit-xml=report.xml"]).ok();
    let report = w.read("report.xml");
    for part in [
        "tests=\"2\" skipped=\"0\" failures=\"1\" errors=\"0\"",
        "<failure type=\"drift\" message=\"The object was destroyed outside since the last apply\"><![CDATA[",
        "# local_file.gone has been deleted",
        "<system-out><![CDATA[planned: create]]></system-out>",
        "<system-out><![CDATA[planned: update]]></system-out>",
    ] {
        assert!(report.contains(part), "{part} is missing:\n{report}");
    }
    w.run(&["plan", "-junit-xml=none/report.xml"])
        .fails_with(&["Failed to write the report"]);
}

fn input(w: &Workspace) -> String {
    w.attributes("terraform_data", "updated")["input"]["value"].to_string()
}

fn plan_with_other_kinds_is_not_approved() {
    let w = changed(true);
    // The question cannot be answered, because standard input is not a terminal.
    let refused = w.run(&["apply", "-auto-approve=safe", "-input=false"]);
    let text = support::words(&refused.all());
    assert!(
        text.contains("does not cover this plan: 1 to replace: terraform_data.replaced"),
        "{text}"
    );
    assert_eq!(refused.status, 1, "{text}");
    assert_eq!(input(&w), "\"a\"");
    let refused = w.run(&["apply", "-json", "-auto-approve=safe"]);
    assert_eq!(refused.status, 1);
    assert!(
        refused.stdout.contains("Plan not approved automatically") && refused.stdout.contains("Plan needs approval")
    );
    assert_eq!(input(&w), "\"a\"");
    w.run(&["apply", "-auto-approve=update,replace"]).ok();
    assert_eq!(input(&w), "\"b\"");
    let w = changed(false);
    let refused = w.run(&["apply", "-auto-approve=create", "-input=false"]);
    assert_eq!(refused.status, 1);
    let text = support::words(&refused.all());
    assert!(text.contains("1 to update: terraform_data.updated"), "{text}");
    w.run(&["apply", "-auto-approve=safe"]).ok();
    assert_eq!(input(&w), "\"b\"");
}

fn limit_of_destroyed_objects_holds() {
    let w = changed(true);
    w.run(&["apply", "-auto-approve", "-max-destroy=0"]).fails_with(&[
        "Too many objects to destroy",
        "terraform_data.replaced",
        "Nothing was changed",
    ]);
    assert_eq!(input(&w), "\"a\"");
    w.run(&["destroy", "-auto-approve", "-max-destroy=1"])
        .fails_with(&["destroys 2 objects"]);
    w.run(&["destroy", "-auto-approve", "-max-destroy=2"]).ok();
    assert_eq!(w.state()["resources"], serde_json::json!([]));
}

fn status_tells_guarded_changes() {
    let w = changed(true);
    for (kinds, expected) in [("delete,forget", 0), ("replace", 3), ("update", 3), ("invoke", 0)] {
        let ran = w.run(&["plan", &format!("-fail-on={kinds}")]);
        assert_eq!(ran.status, expected, "{kinds}: {}", ran.all());
    }
    // The exit status of the guard takes precedence over that of -detailed-exitcode.
    let both = w.run(&["plan", "-detailed-exitcode", "-fail-on=replace", "-json"]);
    assert_eq!(both.status, 3);
    assert!(both.stdout.contains("Plan has guarded changes"), "{}", both.stdout);
    let other = w.run(&["plan", "-detailed-exitcode", "-fail-on=delete"]);
    assert_eq!(other.status, 2);
}

fn saved_plan_is_held_to_guards() {
    let w = changed(true);
    w.run(&["plan", "-out=saved"]).ok();
    w.run(&["apply", "-auto-approve=safe", "saved"])
        .fails_with(&["Plan not approved automatically", "1 to replace"]);
    w.run(&["apply", "-max-destroy=0", "saved"])
        .fails_with(&["Too many objects to destroy"]);
    assert_eq!(input(&w), "\"a\"");
    w.run(&["apply", "-max-destroy=1", "saved"]).ok();
    assert_eq!(input(&w), "\"b\"");
}

fn wrong_values_are_refused_before_planning() {
    let w = changed(true);
    for (arguments, text) in [
        (["apply", "-auto-approve=yes"], "\"yes\" is no kind of change"),
        (["apply", "-max-destroy=many"], "\"many\" is not a number of objects"),
        (["plan", "-fail-on=safe"], "\"safe\" is no kind of change"),
    ] {
        let ran = w.run(&arguments).fails_with(&[text]);
        assert!(!ran.stdout.contains("Plan:"), "{}", ran.all());
    }
}
