//! Arguments of the backend, and their validation.

use monoform_sdk::schema::{optional, required};
use monoform_sdk::{Attr, Diagnostic, Diagnostics, Model};

/// The arguments of the block.
#[derive(Clone, Default, Model)]
pub struct Config {
    /// The subscription of the storage account.
    #[member(optional())]
    pub subscription_id: Attr<String>,
    /// The resource group of the storage account.
    #[member(optional())]
    pub resource_group_name: Attr<String>,
    /// The name of the storage account.
    #[member(required())]
    pub storage_account_name: Attr<String>,
    /// The name of the container in the storage account.
    #[member(required())]
    pub container_name: Attr<String>,
    /// The name of the state's blob in the container.
    #[member(required())]
    pub key: Attr<String>,
    /// If true, Azure Resource Manager is asked for the account's blob endpoint.
    #[member(optional())]
    pub lookup_blob_endpoint: Attr<bool>,
    /// If true, a snapshot of the blob is created before each write.
    #[member(optional())]
    pub snapshot: Attr<bool>,
    /// The Azure environment: `public`, `usgovernment`, or `china`.
    #[member(optional())]
    pub environment: Attr<String>,
    /// The host of the metadata service, which lists the endpoints of the cloud.
    #[member(optional())]
    pub metadata_host: Attr<String>,
    /// The access key of the storage account.
    #[member(optional())]
    pub access_key: Attr<String>,
    /// A shared access signature for the container or the blob.
    #[member(optional())]
    pub sas_token: Attr<String>,
    /// The tenant ID in Entra ID.
    #[member(optional())]
    pub tenant_id: Attr<String>,
    /// The client ID of the application or of the managed identity.
    #[member(optional())]
    pub client_id: Attr<String>,
    /// Path of a file with the client ID.
    #[member(optional())]
    pub client_id_file_path: Attr<String>,
    /// URL of the endpoint for managed identities; now `msi_endpoint`.
    #[member(optional().deprecated("`endpoint` is deprecated in favor of `msi_endpoint`."))]
    pub endpoint: Attr<String>,
    /// The certificate and key of the application, as PKCS #12 in Base64.
    #[member(optional())]
    pub client_certificate: Attr<String>,
    /// Path of a file with the certificate and key of the application, as PKCS #12.
    #[member(optional())]
    pub client_certificate_path: Attr<String>,
    /// The password of the client certificate.
    #[member(optional())]
    pub client_certificate_password: Attr<String>,
    /// The client secret of the application.
    #[member(optional())]
    pub client_secret: Attr<String>,
    /// Path of a file with the client secret.
    #[member(optional())]
    pub client_secret_file_path: Attr<String>,
    /// If true, OpenID Connect authentication may be used, with a token of another identity provider.
    #[member(optional())]
    pub use_oidc: Attr<bool>,
    /// The service connection of a pipeline in Azure DevOps.
    #[member(optional())]
    pub ado_pipeline_service_connection_id: Attr<String>,
    /// The bearer token for the request of an ID token at `oidc_request_url`.
    #[member(optional())]
    pub oidc_request_token: Attr<String>,
    /// URL of the CI system's endpoint that issues the OIDC ID token.
    #[member(optional())]
    pub oidc_request_url: Attr<String>,
    /// The ID token of the other identity provider.
    #[member(optional())]
    pub oidc_token: Attr<String>,
    /// Path of a file with the ID token of the other identity provider.
    #[member(optional())]
    pub oidc_token_file_path: Attr<String>,
    /// If true, the managed identity of the machine may be used.
    #[member(optional())]
    pub use_msi: Attr<bool>,
    /// URL of the endpoint for managed identities, in place of the default one.
    #[member(optional())]
    pub msi_endpoint: Attr<String>,
    /// If true, the login of the Azure CLI may be used.
    #[member(optional())]
    pub use_cli: Attr<bool>,
    /// If true, the workload identity of AKS is used: the environment variables AZURE_FEDERATED_TOKEN_FILE, AZURE_CLIENT_ID and
    /// AZURE_TENANT_ID.
    #[member(optional())]
    pub use_aks_workload_identity: Attr<bool>,
    /// If true, requests to the storage account are authorized with tokens of Entra ID.
    #[member(optional())]
    pub use_azuread_auth: Attr<bool>,
}

pub(crate) const SUMMARY: &str = "Invalid azurerm backend configuration";

/// Builds the error for an invalid argument.
pub(crate) fn problem(attribute: &str, detail: impl Into<String>) -> Diagnostic {
    Diagnostic::error(SUMMARY, detail).at_attribute(attribute)
}

/// Returns true if a storage account can have this name.
fn is_account(name: &str) -> bool {
    (3..=24).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
}

/// Returns true if a container can have this name. Names that begin with `$` are reserved by Azure, but can be used.
fn is_container(name: &str) -> bool {
    let plain = name.strip_prefix('$').unwrap_or(name);
    (3..=63).contains(&name.len())
        && plain
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !plain.starts_with('-')
        && !plain.ends_with('-')
        && !plain.contains("--")
}

impl Config {
    /// Returns the errors in the arguments that can be found without a request.
    pub(crate) fn problems(&self) -> Diagnostics {
        let mut found = Diagnostics::new();
        if let Some(name) = self.storage_account_name.as_str()
            && !is_account(name)
        {
            let attribute = "storage_account_name";
            let detail = format!("{attribute} must have 3 to 24 small letters and digits, and is {name:?}.");
            found.push(problem(attribute, detail));
        }
        if let Some(name) = self.container_name.as_str()
            && !is_container(name)
        {
            let detail = format!(
                "container_name must have 3 to 63 small letters, digits, and single hyphens between them, and is {name:?}."
            );
            found.push(problem("container_name", detail));
        }
        if self.key.as_str() == Some("") {
            found.push(problem("key", "The name of the blob must not be empty."));
        }
        found
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn names_are_those_that_azure_accepts() {
        assert!(is_account("states0") && !is_account("States") && !is_account("ab") && !is_account("a-b"));
        assert!(is_container("tf-state") && is_container("$web"));
        assert!(!is_container("tf--state") && !is_container("-tf") && !is_container("TF1"));
    }
}
