//! Arguments of the backend, and their validation.

use monoform_sdk::schema::{optional, required};
use monoform_sdk::{Attr, Diagnostic, Diagnostics, Model, env};
use store_client::arguments;

use crate::kind::Kind;

/// The arguments of the block.
#[derive(Clone, Default, Model)]
pub struct Config {
    /// The authentication method; `ApiKey` by default.
    #[member(optional())]
    pub auth: Attr<String>,
    /// The name of the bucket.
    #[member(required())]
    pub bucket: Attr<String>,
    /// The profile in the OCI configuration file.
    #[member(optional())]
    pub config_file_profile: Attr<String>,
    /// The fingerprint of the user's API key.
    #[member(optional())]
    pub fingerprint: Attr<String>,
    /// The name of the state's object; `terraform.tfstate` by default.
    #[member(optional())]
    pub key: Attr<String>,
    /// The OCID of the key of the Vault service that encrypts the objects.
    #[member(optional())]
    pub kms_key_id: Attr<String>,
    /// The namespace of the bucket.
    #[member(required())]
    pub namespace: Attr<String>,
    /// The private key of the API key, as PEM text.
    #[member(optional().sensitive())]
    pub private_key: Attr<String>,
    /// The passphrase of the private key.
    #[member(optional().sensitive())]
    pub private_key_password: Attr<String>,
    /// Path of the private key file.
    #[member(optional())]
    pub private_key_path: Attr<String>,
    /// The region of the bucket.
    #[member(optional())]
    pub region: Attr<String>,
    /// The algorithm of the customer-supplied encryption key: `AES256`.
    #[member(optional())]
    pub sse_customer_algorithm: Attr<String>,
    /// The customer-supplied encryption key of the objects, in Base64.
    #[member(optional().sensitive())]
    pub sse_customer_key: Attr<String>,
    /// The SHA-256 hash of the customer-supplied encryption key, in Base64.
    #[member(optional())]
    pub sse_customer_key_sha256: Attr<String>,
    /// The OCID of the tenancy.
    #[member(optional())]
    pub tenancy_ocid: Attr<String>,
    /// The OCID of the user.
    #[member(optional())]
    pub user_ocid: Attr<String>,
    /// The folder of the states of all workspaces but the default one; `tf-state-env` by default.
    #[member(optional())]
    pub workspace_key_prefix: Attr<String>,
}

pub(crate) const SUMMARY: &str = "Invalid oci backend configuration";

/// Returns the value of a variable, whose name has the prefix `OCI_` or not.
pub(crate) fn variable(name: &str) -> Option<String> {
    env::first(&[&format!("OCI_{name}"), name])
}

/// Returns the text of an argument, or else of the variable with the name of the argument.
pub(crate) fn text(value: &Attr<String>, name: &str) -> Option<String> {
    arguments::text(value, &[&format!("OCI_{name}"), name])
}

impl Config {
    /// Returns the errors in the arguments that can be found without a request.
    pub(crate) fn problems(&self) -> Diagnostics {
        let mut found = Diagnostics::new();
        let mut add = |summary: &str, attribute: &str, is_wrong: bool, detail: &str| {
            if is_wrong {
                found.push(Diagnostic::error(summary, detail).at_attribute(attribute));
            }
        };
        let missing = "Missing Required Value";
        let detail = |name: &str| format!("The attribute {name:?} is required by the backend.");
        let is_empty = |value: &Attr<String>| value.as_str() == Some("");
        add(missing, "bucket", is_empty(&self.bucket), &detail("bucket"));
        add(missing, "namespace", is_empty(&self.namespace), &detail("namespace"));
        let named = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        add(
            "Invalid Value",
            "bucket",
            !self.bucket.text().chars().all(named),
            "The name of a bucket can have letters, digits, underscores (_) and hyphens (-).",
        );
        let key = text(&self.key, "key").unwrap_or_default();
        add(
            "Invalid Value",
            "key",
            key.starts_with('/') || key.ends_with('/') || key.contains("//"),
            "It must not begin or end with a slash (/), and not have two in a row.",
        );
        let prefix = text(&self.workspace_key_prefix, "workspace_key_prefix").unwrap_or_default();
        add(
            "Invalid Value",
            "workspace_key_prefix",
            prefix.starts_with('/') || prefix.contains("//"),
            "It must not begin with a slash (/), and not have two in a row.",
        );
        let combination = "Invalid Attribute Combination";
        let both = |one: (&Attr<String>, &str), other: (&Attr<String>, &str)| {
            text(one.0, one.1).is_some() && text(other.0, other.1).is_some()
        };
        let customer = (&self.sse_customer_key, "sse_customer_key");
        add(
            combination,
            "sse_customer_key_sha256",
            text(customer.0, customer.1).is_some()
                && text(&self.sse_customer_key_sha256, "sse_customer_key_sha256").is_none(),
            "sse_customer_key needs sse_customer_key_sha256.",
        );
        add(
            combination,
            "kms_key_id",
            both((&self.kms_key_id, "kms_key_id"), customer),
            "Only one of kms_key_id, sse_customer_key can be set.",
        );
        let path = (&self.private_key_path, "private_key_path");
        add(
            combination,
            "private_key_path",
            both((&self.private_key, "private_key"), path),
            "Only one of private_key, private_key_path can be set.",
        );
        self.identity(&mut add);
        found
    }

    /// Checks the arguments of the authentication method.
    fn identity(&self, add: &mut impl FnMut(&str, &str, bool, &str)) {
        let name = text(&self.auth, "auth").unwrap_or_default();
        let Some(kind) = Kind::named(&name) else {
            let detail = format!("auth must be one of {}, and not {name:?}.", Kind::names());
            add("Invalid authentication method", "auth", true, &detail);
            return;
        };
        let needs_region = !matches!(kind, Kind::ApiKey | Kind::WorkloadIdentity);
        add(
            "Missing region attribute required",
            "region",
            needs_region && text(&self.region, "region").is_none(),
            &format!("The attribute \"region\" is required by the backend for {name} authentication."),
        );
        add(
            "Missing config_file_profile attribute required",
            "config_file_profile",
            kind == Kind::SecurityToken && text(&self.config_file_profile, "config_file_profile").is_none(),
            &format!("The attribute \"config_file_profile\" is required by the backend for {name} authentication."),
        );
    }
}
