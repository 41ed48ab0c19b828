//! Tests of identities and of multipart uploads with fake services. The store is tested end to end together with Terraform.

use std::sync::{Arc, Mutex};

use monoform_sdk::state_store::LockInfo;
use serde_json::json;
use store_client::Url;
use store_client::about::{About, UNLOCK};
use store_client::guard::LockedStore as _;
use store_client::lock::Found;
use store_client::testing::{Asked, Reply, Server};

use crate::auth::{Source, TextOrFile};
use crate::client::Client;
use crate::cloud::Cloud;
use crate::federation::Machine;
use crate::identity::Identity;
use crate::requests::http;
use crate::settings::{Encryption, Settings};
use crate::{key, upload};

/// Key from `openssl genrsa -traditional -aes128 -passout pass:secret 2048`.
const OLD_KEY: &str = include_str!("test-keys/old.pem");

/// Key from `openssl genrsa -aes256 -passout pass:secret 2048`.
const NEW_KEY: &str = include_str!("test-keys/new.pem");

#[test]
fn keys_with_passwords_are_read() {
    for text in [OLD_KEY, NEW_KEY] {
        let key = key::read(text, Some("secret")).unwrap();
        assert_eq!(key.sign_sha256(b"x").unwrap().len(), 256);
        assert!(key::read(&text.replace('\n', "\\n"), Some("secret")).is_ok());
        let told = key::read(text, None).err().unwrap().to_string();
        assert!(told.contains("private_key_password"), "{told}");
        assert!(key::read(text, Some("wrong")).is_err());
    }
    assert!(key::read("", None).is_err());
}

fn client(server: &Server, source: Source) -> Client {
    Client::new(Settings {
        key: "k".to_owned(),
        prefix: "p".to_owned(),
        encryption: Encryption::Usual,
        cloud: Cloud {
            url: Url::parse(server.address()).unwrap(),
            namespace: "n".to_owned(),
            bucket: "b".to_owned(),
            region: "us-ashburn-1".to_owned(),
            http: http(0).unwrap(),
            source,
            current: tokio::sync::Mutex::default(),
            for_another: false,
        },
    })
}

#[tokio::test]
async fn large_objects_are_written_in_parts_or_not_at_all() {
    let parts: Arc<Mutex<Vec<u8>>> = Arc::default();
    let shared = parts.clone();
    let server = Server::start(move |asked: &Asked| {
        let part = asked.query("uploadPartNum");
        match (asked.method.as_str(), asked.path()) {
            ("POST", "/n/n/b/b/u") => Reply::new(200, json!({"uploadId": "1"}).to_string()),
            ("PUT", _) if part.as_deref() == Some("3") && asked.body == b"bad" => Reply::new(400, "{}"),
            ("PUT", "/n/n/b/b/u/k") => {
                shared.lock().unwrap().extend(&asked.body);
                Reply::new(200, "").with("etag", &part.unwrap())
            }
            ("POST" | "DELETE", "/n/n/b/b/u/k") => Reply::new(200, ""),
            other => panic!("{other:?}"),
        }
    })
    .await;
    let (own, _) = key::fresh().unwrap();
    let client = client(&server, Source::User(Identity::of_token("t", own)));
    let about = About {
        summary: "s",
        what: "w",
    };
    upload::in_parts((&client.settings.cloud, &[]), about, ("k", None), b"abcdefgh", 3)
        .await
        .unwrap();
    assert_eq!(*parts.lock().unwrap(), b"abcdefgh");
    let asked = server.asked();
    let committed: serde_json::Value = serde_json::from_slice(&asked.last().unwrap().body).unwrap();
    assert_eq!(committed["partsToCommit"][2], json!({"partNum": 3, "etag": "3"}));
    upload::in_parts((&client.settings.cloud, &[]), about, ("k", None), b"abcdefbad", 3)
        .await
        .unwrap_err();
    assert_eq!(
        server.asked().last().unwrap().method,
        "DELETE",
        "what was begun is taken back"
    );
}

fn token(ends: i64) -> String {
    let claims = json!({"exp": ends}).to_string();
    format!(
        "e30.{}.x",
        store_client::sum::base64(claims.as_bytes()).trim_end_matches('=')
    )
}

