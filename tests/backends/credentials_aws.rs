//! Credentials for AWS from arguments, the environment and the shared files; and a cloud that records the signer of each request.
//!
//! In this cloud the secret of an access key `A` is `A-secret`, and its token, if it has one, `A-token`; the fake recomputes every
//! signature. A role `…:role/NAME` is the access key `NAME`.

use aws_lc_rs::hmac;
use sha2::{Digest as _, Sha256};
use support::server::{Reply, Request};

use crate::credentials::{Pairs, ROW, Row, Table, Terraform, form, same};

/// Endpoints of the services.
pub const ENVIRONMENT: Pairs = &[
    ("AWS_ENDPOINT_URL_S3", "{url}/s3"),
    ("AWS_ENDPOINT_URL_STS", "{url}/sts"),
    ("AWS_ENDPOINT_URL_IAM", "{url}/iam"),
    ("AWS_ENDPOINT_URL_SSO", "{url}/sso"),
    ("AWS_ENDPOINT_URL_SSO_OIDC", "{url}/oidc"),
    ("AWS_EC2_METADATA_SERVICE_ENDPOINT", "{url}/"),
    ("AWS_EC2_METADATA_DISABLED", "true"),
];

/// Settings of a bucket, without the requests for the caller's identity and account.
pub const SETTINGS: &str = r#"
    bucket                      = "states"
    key                         = "k"
    region                      = "us-east-1"
    use_path_style              = true
    skip_credentials_validation = true
    skip_requesting_account_id  = true
"#;

pub const TABLE: Table = Table {
    store: "s3",
    subject: "files",
    settings: SETTINGS,
    environment: ENVIRONMENT,
    names: &[],
    answer,
    as_ours: same,
    rows: ROWS,
};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the signer of a request, the region in the signature, and true if the signature is right; `None` for an unsigned request.
fn signer(request: &Request) -> Option<(String, String, bool)> {
    let authorization = request.header("authorization").strip_prefix("AWS4-HMAC-SHA256 ")?;
    let part = |name: &str| {
        let parts = authorization.split(',').map(str::trim);
        parts.filter_map(|part| part.split_once('=')).find(|(n, _)| *n == name)
    };
    let (credential, names) = (part("Credential")?.1, part("SignedHeaders")?.1);
    let scope: Vec<&str> = credential.split('/').collect();
    let [key, date, region, service, end] = scope[..] else {
        return None;
    };
    let (_, target) = request.line.split_once(' ')?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut parameters: Vec<String> = query.split('&').filter(|p| !p.is_empty()).map(str::to_owned).collect();
    for parameter in &mut parameters {
        if !parameter.contains('=') {
            parameter.push('=');
        }
    }
    parameters.sort();
    let headers: String = names
        .split(';')
        .map(|name| format!("{name}:{}\n", request.header(name)))
        .collect();
    let sum = match request.header("x-amz-content-sha256") {
        "" => hex(&Sha256::digest(&request.body)),
        sum => sum.to_owned(),
    };
    let canonical = format!(
        "{}\n{path}\n{}\n{headers}\n{names}\n{sum}",
        request.method(),
        parameters.join("&")
    );
    let text = format!(
        "AWS4-HMAC-SHA256\n{}\n{date}/{region}/{service}/{end}\n{}",
        request.header("x-amz-date"),
        hex(&Sha256::digest(canonical.as_bytes()))
    );
    let sign = |key: &[u8], text: &str| {
        let key = hmac::Key::new(hmac::HMAC_SHA256, key);
        hmac::sign(&key, text.as_bytes()).as_ref().to_vec()
    };
    let start = format!("AWS4{key}-secret").into_bytes();
    let derived = [date, region, service, end]
        .iter()
        .fold(start, |key, part| sign(&key, part));
    let right = part("Signature")?.1 == hex(&sign(&derived, &text));
    let who = match request.header("x-amz-security-token") {
        "" => key.to_owned(),
        token if token == format!("{key}-token") => format!("{key}+token"),
        token => format!("{key}+{token}"),
    };
    Some((who, region.to_owned(), right))
}

/// Returns the reply of STS to an action: access keys that expire in the far future.
fn keys(action: &str, name: &str) -> Reply {
    Reply::ok(format!(
        "<{action}Response><{action}Result><Credentials><AccessKeyId>{name}</AccessKeyId><SecretAccessKey>{name}-secret\
         </SecretAccessKey><SessionToken>{name}-token</SessionToken><Expiration>2999-01-01T00:00:00Z</Expiration>\
         </Credentials></{action}Result></{action}Response>"
    ))
}

