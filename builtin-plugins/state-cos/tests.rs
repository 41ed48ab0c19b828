//! Tests of the store with a fake bucket and fake services. Signatures are tested in their modules with published examples.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use monoform_sdk::StateClient;
use monoform_sdk::state_store::LockInfo;
use monoform_sdk_testing::state_store::{Abilities, conformance};
use serde_json::{Value as Json, json};
use store_client::credential::{Credential, CredentialCache};
use store_client::guard::Guarded;
use store_client::sum::md5_hex as hex_md5;
use store_client::testing::{Asked, Reply, Server};
use store_client::{HttpClient, Settings as HttpSettings, Url};

use crate::client::Client;
use crate::cloud::Cloud;
use crate::config::Settings;
use crate::credentials::{Profile, Role, Source};
use crate::services::Services;

#[derive(Default)]
struct Account {
    /// Content and MD5 by name.
    objects: BTreeMap<String, (Vec<u8>, String)>,
    tags: BTreeSet<String>,
}

fn refusal(status: u16, code: &str) -> Reply {
    Reply::new(
        status,
        format!("<?xml version='1.0'?><Error><Code>{code}</Code><Message>no</Message></Error>"),
    )
}

fn answer(account: &Mutex<Account>, asked: &Asked) -> Reply {
    let mut account = account.lock().unwrap();
    if !asked.header("x-tc-action").is_empty() {
        return service(&mut account, asked);
    }
    let signature = asked.header("authorization");
    assert!(signature.starts_with("q-sign-algorithm=sha1&q-ak="), "{signature}");
    if !signature.contains("q-ak=good") {
        return refusal(403, "InvalidAccessKeyId");
    }
    let name = percent_encoding::percent_decode_str(&asked.path()[1..])
        .decode_utf8()
        .unwrap()
        .into_owned();
    match asked.method.as_str() {
        "GET" if name.is_empty() => {
            let (prefix, marker) = (asked.query("prefix").unwrap(), asked.query("marker").unwrap());
            let mut names = account
                .objects
                .keys()
                .filter(|name| name.starts_with(&prefix) && **name > marker);
            // Each page has one object, as a service may return.
            let first = names
                .next()
                .map_or(String::new(), |name| format!("<Contents><Key>{name}</Key></Contents>"));
            let more = names.next().is_some();
            Reply::new(
                200,
                format!("<ListBucketResult><IsTruncated>{more}</IsTruncated>{first}</ListBucketResult>"),
            )
        }
        "GET" => match account.objects.get(&name) {
            Some((content, sum)) => Reply::new(200, content.clone()).with("x-cos-meta-md5", sum),
            None => refusal(404, "NoSuchKey"),
        },
        "PUT" => {
            let sum = asked.header("x-cos-meta-md5").to_owned();
            assert_eq!(sum, hex_md5(&asked.body));
            assert_eq!(asked.header("x-cos-acl"), "private");
            assert_eq!(asked.header("x-cos-server-side-encryption"), "AES256");
            account.objects.insert(name, (asked.body.clone(), sum));
            Reply::new(200, "")
        }
        "DELETE" => {
            account.objects.remove(&name);
            Reply::new(204, "")
        }
        other => panic!("{other}"),
    }
}

fn service(account: &mut Account, asked: &Asked) -> Reply {
    assert!(asked.header("authorization").starts_with("TC3-HMAC-SHA256 Credential="));
    assert_eq!(
        (asked.header("x-tc-version"), asked.header("x-tc-region")),
        ("2018-08-13", "ap-guangzhou")
    );
    let body: Json = serde_json::from_slice(&asked.body).unwrap();
    let value = body["TagValue"].as_str().unwrap_or_default().to_owned();
    let done = |json: Json| Reply::new(200, json!({"Response": json}).to_string());
    match asked.header("x-tc-action") {
        "CreateTag" if account.tags.insert(value.clone()) => done(json!({"RequestId": "1"})),
        "CreateTag" => done(json!({"Error": {"Code": "ResourceInUse.TagDuplicate", "Message": "tag exists"}})),
        "DescribeTags" if account.tags.contains(&value) => done(json!({"Tags": [{"TagValue": value}]})),
        "DescribeTags" => done(json!({"Tags": []})),
        "DeleteTag" => {
            account.tags.remove(&value);
            done(json!({}))
        }
        "AssumeRole" => {
            assert_eq!(
                (&body["RoleArn"], &body["DurationSeconds"]),
                (&json!("arn"), &json!(7200))
            );
            let keys = json!({"TmpSecretId": "good", "TmpSecretKey": "k", "Token": "token"});
            done(json!({"Credentials": keys, "ExpiredTime": 4_000_000_000_i64}))
        }
        other => panic!("{other}"),
    }
}

fn connect(server: &Server, id: &str, role: Option<Role>) -> Guarded<Client> {
    let http = || HttpClient::new(HttpSettings::default()).unwrap();
    Guarded::new(Client::new(Settings {
        bucket: "states-1250000000".to_owned(),
        prefix: "a dir".to_owned(),
        key: "x/terraform.tfstate".to_owned(),
        encrypt: true,
        acl: "private".to_owned(),
        cloud: Cloud {
            bucket: Url::parse(server.address()).unwrap(),
            http: http(),
            services: Services {
                address: format!("{}/", server.address()),
                region: "ap-guangzhou".to_owned(),
                once: http(),
            },
            source: Source {
                given: Credential {
                    id: id.to_owned(),
                    key: "key".to_owned(),
                    token: None,
                },
                machine: None,
                role,
            },
            current: CredentialCache::default(),
        },
    }))
}

