//! Who we are. The sources are tried in the order that all tools for AWS have: what is configured, the environment, the shared
//! files, the container, the machine. On top of what is found a role may be taken on.

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
