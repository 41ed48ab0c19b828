//! States of PostgreSQL in rows of objects (`layout = "objects"`): behaviour that only this layout has.

use std::process::Stdio;

use serde_json::{Value as Json, json};
use support::{Workspace, ran};

use crate::lab::{Lab, RESOURCE, Tool, run};
use crate::lost_locks::id_of_lock;
use crate::postgres::{self, query, statement};
use crate::scenarios::{slow, wait_for};

/// Name of the tests of this layout.
pub const NAME: &str = "pg_objects";

pub const TESTS: &[(&str, fn())] = &[
    ("only_changed_objects_are_written", differences),
    ("a_state_with_odd_values_is_pulled_as_it_was_pushed", odd_values),
    ("a_locked_state_names_its_holder", holder),
    ("a_lock_is_waited_for_and_ends_with_a_killed_program", waiting),
    ("workspaces_are_created_and_deleted", workspaces),
    ("values_are_encrypted_and_unchanged_ones_are_not_written", encryption),
    ("states_move_between_both_layouts", between_layouts),
    ("other_tables_are_refused_with_the_reason", other_tables),
    ("the_history_lists_runs_with_their_changes", history),
    ("a_killed_run_is_listed_as_interrupted", interrupted),
    ("earlier_states_are_shown_and_compared", earlier_states),
    ("objects_of_an_earlier_state_are_restored_in_the_state_only", restore),
    ("views_are_queried_without_sensitive_values", views),
    ("a_user_who_may_only_read_plans", reader),
    ("a_plan_takes_no_lock_and_waits_for_none", unlocked_plan),
    ("other_backends_have_no_history", no_history),
];

pub const WITH_TERRAFORM: &[(&str, fn())] = &[("terraform_has_no_changes_on_a_pulled_state", terraform)];

const APPLY: &[&str] = &["apply", "-auto-approve", "-input=false"];

fn pulled(w: &Workspace) -> Json {
    run(w, Tool::Monoform, &["state", "pull"]).ok().json()
}

fn differences() {
    let lab = postgres::lab_with_objects();
    let w = lab.directory(Tool::Monoform);
    let many =
        "resource \"terraform_data\" \"many\" {\n  count = 50\n  input = count.index == 7 ? var.word : \"same\"\n}\n";
    w.write("many.tf", many);
    run(&w, Tool::Monoform, APPLY).ok();
    let count = "SELECT count(*) FROM monoform_state.objects";
    assert_eq!(query(&lab, count), "51");
    let ids = "SELECT string_agg(xmin::text, ',' ORDER BY address) FROM monoform_state.objects WHERE address <> \
               'terraform_data.many[7]' AND address <> 'terraform_data.a'";
    let before = query(&lab, ids);
    run(&w, Tool::Monoform, &[APPLY, &["-var=word=y"]].concat()).ok();
    assert_eq!(query(&lab, ids), before, "rows of unchanged objects are not written");
    let seven =
        "SELECT attributes->'input'->>'value' FROM monoform_state.objects WHERE address = 'terraform_data.many[7]'";
    assert_eq!(query(&lab, seven), "y");
    let changed = "SELECT string_agg(DISTINCT address, ' ' ORDER BY address) FROM monoform_state.history WHERE kind <> 'state' AND run_id \
                   = (SELECT max(run_id) FROM monoform_state.history)";
    assert_eq!(
        query(&lab, changed),
        "output.word terraform_data.a terraform_data.many[7]"
    );
    run(&w, Tool::Monoform, &["destroy", "-auto-approve"]).ok();
    assert_eq!(query(&lab, count), "0");
}

