//! Credentials for Tencent Cloud: keys, profiles of the command line `tccli`, and roles. The role of a machine is not tested: its
//! metadata service has a fixed address that no test can have.

use serde_json::{Value as Json, json};
use support::server::{Reply, Request, decoded};

use crate::credentials::{Pairs, ROW, Row, Table, Terraform, same};

pub const TABLE: Table = Table {
    store: "cos",
    subject: "all_sources",
    settings: "bucket = \"states-1250000000\"\nregion = \"ap-guangzhou\"",
    environment: &[],
    names: &[
        "states-1250000000.cos.ap-guangzhou.myqcloud.com",
        "sts.tencentcloudapi.com",
    ],
    answer,
    as_ours: same,
    rows: ROWS,
};

fn part<'t>(text: &'t str, before: &str, after: char) -> &'t str {
    text.split_once(before)
        .map_or("", |(_, rest)| rest.split(after).next().unwrap_or_default())
}

fn with_token(key: &str, token: &str) -> String {
    match token {
        "" => key.to_owned(),
        token => format!("{key}+{token}"),
    }
}

fn answer(request: &Request) -> (Option<String>, Reply) {
    let authorization = request.header("authorization");
    if request.header("host") != "sts.tencentcloudapi.com" {
        let by = with_token(
            part(authorization, "q-ak=", '&'),
            request.header("x-cos-security-token"),
        );
        let reply = match request.path() {
            "/" => {
                Reply::ok("<?xml version='1.0'?><ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>")
            }
            _ => Reply::new(404, "<?xml version='1.0'?><Error><Code>NoSuchKey</Code></Error>"),
        };
        return (Some(format!("cos by {by}")), reply);
    }
    let by = with_token(part(authorization, "Credential=", '/'), request.header("x-tc-token"));
    let body: Json = serde_json::from_slice(&request.body).unwrap_or_default();
    let arn = body["RoleArn"].as_str().unwrap_or_default().to_owned();
    let role = arn.rsplit('/').next().unwrap_or_default();
    let shown: String = ["RoleSessionName", "DurationSeconds", "Policy", "ExternalId"]
        .iter()
        .filter(|name| !body[**name].is_null())
        .map(|name| match &body[*name] {
            Json::String(text) => format!(" {name}={}", decoded(text)),
            other => format!(" {name}={other}"),
        })
        .collect();
    let line = format!("sts {} by {by}: {role}{shown}", request.header("x-tc-action"));
    let response = match role {
        "forbidden" => {
            json!({"Error": {"Code": "AuthFailure.UnauthorizedOperation", "Message": "not for you"}, "RequestId": "1"})
        }
        _ => json!({
            "Credentials": {"TmpSecretId": role, "TmpSecretKey": "k", "Token": format!("token-of-{role}")},
            "ExpiredTime": 4_000_000_000_i64,
            "Expiration": "2096-10-02T07:06:40Z",
            "RequestId": "1",
        }),
    };
    (Some(line), Reply::json(&json!({"Response": response}).to_string()))
}

const KEYS: Pairs = &[("TENCENTCLOUD_SECRET_ID", "ENV"), ("TENCENTCLOUD_SECRET_KEY", "k")];

const FILES: Pairs = &[
    (
        "~/.tccli/default.credential",
        "{\"secretId\":\"DEFAULT\",\"secretKey\":\"k\"}",
    ),
    (
        "~/.tccli/work.credential",
        "{\"secretId\":\"WORK\",\"secretKey\":\"k\",\"token\":\"t\",\"role-arn\":\"qcs::cam::uin/1:roleName/rp\",\"role-session-name\":\
         \"sp\"}",
    ),
    ("other/work.credential", "{\"secretId\":\"OTHER\",\"secretKey\":\"k\"}"),
];

const WITHOUT_KEYS: Terraform = Terraform::Differs("signs with an empty key", &["cos by "], true);

