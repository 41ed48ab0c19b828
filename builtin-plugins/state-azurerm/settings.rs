//! Effective settings from the arguments and the environment.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use monoform_sdk::{Attr, Diagnostic, Result, env};
use store_client::arguments;
use store_client::{Answer, HttpClient, Retries, Settings as HttpSettings};

use crate::clouds::{self, Cloud};
use crate::config::{Config, SUMMARY, problem};
use crate::login::{Certificate, Login, Requested};

/// Authentication of requests to the storage account.
#[derive(Clone)]
pub(crate) enum How {
    /// Key of the account.
    Key(String),
    /// Shared access signature.
    Signature(String),
    /// Token of Entra ID.
    Token,
    /// Key of the account, requested from the Resource Manager.
    LookedUp,
}

pub(crate) struct Settings {
    pub account: String,
    pub container: String,
    pub key: String,
    pub snapshot: bool,
    pub how: How,
    /// True if the URL of the blob service is requested from the Resource Manager.
    pub lookup: bool,
    pub subscription: Option<String>,
    pub group: Option<String>,
    pub cloud: Cloud,
    pub login: Login,
    pub http: HttpClient,
}

/// Returns the text of an argument, or else of the first variable that is set. Surrounding spaces are removed.
fn text(value: &Attr<String>, variables: &[&str]) -> Option<String> {
    let given = arguments::text(value, variables);
    given.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn flag(attribute: &str, value: &Attr<bool>, variable: &str, usual: bool) -> Result<bool> {
    if let Some(value) = value.known() {
        return Ok(*value);
    }
    match env::var(variable).as_deref() {
        None => Ok(usual),
        Some("1" | "t" | "T" | "true" | "TRUE" | "True") => Ok(true),
        Some("0" | "f" | "F" | "false" | "FALSE" | "False") => Ok(false),
        Some(other) => {
            let detail = format!("The environment variable {variable} must be true or false, and is {other:?}.");
            Err(problem(attribute, detail).into())
        }
    }
}

/// Reads a file that contains one value.
fn file(attribute: &str, path: &str) -> Result<String> {
    let content = std::fs::read_to_string(path).map_err(|e| {
        problem(
            attribute,
            format!("The file {path:?} of {attribute} cannot be read: {e}."),
        )
    })?;
    Ok(content.trim().to_owned())
}

/// Value that can be set in several ways, which must then agree.
struct Value {
    what: &'static str,
    known: Option<(String, String)>,
}

impl Value {
    fn new(what: &'static str, argument: Option<String>) -> Value {
        Value {
            what,
            known: argument.map(|value| (what.to_owned(), value)),
        }
    }

    fn also(mut self, source: &str, value: Option<String>) -> Result<Value> {
        let Some(value) = value.filter(|value| !value.is_empty()) else {
            return Ok(self);
        };
        match &self.known {
            Some((first, other)) if *other != value => {
                let detail = format!(
                    "mismatch between supplied {} and {source}: {first} and {source} say different things. Remove one of them, or \
                     make them match.",
                    self.what
                );
                Err(problem(self.what, detail).into())
            }
            _ => {
                self.known = Some((source.to_owned(), value));
                Ok(self)
            }
        }
    }

    fn get(self) -> Option<String> {
        self.known.map(|(_, value)| value)
    }
}

/// Returns true if a request with this answer is sent again.
fn again(answer: &Answer) -> bool {
    matches!(answer.status.as_u16(), 408 | 429 | 500 | 502..=504)
}

impl Settings {
    pub async fn new(config: &Config) -> Result<Settings> {
        let http = client()?;
        let cloud = cloud(config, &http).await?;
        let how = match (
            text(&config.access_key, &["ARM_ACCESS_KEY"]),
            text(&config.sas_token, &["ARM_SAS_TOKEN"]),
            flag("use_azuread_auth", &config.use_azuread_auth, "ARM_USE_AZUREAD", false)?,
        ) {
            (Some(key), ..) => {
                BASE64.decode(&key).map_err(|_| {
                    problem(
                        "access_key",
                        "The access key of a storage account is Base64, and this one is not.",
                    )
                })?;
                How::Key(key)
            }
            // The Azure portal shows signatures with a leading question mark.
            (None, Some(token), _) => How::Signature(token.trim_start_matches('?').to_owned()),
            (None, None, true) => How::Token,
            (None, None, false) => How::LookedUp,
        };
        let lookup = flag(
            "lookup_blob_endpoint",
            &config.lookup_blob_endpoint,
            "ARM_USE_DNS_ZONE_ENDPOINT",
            false,
        )?;
        let group = text(&config.resource_group_name, &[]);
        if group.is_none() {
            let missing = match how {
                How::LookedUp => Some(
                    "One of `access_key`, `sas_token`, `use_azuread_auth` and `resource_group_name` is needed. With an access \
                     key (or ARM_ACCESS_KEY) requests are signed; with use_azuread_auth (or ARM_USE_AZUREAD) they have a \
                     token of Entra ID; with the resource group the key of the account is looked up.",
                ),
                _ if lookup => Some("`resource_group_name` is required when `lookup_blob_endpoint` is set."),
                _ => None,
            };
            if let Some(detail) = missing {
                return Err(problem("resource_group_name", detail).into());
            }
        }
        Ok(Settings {
            account: config.storage_account_name.text().to_owned(),
            container: config.container_name.text().to_owned(),
            key: config.key.text().to_owned(),
            snapshot: flag("snapshot", &config.snapshot, "ARM_SNAPSHOT", false)?,
            subscription: text(&config.subscription_id, &["ARM_SUBSCRIPTION_ID"]),
            login: login(config, &cloud)?,
            how,
            lookup,
            group,
            cloud,
            http,
        })
    }
}

/// Creates the HTTP client for all services.
pub(crate) fn client() -> Result<HttpClient> {
    let agent = match env::var("AZURE_HTTP_USER_AGENT") {
        Some(more) => format!("Monoform/{} {more}", env!("CARGO_PKG_VERSION")),
        None => format!("Monoform/{}", env!("CARGO_PKG_VERSION")),
    };
    let http = HttpClient::new(HttpSettings {
        retries: Retries {
            max: 4,
            wait_min: Duration::from_secs(1),
            wait_max: Duration::from_secs(30),
            again,
        },
        user_agent: Some(agent),
        ..HttpSettings::default()
    });
    Ok(http.map_err(|e| Diagnostic::error(SUMMARY, format!("Requests cannot be made: {e}.")))?)
}

pub(crate) async fn cloud(config: &Config, http: &HttpClient) -> Result<Cloud> {
    if let Some(host) = text(&config.metadata_host, &["ARM_METADATA_HOSTNAME", "ARM_METADATA_HOST"]) {
        let described = clouds::described(http, &host).await;
        return described.map_err(|why| problem("metadata_host", format!("The cloud is not known: {why}.")).into());
    }
    let name = text(&config.environment, &["ARM_ENVIRONMENT"]).unwrap_or_else(|| "public".to_owned());
    clouds::named(&name).ok_or_else(|| {
        let detail =
            format!("no environment was found with the name {name:?}. There are: public, usgovernment, china.");
        problem("environment", detail).into()
    })
}

fn certificate(config: &Config) -> Result<Option<Certificate>> {
    let password = config.client_certificate_password.known().cloned();
    let password = password
        .or_else(|| env::var("ARM_CLIENT_CERTIFICATE_PASSWORD"))
        .unwrap_or_default();
    let (attribute, bytes) = match (
        text(&config.client_certificate, &["ARM_CLIENT_CERTIFICATE"]),
        text(&config.client_certificate_path, &["ARM_CLIENT_CERTIFICATE_PATH"]),
    ) {
        (Some(encoded), _) => {
            let attribute = "client_certificate";
            let bytes = BASE64
                .decode(encoded)
                .map_err(|e| problem(attribute, format!("The client certificate is no Base64: {e}.")))?;
            (attribute, bytes)
        }
        (None, Some(path)) => {
            let attribute = "client_certificate_path";
            let bytes = std::fs::read(&path).map_err(|e| {
                problem(
                    attribute,
                    format!("The client certificate in {path:?} cannot be read: {e}."),
                )
            })?;
            (attribute, bytes)
        }
        (None, None) => return Ok(None),
    };
    Certificate::read(&bytes, &password)
        .map(Some)
        .map_err(|why| problem(attribute, format!("The client certificate cannot be used: {why}.")).into())
}

/// Returns the token service of the CI system, if the arguments or the environment name one.
fn requested(config: &Config) -> Option<Requested> {
    match (
        text(
            &config.oidc_request_url,
            &[
                "ARM_OIDC_REQUEST_URL",
                "ACTIONS_ID_TOKEN_REQUEST_URL",
                "SYSTEM_OIDCREQUESTURI",
            ],
        ),
        text(
            &config.oidc_request_token,
            &[
                "ARM_OIDC_REQUEST_TOKEN",
                "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
                "SYSTEM_ACCESSTOKEN",
            ],
        ),
    ) {
        (Some(url), Some(token)) => Some(Requested {
            url,
            token,
            connection: text(
                &config.ado_pipeline_service_connection_id,
                &[
                    "ARM_ADO_PIPELINE_SERVICE_CONNECTION_ID",
                    "ARM_OIDC_AZURE_SERVICE_CONNECTION_ID",
                ],
            ),
        }),
        _ => None,
    }
}

pub(crate) fn login(config: &Config, cloud: &Cloud) -> Result<Login> {
    let of_workload = flag(
        "use_aks_workload_identity",
        &config.use_aks_workload_identity,
        "ARM_USE_AKS_WORKLOAD_IDENTITY",
        false,
    )?;
    let aks = |variable: &str| env::var(variable).filter(|_| of_workload);
    let read = |attribute: &'static str, value: &Attr<String>, variable: &str| -> Result<Option<String>> {
        text(value, &[variable]).map(|path| file(attribute, &path)).transpose()
    };
    let client = Value::new("client_id", text(&config.client_id, &["ARM_CLIENT_ID"]))
        .also(
            "the file of client_id_file_path",
            read(
                "client_id_file_path",
                &config.client_id_file_path,
                "ARM_CLIENT_ID_FILE_PATH",
            )?,
        )?
        .also("AZURE_CLIENT_ID of the workload identity", aks("AZURE_CLIENT_ID"))?;
    let tenant = Value::new("tenant_id", text(&config.tenant_id, &["ARM_TENANT_ID"]))
        .also("AZURE_TENANT_ID of the workload identity", aks("AZURE_TENANT_ID"))?;
    let secret = Value::new("client_secret", text(&config.client_secret, &["ARM_CLIENT_SECRET"])).also(
        "the file of client_secret_file_path",
        read(
            "client_secret_file_path",
            &config.client_secret_file_path,
            "ARM_CLIENT_SECRET_FILE_PATH",
        )?,
    )?;
    let workload_token = match aks("AZURE_FEDERATED_TOKEN_FILE") {
        Some(path) => Some(file("use_aks_workload_identity", &path)?),
        None => None,
    };
    let token = Value::new("oidc_token", text(&config.oidc_token, &["ARM_OIDC_TOKEN"]))
        .also(
            "the file of oidc_token_file_path",
            read(
                "oidc_token_file_path",
                &config.oidc_token_file_path,
                "ARM_OIDC_TOKEN_FILE_PATH",
            )?,
        )?
        .also("AZURE_FEDERATED_TOKEN_FILE of the workload identity", workload_token)?;
    // A workload identity is used through a federated token, like OIDC.
    let oidc = flag("use_oidc", &config.use_oidc, "ARM_USE_OIDC", false)? || of_workload;
    let requested = requested(config).filter(|_| oidc);
    let msi = flag("use_msi", &config.use_msi, "ARM_USE_MSI", false)?;
    // `endpoint` is the older name of `msi_endpoint`.
    let endpoint = text(&config.msi_endpoint, &["ARM_MSI_ENDPOINT"]).or_else(|| text(&config.endpoint, &[]));
    Ok(Login::new(
        cloud.login.clone(),
        tenant.get(),
        client.get(),
        certificate(config)?,
        secret.get(),
        token.get().filter(|_| oidc),
        requested,
        msi.then(|| endpoint.unwrap_or_else(|| "http://169.254.169.254/metadata/identity/oauth2/token".to_owned())),
        flag("use_cli", &config.use_cli, "ARM_USE_CLI", true)?,
    ))
}
