//! URLs of AWS services.

use monoform_sdk::{Diagnostic, Result};
use store_client::Url;

/// URLs and regions of the services.
#[derive(Clone, Debug)]
pub(crate) struct Services {
    pub region: String,
    pub s3: String,
    pub dynamodb: String,
    pub kms: String,
    pub iam: String,
    pub sts: String,
    pub sts_region: String,
    /// Custom URL of the portal of IAM Identity Center; `None` for the default URL.
    pub sso: Option<String>,
    /// Custom URL of the token service of IAM Identity Center; `None` for the default URL.
    pub sso_login: Option<String>,
    pub path_style: bool,
}

/// Parses a URL. The default scheme is https.
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
