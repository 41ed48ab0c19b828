//! Tests of the store with a fake server that stores one state and one lock.

use std::sync::{Arc, Mutex};

use monoform_sdk::state_store::{LockError, LockInfo};
use monoform_sdk::{Diagnostics, StateClient};
use monoform_sdk_testing::state_store::{Abilities, client, conformance};
use store_client::testing::{Asked, Reply, Server};

use crate::store;

#[derive(Default)]
struct Kept {
    state: Option<Vec<u8>>,
    lock: Option<Vec<u8>>,
}

fn id(lock: &[u8]) -> String {
    LockInfo::from_json(lock).unwrap().id
}

/// Answers like common servers: if there is a lock, writing and unlocking require its ID.
fn answer(kept: &Mutex<Kept>, asked: &Asked) -> Reply {
    let mut kept = kept.lock().unwrap();
    match (asked.method.as_str(), asked.path()) {
        ("GET", "/state") => match &kept.state {
            Some(state) => Reply::new(200, state.clone()),
            None => Reply::new(404, "none"),
        },
        ("POST", "/state") => {
            let with = asked.query("ID").unwrap_or_default();
            if kept.lock.as_ref().is_some_and(|lock| id(lock) != with) {
                return Reply::new(409, "locked");
            }
            kept.state = Some(asked.body.clone());
            Reply::new(200, "")
        }
        ("DELETE", "/state") => {
            kept.state = None;
            Reply::new(200, "")
        }
        ("LOCK", "/lock") => match &kept.lock {
            Some(lock) => Reply::new(423, lock.clone()),
            None => {
                kept.lock = Some(asked.body.clone());
                Reply::new(200, "")
            }
        },
        ("UNLOCK", "/lock") => match kept.lock.take() {
            Some(lock) if id(&lock) == id(&asked.body) => Reply::new(200, ""),
            lock => {
                kept.lock = lock;
                Reply::new(409, "another lock")
            }
        },
        _ => Reply::new(405, ""),
    }
}

async fn server() -> Server {
    let kept = Mutex::new(Kept::default());
    Server::start(move |asked| answer(&kept, asked)).await
}

async fn connect(server: &Server, more: &[(&str, monoform_sdk::cty::Value)]) -> Arc<dyn StateClient> {
    let at = |path: &str| format!("{}{path}", server.address()).as_str().into();
    let mut config = vec![
        ("address", at("/state")),
        ("lock_address", at("/lock")),
        ("unlock_address", at("/lock")),
    ];
    config.extend(more.iter().cloned());
    client(store(), &config).await.unwrap()
}

#[tokio::test]
async fn it_is_a_state_store() {
    let server = server().await;
    let (one, other) = (connect(&server, &[]).await, connect(&server, &[]).await);
    conformance(&*one, &*other, Abilities::default()).await;
}

#[tokio::test]
async fn requests_are_those_of_terraform() {
    let server = server().await;
    let address = format!("{}/state?of=me", server.address());
    let store = connect(
        &server,
        &[
            ("address", address.as_str().into()),
            ("username", "me".into()),
            ("password", "secret".into()),
        ],
    )
    .await;
    store
        .lock(
            "default",
            LockInfo {
                id: "1".into(),
                ..LockInfo::default()
            },
        )
        .await
        .unwrap();
    store.write("default", b"{}".to_vec()).await.unwrap();
    store.unlock("default", "1").await.unwrap();
    store.write("default", b"{}".to_vec()).await.unwrap();
    let asked = server.asked();
    let lines: Vec<String> = asked.iter().map(|a| format!("{} {}", a.method, a.target)).collect();
    assert_eq!(
        lines,
        [
            "LOCK /lock",
            "POST /state?of=me&ID=1",
            "UNLOCK /lock",
            "POST /state?of=me"
        ]
    );
    assert_eq!(asked[0].body, asked[2].body, "what was sent to lock is sent to unlock");
    let write = &asked[1];
    assert_eq!(write.header("authorization"), "Basic bWU6c2VjcmV0");
    assert_eq!(write.header("content-type"), "application/json");
    assert_eq!(write.header("content-md5"), "mZFLkyvTelC5g8XnyQrpOw==");
    assert_eq!(write.header("content-length"), "2");
}

#[tokio::test]
async fn a_lock_without_information_is_not_waited_for() {
    let server = Server::start(|_| Reply::new(423, "no JSON")).await;
    let store = connect(&server, &[]).await;
    let error = store.lock("default", LockInfo::default()).await.unwrap_err();
    assert!(matches!(error, LockError::Held { holder: None, .. }));
}

#[tokio::test]
async fn a_busy_server_is_asked_again_and_its_last_status_is_reported() {
    let server = Server::start(|_| Reply::new(503, "").with("retry-after", "0")).await;
    let store = connect(&server, &[("retry_max", 2.into()), ("retry_wait_min", 0.into())]).await;
    let problems = store.read("default").await.unwrap_err();
    assert!(
        problems.0[0].detail.contains("giving up after 3 attempt(s)"),
        "{problems:?}"
    );
    assert_eq!(server.asked().len(), 3);
    let store = connect(&server, &[("retry_max", 0.into())]).await;
    let problems = store.read("default").await.unwrap_err();
    assert!(problems.0[0].detail.contains("503"), "{problems:?}");
}

async fn refused(config: &[(&str, monoform_sdk::cty::Value)]) -> Diagnostics {
    client(store(), config).await.err().unwrap()
}

#[tokio::test]
async fn wrong_configurations_are_refused() {
    let address = ("address", "http://localhost/x".into());
    for (config, text) in [
        (vec![], "TF_HTTP_ADDRESS"),
        (vec![("address", "ftp://localhost/x".into())], "http://"),
        (vec![address.clone(), ("lock_address", "x".into())], "lock_address"),
        (vec![address.clone(), ("lock_method", "A B".into())], "lock_method"),
        (vec![address.clone(), ("retry_max", (-1).into())], "retry_max"),
        (
            vec![address.clone(), ("client_certificate_pem", "x".into())],
            "client_private_key_pem",
        ),
        (
            vec![address.clone(), ("client_private_key_pem", "x".into())],
            "client_certificate_pem",
        ),
        (
            vec![address.clone(), ("client_ca_certificate_pem", "x".into())],
            "BEGIN CERTIFICATE",
        ),
    ] {
        let problems = refused(&config).await;
        assert!(problems.0[0].detail.contains(text), "{config:?}: {problems:?}");
    }
}
