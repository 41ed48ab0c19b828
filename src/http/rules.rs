//! The limits in numbers, and the headers that stay behind at a redirect.

use std::time::Duration;

/// How long it may take until there is a connection, unless a caller has a limit of its own.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a server may take to begin its answer, once it has the request.
pub const FIRST_BYTE: Duration = Duration::from_secs(30);

/// How long a server may be silent in the middle of an answer.
pub const SILENCE: Duration = Duration::from_secs(60);

/// The largest state that is read from a server: more than any that can be planned with. An endless answer would fill the memory.
pub const LARGEST_STATE: usize = 1 << 30;

/// How long a request waits before a user is told which host it waits for.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// The longest pause that `Retry-After` can ask for. A server could make a command wait for hours otherwise, and say nothing.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// The slowest rate at which a request is taken to be on its way, in bytes a second.
const SLOWEST_UPLOAD: u64 = 32 << 10;

/// How long the first byte of an answer is waited for, with the time in which a body of this length is sent.
#[must_use]
pub fn first_byte_after(body: usize) -> Duration {
    FIRST_BYTE + Duration::from_secs(body as u64 / SLOWEST_UPLOAD)
}

/// Returns true if a header stays behind when a redirect leads to another origin (scheme, host or port): it is marked as a secret,
/// or its name says that it is one. The name counts because a mark is easily forgotten.
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
    is_marked || SECRETS.iter().any(|part| name.contains(part))
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
