//! Tests of the store with a fake server that stores workspaces, locks and state versions.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use data_encoding::BASE64;
use files::Environment;
use monoform_sdk::cty::{Type, Value};
use monoform_sdk::state_store::{LockError, LockInfo, WorkspaceSupport};
use monoform_sdk::{Diagnostics, Result, StateClient, async_trait};
use monoform_sdk_testing::state_store::{Abilities, client, conformance};
use serde_json::{Value as Json, json};
use support::server::{Reply, Request, Server};

#[derive(Default)]
struct Workspace {
    locked: bool,
    state: Option<Vec<u8>>,
}

/// Workspaces by name. The names are also their IDs.
type World = BTreeMap<String, Workspace>;

fn data(name: &str) -> Json {
    json!({"id": name, "type": "workspaces", "attributes": {"name": name, "execution-mode": "local"}})
}

fn documented(data: Json) -> Reply {
    Reply::ok(json!({ "data": data }).to_string())
}

fn answer(world: &mut World, request: &Request) -> Reply {
    let path = request.path().to_owned();
    if let Some(name) = path.strip_prefix("/files/") {
        let Some(workspace) = world.get_mut(name) else {
            return Reply::status(404);
        };
        if request.method() == "PUT" {
            workspace.state = Some(request.body.clone());
        }
        return Reply::ok(workspace.state.clone().unwrap_or_default());
    }
    let parts: Vec<&str> = path.trim_start_matches("/api/v2/").split('/').collect();
    let sent: Json = serde_json::from_slice(&request.body).unwrap_or_default();
    let address = |name: &str| format!("http://{}/files/{name}", request.header("host"));
    match (request.method(), parts.as_slice()) {
        ("GET", ["organizations", "org", "entitlement-set"]) => documented(json!({"attributes": {"operations": true}})),
        ("GET", ["organizations", "org", "workspaces"]) => {
            let all: Vec<Json> = world.keys().map(|name| data(name)).collect();
            documented(all.into())
        }
        ("POST", ["organizations", "org", "workspaces"]) => {
            let name = sent["data"]["attributes"]["name"].as_str().unwrap_or_default();
            world.insert(name.to_owned(), Workspace::default());
            documented(data(name))
        }
        ("DELETE", ["organizations", "org", "workspaces", name]) => {
            world.remove(*name);
            Reply::status(204)
        }
        ("GET", ["organizations", "org", "workspaces", name]) if world.contains_key(*name) => documented(data(name)),
        (method, ["workspaces", name, rest @ ..]) => match (world.get_mut(*name), method, rest) {
            (Some(w), "POST", ["actions", "lock"]) if w.locked => Reply::status(409),
            (Some(w), "POST", ["actions", "unlock" | "force-unlock"]) if !w.locked => Reply::status(409),
            (Some(w), "POST", ["actions", action]) => {
                w.locked = *action == "lock";
                documented(data(name))
            }
            (Some(w), "GET", ["current-state-version"]) if w.state.is_some() => {
                documented(json!({"attributes": {"hosted-state-download-url": address(name)}}))
            }
            (Some(_), "POST", ["state-versions"]) => {
                documented(json!({"attributes": {"hosted-state-upload-url": address(name)}}))
            }
            _ => Reply::status(404),
        },
        _ => Reply::status(404),
    }
}

/// Client that wraps arbitrary bytes in states, because the server accepts only states.
struct States {
    client: Arc<dyn StateClient>,
    serial: AtomicU64,
}

#[async_trait]
impl StateClient for States {
    fn support(&self) -> WorkspaceSupport {
        self.client.support()
    }

    async fn workspaces(&self) -> Result<Vec<String>> {
        self.client.workspaces().await
    }

    async fn read(&self, workspace: &str) -> Result<Option<Vec<u8>>> {
        let state = self.client.read(workspace).await?;
        Ok(state.map(|state| {
            let state: Json = serde_json::from_slice(&state).unwrap();
            BASE64.decode(state["content"].as_str().unwrap().as_bytes()).unwrap()
        }))
    }

    async fn write(&self, workspace: &str, state: Vec<u8>) -> Result<()> {
        let serial = self.serial.fetch_add(1, Ordering::SeqCst);
        let state = json!({"version": 4, "serial": serial, "lineage": "l", "content": BASE64.encode(&state)});
        self.client.write(workspace, state.to_string().into_bytes()).await
    }

