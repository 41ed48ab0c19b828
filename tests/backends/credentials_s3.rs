//! Where the credentials for S3 come from: a table of settings, each run with a service that records which keys it is asked with,
//! and which roles are taken on with what. Terraform must ask with the same.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use libtest_mimic::Trial;
use support::server::{Reply, Request, Server, decoded};
use support::{Workspace, which};

use crate::lab::{RESOURCE, Tool, run};

/// The parameters of a request to STS that say who is asked for, and how.
const OPTIONS: &[&str] = &[
    "RoleArn",
    "RoleSessionName",
    "DurationSeconds",
    "ExternalId",
    "Policy",
    "SourceIdentity",
    "WebIdentityToken",
    "PolicyArns.member.1.arn",
    "Tags.member.1.Key",
    "Tags.member.1.Value",
    "TransitiveTagKeys.member.1",
];

/// What was asked, in order; the same several times in a row once.
#[derive(Default)]
struct Record(Vec<String>);

impl Record {
    fn add(&mut self, event: String) {
        if self.0.last() != Some(&event) {
            self.0.push(event);
        }
    }
}

/// The access key and the token of a session that a request is signed with.
fn signer(request: &Request) -> String {
    let authorization = request.header("authorization");
    let key = authorization
        .split("Credential=")
        .nth(1)
        .and_then(|rest| rest.split('/').next());
    match (key, request.header("x-amz-security-token")) {
        (None, _) => "nobody".to_owned(),
        (Some(key), "") => key.to_owned(),
        (Some(key), token) => format!("{key} with {token}"),
    }
}

fn sts(request: &Request, record: &mut Record) -> Reply {
    let body = String::from_utf8_lossy(&request.body).into_owned();
    let parameters: BTreeMap<String, String> = body
        .split('&')
        .filter_map(|part| part.split_once('='))
        .map(|(name, value)| (name.to_owned(), decoded(&value.replace('+', " "))))
        .collect();
    let of = |name: &str| parameters.get(name).cloned().unwrap_or_default();
    let action = of("Action");
    if action == "GetCallerIdentity" {
        record.add(format!("who is {}", signer(request)));
        return Reply::ok(
            "<GetCallerIdentityResponse><GetCallerIdentityResult><Arn>arn:aws:iam::123456789012:user/u</Arn><UserId>u</UserId>\
             <Account>123456789012</Account></GetCallerIdentityResult></GetCallerIdentityResponse>",
        )
        .with("Content-Type", "text/xml");
    }
    let mut event = format!("{action} by {}", signer(request));
    for name in OPTIONS {
        let mut value = of(name);
        // The names that programs make up differ.
        if *name == "RoleSessionName" && !value.starts_with("session") {
            value.clear();
        }
        if !value.is_empty() {
            event.push_str(&format!(" {name}={}", value.split_whitespace().collect::<String>()));
        }
    }
    record.add(event);
    let role = of("RoleArn").rsplit('/').next().unwrap_or_default().to_uppercase();
    Reply::ok(format!(
        "<{action}Response><{action}Result><AssumedRoleUser><Arn>a</Arn><AssumedRoleId>i</AssumedRoleId></AssumedRoleUser><Credentials>\
         <AccessKeyId>OF{role}</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>T{role}</SessionToken><Expiration>\
         2099-01-01T00:00:00Z</Expiration></Credentials></{action}Result></{action}Response>"
    ))
    .with("Content-Type", "text/xml")
}