/// Returns keys that expire in the far future, in the form of the metadata services.
fn keys_in_json(name: &str) -> Reply {
    Reply::json(&format!(
        "{{\"Code\":\"Success\",\"AccessKeyId\":\"{name}\",\"SecretAccessKey\":\"{name}-secret\",\"Token\":\"{name}-token\",\
         \"Expiration\":\"2999-01-01T00:00:00Z\"}}"
    ))
}

fn refusal(code: &str) -> Reply {
    Reply::new(
        403,
        format!("<ErrorResponse><Error><Code>{code}</Code><Message>not for you</Message></Error></ErrorResponse>"),
    )
}

/// Answers a request and records the first part of the path, the operation, and the signer.
pub fn answer(request: &Request) -> (Option<String>, Reply) {
    let place = request.path().split('/').nth(1).unwrap_or_default().to_owned();
    let by = match signer(request) {
        Some((who, region, true)) if region == "us-east-1" => format!(" by {who}"),
        Some((who, region, true)) => format!(" by {who} in {region}"),
        Some((who, _, false)) => format!(" with a wrong signature by {who}"),
        None => String::new(),
    };
    if request.method() == "CONNECT" {
        return (Some(request.line.clone()), Reply::status(403));
    }
    match &*place {
        _ if place.starts_with("sts") || place.starts_with("iam") => query(request, &place, &by),
        _ if place.starts_with("sso") => {
            let parameter = |name| request.query(name).unwrap_or_default();
            let line = format!(
                "{place} credentials of {} in {} with {}",
                parameter("role_name"),
                parameter("account_id"),
                request.header("x-amz-sso_bearer_token")
            );
            if request.header("x-amz-sso_bearer_token").contains("revoked") {
                return (
                    Some(line),
                    Reply::new(401, "{\"message\":\"Session token not found or invalid\"}"),
                );
            }
            let keys = "{\"roleCredentials\":{\"accessKeyId\":\"SSO\",\"secretAccessKey\":\"SSO-secret\",\"sessionToken\":\
                        \"SSO-token\",\"expiration\":32472144000000}}";
            (Some(line), Reply::json(keys))
        }
        "oidc" => {
            let json: serde_json::Value = serde_json::from_slice(&request.body).unwrap_or_default();
            let line = format!(
                "oidc {} {} {}",
                json["grantType"], json["clientId"], json["refreshToken"]
            );
            let new = "{\"accessToken\":\"renewed\",\"expiresIn\":28800,\"refreshToken\":\"next\"}";
            (Some(line.replace('"', "")), Reply::json(new))
        }
        "latest" => machine(request),
        _ if place.starts_with("task") => {
            let authorization = match request.header("authorization") {
                "" => String::new(),
                text => format!(" with {text}"),
            };
            (Some(format!("{}{authorization}", request.path())), keys_in_json("TASK"))
        }
        _ => (Some(format!("{place}{by}")), bucket(request)),
    }
}

/// Answers as an empty bucket.
fn bucket(request: &Request) -> Reply {
    match request.query("list-type") {
        Some(_) => Reply::ok("<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>"),
        None => Reply::new(404, "<Error><Code>NoSuchKey</Code></Error>"),
    }
}

