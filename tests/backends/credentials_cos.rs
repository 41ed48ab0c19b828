//! Whose keys requests to Tencent Cloud are signed with: a table of variables, files and arguments, each run with services that
//! record the keys, and the roles that are taken on. Both programs ask for the real names of the servers, by way of a proxy.
//! Terraform must ask with the same.

use std::sync::{Arc, Mutex};

use libtest_mimic::Trial;
use serde_json::Value as Json;
use support::server::{Reply, Request, Server};
use support::{Workspace, which};

use crate::lab::{RESOURCE, Tool, run};
use crate::server::proxy;

/// A case: variables, arguments of the backend, and what is asked. `DIR` is the working directory.
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

const ID: (&str, &str) = ("TENCENTCLOUD_SECRET_ID", "of-environment");
const KEY: (&str, &str) = ("TENCENTCLOUD_SECRET_KEY", "k");
const FILES: (&str, &str) = ("TENCENTCLOUD_SHARED_CREDENTIALS_DIR", "DIR/files");

const CASES: &[Case] = &[
    Case {
        name: "arguments_before_environment",
        variables: &[ID, KEY],
        arguments: "secret_id = \"of-argument\"\nsecret_key = \"k\"\nsecurity_token = \"t\"",
        asked: &["bucket by of-argument with t"],
    },
    Case {
        name: "environment_before_profile",
        variables: &[ID, KEY, ("TENCENTCLOUD_SECURITY_TOKEN", "t"), FILES],
        asked: &["bucket by of-environment with t"],
        ..NONE
    },
    Case {
        name: "default_profile",
        variables: &[FILES],
        asked: &["bucket by of-default"],
        ..NONE
    },
    Case {
        name: "profile_of_environment",
        variables: &[FILES, ("TENCENTCLOUD_PROFILE", "other")],
        asked: &["bucket by of-other with t-other"],
        ..NONE
    },
    Case {
        name: "profile_of_argument_before_environment",
        variables: &[("TENCENTCLOUD_PROFILE", "default")],
        arguments: "shared_credentials_dir = \"DIR/files\"\nprofile = \"other\"",
        asked: &["bucket by of-other with t-other"],
    },
    Case {
        name: "role_of_block",
        variables: &[ID, KEY],
        arguments: "assume_role {\n  role_arn = \"arn\"\n  session_name = \"s\"\n  session_duration = 1800\n  external_id = \"e\"\n}",
        asked: &[
            "role arn by of-environment for s, 1800 seconds, e",
            "bucket by of-role with t-role",
        ],
    },
    Case {
        name: "role_of_environment",
        variables: &[
            ID,
            KEY,
            ("TENCENTCLOUD_ASSUME_ROLE_ARN", "arn"),
            ("TENCENTCLOUD_ASSUME_ROLE_SESSION_NAME", "s"),
        ],
        asked: &[
            "role arn by of-environment for s, 7200 seconds, ",
            "bucket by of-role with t-role",
        ],
        ..NONE
    },
];

fn answer(request: &Request, record: &mut Vec<String>) -> Reply {
    let authorization = request.header("authorization");
    if request.header("host").starts_with("sts.") {
        let body: Json = serde_json::from_slice(&request.body).expect("JSON");
        let id = authorization
            .split("Credential=")
            .nth(1)
            .and_then(|rest| rest.split('/').next());
        let of = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
        record.push(format!(
            "role {} by {} for {}, {} seconds, {}",
            of("RoleArn"),
            id.unwrap_or_default(),
            of("RoleSessionName"),
            body["DurationSeconds"],
            of("ExternalId")
        ));
        return Reply::json(
            "{\"Response\":{\"Credentials\":{\"Token\":\"t-role\",\"TmpSecretId\":\"of-role\",\"TmpSecretKey\":\"k\"},\"ExpiredTime\":\
             4070908800,\"Expiration\":\"2099-01-01T00:00:00Z\",\"RequestId\":\"1\"}}",
        );
    }
    let id = authorization
        .split("q-ak=")
        .nth(1)
        .and_then(|rest| rest.split('&').next());
    let with = match request.header("x-cos-security-token") {
        "" => String::new(),
        token => format!(" with {token}"),
    };
    record.push(format!("bucket by {}{with}", id.unwrap_or_default()));
    Reply::new(
        403,
        "<?xml version='1.0'?><Error><Code>AccessDenied</Code><Message>no</Message></Error>",
    )
}

/// A test for each case.
pub fn trials() -> Vec<Trial> {
    let trial = |case: &'static Case| {
        Trial::test(format!("credentials_cos::{}", case.name), move || {
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
    let names = ["*.cos.ap-guangzhou.myqcloud.com", "sts.tencentcloudapi.com"];
    let server = Server::https_as(&names, move |request| {
        answer(request, &mut kept.lock().expect("the record"))
    });
    let port = server
        .host()
        .rsplit(':')
        .next()
        .and_then(|port| port.parse().ok())
        .expect("a port");
    let mut w = Workspace::with(&[
        ("main.tf", RESOURCE),
        ("cert.pem", &server.certificate),
        (
            "files/default.credential",
            "{\"secretId\":\"of-default\",\"secretKey\":\"k\"}",
        ),
        (
            "files/default.configure",
            "{\"_sys_param\":{\"region\":\"ap-guangzhou\"}}",
        ),
        (
            "files/other.credential",
            "{\"secretId\":\"of-other\",\"secretKey\":\"k\",\"token\":\"t-other\"}",
        ),
        (
            "files/other.configure",
            "{\"_sys_param\":{\"region\":\"ap-guangzhou\"}}",
        ),
    ]);
    let dir = w.dir().display().to_string();
    for (name, value) in [
        ("HTTPS_PROXY", format!("http://127.0.0.1:{}", proxy(port))),
        ("NO_PROXY", String::new()),
        ("SSL_CERT_FILE", format!("{dir}/cert.pem")),
    ] {
        w = w.env(name, value);
    }
    w.write(
        "backend.tf",
        &format!(
            "terraform {{\n  backend \"cos\" {{\n    bucket = \"states-1250000000\"\n    region = \"ap-guangzhou\"\n{}\n  }}\n}}\n",
            case.arguments.replace("DIR", &dir)
        ),
    );
    for (name, value) in case.variables {
        w = w.env(name, value.replace("DIR", &dir));
    }
    let init = run(&w, tool, &["init", "-input=false"]);
    let mut record = record.lock().expect("the record");
    let end = record.iter().position(|event| event.starts_with("bucket"));
    let end = end.unwrap_or_else(|| panic!("{tool:?} has not asked for the bucket: {record:?}\n{}", init.all()));
    record.drain(..=end).collect()
}
