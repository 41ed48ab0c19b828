//! Runs in HCP Terraform: requests and output of each program. Monoform and each installed Terraform run every scenario; requests, output
//! and status must be the same.

use libtest_mimic::Trial;
use serde_json::{Value, json};
use support::needing;

use crate::hcp_runs::Script;
use crate::hcp_scene::{Meanwhile, Scene, Seen};
use crate::lab::{Tool, run};

type Scenario = fn(Tool) -> Seen;
type Test = fn(Tool);

const SCENARIOS: &[(&str, Scenario)] = &[
    ("plan_with_options", plan),
    ("plan_without_changes_and_with_failure", plan_results),
    ("plan_of_backend_remote", plan_of_backend),
    ("apply_is_confirmed_at_the_prompt", apply),
    ("apply_without_question", apply_at_once),
    ("apply_of_backend_remote", apply_of_backend),
    ("apply_is_discarded", discard),
    ("apply_is_confirmed_elsewhere", elsewhere),
    ("destroy_and_refresh", destroy_and_refresh),
    ("plan_is_kept_and_applied_later", saved_plan),
    ("costs_policies_and_tasks", checks),
    ("policy_is_overridden", policy_override),
    ("policy_fails", policy_fails),
    ("run_waits_and_is_canceled", cancel),
    ("variables_of_the_workspace", variables),
];

/// Scenarios that need more than Terraform 1.11 has.
const SINCE_1_16: &[&str] = &["variables_of_the_workspace"];

/// Tests of Monoform alone, or of messages that each program words for itself.
const OWN: &[(&str, Test)] = &[
    ("lock_timeout_cancels", lock_timeout),
    ("refusals", refusals),
    ("archive_is_of_the_root_and_without_what_is_ignored", archive),
    ("events_are_shown_and_passed_on", events),
];

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for (name, scenario) in SCENARIOS {
        let scenario = *scenario;
        trials.push(Trial::test(format!("runs::{name}"), move || {
            scenario(Tool::Monoform);
            Ok(())
        }));
        for other in [Tool::Terraform, Tool::NewerTerraform] {
            if other == Tool::Terraform && SINCE_1_16.contains(name) {
                continue;
            }
            let both = move || {
                let (ours, theirs) = (scenario(Tool::Monoform), scenario(other));
                assert_eq!(ours, theirs, "left: Monoform, right: {}", other.name());
                Ok(())
            };
            let trial = Trial::test(format!("runs::{name}::like_{}", other.name()), both);
            trials.push(needing(trial, &[other.name()]));
        }
    }
    for (name, test) in OWN {
        let test = *test;
        trials.push(Trial::test(format!("runs::{name}"), move || {
            test(Tool::Monoform);
            Ok(())
        }));
    }
    trials
}

fn plan(tool: Tool) -> Seen {
    let mut scene = Scene::new(
        tool,
        "cloud",
        Script {
            pending: 2,
            warning: Some("A task is advisory now."),
            ..Script::default()
        },
    );
    let shown = scene.run(&[
        "plan",
        "-var=word=y",
        "-target=terraform_data.a",
        "-replace=terraform_data.a",
        "-refresh=false",
        "-detailed-exitcode",
    ]);
    for text in [
        "Waiting for 2 queued run(s) to finish before starting...",
        "The plan of the server.",
        "Warning: A task is advisory now.",
        "/app/org/only/runs/run-",
    ] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    let seen = scene.end();
    assert_eq!(seen.status, [2], "{shown}");
    assert_eq!(
        seen.asked[1],
        json!({
            "refresh": false, "auto-apply": false, "save-plan": false, "target-addrs": ["terraform_data.a"],
            "replace-addrs": ["terraform_data.a"], "variables": [{"key": "word", "value": "\"y\""}],
        })
    );
    assert_eq!(seen.asked[0]["speculative"], true);
    seen
}

fn plan_results(tool: Tool) -> Seen {
    let mut scene = Scene::new(
        tool,
        "cloud",
        Script {
            has_changes: false,
            ..Script::default()
        },
    );
    scene.run(&["plan", "-detailed-exitcode"]);
    scene.script(|script| script.plan_fails = true);
    scene.run(&["plan"]);
    scene.run(&["apply", "-auto-approve"]);
    let mut seen = scene.end();
    assert_eq!(seen.status, [0, 1, 1]);
    // The programs may print different advice about the plan file after a failure.
    seen.output.clear();
    seen
}

