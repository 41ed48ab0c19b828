//! Arguments of the backend, and their validation.

use std::collections::BTreeMap;
use std::time::Duration;

use monoform_sdk::schema::{nested, optional, required};
use monoform_sdk::{Attr, Diagnostic, Diagnostics, Model, Set, env};

/// The arguments of the block.
#[derive(Clone, Default, Model)]
pub struct Config {
    /// The name of the bucket.
    #[member(required())]
    pub bucket: Attr<String>,
    /// The key of the state's object in the bucket.
    #[member(required())]
    pub key: Attr<String>,
    /// The region of the bucket, and of the DynamoDB table if there is one.
    #[member(optional())]
    pub region: Attr<String>,
    /// IDs of the accounts that the credentials may belong to.
    #[member(optional())]
    pub allowed_account_ids: Attr<Set<String>>,
    /// IDs of accounts that the credentials must not belong to.
    #[member(optional())]
    pub forbidden_account_ids: Attr<Set<String>>,
    /// Custom endpoints of services.
    #[member(nested(optional()))]
    pub endpoints: Attr<Endpoints>,
    /// URL of a custom endpoint of DynamoDB; now in `endpoints`.
    #[member(optional())]
    pub dynamodb_endpoint: Attr<String>,
    /// URL of a custom endpoint of S3; now in `endpoints`.
    #[member(optional())]
    pub endpoint: Attr<String>,
    /// URL of a custom endpoint of IAM; now in `endpoints`.
    #[member(optional())]
    pub iam_endpoint: Attr<String>,
    /// URL of a custom endpoint of STS; now in `endpoints`.
    #[member(optional())]
    pub sts_endpoint: Attr<String>,
    /// The region of the STS endpoint; that of the bucket by default.
    #[member(optional())]
    pub sts_region: Attr<String>,
    /// URL of the EC2 instance metadata service.
    #[member(optional())]
    pub ec2_metadata_service_endpoint: Attr<String>,
    /// The protocol of the EC2 instance metadata service: `IPv4` or `IPv6`.
    #[member(optional())]
    pub ec2_metadata_service_endpoint_mode: Attr<String>,
    /// If true, S3 encrypts the objects at rest.
    #[member(optional())]
    pub encrypt: Attr<bool>,
    /// The canned ACL of the objects.
    #[member(optional())]
    pub acl: Attr<String>,
    /// The access key ID.
    #[member(optional())]
    pub access_key: Attr<String>,
    /// The secret access key.
    #[member(optional())]
    pub secret_key: Attr<String>,
    /// The session token.
    #[member(optional())]
    pub token: Attr<String>,
    /// The ID or ARN of the KMS key that encrypts the objects.
    #[member(optional())]
    pub kms_key_id: Attr<String>,
    /// The customer-provided key of server-side encryption (SSE-C), in Base64.
    #[member(optional().sensitive())]
    pub sse_customer_key: Attr<String>,
    /// The DynamoDB table for locks and checksums.
    #[member(optional())]
    pub dynamodb_table: Attr<String>,
    /// If true, a lock is an object beside the state (its key ends in `.tflock`).
    #[member(optional())]
    pub use_lockfile: Attr<bool>,
    /// The profile in the shared configuration and credentials files.
    #[member(optional())]
    pub profile: Attr<String>,
    /// The retry mode: `standard` or `adaptive`.
    #[member(optional())]
    pub retry_mode: Attr<String>,
    /// Paths of shared configuration files.
    #[member(optional())]
    pub shared_config_files: Attr<Set<String>>,
    /// Path of a shared credentials file; now in `shared_credentials_files`.
    #[member(optional())]
    pub shared_credentials_file: Attr<String>,
    /// Paths of shared credentials files.
    #[member(optional())]
    pub shared_credentials_files: Attr<Set<String>>,
    /// If true, credentials are not validated with STS.
    #[member(optional())]
    pub skip_credentials_validation: Attr<bool>,
    /// If true, the account ID of the credentials is not requested.
    #[member(optional())]
    pub skip_requesting_account_id: Attr<bool>,
    /// If true, the EC2 instance metadata service is not used for credentials.
    #[member(optional())]
    pub skip_metadata_api_check: Attr<bool>,
    /// If true, the name of the region is not validated.
    #[member(optional())]
    pub skip_region_validation: Attr<bool>,
    /// If true, objects are uploaded without a checksum.
    #[member(optional())]
    pub skip_s3_checksum: Attr<bool>,
    /// The prefix of the keys of all workspaces but the default one; `env:` by default.
    #[member(optional())]
    pub workspace_key_prefix: Attr<String>,
    /// If true, URLs are path-style; now `use_path_style`.
    #[member(optional())]
    pub force_path_style: Attr<bool>,
    /// If true, URLs are path-style: the bucket is part of the path, and not of the host name.
    #[member(optional())]
    pub use_path_style: Attr<bool>,
    /// The maximum number of attempts of a request; 5 by default.
    #[member(optional())]
    pub max_retries: Attr<i64>,
    /// The role to assume.
    #[member(nested(optional()))]
    pub assume_role: Attr<AssumeRole>,
    /// The role to assume with a web identity token (OpenID Connect).
    #[member(nested(optional()))]
    pub assume_role_with_web_identity: Attr<WebIdentity>,
    /// Path of a PEM file with the trusted CA certificates.
    #[member(optional())]
    pub custom_ca_bundle: Attr<String>,
    /// URL of the proxy for HTTP requests.
    #[member(optional())]
    pub http_proxy: Attr<String>,
    /// URL of the proxy for HTTPS requests.
    #[member(optional())]
    pub https_proxy: Attr<String>,
    /// Hosts that are reached without a proxy, separated by commas.
    #[member(optional())]
    pub no_proxy: Attr<String>,
    /// If true, TLS certificates are not verified.
    #[member(optional())]
    pub insecure: Attr<bool>,
    /// If true, FIPS endpoints are used.
    #[member(optional())]
    pub use_fips_endpoint: Attr<bool>,
    /// If true, dual-stack endpoints (IPv4 and IPv6) are used.
    #[member(optional())]
    pub use_dualstack_endpoint: Attr<bool>,
}

