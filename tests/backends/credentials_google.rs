//! Credentials for Google Cloud: the sources of a token, and the requests for one.
//!
//! In this cloud a token names the account it is for: `token-of-ACCOUNT`. Keys of service accounts sign their requests for
//! tokens, and the fake verifies the signatures.

use serde_json::{Value as Json, json};
use support::server::{Reply, Request, decoded};

use crate::credentials::{Pairs, ROW, Row, Table, Terraform, form, statement};

pub const TABLE: Table = Table {
    store: "gcs",
    subject: "all_sources",
    settings: "bucket = \"states\"",
    environment: &[("GCE_METADATA_HOST", "127.0.0.1:1")],
    names: &[
        "storage.googleapis.com",
        "oauth2.googleapis.com",
        "sts.googleapis.com",
        "iamcredentials.googleapis.com",
        "idp.example",
    ],
    answer,
    as_ours,
    rows: ROWS,
};

/// If credentials belong to an account directly, Terraform requests full control. Monoform always requests only reading and writing.
fn as_ours(line: String) -> String {
    line.replace("devstorage.full_control", "devstorage.read_write")
}

fn bearer(request: &Request) -> String {
    let authorization = request.header("authorization");
    authorization
        .strip_prefix("Bearer ")
        .unwrap_or(authorization)
        .to_owned()
}

fn token(text: &str) -> Reply {
    Reply::json(&json!({"access_token": text, "expires_in": 3600, "token_type": "Bearer"}).to_string())
}

fn refusal(error: &str, about: &str) -> Reply {
    Reply::new(400, json!({"error": error, "error_description": about}).to_string())
}

fn answer(request: &Request) -> (Option<String>, Reply) {
    let host = request.header("host").split('.').next().unwrap_or_default().to_owned();
    match &*host {
        "storage" => {
            let project = match request.header("x-goog-user-project") {
                "" => String::new(),
                project => format!(" for the project {project}"),
            };
            let reply = match request.method() {
                "GET" if request.path().ends_with("/o") => Reply::json("{\"items\":[]}"),
                // The program reads the lock object that it has written.
                "GET" if request.path().ends_with("tflock") => Reply::json("{\"generation\":\"1\"}"),
                "GET" => Reply::new(404, "{\"error\":{\"code\":404,\"message\":\"No such object\"}}"),
                _ => Reply::json("{\"generation\":\"1\"}"),
            };
            (Some(format!("storage with {}{project}", bearer(request))), reply)
        }
        "oauth2" => exchange(request),
        "sts" => federation(request),
        "iamcredentials" => {
            let json: Json = serde_json::from_slice(&request.body).unwrap_or_default();
            let account = decoded(request.path());
            let account = account.rsplit('/').next().unwrap_or_default();
            let account = account
                .strip_suffix(":generateAccessToken")
                .unwrap_or(account)
                .to_owned();
            let delegates = match &json["delegates"] {
                Json::Array(delegates) if !delegates.is_empty() => format!(" by {}", Json::from(delegates.clone())),
                _ => String::new(),
            };
            let scope = json["scope"][0]
                .as_str()
                .unwrap_or_default()
                .rsplit('/')
                .next()
                .unwrap_or_default();
            let line = format!("{account}{delegates} for {scope} with {}", bearer(request));
            let reply = match &*account {
                "other@p" => Reply::new(403, "{\"error\":{\"status\":\"PERMISSION_DENIED\",\"message\":\"no\"}}"),
                _ => Reply::json(
                    &json!({"accessToken": format!("token-of-{account}"), "expireTime": "2999-01-01T00:00:00Z"})
                        .to_string(),
                ),
            };
            (Some(line), reply)
        }
        "idp" => {
            let line = format!("idp {} with {}", request.path(), request.header("x-who"));
            (Some(line), Reply::json("{\"value\":\"of-address\"}"))
        }
        _ => machine(request),
    }
}

