//! Arguments of the backend, and defaults from the environment.

use std::time::Duration;

use monoform_sdk::schema::optional;
use monoform_sdk::{Attr, Diagnostic, Model, Result, env};
use store_client::{HttpClient, Method, Retries, Settings as HttpSettings, Tls, Url};

/// The arguments of the block.
#[derive(Clone, Default, Model)]
pub struct Config {
    /// URL of the state.
    #[member(optional())]
    pub address: Attr<String>,
    /// The HTTP method that updates the state.
    #[member(optional())]
    pub update_method: Attr<String>,
    /// URL of requests that take the lock.
    #[member(optional())]
    pub lock_address: Attr<String>,
    /// URL of requests that release the lock.
    #[member(optional())]
    pub unlock_address: Attr<String>,
    /// The HTTP method that takes the lock.
    #[member(optional())]
    pub lock_method: Attr<String>,
    /// The HTTP method that releases the lock.
    #[member(optional())]
    pub unlock_method: Attr<String>,
    /// The user name for basic authentication.
    #[member(optional())]
    pub username: Attr<String>,
    /// The password for basic authentication.
    #[member(optional())]
    pub password: Attr<String>,
    /// If true, the server's certificate is not verified.
    #[member(optional())]
    pub skip_cert_verification: Attr<bool>,
    /// The maximum number of retries of a request.
    #[member(optional())]
    pub retry_max: Attr<i64>,
    /// The minimum delay before a retry, in seconds.
    #[member(optional())]
    pub retry_wait_min: Attr<i64>,
    /// The maximum delay before a retry, in seconds.
    #[member(optional())]
    pub retry_wait_max: Attr<i64>,
    /// CA certificates, as PEM text, that verify the server in place of those of the machine.
    #[member(optional())]
    pub client_ca_certificate_pem: Attr<String>,
    /// The client certificate, as PEM text.
    #[member(optional())]
    pub client_certificate_pem: Attr<String>,
    /// The private key of the client certificate, as PEM text.
    #[member(optional())]
    pub client_private_key_pem: Attr<String>,
}

/// Effective settings of the client.
pub(crate) struct Settings {
    pub address: Url,
    pub update_method: Method,
    pub lock: Option<(Method, Url)>,
    pub unlock: Option<(Method, Url)>,
    /// User name and password for basic authentication.
    pub login: Option<(String, String)>,
    pub http: HttpClient,
}

fn problem(attribute: &str, detail: String) -> Diagnostic {
    Diagnostic::error("Invalid HTTP backend configuration", detail).at_attribute(attribute)
}

/// Returns the text of an argument, or else of a variable.
fn text(value: &Attr<String>, variable: &str) -> Option<String> {
    // As in Terraform, an empty argument counts as set.
    value.known().cloned().or_else(|| env::var(variable))
}

fn url(attribute: &str, text: &str) -> Result<Url> {
    let url = Url::parse(text).map_err(|e| {
        problem(
            attribute,
            format!("{attribute} is not an address that can be understood: {e}."),
        )
    })?;
    if !matches!(url.scheme(), "http" | "https") {
        let detail = format!(
            "{attribute} must begin with http:// or https://, and not with {}://.",
            url.scheme()
        );
        return Err(problem(attribute, detail).into());
    }
    Ok(url)
}

fn method(attribute: &str, value: &Attr<String>, usual: &str) -> Result<Method> {
    let variable = format!("TF_HTTP_{}", attribute.to_uppercase());
    let name = text(value, &variable).unwrap_or_else(|| usual.to_owned());
    Method::from_bytes(name.as_bytes())
        .map_err(|_| problem(attribute, format!("{attribute} is not an HTTP method: {name:?}.")).into())
}

fn count(attribute: &str, value: &Attr<i64>, usual: u32) -> Result<u32> {
    let variable = format!("TF_HTTP_{}", attribute.to_uppercase());
    let given = match value.known() {
        Some(number) => number.to_string(),
        None => match env::var(&variable) {
            Some(text) => text,
            None => return Ok(usual),
        },
    };
    given.trim().parse().map_err(|_| {
        let detail = format!("{attribute} (or {variable}) must be a whole number from 0 on, and not {given:?}.");
        problem(attribute, detail).into()
    })
}

impl Config {
    /// Returns the effective settings from the arguments and the environment.
    pub(crate) fn settings(&self) -> Result<Settings> {
        let Some(address) = text(&self.address, "TF_HTTP_ADDRESS").filter(|text| !text.is_empty()) else {
            let detail = "The address of the state is missing: set the argument \"address\" of the backend, or the environment \
                          variable TF_HTTP_ADDRESS.";
            return Err(problem("address", detail.to_owned()).into());
        };
        let optional = |attribute: &'static str, value: &Attr<String>| {
            let given = text(value, &format!("TF_HTTP_{}", attribute.to_uppercase()));
            given.map(|text| url(attribute, &text)).transpose()
        };
        let lock_method = method("lock_method", &self.lock_method, "LOCK")?;
        let unlock_method = method("unlock_method", &self.unlock_method, "UNLOCK")?;
        let name = text(&self.username, "TF_HTTP_USERNAME").filter(|name| !name.is_empty());
        let password = text(&self.password, "TF_HTTP_PASSWORD").unwrap_or_default();
        let retries = Retries {
            max: count("retry_max", &self.retry_max, 2)?,
            wait_min: Duration::from_secs(count("retry_wait_min", &self.retry_wait_min, 1)?.into()),
            wait_max: Duration::from_secs(count("retry_wait_max", &self.retry_wait_max, 30)?.into()),
            ..Retries::default()
        };
        let http = HttpClient::new(HttpSettings {
            tls: self.tls()?,
            retries,
            ..HttpSettings::default()
        });
        Ok(Settings {
            address: url("address", &address)?,
            update_method: method("update_method", &self.update_method, "POST")?,
            lock: optional("lock_address", &self.lock_address)?.map(|url| (lock_method, url)),
            unlock: optional("unlock_address", &self.unlock_address)?.map(|url| (unlock_method, url)),
            login: name.map(|name| (name, password)),
            http: http.map_err(|e| {
                problem(
                    "client_certificate_pem",
                    format!("The certificates of the backend cannot be used: {e}."),
                )
            })?,
        })
    }

    fn tls(&self) -> Result<Tls> {
        let pem = |value: &Attr<String>, variable: &str| text(value, variable).filter(|text| !text.is_empty());
        let certificate = pem(&self.client_certificate_pem, "TF_HTTP_CLIENT_CERTIFICATE_PEM");
        let key = pem(&self.client_private_key_pem, "TF_HTTP_CLIENT_PRIVATE_KEY_PEM");
        let alone = |given: &str, missing: &str| {
            problem(
                missing,
                format!("{given} is set, and {missing} is not. A certificate and its key go together."),
            )
        };
        let client = match (certificate, key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (Some(_), None) => return Err(alone("client_certificate_pem", "client_private_key_pem").into()),
            (None, Some(_)) => return Err(alone("client_private_key_pem", "client_certificate_pem").into()),
            (None, None) => None,
        };
        Ok(Tls {
            authorities: pem(&self.client_ca_certificate_pem, "TF_HTTP_CLIENT_CA_CERTIFICATE_PEM"),
            insecure: self.skip_cert_verification.known() == Some(&true),
            client,
            ..Tls::default()
        })
    }
}
