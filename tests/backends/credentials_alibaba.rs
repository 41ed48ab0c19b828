//! Credentials for Alibaba Cloud: keys, profiles of the command line `aliyun`, roles, and tokens of other identity providers. The role
//! of a machine is not tested: its metadata service has a fixed address that no test can have.
//!
//! In this cloud the secret of an access key `A` is `A-secret`, and its token `A-token`; the fake recomputes every signature for the
//! bucket from these.

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::json;
use support::server::{Reply, Request, decoded};

use crate::credentials::{Pairs, ROW, Row, STATE, Table, Terraform, form};

pub const TABLE: Table = Table {
    store: "oss",
    subject: "all_sources",
    settings: r#"
        bucket       = "states"
        region       = "cn-hangzhou"
        endpoint     = "oss-cn-hangzhou.aliyuncs.com"
        sts_endpoint = "sts.aliyuncs.com"
    "#,
    environment: &[],
    names: &[
        "sts.aliyuncs.com",
        "states.oss-cn-hangzhou.aliyuncs.com",
        "location-readonly.aliyuncs.com",
    ],
    answer,
    as_ours,
    rows: ROWS,
};

/// Removes the empty policy that Terraform sends.
fn as_ours(line: String) -> String {
    line.strip_suffix(" Policy=").map(str::to_owned).unwrap_or(line)
}

fn with_token(key: &str, token: &str) -> String {
    match token {
        "" => key.to_owned(),
        token if token == format!("{key}-token") => format!("{key}+token"),
        token => format!("{key}+{token}"),
    }
}

fn answer(request: &Request) -> (Option<String>, Reply) {
    match request.header("host").split('.').next().unwrap_or_default() {
        "sts" => role(request),
        "states" => bucket(request),
        _ => (None, Reply::status(404)),
    }
}

fn bucket(request: &Request) -> (Option<String>, Reply) {
    let token = request.header("x-oss-security-token");
    let (key, signature) = request
        .header("authorization")
        .trim_start_matches("OSS ")
        .split_once(':')
        .unwrap_or_default();
    let own = match token {
        "" => String::new(),
        token => format!("x-oss-security-token:{token}\n"),
    };
    let meta = if request.line.contains("?objectMeta") {
        "?objectMeta"
    } else {
        ""
    };
    let text = format!(
        "{}\n{}\n{}\n{}\n{own}/states{}{meta}",
        request.method(),
        request.header("content-md5"),
        request.header("content-type"),
        request.header("date"),
        decoded(request.path())
    );
    let secret = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, format!("{key}-secret").as_bytes());
    let right = signature == BASE64.encode(hmac::sign(&secret, text.as_bytes()));
    let wrong = if right { "" } else { " with a wrong signature" };
    let reply = match request.path() {
        "/" => {
            Reply::ok("<?xml version=\"1.0\"?><ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>")
        }
        _ => Reply::ok(STATE),
    };
    (Some(format!("oss{wrong} by {}", with_token(key, token))), reply)
}

