//! Runs of the fake of HCP Terraform, which advance with each request for them.

use std::collections::BTreeMap;
use std::io::Read as _;

use serde_json::{Value, json};
use support::server::{Reply, Request};

use crate::hcp::{World, document, problem, workspace_data};

const JSON_API: &str = "application/vnd.api+json";

/// Length of a piece of a log, in bytes.
const PIECE: usize = 100;

/// Settings for the runs that clients start: their logs, statuses and results.
#[derive(Clone)]
pub struct Script {
    pub plan_log: String,
    pub apply_log: String,
    pub has_changes: bool,
    /// Number of requests that find a run pending.
    pub pending: u32,
    pub plan_fails: bool,
    /// Attributes of the cost estimate.
    pub cost: Option<Value>,
    /// Scope and status of the policy check.
    pub policy: Option<(&'static str, &'static str)>,
    /// A task stage: its name, such as `post_plan`, its status, and attributes of the tasks' results.
    pub stage: Option<(&'static str, &'static str, Vec<Value>)>,
    /// Text of a warning.
    pub warning: Option<&'static str>,
    pub redacted: Value,
}

impl Default for Script {
    fn default() -> Script {
        Script {
            plan_log:
                "Terraform v9.9.9\non linux_amd64\nInitializing plugins and modules...\n\nThe plan of the server.\n"
                    .to_owned(),
            apply_log:
                "Terraform v9.9.9\non linux_amd64\nInitializing plugins and modules...\nThe apply of the server.\n"
                    .to_owned(),
            has_changes: true,
            pending: 0,
            plan_fails: false,
            cost: None,
            policy: None,
            stage: None,
            warning: None,
            redacted: Value::Null,
        }
    }
}

pub struct Run {
    id: String,
    workspace: String,
    /// Attributes with which the run was requested.
    pub asked: Value,
    pub status: String,
    script: Script,
    asked_about: u32,
    speculative: bool,
    stage_seen: u32,
    stage_overridden: bool,
}

pub struct Configuration {
    id: String,
    pub attributes: Value,
    /// Names of the files in the upload.
    pub files: Option<Vec<String>>,
}

#[derive(Default)]
pub struct Runs {
    pub script: Script,
    pub all: Vec<Run>,
    pub configurations: Vec<Configuration>,
}

impl Run {
    fn go_on(&mut self, overridden: bool) {
        self.asked_about += 1;
        let attributes = &self.asked["data"]["attributes"];
        let soft = matches!(self.script.policy, Some((_, "soft_failed"))) && !overridden;
        self.status = match &*self.status {
            "pending" if self.asked_about <= self.script.pending => "pending",
            "pending" if self.script.plan_fails => "errored",
            "pending" | "policy_override" if soft => "policy_override",
            "pending" | "policy_override" if self.speculative || !self.script.has_changes => "planned_and_finished",
            "pending" | "policy_override" if attributes["save-plan"] == true => "planned_and_saved",
            "pending" | "policy_override" if attributes["auto-apply"] == true => "apply_queued",
            "pending" | "policy_override" => "planned",
            "confirmed" => "applying",
            other => other,
        }
        .to_owned();
    }

