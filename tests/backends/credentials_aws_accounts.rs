//! Checks of the account that credentials for AWS belong to, and the endpoints of the services.

use crate::credentials::{Pairs, ROW, Row, Table, same};
use crate::credentials_aws::{ENVIRONMENT, answer};

/// Cases with the requests for the caller's identity and account.
pub const TABLE: Table = Table {
    store: "s3",
    subject: "accounts",
    settings: r#"
        bucket         = "states"
        key            = "k"
        region         = "us-east-1"
        use_path_style = true
    "#,
    environment: ENVIRONMENT,
    names: &[],
    answer,
    as_ours: same,
    rows: ROWS,
};

const KEYS: Pairs = &[("AWS_ACCESS_KEY_ID", "ENV"), ("AWS_SECRET_ACCESS_KEY", "ENV-secret")];

/// Profile with an endpoint for all services, and a section with endpoints for STS and S3.
const ENDPOINTS: &str = "[profile one]\nservices = mine\nendpoint_url = {url}/profile\naws_access_key_id = ONE\n\
                         aws_secret_access_key = ONE-secret\n[services mine]\nsts =\n  endpoint_url = {url}/sts-of-profile\ns3 =\n  \
                         endpoint_url = {url}/s3-of-profile\n";

const ROWS: &[Row] = &[
    Row {
        name: "who_signs_is_asked",
        environment: KEYS,
        seen: &["sts GetCallerIdentity by ENV", "s3 by ENV"],
        ..ROW
    },
    Row {
        name: "keys_that_sts_refuses",
        environment: &[
            ("AWS_ACCESS_KEY_ID", "NOBODY"),
            ("AWS_SECRET_ACCESS_KEY", "NOBODY-secret"),
        ],
        seen: &["sts GetCallerIdentity by NOBODY"],
        fails: &[
            "Retrieving caller identity from STS",
            "AccessDenied",
            "skip_credentials_validation",
        ],
        ..ROW
    },
    Row {
        name: "keys_that_are_not_checked_and_whose_account_iam_knows",
        environment: &[
            ("AWS_ACCESS_KEY_ID", "NO-STS"),
            ("AWS_SECRET_ACCESS_KEY", "NO-STS-secret"),
        ],
        block: "skip_credentials_validation = true\nallowed_account_ids = [\"210987654321\"]",
        seen: &["iam GetUser by NO-STS", "s3 by NO-STS"],
        ..ROW
    },
    Row {
        name: "keys_whose_account_nobody_knows",
        environment: &[
            ("AWS_ACCESS_KEY_ID", "NOBODY"),
            ("AWS_SECRET_ACCESS_KEY", "NOBODY-secret"),
        ],
        block: "skip_credentials_validation = true",
        seen: &[
            "iam GetUser by NOBODY",
            "sts GetCallerIdentity by NOBODY",
            "iam ListRoles by NOBODY: MaxItems=1",
        ],
        fails: &["Retrieving AWS account details", "skip_requesting_account_id"],
        ..ROW
    },
    Row {
        name: "neither_checked_nor_asked_for_the_account",
        environment: KEYS,
        block: "skip_credentials_validation = true\nskip_requesting_account_id = true",
        seen: &["s3 by ENV"],
        ..ROW
    },
    Row {
        name: "checked_without_asking_for_the_account",
        environment: KEYS,
        block: "skip_requesting_account_id = true",
        seen: &["sts GetCallerIdentity by ENV", "s3 by ENV"],
        ..ROW
    },
    Row {
        name: "an_account_that_is_allowed",
        environment: KEYS,
        block: "allowed_account_ids = [\"111111111111\", \"123456789012\"]",
        seen: &["sts GetCallerIdentity by ENV", "s3 by ENV"],
        ..ROW
    },
    Row {
        name: "an_account_that_is_not_allowed",
        environment: KEYS,
        block: "allowed_account_ids = [\"111111111111\"]",
        seen: &["sts GetCallerIdentity by ENV"],
        fails: &[
            "AWS account ID not allowed: 123456789012",
            "is not one of allowed_account_ids",
        ],
        ..ROW
    },
    Row {
        name: "an_account_that_is_forbidden",
        environment: KEYS,
        block: "forbidden_account_ids = [\"123456789012\"]",
        seen: &["sts GetCallerIdentity by ENV"],
        fails: &[
            "AWS account ID not allowed: 123456789012",
            "is one of forbidden_account_ids",
        ],
        ..ROW
    },
    Row {
        name: "an_account_that_is_not_forbidden",
        environment: KEYS,
        block: "forbidden_account_ids = [\"111111111111\"]",
        seen: &["sts GetCallerIdentity by ENV", "s3 by ENV"],
        ..ROW
    },
    Row {
        name: "the_account_of_the_role_counts",
        environment: KEYS,
        block: "allowed_account_ids = [\"123456789012\"]\nassume_role = { role_arn = \"arn:aws:iam::123456789012:role/r\" }",
        seen: &[
            "sts AssumeRole by ENV: DurationSeconds=900 RoleArn=role/r",
            "sts GetCallerIdentity by r+token",
            "s3 by r+token",
        ],
        ..ROW
    },
    Row {
        name: "endpoints_in_arguments_come_first",
        environment: KEYS,
        block: "endpoints = { sts = \"{url}/sts-of-argument\", s3 = \"{url}/s3-of-argument\" }",
        seen: &["sts-of-argument GetCallerIdentity by ENV", "s3-of-argument by ENV"],
        ..ROW
    },
    Row {
        name: "endpoints_in_older_arguments",
        environment: KEYS,
        block: "sts_endpoint = \"{url}/sts-of-argument\"\nendpoint = \"{url}/s3-of-argument\"",
        seen: &["sts-of-argument GetCallerIdentity by ENV", "s3-of-argument by ENV"],
        ..ROW
    },
    Row {
        name: "the_endpoint_of_iam_in_an_argument",
        environment: &[
            ("AWS_ACCESS_KEY_ID", "NO-STS"),
            ("AWS_SECRET_ACCESS_KEY", "NO-STS-secret"),
        ],
        block: "skip_credentials_validation = true\nendpoints = { iam = \"{url}/iam-of-argument\" }",
        seen: &["iam-of-argument GetUser by NO-STS", "s3 by NO-STS"],
        ..ROW
    },
    Row {
        name: "endpoints_in_variables_of_terraform",
        environment: &[
            ("AWS_ACCESS_KEY_ID", "ENV"),
            ("AWS_SECRET_ACCESS_KEY", "ENV-secret"),
            ("AWS_ENDPOINT_URL_STS", ""),
            ("AWS_ENDPOINT_URL_S3", ""),
            ("AWS_STS_ENDPOINT", "{url}/sts-old"),
            ("AWS_S3_ENDPOINT", "{url}/s3-old"),
        ],
        seen: &["sts-old GetCallerIdentity by ENV", "s3-old by ENV"],
        ..ROW
    },
    Row {
        name: "one_endpoint_for_all_services",
        environment: &[
            ("AWS_ACCESS_KEY_ID", "ENV"),
            ("AWS_SECRET_ACCESS_KEY", "ENV-secret"),
            ("AWS_ENDPOINT_URL_S3", ""),
            ("AWS_ENDPOINT_URL", "{url}/all"),
        ],
        seen: &["sts GetCallerIdentity by ENV", "all by ENV"],
        ..ROW
    },
    Row {
        name: "endpoints_of_a_profile_by_service",
        environment: &[
            ("AWS_PROFILE", "one"),
            ("AWS_ENDPOINT_URL_STS", ""),
            ("AWS_ENDPOINT_URL_S3", ""),
        ],
        files: &[("~/.aws/config", ENDPOINTS)],
        seen: &["sts-of-profile GetCallerIdentity by ONE", "s3-of-profile by ONE"],
        ..ROW
    },
    Row {
        name: "one_endpoint_of_a_profile",
        environment: &[("AWS_ENDPOINT_URL_S3", "")],
        files: &[(
            "~/.aws/config",
            "[profile one]\nendpoint_url = {url}/profile\naws_access_key_id = ONE\naws_secret_access_key = ONE-secret\n",
        )],
        block: "profile = \"one\"",
        seen: &["sts GetCallerIdentity by ONE", "profile by ONE"],
        ..ROW
    },
    Row {
        name: "the_endpoint_of_one_service_comes_before_that_of_all",
        environment: &[
            ("AWS_PROFILE", "one"),
            ("AWS_ENDPOINT_URL_S3", ""),
            ("AWS_ENDPOINT_URL", "{url}/all"),
        ],
        files: &[("~/.aws/config", ENDPOINTS)],
        seen: &["sts GetCallerIdentity by ONE", "s3-of-profile by ONE"],
        ..ROW
    },
    Row {
        name: "endpoints_of_a_profile_that_are_ignored",
        environment: &[
            ("AWS_PROFILE", "one"),
            ("AWS_ENDPOINT_URL", "{url}/all"),
            ("AWS_ENDPOINT_URL_S3", ""),
            ("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true"),
            ("HTTPS_PROXY", "{url}"),
        ],
        files: &[("~/.aws/config", ENDPOINTS)],
        block: "max_retries = 1",
        seen: &["sts GetCallerIdentity by ONE", "CONNECT s3.us-east-1.amazonaws.com:443"],
        fails: &["s3.us-east-1.amazonaws.com"],
        ..ROW
    },
];