fn plan_of_backend(tool: Tool) -> Seen {
    let mut scene = Scene::new(tool, "remote", Script::default());
    let shown = scene.run(&["plan", "-destroy"]);
    assert!(shown.contains("The plan of the server."), "{shown}");
    let mut seen = scene.end();
    assert_eq!(seen.status, [0]);
    seen.output
        .retain(|line| !line.contains("Note:") && !line.contains("guarantee"));
    seen
}

fn apply(tool: Tool) -> Seen {
    let mut scene = Scene::new(tool, "cloud", Script::default());
    let shown = scene.asked(&["apply"], &["yes"]);
    assert!(shown.contains("The apply of the server."), "{shown}");
    assert!(shown.contains("in workspace \"only\"?"), "{shown}");
    assert_eq!(shown.matches("on linux_amd64").count(), 1, "{shown}");
    let seen = scene.end();
    assert_eq!(seen.status, [0]);
    assert!(seen.requests.iter().any(|r| r.contains("actions/apply")), "{seen:#?}");
    seen
}

fn apply_at_once(tool: Tool) -> Seen {
    let mut scene = Scene::new(tool, "cloud", Script::default());
    let shown = scene.run(&["apply", "-auto-approve"]);
    assert!(shown.contains("The apply of the server."), "{shown}");
    scene.script(|script| script.has_changes = false);
    let shown = scene.run(&["apply", "-auto-approve"]);
    assert!(!shown.contains("The apply of the server."), "{shown}");
    let shown = scene.run(&["apply", "-input=false"]);
    assert!(!shown.contains("input=false"), "{shown}");
    scene.script(|script| script.has_changes = true);
    let shown = scene.run(&["apply", "-input=false"]);
    assert!(shown.contains("-input=false"), "{shown}");
    let seen = scene.end();
    assert_eq!(seen.status, [0, 0, 0, 1]);
    seen
}

fn apply_of_backend(tool: Tool) -> Seen {
    let mut scene = Scene::new(tool, "remote", Script::default());
    scene.run(&["apply", "-auto-approve"]);
    scene
        .hcp
        .world()
        .workspaces
        .get_mut("only")
        .expect("it is there")
        .auto_apply = true;
    scene.run(&["apply"]);
    let seen = scene.end();
    assert_eq!(seen.status, [0, 0]);
    seen
}

fn discard(tool: Tool) -> Seen {
    let mut scene = Scene::new(tool, "cloud", Script::default());
    let shown = scene.asked(&["apply"], &["no"]);
    assert!(shown.contains("Apply discarded."), "{shown}");
    let shown = scene.asked(&["destroy"], &["n"]);
    assert!(shown.contains("Destroy discarded."), "{shown}");
    let seen = scene.end();
    assert_eq!(seen.status, [1, 1]);
    seen
}

fn elsewhere(tool: Tool) -> Seen {
    let mut scene = Scene::new(tool, "cloud", Script::default());
    let shown = scene.unanswered(&["apply"], Meanwhile::Decided("confirmed"));
    assert!(shown.contains("approved using the UI or API"), "{shown}");
    assert!(shown.contains("The apply of the server."), "{shown}");
    let shown = scene.unanswered(&["apply"], Meanwhile::Decided("discarded"));
    assert!(shown.contains("discarded using the UI or API"), "{shown}");
    let seen = scene.end();
    assert_eq!(seen.status, [0, 1]);
    seen
}

fn destroy_and_refresh(tool: Tool) -> Seen {
    let mut scene = Scene::new(tool, "cloud", Script::default());
    scene.run(&["destroy", "-auto-approve"]);
    scene.run(&["refresh"]);
    scene.run(&["plan", "-refresh-only"]);
    let seen = scene.end();
    assert_eq!(seen.status, [0, 0, 0]);
    assert_eq!(seen.asked[3]["is-destroy"], true);
    assert_eq!(seen.asked[4]["refresh-only"], true);
    assert_eq!(seen.asked[4]["auto-apply"], true);
    seen
}

fn saved_plan(tool: Tool) -> Seen {
    let mut scene = Scene::new(tool, "cloud", Script::default());
    let shown = scene.run(&["plan", "-out=p"]);
    assert!(shown.contains("apply \"p\""), "{shown}");
    let saved: Value = serde_json::from_str(&scene.w.read("p")).expect("JSON");
    assert_eq!(saved["remote_plan_format"], 1);
    assert_eq!(saved["hostname"], scene.hcp.host());
    assert!(
        saved["run_id"].as_str().is_some_and(|id| id.starts_with("run-")),
        "{saved}"
    );
    let shown = scene.run(&["apply", "p"]);
    assert!(shown.contains("The apply of the server."), "{shown}");
    let shown = scene.run(&["apply", "p"]);
    assert!(shown.contains("Saved plan is already applied"), "{shown}");
    let other = json!({"remote_plan_format": 1, "run_id": saved["run_id"], "hostname": "elsewhere.example"});
    scene.w.write("p", &other.to_string());
    let shown = scene.run(&["apply", "p"]);
    assert!(shown.contains("Saved plan is for a different hostname"), "{shown}");
    let seen = scene.end();
    assert_eq!(seen.status, [0, 0, 1, 1]);
    assert_eq!(seen.asked[0]["provisional"], true);
    assert_eq!(seen.asked[1]["save-plan"], true);
    seen
}