async fn server() -> (Server, Arc<Mutex<Account>>) {
    let account: Arc<Mutex<Account>> = Arc::default();
    let shared = account.clone();
    (Server::start(move |asked| answer(&shared, asked)).await, account)
}

#[tokio::test]
async fn it_is_a_state_store() {
    let (server, account) = server().await;
    let (one, other) = (connect(&server, "good", None), connect(&server, "good", None));
    conformance(&one, &other, Abilities::default()).await;
    let account = account.lock().unwrap();
    assert_eq!(
        account.objects.keys().collect::<Vec<_>>(),
        ["a dir/x/terraform.tfstate"]
    );
    assert!(account.tags.is_empty(), "no tag stays");
}

#[tokio::test]
async fn locks_are_those_of_terraform() {
    let (server, account) = server().await;
    let store = connect(&server, "good", None);
    let id = store.lock("dev", LockInfo::of_this_process("x")).await.unwrap();
    let (content, sum) = account.lock().unwrap().objects["a dir/dev/x/terraform.tfstate.tflock"].clone();
    assert_eq!(id, sum);
    assert_eq!(
        LockInfo::from_json(&content).unwrap().path,
        "a dir/dev/x/terraform.tfstate.tflock"
    );
    let tag = hex_md5(b"states-1250000000:a dir/dev/x/terraform.tfstate.tflock");
    let created = server
        .asked()
        .into_iter()
        .find(|a| a.header("x-tc-action") == "CreateTag")
        .unwrap();
    let body: Json = serde_json::from_slice(&created.body).unwrap();
    assert_eq!(body, json!({"TagKey": "tencentcloud-terraform-lock", "TagValue": tag}));
    store.unlock("dev", &id).await.unwrap();
    // The tag of another program that is creating its lock, or was killed before it had created it.
    account.lock().unwrap().tags.insert(tag.clone());
    let error = store.lock("dev", LockInfo::of_this_process("x")).await.unwrap_err();
    let text = error.into_diagnostics().0[0].detail.clone();
    assert!(text.contains("tccli tag DeleteTag") && text.contains(&tag), "{text}");
}

#[tokio::test]
async fn unlocking_keeps_the_tag_of_the_next_client() {
    let (server, account) = server().await;
    let store = connect(&server, "good", None);
    let id = store.lock("dev", LockInfo::of_this_process("x")).await.unwrap();
    let tag = hex_md5(b"states-1250000000:a dir/dev/x/terraform.tfstate.tflock");
    account.lock().unwrap().tags.insert(tag.clone());
    store.unlock("dev", &id).await.unwrap();
    assert!(account.lock().unwrap().tags.contains(&tag));
    // The tag of a killed process is removed together with its lock.
    account.lock().unwrap().tags.clear();
    let id = store.lock("dev", LockInfo::of_this_process("x")).await.unwrap();
    account.lock().unwrap().tags.insert(tag.clone());
    connect(&server, "good", None).unlock("dev", &id).await.unwrap();
    assert!(!account.lock().unwrap().tags.contains(&tag));
}

#[tokio::test]
async fn a_state_with_another_sum_is_not_believed() {
    let (server, account) = server().await;
    let store = connect(&server, "good", None);
    store.write("default", b"{}".to_vec()).await.unwrap();
    account
        .lock()
        .unwrap()
        .objects
        .get_mut("a dir/x/terraform.tfstate")
        .unwrap()
        .0 = b"[]".to_vec();
    let problems = store.read("default").await.unwrap_err();
    assert!(problems.0[0].detail.contains("checksum mismatch"), "{problems:?}");
}

#[tokio::test]
async fn roles_are_assumed_and_wrong_keys_are_reported() {
    let (server, _) = server().await;
    let problems = connect(&server, "bad", None).read("default").await.unwrap_err();
    assert!(problems.0[0].detail.contains("TENCENTCLOUD_SECRET_ID"), "{problems:?}");
    let role = Role {
        arn: "arn".to_owned(),
        session: "s".to_owned(),
        duration: Role::USUAL_DURATION,
        policy: None,
        external_id: None,
    };
    let store = connect(&server, "bad", Some(role));
    store.write("default", b"{}".to_vec()).await.unwrap();
    store.read("default").await.unwrap();
    let asked = server.asked();
    assert_eq!(asked.last().unwrap().header("x-cos-security-token"), "token");
    assert_eq!(
        asked.iter().filter(|a| a.header("x-tc-action") == "AssumeRole").count(),
        1
    );
}

#[test]
fn profiles_are_those_of_the_command_line() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("p.credential"),
        r#"{"secretId": " i ", "secretKey": "k"}"#,
    )
    .unwrap();
    std::fs::write(
        dir.path().join("p.configure"),
        r#"{"_sys_param": {"region": "ap-beijing"}}"#,
    )
    .unwrap();
    let profile = Profile::read(dir.path(), "p").unwrap();
    assert_eq!(
        (profile.get("secretId").as_deref(), profile.get("region").as_deref()),
        (Some("i"), Some("ap-beijing"))
    );
    assert_eq!(profile.get("token"), None);
    assert_eq!(Profile::read(dir.path(), "none").unwrap().get("secretId"), None);
}