const ROWS: &[Row] = &[
    Row {
        name: "keys_in_arguments",
        environment: KEYS,
        block: "secret_id = \"ARG\"\nsecret_key = \"k\"",
        seen: &["cos by ARG"],
        ..ROW
    },
    Row {
        name: "keys_and_a_token_in_arguments",
        block: "secret_id = \"ARG\"\nsecret_key = \"k\"\nsecurity_token = \"t\"",
        seen: &["cos by ARG+t"],
        ..ROW
    },
    Row {
        name: "keys_in_the_environment",
        environment: KEYS,
        files: FILES,
        seen: &["cos by ENV"],
        ..ROW
    },
    Row {
        name: "keys_and_a_token_in_the_environment",
        environment: &[
            ("TENCENTCLOUD_SECRET_ID", "ENV"),
            ("TENCENTCLOUD_SECRET_KEY", "k"),
            ("TENCENTCLOUD_SECURITY_TOKEN", "t"),
        ],
        seen: &["cos by ENV+t"],
        ..ROW
    },
    Row {
        name: "the_default_profile",
        files: FILES,
        seen: &["cos by DEFAULT"],
        ..ROW
    },
    Row {
        name: "the_role_of_a_profile",
        environment: &[("TENCENTCLOUD_PROFILE", "default")],
        files: FILES,
        block: "profile = \"work\"",
        seen: &[
            "sts AssumeRole by WORK+t: rp RoleSessionName=sp DurationSeconds=7200",
            "cos by rp+token-of-rp",
        ],
        ..ROW
    },
    Row {
        name: "a_profile_in_another_folder",
        environment: &[
            ("TENCENTCLOUD_PROFILE", "work"),
            ("TENCENTCLOUD_SHARED_CREDENTIALS_DIR", "{dir}/other"),
        ],
        files: FILES,
        seen: &["cos by OTHER"],
        ..ROW
    },
    Row {
        name: "a_role_in_a_block",
        environment: KEYS,
        block: "assume_role {\n role_arn = \"qcs::cam::uin/1:roleName/r\"\n session_name = \"s\"\n session_duration = 3600\n policy = \
                \"{}\"\n external_id = \"outside\"\n}",
        seen: &[
            "sts AssumeRole by ENV: r RoleSessionName=s DurationSeconds=3600 Policy={} ExternalId=outside",
            "cos by r+token-of-r",
        ],
        ..ROW
    },
    Row {
        name: "a_role_in_the_environment",
        environment: &[
            ("TENCENTCLOUD_SECRET_ID", "ENV"),
            ("TENCENTCLOUD_SECRET_KEY", "k"),
            ("TENCENTCLOUD_SECURITY_TOKEN", "t"),
            ("TENCENTCLOUD_ASSUME_ROLE_ARN", "qcs::cam::uin/1:roleName/r"),
            ("TENCENTCLOUD_ASSUME_ROLE_SESSION_NAME", "s"),
            ("TENCENTCLOUD_ASSUME_ROLE_SESSION_DURATION", "1800"),
        ],
        seen: &[
            "sts AssumeRole by ENV+t: r RoleSessionName=s DurationSeconds=1800",
            "cos by r+token-of-r",
        ],
        ..ROW
    },
    Row {
        name: "a_role_that_is_refused",
        environment: KEYS,
        block: "assume_role {\n role_arn = \"qcs::cam::uin/1:roleName/forbidden\"\n session_name = \"s\"\n session_duration = 3600\n}",
        seen: &["sts AssumeRole by ENV: forbidden RoleSessionName=s DurationSeconds=3600"],
        fails: &[
            "The role \"qcs::cam::uin/1:roleName/forbidden\" cannot be taken on",
            "AuthFailure.UnauthorizedOperation",
            "not for you",
        ],
        ..ROW
    },
    Row {
        name: "no_credentials",
        fails: &["There are no credentials for Tencent Cloud", "tccli configure"],
        terraform: WITHOUT_KEYS,
        ..ROW
    },
    Row {
        name: "a_profile_that_is_no_json",
        files: &[("~/.tccli/default.credential", "keys")],
        fails: &["The profile \"default\" cannot be used", "is no JSON"],
        terraform: WITHOUT_KEYS,
        ..ROW
    },
];
