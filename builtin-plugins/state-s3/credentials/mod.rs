//! Credentials for AWS. The sources are tried in the order of all tools for AWS: arguments, environment, shared files,
//! container, instance. A role is then assumed with these credentials.

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
