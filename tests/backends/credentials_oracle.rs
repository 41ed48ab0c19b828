//! Credentials for Oracle Cloud: the key of a user from arguments, variables and profiles, and tokens whose keys another program
//! renews.
//!
//! The key is the same in all rows, and every signature is verified; the rows differ in the name of the key.

use aws_lc_rs::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::json;
use support::server::{Reply, Request};

use crate::credentials::{Pairs, ROW, Row, Table, Terraform, key, same};

pub const TABLE: Table = Table {
    store: "oci",
    subject: "all_sources",
    settings: "bucket = \"states\"\nnamespace = \"space\"",
    environment: &[
        ("CLIENT_HOST_OVERRIDES", "oci_object_storage.ObjectStorageClient={url}"),
        ("OCI_region", "us-ashburn-1"),
    ],
    names: &[],
    answer,
    as_ours: same,
    rows: ROWS,
};

fn answer(request: &Request) -> (Option<String>, Reply) {
    let authorization = request.header("authorization");
    let part = |name: &str| {
        let rest = authorization.split(&format!("{name}=\"")).nth(1).unwrap_or_default();
        rest.split('"').next().unwrap_or_default().to_owned()
    };
    let (method, target) = request.line.split_once(' ').unwrap_or_default();
    let lines: Vec<String> = part("headers")
        .split(' ')
        .map(|name| match name {
            "(request-target)" => format!("{name}: {} {target}", method.to_lowercase()),
            name => format!("{name}: {}", request.header(name)),
        })
        .collect();
    let signature = BASE64.decode(part("signature")).unwrap_or_default();
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, &key().1);
    let right = public.verify(lines.join("\n").as_bytes(), &signature).is_ok();
    let wrong = if right { "" } else { " with a wrong signature" };
    let reply = match request.path().ends_with("/o") || request.path().ends_with("/o/") {
        true => Reply::json("{\"objects\":[]}"),
        false => Reply::new(404, json!({"code": "ObjectNotFound", "message": "no"}).to_string()),
    };
    (Some(format!("oci{wrong} by {}", part("keyId"))), reply)
}

/// Default of the rows: Terraform has this store since 1.12, and these tests compare with 1.11.
const OWN: Row = Row {
    terraform: Terraform::NotAsked("has it since 1.12"),
    ..ROW
};

const PEM: Pairs = &[("key.pem", "{pem}")];

const CONFIG: &str = "[DEFAULT]\ntenancy=t\nuser=u\nfingerprint=11\nkey_file={dir}/key.pem\n[work]\ntenancy=t\nuser=w\nfingerprint=22\n\
                      key_file={dir}/key.pem\n[session]\nregion=us-ashburn-1\nkey_file={dir}/key.pem\n\
                      security_token_file={dir}/token\n[half]\ntenancy=t\n";

const FILES: Pairs = &[
    ("~/.oci/config", CONFIG),
    ("key.pem", "{pem}"),
    ("token", "of-session\n"),
];

/// A session whose token expired in 1970.
const ENDED: Pairs = &[
    ("~/.oci/config", CONFIG),
    ("key.pem", "{pem}"),
    ("token", "a.eyJleHAiOjF9.c"),
];

