//! Where the tokens for Google Cloud Storage come from: a table of variables, files and arguments, each run with services that record
//! what they are asked for, and by whom. Terraform must ask the same.

use std::sync::{Arc, Mutex, OnceLock};

use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der};
use aws_lc_rs::rsa::{KeyPair, KeySize};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD as BASE64, URL_SAFE_NO_PAD};
use libtest_mimic::Trial;
use serde_json::{Value as Json, json};
use support::server::{Reply, Request, Server, decoded};
use support::{Workspace, which};

use crate::lab::{RESOURCE, Tool, run};

/// A case: variables, arguments of the backend, and what is asked. `DIR` is the working directory, in which there are the service
/// accounts `one.json` and `two.json`.
struct Case {
    name: &'static str,
    variables: &'static [(&'static str, &'static str)],
    arguments: &'static str,
    asked: &'static [&'static str],
}

const NONE: Case = Case {
    name: "",
    variables: &[],
    arguments: "",
    asked: &[],
};

const ONE: &[&str] = &["token of one@example.com", "bucket by token-of-one"];
const TWO: &[&str] = &["token of two@example.com", "bucket by token-of-two"];

const CASES: &[Case] = &[
    Case {
        name: "token_before_everything",
        variables: &[
            ("GOOGLE_OAUTH_ACCESS_TOKEN", "of-environment"),
            ("GOOGLE_CREDENTIALS", "DIR/one.json"),
        ],
        arguments: "access_token = \"of-argument\"\ncredentials = \"DIR/two.json\"",
        asked: &["bucket by of-argument"],
    },
    Case {
        name: "token_of_environment_before_credentials",
        variables: &[("GOOGLE_OAUTH_ACCESS_TOKEN", "of-environment")],
        arguments: "credentials = \"DIR/two.json\"",
        asked: &["bucket by of-environment"],
    },
    Case {
        name: "credentials_of_argument_before_environment",
        variables: &[
            ("GOOGLE_BACKEND_CREDENTIALS", "DIR/two.json"),
            ("GOOGLE_APPLICATION_CREDENTIALS", "DIR/two.json"),
        ],
        arguments: "credentials = \"DIR/one.json\"",
        asked: ONE,
    },
    Case {
        name: "credentials_of_backend_before_those_of_provider",
        variables: &[
            ("GOOGLE_BACKEND_CREDENTIALS", "DIR/one.json"),
            ("GOOGLE_CREDENTIALS", "DIR/two.json"),
        ],
        asked: ONE,
        ..NONE
    },
    Case {
        name: "credentials_before_those_of_applications",
        variables: &[
            ("GOOGLE_CREDENTIALS", "DIR/one.json"),
            ("GOOGLE_APPLICATION_CREDENTIALS", "DIR/two.json"),
        ],
        asked: ONE,
        ..NONE
    },
    Case {
        name: "credentials_of_applications_before_file_of_gcloud",
        variables: &[
            ("GOOGLE_APPLICATION_CREDENTIALS", "DIR/two.json"),
            ("CLOUDSDK_CONFIG", "DIR/gcloud"),
        ],
        asked: TWO,
        ..NONE
    },
    Case {
        name: "file_of_gcloud_before_machine",
        variables: &[("GCE_METADATA_HOST", "HOST"), ("USE_GCLOUD", "1")],
        asked: ONE,
        ..NONE
    },
    Case {
        name: "machine",
        variables: &[("GCE_METADATA_HOST", "HOST")],
        asked: &["metadata of the machine", "bucket by token-of-machine"],
        ..NONE
    },
    Case {
        name: "external_account",
        variables: &[("GOOGLE_APPLICATION_CREDENTIALS", "DIR/external.json")],
        asked: &["exchange of subject for //iam/audience", "bucket by token-of-exchange"],
        ..NONE
    },
];

/// The PEM text of a key, made once.
fn key() -> &'static str {
    static KEY: OnceLock<String> = OnceLock::new();
    KEY.get_or_init(|| {
        let pair = KeyPair::generate(KeySize::Rsa2048).expect("a key");
        let der: Pkcs8V1Der<'_> = pair.as_der().expect("its form");
        format!(
            "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
            BASE64.encode(der.as_ref())
        )
    })
}

fn account(name: &str, address: &str) -> String {
    json!({
        "type": "service_account",
        "project_id": "p",
        "private_key_id": "k",
        "private_key": key(),
        "client_email": format!("{name}@example.com"),
        "client_id": "1",
        "token_uri": format!("{address}/token"),
    })
    .to_string()
}

fn token(name: &str) -> Reply {
    Reply::json(&format!(
        "{{\"access_token\":\"token-of-{name}\",\"token_type\":\"Bearer\",\"expires_in\":3600,\"issued_token_type\":\
         \"urn:ietf:params:oauth:token-type:access_token\"}}"
    ))
}

