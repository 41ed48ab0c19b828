//! Location of the token of a host, for `login` and `logout`.

use std::path::PathBuf;

use net::hosts::CredentialsHelper;
use net::{Client, Host, Token, credentials_file};
use syntax::Diagnostic;

use crate::args::UsageError;
use crate::session::Session;

pub const DEFAULT_HOST: &str = "app.terraform.io";

/// Location of a token.
pub enum Location<'s> {
    /// File that the user maintains, and that no command changes.
    OtherFile,
    /// `credentials.tfrc.json`, which commands change.
    File,
    Helper(&'s CredentialsHelper),
    /// The token is not stored yet; it would be stored in the file.
    Nowhere,
}

/// Reason why a token cannot be stored or removed. The text is a clause without a full stop.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error(transparent)]
    Helper(#[from] net::Error),
    #[error(transparent)]
    File(#[from] credentials_file::CredentialsFileError),
    #[error("there is no home directory for the file credentials.tfrc.json: HOME is not set")]
    NoHome,
}

/// Facts from which the [`Location`] of a host's token follows, without the token itself.
pub struct Stored<'s> {
    host: Host,
    file: Option<PathBuf>,
    configured: bool,
    in_file: bool,
    helper: Option<&'s CredentialsHelper>,
}

/// Parses the argument as a host; without one, the host is [`DEFAULT_HOST`]. Returns the host (`None` if it is invalid), and its name as
/// typed.
///
/// # Errors
/// There is more than one argument.
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
    /// Searches for the token of a host in the CLI configuration and the credentials file. A configured helper is
    /// recorded, but not asked.
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

    #[must_use]
    pub fn location(&self) -> Location<'s> {
        match (self.configured, self.in_file, self.helper) {
            (true, false, _) => Location::OtherFile,
            // A token that is in the file is replaced there, even if a helper is configured.
            (true, true, _) => Location::File,
            (false, _, Some(helper)) => Location::Helper(helper),
            (false, _, None) => Location::Nowhere,
        }
    }

    /// Returns the path of the file that commands change.
    #[must_use]
    pub fn file(&self) -> String {
        self.file
            .as_ref()
            .map_or_else(String::new, |path| path.display().to_string())
    }

    /// Describes where a token will be stored, as the end of a sentence.
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

    /// Returns the error for a token in a file that the user maintains.
    #[must_use]
    pub fn maintained_by_user(&self, what: &str, command: &str) -> Diagnostic {
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

    /// Stores a token at the location of the current one; with `None`, removes the current token.
    ///
    /// # Errors
    /// The token cannot be stored.
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