const ROWS: &[Row] = &[
    Row {
        name: "a_key_in_arguments",
        environment: &[("OCI_user_ocid", "not-this"), ("OCI_tenancy_ocid", "not-this")],
        files: PEM,
        block: "tenancy_ocid = \"t\"\nuser_ocid = \"u\"\nfingerprint = \"11\"\nprivate_key_path = \"{dir}/key.pem\"",
        seen: &["oci by t/u/11"],
        ..OWN
    },
    Row {
        name: "the_text_of_a_key_in_an_argument",
        block: "tenancy_ocid = \"t\"\nuser_ocid = \"u\"\nfingerprint = \"11\"\nprivate_key = \"{key}\"",
        seen: &["oci by t/u/11"],
        ..OWN
    },
    Row {
        name: "a_key_in_the_environment",
        environment: &[
            ("OCI_tenancy_ocid", "t"),
            ("OCI_user_ocid", "e"),
            ("OCI_fingerprint", "33"),
            ("OCI_private_key_path", "{dir}/key.pem"),
        ],
        files: FILES,
        seen: &["oci by t/e/33"],
        ..OWN
    },
    Row {
        name: "a_key_in_older_variables",
        environment: &[
            ("TF_VAR_tenancy_ocid", "t"),
            ("TF_VAR_user_ocid", "v"),
            ("TF_VAR_fingerprint", "44"),
            ("TF_VAR_private_key_path", "{dir}/key.pem"),
        ],
        files: PEM,
        seen: &["oci by t/v/44"],
        ..OWN
    },
    Row {
        name: "the_default_profile",
        environment: &[("TF_VAR_user_ocid", "not-this")],
        files: FILES,
        seen: &["oci by t/u/11"],
        ..OWN
    },
    Row {
        name: "another_profile",
        files: FILES,
        block: "config_file_profile = \"work\"",
        seen: &["oci by t/w/22"],
        ..OWN
    },
    Row {
        name: "a_profile_that_is_not_there",
        files: FILES,
        block: "config_file_profile = \"gone\"",
        fails: &["did not contain profile: gone"],
        ..OWN
    },
    Row {
        name: "a_profile_without_a_user",
        files: FILES,
        block: "config_file_profile = \"half\"",
        fails: &[
            "There is no user_ocid to sign requests with",
            "OCI_user_ocid",
            "oci setup config",
        ],
        ..OWN
    },
    Row {
        name: "a_key_that_is_not_there",
        block: "tenancy_ocid = \"t\"\nuser_ocid = \"u\"\nfingerprint = \"11\"\nprivate_key_path = \"{dir}/gone.pem\"",
        fails: &["can not read private key from: '{dir}/gone.pem'"],
        ..OWN
    },
    Row {
        name: "the_token_of_a_session",
        files: FILES,
        block: "auth = \"SecurityToken\"\nconfig_file_profile = \"session\"",
        seen: &["oci by ST$of-session"],
        ..OWN
    },
    Row {
        name: "the_token_of_a_session_that_has_ended",
        files: ENDED,
        block: "auth = \"SecurityToken\"\nconfig_file_profile = \"session\"",
        fails: &["The token has expired", "oci session refresh"],
        ..OWN
    },
    Row {
        name: "a_session_in_a_profile_without_one",
        environment: &[("OCI_auth", "SecurityToken")],
        files: FILES,
        block: "config_file_profile = \"work\"",
        fails: &[
            "The profile \"work\" has no security_token_file",
            "oci session authenticate",
        ],
        ..OWN
    },
    Row {
        name: "a_resource_principal_in_variables",
        environment: &[
            ("OCI_RESOURCE_PRINCIPAL_VERSION", "2.2"),
            ("OCI_RESOURCE_PRINCIPAL_RPST", "of-resource"),
            ("OCI_RESOURCE_PRINCIPAL_PRIVATE_PEM", "{pem}"),
        ],
        block: "auth = \"ResourcePrincipal\"",
        seen: &["oci by ST$of-resource"],
        ..OWN
    },
    Row {
        name: "a_resource_principal_in_files",
        environment: &[
            ("OCI_RESOURCE_PRINCIPAL_VERSION", "2.2"),
            ("OCI_RESOURCE_PRINCIPAL_RPST", "{dir}/token"),
            ("OCI_RESOURCE_PRINCIPAL_PRIVATE_PEM", "{dir}/key.pem"),
            ("OCI_auth", "resourceprincipal"),
        ],
        files: FILES,
        seen: &["oci by ST$of-session"],
        ..OWN
    },
    Row {
        name: "a_resource_principal_of_nothing",
        block: "auth = \"ResourcePrincipal\"",
        fails: &[
            "can not create resource principal, environment variable: OCI_RESOURCE_PRINCIPAL_VERSION, not present",
        ],
        ..OWN
    },
    Row {
        name: "an_unknown_kind",
        block: "auth = \"Moon\"",
        fails: &["Invalid authentication method", "'ApiKey' or 'InstancePrincipal'"],
        ..OWN
    },
];
