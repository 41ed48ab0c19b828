//! A fake of HCP Terraform's API, which checks requests against the published interface and answers according to it. Terraform uses the
//! same fake in these tests, which shows that the fake is right.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use support::server::{Reply, Request, Server, decoded};

use crate::hcp_runs::{self, Runs};
pub const TOKEN: &str = "the-token";
const JSON_API: &str = "application/vnd.api+json";

/// Number of workspaces on a page.
const PAGE: usize = 2;

/// A workspace of the organization `org`.
#[derive(Default)]
pub struct Remote {
    pub id: String,
    pub version: String,
    pub mode: String,
    pub tags: BTreeMap<String, String>,
    pub project: Option<String>,
    pub locked: bool,
    pub auto_apply: bool,
    pub structured: bool,
    pub repository: bool,
    pub working_directory: String,
    pub current_run: Option<String>,
    /// Variables, as the attributes of their documents.
    pub variables: Vec<Value>,
    /// Versions of the state: their documents, and their texts after the upload.
    pub states: Vec<(Value, Option<Vec<u8>>)>,
}

/// Content of the fake, the requests that it has received, and faults of its answers.
#[derive(Default)]
pub struct World {
    pub workspaces: BTreeMap<String, Remote>,
    pub projects: Vec<String>,
    /// Requests to the API, with the attributes that they send.
    pub log: Vec<String>,
    count: u32,
    /// Statuses of the answers to the next requests.
    pub disturbance: Vec<u16>,
    /// True if new states are refused.
    pub refuses: bool,
    /// Runs and their parts.
    pub runs: Runs,
    /// Host name of the last request.
    pub host: String,
}

impl World {
    pub fn id(&mut self, kind: &str) -> String {
        self.count += 1;
        format!("{kind}-{:016}", self.count)
    }

    pub fn by_id(&mut self, id: &str) -> Option<(&String, &mut Remote)> {
        self.workspaces.iter_mut().find(|(_, w)| w.id == id)
    }
}

/// A server with its content.
pub struct Hcp {
    pub server: Server,
    world: Arc<Mutex<World>>,
}

impl Hcp {
    pub fn start() -> Hcp {
        let world = Arc::new(Mutex::new(World::default()));
        let kept = world.clone();
        let server = Server::https(move |request| {
            let mut world = kept.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            answer(&mut world, request)
        });
        Hcp { server, world }
    }

    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().expect("no panic in the fake")
    }

    pub fn host(&self) -> String {
        self.server.host().replace("127.0.0.1", "localhost")
    }

    /// Returns the requests so far, without those of service discovery.
    pub fn log(&self) -> Vec<String> {
        std::mem::take(&mut self.world().log)
    }
}

pub fn problem(status: u16, title: &str) -> Reply {
    let document = json!({"errors": [{"status": status.to_string(), "title": title}]});
    Reply::new(status, document.to_string()).with("Content-Type", JSON_API)
}

pub fn document(value: &Value) -> Reply {
    Reply::ok(value.to_string()).with("Content-Type", JSON_API)
}

pub fn workspace_data(name: &str, workspace: &Remote) -> Value {
    let current = workspace
        .current_run
        .as_ref()
        .map(|id| json!({"type": "runs", "id": id}));
    let repository = workspace.repository.then(|| json!({"identifier": "a/b"}));
    json!({
        "id": workspace.id, "type": "workspaces",
        "attributes": {
            "name": name, "execution-mode": workspace.mode, "terraform-version": workspace.version,
            "tag-names": workspace.tags.keys().collect::<Vec<_>>(), "locked": workspace.locked, "operations": true,
            "auto-apply": workspace.auto_apply, "structured-run-output-enabled": workspace.structured,
            "working-directory": workspace.working_directory, "vcs-repo": repository,
            "permissions": {
                "can-update": true, "can-force-delete": true, "can-queue-run": true, "can-queue-apply": true, "can-unlock": true,
            },
        },
        "relationships": {
            "current-run": {"data": current},
            "organization": {"data": {"type": "organizations", "id": "org"}},
        },
    })
}