/// Fake STS endpoint (AssumeRole). Reads parameters from the query as well as from the body, because Terraform also sends some in the
/// query.
fn role(request: &Request) -> (Option<String>, Reply) {
    let query = request.line.split_once('?').map_or("", |(_, query)| query);
    let query = query.split(' ').next().unwrap_or_default();
    let mut fields = form(query.as_bytes());
    fields.extend(form(&request.body));
    let field = |name: &str| {
        let found = fields.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    let by = match field("AccessKeyId") {
        key if key.is_empty() => String::new(),
        key => format!(" by {}", with_token(&key, &field("SecurityToken"))),
    };
    let arn = field("RoleArn");
    let role = arn.rsplit('/').next().unwrap_or_default();
    let shown: String = [
        "RoleSessionName",
        "DurationSeconds",
        "Policy",
        "OIDCProviderArn",
        "OIDCToken",
    ]
    .iter()
    .filter(|name| fields.iter().any(|(n, _)| n == **name))
    .map(|name| format!(" {name}={}", field(name)))
    .collect();
    let line = format!("sts {}{by}: {role}{shown}", field("Action"));
    if role == "forbidden" {
        return (
            Some(line),
            Reply::new(
                403,
                json!({"Code": "NoPermission", "Message": "not for you"}).to_string(),
            ),
        );
    }
    let credentials = json!({
        "AccessKeyId": role,
        "AccessKeySecret": format!("{role}-secret"),
        "SecurityToken": format!("{role}-token"),
        "Expiration": "2999-01-01T00:00:00Z",
    });
    (
        Some(line),
        Reply::json(&json!({"RequestId": "1", "Credentials": credentials}).to_string()),
    )
}

const KEYS: Pairs = &[("ALICLOUD_ACCESS_KEY", "ENV"), ("ALICLOUD_SECRET_KEY", "ENV-secret")];

const PROFILES: &str = "{\"current\":\"default\",\"profiles\":[{\"name\":\"keys\",\"mode\":\"AK\",\"access_key_id\":\"PROF\",\
                        \"access_key_secret\":\"PROF-secret\",\"region_id\":\"cn-beijing\"},{\"name\":\"session\",\"mode\":\
                        \"StsToken\",\"access_key_id\":\"SESSION\",\"access_key_secret\":\"SESSION-secret\",\"sts_token\":\
                        \"SESSION-token\"},{\"name\":\"role\",\"mode\":\"RamRoleArn\",\"access_key_id\":\"PROF\",\
                        \"access_key_secret\":\"PROF-secret\",\"ram_role_arn\":\"acs:ram::1:role/rp\",\"ram_session_name\":\"sp\",\
                        \"expired_seconds\":1000}]}";

const FILES: Pairs = &[("~/.aliyun/config.json", PROFILES), ("other.json", PROFILES)];

const ROWS: &[Row] = &[
    Row {
        name: "keys_in_arguments",
        environment: KEYS,
        block: "access_key = \"ARG\"\nsecret_key = \"ARG-secret\"",
        seen: &["oss by ARG"],
        ..ROW
    },
    Row {
        name: "keys_and_a_token_in_arguments",
        block: "access_key = \"ARG\"\nsecret_key = \"ARG-secret\"\nsecurity_token = \"ARG-token\"",
        seen: &["oss by ARG+token"],
        ..ROW
    },
    Row {
        name: "keys_in_the_environment",
        environment: KEYS,
        seen: &["oss by ENV"],
        ..ROW
    },
    Row {
        name: "keys_and_a_token_in_the_environment_under_other_names",
        environment: &[
            ("ALICLOUD_ACCESS_KEY_ID", "ENV"),
            ("ALICLOUD_ACCESS_KEY_SECRET", "ENV-secret"),
            ("ALICLOUD_SECURITY_TOKEN", "ENV-token"),
        ],
        seen: &["oss by ENV+token"],
        terraform: Terraform::NotAsked("has these names since 1.12"),
        ..ROW
    },
    Row {
        name: "keys_and_a_token_in_the_environment_under_the_names_of_alibaba",
        environment: &[
            ("ALIBABA_CLOUD_ACCESS_KEY_ID", "ENV"),
            ("ALIBABA_CLOUD_ACCESS_KEY_SECRET", "ENV-secret"),
            ("ALIBABA_CLOUD_SECURITY_TOKEN", "ENV-token"),
        ],
        seen: &["oss by ENV+token"],
        terraform: Terraform::NotAsked("has these names since 1.12"),
        ..ROW
    },
    Row {
        name: "a_profile_in_an_argument",
        files: FILES,
        block: "profile = \"keys\"",
        seen: &["oss by PROF"],
        ..ROW
    },
    Row {
        name: "a_profile_in_the_environment_in_another_file",
        environment: &[
            ("ALICLOUD_PROFILE", "session"),
            ("ALICLOUD_SHARED_CREDENTIALS_FILE", "{dir}/other.json"),
        ],
        files: FILES,
        seen: &["oss by SESSION+token"],
        ..ROW
    },
    Row {
        name: "keys_come_before_a_profile",
        environment: KEYS,
        files: FILES,
        block: "profile = \"keys\"",
        seen: &["oss by ENV"],
        ..ROW
    },
    Row {
        name: "the_role_of_a_profile",
        files: FILES,
        block: "profile = \"role\"",
        seen: &[
            "sts AssumeRole by PROF: rp RoleSessionName=sp DurationSeconds=1000",
            "oss by rp+token",
        ],
        ..ROW
    },
    Row {
        name: "a_role_in_arguments",
        environment: KEYS,
        block: "assume_role_role_arn = \"acs:ram::1:role/r\"\nassume_role_session_name = \"s\"\nassume_role_policy = \
                \"{}\"\nassume_role_session_expiration = 1200",
        seen: &[
            "sts AssumeRole by ENV: r RoleSessionName=s DurationSeconds=1200 Policy={}",
            "oss by r+token",
        ],
        ..ROW
    },
    Row {
        name: "a_role_in_the_environment",
        environment: &[
            ("ALICLOUD_ACCESS_KEY", "ENV"),
            ("ALICLOUD_SECRET_KEY", "ENV-secret"),
            ("ALICLOUD_SECURITY_TOKEN", "ENV-token"),
            ("ALICLOUD_ASSUME_ROLE_ARN", "acs:ram::1:role/r"),
            ("ALICLOUD_ASSUME_ROLE_SESSION_EXPIRATION", "1500"),
        ],
        seen: &[
            "sts AssumeRole by ENV+token: r RoleSessionName=terraform DurationSeconds=1500",
            "oss by r+token",
        ],
        ..ROW
    },
    Row {
        name: "a_role_in_a_block",
        environment: KEYS,
        block: "assume_role {\n role_arn = \"acs:ram::1:role/r\"\n session_name = \"s\"\n session_expiration = 1200\n}",
        seen: &[
            "sts AssumeRole by ENV: r RoleSessionName=s DurationSeconds=1200",
            "oss by r+token",
        ],
        ..ROW
    },
    Row {
        name: "a_role_that_is_refused",
        environment: KEYS,
        block: "assume_role_role_arn = \"acs:ram::1:role/forbidden\"",
        seen: &["sts AssumeRole by ENV: forbidden RoleSessionName=terraform DurationSeconds=3600"],
        fails: &[
            "The role \"acs:ram::1:role/forbidden\" cannot be taken on",
            "NoPermission",
            "not for you",
        ],
        ..ROW
    },
    Row {
        name: "a_token_of_another_identity_provider",
        environment: &[
            ("ALIBABA_CLOUD_OIDC_PROVIDER_ARN", "acs:ram::1:oidc-provider/p"),
            ("ALIBABA_CLOUD_OIDC_TOKEN_FILE", "{dir}/token"),
            ("ALIBABA_CLOUD_ROLE_ARN", "acs:ram::1:role/w"),
        ],
        files: &[("token", "jwt\n")],
        seen: &[
            "sts AssumeRoleWithOIDC: w RoleSessionName=terraform DurationSeconds=3600 \
             OIDCProviderArn=acs:ram::1:oidc-provider/p OIDCToken=jwt",
            "oss by w+token",
        ],
        terraform: Terraform::NotAsked("has these names since 1.12"),
        ..ROW
    },
    Row {
        name: "no_credentials",
        fails: &["There are no credentials for Alibaba Cloud", "ALICLOUD_ACCESS_KEY"],
        terraform: Terraform::NotAsked("asks the machine"),
        ..ROW
    },
    Row {
        name: "a_file_of_profiles_that_is_no_json",
        files: &[("~/.aliyun/config.json", "keys")],
        block: "profile = \"keys\"",
        fails: &["The profile \"keys\" cannot be used", "is no JSON"],
        terraform: Terraform::Differs("signs with an empty key", &["oss with a wrong signature by "], true),
        ..ROW
    },
];