    fn data(&self) -> Value {
        let status = &*self.status;
        let attributes = &self.asked["data"]["attributes"];
        let number = self.id.trim_start_matches("run-");
        let link = |ty: &str, id: String| json!({"data": {"type": ty, "id": id}});
        let mut relationships = json!({
            "workspace": link("workspaces", self.workspace.clone()),
            "plan": link("plans", format!("plan-{number}")),
            "apply": link("applies", format!("apply-{number}")),
            "policy-checks": {"data": []},
        });
        if self.script.cost.is_some() {
            relationships["cost-estimate"] = link("cost-estimates", format!("ce-{number}"));
        }
        if self.script.policy.is_some() {
            relationships["policy-checks"] =
                json!({"data": [{"type": "policy-checks", "id": format!("polchk-{number}")}]});
        }
        if self.script.stage.is_some() {
            relationships["task-stages"] = json!({"data": [{"type": "task-stages", "id": format!("ts-{number}")}]});
        }
        json!({"id": self.id, "type": "runs", "attributes": {
            "status": status, "has-changes": self.script.has_changes,
            "is-destroy": attributes["is-destroy"] == true, "refresh-only": attributes["refresh-only"] == true,
            "position-in-queue": 0,
            "actions": {
                "is-cancelable": matches!(status, "pending" | "planning" | "applying" | "confirmed"),
                "is-confirmable": matches!(status, "planned" | "planned_and_saved"),
                "is-discardable": matches!(status, "planned" | "policy_override" | "pending" | "planned_and_saved"),
            },
            "permissions": {"can-apply": true, "can-cancel": true, "can-discard": true},
        }, "relationships": relationships})
    }

    fn stage(&self, included: &mut Vec<Value>) -> Option<Value> {
        let (kind, end, results) = self.script.stage.as_ref()?;
        let number = self.id.trim_start_matches("run-");
        let running = self.stage_seen < 2;
        let status = match (running, *end) {
            (true, _) => "running",
            (_, "awaiting_override") if self.stage_overridden => "passed",
            (_, end) => end,
        };
        let mut links = Vec::new();
        for (i, result) in results.iter().enumerate() {
            let id = format!("taskrs-{number}-{i}");
            links.push(json!({"type": "task-results", "id": id}));
            let mut attributes = result.clone();
            if running {
                attributes["status"] = "running".into();
            }
            included.push(json!({"id": id, "type": "task-results", "attributes": attributes}));
        }
        Some(
            json!({"id": format!("ts-{number}"), "type": "task-stages", "attributes": {
            "stage": kind, "status": status, "status-timestamps": {},
        }, "relationships": {"task-results": {"data": links}, "policy-evaluations": {"data": []}}}),
        )
    }
}

fn created(data: Value) -> Reply {
    Reply::new(201, json!({ "data": data }).to_string()).with("Content-Type", JSON_API)
}

/// Answers requests for the configuration versions and the runs of a workspace.
pub fn of_workspace(
    world: &mut World,
    method: &str,
    workspace: &str,
    rest: &[&str],
    sent: &Value,
    host: &str,
) -> Reply {
    match (method, rest) {
        ("POST", ["configuration-versions"]) => {
            assert_eq!(sent["data"]["type"], "configuration-versions");
            let id = world.id("cv");
            let attributes = sent["data"]["attributes"].clone();
            let mut data = json!({"id": id, "type": "configuration-versions", "attributes": attributes});
            data["attributes"]["upload-url"] = format!("https://{host}/slugs/{id}").into();
            data["attributes"]["status"] = "pending".into();
            world.runs.configurations.push(Configuration {
                id,
                attributes,
                files: None,
            });
            created(data)
        }
        ("GET", ["runs"]) => {
            let of = |run: &&Run| run.workspace == workspace;
            let all: Vec<Value> = world.runs.all.iter().rev().filter(of).map(Run::data).collect();
            document(&json!({"data": all, "meta": {"pagination": {"current-page": 1, "total-pages": 1}}}))
        }
        _ => problem(404, "not found"),
    }
}

/// Answers for the run queue of the organization.
pub fn queue(world: &World, method: &str, parts: &[&str]) -> Reply {
    assert_eq!(method, "GET");
    match parts.last() {
        Some(&"queue") => {
            let pending = world.runs.all.iter().filter(|run| run.status == "pending");
            let all = pending.map(|run| {
                let mut data = run.data();
                data["attributes"]["position-in-queue"] = 3.into();
                data
            });
            let all: Vec<Value> = all.collect();
            document(&json!({"data": all, "meta": {"pagination": {"current-page": 1, "total-pages": 1}}}))
        }
        _ => document(
            &json!({"data": {"id": "org", "type": "organization-capacity", "attributes": {"pending": 3, "running": 1}}}),
        ),
    }
}

