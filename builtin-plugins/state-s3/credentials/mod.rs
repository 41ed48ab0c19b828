//! Credentials for AWS. The sources are tried in the order of the AWS SDKs: arguments, environment, shared files, container, instance. A
//! role may then be assumed with the credentials that were found.

mod credential;
mod files;
mod machine;
mod profile;
mod sources;
mod sso;
mod sts;

pub(crate) use self::files::Files;
pub(crate) use self::sources::{Credentials, Sources};
pub(crate) use self::sts::account_id;
