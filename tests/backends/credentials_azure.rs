//! Credentials for Azure Storage: keys, shared access signatures, and tokens of Entra ID from each source.
//!
//! In this cloud a token names its owner and its purpose: `CLIENT@RESOURCE`.

use serde_json::json;
use support::server::{Reply, Request};

use crate::credentials::{Pairs, ROW, Row, STATE, Table, Terraform, form, same};

pub const TABLE: Table = Table {
    store: "azurerm",
    subject: "all_sources",
    settings: r#"
        storage_account_name = "teststates"
        container_name       = "states"
        key                  = "k"
    "#,
    environment: &[("PATH", "{dir}/bin:/usr/bin:/bin")],
    names: &[
        "login.microsoftonline.com",
        "login.microsoftonline.us",
        "management.azure.com",
        "teststates.blob.core.windows.net",
        "teststates.blob.core.usgovcloudapi.net",
        "idp.example",
    ],
    answer,
    as_ours: same,
    rows: ROWS,
};

fn token(text: &str) -> Reply {
    Reply::json(
        &json!({"access_token": text, "expires_in": 3600, "ext_expires_in": 3600, "token_type": "Bearer"}).to_string(),
    )
}

fn bearer(request: &Request) -> String {
    request.header("authorization").trim_start_matches("Bearer ").to_owned()
}

/// Returns the resource of a token without the scheme and the parts that all resources share.
fn short(resource: &str) -> &str {
    let resource = resource.trim_start_matches("https://");
    resource.trim_end_matches("/.default").trim_end_matches('/')
}

fn answer(request: &Request) -> (Option<String>, Reply) {
    let host = request.header("host").to_owned();
    match host.split('.').next().unwrap_or_default() {
        "login" if request.method() == "POST" => login(request, &host),
        "login" => (None, Reply::status(404)),
        "management" => {
            let what = request.path().rsplit('/').next().unwrap_or_default();
            let group = request.path().split("/resourceGroups/").nth(1).unwrap_or_default();
            let group = group.split('/').next().unwrap_or_default();
            let subscription = request.path().split('/').nth(2).unwrap_or_default();
            let line = format!("manager {what} of {group} in {subscription} with {}", bearer(request));
            if what == "teststates" {
                let endpoints = json!({"blob": "https://teststates.blob.core.windows.net/"});
                let account = json!({"id": request.path(), "properties": {"primaryEndpoints": endpoints}});
                return (Some(line), Reply::json(&account.to_string()));
            }
            let keys = json!({"keys": [
                {"keyName": "key1", "value": "UkVBRA==", "permissions": "READ"},
                {"keyName": "key2", "value": "RlVMTA==", "permissions": "FULL"},
            ]});
            (Some(line), Reply::json(&keys.to_string()))
        }
        "teststates" => {
            let by = match (request.header("authorization"), request.query("sig")) {
                ("", Some(signature)) => format!("the signature {signature}"),
                ("", None) => "nothing".to_owned(),
                (text, _) => match text.split_once(':') {
                    Some((kind, _)) => kind.to_owned(),
                    None => bearer(request),
                },
            };
            let reply = match request.query("comp").as_deref() {
                Some("list") => Reply::ok(
                    "<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults><Blobs></Blobs><NextMarker/></EnumerationResults>",
                ),
                // A state exists, so that no run has to create one.
                _ => Reply::ok(STATE).with("x-ms-lease-status", "unlocked"),
            };
            (Some(format!("blobs by {by}")), reply)
        }
        "idp" => {
            let audience = request.query("audience").unwrap_or_default();
            let connection = match request.query("serviceConnectionId") {
                Some(id) => format!(" of the connection {id}"),
                None => String::new(),
            };
            let line = format!(
                "{} idp for {audience}{connection} with {}",
                request.method(),
                bearer(request)
            );
            let reply = match request.method() {
                "POST" => json!({"oidcToken": "of-pipeline"}),
                _ => json!({"value": "of-job"}),
            };
            (Some(line), Reply::json(&reply.to_string()))
        }
        _ => machine(request),
    }
}