/// Custom endpoints of services.
#[derive(Clone, Default, Model)]
pub struct Endpoints {
    /// URL of the endpoint of DynamoDB.
    #[member(optional())]
    pub dynamodb: Attr<String>,
    /// URL of the endpoint of IAM.
    #[member(optional())]
    pub iam: Attr<String>,
    /// URL of the endpoint of S3.
    #[member(optional())]
    pub s3: Attr<String>,
    /// URL of the endpoint of IAM Identity Center (formerly SSO).
    #[member(optional())]
    pub sso: Attr<String>,
    /// URL of the endpoint of STS.
    #[member(optional())]
    pub sts: Attr<String>,
}

/// The role to assume.
#[derive(Clone, Default, Model)]
pub struct AssumeRole {
    /// The ARN of the role.
    #[member(required())]
    pub role_arn: Attr<String>,
    /// The duration of the session, from 15 minutes to 12 hours, such as `1h30m`.
    #[member(optional())]
    pub duration: Attr<String>,
    /// The external ID that the trust policy of the role requires.
    #[member(optional())]
    pub external_id: Attr<String>,
    /// An IAM policy that restricts the permissions of the session, as JSON.
    #[member(optional())]
    pub policy: Attr<String>,
    /// ARNs of IAM policies that restrict the permissions of the session.
    #[member(optional())]
    pub policy_arns: Attr<Set<String>>,
    /// The name of the session.
    #[member(optional())]
    pub session_name: Attr<String>,
    /// The source identity of the session: the person or program that assumes the role.
    #[member(optional())]
    pub source_identity: Attr<String>,
    /// Tags of the session.
    #[member(optional())]
    pub tags: Attr<BTreeMap<String, String>>,
    /// Keys of session tags that are passed on when roles are chained.
    #[member(optional())]
    pub transitive_tag_keys: Attr<Set<String>>,
}

/// A role to assume with a web identity token.
#[derive(Clone, Default, Model)]
pub struct WebIdentity {
    /// The ARN of the role.
    #[member(required())]
    pub role_arn: Attr<String>,
    /// The duration of the session, from 15 minutes to 12 hours, such as `1h30m`.
    #[member(optional())]
    pub duration: Attr<String>,
    /// An IAM policy that restricts the permissions of the session, as JSON.
    #[member(optional())]
    pub policy: Attr<String>,
    /// ARNs of IAM policies that restrict the permissions of the session.
    #[member(optional())]
    pub policy_arns: Attr<Set<String>>,
    /// The name of the session.
    #[member(optional())]
    pub session_name: Attr<String>,
    /// The web identity token.
    #[member(optional())]
    pub web_identity_token: Attr<String>,
    /// Path of a file with the web identity token.
    #[member(optional())]
    pub web_identity_token_file: Attr<String>,
}