/// Decodes the parameters of a query.
fn query(request: &Request) -> BTreeMap<String, String> {
    let target = request.line.split(' ').nth(1).unwrap_or_default();
    let pairs = target.split_once('?').map_or("", |(_, query)| query).split('&');
    pairs
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (decoded(name), decoded(&value.replace('+', " "))))
        .collect()
}

fn answer(world: &mut World, request: &Request) -> Reply {
    let path = decoded(request.path());
    match path.as_str() {
        "/.well-known/terraform.json" => {
            return Reply::json(r#"{"tfe.v2":"/api/v2/","tfe.v2.1":"/api/v2/","state.v2":"/api/v2/"}"#);
        }
        "/api/v2/ping" => {
            return Reply::status(204)
                .with("TFP-API-Version", "2.6")
                .with("TFP-AppName", "HCP Terraform")
                .with("X-RateLimit-Limit", "500");
        }
        _ => {}
    }
    if let Some(id) = path.strip_prefix("/files/") {
        return file(world, request, id);
    }
    if let Some(id) = path.strip_prefix("/logs/") {
        return hcp_runs::log(world, id, &query(request));
    }
    if let Some(id) = path.strip_prefix("/slugs/") {
        return hcp_runs::slug(world, request, id);
    }
    let Some(path) = path.strip_prefix("/api/v2/") else {
        return Reply::status(404);
    };
    if request.header("authorization") != format!("Bearer {TOKEN}") {
        return problem(401, "unauthorized");
    }
    let accepted = match path.ends_with("/json-output-redacted") {
        true => "application/json",
        false => JSON_API,
    };
    assert_eq!(request.header("accept"), accepted, "{}", request.line);
    assert!(!request.header("terraform-version").is_empty(), "{}", request.line);
    if let Some(status) = world.disturbance.pop() {
        return problem(status, "disturbed");
    }
    let sent: Value = match request.body.as_slice() {
        [] => Value::Null,
        body => {
            assert_eq!(request.header("content-type"), JSON_API, "{}", request.line);
            serde_json::from_slice(body).expect("JSON")
        }
    };
    request.header("host").clone_into(&mut world.host);
    note(world, request, path, &sent);
    let parts: Vec<&str> = path.split('/').collect();
    match (request.method(), parts.as_slice()) {
        (method, ["organizations", "org", "runs" | "capacity", ..]) => hcp_runs::queue(world, method, &parts),
        (method, ["organizations", "org", rest @ ..]) => organization(world, method, rest, &query(request), &sent),
        (method, ["workspaces", id, rest @ ..]) => {
            let request = (method, rest, &sent, request.header("host"));
            workspace(world, id, request)
        }
        (
            method,
            [
                "runs"
                | "plans"
                | "applies"
                | "configuration-versions"
                | "policy-checks"
                | "cost-estimates"
                | "task-stages"
                | "policy-evaluations",
                ..,
            ],
        ) => hcp_runs::answer(world, method, &parts, &query(request), &sent),
        ("GET", ["state-version-outputs", id]) => {
            let name = id.trim_start_matches("wsout-");
            let mut texts = world
                .workspaces
                .values()
                .flat_map(|w| &w.states)
                .filter_map(|(_, text)| text.as_ref());
            let state: Option<Value> = texts.next_back().and_then(|text| serde_json::from_slice(text).ok());
            let value = state.map(|state| state["outputs"][name]["value"].clone());
            document(
                &json!({"data": {"id": id, "type": "state-version-outputs", "attributes": {"name": name, "value": value}}}),
            )
        }
        ("GET", ["state-versions", id]) => {
            let states = world.workspaces.values().flat_map(|w| &w.states);
            let found = states.into_iter().find(|(data, _)| data["id"] == *id);
            found.map_or_else(
                || problem(404, "not found"),
                |(data, _)| document(&json!({"data": data})),
            )
        }
        _ => problem(404, "not found"),
    }
}

/// Records a request in the form in which the requests of both programs are compared.
fn note(world: &mut World, request: &Request, path: &str, sent: &Value) {
    let mut line = format!("{} {path}", request.method());
    let ids: Vec<(String, String)> = world
        .workspaces
        .iter()
        .map(|(n, w)| (w.id.clone(), n.clone()))
        .collect();
    for (id, name) in ids {
        line = line.replace(&id, &format!("({name})"));
    }
    if line.ends_with("/actions/lock") {
        // The programs send the reason of a lock in different forms. The answer to the lock request checks it.
    } else if let Some(attributes) = sent.pointer("/data/attributes").and_then(Value::as_object) {
        assert!(sent["data"]["type"].is_string(), "{sent}");
        let mut names: Vec<_> = attributes.keys().map(String::as_str).collect();
        names.sort_unstable();
        let _ = write!(
            line,
            " {}: {}",
            sent["data"]["type"].as_str().unwrap_or_default(),
            names.join(" ")
        );
    } else if !sent.is_null() {
        let _ = write!(line, " {sent}");
    }
    world.log.push(line);
}

fn organization(
    world: &mut World,
    method: &str,
    rest: &[&str],
    query: &BTreeMap<String, String>,
    sent: &Value,
) -> Reply {
    match (method, rest) {
        ("GET", ["entitlement-set"]) => document(&json!({"data": {
            "id": "org-1", "type": "entitlement-sets", "attributes": {"operations": true, "state-storage": true},
        }})),
        ("GET", ["workspaces"]) => list(world, query),
        ("POST", ["workspaces"]) => create(world, sent),
        ("GET", ["workspaces", name]) => match world.workspaces.get(*name) {
            Some(workspace) => document(&json!({"data": workspace_data(name, workspace)})),
            None => problem(404, "not found"),
        },
        ("DELETE", ["workspaces", name]) | ("POST", ["workspaces", name, "actions", "safe-delete"]) => {
            match world.workspaces.remove(*name) {
                Some(_) => Reply::status(204),
                None => problem(404, "not found"),
            }
        }
        ("GET", ["projects"]) => {
            let project =
                |name: &String| json!({"id": format!("prj-{name}"), "type": "projects", "attributes": {"name": name}});
            let all: Vec<Value> = world.projects.iter().map(project).collect();
            document(&json!({"data": all, "meta": {"pagination": {"current-page": 1, "total-pages": 1}}}))
        }
        ("POST", ["projects"]) => {
            let name = sent["data"]["attributes"]["name"].as_str().expect("a name").to_owned();
            world.projects.push(name.clone());
            let data = json!({"id": format!("prj-{name}"), "type": "projects", "attributes": {"name": name}});
            Reply::new(201, json!({"data": data}).to_string()).with("Content-Type", JSON_API)
        }
        _ => problem(404, "not found"),
    }
}

fn list(world: &World, query: &BTreeMap<String, String>) -> Reply {
    let get = |name: &str| query.get(name).map_or("", String::as_str);
    let wanted: Vec<&str> = get("search[tags]").split(',').filter(|tag| !tag.is_empty()).collect();
    let fits = |name: &str, workspace: &Remote| {
        let tagged = (0..10).all(|i| {
            let key = get(&format!("filter[tagged][{i}][key]"));
            let value = get(&format!("filter[tagged][{i}][value]"));
            key.is_empty() || workspace.tags.get(key).is_some_and(|v| value.is_empty() || v == value)
        });
        let project = get("filter[project][id]");
        name.contains(get("search[name]"))
            && wanted.iter().all(|tag| workspace.tags.contains_key(*tag))
            && tagged
            && (project.is_empty() || workspace.project.as_deref() == Some(project))
    };
    let all: Vec<_> = world.workspaces.iter().filter(|(name, w)| fits(name, w)).collect();
    let page: usize = get("page[number]").parse().unwrap_or(1).max(1);
    let pages = all.len().div_ceil(PAGE).max(1);
    let shown = all.iter().skip((page - 1) * PAGE).take(PAGE);
    let data: Vec<Value> = shown.map(|(name, workspace)| workspace_data(name, workspace)).collect();
    let next = (page < pages).then_some(page + 1);
    document(&json!({"data": data, "meta": {"pagination": {
        "current-page": page, "prev-page": null, "next-page": next, "total-pages": pages, "total-count": all.len(),
    }}}))
}

fn create(world: &mut World, sent: &Value) -> Reply {
    let data = &sent["data"];
    assert_eq!(data["type"], "workspaces");
    let name = data["attributes"]["name"].as_str().expect("a name").to_owned();
    if world.workspaces.contains_key(&name) {
        return problem(422, "Name has already been taken");
    }
    let mut tags = BTreeMap::new();
    for tag in data
        .pointer("/relationships/tags/data")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        assert_eq!(tag["type"], "tags");
        tags.insert(
            tag["attributes"]["name"].as_str().expect("a name").to_owned(),
            String::new(),
        );
    }
    bind(&mut tags, data.pointer("/relationships/tag-bindings/data"));
    let version = data["attributes"]["terraform-version"]
        .as_str()
        .unwrap_or("1.0.0")
        .to_owned();
    let workspace = Remote {
        id: world.id("ws"),
        version,
        mode: "local".to_owned(),
        tags,
        project: data
            .pointer("/relationships/project/data/id")
            .and_then(Value::as_str)
            .map(str::to_owned),
        ..Remote::default()
    };
    let reply = json!({"data": workspace_data(&name, &workspace)});
    world.workspaces.insert(name, workspace);
    Reply::new(201, reply.to_string()).with("Content-Type", JSON_API)
}

