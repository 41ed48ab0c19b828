//! Where the token of a host is stored, for `login` and `logout`.

use std::path::PathBuf;

use net::hosts::CredentialsHelper;
use net::{Client, Host, Token, credentials_file};
use syntax::Diagnostic;

use crate::args::UsageError;
use crate::session::Session;

/// The host where none is named.
pub const DEFAULT_HOST: &str = "app.terraform.io";

/// Where it is.
pub enum Location<'s> {
    /// In a file that a person writes.
    OtherFile,
    /// In the file that is changed by commands.
    File,
    /// Where a credentials helper keeps it.
    Helper(&'s CredentialsHelper),
    /// Nowhere yet: it would be in the file.
    Nowhere,
}

/// The reason why a token cannot be stored or removed: a clause without its full stop.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error(transparent)]
    Helper(#[from] net::Error),
    #[error(transparent)]
    File(#[from] credentials_file::CredentialsFileError),
    #[error("there is no home directory for the file credentials.tfrc.json: HOME is not set")]
    NoHome,
}

/// The stored token of a host.
pub struct Stored<'s> {
    host: Host,
    file: Option<PathBuf>,
    configured: bool,
    in_file: bool,
    helper: Option<&'s CredentialsHelper>,
}

/// The host that the only argument names, `None` if it is no host; and the argument.
///
/// # Errors
/// There are more arguments.
pub fn host_argument(positional: &[String], what: &str) -> Result<(Option<Host>, String), UsageError> {
    let given = match positional {
        [] => DEFAULT_HOST,
        [host] => host,
        _ => {
            return Err(UsageError::new(
                "Too many command line arguments",
                format!("At most one argument is expected: the host to {what}."),
            ));
        }
    };
    Ok((Host::parse(given), given.to_owned()))
}

impl<'s> Stored<'s> {
    /// Looks where the token of a host is.
    #[must_use]
    pub fn find(session: &'s Session, host: Host) -> Stored<'s> {
        let file = credentials_file::path(&session.env);
        let hosts = &session.cli_config.hosts;
        Stored {
            configured: hosts.tokens.contains_key(&host),
            in_file: file.as_ref().is_some_and(|path| credentials_file::has(path, &host)),
            helper: hosts.helper.as_ref(),
            host,
            file,
        }
    }

    /// Where it is.
    #[must_use]
    pub fn location(&self) -> Location<'s> {
        match (self.configured, self.in_file, self.helper) {
            (true, false, _) => Location::OtherFile,
            // What is in the file stays there, whatever helper there is.
            (true, true, _) => Location::File,
            (false, _, Some(helper)) => Location::Helper(helper),
            (false, _, None) => Location::Nowhere,
        }
    }

    /// The file that is changed by commands.
    #[must_use]
    pub fn file(&self) -> String {
        self.file
            .as_ref()
            .map_or_else(String::new, |path| path.display().to_string())
    }

    /// Where a token will be stored, as the end of a sentence.
    #[must_use]
    pub fn target(&self) -> String {
        match self.location() {
            Location::Helper(helper) => format!(
                "with the\ncredentials helper \"{}\", where later commands find it.",
                helper.name
            ),
            _ => format!(
                "in plain text in\nthis file, where later commands find it:\n    {}",
                self.file()
            ),
        }
    }

    /// The error for a token that a person has written down.
    #[must_use]
    pub fn elsewhere(&self, what: &str, command: &str) -> Diagnostic {
        let host = self.host.display();
        Diagnostic::error(
            format!("Credentials for {host} are manually configured"),
            format!(
                "The command \"{} {}\" cannot {what}, because a file of the CLI configuration that it does not change has a \
                 \"credentials\" block for {host}. Remove the block, and revoke its token at the host if nothing else uses it.",
                command,
                what.replace(' ', "")
            ),
        )
    }

    /// Stores a token in the place of the one that is there; without one, removes that.
    ///
    /// # Errors
    /// It cannot be stored.
    pub async fn store(&self, net: &Client, token: Option<&Token>) -> Result<(), StoreError> {
        if let Location::Helper(helper) = self.location() {
            return Ok(net.change_in_helper(helper, &self.host, token).await?);
        }
        match &self.file {
            Some(path) => credentials_file::update(path, &self.host, token).map_err(StoreError::from),
            None => Err(StoreError::NoHome),
        }
    }
}
