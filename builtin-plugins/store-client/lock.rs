//! Locks that nobody says the holder of.

use std::time::Duration;

use monoform_sdk::state_store::LockError;

/// How often a lock is tried for whose holder is not known, and how long to wait between.
const ATTEMPTS: u32 = 4;
const PAUSE: Duration = Duration::from_millis(400);

/// Tries for a lock again as long as it is held and it is not said by whom: that is so for a moment while somebody takes or releases
/// it, in stores that write the lock and its holder one after the other. Who waits for a lock by `-lock-timeout` waits only for one
/// whose holder is known.
///
/// # Errors
/// Those of the last attempt.
pub async fn settled<F>(mut attempt: impl FnMut() -> F) -> Result<String, LockError>
where
    F: Future<Output = Result<String, LockError>>,
{
    for _ in 1..ATTEMPTS {
        match attempt().await {
            Err(LockError::Held { holder: None, .. }) => tokio::time::sleep(PAUSE).await,
            result => return result,
        }
    }
    attempt().await
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use monoform_sdk::state_store::LockInfo;

    #[tokio::test(start_paused = true)]
    async fn a_lock_of_somebody_who_is_known_is_not_tried_for_again() {
        let tries = Cell::new(0);
        let held = |holder: Option<LockInfo>| {
            tries.set(tries.get() + 1);
            let error = LockError::held(holder, "held");
            async { Err(error) }
        };
        assert!(settled(|| held(None)).await.is_err());
        assert_eq!(tries.replace(0), ATTEMPTS);
        assert!(settled(|| held(Some(LockInfo::default()))).await.is_err());
        assert_eq!(tries.get(), 1);
        let second = Cell::new(false);
        let taken = settled(|| {
            let is_free = second.replace(true);
            async move {
                if is_free {
                    Ok("id".to_owned())
                } else {
                    Err(LockError::held(None, "held"))
                }
            }
        });
        assert_eq!(taken.await.unwrap(), "id");
    }
}