/// Answers as STS and IAM.
fn query(request: &Request, place: &str, by: &str) -> (Option<String>, Reply) {
    let mut fields = form(&request.body);
    let field = |name: &str| {
        let found = fields.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    let (action, arn) = (field("Action"), field("RoleArn"));
    let role = arn.rsplit('/').next().unwrap_or_default().to_owned();
    let reply = match &*action {
        _ if role == "forbidden" || by == " by NOBODY" => refusal("AccessDenied"),
        "AssumeRole" | "AssumeRoleWithWebIdentity" => keys(&action, &role),
        "GetCallerIdentity" if by == " by NO-STS" => refusal("AccessDenied"),
        "GetCallerIdentity" => Reply::ok(
            "<GetCallerIdentityResponse><GetCallerIdentityResult><Arn>arn:aws:iam::123456789012:user/u</Arn><UserId>u</UserId>\
             <Account>123456789012</Account></GetCallerIdentityResult></GetCallerIdentityResponse>",
        ),
        "GetUser" => Reply::ok(
            "<GetUserResponse><GetUserResult><User><Path>/</Path><UserName>u</UserName><UserId>u</UserId>\
             <Arn>arn:aws:iam::210987654321:user/u</Arn></User></GetUserResult></GetUserResponse>",
        ),
        _ => refusal("AccessDenied"),
    };
    // If no session name is set, the programs invent one. The order of tags varies.
    fields.retain(|(name, _)| !matches!(&**name, "Action" | "Version"));
    for (name, value) in &mut fields {
        let made_up =
            value.starts_with("monoform-") || value.starts_with("aws-go-sdk-") || value.parse::<u128>().is_ok();
        if name == "RoleSessionName" && made_up {
            "*".clone_into(value);
        }
    }
    fields.sort();
    let shown: String = fields.iter().map(|(name, value)| format!(" {name}={value}")).collect();
    let colon = if shown.is_empty() { "" } else { ":" };
    let shown = shown.replace(" RoleArn=arn:aws:iam::123456789012:role/", " RoleArn=role/");
    let shown = shown.replace(" RoleSessionName=*", "");
    (Some(format!("{place} {action}{by}{colon}{shown}")), reply)
}

/// Answers as version 2 of the metadata service: a token is requested first, and every other request has to carry it.
fn machine(request: &Request) -> (Option<String>, Reply) {
    if request.path() == "/latest/api/token" {
        let line = match request.header("x-aws-ec2-metadata-token-ttl-seconds") {
            "" => "machine: a token without an end",
            _ => "machine: a token",
        };
        return (
            Some(format!("{} {line}", request.method())),
            Reply::ok("session").with("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "21600"),
        );
    }
    if request.header("x-aws-ec2-metadata-token") != "session" {
        return (
            Some("machine: a request without a token".to_owned()),
            Reply::status(401),
        );
    }
    match request
        .path()
        .strip_prefix("/latest/meta-data/iam/security-credentials/")
    {
        Some("") => (Some("machine: the name of its role".to_owned()), Reply::ok("app")),
        Some(role) => (Some(format!("machine: the keys of {role}")), keys_in_json("MACHINE")),
        None => (Some(format!("machine: {}", request.path())), Reply::status(404)),
    }
}

const KEYS: Pairs = &[("AWS_ACCESS_KEY_ID", "ENV"), ("AWS_SECRET_ACCESS_KEY", "ENV-secret")];

/// Profiles with their own keys. One of them is in both files.
const FILES: Pairs = &[
    (
        "~/.aws/credentials",
        "[default]\naws_access_key_id = DEFAULT\naws_secret_access_key = DEFAULT-secret\n\n[both]\naws_access_key_id = \
         CREDENTIALS\naws_secret_access_key = CREDENTIALS-secret\n\n[session]\naws_access_key_id = SESSION\n\
         aws_secret_access_key = SESSION-secret\naws_session_token = SESSION-token\n",
    ),
    (
        "~/.aws/config",
        "[profile both]\naws_access_key_id = CONFIG\naws_secret_access_key = CONFIG-secret\n\n[profile config]\n\
         aws_access_key_id = CONFIG\naws_secret_access_key = CONFIG-secret\n\n[bare]\naws_access_key_id = BARE\n\
         aws_secret_access_key = BARE-secret\n\n[profile empty]\nregion = us-east-1\n",
    ),
];

/// Files at other paths than the usual ones, in which the profile `p` has different keys.
const OTHER_FILES: Pairs = &[
    (
        "a/credentials",
        "[p]\naws_access_key_id = A\naws_secret_access_key = A-secret\n",
    ),
    (
        "b/credentials",
        "[p]\naws_access_key_id = B\naws_secret_access_key = B-secret\n",
    ),
    (
        "a/config",
        "[profile p]\naws_access_key_id = AC\naws_secret_access_key = AC-secret\n",
    ),
    (
        "b/config",
        "[profile p]\naws_access_key_id = BC\naws_secret_access_key = BC-secret\n",
    ),
    (
        "~/c/credentials",
        "[p]\naws_access_key_id = C\naws_secret_access_key = C-secret\n",
    ),
];

const ARGUMENTS: &str = "access_key = \"ARG\"\nsecret_key = \"ARG-secret\"";

const ROWS: &[Row] = &[
    Row {
        name: "keys_in_arguments",
        block: ARGUMENTS,
        seen: &["s3 by ARG"],
        ..ROW
    },
    Row {
        name: "keys_and_a_token_in_arguments",
        block: "access_key = \"ARG\"\nsecret_key = \"ARG-secret\"\ntoken = \"ARG-token\"",
        seen: &["s3 by ARG+token"],
        ..ROW
    },
    Row {
        name: "arguments_come_before_the_environment_and_files",
        environment: &[
            ("AWS_ACCESS_KEY_ID", "ENV"),
            ("AWS_SECRET_ACCESS_KEY", "ENV-secret"),
            ("AWS_SESSION_TOKEN", "ENV-token"),
            ("AWS_PROFILE", "session"),
        ],
        files: FILES,
        block: ARGUMENTS,
        seen: &["s3 by ARG"],
        ..ROW
    },
    Row {
        name: "an_access_key_without_its_secret",
        environment: KEYS,
        block: "access_key = \"ARG\"",
        fails: &["access_key and secret_key go together"],
        ..ROW
    },
    Row {
        name: "keys_in_the_environment",
        environment: KEYS,
        seen: &["s3 by ENV"],
        ..ROW
    },
    Row {
        name: "keys_and_a_token_in_the_environment",
        environment: &[
            ("AWS_ACCESS_KEY_ID", "ENV"),
            ("AWS_SECRET_ACCESS_KEY", "ENV-secret"),
            ("AWS_SESSION_TOKEN", "ENV-token"),
        ],
        seen: &["s3 by ENV+token"],
        ..ROW
    },
    Row {
        name: "keys_under_older_names",
        environment: &[("AWS_ACCESS_KEY", "ENV"), ("AWS_SECRET_KEY", "ENV-secret")],
        seen: &["s3 by ENV"],
        ..ROW
    },
    Row {
        name: "keys_in_the_environment_come_before_the_profile_of_the_environment",
        environment: &[
            ("AWS_ACCESS_KEY_ID", "ENV"),
            ("AWS_SECRET_ACCESS_KEY", "ENV-secret"),
            ("AWS_PROFILE", "config"),
        ],
        files: FILES,
        seen: &["s3 by ENV"],
        ..ROW
    },
    Row {
        name: "half_a_pair_in_the_environment_does_not_count",
        environment: &[("AWS_ACCESS_KEY_ID", "ENV")],
        files: FILES,
        seen: &["s3 by DEFAULT"],
        ..ROW
    },
    Row {
        name: "a_profile_in_an_argument_comes_before_the_environment",
        environment: &[
            ("AWS_ACCESS_KEY_ID", "ENV"),
            ("AWS_SECRET_ACCESS_KEY", "ENV-secret"),
            ("AWS_PROFILE", "session"),
        ],
        files: FILES,
        block: "profile = \"config\"",
        seen: &["s3 by CONFIG"],
        ..ROW
    },
    Row {
        name: "a_profile_in_the_environment",
        environment: &[("AWS_PROFILE", "session"), ("AWS_DEFAULT_PROFILE", "config")],
        files: FILES,
        seen: &["s3 by SESSION+token"],
        ..ROW
    },
    Row {
        name: "a_profile_under_the_older_name",
        environment: &[("AWS_DEFAULT_PROFILE", "config")],
        files: FILES,
        seen: &["s3 by CONFIG"],
        ..ROW
    },
    Row {
        name: "the_default_profile",
        files: FILES,
        seen: &["s3 by DEFAULT"],
        ..ROW
    },
    Row {
        name: "the_file_with_credentials_comes_before_the_other",
        environment: &[("AWS_PROFILE", "both")],
        files: FILES,
        seen: &["s3 by CREDENTIALS"],
        ..ROW
    },
    Row {
        name: "a_section_with_the_word_profile_comes_before_default",
        files: &[(
            "~/.aws/config",
            "[profile default]\naws_access_key_id = NAMED\naws_secret_access_key = NAMED-secret\n[default]\naws_access_key_id = \
             PLAIN\naws_secret_access_key = PLAIN-secret\n",
        )],
        seen: &["s3 by NAMED"],
        ..ROW
    },
    Row {
        name: "a_section_without_the_word_profile_is_none",
        files: FILES,
        block: "profile = \"bare\"",
        fails: &["failed to get shared config profile, bare", "~/.aws/config"],
        ..ROW
    },
    Row {
        name: "an_unknown_profile_in_the_environment",
        environment: &[("AWS_PROFILE", "gone")],
        files: FILES,
        fails: &["failed to get shared config profile, gone"],
        ..ROW
    },
    Row {
        name: "no_credentials",
        fails: &[
            "No valid credential sources found",
            "AWS_ACCESS_KEY_ID",
            "is not asked, by a setting",
        ],
        ..ROW
    },
    Row {
        name: "a_profile_without_credentials",
        environment: &[("AWS_PROFILE", "empty")],
        files: FILES,
        fails: &["No valid credential sources found", "\"empty\""],
        ..ROW
    },
    Row {
        name: "other_files_in_the_environment",
        environment: &[
            ("AWS_CONFIG_FILE", "a/config"),
            ("AWS_SHARED_CREDENTIALS_FILE", "b/credentials"),
            ("AWS_PROFILE", "p"),
        ],
        files: OTHER_FILES,
        seen: &["s3 by B"],
        ..ROW
    },
    Row {
        name: "another_configuration_file_in_the_environment",
        environment: &[("AWS_CONFIG_FILE", "a/config"), ("AWS_PROFILE", "p")],
        files: OTHER_FILES,
        seen: &["s3 by AC"],
        ..ROW
    },
    Row {
        name: "the_variable_of_terraform_comes_before_that_of_aws",
        environment: &[
            ("AWS_CONFIG_FILE", "a/config"),
            ("AWS_SHARED_CONFIG_FILE", "b/config"),
            ("AWS_PROFILE", "p"),
        ],
        files: OTHER_FILES,
        seen: &["s3 by BC"],
        ..ROW
    },
    Row {
        name: "files_in_arguments_come_before_those_of_the_environment",
        environment: &[
            ("AWS_SHARED_CREDENTIALS_FILE", "a/credentials"),
            ("AWS_CONFIG_FILE", "a/config"),
        ],
        files: OTHER_FILES,
        block: "profile = \"p\"\nshared_credentials_files = [\"b/credentials\"]",
        seen: &["s3 by B"],
        ..ROW
    },
    Row {
        name: "of_several_files_the_last_counts",
        files: OTHER_FILES,
        block: "profile = \"p\"\nshared_config_files = [\"b/config\", \"a/config\"]",
        seen: &["s3 by BC"],
        ..ROW
    },
    Row {
        name: "a_file_in_the_home_directory",
        files: OTHER_FILES,
        block: "profile = \"p\"\nshared_credentials_files = [\"~/c/credentials\"]",
        seen: &["s3 by C"],
        ..ROW
    },
    Row {
        name: "a_file_in_the_older_argument",
        files: OTHER_FILES,
        block: "profile = \"p\"\nshared_credentials_file = \"a/credentials\"",
        seen: &["s3 by A"],
        ..ROW
    },
    Row {
        name: "a_program_with_arguments",
        environment: &[("AWS_PROFILE", "p")],
        files: &[
            (
                "~/.aws/config",
                "[profile p]\ncredential_process = {dir}/give 'PROG RAM' # a comment\n",
            ),
            (
                "give",
                "#!/bin/sh\nn=$(echo \"$1\" | tr -d ' ')\necho \"{\\\"Version\\\":1,\\\"AccessKeyId\\\":\\\"$n\\\",\
                 \\\"SecretAccessKey\\\":\\\"$n-secret\\\",\\\"SessionToken\\\":\\\"$n-token\\\"}\"\n",
            ),
        ],
        seen: &["s3 by PROGRAM+token"],
        ..ROW
    },
    Row {
        name: "a_program_that_fails",
        environment: &[("AWS_PROFILE", "p")],
        files: &[(
            "~/.aws/config",
            "[profile p]\ncredential_process = sh -c 'echo no vault >&2; exit 3'\n",
        )],
        fails: &[
            "The credential_process of the profile \"p\" failed",
            "exit status: 3",
            "no vault",
        ],
        ..ROW
    },
    Row {
        name: "a_program_of_another_version",
        environment: &[("AWS_PROFILE", "p")],
        files: &[(
            "~/.aws/config",
            "[profile p]\ncredential_process = echo '{\"Version\":2,\"AccessKeyId\":\"X\",\"SecretAccessKey\":\"X-secret\"}'\n",
        )],
        fails: &["its JSON has no Version 1"],
        ..ROW
    },
    Row {
        name: "a_program_whose_keys_have_ended",
        environment: &[("AWS_PROFILE", "p")],
        files: &[(
            "~/.aws/config",
            "[profile p]\ncredential_process = echo '{\"Version\":1,\"AccessKeyId\":\"X\",\"SecretAccessKey\":\"X-secret\",\
             \"Expiration\":\"2001-01-01T00:00:00Z\"}'\n",
        )],
        fails: &[
            "The credential_process of the profile \"p\" failed",
            "2001-01-01T00:00:00Z",
        ],
        terraform: Terraform::Differs(
            "keys that have ended are sent, and AWS refuses them",
            &["s3 by X"],
            true,
        ),
        ..ROW
    },
];
