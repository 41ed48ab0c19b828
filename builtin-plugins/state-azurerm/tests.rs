//! Tests of authentication methods and account lookups with fake servers. Requests for blobs are tested end to end with the emulator
//! (Azurite).

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD as BASE64, URL_SAFE_NO_PAD};
use monoform_sdk_testing::state_store::client;
use serde_json::{Value as Json, json};
use store_client::testing::{Asked, Reply, Server};
use store_client::{HttpClient, Url};

use crate::client::Client;
use crate::clouds::Cloud;
use crate::login::{Certificate, For, Login, Requested};
use crate::settings::{How, Settings};

const RESOURCE: &str = "https://storage.azure.com";
const KEY: &str = "a2V5";

/// Starts one server that acts as Entra ID, an identity provider, a metadata service, and a Resource Manager with an
/// account.
async fn azure() -> Server {
    Server::start(|asked| match asked.path() {
        "/login/tenant/oauth2/v2.0/token" => Reply::new(200, r#"{"access_token":"good","expires_in":3599}"#),
        "/login/other/oauth2/v2.0/token" => {
            let text =
                r#"{"error":"invalid_client","error_description":"AADSTS7000215: Invalid client secret provided."}"#;
            Reply::new(401, text)
        }
        "/github" => Reply::new(200, r#"{"count":1,"value":"statement"}"#),
        "/devops" => Reply::new(200, r#"{"oidcToken":"statement"}"#),
        "/machine" => Reply::new(200, r#"{"access_token":"good","expires_in":"3599","resource":"x"}"#),
        path if path.starts_with("/manager/") => manager(asked),
        path if path.starts_with("/blobs/") => Reply::new(200, "state"),
        _ => Reply::new(404, ""),
    })
    .await
}

fn manager(asked: &Asked) -> Reply {
    assert_eq!(asked.header("authorization"), "Bearer good");
    assert_eq!(asked.query("api-version").as_deref(), Some("2023-01-01"));
    let account = "/manager/subscriptions/s/resourceGroups/g/providers/Microsoft.Storage/storageAccounts/account";
    let Some(rest) = asked.path().strip_prefix(account) else {
        return Reply::new(404, r#"{"error":{"code":"ResourceNotFound","message":"not found"}}"#);
    };
    match (asked.method.as_str(), rest) {
        ("GET", "") => {
            let host = asked.header("host");
            let text = json!({"properties": {"primaryEndpoints": {"blob": format!("http://{host}/blobs/")}}});
            Reply::new(200, text.to_string())
        }
        ("POST", "/listKeys") => {
            let keys =
                json!({"keys": [{"permissions": "Read", "value": "eA=="}, {"permissions": "FULL", "value": KEY}]});
            Reply::new(200, keys.to_string())
        }
        other => panic!("{other:?}"),
    }
}

fn http() -> HttpClient {
    HttpClient::new(store_client::Settings::default()).unwrap()
}

fn form(asked: &Asked) -> BTreeMap<String, String> {
    let text = format!("http://x/?{}", String::from_utf8_lossy(&asked.body));
    Url::parse(&text).unwrap().query_pairs().into_owned().collect()
}

/// Parts of a [`Login`].
struct Parts {
    tenant: &'static str,
    certificate: Option<Certificate>,
    secret: Option<&'static str>,
    token: Option<&'static str>,
    requested: Option<Requested>,
    machine: Option<String>,
}

impl Parts {
    fn none() -> Parts {
        Parts {
            tenant: "tenant",
            certificate: None,
            secret: None,
            token: None,
            requested: None,
            machine: None,
        }
    }

    fn login(self, server: &Server) -> Login {
        Login::new(
            format!("{}/login", server.address()),
            Some(self.tenant.to_owned()),
            Some("client".to_owned()),
            self.certificate,
            self.secret.map(str::to_owned),
            self.token.map(str::to_owned),
            self.requested,
            self.machine,
            false,
        )
    }
}

async fn token(login: &Login) -> monoform_sdk::Result<String> {
    Ok(login.token(&http(), For::Storage(RESOURCE)).await?.text)
}

#[tokio::test]
async fn secrets_and_tokens_become_tokens() {
    let server = azure().await;
    let at = |path: &str| format!("{}{path}", server.address());
    let requested = |path: &str, connection: Option<&str>| {
        Some(Requested {
            url: at(path),
            token: "job".to_owned(),
            connection: connection.map(str::to_owned),
        })
    };
    let statement = ("client_assertion", "statement");
    for (parts, expected) in [
        (
            Parts {
                secret: Some("secret"),
                ..Parts::none()
            },
            ("client_secret", "secret"),
        ),
        (
            Parts {
                token: Some("statement"),
                ..Parts::none()
            },
            statement,
        ),
        (
            Parts {
                requested: requested("/github", None),
                ..Parts::none()
            },
            statement,
        ),
        (
            Parts {
                requested: requested("/devops", Some("connection")),
                ..Parts::none()
            },
            statement,
        ),
    ] {
        let login = parts.login(&server);
        assert_eq!(token(&login).await.unwrap(), "good");
        let asked = server.asked();
        let last = form(asked.last().unwrap());
        assert_eq!(last[expected.0], expected.1);
        assert_eq!(last["scope"], "https://storage.azure.com/.default");
        assert_eq!(
            (last["client_id"].as_str(), last["grant_type"].as_str()),
            ("client", "client_credentials")
        );
        // The cached token is used while it is valid, so this makes no request.
        token(&login).await.unwrap();
        assert_eq!(server.asked().len(), asked.len());
    }
    let asked = server.asked();
    let of = |path: &str| asked.iter().find(|asked| asked.path() == path).unwrap();
    assert_eq!(
        of("/github").query("audience").as_deref(),
        Some("api://AzureADTokenExchange")
    );
    assert_eq!(
        (of("/github").method.as_str(), of("/github").header("authorization")),
        ("GET", "Bearer job")
    );
    assert_eq!(
        of("/devops").query("serviceConnectionId").as_deref(),
        Some("connection")
    );
    assert_eq!(of("/devops").method, "POST");
}

#[tokio::test]
async fn managed_identity_and_its_refusals_are_reported() {
    let server = azure().await;
    let machine = |path: &str| Some(format!("{}{path}", server.address()));
    let login = Parts {
        machine: machine("/machine"),
        ..Parts::none()
    }
    .login(&server);
    assert_eq!(token(&login).await.unwrap(), "good");
    let asked = server.asked();
    let last = asked.last().unwrap();
    assert_eq!(
        (last.header("metadata"), last.query("resource").as_deref()),
        ("true", Some(RESOURCE))
    );
    assert_eq!(last.query("client_id").as_deref(), Some("client"));
    let login = Parts {
        tenant: "other",
        secret: Some("x"),
        ..Parts::none()
    }
    .login(&server);
    let problems = token(&login).await.unwrap_err();
    let detail = &problems.0[0].detail;
    assert!(
        detail.contains("AADSTS7000215") && detail.contains("secret of the application client"),
        "{detail}"
    );
    let problems = token(&Parts::none().login(&server)).await.unwrap_err();
    assert!(
        problems.0[0].detail.contains("no Authorizer could be configured"),
        "{problems:?}"
    );
}

fn openssl(dir: &Path, words: &[&str]) -> Vec<u8> {
    let ran = Command::new("openssl").args(words).current_dir(dir).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    ran.stdout
}

#[tokio::test]
async fn certificates_that_openssl_has_packed_sign_statements() {
    if support::needs("openssl", "certificates_that_openssl_has_packed_sign_statements").is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    openssl(
        dir,
        &[
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key", "-out", "cert", "-subj", "/CN=x",
            "-days", "2",
        ],
    );
    let server = azure().await;
    let mut thumbprint = String::new();
    for more in [
        &["-passout", "pass:word"][..],
        &["-passout", "pass:word", "-legacy"],
        &["-passout", "pass:"],
    ] {
        let mut words = vec!["pkcs12", "-export", "-inkey", "key", "-in", "cert", "-out", "p12"];
        words.extend(more);
        openssl(dir, &words);
        let bytes = std::fs::read(dir.join("p12")).unwrap();
        let password = more[1].strip_prefix("pass:").unwrap();
        let certificate = Certificate::read(&bytes, password).unwrap();
        let login = Parts {
            certificate: Some(certificate),
            ..Parts::none()
        }
        .login(&server);
        assert_eq!(token(&login).await.unwrap(), "good");
        let statement = form(server.asked().last().unwrap())["client_assertion"].clone();
        let parts: Vec<Vec<u8>> = statement
            .split('.')
            .map(|part| URL_SAFE_NO_PAD.decode(part).unwrap())
            .collect();
        let header: Json = serde_json::from_slice(&parts[0]).unwrap();
        let claims: Json = serde_json::from_slice(&parts[1]).unwrap();
        assert_eq!(
            claims["aud"],
            format!("{}/login/tenant/oauth2/v2.0/token", server.address())
        );
        assert_eq!(
            (claims["iss"].as_str(), claims["sub"].as_str()),
            (Some("client"), Some("client"))
        );
        thumbprint = header["x5t"].as_str().unwrap().to_owned();
        // OpenSSL verifies the signature.
        let (signed, _) = statement.rsplit_once('.').unwrap();
        std::fs::write(dir.join("signed"), signed).unwrap();
        std::fs::write(dir.join("signature"), &parts[2]).unwrap();
        let public = openssl(dir, &["x509", "-in", "cert", "-noout", "-pubkey"]);
        std::fs::write(dir.join("public"), public).unwrap();
        openssl(
            dir,
            &[
                "dgst",
                "-sha256",
                "-verify",
                "public",
                "-signature",
                "signature",
                "signed",
            ],
        );
        if !password.is_empty() {
            let why = Certificate::read(&bytes, "other").err().unwrap().to_string();
            assert!(why.contains("client_certificate_password"), "{why}");
        }
    }
    let printed = openssl(dir, &["x509", "-in", "cert", "-noout", "-fingerprint", "-sha1"]);
    let printed = String::from_utf8(printed).unwrap();
    let hex = printed.trim().rsplit('=').next().unwrap().split(':');
    let bytes: Vec<u8> = hex.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
    assert_eq!(thumbprint, URL_SAFE_NO_PAD.encode(bytes));
}

fn settings(server: &Server, group: &str) -> Settings {
    Settings {
        account: "account".to_owned(),
        container: "states".to_owned(),
        key: "k".to_owned(),
        snapshot: false,
        how: How::LookedUp,
        lookup: false,
        subscription: Some("s".to_owned()),
        group: Some(group.to_owned()),
        cloud: Cloud {
            login: format!("{}/login", server.address()),
            manager: format!("{}/manager", server.address()),
            storage: RESOURCE.to_owned(),
            suffix: "core.windows.net".to_owned(),
        },
        login: Parts {
            secret: Some("secret"),
            ..Parts::none()
        }
        .login(server),
        http: http(),
    }
}

#[tokio::test]
async fn the_key_and_the_place_of_an_account_are_looked_up() {
    let server = azure().await;
    let store = Client::connect(settings(&server, "g")).await.unwrap();
    let there = store_client::guard::LockedStore::read(&store, "default").await.unwrap();
    assert_eq!(there.state.unwrap(), b"state");
    let asked = server.asked();
    let read = asked.last().unwrap();
    assert_eq!(read.target, "/blobs/states/k");
    assert!(
        read.header("authorization").starts_with("SharedKey account:"),
        "{read:?}"
    );
    let scopes: Vec<String> = asked
        .iter()
        .filter(|a| a.path().starts_with("/login"))
        .map(|a| form(a)["scope"].clone())
        .collect();
    assert_eq!(scopes, [format!("{}/manager/.default", server.address())]);
    let problems = Client::connect(settings(&server, "none")).await.err().unwrap();
    assert!(
        problems.0[0]
            .detail
            .contains("az storage account create --name account --resource-group none"),
        "{problems:?}"
    );
}

#[tokio::test]
async fn sources_that_contradict_each_other_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("secret");
    std::fs::write(&path, "one\n").unwrap();
    let config = |secret: &str| {
        vec![
            ("storage_account_name", "account".into()),
            ("container_name", "states".into()),
            ("key", "k".into()),
            ("access_key", BASE64.encode("x").as_str().into()),
            ("client_secret", secret.into()),
            ("client_secret_file_path", path.to_str().unwrap().into()),
        ]
    };
    client(crate::store(), &config("one")).await.unwrap();
    let problems = client(crate::store(), &config("two")).await.err().unwrap();
    assert!(
        problems.0[0].detail.contains("mismatch between supplied client_secret"),
        "{problems:?}"
    );
}
