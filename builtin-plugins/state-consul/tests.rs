//! Tests of the store with a fake agent: keys with indexes, transactions with a limit, sessions, locks, and the delay after the end
//! of a session. Each request is checked against the published API.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use monoform_sdk::StateClient;
use monoform_sdk::cty::Value;
use monoform_sdk::state_store::LockInfo;
use monoform_sdk_testing::state_store::{Abilities, client, conformance};
use serde_json::{Value as Json, json};
use store_client::testing::{Asked, Reply, Server};

use crate::store;

/// Size limit of a value or of a transaction in bytes.
const LIMIT: usize = 524_288;
/// Time for which a key cannot be locked after its session has ended. In a real agent it is five seconds.
const DELAY: Duration = Duration::from_millis(700);

#[derive(Clone, Default)]
struct Key {
    value: Vec<u8>,
    flags: u64,
    index: u64,
    session: Option<String>,
}

#[derive(Default)]
struct Cluster {
    keys: BTreeMap<String, Key>,
    sessions: Vec<String>,
    delayed: BTreeMap<String, Instant>,
    index: u64,
    made: u32,
}

impl Cluster {
    fn write(&mut self, name: &str, value: Vec<u8>) -> u64 {
        self.index += 1;
        let key = self.keys.entry(name.to_owned()).or_default();
        (key.value, key.index) = (value, self.index);
        self.index
    }

    fn end(&mut self, session: &str) {
        self.sessions.retain(|id| id != session);
        for (name, key) in &mut self.keys {
            if key.session.as_deref() == Some(session) {
                key.session = None;
                self.delayed.insert(name.clone(), Instant::now() + DELAY);
            }
        }
    }
}

fn yes(is_so: bool) -> Reply {
    Reply::new(200, is_so.to_string())
}

fn answer(cluster: &Mutex<Cluster>, asked: &Asked) -> Reply {
    let mut cluster = cluster.lock().unwrap();
    if asked.header("x-consul-token") != "good" {
        return Reply::new(403, "Permission denied");
    }
    assert_eq!(asked.query("dc").as_deref(), Some("dc1"));
    let path = asked.path().strip_prefix("/v1/").unwrap();
    match (asked.method.as_str(), path) {
        ("PUT", "txn") => transaction(&mut cluster, asked),
        ("PUT", "session/create") => {
            let json: Json = serde_json::from_slice(&asked.body).unwrap();
            assert_eq!(
                json,
                json!({"Name": "Consul API Lock", "TTL": "15s", "LockDelay": "5s"})
            );
            cluster.made += 1;
            let id = format!("{:08x}-0000-4000-8000-000000000001", cluster.made);
            cluster.sessions.push(id.clone());
            Reply::new(200, json!({"ID": id}).to_string())
        }
        ("PUT", path) if path.starts_with("session/renew/") => {
            let id = path.rsplit('/').next().unwrap();
            let found = cluster.sessions.iter().any(|session| session == id);
            Reply::new(if found { 200 } else { 404 }, "[]")
        }
        ("PUT", path) if path.starts_with("session/destroy/") => {
            cluster.end(path.rsplit('/').next().unwrap());
            yes(true)
        }
        (method, path) => {
            let name = percent_encoding::percent_decode_str(path.strip_prefix("kv/").unwrap());
            let name = name.decode_utf8().unwrap().into_owned();
            on_key(&mut cluster, method, &name, asked)
        }
    }
}

fn transaction(cluster: &mut Cluster, asked: &Asked) -> Reply {
    if asked.body.len() > LIMIT {
        let text = format!(
            "Request body({} bytes) too large, max size: {LIMIT} bytes. See https://",
            asked.body.len()
        );
        return Reply::new(413, text);
    }
    let json: Json = serde_json::from_slice(&asked.body).unwrap();
    assert_eq!(json.as_array().unwrap().len(), 1);
    let operation = &json[0]["KV"];
    let name = operation["Key"].as_str().unwrap();
    let value = BASE64.decode(operation["Value"].as_str().unwrap()).unwrap();
    let index = cluster.keys.get(name).map_or(0, |key| key.index);
    match operation["Verb"].as_str().unwrap() {
        "cas" if operation["Index"].as_u64() != Some(index) => {
            let errors = json!([{"OpIndex": 0, "What": format!("failed to set key {name:?}, index is stale")}]);
            return Reply::new(409, json!({"Results": null, "Errors": errors}).to_string());
        }
        "cas" | "set" => {}
        other => panic!("{other}"),
    }
    let index = cluster.write(name, value);
    Reply::new(
        200,
        json!({"Results": [{"KV": {"Key": name, "ModifyIndex": index}}], "Errors": null}).to_string(),
    )
}