fn login(request: &Request, host: &str) -> (Option<String>, Reply) {
    let fields = form(&request.body);
    let field = |name: &str| {
        let found = fields.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    let tenant = request.path().split('/').nth(1).unwrap_or_default().to_owned();
    let by = match (field("client_secret"), field("client_assertion")) {
        (secret, assertion) if assertion.is_empty() => format!("the secret {secret}"),
        (_, assertion) => format!("the token {assertion}"),
    };
    let (client, scope) = (field("client_id"), field("scope"));
    let place = match host {
        "login.microsoftonline.com" => String::new(),
        other => format!(" at {other}"),
    };
    let line = format!("login of {client} in {tenant}{place} for {} by {by}", short(&scope));
    let reply = match by.as_str() {
        "the secret wrong" => Reply::new(
            401,
            json!({"error": "invalid_client", "error_description": "AADSTS7000215: Invalid client secret provided."})
                .to_string(),
        ),
        _ => token(&format!("{client}@{}", short(&scope))),
    };
    (Some(line), reply)
}

/// Answers as the service for managed identities.
fn machine(request: &Request) -> (Option<String>, Reply) {
    let resource = request.query("resource").unwrap_or_default();
    let client = request.query("client_id").unwrap_or_else(|| "its own".to_owned());
    let line = format!("machine: {} for {client} and {}", request.path(), short(&resource));
    match request.header("metadata") {
        "true" => (Some(line), token(&format!("machine@{}", short(&resource)))),
        _ => (Some("machine without the header".to_owned()), Reply::status(400)),
    }
}

/// A fake of the command line `az`.
const AZ: &str = "#!/bin/sh\ncase \"$*\" in\n'version '*|'version') echo '{\"azure-cli\":\"2.60.0\"}';;\n'account show'*) echo \
                  '{\"id\":\"of-cli\",\"tenantId\":\"tenant-of-cli\",\"user\":{\"type\":\"user\",\"name\":\"u\"}}';;\n'account \
                  get-access-token'*) t=none; s=none; while [ $# -gt 0 ]; do case \"$1\" in --tenant) t=$2;; --scope|--resource) \
                  s=$2;; esac; shift; done; s=${s#https://}; s=${s%/.default}; echo \"{\\\"accessToken\\\":\\\"cli-$t@${s%/}\\\",\
                  \\\"expires_on\\\":4000000000,\\\"expiresOn\\\":\\\"2096-10-02 07:06:40.000000\\\",\\\"tokenType\\\":\\\"Bearer\\\",\
                  \\\"tenant\\\":\\\"$t\\\"}\";;\n*) exit 2;;\nesac\n";

const COMMAND: Pairs = &[("bin/az", AZ)];

/// A fake `az` without a login.
const LOGGED_OUT: Pairs = &[(
    "bin/az",
    "#!/bin/sh\ncase \"$1\" in version) echo '{\"azure-cli\":\"2.60.0\"}';; *) echo \"ERROR: Please run 'az login' to setup account.\" \
     >&2; exit 1;; esac\n",
)];

const TOKENS: &str = "use_azuread_auth = true";

/// Recorded lines if a client secret is used.
const BY_SECRET: &[&str] = &[
    "login of cid in tid for storage.azure.com by the secret s3cret",
    "blobs by cid@storage.azure.com",
];

const SECRET: Pairs = &[
    ("ARM_TENANT_ID", "tid"),
    ("ARM_CLIENT_ID", "cid"),
    ("ARM_CLIENT_SECRET", "s3cret"),
];

const BY_TOKEN: &[&str] = &[
    "login of cid in tid for storage.azure.com by the token jwt",
    "blobs by cid@storage.azure.com",
];

const ROWS: &[Row] = &[
    Row {
        name: "a_key_in_an_argument",
        environment: &[("ARM_SAS_TOKEN", "sv=1&sig=env")],
        block: "access_key = \"a2V5\"",
        seen: &["blobs by SharedKey teststates"],
        ..ROW
    },
    Row {
        name: "a_key_in_the_environment",
        environment: &[("ARM_ACCESS_KEY", "a2V5")],
        block: "sas_token = \"sv=1&sig=argument\"",
        seen: &["blobs by SharedKey teststates"],
        ..ROW
    },
    Row {
        name: "a_key_that_is_none",
        block: "access_key = \"not base64!\"",
        fails: &["The access key of a storage account is Base64, and this one is not"],
        ..ROW
    },
    Row {
        name: "a_signed_address_in_an_argument",
        environment: &[("ARM_SAS_TOKEN", "sv=1&sig=env")],
        block: "sas_token = \"?sv=1&sig=argument\"",
        seen: &["blobs by the signature argument"],
        ..ROW
    },
    Row {
        name: "a_signed_address_in_the_environment",
        environment: &[("ARM_SAS_TOKEN", "sv=1&sig=env"), ("ARM_USE_AZUREAD", "true")],
        seen: &["blobs by the signature env"],
        ..ROW
    },
    Row {
        name: "a_secret_in_arguments",
        environment: &[
            ("ARM_CLIENT_SECRET", "not-this"),
            ("ARM_CLIENT_ID", "not-this"),
            ("ARM_TENANT_ID", "not-this"),
        ],
        block: "use_azuread_auth = true\ntenant_id = \"tid\"\nclient_id = \"cid\"\nclient_secret = \"s3cret\"",
        seen: BY_SECRET,
        ..ROW
    },
    Row {
        name: "a_secret_in_the_environment",
        environment: &[
            ("ARM_TENANT_ID", "tid"),
            ("ARM_CLIENT_ID", "cid"),
            ("ARM_CLIENT_SECRET", "s3cret"),
            ("ARM_USE_AZUREAD", "true"),
        ],
        seen: BY_SECRET,
        ..ROW
    },
    Row {
        name: "a_secret_and_an_identity_in_files",
        environment: &[
            ("ARM_CLIENT_SECRET_FILE_PATH", "{dir}/secret"),
            ("ARM_TENANT_ID", "tid"),
        ],
        files: &[("secret", "s3cret\n"), ("id", "cid\n")],
        block: "use_azuread_auth = true\nclient_id_file_path = \"{dir}/id\"",
        seen: BY_SECRET,
        ..ROW
    },
    Row {
        name: "secrets_that_contradict_each_other",
        environment: SECRET,
        files: &[("secret", "another")],
        block: "use_azuread_auth = true\nclient_secret_file_path = \"{dir}/secret\"",
        fails: &["mismatch between supplied client_secret and the file of client_secret_file_path"],
        ..ROW
    },
    Row {
        name: "a_wrong_secret",
        environment: &[
            ("ARM_TENANT_ID", "tid"),
            ("ARM_CLIENT_ID", "cid"),
            ("ARM_CLIENT_SECRET", "wrong"),
        ],
        block: TOKENS,
        seen: &["login of cid in tid for storage.azure.com by the secret wrong"],
        fails: &[
            "gives no token for the secret of the application cid in the tenant tid",
            "AADSTS7000215",
        ],
        terraform: Terraform::NotAsked("asks again for minutes"),
        ..ROW
    },
    Row {
        name: "the_key_is_looked_up",
        environment: &[
            ("ARM_TENANT_ID", "tid"),
            ("ARM_CLIENT_ID", "cid"),
            ("ARM_CLIENT_SECRET", "s3cret"),
            ("ARM_SUBSCRIPTION_ID", "sub"),
        ],
        block: "resource_group_name = \"group\"",
        seen: &[
            "login of cid in tid for management.azure.com by the secret s3cret",
            "manager teststates of group in sub with cid@management.azure.com",
            "manager listKeys of group in sub with cid@management.azure.com",
            "blobs by SharedKey teststates",
        ],
        ..ROW
    },
    Row {
        name: "nothing_leads_to_the_storage",
        environment: SECRET,
        fails: &["`access_key`, `sas_token`, `use_azuread_auth` and `resource_group_name`"],
        ..ROW
    },
    Row {
        name: "another_cloud",
        environment: &[
            ("ARM_TENANT_ID", "tid"),
            ("ARM_CLIENT_ID", "cid"),
            ("ARM_CLIENT_SECRET", "s3cret"),
            ("ARM_ENVIRONMENT", "usgovernment"),
        ],
        block: TOKENS,
        seen: &[
            "login of cid in tid at login.microsoftonline.us for storage.azure.com by the secret s3cret",
            "blobs by cid@storage.azure.com",
        ],
        ..ROW
    },
    Row {
        name: "a_token_of_another_identity_provider",
        environment: &[
            ("ARM_TENANT_ID", "tid"),
            ("ARM_CLIENT_ID", "cid"),
            ("ARM_OIDC_TOKEN", "jwt"),
            ("ARM_USE_OIDC", "true"),
        ],
        block: TOKENS,
        seen: BY_TOKEN,
        ..ROW
    },
    Row {
        name: "a_token_of_another_identity_provider_in_a_file",
        environment: &[("ARM_TENANT_ID", "tid"), ("ARM_CLIENT_ID", "cid")],
        files: &[("token", "jwt")],
        block: "use_azuread_auth = true\nuse_oidc = true\noidc_token_file_path = \"{dir}/token\"",
        seen: BY_TOKEN,
        ..ROW
    },
    Row {
        name: "a_secret_comes_before_a_token",
        environment: SECRET,
        block: "use_azuread_auth = true\nuse_oidc = true\noidc_token = \"jwt\"",
        seen: BY_SECRET,
        ..ROW
    },
    Row {
        name: "a_token_that_is_asked_for_in_a_job",
        environment: &[
            ("ARM_TENANT_ID", "tid"),
            ("ARM_CLIENT_ID", "cid"),
            ("ARM_USE_OIDC", "true"),
            ("ACTIONS_ID_TOKEN_REQUEST_URL", "https://idp.example/job?x=y"),
            ("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "job"),
        ],
        block: TOKENS,
        seen: &[
            "GET idp for api://AzureADTokenExchange with job",
            "login of cid in tid for storage.azure.com by the token of-job",
            "blobs by cid@storage.azure.com",
        ],
        ..ROW
    },
    Row {
        name: "a_token_that_is_asked_for_in_a_pipeline",
        environment: &[
            ("ARM_TENANT_ID", "tid"),
            ("ARM_CLIENT_ID", "cid"),
            ("ARM_USE_OIDC", "true"),
            ("SYSTEM_OIDCREQUESTURI", "https://idp.example/pipeline"),
            ("SYSTEM_ACCESSTOKEN", "pipe"),
            ("ARM_ADO_PIPELINE_SERVICE_CONNECTION_ID", "conn"),
        ],
        block: TOKENS,
        seen: &[
            "POST idp for api://AzureADTokenExchange of the connection conn with pipe",
            "login of cid in tid for storage.azure.com by the token of-pipeline",
            "blobs by cid@storage.azure.com",
        ],
        terraform: Terraform::NotAsked("names no audience"),
        ..ROW
    },
    Row {
        name: "the_identity_of_a_workload",
        environment: &[
            ("ARM_USE_AKS_WORKLOAD_IDENTITY", "true"),
            ("AZURE_CLIENT_ID", "cid"),
            ("AZURE_TENANT_ID", "tid"),
            ("AZURE_FEDERATED_TOKEN_FILE", "{dir}/token"),
        ],
        files: &[("token", "jwt")],
        block: TOKENS,
        seen: BY_TOKEN,
        ..ROW
    },
    Row {
        name: "the_identity_of_the_machine",
        environment: &[("ARM_MSI_ENDPOINT", "{url}/not-this")],
        block: "use_azuread_auth = true\nuse_msi = true\nmsi_endpoint = \"{url}/msi\"",
        seen: &[
            "machine: /msi for its own and storage.azure.com",
            "blobs by machine@storage.azure.com",
        ],
        ..ROW
    },
    Row {
        name: "one_of_the_identities_of_the_machine",
        environment: &[
            ("ARM_USE_MSI", "true"),
            ("ARM_MSI_ENDPOINT", "{url}/msi"),
            ("ARM_CLIENT_ID", "cid"),
            ("ARM_TENANT_ID", "tid"),
        ],
        files: COMMAND,
        block: TOKENS,
        seen: &[
            "machine: /msi for cid and storage.azure.com",
            "blobs by machine@storage.azure.com",
        ],
        ..ROW
    },
    Row {
        name: "a_secret_comes_before_the_machine",
        environment: SECRET,
        block: "use_azuread_auth = true\nuse_msi = true\nmsi_endpoint = \"{url}/msi\"",
        seen: BY_SECRET,
        ..ROW
    },
    Row {
        name: "the_login_of_the_command_line",
        files: COMMAND,
        block: TOKENS,
        seen: &["blobs by cli-tenant-of-cli@storage.azure.com"],
        ..ROW
    },
    Row {
        name: "the_login_of_the_command_line_for_a_tenant",
        environment: &[("ARM_TENANT_ID", "tid")],
        files: COMMAND,
        block: TOKENS,
        seen: &["blobs by cli-tid@storage.azure.com"],
        ..ROW
    },
    Row {
        name: "the_subscription_of_the_command_line",
        files: COMMAND,
        block: "resource_group_name = \"group\"",
        seen: &[
            "manager teststates of group in of-cli with cli-tenant-of-cli@management.azure.com",
            "manager listKeys of group in of-cli with cli-tenant-of-cli@management.azure.com",
            "blobs by SharedKey teststates",
        ],
        ..ROW
    },
    Row {
        name: "a_command_line_that_is_not_logged_in",
        files: LOGGED_OUT,
        block: TOKENS,
        fails: &["Please run 'az login' to setup account", "Log in with \"az login\""],
        ..ROW
    },
    Row {
        name: "a_command_line_that_is_not_there",
        block: TOKENS,
        fails: &["the command line of Azure cannot be run"],
        ..ROW
    },
    Row {
        name: "a_token_that_may_not_be_used",
        environment: &[
            ("ARM_TENANT_ID", "tid"),
            ("ARM_CLIENT_ID", "cid"),
            ("ARM_OIDC_TOKEN", "jwt"),
        ],
        block: "use_azuread_auth = true\nuse_cli = false",
        fails: &["no Authorizer could be configured"],
        ..ROW
    },
    Row {
        name: "a_variable_that_is_neither_true_nor_false",
        environment: &[("ARM_USE_AZUREAD", "perhaps")],
        fails: &["ARM_USE_AZUREAD must be true or false"],
        ..ROW
    },
];