fn answer(request: &Request, record: &mut Vec<String>) -> Reply {
    let body = String::from_utf8_lossy(&request.body).into_owned();
    let of = |name: &str| {
        let found = body
            .split('&')
            .filter_map(|part| part.split_once('='))
            .find(|(key, _)| *key == name);
        found
            .map(|(_, value)| decoded(&value.replace('+', " ")))
            .unwrap_or_default()
    };
    match (request.method(), request.path()) {
        ("POST", "/token") => {
            let assertion = of("assertion");
            let claims = URL_SAFE_NO_PAD
                .decode(assertion.split('.').nth(1).unwrap_or_default())
                .expect("Base64");
            let claims: Json = serde_json::from_slice(&claims).expect("claims");
            let (who, scope) = (
                claims["iss"].as_str().expect("who"),
                claims["scope"].as_str().expect("what for"),
            );
            // Ours is for objects only, that of Terraform's library for everything.
            let scopes = ["devstorage.read_write", "cloud-platform"];
            assert!(
                scopes.contains(&scope.rsplit('/').next().unwrap_or_default()),
                "{scope}"
            );
            record.push(format!("token of {who}"));
            token(who.split('@').next().unwrap_or_default())
        }
        ("POST", "/exchange") => {
            record.push(format!("exchange of {} for {}", of("subject_token"), of("audience")));
            token("exchange")
        }
        ("GET", "/computeMetadata/v1/instance/service-accounts/default/token") => {
            assert_eq!(request.header("metadata-flavor"), "Google");
            record.push("metadata of the machine".to_owned());
            token("machine").with("Metadata-Flavor", "Google")
        }
        ("GET", path) if path.starts_with("/computeMetadata/") => {
            Reply::new(404, "no").with("Metadata-Flavor", "Google")
        }
        ("GET", "/") => Reply::ok("").with("Metadata-Flavor", "Google"),
        _ => {
            let who = request.header("authorization").trim_start_matches("Bearer ").to_owned();
            record.push(format!("bucket by {who}"));
            Reply::new(403, "{\"error\":{\"code\":403,\"message\":\"no\"}}").with("Content-Type", "application/json")
        }
    }
}

/// A test for each case.
pub fn trials() -> Vec<Trial> {
    let trial = |case: &'static Case| {
        Trial::test(format!("credentials_gcs::{}", case.name), move || {
            assert_eq!(asked(case, Tool::Monoform), case.asked);
            if which("terraform").is_some() {
                assert_eq!(asked(case, Tool::Terraform), case.asked, "by Terraform");
            }
            Ok(())
        })
    };
    CASES.iter().map(trial).collect()
}

/// What a program asks until it has asked for the bucket.
fn asked(case: &Case, tool: Tool) -> Vec<String> {
    let record: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = record.clone();
    let server = Server::http(move |request| answer(request, &mut kept.lock().expect("the record")));
    let address = server.url("");
    let mut w = Workspace::with(&[
        ("main.tf", RESOURCE),
        ("one.json", &account("one", &address)),
        ("two.json", &account("two", &address)),
        ("subject", "subject"),
    ]);
    let dir = w.dir().display().to_string();
    let external = json!({
        "type": "external_account",
        "audience": "//iam/audience",
        "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
        "token_url": format!("{address}/exchange"),
        "credential_source": {"file": format!("{dir}/subject")},
    });
    w.write("external.json", &external.to_string());
    w.write("gcloud/application_default_credentials.json", &account("one", &address));
    let filled = |text: &str| text.replace("DIR", &dir).replace("HOST", &server.host());
    w.write(
        "backend.tf",
        &format!(
            "terraform {{\n  backend \"gcs\" {{\n    bucket = \"states\"\n    storage_custom_endpoint = \"{address}/storage/v1/\"\n{}\n  \
             }}\n}}\n",
            filled(case.arguments)
        ),
    );
    for (name, value) in case.variables {
        if *name == "USE_GCLOUD" {
            let folder = w.home().join(".config/gcloud");
            std::fs::create_dir_all(&folder).expect("a directory");
            let file = folder.join("application_default_credentials.json");
            std::fs::write(file, account("one", &address)).expect("a file");
            continue;
        }
        w = w.env(name, filled(value));
    }
    let init = run(&w, tool, &["init", "-input=false"]);
    let mut record = record.lock().expect("the record");
    let end = record.iter().position(|event| event.starts_with("bucket"));
    let end = end.unwrap_or_else(|| panic!("{tool:?} has not asked for the bucket: {record:?}\n{}", init.all()));
    record.drain(..=end).collect()
}