/// Builds the error for an invalid argument.
pub(crate) fn invalid(attribute: &str, detail: impl Into<String>) -> Diagnostic {
    Diagnostic::error(format!("Invalid {attribute} value"), detail).at_attribute(attribute)
}

struct Found(Diagnostics);

impl Found {
    fn add(&mut self, attribute: &str, wrong: Option<String>) {
        if let Some(detail) = wrong {
            self.0.push(invalid(attribute, detail));
        }
    }

    fn conflict(&mut self, one: &str, other: &str, both: bool) {
        if both {
            let detail = format!("Only one of {one} and {other} can be set.");
            self.0
                .push(Diagnostic::error("Invalid Attribute Combination", detail).at_attribute(one));
        }
    }

    fn deprecated(&mut self, attribute: &str, instead: &str, set: bool) {
        if set {
            let detail = format!("The parameter \"{attribute}\" is deprecated. Use parameter \"{instead}\" instead.");
            self.0
                .push(Diagnostic::warning("Deprecated Parameter", detail).at_attribute(attribute));
        }
    }

    /// Checks the rules that apply to both kinds of roles.
    fn role(
        &mut self,
        attribute: &str,
        role: &str,
        duration: Option<&String>,
        policy: Option<&String>,
        arns: &[String],
    ) {
        self.add(
            attribute,
            (!is_arn(role, "role/")).then(|| format!("role_arn must be the ARN of an IAM role, and not {role:?}.")),
        );
        let wrong = duration.and_then(|text| match gotext::duration::parse(text) {
            Some(time) if (Duration::from_secs(900)..=Duration::from_secs(43_200)).contains(&time) => None,
            Some(_) => Some("duration must be from 15 minutes to 12 hours.".to_owned()),
            None => Some(format!("duration must be a time like \"1h30m\", and not {text:?}.")),
        });
        self.add(attribute, wrong);
        let is_object = |text: &str| serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text).is_ok();
        let wrong = policy.filter(|text| !is_object(text.trim()));
        self.add(attribute, wrong.map(|_| "policy must be a JSON object.".to_owned()));
        for arn in arns.iter().filter(|arn| !is_arn(arn, "policy/")) {
            self.add(
                attribute,
                Some(format!("policy_arns must be ARNs of IAM policies, and not {arn:?}.")),
            );
        }
    }

    fn session(&mut self, attribute: &str, name: &str, value: Option<&String>) {
        let fits = |text: &str| {
            (2..=64).contains(&text.chars().count()) && text.chars().all(|c| is_word(c) || "+=,.@-".contains(c))
        };
        let wrong = value.filter(|text| !fits(text));
        self.add(
            attribute,
            wrong.map(|_| format!("{name} must have 2 to 64 characters: letters, digits, and _ + = , . @ -")),
        );
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Returns true if the text is the ARN of an IAM resource whose name begins with `resource`.
fn is_arn(text: &str, resource: &str) -> bool {
    let parts: Vec<&str> = text.splitn(6, ':').collect();
    matches!(parts.as_slice(), ["arn", partition, "iam", "", _, name] if !partition.is_empty() && name.starts_with(resource) && name.len() > resource.len())
}

fn is_kms_key(text: &str) -> bool {
    let is_id = |text: &str| {
        let hex = |text: &str, length| text.len() == length && text.chars().all(|c| c.is_ascii_hexdigit());
        let groups: Vec<&str> = text.split('-').collect();
        text.strip_prefix("mrk-").is_some_and(|rest| hex(rest, 32))
            || groups.len() == 5
                && groups
                    .iter()
                    .zip([8, 4, 4, 4, 12])
                    .all(|(group, length)| hex(group, length))
    };
    let is_alias = |text: &str| {
        let name = text.strip_prefix("alias/");
        name.is_some_and(|name| !name.is_empty() && name.chars().all(|c| is_word(c) || "/-".contains(c)))
    };
    let parts: Vec<&str> = text.splitn(6, ':').collect();
    match parts.as_slice() {
        ["arn", _, "kms", region, account, name] => {
            !region.is_empty()
                && !account.is_empty()
                && (name.strip_prefix("key/").is_some_and(is_id) || is_alias(name))
        }
        _ => is_id(text) || is_alias(text),
    }
}

fn set(value: &Attr<Set<String>>) -> Vec<String> {
    value.known().map(|set| set.0.to_vec()).unwrap_or_default()
}

impl Config {
    /// Returns the errors and warnings about the arguments that can be found without a request.
    pub(crate) fn problems(&self) -> Diagnostics {
        let mut found = Found(Diagnostics::new());
        found.add(
            "bucket",
            (self.bucket.as_str() == Some("")).then(|| "The name of the bucket must not be empty.".to_owned()),
        );
        let wrong_path = |text: &str| {
            (text.starts_with('/') || text.ends_with('/'))
                .then(|| "It must not begin or end with a slash (/).".to_owned())
        };
        if let Some(key) = self.key.as_str() {
            found.add(
                "key",
                key.is_empty()
                    .then(|| "The key of the object must not be empty.".to_owned()),
            );
            found.add("key", wrong_path(key));
            found.add(
                "key",
                key.contains("//")
                    .then(|| "It must not contain two slashes in a row (//).".to_owned()),
            );
        }
        found.add(
            "workspace_key_prefix",
            self.workspace_key_prefix.as_str().and_then(wrong_path),
        );
        if self.region.text().is_empty() && env::first(&["AWS_REGION", "AWS_DEFAULT_REGION"]).is_none() {
            let detail = "No region is configured: set the argument \"region\", or one of the environment variables AWS_REGION and \
                          AWS_DEFAULT_REGION.";
            found
                .0
                .push(Diagnostic::error("Missing region value", detail).at_attribute("region"));
        }
        let is_set = |value: &Attr<String>| value.known().is_some();
        found.conflict(
            "kms_key_id",
            "sse_customer_key",
            is_set(&self.kms_key_id) && is_set(&self.sse_customer_key),
        );
        let wrong = self.kms_key_id.as_str().filter(|text| !is_kms_key(text));
        found.add(
            "kms_key_id",
            wrong.map(|_| {
                "It must be the id or the ARN of a key, or the name (alias/…) or the ARN of an alias.".to_owned()
            }),
        );
        found.conflict(
            "allowed_account_ids",
            "forbidden_account_ids",
            self.allowed_account_ids.known().is_some() && self.forbidden_account_ids.known().is_some(),
        );
        self.files_and_style(&mut found);
        self.roles(&mut found);
        self.addresses(&mut found);
        found.0
    }

    fn files_and_style(&self, found: &mut Found) {
        let old_file = self.shared_credentials_file.known().is_some();
        found.conflict(
            "shared_credentials_file",
            "shared_credentials_files",
            old_file && self.shared_credentials_files.known().is_some(),
        );
        found.deprecated("shared_credentials_file", "shared_credentials_files", old_file);
        found.deprecated("dynamodb_table", "use_lockfile", self.dynamodb_table.known().is_some());
        let old_style = self.force_path_style.known().is_some();
        found.conflict(
            "force_path_style",
            "use_path_style",
            old_style && self.use_path_style.known().is_some(),
        );
        found.deprecated("force_path_style", "use_path_style", old_style);
        let modes = ["standard", "adaptive"];
        let wrong = self.retry_mode.as_str().filter(|mode| !modes.contains(mode));
        found.add(
            "retry_mode",
            wrong.map(|mode| format!("It must be \"standard\" or \"adaptive\", and not {mode:?}.")),
        );
        let wrong = self
            .ec2_metadata_service_endpoint_mode
            .as_str()
            .filter(|mode| !["IPv4", "IPv6"].contains(mode));
        found.add(
            "ec2_metadata_service_endpoint_mode",
            wrong.map(|mode| format!("It must be \"IPv4\" or \"IPv6\", and not {mode:?}.")),
        );
        let wrong = self.max_retries.known().filter(|n| **n < 0);
        found.add("max_retries", wrong.map(|_| "It must not be negative.".to_owned()));
    }

    fn roles(&self, found: &mut Found) {
        if let Some(role) = self.assume_role.known() {
            let name = "assume_role";
            found.role(
                name,
                role.role_arn.text(),
                role.duration.known(),
                role.policy.known(),
                &set(&role.policy_arns),
            );
            found.session(name, "session_name", role.session_name.known());
            found.session(name, "source_identity", role.source_identity.known());
            let fits = |text: &String| {
                (2..=1224).contains(&text.chars().count()) && text.chars().all(|c| is_word(c) || "+=,.@:/-".contains(c))
            };
            let wrong = role.external_id.known().filter(|text| !fits(text));
            found.add(
                name,
                wrong.map(|_| {
                    "external_id must have 2 to 1224 characters: letters, digits, and _ + = , . @ : / -".to_owned()
                }),
            );
        }
        if let Some(role) = self.assume_role_with_web_identity.known() {
            let name = "assume_role_with_web_identity";
            found.role(
                name,
                role.role_arn.text(),
                role.duration.known(),
                role.policy.known(),
                &set(&role.policy_arns),
            );
            found.session(name, "session_name", role.session_name.known());
            let given = [&role.web_identity_token, &role.web_identity_token_file];
            let wrong = given.iter().filter(|value| value.known().is_some()).count() != 1;
            found.add(
                name,
                wrong.then(|| "Exactly one of web_identity_token and web_identity_token_file must be set.".to_owned()),
            );
        }
    }

    fn addresses(&self, found: &mut Found) {
        let none = Endpoints::default();
        let endpoints = self.endpoints.known().unwrap_or(&none);
        for (old, value, new, nested) in [
            (
                "dynamodb_endpoint",
                &self.dynamodb_endpoint,
                "dynamodb",
                &endpoints.dynamodb,
            ),
            ("iam_endpoint", &self.iam_endpoint, "iam", &endpoints.iam),
            ("endpoint", &self.endpoint, "s3", &endpoints.s3),
            ("sts_endpoint", &self.sts_endpoint, "sts", &endpoints.sts),
        ] {
            let new = format!("endpoints.{new}");
            found.deprecated(old, &new, value.known().is_some());
            if value.known().is_some() && nested.known().is_some() {
                let detail = format!("The parameters \"{old}\" and \"{new}\" cannot be configured together.");
                found.0.push(Diagnostic::error("Conflicting Parameters", detail));
            }
            for text in [value.as_str(), nested.as_str()].into_iter().flatten() {
                if url::Url::parse(text).is_ok_and(|url| url.has_host()) {
                    continue;
                }
                let detail =
                    format!("{old} (or {new}) should be a complete address with scheme and server, and not {text:?}.");
                found.0.push(Diagnostic::warning("Legacy Parameter Value", detail));
            }
        }
        for (attribute, value) in [
            ("endpoints", &endpoints.sso),
            ("ec2_metadata_service_endpoint", &self.ec2_metadata_service_endpoint),
        ] {
            let wrong = value
                .as_str()
                .filter(|text| !url::Url::parse(text).is_ok_and(|url| url.has_host()));
            found.add(
                attribute,
                wrong.map(|text| format!("It must be a complete address, and not {text:?}.")),
            );
        }
    }
}

pub(crate) fn text(value: &Attr<String>) -> Option<String> {
    value.known().filter(|text| !text.is_empty()).cloned()
}

pub(crate) fn list(value: &Attr<Set<String>>) -> Option<Vec<String>> {
    value.known().map(|set| set.0.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_kms_are_ids_aliases_and_arns() {
        let id = "57ff7a43-341d-46b6-aee3-a450c9de6dc8";
        for good in [
            id.to_owned(),
            format!("arn:aws:kms:us-west-2:111122223333:key/{id}"),
            "alias/arbitrary-key".to_owned(),
            "arn:aws:kms:us-west-2:111122223333:alias/arbitrary-key".to_owned(),
            "mrk-f827515944fb43f9b902a09d2c8b554f".to_owned(),
        ] {
            assert!(is_kms_key(&good), "{good}");
        }
        for wrong in [
            "",
            "not",
            "$%wrongkey",
            "arn:aws:lamda:foo:bar:key/xyz",
            "arbitrary-key",
        ] {
            assert!(!is_kms_key(wrong), "{wrong}");
        }
    }

    #[test]
    fn roles_are_arns() {
        assert!(is_arn("arn:aws:iam::123456789012:role/x", "role/"));
        assert!(!is_arn("arn:aws:iam::123456789012:user/x", "role/"));
        assert!(!is_arn("role/x", "role/"));
    }
}
