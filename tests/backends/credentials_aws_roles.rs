//! Credentials for AWS by roles: in the block, in profiles that refer to each other, and with tokens of other
//! identity providers.

use crate::credentials::{Pairs, ROW, Row, Table, Terraform, same};
use crate::credentials_aws::{ENVIRONMENT, SETTINGS, answer};

pub const TABLE: Table = Table {
    store: "s3",
    subject: "roles",
    settings: SETTINGS,
    environment: ENVIRONMENT,
    names: &[],
    answer,
    as_ours: same,
    rows: ROWS,
};

const KEYS: Pairs = &[("AWS_ACCESS_KEY_ID", "ENV"), ("AWS_SECRET_ACCESS_KEY", "ENV-secret")];

const ONE: Pairs = &[("AWS_PROFILE", "one")];

const ROWS: &[Row] = &[
    Row {
        name: "a_role",
        environment: KEYS,
        block: "assume_role = { role_arn = \"arn:aws:iam::123456789012:role/r\" }",
        seen: &[
            "sts AssumeRole by ENV: DurationSeconds=900 RoleArn=role/r",
            "s3 by r+token",
        ],
        ..ROW
    },
    Row {
        name: "a_role_with_everything",
        environment: KEYS,
        block: r#"
            assume_role = {
              role_arn            = "arn:aws:iam::123456789012:role/r"
              duration            = "1h30m"
              external_id         = "outside"
              policy              = "{\"Version\":\"2012-10-17\",\"Statement\":[]}"
              policy_arns         = ["arn:aws:iam::123456789012:policy/b", "arn:aws:iam::123456789012:policy/a"]
              session_name        = "the-session"
              source_identity     = "someone"
              tags                = { team = "x", stage = "y" }
              transitive_tag_keys = ["team"]
            }
        "#,
        seen: &[
            "sts AssumeRole by ENV: DurationSeconds=5400 ExternalId=outside \
             Policy={\"Version\":\"2012-10-17\",\"Statement\":[]} PolicyArns.member.1.arn=arn:aws:iam::123456789012:policy/a \
             PolicyArns.member.2.arn=arn:aws:iam::123456789012:policy/b RoleArn=role/r RoleSessionName=the-session \
             SourceIdentity=someone Tags.member.1.Key=stage Tags.member.1.Value=y Tags.member.2.Key=team Tags.member.2.Value=x \
             TransitiveTagKeys.member.1=team",
            "s3 by r+token",
        ],
        terraform: Terraform::NotAsked("sends tags in any order"),
        ..ROW
    },
    Row {
        name: "a_role_with_one_tag",
        environment: KEYS,
        block: r#"
            assume_role = {
              role_arn            = "arn:aws:iam::123456789012:role/r"
              duration            = "20m"
              external_id         = "outside"
              policy              = "{\"Version\":\"2012-10-17\",\"Statement\":[]}"
              policy_arns         = ["arn:aws:iam::123456789012:policy/a"]
              session_name        = "the-session"
              source_identity     = "someone"
              tags                = { team = "x" }
              transitive_tag_keys = ["team"]
            }
        "#,
        seen: &[
            "sts AssumeRole by ENV: DurationSeconds=1200 ExternalId=outside Policy={\"Version\":\"2012-10-17\",\"Statement\":[]} \
             PolicyArns.member.1.arn=arn:aws:iam::123456789012:policy/a RoleArn=role/r RoleSessionName=the-session \
             SourceIdentity=someone Tags.member.1.Key=team Tags.member.1.Value=x TransitiveTagKeys.member.1=team",
            "s3 by r+token",
        ],
        ..ROW
    },
    Row {
        name: "a_role_that_is_refused",
        environment: KEYS,
        block: "assume_role = { role_arn = \"arn:aws:iam::123456789012:role/forbidden\" }",
        seen: &["sts AssumeRole by ENV: DurationSeconds=900 RoleArn=role/forbidden"],
        fails: &[
            "Taking on the role arn:aws:iam::123456789012:role/forbidden",
            "AccessDenied",
            "not for you",
        ],
        ..ROW
    },
    Row {
        name: "a_role_with_keys_in_arguments",
        environment: KEYS,
        block: "access_key = \"ARG\"\nsecret_key = \"ARG-secret\"\ntoken = \"ARG-token\"\nassume_role = { role_arn = \
                \"arn:aws:iam::123456789012:role/r\" }",
        seen: &[
            "sts AssumeRole by ARG+token: DurationSeconds=900 RoleArn=role/r",
            "s3 by r+token",
        ],
        ..ROW
    },
    Row {
        name: "a_role_on_top_of_the_role_of_a_profile",
        environment: ONE,
        files: &[(
            "~/.aws/config",
            "[profile one]\nrole_arn = arn:aws:iam::123456789012:role/first\nsource_profile = base\n[profile base]\n\
             aws_access_key_id = BASE\naws_secret_access_key = BASE-secret\n",
        )],
        block: "assume_role = { role_arn = \"arn:aws:iam::123456789012:role/second\" }",
        seen: &[
            "sts AssumeRole by BASE: DurationSeconds=900 RoleArn=role/first",
            "sts AssumeRole by first+token: DurationSeconds=900 RoleArn=role/second",
            "s3 by second+token",
        ],
        ..ROW
    },
    Row {
        name: "a_role_in_the_region_of_an_argument",
        environment: KEYS,
        block: "sts_region = \"eu-west-1\"\nassume_role = { role_arn = \"arn:aws:iam::123456789012:role/r\" }",
        seen: &[
            "sts AssumeRole by ENV in eu-west-1: DurationSeconds=900 RoleArn=role/r",
            "s3 by r+token",
        ],
        ..ROW
    },
    Row {
        name: "a_profile_with_everything_about_its_role",
        environment: ONE,
        files: &[
            (
                "~/.aws/config",
                "[profile one]\nrole_arn = arn:aws:iam::123456789012:role/r\nsource_profile = base\nduration_seconds = 1200\n\
                 external_id = outside\nrole_session_name = named\n",
            ),
            (
                "~/.aws/credentials",
                "[base]\naws_access_key_id = BASE\naws_secret_access_key = BASE-secret\n",
            ),
        ],
        seen: &[
            "sts AssumeRole by BASE: DurationSeconds=1200 ExternalId=outside RoleArn=role/r RoleSessionName=named",
            "s3 by r+token",
        ],
        ..ROW
    },
    Row {
        name: "a_chain_of_three_profiles",
        environment: KEYS,
        files: &[(
            "~/.aws/config",
            "[profile one]\nrole_arn = arn:aws:iam::123456789012:role/r1\nsource_profile = two\n[profile two]\nrole_arn = \
             arn:aws:iam::123456789012:role/r2\nsource_profile = three\n[profile three]\naws_access_key_id = THREE\n\
             aws_secret_access_key = THREE-secret\naws_session_token = THREE-token\n",
        )],
        block: "profile = \"one\"",
        seen: &[
            "sts AssumeRole by THREE+token: DurationSeconds=900 RoleArn=role/r2",
            "sts AssumeRole by r2+token: DurationSeconds=900 RoleArn=role/r1",
            "s3 by r1+token",
        ],
        ..ROW
    },
    Row {
        name: "a_profile_that_is_its_own_source",
        environment: ONE,
        files: &[(
            "~/.aws/config",
            "[profile one]\nrole_arn = arn:aws:iam::123456789012:role/r\nsource_profile = one\naws_access_key_id = ONE\n\
             aws_secret_access_key = ONE-secret\n",
        )],
        seen: &[
            "sts AssumeRole by ONE: DurationSeconds=900 RoleArn=role/r",
            "s3 by r+token",
        ],
        ..ROW
    },
    Row {
        name: "a_role_with_the_keys_of_its_own_profile",
        environment: ONE,
        files: &[
            (
                "~/.aws/config",
                "[profile one]\nrole_arn = arn:aws:iam::123456789012:role/r\n",
            ),
            (
                "~/.aws/credentials",
                "[one]\naws_access_key_id = ONE\naws_secret_access_key = ONE-secret\n",
            ),
        ],
        seen: &[
            "sts AssumeRole by ONE: DurationSeconds=900 RoleArn=role/r",
            "s3 by r+token",
        ],
        ..ROW
    },
    Row {
        name: "a_source_with_keys_and_a_role_uses_both",
        environment: ONE,
        files: &[(
            "~/.aws/config",
            "[profile one]\nrole_arn = arn:aws:iam::123456789012:role/r1\nsource_profile = two\n[profile two]\nrole_arn = \
             arn:aws:iam::123456789012:role/r2\naws_access_key_id = TWO\naws_secret_access_key = TWO-secret\n",
        )],
        seen: &[
            "sts AssumeRole by TWO: DurationSeconds=900 RoleArn=role/r2",
            "sts AssumeRole by r2+token: DurationSeconds=900 RoleArn=role/r1",
            "s3 by r1+token",
        ],
        ..ROW
    },
    Row {
        name: "profiles_that_refer_to_each_other",
        environment: ONE,
        files: &[(
            "~/.aws/config",
            "[profile one]\nrole_arn = arn:aws:iam::123456789012:role/r1\nsource_profile = two\n[profile two]\nrole_arn = \
             arn:aws:iam::123456789012:role/r2\nsource_profile = one\n",
        )],
        fails: &["No valid credential sources found", "\"one\""],
        ..ROW
    },
    Row {
        name: "a_source_that_is_not_there",
        environment: ONE,
        files: &[(
            "~/.aws/config",
            "[profile one]\nrole_arn = arn:aws:iam::123456789012:role/r\nsource_profile = gone\n",
        )],
        fails: &["The profile \"one\" refers to the profile \"gone\", which is not there"],
        ..ROW
    },
    Row {
        name: "a_role_with_the_keys_of_the_environment",
        environment: KEYS,
        files: &[(
            "~/.aws/config",
            "[profile one]\nrole_arn = arn:aws:iam::123456789012:role/r\ncredential_source = Environment\n",
        )],
        block: "profile = \"one\"",
        seen: &[
            "sts AssumeRole by ENV: DurationSeconds=900 RoleArn=role/r",
            "s3 by r+token",
        ],
        ..ROW
    },
    Row {
        name: "a_role_with_keys_that_the_environment_lacks",
        environment: ONE,
        files: &[(
            "~/.aws/config",
            "[profile one]\nrole_arn = arn:aws:iam::123456789012:role/r\ncredential_source = Environment\n",
        )],
        fails: &["The profile \"one\" takes its credentials from the environment"],
        ..ROW
    },
    Row {
        name: "a_role_with_an_unknown_source",
        environment: ONE,
        files: &[(
            "~/.aws/config",
            "[profile one]\nrole_arn = arn:aws:iam::123456789012:role/r\ncredential_source = Moon\n",
        )],
        fails: &["The profile \"one\" has an unknown credential_source: \"Moon\""],
        ..ROW
    },
    Row {
        name: "a_role_with_two_kinds_of_sources",
        environment: ONE,
        files: &[(
            "~/.aws/config",
            "[profile one]\nrole_arn = arn:aws:iam::123456789012:role/r\nsource_profile = base\ncredential_source = Environment\n\
             [profile base]\naws_access_key_id = BASE\naws_secret_access_key = BASE-secret\n",
        )],
        fails: &[
            "The profile \"one\"",
            "source_profile",
            "credential_source",
            "one of them",
        ],
        ..ROW
    },
    Row {
        name: "a_role_that_wants_a_code",
        environment: ONE,
        files: &[(
            "~/.aws/config",
            "[profile one]\nrole_arn = arn:aws:iam::123456789012:role/r\nsource_profile = base\nmfa_serial = \
             arn:aws:iam::123456789012:mfa/u\n[profile base]\naws_access_key_id = BASE\naws_secret_access_key = BASE-secret\n",
        )],
        fails: &[
            "The profile \"one\" asks for a code of a device (mfa_serial)",
            "aws sts get-session-token",
        ],
        ..ROW
    },
    Row {
        name: "a_role_with_the_keys_of_a_program",
        environment: ONE,
        files: &[(
            "~/.aws/config",
            "[profile one]\nrole_arn = arn:aws:iam::123456789012:role/r\nsource_profile = base\n[profile base]\n\
             credential_process = echo '{\"Version\":1,\"AccessKeyId\":\"PROG\",\"SecretAccessKey\":\"PROG-secret\"}'\n",
        )],
        seen: &[
            "sts AssumeRole by PROG: DurationSeconds=900 RoleArn=role/r",
            "s3 by r+token",
        ],
        ..ROW
    },
    Row {
        name: "a_token_in_an_argument",
        environment: KEYS,
        block: r#"
            assume_role_with_web_identity = {
              role_arn           = "arn:aws:iam::123456789012:role/w"
              duration           = "30m"
              policy             = "{\"Version\":\"2012-10-17\",\"Statement\":[]}"
              policy_arns        = ["arn:aws:iam::123456789012:policy/a"]
              session_name       = "the-session"
              web_identity_token = "a.token"
            }
        "#,
        seen: &[
            "sts AssumeRoleWithWebIdentity: DurationSeconds=1800 Policy={\"Version\":\"2012-10-17\",\"Statement\":[]} \
             PolicyArns.member.1.arn=arn:aws:iam::123456789012:policy/a RoleArn=role/w RoleSessionName=the-session \
             WebIdentityToken=a.token",
            "s3 by w+token",
        ],
        ..ROW
    },
    Row {
        name: "a_token_in_a_file_and_a_role_on_top",
        files: &[("token", "a.token")],
        block: r#"
            assume_role_with_web_identity = {
              role_arn                = "arn:aws:iam::123456789012:role/w"
              web_identity_token_file = "token"
            }
            assume_role = { role_arn = "arn:aws:iam::123456789012:role/r" }
        "#,
        seen: &[
            "sts AssumeRoleWithWebIdentity: RoleArn=role/w WebIdentityToken=a.token",
            "sts AssumeRole by w+token: DurationSeconds=900 RoleArn=role/r",
            "s3 by r+token",
        ],
        ..ROW
    },
    Row {
        name: "a_token_in_a_file_that_is_not_there",
        block: r#"
            assume_role_with_web_identity = {
              role_arn                = "arn:aws:iam::123456789012:role/w"
              web_identity_token_file = "gone"
            }
        "#,
        fails: &["The file \"gone\" with the token for the role arn:aws:iam::123456789012:role/w cannot be read"],
        ..ROW
    },
    Row {
        name: "two_tokens",
        block: r#"
            assume_role_with_web_identity = {
              role_arn                = "arn:aws:iam::123456789012:role/w"
              web_identity_token      = "a.token"
              web_identity_token_file = "token"
            }
        "#,
        fails: &["Exactly one of web_identity_token and web_identity_token_file must be set"],
        ..ROW
    },
    Row {
        name: "a_token_in_the_environment",
        environment: &[
            ("AWS_WEB_IDENTITY_TOKEN_FILE", "{dir}/token"),
            ("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/w"),
            ("AWS_ROLE_SESSION_NAME", "named"),
            ("AWS_PROFILE", "base"),
        ],
        files: &[
            ("token", "a.token"),
            (
                "~/.aws/credentials",
                "[base]\naws_access_key_id = BASE\naws_secret_access_key = BASE-secret\n",
            ),
        ],
        seen: &[
            "sts AssumeRoleWithWebIdentity: RoleArn=role/w RoleSessionName=named WebIdentityToken=a.token",
            "s3 by w+token",
        ],
        ..ROW
    },
    Row {
        name: "keys_in_the_environment_come_before_a_token",
        environment: &[
            ("AWS_ACCESS_KEY_ID", "ENV"),
            ("AWS_SECRET_ACCESS_KEY", "ENV-secret"),
            ("AWS_WEB_IDENTITY_TOKEN_FILE", "{dir}/token"),
            ("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/w"),
        ],
        files: &[("token", "a.token")],
        seen: &["s3 by ENV"],
        ..ROW
    },
    Row {
        name: "a_token_in_the_environment_without_a_role",
        environment: &[("AWS_WEB_IDENTITY_TOKEN_FILE", "{dir}/token")],
        files: &[
            ("token", "a.token"),
            (
                "~/.aws/credentials",
                "[default]\naws_access_key_id = BASE\naws_secret_access_key = BASE-secret\n",
            ),
        ],
        fails: &["AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN"],
        ..ROW
    },
    Row {
        name: "a_token_in_a_profile",
        environment: ONE,
        files: &[
            (
                "~/.aws/config",
                "[profile one]\nrole_arn = arn:aws:iam::123456789012:role/w\nrole_session_name = named\nweb_identity_token_file = \
                 {dir}/token\n",
            ),
            ("token", "a.token"),
        ],
        seen: &[
            "sts AssumeRoleWithWebIdentity: RoleArn=role/w RoleSessionName=named WebIdentityToken=a.token",
            "s3 by w+token",
        ],
        ..ROW
    },
    Row {
        name: "a_role_on_top_of_a_profile_with_a_token",
        environment: ONE,
        files: &[
            (
                "~/.aws/config",
                "[profile one]\nrole_arn = arn:aws:iam::123456789012:role/r\nsource_profile = two\n[profile two]\nrole_arn = \
                 arn:aws:iam::123456789012:role/w\nweb_identity_token_file = {dir}/token\n",
            ),
            ("token", "a.token"),
        ],
        seen: &[
            "sts AssumeRoleWithWebIdentity: RoleArn=role/w WebIdentityToken=a.token",
            "sts AssumeRole by w+token: DurationSeconds=900 RoleArn=role/r",
            "s3 by r+token",
        ],
        ..ROW
    },
];