    async fn delete(&self, workspace: &str) -> Result<()> {
        self.client.delete(workspace).await
    }

    async fn lock(&self, workspace: &str, info: LockInfo) -> std::result::Result<String, LockError> {
        self.client.lock(workspace, info).await
    }

    async fn unlock(&self, workspace: &str, id: &str) -> Result<()> {
        self.client.unlock(workspace, id).await
    }
}

/// A server, and a CLI configuration with its address.
struct Scene {
    _server: Server,
    dir: tempfile::TempDir,
}

impl Scene {
    fn new() -> Scene {
        let world = Mutex::new(World::new());
        let server = Server::http(move |request| answer(&mut world.lock().unwrap(), request));
        let dir = tempfile::tempdir().unwrap();
        let url = server.url("/api/v2/");
        let text = format!("host \"tfe.example\" {{\n  services = {{\n    \"tfe.v2.1\" = \"{url}\"\n  }}\n}}\n");
        std::fs::write(dir.path().join("rc"), text).unwrap();
        Scene { _server: server, dir }
    }

    async fn open(&self, mapping: &str, value: &str) -> Result<Arc<dyn StateClient>> {
        let rc = self.dir.path().join("rc");
        let variables = [("TF_CLI_CONFIG_FILE".into(), rc.into_os_string())];
        let mut workspaces = vec![("name", Value::null(Type::String))];
        workspaces.push(("prefix", Value::null(Type::String)));
        workspaces.retain(|(name, _)| *name != mapping);
        workspaces.push((if mapping == "name" { "name" } else { "prefix" }, value.into()));
        let config = [
            ("hostname", "tfe.example".into()),
            ("organization", "org".into()),
            ("token", "t".into()),
            ("workspaces", Value::object(workspaces)),
        ];
        client(crate::remote("1.16.0", Environment::read(variables)), &config).await
    }

    async fn states(&self, mapping: &str, value: &str) -> States {
        States {
            client: self.open(mapping, value).await.unwrap(),
            serial: AtomicU64::new(1),
        }
    }
}

/// Locks do not tell their holders, and are released by the name of the workspace.
const ABILITIES: Abilities = Abilities {
    locks: true,
    holder: false,
    checks_id: true,
    force_unlock: false,
};

#[tokio::test]
async fn workspaces_with_a_prefix_are_a_state_store() {
    let scene = Scene::new();
    let (one, other) = (scene.states("prefix", "p-").await, scene.states("prefix", "p-").await);
    conformance(&one, &other, ABILITIES).await;
}

#[tokio::test]
async fn one_workspace_is_a_state_store() {
    let scene = Scene::new();
    let (one, other) = (scene.states("name", "only").await, scene.states("name", "only").await);
    conformance(&one, &other, ABILITIES).await;
}

#[tokio::test]
async fn a_lock_is_freed_by_the_name_of_the_workspace() {
    let scene = Scene::new();
    let (one, other) = (scene.states("name", "only").await, scene.states("name", "only").await);
    let info = LockInfo::of_this_process("OperationTypeApply");
    assert!(one.lock("default", info.clone()).await.is_ok());
    match other.lock("default", info.clone()).await {
        Err(LockError::Held { holder, .. }) => assert_eq!(holder.unwrap().id, "org/only"),
        _ => panic!("the lock is not held"),
    }
    assert!(other.unlock("default", "org/other").await.is_err());
    other.unlock("default", "org/only").await.unwrap();
    assert!(other.lock("default", info).await.is_ok());
}

fn summaries(problems: Diagnostics) -> Vec<String> {
    problems.0.into_iter().map(|problem| problem.summary).collect()
}

#[tokio::test]
async fn what_is_no_state_or_no_workspace_is_refused() {
    let scene = Scene::new();
    let one = scene.open("name", "only").await.unwrap();
    let refused = one.write("default", b"text".to_vec()).await.unwrap_err();
    assert_eq!(summaries(refused), ["Error writing the state"]);
    let refused = one.read("other").await.unwrap_err();
    assert_eq!(summaries(refused), ["Workspaces not supported"]);
    let prefixed = scene.open("prefix", "p-").await.unwrap();
    let refused = prefixed.read("default").await.unwrap_err();
    assert_eq!(summaries(refused), ["No default workspace"]);
}
