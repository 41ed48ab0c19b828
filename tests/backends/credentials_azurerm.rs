//! Who asks for the blobs of Azure Storage: a table of variables and arguments, each run with services that record what they are
//! asked for. Both programs ask for the real names of the servers, by way of a proxy that leads every connection to the one that is
//! made up. Terraform must ask the same.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Mutex};

use libtest_mimic::Trial;
use support::server::{Reply, Request, Server, decoded};
use support::{Workspace, which};

use crate::lab::{RESOURCE, Tool, run};
use crate::server::proxy;

/// A case: variables, arguments of the backend, and what is asked. `DIR` is the working directory, `PLAIN` a server without TLS.
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

const APPLICATION: (&str, &str) = ("ARM_CLIENT_ID", "app");
const TENANT: (&str, &str) = ("ARM_TENANT_ID", "10000000-0000-4000-8000-000000000000");
const SECRET: &[&str] = &["login of app with the secret s", "blobs by token-of-login"];

const CASES: &[Case] = &[
    Case {
        name: "secret_of_arguments",
        arguments: "tenant_id = \"10000000-0000-4000-8000-000000000000\"\nclient_id = \"app\"\nclient_secret = \"s\"",
        asked: SECRET,
        ..NONE
    },
    Case {
        name: "secret_of_environment",
        variables: &[APPLICATION, TENANT, ("ARM_CLIENT_SECRET", "s")],
        asked: SECRET,
        ..NONE
    },
    Case {
        name: "secret_in_a_file",
        variables: &[APPLICATION, TENANT, ("ARM_CLIENT_SECRET_FILE_PATH", "DIR/secret")],
        asked: SECRET,
        ..NONE
    },
    Case {
        name: "secret_before_token",
        variables: &[
            APPLICATION,
            TENANT,
            ("ARM_CLIENT_SECRET", "s"),
            ("ARM_USE_OIDC", "true"),
            ("ARM_OIDC_TOKEN", "of-environment"),
        ],
        asked: SECRET,
        ..NONE
    },
    Case {
        name: "token_of_argument",
        variables: &[APPLICATION, TENANT],
        arguments: "use_oidc = true\noidc_token = \"of-argument\"",
        asked: &["login of app with the token of-argument", "blobs by token-of-login"],
    },
    Case {
        name: "token_in_a_file",
        variables: &[
            APPLICATION,
            TENANT,
            ("ARM_USE_OIDC", "true"),
            ("ARM_OIDC_TOKEN_FILE_PATH", "DIR/jwt"),
        ],
        asked: &["login of app with the token of-file", "blobs by token-of-login"],
        ..NONE
    },
    Case {
        name: "token_of_workload_identity",
        variables: &[
            ("ARM_USE_AKS_WORKLOAD_IDENTITY", "true"),
            ("AZURE_CLIENT_ID", "app"),
            ("AZURE_TENANT_ID", "10000000-0000-4000-8000-000000000000"),
            ("AZURE_FEDERATED_TOKEN_FILE", "DIR/jwt"),
        ],
        asked: &["login of app with the token of-file", "blobs by token-of-login"],
        ..NONE
    },
    Case {
        name: "token_of_github",
        variables: &[
            APPLICATION,
            TENANT,
            ("ARM_USE_OIDC", "true"),
            ("ACTIONS_ID_TOKEN_REQUEST_URL", "PLAIN/github?x=y"),
            ("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "of-job"),
        ],
        asked: &[
            "token of github by Bearer of-job for api://AzureADTokenExchange",
            "login of app with the token of-github",
            "blobs by token-of-login",
        ],
        ..NONE
    },
    Case {
        name: "managed_identity_before_command_line",
        variables: &[APPLICATION],
        arguments: "use_msi = true\nmsi_endpoint = \"PLAIN/msi\"",
        asked: &["identity app of the machine", "blobs by token-of-machine"],
    },
    Case {
        name: "command_line",
        asked: &["blobs by token-of-az"],
        ..NONE
    },
    Case {
        name: "key_before_login",
        variables: &[
            APPLICATION,
            TENANT,
            ("ARM_CLIENT_SECRET", "s"),
            ("ARM_ACCESS_KEY", "a2V5"),
        ],
        asked: &["blobs by SharedKey teststates"],
        ..NONE
    },
];

const AZ: &str = r#"#!/bin/sh
case "$*" in
*get-access-token*) echo '{"accessToken":"token-of-az","expiresOn":"2099-01-01 00:00:00.000000","expires_on":4070908800,"subscription":"20000000-0000-4000-8000-000000000000","tenant":"10000000-0000-4000-8000-000000000000","tokenType":"Bearer"}' ;;
*version*) echo '{"azure-cli":"2.70.0","azure-cli-core":"2.70.0","azure-cli-telemetry":"1.1.0","extensions":{}}' ;;
*"account list"*) echo '[{"id":"20000000-0000-4000-8000-000000000000","tenantId":"10000000-0000-4000-8000-000000000000","isDefault":true}]' ;;
*) echo '{"id":"20000000-0000-4000-8000-000000000000","tenantId":"10000000-0000-4000-8000-000000000000","user":{"type":"user","name":"me"},"isDefault":true}' ;;
esac
"#;

