//! Credentials for AWS of machines, containers and logins: the metadata service of EC2, the one of containers, and IAM Identity
//! Center.

use crate::credentials::{Pairs, ROW, Row, Table, Terraform, same};
use crate::credentials_aws::{ENVIRONMENT, SETTINGS, answer};

pub const TABLE: Table = Table {
    store: "s3",
    subject: "machines",
    settings: SETTINGS,
    environment: ENVIRONMENT,
    names: &[],
    answer,
    as_ours: same,
    rows: ROWS,
};

const ON: Pairs = &[("AWS_EC2_METADATA_DISABLED", "")];

/// A profile with an SSO session, and its cached login.
const SESSION: Pairs = &[
    (
        "~/.aws/config",
        "[profile one]\nsso_session = work\nsso_account_id = 123456789012\nsso_role_name = admin\n[sso-session work]\nsso_region = \
         us-east-1\nsso_start_url = https://login.example/start\n",
    ),
    (
        "~/.aws/sso/cache/{sha1:work}.json",
        "{\"accessToken\":\"of-session\",\"expiresAt\":\"2999-01-01T00:00:00Z\"}",
    ),
];

/// A cached login that has expired and can be renewed.
const ENDED: Pairs = &[
    (
        "~/.aws/config",
        "[profile one]\nsso_session = work\nsso_account_id = 123456789012\nsso_role_name = admin\n[sso-session work]\nsso_region = \
         us-east-1\nsso_start_url = https://login.example/start\n",
    ),
    (
        "~/.aws/sso/cache/{sha1:work}.json",
        "{\"accessToken\":\"ended\",\"expiresAt\":\"2001-01-01T00:00:00Z\",\"refreshToken\":\"again\",\"clientId\":\"cli\",\
         \"clientSecret\":\"cs\",\"registrationExpiresAt\":\"2999-01-01T00:00:00Z\"}",
    ),
];

const MACHINE: &[&str] = &[
    "PUT machine: a token",
    "machine: the name of its role",
    "machine: the keys of app",
    "s3 by MACHINE+token",
];