/// Accepts the upload of a configuration, and notes the names of its files.
pub fn slug(world: &mut World, request: &Request, id: &str) -> Reply {
    assert_eq!((request.method(), request.header("authorization")), ("PUT", ""));
    let Some(configuration) = world.runs.configurations.iter_mut().find(|c| c.id == id) else {
        return Reply::status(404);
    };
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(&*request.body));
    let mut names = Vec::new();
    for entry in archive.entries().expect("an archive") {
        let mut entry = entry.expect("an entry");
        let mut text = Vec::new();
        entry.read_to_end(&mut text).expect("its content");
        names.push(entry.path().expect("a name").display().to_string());
    }
    names.sort();
    configuration.files = Some(names);
    Reply::status(200)
}

/// Returns a piece of the log of a plan or an apply. The whole log begins and ends with a mark. When the end of the
/// log of an apply is read, its run is applied.
pub fn log(world: &mut World, id: &str, query: &BTreeMap<String, String>) -> Reply {
    let (kind, number) = id.split_once('-').expect("an identifier");
    let Some(run) = run_of(world, number) else {
        return Reply::status(404);
    };
    let text = match kind {
        "plan" => &run.script.plan_log,
        _ => &run.script.apply_log,
    };
    let text = format!("\u{2}{text}\u{3}").into_bytes();
    let offset: usize = query["offset"].parse().expect("a number");
    let limit: usize = query["limit"].parse().expect("a number");
    // The first piece contains only the start mark.
    let piece = if offset == 0 { 1 } else { PIECE.min(limit) };
    let piece: Vec<u8> = text.into_iter().skip(offset).take(piece).collect();
    if kind == "apply" && piece.ends_with(b"\x03") {
        run.status = "applied".to_owned();
    }
    Reply::ok(piece)
}

fn run_of<'w>(world: &'w mut World, number: &str) -> Option<&'w mut Run> {
    let id = format!("run-{number}");
    world.runs.all.iter_mut().find(|run| run.id == id)
}