fn on_key(cluster: &mut Cluster, method: &str, name: &str, asked: &Asked) -> Reply {
    assert!(!name.contains("//"), "Consul does not like {name}");
    match method {
        "GET" if asked.query("keys").is_some() => {
            assert_eq!(asked.query("separator").as_deref(), Some("/"));
            let mut names: Vec<String> = Vec::new();
            for key in cluster.keys.keys().filter(|key| key.starts_with(name)) {
                let rest = &key[name.len()..];
                let end = rest.find('/').map_or(key.len(), |at| name.len() + at + 1);
                names.push(key[..end].to_owned());
            }
            names.dedup();
            Reply::new(if names.is_empty() { 404 } else { 200 }, json!(names).to_string())
        }
        "GET" => match cluster.keys.get(name) {
            None => Reply::new(404, ""),
            Some(key) => {
                let mut json = json!({"Key": name, "Value": BASE64.encode(&key.value), "Flags": key.flags, "ModifyIndex": key.index});
                if let Some(session) = &key.session {
                    json["Session"] = session.as_str().into();
                }
                Reply::new(200, json!([json]).to_string())
            }
        },
        "PUT" if asked.body.len() > LIMIT => Reply::new(413, "too large"),
        "PUT" => {
            if let Some(session) = asked.query("acquire") {
                assert_eq!(asked.query("flags").as_deref(), Some("3304740253564472344"));
                assert!(cluster.sessions.contains(&session), "{session}");
                let is_free = cluster.keys.get(name).is_none_or(|key| key.session.is_none());
                let is_delayed = cluster.delayed.get(name).is_some_and(|end| *end > Instant::now());
                if !is_free || is_delayed {
                    return yes(false);
                }
                cluster.write(name, Vec::new());
                let key = cluster.keys.get_mut(name).unwrap();
                (key.session, key.flags) = (Some(session), 0x2ddc_cbc0_58a5_0c18);
                return yes(true);
            }
            if let Some(session) = asked.query("release") {
                let key = cluster.keys.get_mut(name).unwrap();
                let is_its = key.session.as_deref() == Some(session.as_str());
                if is_its {
                    key.session = None;
                }
                return yes(is_its);
            }
            cluster.write(name, asked.body.clone());
            yes(true)
        }
        "DELETE" if asked.query("recurse").is_some() => {
            cluster.keys.retain(|key, _| !key.starts_with(name));
            yes(true)
        }
        "DELETE" => {
            let index = cluster.keys.get(name).map(|key| key.index);
            let wanted = asked.query("cas").map(|text| text.parse().unwrap());
            if wanted.is_some() && wanted != index {
                return yes(false);
            }
            cluster.keys.remove(name);
            yes(true)
        }
        other => panic!("{other}"),
    }
}

async fn agent() -> (Server, Arc<Mutex<Cluster>>) {
    let cluster: Arc<Mutex<Cluster>> = Arc::default();
    let shared = cluster.clone();
    (Server::start(move |asked| answer(&shared, asked)).await, cluster)
}

async fn connect(server: &Server, more: &[(&str, Value)]) -> Arc<dyn StateClient> {
    let mut config = vec![
        ("path", "teams/a b".into()),
        ("address", server.address().trim_start_matches("http://").into()),
        ("datacenter", "dc1".into()),
        ("access_token", "good".into()),
    ];
    config.extend(more.iter().cloned());
    client(store(), &config).await.unwrap()
}

#[tokio::test]
async fn it_is_a_state_store() {
    let (server, cluster) = agent().await;
    let (one, other) = (connect(&server, &[]).await, connect(&server, &[]).await);
    conformance(&*one, &*other, Abilities::default()).await;
    assert_eq!(
        cluster.lock().unwrap().sessions,
        Vec::<String>::new(),
        "no session stays"
    );
    let keys: Vec<String> = cluster.lock().unwrap().keys.keys().cloned().collect();
    assert_eq!(keys, ["teams/a b"], "neither pieces nor locks stay");
}

#[tokio::test]
async fn it_is_a_state_store_with_compression_too() {
    let (server, cluster) = agent().await;
    let more = [("gzip", true.into()), ("path", "teams/".into())];
    let (one, other) = (
        connect(&server, &more).await,
        connect(&server, &[("path", "teams/".into())]).await,
    );
    conformance(
        &*one,
        &*one,
        Abilities {
            holder: true,
            ..Abilities::default()
        },
    )
    .await;
    one.write("default", b"{\"x\":1}".to_vec()).await.unwrap();
    assert_eq!(cluster.lock().unwrap().keys["teams/"].value[..2], [0x1f, 0x8b]);
    // Compression is recognized by the first byte, whatever the configuration says.
    assert_eq!(other.read("default").await.unwrap().unwrap(), b"{\"x\":1}");
}

#[tokio::test]
async fn without_locks_no_session_is_made() {
    let (server, _) = agent().await;
    let store = connect(&server, &[("lock", false.into())]).await;
    assert_eq!(store.lock("default", LockInfo::default()).await.unwrap(), "");
    store.unlock("default", "").await.unwrap();
    assert!(server.asked().is_empty());
}