const ROWS: &[Row] = &[
    Row {
        name: "the_role_of_the_machine",
        environment: ON,
        seen: MACHINE,
        ..ROW
    },
    Row {
        name: "the_machine_at_the_address_of_an_argument",
        environment: &[
            ("AWS_EC2_METADATA_DISABLED", ""),
            ("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:1/"),
        ],
        block: "ec2_metadata_service_endpoint = \"{url}\"",
        seen: MACHINE,
        ..ROW
    },
    Row {
        name: "the_machine_at_the_address_of_the_older_variable",
        environment: &[
            ("AWS_EC2_METADATA_DISABLED", ""),
            ("AWS_EC2_METADATA_SERVICE_ENDPOINT", ""),
            ("AWS_METADATA_URL", "{url}"),
        ],
        seen: MACHINE,
        ..ROW
    },
    Row {
        name: "a_profile_without_credentials_leads_to_the_machine",
        environment: &[("AWS_EC2_METADATA_DISABLED", ""), ("AWS_PROFILE", "empty")],
        files: &[("~/.aws/config", "[profile empty]\nregion = us-east-1\n")],
        seen: MACHINE,
        ..ROW
    },
    Row {
        name: "an_argument_that_turns_the_machine_off",
        environment: ON,
        block: "skip_metadata_api_check = true",
        fails: &["No valid credential sources found", "is not asked, by a setting"],
        ..ROW
    },
    Row {
        name: "an_argument_that_turns_the_machine_on",
        block: "skip_metadata_api_check = false",
        seen: MACHINE,
        ..ROW
    },
    Row {
        name: "the_role_of_the_machine_takes_on_the_role_of_a_profile",
        environment: &[("AWS_EC2_METADATA_DISABLED", ""), ("AWS_PROFILE", "one")],
        files: &[(
            "~/.aws/config",
            "[profile one]\nrole_arn = arn:aws:iam::123456789012:role/r\ncredential_source = Ec2InstanceMetadata\n",
        )],
        seen: &[
            "PUT machine: a token",
            "machine: the name of its role",
            "machine: the keys of app",
            "sts AssumeRole by MACHINE+token: DurationSeconds=900 RoleArn=role/r",
            "s3 by r+token",
        ],
        ..ROW
    },
    Row {
        name: "a_machine_that_is_turned_off_is_no_source_of_a_profile",
        environment: &[("AWS_PROFILE", "one")],
        files: &[(
            "~/.aws/config",
            "[profile one]\nrole_arn = arn:aws:iam::123456789012:role/r\ncredential_source = Ec2InstanceMetadata\n",
        )],
        fails: &["No valid credential sources found", "is not asked, by a setting"],
        ..ROW
    },
    Row {
        name: "a_container",
        environment: &[
            ("AWS_EC2_METADATA_DISABLED", ""),
            ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "{url}/task/creds"),
        ],
        seen: &["/task/creds", "s3 by TASK+token"],
        ..ROW
    },
    Row {
        name: "a_container_with_a_token",
        environment: &[
            ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "{url}/task"),
            ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "Basic abc"),
        ],
        seen: &["/task with Basic abc", "s3 by TASK+token"],
        ..ROW
    },
    Row {
        name: "a_container_with_a_token_in_a_file",
        environment: &[
            ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "{url}/task"),
            ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "not this"),
            ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "{dir}/token"),
        ],
        files: &[("token", "of-file")],
        seen: &["/task with of-file", "s3 by TASK+token"],
        ..ROW
    },
    Row {
        name: "a_container_whose_token_cannot_be_read",
        environment: &[
            ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "{url}/task"),
            ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "{dir}/gone"),
        ],
        fails: &["The credentials of the container cannot be got", "{dir}/gone"],
        ..ROW
    },
    Row {
        name: "a_container_elsewhere_gets_no_token_in_plain_text",
        environment: &[
            ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://192.0.2.1/task"),
            ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "Basic abc"),
        ],
        fails: &["http://192.0.2.1/task", "https"],
        ..ROW
    },
    Row {
        name: "the_role_of_a_container_takes_on_the_role_of_a_profile",
        environment: &[
            ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "{url}/task"),
            ("AWS_PROFILE", "one"),
        ],
        files: &[(
            "~/.aws/config",
            "[profile one]\nrole_arn = arn:aws:iam::123456789012:role/r\ncredential_source = EcsContainer\n",
        )],
        seen: &[
            "/task",
            "sts AssumeRole by TASK+token: DurationSeconds=900 RoleArn=role/r",
            "s3 by r+token",
        ],
        ..ROW
    },
    Row {
        name: "a_container_that_is_not_there_is_no_source_of_a_profile",
        environment: &[("AWS_PROFILE", "one")],
        files: &[(
            "~/.aws/config",
            "[profile one]\nrole_arn = arn:aws:iam::123456789012:role/r\ncredential_source = EcsContainer\n",
        )],
        fails: &["The profile \"one\"", "AWS_CONTAINER_CREDENTIALS_FULL_URI"],
        ..ROW
    },
    Row {
        name: "files_come_before_the_container",
        environment: &[("AWS_CONTAINER_CREDENTIALS_FULL_URI", "{url}/task")],
        files: &[(
            "~/.aws/credentials",
            "[default]\naws_access_key_id = A\naws_secret_access_key = A-secret\n",
        )],
        seen: &["s3 by A"],
        ..ROW
    },
    Row {
        name: "a_login_of_a_session",
        environment: &[("AWS_PROFILE", "one")],
        files: SESSION,
        seen: &[
            "sso credentials of admin in 123456789012 with of-session",
            "s3 by SSO+token",
        ],
        ..ROW
    },
    Row {
        name: "a_login_at_the_address_of_an_argument",
        files: SESSION,
        block: "profile = \"one\"\nendpoints = { sso = \"{url}/sso-of-argument\" }",
        seen: &[
            "sso-of-argument credentials of admin in 123456789012 with of-session",
            "s3 by SSO+token",
        ],
        ..ROW
    },
    Row {
        name: "a_login_without_a_session",
        environment: &[("AWS_PROFILE", "one")],
        files: &[
            (
                "~/.aws/config",
                "[profile one]\nsso_start_url = https://login.example/start\nsso_region = us-east-1\nsso_account_id = 123456789012\n\
                 sso_role_name = reader\n",
            ),
            (
                "~/.aws/sso/cache/{sha1:https://login.example/start}.json",
                "{\"accessToken\":\"of-address\",\"expiresAt\":\"2999-01-01T00:00:00Z\"}",
            ),
        ],
        seen: &[
            "sso credentials of reader in 123456789012 with of-address",
            "s3 by SSO+token",
        ],
        ..ROW
    },
    Row {
        name: "a_login_takes_on_the_role_of_a_profile",
        environment: &[("AWS_PROFILE", "two")],
        files: &[
            (
                "~/.aws/config",
                "[profile two]\nrole_arn = arn:aws:iam::123456789012:role/r\nsource_profile = one\n[profile one]\nsso_session = work\n\
                 sso_account_id = 123456789012\nsso_role_name = admin\n[sso-session work]\nsso_region = us-east-1\nsso_start_url = \
                 https://login.example/start\n",
            ),
            (
                "~/.aws/sso/cache/{sha1:work}.json",
                "{\"accessToken\":\"of-session\",\"expiresAt\":\"2999-01-01T00:00:00Z\"}",
            ),
        ],
        seen: &[
            "sso credentials of admin in 123456789012 with of-session",
            "sts AssumeRole by SSO+token: DurationSeconds=900 RoleArn=role/r",
            "s3 by r+token",
        ],
        ..ROW
    },
    Row {
        name: "a_login_that_was_never_made",
        environment: &[("AWS_PROFILE", "one")],
        files: &[(
            "~/.aws/config",
            "[profile one]\nsso_session = work\nsso_account_id = 123456789012\nsso_role_name = admin\n[sso-session work]\nsso_region \
             = us-east-1\nsso_start_url = https://login.example/start\n",
        )],
        fails: &[
            "The login of the profile \"one\" has expired, or there was none",
            "aws sso login --profile one",
        ],
        ..ROW
    },
    Row {
        name: "a_login_that_has_ended",
        environment: &[("AWS_PROFILE", "one")],
        files: &[
            (
                "~/.aws/config",
                "[profile one]\nsso_start_url = https://login.example/start\nsso_region = us-east-1\nsso_account_id = 123456789012\n\
                 sso_role_name = reader\n",
            ),
            (
                "~/.aws/sso/cache/{sha1:https://login.example/start}.json",
                "{\"accessToken\":\"ended\",\"expiresAt\":\"2001-01-01T00:00:00Z\"}",
            ),
        ],
        fails: &["aws sso login --profile one"],
        ..ROW
    },
    Row {
        name: "a_login_that_is_renewed",
        environment: &[("AWS_PROFILE", "one")],
        files: ENDED,
        seen: &[
            "oidc refresh_token cli again",
            "sso credentials of admin in 123456789012 with renewed",
            "s3 by SSO+token",
        ],
        ..ROW
    },
    Row {
        name: "a_login_that_is_refused",
        environment: &[("AWS_PROFILE", "one")],
        files: &[
            (
                "~/.aws/config",
                "[profile one]\nsso_start_url = https://login.example/start\nsso_region = us-east-1\nsso_account_id = 123456789012\n\
                 sso_role_name = reader\n",
            ),
            (
                "~/.aws/sso/cache/{sha1:https://login.example/start}.json",
                "{\"accessToken\":\"revoked\",\"expiresAt\":\"2999-01-01T00:00:00Z\"}",
            ),
        ],
        seen: &["sso credentials of reader in 123456789012 with revoked"],
        fails: &["aws sso login --profile one"],
        ..ROW
    },
    Row {
        name: "a_session_that_is_not_there",
        environment: &[("AWS_PROFILE", "one")],
        files: &[(
            "~/.aws/config",
            "[profile one]\nsso_session = gone\nsso_account_id = 123456789012\nsso_role_name = admin\n",
        )],
        fails: &["The profile \"one\" refers to the sso-session \"gone\", which is not there"],
        ..ROW
    },
    Row {
        name: "an_unknown_mode_of_the_machine",
        block: "ec2_metadata_service_endpoint_mode = \"IPv5\"",
        fails: &["It must be \"IPv4\" or \"IPv6\""],
        terraform: Terraform::Same,
        ..ROW
    },
];