fn bind(tags: &mut BTreeMap<String, String>, bindings: Option<&Value>) {
    for tag in bindings.and_then(Value::as_array).into_iter().flatten() {
        assert_eq!(tag["type"], "tag-bindings");
        let text = |name: &str| tag["attributes"][name].as_str().unwrap_or_default().to_owned();
        tags.insert(text("key"), text("value"));
    }
}

fn workspace(world: &mut World, id: &str, (method, rest, sent, host): (&str, &[&str], &Value, &str)) -> Reply {
    let new_state = world.id("sv");
    let refuses = world.refuses;
    let Some((name, workspace)) = world.by_id(id) else {
        return problem(404, "not found");
    };
    let name = name.clone();
    match (method, rest) {
        ("PATCH", []) => {
            if let Some(version) = sent["data"]["attributes"]["terraform-version"].as_str() {
                version.clone_into(&mut workspace.version);
            }
            document(&json!({"data": workspace_data(&name, workspace)}))
        }
        ("GET", ["tag-bindings"]) => {
            let all = workspace.tags.iter().map(
                |(key, value)| json!({"id": key, "type": "tag-bindings", "attributes": {"key": key, "value": value}}),
            );
            document(&json!({"data": all.collect::<Vec<_>>()}))
        }
        ("PATCH", ["tag-bindings"]) => {
            bind(&mut workspace.tags, sent.get("data"));
            document(&json!({"data": []}))
        }
        ("POST", ["actions", "lock"]) => {
            // The documentation puts the reason at the top; Terraform sends it as the attribute of a document without a
            // type.
            let reason = sent.get("reason").or_else(|| sent.pointer("/data/attributes/reason"));
            assert_eq!(reason, Some(&json!("Locked by Terraform")));
            if std::mem::replace(&mut workspace.locked, true) {
                return problem(409, "already locked");
            }
            document(&json!({"data": workspace_data(&name, workspace)}))
        }
        ("POST", ["actions", "unlock" | "force-unlock"]) => {
            if !std::mem::replace(&mut workspace.locked, false) {
                return problem(409, "already unlocked");
            }
            document(&json!({"data": workspace_data(&name, workspace)}))
        }
        ("GET", ["current-state-version"]) => match workspace.states.iter().rev().find(|(_, text)| text.is_some()) {
            Some((data, _)) => document(&json!({ "data": data })),
            None => problem(404, "not found"),
        },
        ("GET", ["current-state-version-outputs"]) => outputs(workspace),
        ("GET", ["all-vars" | "vars"]) => {
            let all = workspace.variables.iter().enumerate();
            let all: Vec<Value> = all
                .map(|(i, v)| json!({"id": format!("var-{i}"), "type": "vars", "attributes": v}))
                .collect();
            document(&json!({ "data": all }))
        }
        (method, ["configuration-versions" | "runs"]) => hcp_runs::of_workspace(world, method, id, rest, sent, host),
        ("POST", ["state-versions"]) if refuses => {
            assert_eq!(sent["data"]["type"], "state-versions");
            problem(422, "the state is refused")
        }
        ("POST", ["state-versions"]) => {
            let attributes = &sent["data"]["attributes"];
            if !workspace.locked {
                return problem(409, "the workspace is not locked");
            }
            if let Some((last, _)) = workspace.states.iter().rev().find(|(_, text)| text.is_some()) {
                let last = &last["attributes"];
                let newer =
                    attributes["serial"].as_u64() > last["serial"].as_u64() && attributes["lineage"] == last["lineage"];
                if !newer && attributes["force"] != true {
                    return problem(409, "conflict: an older or unrelated state");
                }
            }
            let mut attributes = attributes.clone();
            let file = format!("https://{host}/files/{new_state}");
            attributes["hosted-state-upload-url"] = file.as_str().into();
            attributes["hosted-state-download-url"] = file.as_str().into();
            attributes["hosted-json-state-upload-url"] = format!("{file}.json").into();
            attributes["status"] = "pending".into();
            let data = json!({"id": new_state, "type": "state-versions", "attributes": attributes});
            workspace.states.push((data.clone(), None));
            Reply::new(201, json!({ "data": data }).to_string()).with("Content-Type", JSON_API)
        }
        _ => problem(404, "not found"),
    }
}