/// Answers requests about configuration versions, runs and parts of runs, except uploads, logs and the run queue.
pub fn answer(
    world: &mut World,
    method: &str,
    parts: &[&str],
    query: &BTreeMap<String, String>,
    sent: &Value,
) -> Reply {
    if let ("POST", ["runs"]) = (method, parts) {
        return start(world, sent);
    }
    let host = world.host.clone();
    let id = parts.get(1).copied().unwrap_or_default();
    if parts[0] == "configuration-versions" {
        let found = world.runs.configurations.iter().find(|c| c.id == id);
        return found.map_or_else(
            || problem(404, "not found"),
            |c| {
                let status = if c.files.is_some() { "uploaded" } else { "pending" };
                document(&json!({"data": {"id": id, "type": parts[0], "attributes": {"status": status}}}))
            },
        );
    }
    let number = id.split_once('-').map_or("", |(_, number)| number).to_owned();
    let include = query.get("include").cloned().unwrap_or_default();
    let workspace_of = |world: &mut World, id: &str| {
        let (name, workspace) = world.by_id(id).expect("a workspace");
        workspace_data(&name.clone(), workspace)
    };
    let Some(run) = run_of(world, &number) else {
        return problem(404, "not found");
    };
    let step = |status: &str| if status == "pending" { "pending" } else { "finished" };
    let part = |kind: &str, run: &Run| {
        let status = if run.script.plan_fails {
            "errored"
        } else {
            step(&run.status)
        };
        json!({"id": format!("{kind}-{number}"), "type": if kind == "plan" { "plans" } else { "applies" }, "attributes": {
            "status": status, "has-changes": run.script.has_changes, "log-read-url": format!("https://{host}/logs/{kind}-{number}"),
        }})
    };
    match (method, parts) {
        ("GET", ["runs", _]) => {
            run.go_on(false);
            let mut included = Vec::new();
            if include.contains("plan") {
                included.push(part("plan", run));
            }
            if include.contains("task_stages")
                && let Some(stage) = run.stage(&mut Vec::new())
            {
                included.push(stage);
            }
            let (data, workspace) = (run.data(), run.workspace.clone());
            if include.contains("workspace") {
                included.push(workspace_of(world, &workspace));
            }
            document(&json!({"data": data, "included": included}))
        }
        ("GET", ["runs", _, "run-events"]) => {
            let event = |text| {
                json!({"id": "re-1", "type": "run-events", "attributes": {
                    "action": "changed_task_enforcements", "description": text,
                }})
            };
            let all: Vec<Value> = run.script.warning.iter().map(event).collect();
            document(&json!({ "data": all }))
        }
        ("POST", ["runs", _, "actions", action]) => {
            run.status = match *action {
                "apply" => "confirmed",
                "discard" => "discarded",
                _ => "canceled",
            }
            .to_owned();
            Reply::status(202)
        }
        ("GET", ["plans", _, "json-output-redacted" | "json-output"]) => {
            Reply::ok(run.script.redacted.to_string()).with("Content-Type", "application/json")
        }
        ("GET", ["plans", _]) => document(&json!({"data": part("plan", run)})),
        ("GET", ["applies", _]) => document(&json!({"data": part("apply", run)})),
        ("GET", ["cost-estimates", _]) => {
            document(&json!({"data": {"id": id, "type": "cost-estimates", "attributes": run.script.cost}}))
        }
        ("GET", ["policy-checks", _, "output"]) => Reply::ok("The policies of the organization.\n"),
        ("POST", ["policy-checks", _, "actions", "override"]) => {
            run.script.policy = run.script.policy.map(|(scope, _)| (scope, "overridden"));
            run.go_on(true);
            document(&json!({"data": {"id": id, "type": "policy-checks", "attributes": {"status": "overridden"}}}))
        }
        ("GET", ["policy-checks", _]) => {
            let (scope, status) = run.script.policy.unwrap_or_default();
            document(&json!({"data": {"id": id, "type": "policy-checks", "attributes": {
                "scope": scope, "status": status, "actions": {"is-overridable": true}, "permissions": {"can-override": true},
            }}}))
        }
        ("GET", ["task-stages", _]) => {
            run.stage_seen += 1;
            let mut included = Vec::new();
            let stage = run.stage(&mut included);
            document(&json!({"data": stage, "included": included}))
        }
        ("POST", ["task-stages", _, "actions", "override"]) => {
            run.stage_overridden = true;
            document(&json!({"data": run.stage(&mut Vec::new())}))
        }
        _ => problem(404, "not found"),
    }
}

fn start(world: &mut World, sent: &Value) -> Reply {
    assert_eq!(sent["data"]["type"], "runs");
    let link = |name: &str| {
        let id = sent["data"]["relationships"][name]["data"]["id"].as_str();
        id.expect("a relation").to_owned()
    };
    let (workspace, configuration) = (link("workspace"), link("configuration-version"));
    let configuration = world.runs.configurations.iter().find(|c| c.id == configuration);
    let configuration = configuration.expect("it was created");
    assert!(configuration.files.is_some(), "it was uploaded");
    let speculative = configuration.attributes["speculative"] == true;
    let run = Run {
        id: world.id("run"),
        workspace: workspace.clone(),
        asked: sent.clone(),
        status: "pending".to_owned(),
        script: world.runs.script.clone(),
        asked_about: 0,
        speculative,
        stage_seen: 0,
        stage_overridden: false,
    };
    let data = run.data();
    if !speculative && let Some((_, workspace)) = world.by_id(&workspace) {
        workspace.current_run = Some(run.id.clone());
    }
    world.runs.all.push(run);
    created(data)
}
