//! Limits, and headers that are removed at a redirect.

use std::time::Duration;

/// The time limit for establishing a connection, unless the caller has its own.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Time limit for the first byte of a response.
pub const FIRST_BYTE: Duration = Duration::from_secs(30);

/// The time limit of a server's silence in the middle of a response.
pub const SILENCE: Duration = Duration::from_secs(60);

/// The size limit of a state that a server sends, in bytes. States of this size are too large to plan with.
// An endless response would fill the memory.
pub const LARGEST_STATE: usize = 1 << 30;

/// Time after which the host of a slow request is reported to the user.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// The longest pause that `Retry-After` can request.
// A server could otherwise make a command wait silently for hours.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// The slowest upload that counts as progress, in bytes a second.
const SLOWEST_UPLOAD: u64 = 32 << 10;

/// Returns the time limit for the first byte of a response, including the upload of a body of this length.
#[must_use]
pub fn first_byte_after(body: usize) -> Duration {
    FIRST_BYTE + Duration::from_secs(body as u64 / SLOWEST_UPLOAD)
}

/// Returns true if a redirect to another origin (scheme, host or port) removes the header: it is marked as a secret, or
/// its name has a part such as `token` that is usual for secrets.
#[must_use]
pub fn stays_behind(name: &str, is_marked: bool) -> bool {
    const SECRETS: &[&str] = &[
        "auth",
        "cookie",
        "credential",
        "key",
        "password",
        "secret",
        "session",
        "signature",
        "token",
    ];
    let name = name.to_ascii_lowercase();
    // The name is checked as well, because callers easily forget the mark.
    is_marked || SECRETS.iter().any(|part| name.contains(part))
}

/// The limit of a server's silence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// Reads time out after [`SILENCE`]; the first byte of the response, after [`first_byte_after`].
    Limited,
    /// No limit: the caller has a limit of its own, or the user has disabled it.
    Unlimited,
}

impl Silence {
    /// Awaits a step of a server; `None` if it takes longer than the limit.
    pub(crate) async fn within<T>(self, limit: Duration, work: impl Future<Output = T>) -> Option<T> {
        match self {
            Silence::Limited => tokio::time::timeout(limit, work).await.ok(),
            Silence::Unlimited => Some(work.await),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_stay_behind_by_mark_and_by_name() {
        for name in [
            "Authorization",
            "Proxy-Authorization",
            "WWW-Authenticate",
            "Cookie",
            "X-Consul-Token",
            "X-Vault-Token",
            "X-Api-Key",
            "x-amz-server-side-encryption-customer-key",
            "x-goog-encryption-key-sha256",
            "x-amz-security-token",
            "x-cos-security-token",
        ] {
            assert!(stays_behind(name, false), "{name}");
        }
        for name in [
            "Accept",
            "Content-Type",
            "User-Agent",
            "X-Terraform-Version",
            "Range",
            "If-Match",
        ] {
            assert!(!stays_behind(name, false), "{name}");
            assert!(stays_behind(name, true), "{name}");
        }
    }

    #[test]
    fn large_bodies_have_the_time_that_sending_them_takes() {
        assert_eq!(first_byte_after(0), FIRST_BYTE);
        assert!(first_byte_after(100 << 20) > Duration::from_secs(3000));
    }
}