fn cost() -> Value {
    json!({
        "status": "finished", "matched-resources-count": 1, "resources-count": 2, "proposed-monthly-cost": "12.5",
        "delta-monthly-cost": "-1.25",
    })
}

fn checks(tool: Tool) -> Seen {
    let task = |name: &str, status: &str, level: &str| {
        json!({
            "task-name": name, "status": status, "workspace-task-enforcement-level": level, "message": "It looked.",
            "url": "https://task.example/1",
        })
    };
    let mut scene = Scene::new(
        tool,
        "cloud",
        Script {
            cost: Some(cost()),
            policy: Some(("organization", "passed")),
            stage: Some((
                "post_plan",
                "passed",
                vec![task("one", "passed", "mandatory"), task("two", "failed", "advisory")],
            )),
            ..Script::default()
        },
    );
    let shown = scene.run(&["apply", "-auto-approve"]);
    for text in [
        "Post-plan Tasks:",
        "All tasks completed! 1 passed, 1 failed",
        "two ⸺   Failed (Advisory)",
        "Overall Result: Passed with advisory failures",
        "Resources: 1 of 2 estimated",
        "$12.5/mo -$1.25",
        "Organization Policy Check:",
        "The policies of the organization.",
        "The apply of the server.",
    ] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    let mut seen = scene.end();
    assert_eq!(seen.status, [0]);
    // The number of lines about pending tasks depends on the time.
    seen.output.retain(|line| !line.contains("elapsed"));
    seen
}

fn policy_override(tool: Tool) -> Seen {
    let mut scene = Scene::new(
        tool,
        "cloud",
        Script {
            policy: Some(("workspace", "soft_failed")),
            ..Script::default()
        },
    );
    let shown = scene.asked(&["apply"], &["override", "yes"]);
    assert!(shown.contains("Workspace Policy Check:"), "{shown}");
    assert!(shown.contains("The apply of the server."), "{shown}");
    let seen = scene.end();
    assert_eq!(seen.status, [0], "{shown}");
    assert!(
        seen.requests.iter().any(|r| r.contains("actions/override")),
        "{seen:#?}"
    );
    seen
}

fn policy_fails(tool: Tool) -> Seen {
    let mut scene = Scene::new(
        tool,
        "cloud",
        Script {
            policy: Some(("organization", "hard_failed")),
            plan_fails: true,
            ..Script::default()
        },
    );
    let shown = scene.run(&["apply", "-auto-approve"]);
    assert!(shown.contains("Organization Policy Check hard failed."), "{shown}");
    scene.script(|script| {
        script.policy = Some(("workspace", "soft_failed"));
        script.plan_fails = false;
    });
    let shown = scene.run(&["plan"]);
    assert!(shown.contains("Workspace Policy Check soft failed."), "{shown}");
    let seen = scene.end();
    assert_eq!(seen.status, [1, 1]);
    seen
}

fn cancel(tool: Tool) -> Seen {
    let mut scene = Scene::new(
        tool,
        "cloud",
        Script {
            pending: u32::MAX,
            ..Script::default()
        },
    );
    let shown = scene.unanswered(&["apply", "-auto-approve"], Meanwhile::Interrupt);
    assert!(
        shown.contains("The remote operation was successfully cancelled."),
        "{shown}"
    );
    let mut seen = scene.end();
    assert!(seen.requests.iter().any(|r| r.contains("actions/cancel")), "{seen:#?}");
    seen.output.retain(|line| line.contains("cancelled"));
    // A canceled run is a failure here, but a success in Terraform.
    assert_eq!(seen.status, [i32::from(tool == Tool::Monoform)]);
    seen.status.clear();
    seen
}

fn lock_timeout(tool: Tool) {
    let script = Script {
        pending: u32::MAX,
        ..Script::default()
    };
    let mut scene = Scene::new(tool, "cloud", script);
    let shown = scene.unanswered(&["plan", "-lock-timeout=2s"], Meanwhile::Nothing);
    assert!(shown.contains("Lock timeout exceeded"), "{shown}");
    assert!(
        shown.contains("The remote operation was successfully cancelled."),
        "{shown}"
    );
    let seen = scene.end();
    assert!(seen.requests.iter().any(|r| r.contains("actions/cancel")), "{seen:#?}");
}