/// Returns the outputs of the newest state, which Terraform reads instead of the state.
fn outputs(workspace: &Remote) -> Reply {
    let Some((_, Some(text))) = workspace.states.iter().rev().find(|(_, text)| text.is_some()) else {
        return problem(404, "not found");
    };
    let state: Value = serde_json::from_slice(text).expect("a state");
    let output = |(name, output): (&String, &Value)| {
        json!({"id": format!("wsout-{name}"), "type": "state-version-outputs", "attributes": {
            "name": name, "sensitive": output["sensitive"] == true, "type": "string", "detailed-type": output["type"],
            "value": if output["sensitive"] == true { Value::Null } else { output["value"].clone() },
        }})
    };
    let all: Vec<Value> = state["outputs"].as_object().into_iter().flatten().map(output).collect();
    document(&json!({ "data": all }))
}

/// Answers uploads and downloads of states.
fn file(world: &mut World, request: &Request, id: &str) -> Reply {
    if id.ends_with(".json") {
        return Reply::status(200);
    }
    let all = world.workspaces.values_mut().flat_map(|w| &mut w.states);
    let Some((data, text)) = all.into_iter().find(|(data, _)| data["id"] == id) else {
        return Reply::status(404);
    };
    match (request.method(), &text) {
        ("PUT", None) => {
            assert_eq!(request.header("authorization"), "", "the address is secret enough");
            let attributes = &data["attributes"];
            let state: Value = serde_json::from_slice(&request.body).expect("a state");
            assert_eq!(state["serial"], attributes["serial"]);
            assert_eq!(state["lineage"], attributes["lineage"]);
            assert_eq!(attributes["md5"].as_str().map(str::len), Some(32));
            let outputs = attributes["json-state-outputs"].as_str().expect("outputs");
            let outputs: Value = serde_json::from_slice(&BASE64.decode(outputs).expect("Base64")).expect("JSON");
            let names = |value: &Value| {
                value
                    .as_object()
                    .map(|o| o.keys().cloned().collect::<Vec<_>>())
                    .unwrap_or_default()
            };
            assert_eq!(names(&outputs), names(&state["outputs"]));
            for (name, output) in outputs.as_object().into_iter().flatten() {
                assert_eq!(output["value"], state["outputs"][name]["value"]);
                assert!(
                    output["sensitive"].is_boolean() && !output["type"].is_null(),
                    "{output}"
                );
            }
            data["attributes"]["status"] = "finalized".into();
            *text = Some(request.body.clone());
            Reply::status(200)
        }
        ("GET", Some(text)) => Reply::ok(text.clone()).with("Content-Type", "application/json"),
        _ => Reply::status(409),
    }
}
