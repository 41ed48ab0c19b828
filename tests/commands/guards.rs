//! Guards of what a plan may do without a person's approval: `-auto-approve=KINDS`, `-max-destroy`, `plan -fail-on`.

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
    (
        "guards::wrong_values_are_refused_before_planning",
        wrong_values_are_refused_before_planning,
    ),
];

/// A state with two objects, whose configuration asks for an update of one, and for the replacement of the other if
/// `replaces` is set.
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

fn input(w: &Workspace) -> String {
    w.attributes("terraform_data", "updated")["input"]["value"].to_string()
}

fn plan_with_other_kinds_is_not_approved() {
    let w = changed(true);
    // Nobody can answer the question: standard input is no terminal.
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
    // The guard says more than that there are changes.
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