#[tokio::test]
async fn tokens_of_sessions_come_from_files_and_end() {
    let server = Server::start(|_: &Asked| Reply::new(404, "{}")).await;
    let source = |ends| Source::Token {
        token: TextOrFile::Text(token(ends)),
        key: TextOrFile::Text(OLD_KEY.to_owned()),
        password: Some(TextOrFile::Text("secret\n".to_owned())),
    };
    assert_eq!(
        client(&server, source(4_000_000_000))
            .read("default")
            .await
            .unwrap()
            .state,
        None
    );
    let signed = server.asked()[0].header("authorization").to_owned();
    assert!(signed.contains("keyId=\"ST$e30."), "{signed}");
    let told = client(&server, source(1)).read("default").await.unwrap_err();
    assert!(told.0[0].detail.contains("oci session"), "{told:?}");
}

#[tokio::test]
async fn machines_are_known_by_their_certificates() {
    let server = Server::start(|asked: &Asked| {
        if asked.path() != "/v1/x509" {
            return Reply::new(404, "{}");
        }
        let signed = asked.header("authorization");
        assert!(signed.contains("keyId=\"ocid1.tenancy.oc1..t/fed-x509/"), "{signed}");
        assert!(
            signed.contains("headers=\"date (request-target) content-length content-type x-content-sha256\""),
            "{signed}"
        );
        let body: serde_json::Value = serde_json::from_slice(&asked.body).unwrap();
        assert!(body["publicKey"].as_str().unwrap().starts_with("MIIB"));
        Reply::new(200, json!({"token": token(4_000_000_000)}).to_string())
    })
    .await;
    let dir = tempfile::tempdir().unwrap();
    let certificate = include_str!("test-keys/machine.pem");
    for (name, text) in [
        ("ip_cert.pem", certificate),
        ("intermediate.pem", certificate),
        ("ip_key.pem", OLD_KEY),
        ("leaf_passphrase", "secret"),
    ] {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    let mut machine = Machine::new("us-ashburn-1", Some(dir.path().to_owned()));
    machine.service = server.address().to_owned();
    let client = client(&server, Source::Machine(machine));
    assert_eq!(client.read("default").await.unwrap().state, None);
    assert_eq!(client.read("default").await.unwrap().state, None);
    let tokens = server.asked().iter().filter(|asked| asked.path() == "/v1/x509").count();
    assert_eq!(tokens, 1, "a token that holds is not asked for again");
}

#[tokio::test]
async fn a_list_that_is_no_list_is_an_error_and_not_empty() {
    for body in ["<html>log in</html>", "{}", "{\"objects\": null}"] {
        let server = Server::start(move |_: &Asked| Reply::new(200, body)).await;
        let (own, _) = key::fresh().unwrap();
        let client = client(&server, Source::User(Identity::of_token("t", own)));
        for told in [
            client.workspaces().await.unwrap_err(),
            client.delete("w").await.unwrap_err(),
        ] {
            let detail = &told.0[0].detail;
            assert!(
                detail.contains(server.address()) && detail.contains("bucket \"b\""),
                "{detail}"
            );
        }
        assert!(
            server.asked().iter().all(|asked| asked.method == "GET"),
            "nothing is deleted"
        );
    }
}

#[tokio::test]
async fn a_missing_bucket_or_namespace_is_no_missing_lock() {
    for code in ["BucketNotFound", "NamespaceNotFound", "ObjectNotFound"] {
        let body = json!({"code": code, "message": "none"}).to_string();
        let server = Server::start(move |_: &Asked| Reply::new(404, body.clone())).await;
        let (own, _) = key::fresh().unwrap();
        let client = client(&server, Source::User(Identity::of_token("t", own)));
        let is_object = code == "ObjectNotFound";
        let lock = client.lock_records("default").unwrap().remove(0);
        assert_eq!(lock.find(UNLOCK).await.is_ok(), is_object, "{code}");
        let found = Found::new(LockInfo::new("test", "1"));
        assert_eq!(lock.remove(&found).await.is_ok(), is_object, "{code}");
        assert_eq!(client.read("default").await.is_ok(), is_object, "{code}");
    }
}
