//! Addresses of services.

use monoform_sdk::{Diagnostic, Result};
use store_client::Url;

/// Where services are.
#[derive(Clone, Debug)]
pub(crate) struct Services {
    pub region: String,
    pub s3: String,
    pub dynamodb: String,
    pub iam: String,
    pub sts: String,
    pub sts_region: String,
    /// Where logins are used and where they are renewed, if not where that usually is.
    pub sso: Option<String>,
    pub sso_login: Option<String>,
    pub path_style: bool,
}

/// An address that was configured or is usual.
pub(crate) fn url(service: &str, text: &str) -> Result<Url> {
    let complete = match text.contains("://") {
        true => text.to_owned(),
        false => format!("https://{text}"),
    };
    Url::parse(&complete).map_err(|e| {
        let detail = format!("The address of {service}, {text:?}, cannot be understood: {e}.");
        Diagnostic::error("Invalid S3 backend configuration", detail).into()
    })
}