fn answer(request: &Request, record: &mut Record) -> Reply {
    let keys = |name: &str| {
        format!(
            "{{\"Code\":\"Success\",\"Type\":\"AWS-HMAC\",\"AccessKeyId\":\"{name}\",\"SecretAccessKey\":\"s\",\"Token\":\"T{name}\",\
             \"Expiration\":\"2099-01-01T00:00:00Z\",\"LastUpdated\":\"2026-01-01T00:00:00Z\"}}"
        )
    };
    match (request.method(), request.path()) {
        ("POST", "/") => sts(request, record),
        ("PUT", "/latest/api/token") => {
            Reply::ok("token-of-imds").with("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "21600")
        }
        ("GET", path) if path.starts_with("/latest/") => {
            assert_eq!(request.header("x-aws-ec2-metadata-token"), "token-of-imds");
            match path.trim_end_matches('/') {
                "/latest/meta-data/iam/security-credentials" => Reply::ok("role-of-machine"),
                "/latest/meta-data/iam/security-credentials/role-of-machine" => {
                    record.add("metadata of the machine".to_owned());
                    Reply::json(&keys("MACHINE"))
                }
                "/latest/dynamic/instance-identity/document" => Reply::json("{\"region\":\"us-east-1\"}"),
                "/latest/meta-data/placement/region" => Reply::ok("us-east-1"),
                _ => Reply::status(404),
            }
        }
        ("GET", "/container") => {
            record.add(format!("container with {:?}", request.header("authorization")));
            Reply::json(&keys("CONTAINER"))
        }
        ("GET", "/federation/credentials") => {
            let of = |name: &str| request.query(name).unwrap_or_default();
            let token = request.header("x-amz-sso_bearer_token");
            record.add(format!("sso {} {} with {token}", of("account_id"), of("role_name")));
            Reply::json(
                "{\"roleCredentials\":{\"accessKeyId\":\"SSO\",\"secretAccessKey\":\"s\",\"sessionToken\":\"TSSO\",\"expiration\":\
                 4070908800000}}",
            )
        }
        ("GET", path) if path.trim_end_matches('/') == "/states" => {
            record.add(format!("bucket by {}", signer(request)));
            Reply::ok("<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>")
        }
        (_, path) if path.starts_with("/states/") => {
            record.add(format!("bucket by {}", signer(request)));
            Reply::new(404, "<Error><Code>NoSuchKey</Code></Error>")
        }
        _ => Reply::status(404),
    }
}

/// A case: variables, the shared configuration file, that of credentials, arguments of the backend, and what is asked.
struct Case {
    name: &'static str,
    variables: &'static [(&'static str, &'static str)],
    config: &'static str,
    credentials: &'static str,
    arguments: &'static str,
    asked: &'static [&'static str],
}

const NONE: Case = Case {
    name: "",
    variables: &[],
    config: "",
    credentials: "",
    arguments: "",
    asked: &[],
};

const KEYS: &str = "[default]\naws_access_key_id = DEFAULT\naws_secret_access_key = s\n[p]\naws_access_key_id = P\n\
                    aws_secret_access_key = s\naws_session_token = TP\n";
const ENVIRONMENT: &[(&str, &str)] = &[("AWS_ACCESS_KEY_ID", "ENV"), ("AWS_SECRET_ACCESS_KEY", "s")];

