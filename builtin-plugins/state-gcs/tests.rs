//! Tests of the store with a fake bucket that honors conditions, and with fake token servers.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use monoform_sdk::StateClient;
use monoform_sdk::cty::Value;
use monoform_sdk::state_store::LockInfo;
use monoform_sdk_testing::state_store::{Abilities, client, conformance};
use serde_json::{Value as Json, json};
use store_client::testing::{Asked, Reply, Server};

use crate::store;

/// Objects by name, each with its generation and content.
#[derive(Default)]
struct Bucket {
    objects: BTreeMap<String, (u64, Vec<u8>)>,
    next: u64,
}

fn missing(what: &str) -> Reply {
    Reply::new(404, json!({"error": {"code": 404, "message": what}}).to_string())
}

/// Splits a multipart body into the metadata and the content.
fn parts(asked: &Asked) -> (Json, Vec<u8>) {
    let kind = asked.header("content-type");
    let boundary = format!("--{}", kind.split("boundary=").nth(1).unwrap());
    let body = &asked.body;
    let find = |from: usize, what: &[u8]| from + body[from..].windows(what.len()).position(|w| w == what).unwrap();
    let json_from = find(0, b"\r\n\r\n") + 4;
    let json_to = find(json_from, b"\r\n");
    let from = find(json_to, b"\r\n\r\n") + 4;
    let to = body.len() - format!("\r\n{boundary}--\r\n").len();
    (
        serde_json::from_slice(&body[json_from..json_to]).unwrap(),
        body[from..to].to_vec(),
    )
}