fn refusals(tool: Tool) {
    let scene = Scene::new(tool, "remote", Script::default());
    let refused = |args: &[&str], expected: &[&str]| run(&scene.w, tool, args).fails_with(expected);
    refused(
        &["plan", "-parallelism=3"],
        &["Custom parallelism values are currently not supported"],
    );
    refused(
        &["plan", "-show-sensitive"],
        &["Showing sensitive values is not supported"],
    );
    refused(
        &["plan", "-out=p"],
        &["Saving a generated plan is currently not supported"],
    );
    refused(&["plan", "-var=word=y"], &["Run variables are currently not supported"]);
    refused(
        &["plan", "-generate-config-out=g.tf"],
        &["Generating configuration is not currently supported"],
    );
    refused(
        &["apply", "-parallelism=3"],
        &["Custom parallelism values are currently not supported"],
    );
    refused(&["refresh"], &["\"refresh\" operation is not supported"]);
    scene
        .hcp
        .world()
        .workspaces
        .get_mut("only")
        .expect("it is there")
        .repository = true;
    refused(&["apply"], &["Apply not allowed for workspaces with a VCS connection"]);
    assert!(scene.hcp.world().runs.all.is_empty());
    let w = scene.w.env("TF_FORCE_LOCAL_BACKEND", "1");
    let planned = run(&w, tool, &["plan", "-out=p"]).ok();
    assert!(planned.stdout.contains("1 to add"), "{}", planned.all());

    let scene = Scene::new(tool, "cloud", Script::default());
    std::fs::copy(w.dir().join("p"), scene.w.dir().join("p")).expect("the plan");
    let refused = |args: &[&str], expected: &[&str]| run(&scene.w, tool, args).fails_with(expected);
    refused(&["apply", "p"], &["Applying a saved local plan is not supported"]);
    refused(&["plan", "-var=nothing=y"], &["Value for undeclared variable"]);
    let warned = run(&scene.w, tool, &["plan", "-lock=false"]).ok();
    assert!(warned.all().contains("-lock=false"), "{}", warned.all());
    scene
        .hcp
        .world()
        .workspaces
        .get_mut("only")
        .expect("it is there")
        .repository = true;
    refused(
        &["plan", "-out=p2"],
        &["Saved plans not allowed for workspaces with a VCS connection"],
    );
    scene.hcp.world().workspaces.clear();
    refused(&["plan"], &["workspace only not found"]);
}

fn archive(tool: Tool) {
    let scene = Scene::new(tool, "cloud", Script::default());
    scene.w.write(".terraformignore", "*.log\nsecret/\n");
    scene.w.write("x.log", "x");
    scene.w.write("secret/x", "x");
    scene.w.write("sub/x.txt", "x");
    run(&scene.w, tool, &["plan"]).ok();
    let world = scene.hcp.world();
    let files = world.runs.configurations[0].files.clone().expect("it was uploaded");
    for expected in ["main.tf", "cloud.tf", "sub/x.txt", ".terraformignore"] {
        assert!(files.iter().any(|file| file == expected), "{expected}: {files:?}");
    }
    let left_out =
        |file: &&String| file.starts_with(".terraform/") || file.starts_with("secret/") || file.ends_with(".log");
    assert_eq!(files.iter().find(left_out), None, "{files:?}");
}

/// Log of a run whose workspace has structured output.
const EVENTS: &str = r#"{"@level":"info","@message":"Terraform 9.9.9","type":"version"}
{"@level":"info","@message":"terraform_data.a: Refreshing state... [id=1]","type":"refresh_start"}
{"@level":"info","@message":"terraform_data.a: Plan to create","type":"planned_change"}
{"@level":"warn","@message":"Warning: Old","type":"diagnostic","diagnostic":{"severity":"warning","summary":"Old thing","detail":"It is old.","range":{"filename":"main.tf","start":{"line":3,"column":1,"byte":20},"end":{"line":3,"column":4,"byte":23}},"snippet":{"context":null,"code":"old = 1","start_line":3,"highlight_start_offset":0,"highlight_end_offset":3,"values":[]}}}
plain text
"#;

