//! Access keys that sign requests, and may expire.

use tokio::sync::Mutex;

use crate::oauth::now;

/// Access keys are not used in the last five minutes before their expiry (in seconds), so that requests and their retries end before it.
const HEADROOM: i64 = 300;

/// Access key, with its session token if it is temporary.
#[derive(Clone, Default)]
pub struct Credential {
    /// Access key ID.
    pub id: String,
    /// Secret access key.
    pub key: String,
    /// Session token of temporary keys.
    pub token: Option<String>,
}

/// Access key with its expiry.
#[derive(Clone)]
pub struct Current {
    pub credential: Credential,
    /// Expiry in seconds since 1970; `None` for keys without one.
    pub ends: Option<i64>,
}

impl Current {
    /// Returns true if the keys do not expire within the next five minutes.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.ends.is_none_or(|end| end - HEADROOM > now())
    }
}

/// Cache of access keys. Expiring keys are replaced by new ones.
#[derive(Default)]
pub struct CredentialCache(Mutex<Option<Current>>);

impl CredentialCache {
    /// Returns the cached keys, or requests new ones.
    ///
    /// # Errors
    /// The keys could not be requested.
    pub async fn get<E>(&self, ask: impl Future<Output = Result<Current, E>>) -> Result<Credential, E> {
        // The lock is held during the request, so that only one of several tasks requests keys.
        let mut current = self.0.lock().await;
        if let Some(current) = current.as_ref().filter(|current| current.holds()) {
            return Ok(current.credential.clone());
        }
        let found = ask.await?;
        *current = Some(found.clone());
        Ok(found.credential)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn keys_that_hold_are_not_asked_for_again() {
        let keys = |id: &str, ends| Current {
            credential: Credential {
                id: id.to_owned(),
                ..Credential::default()
            },
            ends,
        };
        let cache = CredentialCache::default();
        let ending = keys("one", Some(now() + 10));
        let one = cache.get(async { Ok::<_, ()>(ending) }).await.unwrap();
        let two = cache.get(async { Ok::<_, ()>(keys("two", None)) }).await.unwrap();
        let same = cache.get(async { Err(()) }).await.unwrap();
        assert_eq!([one.id, two.id, same.id], ["one", "two", "two"]);
    }
}
