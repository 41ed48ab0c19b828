//! Credentials for a registry.

use net::Token;

/// Credentials of a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credentials {
    Password {
        username: String,
        password: Token,
    },
    /// An access token, with an optional refresh token.
    Access {
        access: Token,
        refresh: Option<Token>,
    },
    Refresh(Token),
}
