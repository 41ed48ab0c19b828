//! Credentials for a registry.

use net::Token;

/// Credentials for a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// A name and a password.
    Password { username: String, password: Token },
    /// A token that is sent as it is, and perhaps a refresh token.
    Access { access: Token, refresh: Option<Token> },
    /// A refresh token.
    Refresh(Token),
}