const CASES: &[Case] = &[
    Case {
        name: "arguments_before_everything",
        variables: ENVIRONMENT,
        credentials: KEYS,
        arguments: "access_key = \"ARG\"\nsecret_key = \"s\"\ntoken = \"TARG\"",
        asked: &["who is ARG with TARG", "bucket by ARG with TARG"],
        ..NONE
    },
    Case {
        name: "environment_before_files",
        variables: &[
            ("AWS_ACCESS_KEY_ID", "ENV"),
            ("AWS_SECRET_ACCESS_KEY", "s"),
            ("AWS_SESSION_TOKEN", "TENV"),
        ],
        credentials: KEYS,
        asked: &["who is ENV with TENV", "bucket by ENV with TENV"],
        ..NONE
    },
    Case {
        name: "profile_argument_before_environment",
        variables: ENVIRONMENT,
        credentials: KEYS,
        arguments: "profile = \"p\"",
        asked: &["who is P with TP", "bucket by P with TP"],
        ..NONE
    },
    Case {
        name: "environment_before_profile_of_environment",
        variables: &[
            ("AWS_ACCESS_KEY_ID", "ENV"),
            ("AWS_SECRET_ACCESS_KEY", "s"),
            ("AWS_PROFILE", "p"),
        ],
        credentials: KEYS,
        asked: &["who is ENV", "bucket by ENV"],
        ..NONE
    },
    Case {
        name: "profile_of_environment",
        variables: &[("AWS_PROFILE", "p")],
        credentials: KEYS,
        asked: &["who is P with TP", "bucket by P with TP"],
        ..NONE
    },
    Case {
        name: "default_profile",
        credentials: KEYS,
        asked: &["who is DEFAULT", "bucket by DEFAULT"],
        ..NONE
    },
    Case {
        name: "chain_of_roles",
        variables: &[("AWS_PROFILE", "two")],
        config: "[profile one]\nrole_arn = arn:aws:iam::123456789012:role/one\nsource_profile = p\nexternal_id = ext\n\
                 role_session_name = session1\n[profile two]\nrole_arn = arn:aws:iam::123456789012:role/two\nsource_profile = one\n\
                 duration_seconds = 1800\n",
        credentials: KEYS,
        asked: &[
            "AssumeRole by P with TP RoleArn=arn:aws:iam::123456789012:role/one RoleSessionName=session1 DurationSeconds=900 \
             ExternalId=ext",
            "AssumeRole by OFONE with TONE RoleArn=arn:aws:iam::123456789012:role/two DurationSeconds=1800",
            "who is OFTWO with TTWO",
            "bucket by OFTWO with TTWO",
        ],
        ..NONE
    },
    Case {
        name: "role_with_credentials_of_environment",
        variables: ENVIRONMENT,
        config: "[profile e]\nrole_arn = arn:aws:iam::123456789012:role/e\ncredential_source = Environment\n",
        arguments: "profile = \"e\"",
        asked: &[
            "AssumeRole by ENV RoleArn=arn:aws:iam::123456789012:role/e DurationSeconds=900",
            "who is OFE with TE",
            "bucket by OFE with TE",
        ],
        ..NONE
    },
    Case {
        name: "credential_process",
        variables: &[("AWS_PROFILE", "process")],
        config: "[profile process]\ncredential_process = echo \
                 '{\"Version\":1,\"AccessKeyId\":\"PROCESS\",\"SecretAccessKey\":\"s\",\"SessionToken\":\"TPROCESS\"}'\n",
        credentials: KEYS,
        asked: &["who is PROCESS with TPROCESS", "bucket by PROCESS with TPROCESS"],
        ..NONE
    },
    Case {
        name: "web_identity_of_environment_before_files",
        variables: &[
            ("AWS_WEB_IDENTITY_TOKEN_FILE", "token"),
            ("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/web"),
            ("AWS_ROLE_SESSION_NAME", "session2"),
        ],
        credentials: KEYS,
        asked: &[
            "AssumeRoleWithWebIdentity by nobody RoleArn=arn:aws:iam::123456789012:role/web RoleSessionName=session2 \
             WebIdentityToken=jwt",
            "who is OFWEB with TWEB",
            "bucket by OFWEB with TWEB",
        ],
        ..NONE
    },
    Case {
        name: "web_identity_of_profile",
        variables: &[("AWS_PROFILE", "web")],
        config: "[profile web]\nrole_arn = arn:aws:iam::123456789012:role/web\nweb_identity_token_file = token\n\
                 role_session_name = session3\n",
        asked: &[
            "AssumeRoleWithWebIdentity by nobody RoleArn=arn:aws:iam::123456789012:role/web RoleSessionName=session3 \
             WebIdentityToken=jwt",
            "who is OFWEB with TWEB",
            "bucket by OFWEB with TWEB",
        ],
        ..NONE
    },
    Case {
        name: "web_identity_block_then_role",
        variables: ENVIRONMENT,
        arguments: "assume_role_with_web_identity = {\n  role_arn = \"arn:aws:iam::123456789012:role/web\"\n  session_name = \"session4\"\n  \
                    web_identity_token_file = \"token\"\n}\nassume_role = {\n  role_arn = \"arn:aws:iam::123456789012:role/top\"\n}",
        asked: &[
            "AssumeRoleWithWebIdentity by nobody RoleArn=arn:aws:iam::123456789012:role/web RoleSessionName=session4 \
             WebIdentityToken=jwt",
            "AssumeRole by OFWEB with TWEB RoleArn=arn:aws:iam::123456789012:role/top DurationSeconds=900",
            "who is OFTOP with TTOP",
            "bucket by OFTOP with TTOP",
        ],
        ..NONE
    },
    Case {
        name: "role_with_all_options",
        variables: ENVIRONMENT,
        arguments: "assume_role = {\n  role_arn = \"arn:aws:iam::123456789012:role/r\"\n  duration = \"20m\"\n  external_id = \"ext\"\n  \
                    policy = \"{\\\"Version\\\":\\\"2012-10-17\\\"}\"\n  policy_arns = [\"arn:aws:iam::123456789012:policy/p\"]\n  \
                    session_name = \"session5\"\n  source_identity = \"source\"\n  tags = { k = \"v\" }\n  transitive_tag_keys = [\"k\"]\n}",
        asked: &[
            "AssumeRole by ENV RoleArn=arn:aws:iam::123456789012:role/r RoleSessionName=session5 DurationSeconds=1200 \
             ExternalId=ext Policy={\"Version\":\"2012-10-17\"} SourceIdentity=source \
             PolicyArns.member.1.arn=arn:aws:iam::123456789012:policy/p Tags.member.1.Key=k Tags.member.1.Value=v \
             TransitiveTagKeys.member.1=k",
            "who is OFR with TR",
            "bucket by OFR with TR",
        ],
        ..NONE
    },
    Case {
        name: "session_of_sso",
        variables: &[("AWS_PROFILE", "sso")],
        config: "[profile sso]\nsso_session = corp\nsso_account_id = 123456789012\nsso_role_name = admin\n[sso-session corp]\n\
                 sso_region = us-east-1\nsso_start_url = https://corp.example.com/start\n",
        asked: &[
            "sso 123456789012 admin with token-of-session",
            "who is SSO with TSSO",
            "bucket by SSO with TSSO",
        ],
        ..NONE
    },
    Case {
        name: "sso_without_session",
        variables: &[("AWS_PROFILE", "sso")],
        config: "[profile sso]\nsso_account_id = 123456789012\nsso_role_name = admin\nsso_region = us-east-1\n\
                 sso_start_url = https://corp.example.com/start\n",
        asked: &[
            "sso 123456789012 admin with token-of-url",
            "who is SSO with TSSO",
            "bucket by SSO with TSSO",
        ],
        ..NONE
    },
    Case {
        name: "container_before_machine",
        variables: &[
            ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "ADDRESS/container"),
            ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "Basic abc"),
        ],
        asked: &[
            "container with \"Basic abc\"",
            "who is CONTAINER with TCONTAINER",
            "bucket by CONTAINER with TCONTAINER",
        ],
        ..NONE
    },
    Case {
        name: "machine",
        asked: &[
            "metadata of the machine",
            "who is MACHINE with TMACHINE",
            "bucket by MACHINE with TMACHINE",
        ],
        ..NONE
    },
    Case {
        name: "files_before_container",
        variables: &[("AWS_CONTAINER_CREDENTIALS_FULL_URI", "ADDRESS/container")],
        credentials: KEYS,
        asked: &["who is DEFAULT", "bucket by DEFAULT"],
        ..NONE
    },
];