/// A state with every kind of object, and with values that `jsonb` would change.
const ODD: &str = r#"{"version":4,"terraform_version":"1.11.4","serial":9,"lineage":"4ba3c2f0-8f4c-4ea9-9d3e-9b1f4a0a3a11",
"outputs":{"nul":{"value":"\u0000<","type":"string","sensitive":true},"big":{"value":123456789012345678901234567890.5,"type":"number"}},
"resources":[{"module":"module.m[\"a b\"]","mode":"managed","type":"terraform_data","name":"a",
"provider":"provider[\"terraform.io/builtin/terraform\"]","instances":[
{"index_key":"k\"]${x}","schema_version":0,"attributes":{"z":1e3,"a":{"b":-0,"a":"\u0000\u2028"}},
"sensitive_attributes":[[{"type":"get_attr","value":"a"},{"type":"index","value":{"value":"a","type":"string"}}]],
"private":"AAECAw==","dependencies":["module.m.terraform_data.b"],"create_before_destroy":true},
{"index_key":"k\"]${x}","deposed":"0a1b2c3d","status":"tainted","schema_version":2,"attributes":{}}]},
{"mode":"data","type":"terraform_remote_state","name":"n","provider":"provider[\"terraform.io/builtin/terraform\"]",
"instances":[{"index_key":10,"schema_version":0,"attributes":null},{"index_key":2,"schema_version":0,"attributes_flat":{"id":"1"}}]}],
"check_results":[{"object_kind":"check","config_addr":"check.c","status":"fail","objects":[{"object_addr":"check.c","status":"fail",
"failure_messages":["no"]}]}]}"#;

fn odd_values() {
    // The same push and pull of a local state shows the expected text.
    let lab = postgres::lab_with_objects();
    let files = Workspace::with(&[("main.tf", ""), ("odd.tfstate", ODD)]);
    let rows = lab.without();
    rows.write("main.tf", "");
    rows.write("backend.tf", &lab.block(""));
    rows.write("odd.tfstate", ODD);
    run(&rows, Tool::Monoform, &["init", "-input=false"]).ok();
    let mut texts = Vec::new();
    for w in [&files, &rows] {
        run(w, Tool::Monoform, &["state", "push", "odd.tfstate"]).ok();
        texts.push(run(w, Tool::Monoform, &["state", "pull"]).ok().stdout);
    }
    assert!(texts[0].contains("\\u0000") && texts[0].contains("1e3"), "{}", texts[0]);
    assert_eq!(texts[0], texts[1]);
    let address = "SELECT address FROM monoform_state.objects WHERE deposed = '' AND mode = 'managed'";
    assert_eq!(
        query(&lab, address),
        "module.m[\"a b\"].terraform_data.a[\"k\\\"]$${x}\"]"
    );
    // If the same state is pushed again, no object is recorded as changed.
    let changes = "SELECT count(*) FROM monoform_state.changes";
    let before = query(&lab, changes);
    run(&rows, Tool::Monoform, &["state", "push", "odd.tfstate"]).ok();
    assert_eq!(query(&lab, changes), before);
}

