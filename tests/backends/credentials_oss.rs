//! Whose keys requests to Alibaba Cloud are signed with: a table of variables, files and arguments, each run with a service that
//! records the keys. Terraform must ask with the same.

use std::sync::{Arc, Mutex};

use libtest_mimic::Trial;
use support::server::{Reply, Server};
use support::{Workspace, which};

use crate::lab::{RESOURCE, Tool, run};

/// A case: variables, arguments of the backend, and who asks for the bucket. `DIR` is the working directory.
struct Case {
    name: &'static str,
    variables: &'static [(&'static str, &'static str)],
    arguments: &'static str,
    asked: &'static str,
}

const NONE: Case = Case {
    name: "",
    variables: &[],
    arguments: "",
    asked: "",
};

const ID: (&str, &str) = ("ALICLOUD_ACCESS_KEY", "of-environment");
const KEY: (&str, &str) = ("ALICLOUD_SECRET_KEY", "k");

const CASES: &[Case] = &[
    Case {
        name: "arguments_before_environment",
        variables: &[ID, KEY],
        arguments: "access_key = \"of-argument\"\nsecret_key = \"k\"\nsecurity_token = \"t\"",
        asked: "of-argument with t",
    },
    Case {
        name: "environment_before_profile",
        variables: &[
            ID,
            KEY,
            ("ALICLOUD_SECURITY_TOKEN", "t"),
            ("ALICLOUD_SHARED_CREDENTIALS_FILE", "DIR/profiles.json"),
            ("ALICLOUD_PROFILE", "keys"),
        ],
        asked: "of-environment with t",
        ..NONE
    },
    Case {
        name: "first_name_of_environment_counts",
        variables: &[ID, ("ALICLOUD_ACCESS_KEY_ID", "second"), KEY],
        asked: "of-environment",
        ..NONE
    },
    Case {
        name: "other_names_of_environment",
        variables: &[
            ("ALICLOUD_ACCESS_KEY_ID", "second"),
            ("ALICLOUD_ACCESS_KEY_SECRET", "k"),
        ],
        asked: "second",
        ..NONE
    },
    Case {
        name: "profile_of_argument",
        arguments: "shared_credentials_file = \"DIR/profiles.json\"\nprofile = \"keys\"",
        asked: "of-profile",
        ..NONE
    },
    Case {
        name: "profile_with_token",
        variables: &[
            ("ALICLOUD_SHARED_CREDENTIALS_FILE", "DIR/profiles.json"),
            ("ALICLOUD_PROFILE", "token"),
        ],
        asked: "of-token with t-profile",
        ..NONE
    },
];

const PROFILES: &str = r#"{"current": "keys", "profiles": [
  {"name": "keys", "mode": "AK", "access_key_id": "of-profile", "access_key_secret": "k", "sts_token": "unused", "region_id": "cn-beijing"},
  {"name": "token", "mode": "StsToken", "access_key_id": "of-token", "access_key_secret": "k", "sts_token": "t-profile", "region_id": "cn-beijing"}
]}"#;

/// A test for each case.
pub fn trials() -> Vec<Trial> {
    let trial = |case: &'static Case| {
        Trial::test(format!("credentials_oss::{}", case.name), move || {
            assert_eq!(asked(case, Tool::Monoform), case.asked);
            if which("terraform").is_some() {
                assert_eq!(asked(case, Tool::Terraform), case.asked, "by Terraform");
            }
            Ok(())
        })
    };
    CASES.iter().map(trial).collect()
}

/// Who asks for the bucket first.
fn asked(case: &Case, tool: Tool) -> String {
    let record: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = record.clone();
    let server = Server::http(move |request| {
        let authorization = request.header("authorization");
        let id = authorization
            .trim_start_matches("OSS ")
            .split(':')
            .next()
            .unwrap_or_default();
        let with = match request.header("x-oss-security-token") {
            "" => String::new(),
            token => format!(" with {token}"),
        };
        kept.lock().expect("the record").push(format!("{id}{with}"));
        Reply::new(
            403,
            "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code><Message>no</Message></Error>",
        )
    });
    let mut w = Workspace::with(&[("main.tf", RESOURCE), ("profiles.json", PROFILES)]);
    let dir = w.dir().display().to_string();
    w.write(
        "backend.tf",
        &format!(
            "terraform {{\n  backend \"oss\" {{\n    bucket = \"states\"\n    region = \"cn-beijing\"\n    endpoint = \"{}\"\n{}\n  }}\n}}\n",
            server.url(""),
            case.arguments.replace("DIR", &dir)
        ),
    );
    for (name, value) in case.variables {
        w = w.env(name, value.replace("DIR", &dir));
    }
    let init = run(&w, tool, &["init", "-input=false"]);
    let record = record.lock().expect("the record");
    let first = record.first().cloned();
    first.unwrap_or_else(|| panic!("{tool:?} has not asked for the bucket: {}", init.all()))
}