fn events(tool: Tool) {
    let redacted = json!({
        "plan_format_version": "1.2", "provider_format_version": "1.0",
        "provider_schemas": {"terraform.io/builtin/terraform": {"resource_schemas": {"terraform_data": {"version": 0, "block": {
            "attributes": {"id": {"type": "string", "computed": true}, "input": {"type": "dynamic", "optional": true}},
        }}}}},
        "resource_changes": [{
            "address": "terraform_data.a", "mode": "managed", "type": "terraform_data", "name": "a",
            "provider_name": "terraform.io/builtin/terraform",
            "change": {
                "actions": ["create"], "before": null, "after": {"input": "x"}, "after_unknown": {"id": true},
                "before_sensitive": false, "after_sensitive": {},
            },
        }],
    });
    let scene = Scene::new(
        tool,
        "cloud",
        Script {
            plan_log: EVENTS.to_owned(),
            redacted,
            ..Script::default()
        },
    );
    scene
        .hcp
        .world()
        .workspaces
        .get_mut("only")
        .expect("it is there")
        .structured = true;
    let planned = run(&scene.w, tool, &["plan", "-out=p"]).ok();
    for text in [
        "terraform_data.a: Refreshing state... [id=1]",
        "Warning: Old thing",
        "on main.tf line 3",
        "plain text",
        "# terraform_data.a will be created",
        "(known after apply)",
        "Plan: 1 to add, 0 to change, 0 to destroy.",
    ] {
        assert!(planned.all().contains(text), "{text}: {}", planned.all());
    }
    assert!(!planned.all().contains("Terraform 9.9.9") && !planned.all().contains("Plan to create"));
    let concise = run(&scene.w, tool, &["plan", "-concise"]).ok();
    assert!(!concise.all().contains("Refreshing state..."), "{}", concise.all());
    assert!(
        concise.all().contains("# terraform_data.a will be created"),
        "{}",
        concise.all()
    );
    run(&scene.w, tool, &["show", "-show-sensitive", "p"]).fails_with(&["Showing sensitive values is not supported"]);
    let shown = run(&scene.w, tool, &["show", "p"]).ok();
    for text in [
        "runs/run-",
        "# terraform_data.a will be created",
        "(confirmable)",
        "Workspace is unlocked",
    ] {
        assert!(shown.stdout.contains(text), "{text}: {}", shown.all());
    }
    let document = run(&scene.w, tool, &["show", "-json", "p"]).ok().json();
    assert_eq!(document["resource_changes"][0]["address"], "terraform_data.a");
    let stream = run(&scene.w, tool, &["plan", "-json"]).ok();
    assert!(
        stream.stdout.contains("\"type\":\"planned_change\""),
        "{}",
        stream.all()
    );
    for line in stream.stdout.lines() {
        assert!(serde_json::from_str::<Value>(line).is_ok(), "{line}");
    }
}

/// The console has the values that a workspace stores for its runs.
fn variables(tool: Tool) -> Seen {
    let mut scene = Scene::new(tool, "cloud", Script::default());
    scene.w.write(
        "variables.tf",
        "variable \"list\" {\n  type = list(string)\n}\nvariable \"number\" {\n  type = number\n}\nvariable \"set\" {\n  default = \
         \"d\"\n}\nvariable \"secret\" {}\n",
    );
    let variable = |key: &str, value: &str, hcl: bool, sensitive: bool| json!({"key": key, "value": value, "hcl": hcl, "sensitive": sensitive, "category": "terraform"});
    scene
        .hcp
        .world()
        .workspaces
        .get_mut("only")
        .expect("it is there")
        .variables = vec![
        variable("list", "[\"a\", \"b\"]", true, false),
        variable("number", "12", false, false),
        variable("set", "theirs", false, false),
        variable("secret", "", false, true),
        json!({"key": "PATH", "value": "/", "hcl": false, "sensitive": false, "category": "env"}),
    ];
    for (expression, args, expected) in [
        ("join(\"+\", var.list)", &["console"][..], "a+b"),
        ("var.number + 1", &["console"], "13"),
        ("var.set", &["console"], "theirs"),
        ("var.set", &["console", "-var=set=ours"], "ours"),
        ("var.secret", &["console"], "(known after apply)"),
    ] {
        let shown = scene.asked_at_once(args, expression);
        assert!(shown.contains(expected), "{expression}: {shown}");
        assert!(shown.contains("Value for var.secret unavailable"), "{shown}");
    }
    {
        let mut world = scene.hcp.world();
        let only = world.workspaces.get_mut("only").expect("it is there");
        only.variables.push(variable("word", "[", true, false));
    }
    let shown = scene.asked_at_once(&["console"], "1");
    assert!(shown.contains("Invalid expression for var.word"), "{shown}");
    let mut seen = scene.end();
    assert_eq!(seen.status, [0, 0, 0, 0, 0, 1]);
    // The wording of warnings differs, and another test checks whether a console locks the state.
    seen.output.clear();
    seen.requests.clear();
    seen
}
