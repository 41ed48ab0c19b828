//! Tests of the store with a fake bucket and fake services. The lock table in Tablestore, and states shared with Terraform, are tested
//! end to end.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use monoform_sdk::StateClient;
use monoform_sdk_testing::state_store::{Abilities, conformance};
use serde_json::json;
use store_client::credential::{Credential, CredentialCache};
use store_client::guard::Guarded;
use store_client::testing::{Asked, Reply, Server};
use store_client::{HttpClient, Retries, Settings as HttpSettings, Url};

use crate::client::Client;
use crate::cloud::Cloud;
use crate::credentials::{Profile, Role, Source};
use crate::services::Services;
use crate::settings::Settings;

type Objects = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

fn answer(objects: &Objects, asked: &Asked) -> Reply {
    let mut objects = objects.lock().unwrap();
    let name = percent_encoding::percent_decode_str(asked.path())
        .decode_utf8()
        .unwrap()
        .into_owned();
    let refusal = |status, code: &str| {
        Reply::new(
            status,
            format!("<Error><Code>{code}</Code><Message>no</Message></Error>"),
        )
    };
    if asked.method == "POST" {
        let form = String::from_utf8(asked.body.clone()).unwrap();
        assert!(
            form.contains("Action=AssumeRole&") && form.contains("RoleArn=arn"),
            "{form}"
        );
        assert!(
            form.contains("SignatureMethod=HMAC-SHA1") && form.contains("DurationSeconds=900"),
            "{form}"
        );
        let keys = json!({"AccessKeyId": "good", "AccessKeySecret": "k", "SecurityToken": "token", "Expiration": "2100-01-01T00:00:00Z"});
        return Reply::new(200, json!({"Credentials": keys}).to_string());
    }
    if !asked.header("authorization").starts_with("OSS good:") {
        return refusal(403, "InvalidAccessKeyId");
    }
    let Some(name) = name.strip_prefix("/states/") else {
        return refusal(404, "NoSuchBucket");
    };
    match asked.method.as_str() {
        "GET" if name.is_empty() => {
            let prefix = asked.query("prefix").unwrap();
            let names = objects.keys().filter(|name| name.starts_with(&prefix));
            let names: String = names.map(|name| format!("<Key>{name}</Key>")).collect();
            Reply::new(200, format!("<ListBucketResult>{names}</ListBucketResult>"))
        }
        "GET" => objects
            .get(name)
            .map_or_else(|| refusal(404, "NoSuchKey"), |content| Reply::new(200, content.clone())),
        "PUT" => {
            objects.insert(name.to_owned(), asked.body.clone());
            Reply::new(200, "")
        }
        _ => {
            objects.remove(name);
            Reply::new(204, "")
        }
    }
}

fn connect(server: &Server, bucket: &str, id: &str, role: Option<Role>) -> Guarded<Client> {
    let http = || {
        HttpClient::new(HttpSettings {
            retries: Retries {
                max: 0,
                ..Retries::default()
            },
            ..HttpSettings::default()
        })
        .unwrap()
    };
    let url = Url::parse(server.address()).unwrap();
    Guarded::new(Client::new(Settings {
        bucket: bucket.to_owned(),
        prefix: "a dir".to_owned(),
        key: "x/terraform.tfstate".to_owned(),
        encrypt: false,
        acl: String::new(),
        table: None,
        cloud: Cloud {
            endpoint: Some(url.clone()),
            looked_up: tokio::sync::OnceCell::new(),
            services: Services {
                region: "cn-beijing".to_owned(),
                sts: url,
                calls: http(),
            },
            http: http(),
            once: http(),
            source: Source {
                given: Some(Credential {
                    id: id.to_owned(),
                    key: "key".to_owned(),
                    token: None,
                }),
                machine: None,
                role,
                oidc: None,
            },
            current: CredentialCache::default(),
        },
    }))
}

async fn server() -> (Server, Objects) {
    let objects = Objects::default();
    let shared = objects.clone();
    (Server::start(move |asked| answer(&shared, asked)).await, objects)
}

#[tokio::test]
async fn it_is_a_state_store() {
    let (server, objects) = server().await;
    let connect = || connect(&server, "states", "good", None);
    let abilities = Abilities {
        locks: false,
        ..Abilities::default()
    };
    conformance(&connect(), &connect(), abilities).await;
    let names: Vec<String> = objects.lock().unwrap().keys().cloned().collect();
    assert_eq!(names, ["a dir/x/terraform.tfstate"]);
}

#[tokio::test]
async fn errors_are_reported_with_a_remedy() {
    let (server, _) = server().await;
    let told = |client: Guarded<Client>| async move { client.read("default").await.unwrap_err().0[0].detail.clone() };
    let text = told(connect(&server, "states", "bad", None)).await;
    assert!(text.contains("ALICLOUD_ACCESS_KEY"), "{text}");
    let text = told(connect(&server, "none", "good", None)).await;
    assert!(text.contains("aliyun oss mb oss://none --region cn-beijing"), "{text}");
}

#[tokio::test]
async fn roles_are_taken_on() {
    let (server, _) = server().await;
    let role = Role {
        arn: "arn".to_owned(),
        session: "s".to_owned(),
        duration: 900,
        policy: None,
    };
    let store = connect(&server, "states", "bad", Some(role));
    store.write("default", b"{}".to_vec()).await.unwrap();
    store.read("default").await.unwrap();
    let asked = server.asked();
    assert_eq!(asked.last().unwrap().header("x-oss-security-token"), "token");
    assert_eq!(asked.iter().filter(|asked| asked.method == "POST").count(), 1);
}

#[test]
fn profiles_are_those_of_the_command_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.json");
    let profiles = json!({"profiles": [
        {"name": "p", "mode": "AK", "access_key_id": "i", "sts_token": "unused", "region_id": "cn-beijing"},
        {"name": "role", "mode": "RamRoleArn", "access_key_id": "i", "ram_role_arn": "arn", "expired_seconds": 1200},
        {"name": "machine", "mode": "EcsRamRole", "access_key_id": "unused", "ram_role_name": "r"},
    ]});
    std::fs::write(&path, profiles.to_string()).unwrap();
    let of = |name: &str, part: &str| Profile::read(&path, name).unwrap().get(part);
    assert_eq!(of("p", "access_key_id").as_deref(), Some("i"));
    assert_eq!((of("p", "sts_token"), of("p", "ram_role_arn")), (None, None));
    assert_eq!(of("role", "ram_role_arn").as_deref(), Some("arn"));
    assert_eq!(Profile::read(&path, "role").unwrap().seconds(), Some(1200));
    assert_eq!(
        (
            of("machine", "access_key_id"),
            of("machine", "ram_role_name").as_deref()
        ),
        (None, Some("r"))
    );
    assert_eq!(of("none", "region_id"), None);
}
