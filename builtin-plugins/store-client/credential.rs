//! Keys that requests are signed with, and that may end.

use tokio::sync::Mutex;

use crate::oauth::now;

/// How long before their end keys are not used any more, in seconds.
const HEADROOM: i64 = 300;

/// Keys, and the token that goes with those that end.
#[derive(Clone, Default)]
pub struct Credential {
    /// The public part.
    pub id: String,
    /// The secret part.
    pub key: String,
    /// The token, for keys that end.
    pub token: Option<String>,
}

/// Keys, and when they end.
#[derive(Clone)]
pub struct Current {
    /// The keys.
    pub credential: Credential,
    /// In seconds since 1970; `None` if they do not end.
    pub ends: Option<i64>,
}

impl Current {
    /// Whether they hold for some time yet.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.ends.is_none_or(|end| end - HEADROOM > now())
    }
}

/// Keys that are asked for again before they end.
#[derive(Default)]
pub struct CredentialCache(Mutex<Option<Current>>);

impl CredentialCache {
    /// The keys, which are asked for if there are none that hold. Of several who ask at the same time, one does it.
    ///
    /// # Errors
    /// There are none.
    pub async fn get<E>(&self, ask: impl Future<Output = Result<Current, E>>) -> Result<Credential, E> {
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