/// Starts an apply that lasts until the file `go` exists.
fn started(w: &Workspace) -> std::process::Child {
    slow(w);
    let mut command = w.command(Tool::Monoform.path());
    let child = command
        .args(["apply", "-auto-approve", "-no-color"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    wait_for("the apply", || w.exists("begun"));
    child
}

fn holder() {
    let lab = postgres::lab_with_objects();
    let (one, two) = (lab.directory(Tool::Monoform), lab.directory(Tool::Monoform));
    let applying = started(&one);
    let refused = run(&two, Tool::Monoform, APPLY);
    let id = id_of_lock(&refused);
    refused.fails_with(&[
        "Already locked by another run",
        "OperationTypeApply",
        "Who:",
        "Created:",
    ]);
    let recorded = "SELECT lock_id FROM monoform_state.locks";
    assert_eq!(query(&lab, recorded), id);
    let wrong = ["force-unlock", "-force", "00000000-0000-4000-8000-000000000000"];
    run(&two, Tool::Monoform, &wrong).fails_with(&["has no lock with the ID"]);
    one.write("go", "");
    ran(applying.wait_with_output().expect("its output")).ok();
    assert_eq!(query(&lab, recorded), "", "the lock is released");
    run(&two, Tool::Monoform, &["plan", "-input=false"]).ok();
}

fn unlocked_plan() {
    let lab = postgres::lab_with_objects();
    let (one, two) = (lab.directory(Tool::Monoform), lab.directory(Tool::Monoform));
    run(&one, Tool::Monoform, APPLY).ok();
    let applying = started(&one);
    let locks = "SELECT string_agg(lock_id, ',') FROM monoform_state.locks";
    let before = query(&lab, locks);
    let plan = ["plan", "-input=false", "-var=word=y", "-out=saved"];
    run(&two, Tool::Monoform, &plan)
        .ok()
        .shows(&["terraform_data.a", "1 to change"]);
    let mut console = two.command(Tool::Monoform.path());
    console.arg("console");
    crate::postgres_unlocked::answered(console, "terraform_data.a.output\n").shows(&["\"x\""]);
    assert_eq!(query(&lab, locks), before, "the apply has the only lock");
    one.write("go", "");
    ran(applying.wait_with_output().expect("its output")).ok();
    // The saved plan is stale: another run has created an object that the plan's configuration does not have.
    run(&two, Tool::Monoform, &["apply", "saved"]).fails_with(&["Saved plan is stale", "terraform_data.slow"]);
}

fn waiting() {
    let lab = postgres::lab_with_objects();
    let (one, two) = (lab.directory(Tool::Monoform), lab.directory(Tool::Monoform));
    let mut applying = started(&one);
    let mut command = two.command(Tool::Monoform.path());
    let next = command
        .args(["apply", "-auto-approve", "-no-color", "-lock-timeout=120s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    applying.kill().expect("it is killed");
    applying.wait().expect("its end");
    one.write("go", "");
    ran(next.wait_with_output().expect("its output")).ok();
    assert_eq!(pulled(&two)["outputs"]["word"]["value"], "x");
}

fn workspaces() {
    let lab = postgres::lab_with_objects();
    let w = lab.directory(Tool::Monoform);
    run(&w, Tool::Monoform, &["workspace", "new", "dev"]).ok();
    run(&w, Tool::Monoform, APPLY).ok();
    run(&w, Tool::Monoform, &["workspace", "select", "default"]).ok();
    run(&w, Tool::Monoform, &["plan", "-input=false"]).ok();
    let listed = run(&w, Tool::Monoform, &["workspace", "list"]).ok().stdout;
    assert_eq!(listed.split_whitespace().collect::<Vec<_>>(), ["*", "default", "dev"]);
    run(&w, Tool::Monoform, &["workspace", "delete", "dev"]).fails_with(&["Workspace is not empty"]);
    run(&w, Tool::Monoform, &["workspace", "delete", "-force", "dev"]).ok();
    let listed = run(&w, Tool::Monoform, &["workspace", "list"]).ok().stdout;
    assert!(!listed.contains("dev"), "{listed}");
    assert_eq!(query(&lab, "SELECT count(*) FROM monoform_state.objects"), "0");
}

const KEY: &str = "key_provider \"pbkdf2\" \"p\" {\n  passphrase = \"correct horse battery staple\"\n  iterations = 200000\n}\nmethod \
                   \"aes_gcm\" \"m\" {\n  keys = key_provider.pbkdf2.p\n}\nmethod \"unencrypted\" \"u\" {\n}\nstate {\n  method = \
                   method.aes_gcm.m\n  fallback {\n    method = method.unencrypted.u\n  }\n}\n";

fn encryption() {
    let lab = postgres::lab_with_objects();
    let w = lab.without();
    w.write("backend.tf", &lab.block(""));
    let two = "resource \"terraform_data\" \"b\" {\n  input = \"hidden\"\n}\n";
    w.write("main.tf", &format!("{RESOURCE}{two}"));
    run(&w, Tool::Monoform, &["init", "-input=false"]).ok();
    run(&w, Tool::Monoform, &[APPLY, &["-var=word=clear"]].concat()).ok();
    let values = |word: &str| {
        let count = format!(
            "SELECT count(*) FROM (SELECT concat(attributes, attributes_exact, private) AS text FROM monoform_state.objects UNION ALL \
             SELECT concat(value, value_exact) FROM monoform_state.outputs) AS texts WHERE text LIKE '%{word}%'"
        );
        query(&lab, &count)
    };
    assert_ne!(values("clear"), "0");
    // What is in clear text is accepted with the fallback, and encrypted by the next run.
    let w = w.env("TF_ENCRYPTION", KEY);
    run(&w, Tool::Monoform, &[APPLY, &["-var=word=sesame"]].concat()).ok();
    for word in ["clear", "sesame", "hidden"] {
        assert_eq!(values(word), "0", "{word}");
    }
    let later = "SELECT count(*) FROM monoform_state.history WHERE concat(before, after) LIKE '%sesame%'";
    assert_eq!(query(&lab, later), "0");
    assert_eq!(pulled(&w)["outputs"]["word"]["value"], "sesame");
    run(
        &w,
        Tool::Monoform,
        &["plan", "-input=false", "-detailed-exitcode", "-var=word=sesame"],
    )
    .ok();
    run(&w, Tool::Monoform, &[APPLY, &["-var=word=other"]].concat()).ok();
    let changed = "SELECT string_agg(DISTINCT address, ' ' ORDER BY address) FROM monoform_state.changes WHERE run_id = (SELECT \
                   max(run_id) FROM monoform_state.changes)";
    assert_eq!(query(&lab, changed), "output.word terraform_data.a");
    let run_before = query(&lab, "SELECT max(run_id) - 1 FROM monoform_state.changes");
    run(
        &w,
        Tool::Monoform,
        &["state", "show", &format!("-at={run_before}"), "terraform_data.a"],
    )
    .ok()
    .shows(&["sesame"]);
    // Rows that were exchanged in the tables are noticed.
    let exchange = "UPDATE monoform_state.objects o SET attributes = other.attributes FROM monoform_state.objects other WHERE \
                    o.address = 'terraform_data.b' AND other.address = 'terraform_data.a'";
    let plain = lab.without();
    plain.write("backend.tf", &lab.block(""));
    run(&plain, Tool::Monoform, &["init", "-input=false"]);
    run(&plain, Tool::Monoform, &["state", "pull"]).fails_with(&["encrypted"]);
    run(&w, Tool::Monoform, &["state", "list"]).ok();
    assert!(statement(&lab, exchange));
    run(&w, Tool::Monoform, &["state", "list"]).fails_with(&["has the values of"]);
}

fn between_layouts() {
    let lab = postgres::lab();
    let w = lab.directory(Tool::Monoform);
    run(&w, Tool::Monoform, APPLY).ok();
    run(&w, Tool::Monoform, &["workspace", "new", "dev"]).ok();
    run(&w, Tool::Monoform, &[APPLY, &["-var=word=dev"]].concat()).ok();
    let before = pulled(&w);
    for layout in [
        "layout = \"objects\"",
        "layout = \"states\"",
        "layout = \"objects\"",
        "",
    ] {
        w.write("backend.tf", &lab.block(layout));
        run(&w, Tool::Monoform, &["init", "-migrate-state", "-force-copy"]).ok();
        let after = pulled(&w);
        for part in ["lineage", "outputs", "resources", "check_results"] {
            assert_eq!(after[part], before[part], "{layout}: {part}");
        }
        let planned = run(&w, Tool::Monoform, &["plan", "-input=false", "-var=word=dev"]).ok();
        assert!(planned.stdout.contains("No changes."), "{}", planned.all());
    }
}

fn other_tables() {
    let lab = postgres::lab();
    let w = lab.directory(Tool::Monoform);
    run(&w, Tool::Monoform, APPLY).ok();
    let init = |more: &str| {
        w.write("backend.tf", &lab.block(more));
        run(&w, Tool::Monoform, &["init", "-reconfigure", "-input=false"])
    };
    init("layout = \"rows\"").fails_with(&["There is no layout \"rows\""]);
    let theirs = "layout = \"objects\"\nschema_name = \"terraform_remote_state\"";
    init(theirs).fails_with(&["Schema has another layout", "schema_name"]);
    let missing = "layout = \"objects\"\nskip_table_creation = true";
    init(missing).fails_with(&["Tables are missing"]);
    init("layout = \"objects\"").ok();
    init(missing).ok();
    init("schema_name = \"monoform_state\"").fails_with(&["set layout = \"objects\""]);
    assert!(statement(&lab, "UPDATE monoform_state.layout SET version = 99"));
    init("layout = \"objects\"").fails_with(&["newer version", "99"]);
}

fn terraform() {
    let lab = postgres::lab_with_objects();
    let w = lab.directory(Tool::Monoform);
    run(&w, Tool::Monoform, APPLY).ok();
    let theirs = Workspace::with(&[("main.tf", RESOURCE)]);
    let copy = |lab: &Lab| {
        assert_eq!(lab.ty, "pg");
        theirs.write(
            "terraform.tfstate",
            &run(&w, Tool::Monoform, &["state", "pull"]).ok().stdout,
        );
    };
    copy(&lab);
    run(&theirs, Tool::Terraform, &["init", "-input=false"]).ok();
    let planned = run(&theirs, Tool::Terraform, &["plan", "-input=false"]).ok();
    assert!(planned.stdout.contains("No changes."), "{}", planned.all());
    // A state that Terraform has written is pushed.
    run(&theirs, Tool::Terraform, &[APPLY, &["-var=word=theirs"]].concat()).ok();
    w.write("theirs.tfstate", &theirs.read("terraform.tfstate"));
    run(&w, Tool::Monoform, &["state", "push", "theirs.tfstate"]).ok();
    let planned = run(&w, Tool::Monoform, &["plan", "-input=false", "-var=word=theirs"]).ok();
    assert!(planned.stdout.contains("No changes."), "{}", planned.all());
    assert_eq!(
        pulled(&w)["outputs"]["word"],
        json!({"value": "theirs", "type": "string"})
    );
}

/// Checks the document of a command against the JSON Schema that `help json` prints.
fn fits(w: &Workspace, name: &str, document: &Json) {
    let schema = run(w, Tool::Monoform, &["help", "json", name]);
    let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
    let place = format!("{name}.json");
    compiler.add_resource(&place, schema.ok().json()).expect("a schema");
    let compiled = compiler.compile(&place, &mut schemas).expect("a schema");
    if let Err(error) = schemas.validate(document, compiled) {
        panic!("{name}: {error:#}\n{document:#}");
    }
}

/// Applies three times: an object with two instances, another value, one instance less.
fn applied_three_times(lab: &Lab) -> Workspace {
    let w = lab.directory(Tool::Monoform);
    w.write(
        "each.tf",
        "variable \"keys\" {\n  type    = list(string)\n  default = [\"a b\", \"c\"]\n}\nresource \"terraform_data\" \"each\" {\n  for_each = toset(var.keys)\n  \
         input    = var.word\n}\n",
    );
    run(&w, Tool::Monoform, APPLY).ok();
    run(&w, Tool::Monoform, &[APPLY, &["-var=word=y"]].concat()).ok();
    run(
        &w,
        Tool::Monoform,
        &[APPLY, &["-var=word=y", "-var=keys=[\"c\"]"]].concat(),
    )
    .ok();
    w
}

fn history() {
    let lab = postgres::lab_with_objects();
    let w = applied_three_times(&lab);
    let shown = run(&w, Tool::Monoform, &["state", "history"]).ok().stdout;
    let runs: Vec<&str> = shown.lines().filter(|line| line.starts_with("Run ")).collect();
    assert_eq!(runs.len(), 3, "{shown}");
    assert!(
        runs[0].starts_with("Run 3: apply by ") && runs[0].ends_with(", finished"),
        "{shown}"
    );
    assert!(shown.contains("  - terraform_data.each[\"a b\"]\n"), "{shown}");
    let listed = |address: &str| {
        let json = run(&w, Tool::Monoform, &["state", "history", "-json", address])
            .ok()
            .json();
        fits(&w, "state-history", &json);
        let runs = json["runs"].as_array().expect("runs").clone();
        let of = |run: &Json| (run["run"].clone(), run["changes"].clone());
        runs.iter().map(of).collect::<Vec<_>>()
    };
    let change = |action: &str, key: &str| json!({"kind": "object", "address": format!("terraform_data.each[\"{key}\"]"), "action": action});
    assert_eq!(
        listed("terraform_data.each[\"a b\"]"),
        [
            (json!(3), json!([change("delete", "a b")])),
            (json!(2), json!([change("update", "a b")])),
            (json!(1), json!([change("create", "a b")])),
        ]
    );
    assert_eq!(listed("terraform_data.each").len(), 3);
    assert_eq!(listed("terraform_data.each[\"c\"]").len(), 2);
    assert_eq!(listed("terraform_data.none").len(), 0);
    run(&w, Tool::Monoform, &["state", "history", "a", "b"]).fails_with(&["Too many command line arguments"]);
}

fn interrupted() {
    let lab = postgres::lab_with_objects();
    // Results are written at once, so that the run has written before it is killed.
    let w = lab.without().env("TF_STATE_PERSIST_INTERVAL", "0");
    w.write("backend.tf", &lab.block(""));
    run(&w, Tool::Monoform, &["init", "-input=false"]).ok();
    let mut applying = started(&w);
    let written = "SELECT count(*) FROM monoform_state.objects WHERE address = 'terraform_data.a'";
    wait_for("the write", || query(&lab, written) == "1");
    let result = "SELECT result FROM monoform_state.changes LIMIT 1";
    assert_eq!(query(&lab, result), "running");
    applying.kill().expect("it is killed");
    applying.wait().expect("its end");
    w.write("go", "");
    run(&w, Tool::Monoform, &[APPLY, &["-lock-timeout=60s"]].concat()).ok();
    let runs = run(&w, Tool::Monoform, &["state", "history", "-json"]).ok().json()["runs"].clone();
    assert_eq!(runs[1]["result"], "interrupted", "{runs:#}");
    assert_eq!(runs[0]["result"], "finished", "{runs:#}");
}

fn earlier_states() {
    let lab = postgres::lab_with_objects();
    let w = applied_three_times(&lab);
    let address = "terraform_data.each[\"a b\"]";
    let at = |run_number: &str| {
        let flag = format!("-at={run_number}");
        run(&w, Tool::Monoform, &["state", "show", &flag, address])
    };
    assert!(at("1").ok().stdout.contains("= \"x\""));
    assert!(at("2").ok().stdout.contains("= \"y\""));
    at("3").fails_with(&["No instance found"]);
    at("99").fails_with(&["No such run", "state history"]);
    at("one").fails_with(&["not the number of a run"]);
    let json = run(&w, Tool::Monoform, &["state", "show", "-json", "-at=1", address])
        .ok()
        .json();
    assert_eq!(json["resource"]["values"]["input"], "x");
    let both = ["state", "show", "-at=1", "-state=x", address];
    run(&w, Tool::Monoform, &both).fails_with(&["Incompatible options"]);
    let diff = |one: &str, two: &str| run(&w, Tool::Monoform, &["state", "diff", one, two]).ok().stdout;
    let shown = diff("1", "3");
    assert!(shown.contains("- terraform_data.each[\"a b\"]\n"), "{shown}");
    assert!(shown.contains("~ terraform_data.each[\"c\"]\n"), "{shown}");
    assert!(
        shown.contains("~ output.word\n    ~ value: \"x\" -> \"y\"\n"),
        "{shown}"
    );
    assert!(diff("3", "1").contains("+ terraform_data.each[\"a b\"]\n"));
    assert_eq!(diff("2", "2"), "The states after both runs are the same.\n");
    // The state after the last run is the current state.
    let current = run(&w, Tool::Monoform, &["state", "show", "terraform_data.a"])
        .ok()
        .stdout;
    let last = run(&w, Tool::Monoform, &["state", "show", "-at=3", "terraform_data.a"])
        .ok()
        .stdout;
    assert_eq!(current, last);
}

fn restore() {
    let lab = postgres::lab_with_objects();
    let w = applied_three_times(&lab);
    let old = |address: &str| {
        let shown = ["state", "show", "-at=1", address];
        run(&w, Tool::Monoform, &shown).ok().stdout
    };
    let gone = "terraform_data.each[\"a b\"]";
    let before = old(gone);
    let restored = run(&w, Tool::Monoform, &["state", "restore", "-run=1", gone]).ok();
    restored.shows(&["Restored terraform_data.each[\"a b\"]", "Only the state was changed"]);
    assert_eq!(run(&w, Tool::Monoform, &["state", "show", gone]).ok().stdout, before);
    // The configuration does not have the restored object, so the plan destroys it again.
    let planned = run(&w, Tool::Monoform, &["plan", "-var=word=y", "-var=keys=[\"c\"]"]).ok();
    assert!(planned.stdout.contains("1 to destroy"), "{}", planned.all());
    // An object that did not exist in the state after run 3 is removed.
    let removed = run(
        &w,
        Tool::Monoform,
        &["state", "restore", "-run=3", "terraform_data.each"],
    )
    .ok();
    removed.shows(&[
        "Removed terraform_data.each[\"a b\"]",
        "Restored terraform_data.each[\"c\"]",
    ]);
    let none = ["state", "restore", "-run=1", "terraform_data.none"];
    run(&w, Tool::Monoform, &none).fails_with(&["Invalid target address"]);
    run(&w, Tool::Monoform, &["state", "restore", "terraform_data.a"]).fails_with(&["Required argument missing"]);
    // The command respects the state lock.
    let holding = lab.directory(Tool::Monoform);
    let applying = started(&holding);
    let locked = ["state", "restore", "-run=1", "-lock-timeout=1s", gone];
    run(&w, Tool::Monoform, &locked).fails_with(&["Error acquiring the state lock"]);
    run(&w, Tool::Monoform, &["state", "restore", "-run=1", "-lock=false", gone]).ok();
    holding.write("go", "");
    applying.wait_with_output().expect("its end");
}

fn views() {
    let lab = postgres::lab_with_objects();
    let w = lab.directory(Tool::Monoform);
    w.write(
        "secret.tf",
        "variable \"secret\" {\n  sensitive = true\n  default   = \"planted-71c2\"\n}\nresource \"terraform_data\" \"secret\" {\n  \
         input = { open = 1, closed = var.secret }\n}\noutput \"secret\" {\n  sensitive = true\n  value     = var.secret\n}\nresource \
         \"random_password\" \"p\" {\n  length = 12\n}\n",
    );
    run(&w, Tool::Monoform, &["init", "-input=false"]).ok();
    run(&w, Tool::Monoform, APPLY).ok();
    let rows = |sql: &str| {
        let json = run(&w, Tool::Monoform, &["state", "query", "-json", sql]).ok().json();
        fits(&w, "state-query", &json);
        json
    };
    let found = rows("SELECT workspace, address FROM current_objects ORDER BY address;");
    assert_eq!(found["columns"], json!(["workspace", "address"]));
    assert_eq!(found["rows"][2], json!(["default", "terraform_data.secret"]));
    let sql = "SELECT attributes AS a FROM public_objects WHERE type <> 'none' ORDER BY address";
    let public = rows(sql);
    assert!(!public.to_string().contains("planted-71c2"), "{public:#}");
    assert_eq!(
        public["rows"][0][0]["result"],
        Json::Null,
        "the schema's sensitive attributes, too"
    );
    assert_eq!(public["rows"][0][0]["length"], 12);
    assert_eq!(public["rows"][1][0]["input"]["value"], "x");
    let secret = &public["rows"][2][0];
    assert_eq!((&secret["input"], &secret["output"]), (&Json::Null, &Json::Null));
    assert!(secret["id"].is_string());
    let outputs = rows("SELECT name, value FROM public_outputs ORDER BY name");
    assert_eq!(outputs["rows"], json!([["secret", null], ["word", "x"]]));
    assert!(
        rows("SELECT value FROM current_outputs")
            .to_string()
            .contains("planted-71c2")
    );
    let text = run(
        &w,
        Tool::Monoform,
        &[
            "state",
            "query",
            "SELECT name, value FROM public_outputs WHERE name = 'word'",
        ],
    );
    assert_eq!(text.ok().stdout, "name\tvalue\nword\tx\n");
    // A query must not write, and must be a single statement.
    for (sql, why) in [
        ("DELETE FROM objects RETURNING 1", "syntax error"),
        ("SELECT 1; DELETE FROM objects", "multiple commands"),
        ("SELECT 1) q; DELETE FROM objects; SELECT (1", "syntax error"),
        ("SELECT nextval('runs_id_seq') AS n", "read-only transaction"),
        ("SELECT 1 AS a, 2 AS a", "Two columns have the name"),
        ("SELECT nothing FROM current_objects", "does not exist"),
    ] {
        let ran = run(&w, Tool::Monoform, &["state", "query", sql]);
        assert!(ran.status == 1 && ran.all().contains(why), "{sql}\n{}", ran.all());
    }
}

fn reader() {
    let lab = postgres::lab_with_objects();
    let w = lab.directory(Tool::Monoform);
    run(&w, Tool::Monoform, APPLY).ok();
    let user = "reader_of_objects";
    let grant = format!(
        "CREATE USER {user}; GRANT USAGE ON SCHEMA monoform_state TO {user}; GRANT SELECT ON ALL TABLES IN SCHEMA monoform_state TO {user}"
    );
    assert!(statement(&lab, &grant), "a user");
    let reading = lab.without();
    reading.write("backend.tf", &lab.block("").replace("//me@", &format!("//{user}@")));
    run(&reading, Tool::Monoform, &["init", "-input=false"]).ok();
    let planned = run(&reading, Tool::Monoform, &["plan", "-input=false"]).ok();
    assert!(planned.stdout.contains("No changes."), "{}", planned.all());
    run(&reading, Tool::Monoform, &["state", "history"])
        .ok()
        .shows(&["terraform_data.a"]);
    run(&reading, Tool::Monoform, APPLY).fails_with(&["permission denied"]);
    assert!(statement(&lab, &format!("DROP OWNED BY {user}; DROP USER {user}")));
}

fn no_history() {
    let lab = postgres::lab();
    let w = lab.directory(Tool::Monoform);
    run(&w, Tool::Monoform, APPLY).ok();
    for command in [
        &["history"][..],
        &["diff", "1", "2"],
        &["show", "-at=1", "terraform_data.a"],
        &["restore", "-run=1", "terraform_data.a"],
        &["query", "SELECT 1"],
    ] {
        let words = [&["state"], command].concat();
        run(&w, Tool::Monoform, &words).fails_with(&["No history of this state", "layout = \"objects\""]);
    }
}
