//! Arguments of the backend, and their validation.

use monoform_sdk::schema::{block, optional, required};
use monoform_sdk::{Attr, Diagnostic, Diagnostics, Model, Set};
use store_client::arguments;

/// The arguments of the block.
#[derive(Clone, Default, Model)]
pub struct Config {
    /// The ID of the access key.
    #[member(optional())]
    pub access_key: Attr<String>,
    /// The secret of the access key.
    #[member(optional())]
    pub secret_key: Attr<String>,
    /// The security token of temporary credentials.
    #[member(optional())]
    pub security_token: Attr<String>,
    /// The RAM role of the machine (ECS instance).
    #[member(optional())]
    pub ecs_role_name: Attr<String>,
    /// The region of the bucket.
    #[member(optional())]
    pub region: Attr<String>,
    /// Endpoint of the Security Token Service (STS).
    #[member(optional())]
    pub sts_endpoint: Attr<String>,
    /// Endpoint of the Tablestore instance.
    #[member(optional())]
    pub tablestore_endpoint: Attr<String>,
    /// Endpoint of the Object Storage Service, without the bucket's name.
    #[member(optional())]
    pub endpoint: Attr<String>,
    /// The name of the bucket.
    #[member(required())]
    pub bucket: Attr<String>,
    /// The folder of the bucket in which the states are; `env:` by default.
    #[member(optional())]
    pub prefix: Attr<String>,
    /// The name of the state's object; `terraform.tfstate` by default.
    #[member(optional())]
    pub key: Attr<String>,
    /// The name of the Tablestore instance; the first label of its endpoint by default.
    #[member(optional())]
    pub tablestore_instance_name: Attr<String>,
    /// The Tablestore table for locks and checksums.
    #[member(optional())]
    pub tablestore_table: Attr<String>,
    /// If true, the service encrypts the objects at rest.
    #[member(optional())]
    pub encrypt: Attr<bool>,
    /// The access control list of the objects: `private`, `public-read`, or `public-read-write`.
    #[member(optional())]
    pub acl: Attr<String>,
    /// Path of the file with the profiles of the command line `aliyun`.
    #[member(optional())]
    pub shared_credentials_file: Attr<String>,
    /// The profile in the shared credentials file.
    #[member(optional())]
    pub profile: Attr<String>,
    /// The role to assume; now in the arguments `assume_role_*`.
    #[member(block())]
    pub assume_role: Set<AssumeRole>,
    /// The ARN of the role to assume.
    #[member(optional())]
    pub assume_role_role_arn: Attr<String>,
    /// The name of the session; `terraform` by default.
    #[member(optional())]
    pub assume_role_session_name: Attr<String>,
    /// A policy that restricts the permissions of the session, as JSON.
    #[member(optional())]
    pub assume_role_policy: Attr<String>,
    /// The duration of the session in seconds: 900 to 3600, which is the default.
    #[member(optional())]
    pub assume_role_session_expiration: Attr<i64>,
}

/// The role to assume.
#[derive(Clone, Default, Model)]
pub struct AssumeRole {
    /// The ARN of the role.
    #[member(optional())]
    pub role_arn: Attr<String>,
    /// The name of the session.
    #[member(optional())]
    pub session_name: Attr<String>,
    /// A policy that restricts the permissions of the session, as JSON.
    #[member(optional())]
    pub policy: Attr<String>,
    /// The duration of the session in seconds: 900 to 3600.
    #[member(optional())]
    pub session_expiration: Attr<i64>,
}

pub(crate) const SUMMARY: &str = "Invalid oss backend configuration";

pub(crate) fn problem(attribute: &str, detail: impl Into<String>) -> Diagnostic {
    Diagnostic::error(SUMMARY, detail).at_attribute(attribute)
}

impl Config {
    /// Returns the errors in the arguments that can be found without a request.
    pub(crate) fn problems(&self) -> Diagnostics {
        let mut found = Diagnostics::new();
        let mut add = |attribute: &str, is_wrong: bool, detail: &str| {
            if is_wrong {
                found.push(problem(attribute, detail));
            }
        };
        for (attribute, detail) in arguments::layout_problems(self.prefix.text(), self.key.text()) {
            add(attribute, true, detail);
        }
        let acls = ["", "private", "public-read", "public-read-write"];
        add(
            "acl",
            self.acl.as_str().is_some_and(|acl| !acls.contains(&acl)),
            "acl must be private, public-read, or public-read-write.",
        );
        let roles = &self.assume_role.0;
        add(
            "assume_role",
            roles.len() > 1,
            "There can be only one block assume_role.",
        );
        let wrong = |seconds: &Attr<i64>| seconds.known().is_some_and(|s| !(900..=3600).contains(s));
        let range = "The session's end must be in the range (900 - 3600) of seconds.";
        add(
            "assume_role",
            roles.iter().any(|role| wrong(&role.session_expiration)),
            range,
        );
        let name = "assume_role_session_expiration";
        add(name, wrong(&self.assume_role_session_expiration), range);
        found
    }
}