/// Answers requests for tokens by keys of service accounts and logins of users.
fn exchange(request: &Request) -> (Option<String>, Reply) {
    let fields = form(&request.body);
    let field = |name: &str| {
        let found = fields.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    if field("grant_type") == "refresh_token" {
        // Client secrets may be in the form or in a header.
        let client = match &*field("client_id") {
            "" => "in a header".to_owned(),
            client => format!("{client} {}", field("client_secret")),
        };
        let line = format!("oauth2: refresh {} of {client}", field("refresh_token"));
        let reply = match &*field("refresh_token") {
            "old" => refusal("invalid_grant", "Token has been expired or revoked."),
            _ => token("token-of-user"),
        };
        return (Some(line), reply);
    }
    let Some((header, claims)) = statement(&field("assertion")) else {
        return (
            Some("oauth2: a wrong signature".to_owned()),
            refusal("invalid_grant", "no"),
        );
    };
    let text = |json: &Json| json.as_str().unwrap_or_default().to_owned();
    let account = text(&claims["iss"]);
    let line = format!(
        "oauth2: {account} by the key {} at {}",
        text(&header["kid"]),
        text(&claims["aud"])
    );
    (Some(line), token(&format!("token-of-{account}")))
}

/// Answers requests that exchange tokens of other identity providers.
fn federation(request: &Request) -> (Option<String>, Reply) {
    let fields = form(&request.body);
    let field = |name: &str| {
        let found = fields.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    if field("grant_type") == "refresh_token" {
        return (
            Some(format!("sts: refresh {}", field("refresh_token"))),
            token("token-of-workforce"),
        );
    }
    let short = |name: &str| field(name).rsplit(':').next().unwrap_or_default().to_owned();
    // AWS's subject token is a signed request that is not sent, so its signer and audience are recorded.
    let subject = match field("subject_token") {
        text if text.starts_with('%') => {
            let json: Json = serde_json::from_str(&decoded(&text)).unwrap_or_default();
            let headers = json["headers"].as_array().cloned().unwrap_or_default();
            let header = |name: &str| {
                let found = headers
                    .iter()
                    .find(|h| h["key"].as_str().is_some_and(|k| k.eq_ignore_ascii_case(name)));
                found.and_then(|h| h["value"].as_str()).unwrap_or_default().to_owned()
            };
            let signer = header("authorization");
            let key = signer
                .split("Credential=")
                .nth(1)
                .and_then(|rest| rest.split('/').next());
            format!(
                "{} by {} for {}",
                json["url"].as_str().unwrap_or_default(),
                key.unwrap_or_default(),
                header("x-goog-cloud-target-resource")
            )
        }
        text => text,
    };
    let options = match field("options") {
        text if text.is_empty() => text,
        text => format!(" {text}"),
    };
    let line = format!(
        "sts: {} {subject} for {}{options}",
        short("subject_token_type"),
        field("audience")
    );
    (Some(line), token("token-of-pool"))
}

/// Answers as the metadata service.
fn machine(request: &Request) -> (Option<String>, Reply) {
    if request.path() != "/computeMetadata/v1/instance/service-accounts/default/token" {
        return (None, Reply::status(404));
    }
    match request.header("metadata-flavor") {
        "Google" => (
            Some("machine".to_owned()),
            token("token-of-machine").with("Metadata-Flavor", "Google"),
        ),
        _ => (Some("machine without the header".to_owned()), Reply::status(403)),
    }
}

const SERVICE: &str = "{\"type\":\"service_account\",\"client_email\":\"sa@p\",\"private_key_id\":\"k1\",\"private_key\":\"{key}\",\
                       \"token_uri\":\"https://oauth2.googleapis.com/token\"}";
const OTHER: &str = "{\"type\":\"service_account\",\"client_email\":\"sb@p\",\"private_key_id\":\"k2\",\"private_key\":\"{key}\",\
                     \"token_uri\":\"https://oauth2.googleapis.com/token\"}";
const USER: &str =
    "{\"type\":\"authorized_user\",\"client_id\":\"cid\",\"client_secret\":\"cs\",\"refresh_token\":\"rt\"}";

const FILES: Pairs = &[
    ("sa.json", SERVICE),
    ("sb.json", OTHER),
    ("user.json", USER),
    ("~/in home.json", SERVICE),
    ("~/.config/gcloud/application_default_credentials.json", USER),
    ("gcloud/application_default_credentials.json", OTHER),
];

/// Recorded lines if the key of a service account is used.
const BY_KEY: &[&str] = &[
    "oauth2: sa@p by the key k1 at https://oauth2.googleapis.com/token",
    "storage with token-of-sa@p",
];
const BY_OTHER_KEY: &[&str] = &[
    "oauth2: sb@p by the key k2 at https://oauth2.googleapis.com/token",
    "storage with token-of-sb@p",
];
const BY_USER: &[&str] = &["oauth2: refresh rt of cid cs", "storage with token-of-user"];

/// Credentials file of an external account whose token has this source.
macro_rules! external {
    ($source:literal $(, $more:literal)?) => {
        concat!(
            "{\"type\":\"external_account\",\"audience\":\"//iam/pool\",\"subject_token_type\":\
             \"urn:ietf:params:oauth:token-type:jwt\",\"token_url\":\"https://sts.googleapis.com/v1/token\",\
             \"credential_source\":",
            $source,
            $(",", $more,)?
            "}"
        )
    };
}

const DEFAULT: Pairs = &[("GOOGLE_APPLICATION_CREDENTIALS", "{dir}/c.json")];

const ROWS: &[Row] = &[
    Row {
        name: "a_token_in_an_argument",
        environment: &[
            ("GOOGLE_OAUTH_ACCESS_TOKEN", "of-environment"),
            ("GOOGLE_CREDENTIALS", "sa.json"),
        ],
        files: FILES,
        block: "access_token = \"of-argument\"\ncredentials = \"sb.json\"",
        seen: &["storage with of-argument"],
        ..ROW
    },
    Row {
        name: "a_token_in_the_environment",
        environment: &[
            ("GOOGLE_OAUTH_ACCESS_TOKEN", "of-environment"),
            ("GOOGLE_CREDENTIALS", "sa.json"),
        ],
        files: FILES,
        seen: &["storage with of-environment"],
        ..ROW
    },
    Row {
        name: "a_file_in_an_argument",
        environment: &[
            ("GOOGLE_BACKEND_CREDENTIALS", "sb.json"),
            ("GOOGLE_CREDENTIALS", "user.json"),
        ],
        files: FILES,
        block: "credentials = \"sa.json\"",
        seen: BY_KEY,
        ..ROW
    },
    Row {
        name: "a_file_in_the_home_directory",
        files: FILES,
        block: "credentials = \"~/in home.json\"",
        seen: BY_KEY,
        ..ROW
    },
    Row {
        name: "json_in_an_argument",
        block: "credentials = <<EOT\n{\"type\":\"authorized_user\",\"client_id\":\"cid\",\"client_secret\":\"cs\",\
                \"refresh_token\":\"rt\"}\nEOT",
        seen: BY_USER,
        ..ROW
    },
    Row {
        name: "the_variable_of_the_backend_comes_first",
        environment: &[
            ("GOOGLE_BACKEND_CREDENTIALS", "sa.json"),
            ("GOOGLE_CREDENTIALS", "sb.json"),
            ("GOOGLE_APPLICATION_CREDENTIALS", "user.json"),
        ],
        files: FILES,
        seen: BY_KEY,
        ..ROW
    },
    Row {
        name: "json_in_the_environment",
        environment: &[
            ("GOOGLE_CREDENTIALS", SERVICE),
            ("GOOGLE_APPLICATION_CREDENTIALS", "user.json"),
        ],
        files: FILES,
        seen: BY_KEY,
        ..ROW
    },
    Row {
        name: "text_that_is_neither_json_nor_a_file",
        block: "credentials = \"gone.json\"",
        fails: &["neither JSON nor the path of a file with JSON"],
        ..ROW
    },
    Row {
        name: "the_file_of_application_default_credentials",
        environment: &[("GOOGLE_APPLICATION_CREDENTIALS", "sb.json")],
        files: FILES,
        seen: BY_OTHER_KEY,
        ..ROW
    },
    Row {
        name: "the_file_of_application_default_credentials_is_not_there",
        environment: &[("GOOGLE_APPLICATION_CREDENTIALS", "gone.json")],
        files: FILES,
        fails: &["The application default credentials in gone.json cannot be used"],
        ..ROW
    },
    Row {
        name: "the_login_of_gcloud",
        files: FILES,
        seen: BY_USER,
        ..ROW
    },
    Row {
        name: "the_login_of_gcloud_in_another_folder",
        environment: &[("CLOUDSDK_CONFIG", "{dir}/gcloud")],
        files: FILES,
        seen: BY_OTHER_KEY,
        terraform: Terraform::Differs("it does not know where gcloud keeps its files otherwise", BY_USER, true),
        ..ROW
    },
    Row {
        name: "a_login_that_was_revoked",
        environment: DEFAULT,
        files: &[(
            "c.json",
            "{\"type\":\"authorized_user\",\"client_id\":\"cid\",\"client_secret\":\"cs\",\"refresh_token\":\"old\"}",
        )],
        seen: &["oauth2: refresh old of cid cs"],
        fails: &[
            "invalid_grant",
            "Token has been expired or revoked",
            "gcloud auth application-default login",
        ],
        ..ROW
    },
    Row {
        name: "the_project_of_a_login_pays",
        environment: DEFAULT,
        files: &[(
            "c.json",
            "{\"type\":\"authorized_user\",\"client_id\":\"cid\",\"client_secret\":\"cs\",\"refresh_token\":\"rt\",\
             \"quota_project_id\":\"payer\"}",
        )],
        seen: &[
            "oauth2: refresh rt of cid cs",
            "storage with token-of-user for the project payer",
        ],
        ..ROW
    },
    Row {
        name: "the_project_of_the_environment_pays",
        environment: &[
            ("GOOGLE_APPLICATION_CREDENTIALS", "{dir}/c.json"),
            ("GOOGLE_CLOUD_QUOTA_PROJECT", "other"),
        ],
        files: &[(
            "c.json",
            "{\"type\":\"authorized_user\",\"client_id\":\"cid\",\"client_secret\":\"cs\",\"refresh_token\":\"rt\",\
             \"quota_project_id\":\"payer\"}",
        )],
        seen: &[
            "oauth2: refresh rt of cid cs",
            "storage with token-of-user for the project other",
        ],
        ..ROW
    },
    Row {
        name: "the_account_of_the_machine",
        environment: &[("GCE_METADATA_HOST", "{host}")],
        seen: &["machine", "storage with token-of-machine"],
        ..ROW
    },
    Row {
        name: "no_credentials",
        fails: &[
            "There are no credentials for Google Cloud",
            "gcloud auth application-default login",
        ],
        terraform: Terraform::NotAsked("waits for the machine without end"),
        ..ROW
    },
    Row {
        name: "in_the_place_of_an_account",
        environment: &[("GOOGLE_IMPERSONATE_SERVICE_ACCOUNT", "not-this@p")],
        files: FILES,
        block: "credentials = \"sa.json\"\nimpersonate_service_account = \"deployer@p\"\n\
                impersonate_service_account_delegates = [\"a@p\", \"b@p\"]",
        seen: &[
            "oauth2: sa@p by the key k1 at https://oauth2.googleapis.com/token",
            "deployer@p by [\"projects/-/serviceAccounts/a@p\",\"projects/-/serviceAccounts/b@p\"] for devstorage.read_write with \
             token-of-sa@p",
            "storage with token-of-deployer@p",
        ],
        ..ROW
    },
    Row {
        name: "in_the_place_of_an_account_of_the_environment",
        environment: &[
            ("GOOGLE_BACKEND_IMPERSONATE_SERVICE_ACCOUNT", "deployer@p"),
            ("GOOGLE_IMPERSONATE_SERVICE_ACCOUNT", "not-this@p"),
            ("GOOGLE_OAUTH_ACCESS_TOKEN", "of-environment"),
        ],
        seen: &[
            "deployer@p for devstorage.read_write with of-environment",
            "storage with token-of-deployer@p",
        ],
        ..ROW
    },
    Row {
        name: "in_the_place_of_an_account_by_the_machine",
        environment: &[
            ("GCE_METADATA_HOST", "{host}"),
            ("GOOGLE_IMPERSONATE_SERVICE_ACCOUNT", "deployer@p"),
        ],
        seen: &[
            "machine",
            "deployer@p for devstorage.read_write with token-of-machine",
            "storage with token-of-deployer@p",
        ],
        ..ROW
    },
    Row {
        name: "in_the_place_of_an_account_without_permission",
        block: "access_token = \"of-argument\"\nimpersonate_service_account = \"other@p\"",
        seen: &["other@p for devstorage.read_write with of-argument"],
        fails: &["PERMISSION_DENIED", "roles/iam.serviceAccountTokenCreator"],
        ..ROW
    },
    Row {
        name: "credentials_that_take_the_place_of_an_account",
        environment: DEFAULT,
        files: &[(
            "c.json",
            "{\"type\":\"impersonated_service_account\",\"service_account_impersonation_url\":\
             \"https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/deployer@p:generateAccessToken\",\"delegates\":\
             [\"projects/-/serviceAccounts/a@p\"],\"source_credentials\":{\"type\":\"authorized_user\",\"client_id\":\"cid\",\"client_secret\":\"cs\",\
             \"refresh_token\":\"rt\"}}",
        )],
        seen: &[
            "oauth2: refresh rt of cid cs",
            "deployer@p by [\"projects/-/serviceAccounts/a@p\"] for devstorage.read_write with token-of-user",
            "storage with token-of-deployer@p",
        ],
        ..ROW
    },
    Row {
        name: "another_identity_provider_by_a_file",
        environment: DEFAULT,
        files: &[
            ("c.json", external!("{\"file\":\"{dir}/token\"}")),
            ("token", "of-file"),
        ],
        seen: &["sts: jwt of-file for //iam/pool", "storage with token-of-pool"],
        ..ROW
    },
    Row {
        name: "another_identity_provider_by_a_field_of_a_file",
        environment: DEFAULT,
        files: &[
            (
                "c.json",
                external!(
                    "{\"file\":\"{dir}/token\",\"format\":{\"type\":\"json\",\"subject_token_field_name\":\"t\"}}",
                    "\"service_account_impersonation_url\":\
                     \"https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/deployer@p:generateAccessToken\""
                ),
            ),
            ("token", "{\"t\":\"of-field\"}"),
        ],
        seen: &[
            "sts: jwt of-field for //iam/pool",
            "deployer@p for devstorage.read_write with token-of-pool",
            "storage with token-of-deployer@p",
        ],
        ..ROW
    },
    Row {
        name: "another_identity_provider_by_an_address",
        environment: DEFAULT,
        files: &[(
            "c.json",
            external!(
                "{\"url\":\"https://idp.example/token\",\"headers\":{\"X-Who\":\"me\"},\"format\":{\"type\":\"json\",\
                 \"subject_token_field_name\":\"value\"}}"
            ),
        )],
        seen: &[
            "idp /token with me",
            "sts: jwt of-address for //iam/pool",
            "storage with token-of-pool",
        ],
        ..ROW
    },
    Row {
        name: "another_identity_provider_by_a_program",
        environment: &[
            ("GOOGLE_APPLICATION_CREDENTIALS", "{dir}/c.json"),
            ("GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES", "1"),
        ],
        files: &[
            (
                "c.json",
                external!("{\"executable\":{\"command\":\"{dir}/give it\",\"timeout_millis\":20000}}"),
            ),
            (
                "give",
                "#!/bin/sh\necho \"{\\\"version\\\":1,\\\"success\\\":true,\\\"token_type\\\":\
                 \\\"$GOOGLE_EXTERNAL_ACCOUNT_TOKEN_TYPE\\\",\\\"id_token\\\":\\\"$1-$GOOGLE_EXTERNAL_ACCOUNT_AUDIENCE\\\",\
                 \\\"expiration_time\\\":4000000000}\"\n",
            ),
        ],
        seen: &["sts: jwt it-//iam/pool for //iam/pool", "storage with token-of-pool"],
        ..ROW
    },
    Row {
        name: "a_program_that_is_not_allowed",
        environment: DEFAULT,
        files: &[("c.json", external!("{\"executable\":{\"command\":\"{dir}/give it\"}}"))],
        fails: &["GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES"],
        ..ROW
    },
    Row {
        name: "keys_of_amazon_in_the_environment",
        environment: &[
            ("GOOGLE_APPLICATION_CREDENTIALS", "{dir}/c.json"),
            ("AWS_ACCESS_KEY_ID", "AKID"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("AWS_REGION", "eu-west-1"),
        ],
        files: &[(
            "c.json",
            "{\"type\":\"external_account\",\"audience\":\"//iam/pool\",\"subject_token_type\":\
             \"urn:ietf:params:aws:token-type:aws4_request\",\"token_url\":\"https://sts.googleapis.com/v1/token\",\
             \"credential_source\":{\"environment_id\":\"aws1\",\"regional_cred_verification_url\":\
             \"https://sts.{region}.amazonaws.com?Action=GetCallerIdentity&Version=2011-06-15\"}}",
        )],
        seen: &[
            "sts: aws4_request https://sts.eu-west-1.amazonaws.com?Action=GetCallerIdentity&Version=2011-06-15 by AKID for \
             //iam/pool for //iam/pool",
            "storage with token-of-pool",
        ],
        ..ROW
    },
    Row {
        name: "a_token_of_another_identity_provider_is_not_there",
        environment: DEFAULT,
        files: &[("c.json", external!("{\"file\":\"{dir}/gone\"}"))],
        fails: &["The external account has no token", "{dir}/gone"],
        ..ROW
    },
    Row {
        name: "a_user_of_another_identity_provider",
        environment: DEFAULT,
        files: &[(
            "c.json",
            "{\"type\":\"external_account_authorized_user\",\"audience\":\"//iam/pool\",\"client_id\":\"cid\",\"client_secret\":\"cs\",\
             \"refresh_token\":\"rt\",\"token_url\":\"https://sts.googleapis.com/v1/oauthtoken\"}",
        )],
        seen: &["sts: refresh rt", "storage with token-of-workforce"],
        ..ROW
    },
    Row {
        name: "credentials_of_no_type",
        block: "credentials = \"{}\"",
        fails: &["The credentials have no \"type\"", "gcloud"],
        ..ROW
    },
    Row {
        name: "credentials_of_an_unknown_type",
        block: "credentials = <<EOT\n{\"type\":\"moon\"}\nEOT",
        fails: &["Credentials of the type \"moon\" are not supported"],
        ..ROW
    },
    Row {
        name: "a_key_that_cannot_be_read",
        block: "credentials = <<EOT\n{\"type\":\"service_account\",\"client_email\":\"sa@p\",\"private_key\":\"none\",\
                \"token_uri\":\"https://oauth2.googleapis.com/token\"}\nEOT",
        fails: &["The key of the service account sa@p cannot be used"],
        ..ROW
    },
];
