//! HCP Terraform: a fake of its API, which checks that requests are those that are published, and answers as it is published.
//! Terraform makes its requests to the same fake, which keeps it honest.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};
use support::server::{Reply, Request, Server, decoded};
use support::{Workspace, which};

use crate::hcp_runs::{self, Runs};
use crate::lab::{Lab, RESOURCE, Tool, run};

pub const TESTS: &[(&str, fn())] = &[
    ("requests_are_those_of_terraform", requests),
    ("workspaces_by_prefix_are_the_same_to_both", prefixes),
    ("what_leads_nowhere_is_an_error", errors),
    ("a_busy_server_is_asked_again", busy),
    (
        "a_state_that_is_refused_is_kept_and_the_workspace_stays_locked",
        refused,
    ),
    ("tokens_come_from_where_terraform_has_them", tokens),
    ("a_relative_cli_configuration_is_found_with_chdir", chdir),
    ("a_version_that_does_not_fit_is_refused_or_ignored", version_check),
    ("cloud::a_local_state_is_brought_to_the_named_workspace", cloud_by_name),
    ("cloud::workspaces_with_tags_are_the_same_to_both", cloud_by_tags),
    ("cloud::what_the_environment_adds", cloud_environment),
    ("cloud::outputs_are_read_without_the_state", cloud_outputs),
    ("cloud::options_and_changes", cloud_options),
    ("cloud::several_workspaces_are_renamed_by_a_pattern", cloud_pattern),
];

const TOKEN: &str = "the-token";
const JSON_API: &str = "application/vnd.api+json";

/// How many workspaces are on a page.
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
    /// Variables: documents of their attributes.
    pub variables: Vec<Value>,
    /// Versions of the state: their documents, and their texts once they are there.
    pub states: Vec<(Value, Option<Vec<u8>>)>,
}

/// What the fake keeps.
#[derive(Default)]
pub struct World {
    pub workspaces: BTreeMap<String, Remote>,
    pub projects: Vec<String>,
    /// Requests to the API, with the attributes that they send.
    pub log: Vec<String>,
    count: u32,
    /// What the next requests to the API are answered with.
    pub disturbance: Vec<u16>,
    /// Whether new states are refused.
    pub refuses: bool,
    /// Runs and what belongs to them.
    pub runs: Runs,
    /// The name by which it was asked last.
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

/// A server with its world.
pub struct Hcp {
    server: Server,
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