fn answer(bucket: &Mutex<Bucket>, asked: &Asked) -> Reply {
    let mut bucket = bucket.lock().unwrap();
    if asked.header("authorization") != "Bearer good" {
        return Reply::new(401, r#"{"error":{"message":"Invalid Credentials"}}"#);
    }
    let condition: Option<u64> = asked.query("ifGenerationMatch").map(|n| n.parse().unwrap());
    let path = asked.path().to_owned();
    if !path.contains("/b/states/") {
        return missing("The specified bucket does not exist.");
    }
    if asked.method == "POST" && path == "/upload/storage/v1/b/states/o" {
        let (metadata, content) = parts(asked);
        let name = asked.query("name").unwrap();
        assert_eq!(metadata["name"], *name);
        let there = bucket.objects.get(&name).map_or(0, |(generation, _)| *generation);
        if condition.is_some_and(|wanted| wanted != there) {
            return Reply::new(412, r#"{"error":{"message":"conditionNotMet"}}"#);
        }
        bucket.next += 1;
        let generation = 1_700_000_000 + bucket.next;
        bucket.objects.insert(name, (generation, content));
        return Reply::new(200, json!({"generation": generation.to_string()}).to_string());
    }
    if path == "/storage/v1/b/states/o" {
        let prefix = asked.query("prefix").unwrap();
        let names: Vec<&String> = bucket
            .objects
            .keys()
            .filter(|name| name.strip_prefix(&prefix).is_some_and(|rest| !rest.contains('/')))
            .collect();
        // Each page has one object.
        let at: usize = asked.query("pageToken").map_or(0, |t| t.parse().unwrap());
        let items: Vec<Json> = names.get(at).iter().map(|name| json!({"name": name})).collect();
        let next = (at + 1 < names.len()).then(|| (at + 1).to_string());
        return Reply::new(200, json!({"items": items, "nextPageToken": next}).to_string());
    }
    let name = path.strip_prefix("/storage/v1/b/states/o/").unwrap();
    assert!(!name.contains('/'), "the name is one part of the path: {path}");
    let name = percent_encoding::percent_decode_str(name)
        .decode_utf8()
        .unwrap()
        .into_owned();
    let Some((generation, content)) = bucket.objects.get(&name).cloned() else {
        return missing("No such object");
    };
    match asked.method.as_str() {
        "GET" if asked.query("alt").as_deref() == Some("media") => {
            Reply::new(200, content).with("x-goog-generation", &generation.to_string())
        }
        "GET" => Reply::new(200, json!({"generation": generation.to_string()}).to_string()),
        "DELETE" if condition.is_some_and(|wanted| wanted != generation) => Reply::new(412, ""),
        "DELETE" => {
            bucket.objects.remove(&name);
            Reply::new(204, "")
        }
        _ => Reply::new(405, ""),
    }
}

async fn server() -> Server {
    let bucket = Mutex::new(Bucket::default());
    Server::start(move |asked| answer(&bucket, asked)).await
}

async fn connect(server: &Server, more: &[(&str, Value)]) -> monoform_sdk::Result<Arc<dyn StateClient>> {
    let endpoint = format!("{}/storage/v1/", server.address());
    let mut config = vec![
        ("bucket", "states".into()),
        ("prefix", "/a dir".into()),
        ("access_token", "good".into()),
        ("storage_custom_endpoint", endpoint.as_str().into()),
    ];
    config.extend(more.iter().cloned());
    client(store(), &config).await
}

#[tokio::test]
async fn it_is_a_state_store() {
    let server = server().await;
    let one = connect(&server, &[]).await.unwrap();
    let other = connect(&server, &[("prefix", "a dir/".into())]).await.unwrap();
    // An ID that is not a generation does not belong to any lock.
    conformance(&*one, &*other, Abilities::default()).await;
}

#[tokio::test]
async fn requests_are_those_of_the_interface() {
    let server = server().await;
    let key = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
    let store = connect(&server, &[("encryption_key", key.into())]).await.unwrap();
    let info = LockInfo::of_this_process("x");
    let id = store.lock("default", info.clone()).await.unwrap();
    assert!(id.bytes().all(|b| b.is_ascii_digit()), "{id}");
    store.write("default", b"{}".to_vec()).await.unwrap();
    store.read("default").await.unwrap();
    store.unlock("default", &id).await.unwrap();
    let asked = server.asked();
    let lines: Vec<String> = asked.iter().map(|a| format!("{} {}", a.method, a.target)).collect();
    assert_eq!(
        lines,
        [
            "POST /upload/storage/v1/b/states/o?uploadType=multipart&name=a%20dir%2Fdefault.tflock&ifGenerationMatch=0"
                .to_owned(),
            // This request checks that the lock is still held.
            "GET /storage/v1/b/states/o/a%20dir%2Fdefault.tflock?alt=media".to_owned(),
            "POST /upload/storage/v1/b/states/o?uploadType=multipart&name=a%20dir%2Fdefault.tfstate".to_owned(),
            "GET /storage/v1/b/states/o/a%20dir%2Fdefault.tfstate?alt=media".to_owned(),
            "GET /storage/v1/b/states/o/a%20dir%2Fdefault.tflock?alt=media".to_owned(),
            format!("DELETE /storage/v1/b/states/o/a%20dir%2Fdefault.tflock?ifGenerationMatch={id}"),
        ]
    );
    // The lock is not encrypted with the user's key, so that everybody can read its holder.
    assert_eq!(asked[0].header("x-goog-encryption-key"), "");
    let lock = LockInfo::from_json(&parts(&asked[0]).1).unwrap();
    assert_eq!(
        (lock.id, lock.path.as_str()),
        (info.id, "gs://states/a dir/default.tflock")
    );
    for request in &asked[2..4] {
        assert_eq!(request.header("x-goog-encryption-algorithm"), "AES256");
        assert_eq!(request.header("x-goog-encryption-key"), key);
        // SHA-256 of the 32 characters, computed by another program.
        assert_eq!(
            request.header("x-goog-encryption-key-sha256"),
            "PrG9Q5lH63YpmOVmzMLgmceREYsvQFecxPfaK1Bht/k="
        );
    }
    let (metadata, _) = parts(&asked[2]);
    assert_eq!(metadata["md5Hash"], "mZFLkyvTelC5g8XnyQrpOw==");
    let store = connect(&server, &[("kms_encryption_key", "projects/p/k".into())])
        .await
        .unwrap();
    store.write("default", b"{}".to_vec()).await.unwrap();
    let asked = server.asked();
    assert_eq!(asked.last().unwrap().query("kmsKeyName").unwrap(), "projects/p/k");
}

#[tokio::test]
async fn a_lock_that_is_ours_already_is_taken() {
    let server = server().await;
    let store = connect(&server, &[]).await.unwrap();
    let info = LockInfo::of_this_process("x");
    let id = store.lock("default", info.clone()).await.unwrap();
    assert_eq!(store.lock("default", info).await.unwrap(), id, "an answer may be lost");
}

async fn detail(store: &dyn StateClient) -> String {
    let problems = store.read("default").await.unwrap_err();
    problems.0[0].detail.clone()
}

#[tokio::test]
async fn errors_are_reported_with_a_remedy() {
    let server = server().await;
    let store = connect(&server, &[("bucket", "none".into())]).await.unwrap();
    let text = detail(&*store).await;
    assert!(text.contains("gcloud storage buckets create gs://none"), "{text}");
    let store = connect(&server, &[("access_token", "bad".into())]).await.unwrap();
    let text = detail(&*store).await;
    assert!(
        text.contains("GOOGLE_OAUTH_ACCESS_TOKEN") && text.contains("Invalid Credentials"),
        "{text}"
    );
    for (more, text) in [
        (("encryption_key", "AAAA".into()), "32 bytes"),
        (("encryption_key", "?".into()), "no Base64"),
        (("storage_custom_endpoint", "ftp://x".into()), "http://"),
    ] {
        let problems = connect(&server, &[more]).await.err().unwrap();
        assert!(problems.0[0].detail.contains(text), "{problems:?}");
    }
    let problems = connect(&server, &[("access_token", "".into()), ("credentials", "{".into())]).await;
    let problems = problems.err().unwrap();
    assert!(
        problems.0[0].detail.contains("neither JSON nor the path"),
        "{problems:?}"
    );
    let both = [("encryption_key", "".into()), ("kms_encryption_key", "".into())];
    let problems = connect(&server, &both).await.err().unwrap();
    assert!(problems.0[0].detail.contains("can't set both"), "{problems:?}");
}

/// Starts a server that issues tokens and records the requests.
async fn tokens() -> Server {
    Server::start(|asked| match asked.path() {
        "/token" => Reply::new(200, r#"{"access_token":"base","expires_in":3600}"#),
        "/impersonate" => {
            let is_known = asked.header("authorization") == "Bearer base";
            let text = r#"{"accessToken":"good","expireTime":"2999-01-01T00:00:00Z"}"#;
            Reply::new(if is_known { 200 } else { 403 }, text)
        }
        "/good" => Reply::new(200, r#"{"access_token":"good","expires_in":3600}"#),
        "/subject" => Reply::new(200, r#"{"value":"from elsewhere"}"#),
        _ => Reply::new(
            400,
            r#"{"error":"invalid_grant","error_description":"Invalid JWT: iat and exp"}"#,
        ),
    })
    .await
}

fn form(asked: &Asked) -> BTreeMap<String, String> {
    let url = store_client::Url::parse(&format!("http://x/?{}", String::from_utf8_lossy(&asked.body))).unwrap();
    url.query_pairs().into_owned().collect()
}

#[tokio::test]
async fn credentials_of_every_type_become_tokens() {
    let (server, giver) = (server().await, tokens().await);
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256)
        .unwrap()
        .serialize_pem();
    let at = |path: &str| format!("{}{path}", giver.address());
    let account = |to: &str| json!({"type": "service_account", "client_email": "a@b", "private_key_id": "1", "private_key": key, "token_uri": at(to)});
    let external = json!({
        "type": "external_account", "audience": "//iam/pool", "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "token_url": at("/token"), "service_account_impersonation_url": at("/impersonate"),
        "credential_source": {"url": at("/subject"), "format": {"type": "json", "subject_token_field_name": "value"}},
    });
    for credentials in [
        account("/good"),
        json!({"type": "authorized_user", "client_id": "i", "client_secret": "s", "refresh_token": "r", "token_uri": at("/good")}),
        json!({"type": "impersonated_service_account", "service_account_impersonation_url": at("/impersonate"), "source_credentials": account("/token")}),
        external,
    ] {
        let more = [
            ("access_token", "".into()),
            ("credentials", credentials.to_string().as_str().into()),
        ];
        let store = connect(&server, &more).await.unwrap();
        store.read("default").await.unwrap();
        // The second request uses the cached token.
        let before = giver.asked().len();
        store.read("default").await.unwrap();
        assert_eq!(giver.asked().len(), before, "{credentials}");
    }
    let asked = giver.asked();
    let first = form(&asked[0]);
    assert_eq!(first["grant_type"], "urn:ietf:params:oauth:grant-type:jwt-bearer");
    assert_eq!(first["assertion"].split('.').count(), 3);
    let exchange = asked
        .iter()
        .map(form)
        .find(|f| f.contains_key("subject_token"))
        .unwrap();
    assert_eq!(exchange["subject_token"], "from elsewhere");
    assert_eq!(exchange["audience"], "//iam/pool");
    // The server refuses the credentials from a file.
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key.json");
    std::fs::write(&path, account("/bad").to_string()).unwrap();
    let more = [
        ("access_token", "".into()),
        ("credentials", path.to_str().unwrap().into()),
    ];
    let text = detail(&*connect(&server, &more).await.unwrap()).await;
    assert!(text.contains("clock") && text.contains("a@b"), "{text}");
}