/// A test for each case.
pub fn trials() -> Vec<Trial> {
    let trial = |case: &'static Case| {
        Trial::test(format!("credentials_s3::{}", case.name), move || {
            check(case);
            Ok(())
        })
    };
    CASES.iter().map(trial).collect()
}

fn check(case: &Case) {
    assert_eq!(asked(case, Tool::Monoform), case.asked, "{}", case.name);
    if which("terraform").is_some() {
        assert_eq!(asked(case, Tool::Terraform), case.asked, "{} by Terraform", case.name);
    }
}

/// What a program asks the services for.
fn asked(case: &Case, tool: Tool) -> Vec<String> {
    let record: Arc<Mutex<Record>> = Arc::default();
    let shared = record.clone();
    let server = Server::http(move |request| answer(request, &mut shared.lock().expect("the record")));
    let address = server.url("");
    let mut w = Workspace::with(&[("main.tf", RESOURCE), ("token", "jwt")]);
    for (name, value) in case.variables {
        w = w.env(name, value.replace("ADDRESS", &address));
    }
    for (name, file) in [
        ("AWS_CONFIG_FILE", "config"),
        ("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
    ] {
        let path = w.dir().join(file).display().to_string();
        w = w.env(name, path);
    }
    w = w.env("AWS_EC2_METADATA_SERVICE_ENDPOINT", address.clone());
    w.write("config", case.config);
    w.write("credentials", case.credentials);
    // The names are the SHA-1 of the session's name and of the address.
    let cache = w.home().join(".aws/sso/cache");
    std::fs::create_dir_all(&cache).expect("a directory");
    for (key, token) in [
        ("corp", "token-of-session"),
        ("https://corp.example.com/start", "token-of-url"),
    ] {
        let text =
            format!("{{\"accessToken\":\"{token}\",\"expiresAt\":\"2099-01-01T00:00:00Z\",\"region\":\"us-east-1\"}}");
        std::fs::write(cache.join(format!("{}.json", sha1(key))), text).expect("a file");
    }
    w.write(
        "backend.tf",
        &format!(
            "terraform {{\n  backend \"s3\" {{\n    bucket = \"states\"\n    key = \"k\"\n    region = \"us-east-1\"\n    use_path_style = \
             true\n    skip_requesting_account_id = true\n    endpoints = {{\n      s3 = \"{address}\"\n      sts = \"{address}\"\n      iam \
             = \"{address}\"\n      sso = \"{address}\"\n    }}\n{}\n  }}\n}}\n",
            case.arguments
        ),
    );
    run(&w, tool, &["init", "-input=false"]).ok();
    std::mem::take(&mut record.lock().expect("the record").0)
}

fn sha1(text: &str) -> String {
    let sum = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes());
    sum.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