    /// The requests so far, without those that only find the way.
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

/// Parameters of a query, decoded.
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

/// Writes down what is asked, in the form in which the requests of both programs are compared.
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
        // See there.
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
            // The documentation has it plain; Terraform sends it as a document without a type.
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

/// The outputs of the newest state, which Terraform reads in place of the state.
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

/// Where states are uploaded to and downloaded from.
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

/// A lab whose block says this about workspaces.
pub fn made(ty: &'static str, workspaces: &str) -> (Lab, Arc<Hcp>) {
    let hcp = Arc::new(Hcp::start());
    let files = tempfile::tempdir().expect("a directory");
    let certificate = files.path().join("ca.pem");
    std::fs::write(&certificate, &hcp.server.certificate).expect("the certificate");
    let lab = Lab {
        ty,
        settings: format!(
            "hostname = \"{}\"\norganization = \"org\"\ntoken = \"{TOKEN}\"\nworkspaces {{\n{workspaces}\n}}",
            hcp.host()
        ),
        environment: vec![("SSL_CERT_FILE".to_owned(), certificate.display().to_string())],
        workspaces: false,
        named_locks: true,
        peer: Tool::Terraform,
        recorder: Tool::Terraform,
        server: Box::new((hcp.clone(), files)),
    };
    (lab, hcp)
}

pub fn lab() -> Lab {
    made("remote", "name = \"only\"").0
}

/// How many states there are of a configuration that every tool has applied: Terraform 1.11 writes the state of a later release
/// again, without the attributes that its `terraform_data` does not have.
fn applied_by_all() -> usize {
    tools().len()
}

fn tools() -> Vec<Tool> {
    let theirs = which("terraform").map(|_| Tool::Terraform);
    [Some(Tool::Monoform), theirs].into_iter().flatten().collect()
}

/// Requests that change something are the same, in the same order.
fn requests() {
    let mut seen = Vec::new();
    for tool in tools() {
        let (lab, hcp) = made("remote", "name = \"only\"");
        let w = lab.without();
        w.write("backend.tf", &lab.block(""));
        run(&w, tool, &["init", "-input=false"]).ok();
        run(&w, tool, &["apply", "-auto-approve"]).ok();
        run(&w, tool, &["apply", "-auto-approve", "-var=word=y"]).ok();
        run(&w, tool, &["state", "rm", "terraform_data.a"]).ok();
        let changes: Vec<String> = hcp.log().into_iter().filter(|line| !line.starts_with("GET ")).collect();
        let world = hcp.world();
        let only = &world.workspaces["only"];
        assert!(!only.locked && only.states.len() == 3, "{changes:#?}");
        assert_eq!(only.version, lab_version(tool));
        seen.push(changes);
    }
    assert!(seen.windows(2).all(|two| two[0] == two[1]), "{seen:#?}");
}

fn lab_version(tool: Tool) -> String {
    let w = Workspace::new();
    let version = run(&w, tool, &["version", "-json"]).ok().json();
    version["terraform_version"].as_str().unwrap_or_default().to_owned()
}

fn names(w: &Workspace, tool: Tool) -> Vec<String> {
    let listed = run(w, tool, &["workspace", "list"]).ok().stdout;
    let names = listed.lines().map(|line| line.trim().to_owned());
    names.filter(|name| !name.is_empty()).collect()
}

fn prefixes() {
    let (lab, hcp) = made("remote", "prefix = \"app-\"");
    hcp.world()
        .workspaces
        .insert("other-app-x".to_owned(), Remote::default());
    for (i, tool) in tools().into_iter().enumerate() {
        let w = lab.without();
        w.write("backend.tf", &lab.block(""));
        if i == 0 {
            run(&w, tool, &["init", "-input=false"]).fails_with(&["No existing workspaces"]);
            for name in ["dev", "prod", "test"] {
                run(&w, tool, &["workspace", "new", name]).ok();
            }
        } else {
            run(&w, tool, &["init", "-input=false"]).fails_with(&["does not exist"]);
            w.write(".terraform/environment", "dev");
            run(&w, tool, &["init", "-input=false"]).ok();
            run(&w, tool, &["workspace", "select", "test"]).ok();
        }
        assert_eq!(names(&w, tool), ["dev", "prod", "* test"], "{tool:?}");
        run(&w, tool, &["apply", "-auto-approve", "-var=word=test"]).ok();
        run(&w, tool, &["workspace", "select", "prod"]).ok();
        let planned = run(&w, tool, &["plan"]).ok();
        assert!(planned.stdout.contains("1 to add"), "{}", planned.all());
        run(&w, tool, &["workspace", "new", "gone"]).ok();
        run(&w, tool, &["workspace", "select", "prod"]).ok();
        assert!(hcp.world().workspaces.contains_key("app-gone"));
        run(&w, tool, &["workspace", "delete", "gone"]).ok();
        assert!(!hcp.world().workspaces.contains_key("app-gone"));
    }
    assert_eq!(
        hcp.world().workspaces["app-test"].states.len(),
        applied_by_all(),
        "the second apply changes nothing"
    );
}

fn errors() {
    let (lab, hcp) = made("remote", "name = \"only\"");
    let host = hcp.host();
    for tool in tools() {
        let init = |from: &str, to: &str, expected: &[&str]| {
            let w = lab.without();
            let block = lab.block("");
            assert!(block.contains(from), "{from}");
            w.write("backend.tf", &block.replace(from, to));
            run(&w, tool, &["init", "-input=false"]).fails_with(expected);
        };
        init(
            "\"org\"",
            "\"no-org\"",
            &[&format!("Failed to read organization \"no-org\" at host {host}")],
        );
        init(TOKEN, "wrong", &["Failed to read organization \"org\""]);
        let nowhere = format!("token = \"{TOKEN}\"");
        init(
            &nowhere,
            "",
            &["Required token could not be found", &format!("login {host}")],
        );
        init(
            "name = \"only\"",
            "",
            &["Invalid workspaces configuration", "\"prefix\""],
        );
        init(
            "name = \"only\"",
            "name = \"only\"\nprefix = \"x\"",
            &["Invalid workspaces configuration"],
        );
        init("\"org\"", "\"\"", &["Invalid organization value"]);
    }
}

fn busy() {
    let (lab, hcp) = made("remote", "name = \"only\"");
    let w = lab.directory(Tool::Monoform);
    hcp.world().disturbance = vec![429, 503, 429];
    run(&w, Tool::Monoform, &["apply", "-auto-approve"]).ok();
    assert_eq!(hcp.world().workspaces["only"].states.len(), 1);
}

fn refused() {
    for tool in tools() {
        let (lab, hcp) = made("remote", "name = \"only\"");
        let w = lab.directory(tool);
        run(&w, tool, &["apply", "-auto-approve"]).ok();
        hcp.world().refuses = true;
        let failed = run(&w, tool, &["apply", "-auto-approve", "-var=word=y"]);
        assert_eq!(failed.status, 1, "{}", failed.all());
        assert!(w.exists("errored.tfstate"), "{tool:?}: {}", failed.all());
        assert!(hcp.world().workspaces["only"].locked, "{tool:?}");
        hcp.world().refuses = false;
        run(&w, tool, &["plan"]).fails_with(&["Error acquiring the state lock", "org/only"]);
        run(&w, tool, &["force-unlock", "-force", "org/other"]);
        assert!(hcp.world().workspaces["only"].locked, "{tool:?}");
        run(&w, tool, &["force-unlock", "-force", "org/only"]).ok();
        run(&w, tool, &["state", "push", "errored.tfstate"]).ok();
        let planned = run(&w, tool, &["plan", "-var=word=y"]).ok();
        assert!(planned.stdout.contains("No changes."), "{}", planned.all());
    }
}

fn tokens() {
    let (lab, hcp) = made("remote", "name = \"only\"");
    let host = hcp.host();
    for tool in tools() {
        for place in ["file", "variable", "helper"] {
            let mut w = lab.without();
            w.write("main.tf", RESOURCE);
            w.write(
                "backend.tf",
                &lab.block("").replace(&format!("token = \"{TOKEN}\""), ""),
            );
            let config = w.home().join(".terraform.d");
            std::fs::create_dir_all(config.join("plugins")).expect("a directory");
            match place {
                "file" => {
                    let text = json!({"credentials": {&*host: {"token": TOKEN}}}).to_string();
                    std::fs::write(config.join("credentials.tfrc.json"), text).expect("a file");
                }
                "variable" => w = w.env(&format!("TF_TOKEN_{host}"), TOKEN),
                _ => {
                    use std::os::unix::fs::PermissionsExt as _;
                    let helper = config.join("plugins/terraform-credentials-box");
                    std::fs::write(&helper, format!("#!/bin/sh\necho '{{\"token\":\"{TOKEN}\"}}'\n"))
                        .expect("a script");
                    std::fs::set_permissions(&helper, std::fs::Permissions::from_mode(0o755)).expect("a program");
                    std::fs::write(w.home().join(".terraformrc"), "credentials_helper \"box\" {}\n").expect("a file");
                }
            }
            run(&w, tool, &["init", "-input=false"]).ok();
        }
    }
}

fn chdir() {
    let (lab, hcp) = made("remote", "name = \"only\"");
    for tool in tools() {
        let w = lab.without().env("TF_CLI_CONFIG_FILE", "rc");
        let block = lab.block("").replace(&format!("token = \"{TOKEN}\""), "");
        w.write("sub/backend.tf", &block);
        w.write("sub/main.tf", RESOURCE);
        w.write(
            "rc",
            &format!("credentials \"{}\" {{\n  token = \"{TOKEN}\"\n}}\n", hcp.host()),
        );
        for command in [&["init", "-input=false"][..], &["apply", "-auto-approve"], &["output"]] {
            let args = [&["-chdir=sub"], command].concat();
            w.run_program(tool.path(), &args).ok();
        }
    }
}

fn version_check() {
    for tool in tools() {
        for ty in ["remote", "cloud"] {
            let (lab, hcp) = made("remote", "name = \"only\"");
            let w = match ty {
                "remote" => lab.directory(tool),
                _ => {
                    let w = cloud(&lab, &hcp, "name = \"only\"");
                    run(&w, tool, &["init", "-input=false"]).ok();
                    w
                }
            };
            run(&w, tool, &["apply", "-auto-approve"]).ok();
            {
                let mut world = hcp.world();
                let only = world.workspaces.get_mut("only").expect("it is there");
                (only.mode, only.version) = ("remote".to_owned(), "1.5.7".to_owned());
            }
            let mv = ["state", "mv", "terraform_data.a", "terraform_data.b"];
            let expected = match ty {
                "remote" => ["Terraform version mismatch", "org/only (1.5.7)"],
                _ => ["Incompatible Terraform version", "org/only (~> 1.5.0)"],
            };
            // Terraform colours the text here, and breaks its lines.
            let refused = run(&w, tool, &mv);
            assert_eq!(refused.status, 1, "{ty} {tool:?}: {}", refused.all());
            assert!(refused.stderr.contains(expected[0]), "{ty} {tool:?}: {}", refused.all());
            assert!(
                refused
                    .stderr
                    .contains(expected[1].split_once(' ').expect("two words").1),
                "{}",
                refused.all()
            );
            let ignored = [&mv[..2], &["-ignore-remote-version"], &mv[2..]].concat();
            let moved = run(&w, tool, &ignored).ok();
            assert!(moved.all().contains(expected[0]), "{ty} {tool:?}: {}", moved.all());
            let listed = run(&w, tool, &["state", "list"]).ok();
            assert_eq!(listed.stdout.trim(), "terraform_data.b");
        }
    }
}

/// A directory with a `cloud` block that says this, and perhaps more about workspaces.
pub fn cloud(lab: &Lab, hcp: &Hcp, workspaces: &str) -> Workspace {
    let w = lab.without();
    cloud_block(&w, hcp, workspaces);
    w
}

fn cloud_block(w: &Workspace, hcp: &Hcp, workspaces: &str) {
    let text = format!(
        "terraform {{\n  cloud {{\n    hostname = \"{}\"\n    organization = \"org\"\n    token = \"{TOKEN}\"\n    workspaces \
         {{\n{workspaces}\n    }}\n  }}\n}}\n",
        hcp.host()
    );
    w.write("cloud.tf", &text);
}

/// Runs a program that asks; each line answers one question.
pub fn asked(w: &Workspace, tool: Tool, args: &[&str], answers: &[&str]) -> support::Ran {
    use std::io::{Read as _, Write as _};
    use std::process::Stdio;
    let mut command = w.command(tool.path());
    command.args(args).arg("-no-color");
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    let mut stdout = child.stdout.take().expect("a pipe");
    let mut seen = Vec::new();
    for answer in answers {
        // Terraform loses what is written before it asks.
        let (mut byte, begin) = ([0], seen.len());
        while stdout.read(&mut byte).is_ok_and(|read| read == 1) {
            seen.push(byte[0]);
            if seen[begin..].ends_with(b"Enter a value:") {
                break;
            }
        }
        let _ = stdin.write_all(format!("{answer}\n").as_bytes());
    }
    drop(stdin);
    stdout.read_to_end(&mut seen).expect("the rest");
    let mut ran = support::ran(child.wait_with_output().expect("it ends"));
    ran.stdout = String::from_utf8_lossy(&seen).into_owned();
    ran
}

fn record(w: &Workspace) -> Value {
    serde_json::from_str(&w.read(".terraform/terraform.tfstate")).expect("JSON")
}

fn cloud_by_name() {
    let mut seen = Vec::new();
    for tool in tools() {
        let (lab, hcp) = made("cloud", "");
        let w = lab.without();
        run(&w, tool, &["apply", "-auto-approve"]);
        run(&w, tool, &["init"]).ok();
        run(&w, tool, &["apply", "-auto-approve"]).ok();
        cloud_block(&w, &hcp, "name = \"only\"");
        run(&w, tool, &["plan"]).fails_with(&["initialization required: please run"]);
        let init = asked(&w, tool, &["init"], &["yes"]);
        assert_eq!(init.status, 0, "{}", init.all());
        assert!(
            init.stdout.contains("HCP Terraform has been successfully initialized!"),
            "{}",
            init.all()
        );
        assert_eq!(w.read(".terraform/environment"), "only");
        assert_eq!(w.read("terraform.tfstate"), "", "the state has moved");
        for other in tools() {
            let planned = run(&w, other, &["plan"]).ok();
            assert!(planned.stdout.contains("No changes."), "{other:?}: {}", planned.all());
        }
        hcp.log();
        run(&w, tool, &["apply", "-auto-approve", "-var=word=y"]).ok();
        let listed = run(&w, tool, &["workspace", "list"]).ok();
        assert_eq!(listed.stdout.trim(), "* only");
        assert_ne!(run(&w, tool, &["workspace", "new", "other"]).status, 0);
        assert_eq!(run(&w, tool, &["output", "-raw", "word"]).ok().stdout, "y");
        let changes: Vec<String> = hcp.log().into_iter().filter(|line| !line.starts_with("GET ")).collect();
        let mut record = record(&w);
        record["backend"]["config"]["hostname"] = Value::Null;
        // The number of the block is of its host, too.
        assert!(record["backend"]["hash"].is_u64());
        record["backend"]["hash"] = Value::Null;
        record["terraform_version"] = Value::Null;
        seen.push((changes, record));
    }
    assert!(seen.windows(2).all(|two| two[0] == two[1]), "{seen:#?}");
}

fn cloud_by_tags() {
    for (tags, more) in [("[\"a\", \"b\"]", false), ("{ a = \"1\", b = \"x y\" }", true)] {
        let (lab, hcp) = made("cloud", "");
        hcp.world().workspaces.insert("other".to_owned(), Remote::default());
        for (i, tool) in tools().into_iter().enumerate() {
            let w = cloud(&lab, &hcp, &format!("tags = {tags}\nproject = \"web\""));
            if i == 0 {
                run(&w, tool, &["init", "-input=false"]).fails_with(&["No existing workspaces"]);
                let init = asked(&w, tool, &["init"], &["dev"]);
                assert_eq!(init.status, 0, "{}", init.all());
                run(&w, tool, &["workspace", "new", "prod"]).ok();
                run(&w, tool, &["workspace", "new", "test"]).ok();
            } else {
                let init = asked(&w, tool, &["init"], &["3"]);
                assert_eq!(init.status, 0, "{}", init.all());
            }
            assert_eq!(names(&w, tool), ["dev", "prod", "* test"], "{tool:?}");
            run(&w, tool, &["apply", "-auto-approve", "-var=word=same"]).ok();
            run(&w, tool, &["workspace", "new", "gone"]).ok();
            run(&w, tool, &["workspace", "select", "dev"]).ok();
            run(&w, tool, &["workspace", "delete", "gone"]).ok();
            let world = hcp.world();
            assert_eq!(world.projects, ["web"]);
            let dev = &world.workspaces["dev"];
            assert_eq!(dev.project.as_deref(), Some("prj-web"));
            let expected: &[(&str, &str)] = if more {
                &[("a", "1"), ("b", "x y")]
            } else {
                &[("a", ""), ("b", "")]
            };
            let found: Vec<(&str, &str)> = dev.tags.iter().map(|(key, value)| (&**key, &**value)).collect();
            assert_eq!(found, expected);
        }
        assert_eq!(hcp.world().workspaces["test"].states.len(), applied_by_all());
    }
}

fn cloud_environment() {
    let (lab, hcp) = made("cloud", "");
    for tool in tools() {
        let w = lab.without();
        w.write("cloud.tf", "terraform {\n  cloud {}\n}\n");
        run(&w, tool, &["init", "-input=false"])
            .fails_with(&["TF_CLOUD_ORGANIZATION", "Invalid workspaces configuration"]);
        let w = w
            .env("TF_CLOUD_HOSTNAME", hcp.host())
            .env("TF_CLOUD_ORGANIZATION", "org")
            .env("TF_CLOUD_PROJECT", "p")
            .env("TF_WORKSPACE", "from-env")
            .env(&format!("TF_TOKEN_{}", hcp.host()), TOKEN);
        run(&w, tool, &["init", "-input=false"]).ok();
        run(&w, tool, &["apply", "-auto-approve"]).ok();
        let config = &record(&w)["backend"]["config"];
        assert!(
            config["organization"].is_null() && config["hostname"].is_null(),
            "{config}"
        );
    }
    assert_eq!(hcp.world().workspaces["from-env"].states.len(), applied_by_all());
}

fn cloud_outputs() {
    for tool in tools() {
        let (lab, hcp) = made("cloud", "");
        let w = cloud(&lab, &hcp, "name = \"only\"");
        w.write(
            "more.tf",
            "output \"secret\" {\n  value     = \"s\"\n  sensitive = true\n}\noutput \"list\" {\n  value = [1, \"b\", true]\n}\n",
        );
        run(&w, tool, &["init", "-input=false"]).ok();
        run(&w, tool, &["apply", "-auto-approve"]).ok();
        hcp.log();
        assert_eq!(
            run(&w, tool, &["output", "-raw", "secret"]).ok().stdout,
            "s",
            "{tool:?}"
        );
        let all = run(&w, tool, &["output", "-json"]).ok().json();
        assert_eq!(all["list"]["value"], json!([1, "b", true]), "{tool:?}");
        assert_eq!(all["secret"]["sensitive"], true, "{tool:?}");
        assert_eq!(all["word"]["value"], "x", "{tool:?}");
        let log = hcp.log();
        assert!(
            log.iter().all(|line| !line.ends_with("/current-state-version")),
            "{tool:?}: {log:#?}"
        );
    }
}

fn cloud_options() {
    for tool in tools() {
        let (lab, hcp) = made("cloud", "");
        let w = cloud(&lab, &hcp, "name = \"one\"");
        for option in ["-reconfigure", "-migrate-state", "-force-copy", "-backend-config=x=y"] {
            run(&w, tool, &["init", option]).fails_with(&["Invalid command-line option"]);
        }
        run(&w, tool, &["init", "-input=false"]).ok();
        cloud_block(&w, &hcp, "name = \"two\"");
        run(&w, tool, &["plan"]).fails_with(&["HCP Terraform configuration block has changed"]);
        let init = run(&w, tool, &["init", "-input=false"]).ok();
        assert!(
            init.stdout.contains("HCP Terraform configuration has changed."),
            "{}",
            init.all()
        );
        assert_eq!(w.read(".terraform/environment"), "two");
        run(&w, tool, &["apply", "-auto-approve"]).ok();
        w.write("cloud.tf", "");
        run(&w, tool, &["plan"]).fails_with(&["Unsetting the previously set backend \"cloud\""]);
        let text =
            "Migrating state from HCP Terraform or Terraform Enterprise to another backend is not yet implemented";
        let left = run(&w, tool, &["init"]);
        assert_eq!(left.status, 1, "{}", left.all());
        let words = left
            .all()
            .replace('│', " ")
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(words.contains(text), "{}", left.all());
        cloud_block(&w, &hcp, "name = \"two\"\ntags = [\"x\"]");
        run(&w, tool, &["init"]).fails_with(&["Invalid workspaces configuration"]);
        w.write("cloud.tf", "terraform {\n  backend \"cloud\" {}\n}\n");
        run(&w, tool, &["init"]).fails_with(&["Unsupported backend type"]);
    }
}

fn cloud_pattern() {
    for tool in tools() {
        let (lab, hcp) = made("cloud", "");
        let w = lab.without();
        run(&w, tool, &["init"]).ok();
        run(&w, tool, &["apply", "-auto-approve", "-var=word=default"]).ok();
        for name in ["dev", "prod", "void"] {
            run(&w, tool, &["workspace", "new", name]).ok();
            if name != "void" {
                run(&w, tool, &["apply", "-auto-approve", &format!("-var=word={name}")]).ok();
            }
        }
        run(&w, tool, &["workspace", "select", "dev"]).ok();
        cloud_block(&w, &hcp, "tags = [\"app\"]");
        let init = asked(&w, tool, &["init"], &["main", "1", "app-*-eu"]);
        assert_eq!(init.status, 0, "{}", init.all());
        assert!(init.stdout.contains("Migration complete!"), "{}", init.all());
        let made: Vec<String> = hcp.world().workspaces.keys().cloned().collect();
        assert_eq!(made, ["app-dev-eu", "app-main-eu", "app-prod-eu"], "{tool:?}");
        assert_eq!(w.read(".terraform/environment"), "app-dev-eu");
        assert_eq!(run(&w, tool, &["output", "-raw", "word"]).ok().stdout, "dev");
    }
}