#[tokio::test]
async fn large_states_are_in_pieces_as_terraform_has_them() {
    let (server, cluster) = agent().await;
    let store = connect(&server, &[]).await;
    let state = vec![b'x'; 2 * LIMIT];
    store.write("default", state.clone()).await.unwrap();
    let keys = cluster.lock().unwrap().keys.clone();
    // MD5 of 1048576 times "x", computed by another program.
    let sum = "b561f87202d04959e37588ee05cf5b10";
    let list: Json = serde_json::from_slice(&keys["teams/a b"].value).unwrap();
    assert_eq!(list["current-hash"], sum);
    let pieces: Vec<String> = (0..2).map(|i| format!("teams/a b/tfstate.{sum}/{i}")).collect();
    assert_eq!(list["chunks"], json!(pieces));
    assert!(pieces.iter().all(|piece| keys[piece].value.len() == LIMIT));
    // Damage to a piece is detected by the checksum.
    cluster.lock().unwrap().keys.get_mut(&pieces[1]).unwrap().value[0] = b'y';
    let problems = store.read("default").await.unwrap_err();
    assert!(
        problems.0[0].detail.contains("does not match the expected hash"),
        "{problems:?}"
    );
    store.write("default", b"{}".to_vec()).await.unwrap();
    assert_eq!(cluster.lock().unwrap().keys.keys().collect::<Vec<_>>(), ["teams/a b"]);
}

#[tokio::test]
async fn a_state_that_has_changed_is_not_overwritten() {
    let (server, _) = agent().await;
    let (one, other) = (connect(&server, &[]).await, connect(&server, &[]).await);
    one.write("default", b"1".to_vec()).await.unwrap();
    other.read("default").await.unwrap();
    other.write("default", b"2".to_vec()).await.unwrap();
    let problems = one.write("default", b"3".to_vec()).await.unwrap_err();
    assert!(
        problems.0[0].detail.contains("has written the state since it was read"),
        "{problems:?}"
    );
    assert_eq!(other.read("default").await.unwrap().unwrap(), b"2");
}

#[tokio::test]
async fn a_lock_that_was_taken_away_overwrites_nothing() {
    let (server, _) = agent().await;
    let (one, other) = (connect(&server, &[]).await, connect(&server, &[]).await);
    let info = || LockInfo::of_this_process("x");
    other.write("default", b"1".to_vec()).await.unwrap();
    let first = one.lock("default", info()).await.unwrap();
    assert_eq!(one.read("default").await.unwrap().unwrap(), b"1");
    other.unlock("default", &first).await.unwrap();
    let second = other.lock("default", info()).await.unwrap();
    let problems = one.write("default", b"2".to_vec()).await.unwrap_err();
    let detail = &problems.0[0].detail;
    assert!(
        detail.starts_with("lock lost: ") && detail.contains(&second),
        "{problems:?}"
    );
    other.read("default").await.unwrap();
    other.write("default", b"3".to_vec()).await.unwrap();
    other.unlock("default", &second).await.unwrap();
    // The lock was lost, so the write is refused, although nobody else holds the lock.
    one.write("default", b"2".to_vec()).await.unwrap_err();
    one.unlock("default", &first).await.unwrap();
    assert_eq!(other.read("default").await.unwrap().unwrap(), b"3");
}

#[tokio::test]
async fn lost_lock_is_reported() {
    let (server, cluster) = agent().await;
    let store = connect(&server, &[]).await;
    let id = store.lock("default", LockInfo::of_this_process("x")).await.unwrap();
    let info = cluster.lock().unwrap().keys["teams/a b/.lockinfo"].value.clone();
    let info = LockInfo::from_json(&info).unwrap();
    assert_eq!((info.id.as_str(), info.path.as_str()), (id.as_str(), "teams/a b"));
    assert_eq!(info.info, format!("consul session: {id}"));
    cluster.lock().unwrap().end(&id);
    let problems = store.unlock("default", &id).await.unwrap_err();
    assert!(problems.0[0].detail.contains("consul lock was lost"), "{problems:?}");
}

#[tokio::test]
async fn errors_are_reported_with_a_remedy() {
    let (server, _) = agent().await;
    let store = connect(&server, &[("access_token", "bad".into())]).await;
    let problems = store.read("default").await.unwrap_err();
    assert!(problems.0[0].detail.contains("key_prefix"), "{problems:?}");
    for (more, text) in [
        (("scheme", "ftp".into()), "http or https"),
        (("address", "tcp://x".into()), "Unknown protocol scheme"),
        (("cert_file", "x".into()), "key_file is not"),
        (("ca_file", "/does/not/exist".into()), "cannot be read"),
    ] {
        let problems = client(crate::store(), &[("path", "x".into()), more])
            .await
            .err()
            .unwrap();
        assert!(problems.0[0].detail.contains(text), "{problems:?}");
    }
}

#[tokio::test]
async fn answers_that_are_not_of_an_agent_are_errors() {
    for body in ["<html>log in</html>", "{}"] {
        let server = Server::start(move |asked: &Asked| match asked.query("keys") {
            None if asked.method == "GET" => Reply::new(404, ""),
            _ => Reply::new(200, body),
        })
        .await;
        let store = connect(&server, &[]).await;
        let listed = store.workspaces().await.unwrap_err();
        let deleted = store.delete("w").await.unwrap_err();
        for (problems, expected) in [(listed, "a list of keys"), (deleted, "true or false")] {
            let detail = &problems.0[0].detail;
            assert!(
                detail.contains(server.address()) && detail.contains(expected),
                "{detail}"
            );
        }
    }
}