fn token(name: &str) -> Reply {
    Reply::json(&format!(
        "{{\"access_token\":\"token-of-{name}\",\"token_type\":\"Bearer\",\"expires_in\":\"3600\",\"expires_on\":\"4070908800\",\
         \"not_before\":\"0\",\"resource\":\"https://storage.azure.com\"}}"
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
    let host = request.header("host");
    let authorization = request.header("authorization");
    if host.starts_with("login.microsoftonline.com") {
        assert!(
            request.path().starts_with("/10000000-0000-4000-8000-000000000000/"),
            "{}",
            request.line
        );
        let proof = match of("client_secret") {
            secret if secret.is_empty() => format!("the token {}", of("client_assertion")),
            secret => format!("the secret {secret}"),
        };
        record.push(format!("login of {} with {proof}", of("client_id")));
        return Reply::json("{\"access_token\":\"token-of-login\",\"token_type\":\"Bearer\",\"expires_in\":3600}");
    }
    match request.path() {
        "/github" => {
            let audience = request.query("audience").unwrap_or_default();
            record.push(format!("token of github by {authorization} for {audience}"));
            Reply::json("{\"count\":1,\"value\":\"of-github\"}")
        }
        "/msi" => {
            record.push(format!(
                "identity {} of the machine",
                request.query("client_id").unwrap_or_default()
            ));
            token("machine")
        }
        _ => {
            assert!(
                host.starts_with("teststates.blob.core.windows.net"),
                "{host} {}",
                request.line
            );
            let who = authorization
                .trim_start_matches("Bearer ")
                .split(':')
                .next()
                .unwrap_or_default();
            record.push(format!("blobs by {who}"));
            Reply::new(
                403,
                "<?xml version=\"1.0\"?><Error><Code>AuthorizationFailure</Code><Message>no</Message></Error>",
            )
            .with("Content-Type", "application/xml")
            .with("x-ms-error-code", "AuthorizationFailure")
        }
    }
}

/// A test for each case.
pub fn trials() -> Vec<Trial> {
    let trial = |case: &'static Case| {
        Trial::test(format!("credentials_azurerm::{}", case.name), move || {
            assert_eq!(asked(case, Tool::Monoform), case.asked);
            if which("terraform").is_some() {
                assert_eq!(asked(case, Tool::Terraform), case.asked, "by Terraform");
            }
            Ok(())
        })
    };
    CASES.iter().map(trial).collect()
}

/// What a program asks until it has asked for the blobs.
fn asked(case: &Case, tool: Tool) -> Vec<String> {
    let record: Arc<Mutex<Vec<String>>> = Arc::default();
    let recorder =
        |kept: Arc<Mutex<Vec<String>>>| move |request: &Request| answer(request, &mut kept.lock().expect("the record"));
    let names = [
        "*.blob.core.windows.net",
        "login.microsoftonline.com",
        "management.azure.com",
    ];
    let server = Server::https_as(&names, recorder(record.clone()));
    let plain = Server::http(recorder(record.clone()));
    let port = server
        .host()
        .rsplit(':')
        .next()
        .and_then(|port| port.parse().ok())
        .expect("a port");
    let mut w = Workspace::with(&[
        ("main.tf", RESOURCE),
        ("secret", "s"),
        ("jwt", "of-file"),
        ("cert.pem", &server.certificate),
        ("bin/az", AZ),
    ]);
    let dir = w.dir().display().to_string();
    std::fs::set_permissions(w.dir().join("bin/az"), std::fs::Permissions::from_mode(0o755)).expect("its mode");
    let filled = |text: &str| text.replace("DIR", &dir).replace("PLAIN", &plain.url(""));
    let path = std::env::var("PATH").unwrap_or_default();
    for (name, value) in [
        ("PATH", format!("{dir}/bin:{path}")),
        ("HTTPS_PROXY", format!("http://127.0.0.1:{}", proxy(port))),
        ("NO_PROXY", String::new()),
        ("SSL_CERT_FILE", format!("{dir}/cert.pem")),
    ] {
        w = w.env(name, value);
    }
    w.write(
        "backend.tf",
        &format!(
            "terraform {{\n  backend \"azurerm\" {{\n    storage_account_name = \"teststates\"\n    container_name = \"states\"\n    key = \
             \"k\"\n    use_azuread_auth = true\n{}\n  }}\n}}\n",
            filled(case.arguments)
        ),
    );
    for (name, value) in case.variables {
        w = w.env(name, filled(value));
    }
    let init = run(&w, tool, &["init", "-input=false"]);
    let mut record = record.lock().expect("the record");
    let end = record.iter().position(|event| event.starts_with("blobs"));
    let end = end.unwrap_or_else(|| panic!("{tool:?} has not asked for the blobs: {record:?}\n{}", init.all()));
    record.drain(..=end).collect()
}
