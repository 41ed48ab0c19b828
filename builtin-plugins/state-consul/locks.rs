//! Locks: keys held by a session, which is renewed while the lock is held.

#![expect(clippy::disallowed_methods, reason = "a lock has the time in it")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use monoform_sdk::state_store::{LockError, LockInfo};
use monoform_sdk::{Diagnostics, Result};
use store_client::about::{About, LOCK, UNLOCK, WRITE, details, problem};
use store_client::guard::Holder;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::kv::Kv;

/// Interval between renewals: half of the session's lifetime of 15 seconds.
const RENEWAL: Duration = Duration::from_millis(7_500);
/// Time limit for one renewal.
const RENEWAL_TIME: Duration = Duration::from_secs(5);
/// Pause between attempts to acquire a lost lock again.
const RECOVERY: Duration = Duration::from_secs(2);
/// Time for which acquiring a free key is tried: after a session is lost, its key cannot be locked for five seconds.
const DELAY: Duration = Duration::from_secs(7);
const PAUSE: Duration = Duration::from_millis(500);

struct Held {
    /// Lock ID as it was returned: the ID of the first session.
    id: String,
    /// Session that holds the lock now.
    session: Arc<Mutex<String>>,
    renewal: JoinHandle<()>,
}

impl Held {
    fn session(&self) -> String {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Without the renewal, the session and its lock expire.
        self.renewal.abort();
    }
}

pub(crate) struct Locks {
    kv: Arc<Kv>,
    held: Mutex<BTreeMap<String, Held>>,
}

/// Returns the lock key of a state. Consul's keys have no consecutive slashes, so a slash at the end of the path is removed.
fn key(path: &str) -> String {
    format!("{}/.lock", path.trim_end_matches('/'))
}

fn info_key(path: &str) -> String {
    format!("{}/.lockinfo", path.trim_end_matches('/'))
}

const TAKING: About<'static> = About {
    summary: LOCK,
    what: "Taking the lock in Consul",
};
const WRITING: About<'static> = About {
    summary: WRITE,
    what: "Reading the lock in Consul",
};
const RELEASING: About<'static> = About {
    summary: UNLOCK,
    what: "Releasing the lock in Consul",
};

/// Locks a state with a new session, and records the holder. Returns `None` if another session holds the lock, or if the key cannot be
/// locked yet after a lost session.
async fn take(kv: &Kv, path: &str, info: &mut LockInfo) -> Result<Option<String>> {
    let session = kv.make_session(TAKING).await?;
    let taken = take_with(kv, path, info, &session).await;
    if !matches!(taken, Ok(true)) {
        // An error is ignored: the caller reports the error that led here, and the session expires by itself.
        let _ = kv.end_session(TAKING, &session).await;
    }
    taken.map(|taken| taken.then_some(session))
}

async fn take_with(kv: &Kv, path: &str, info: &mut LockInfo, session: &str) -> Result<bool> {
    let end = Instant::now() + DELAY;
    while !kv.acquire(TAKING, &key(path), session).await? {
        match kv.get(TAKING, &key(path)).await? {
            // An earlier attempt has acquired the lock, and its answer was lost.
            Some(pair) if pair.session.as_deref() == Some(session) => break,
            Some(pair) if pair.session.is_some() => return Ok(false),
            Some(pair) if !pair.is_lock() && !pair.value.is_empty() => {
                let detail = format!("The key {:?} is no lock: it was made by another program.", key(path));
                return Err(problem(LOCK, detail));
            }
            _ if Instant::now() >= end => return Ok(false),
            // The key is free, but cannot be locked until the delay after a lost session has passed.
            _ => tokio::time::sleep(PAUSE).await,
        }
    }
    session.clone_into(&mut info.id);
    info.info = format!("consul session: {session}");
    path.clone_into(&mut info.path);
    info.created = jiff::Timestamp::now().to_string();
    // A lock without a recorded holder would block other programs, and their errors could not name the holder. So it is released.
    if let Err(problems) = kv.put(TAKING, &info_key(path), info.to_json().into_bytes()).await {
        let _ = kv.release(TAKING, &key(path), session).await;
        return Err(problems);
    }
    Ok(true)
}

/// Reads the recorded holder; `None` if there is no valid record.
async fn holder(kv: &Kv, path: &str) -> Result<Option<LockInfo>> {
    let pair = kv.get(TAKING, &info_key(path)).await?;
    Ok(pair.and_then(|pair| LockInfo::from_json(&pair.value)))
}

/// Renews a session. Returns false if it has expired or does not hold the lock any more.
async fn renew(kv: &Kv, path: &str, session: &str) -> Result<bool> {
    if !kv.renew_session(TAKING, session).await? {
        return Ok(false);
    }
    let pair = kv.get(TAKING, &key(path)).await?;
    Ok(pair.is_some_and(|pair| pair.session.as_deref() == Some(session)))
}

/// Renews the session of a lock. If the lock is lost, it is acquired again if possible; each write checks that the state was not changed
/// meanwhile.
async fn keep(kv: Arc<Kv>, path: String, session: Arc<Mutex<String>>, mut info: LockInfo) {
    loop {
        tokio::time::sleep(RENEWAL).await;
        let current = session.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match tokio::time::timeout(RENEWAL_TIME, renew(&kv, &path, &current)).await {
            Ok(Ok(true)) => {}
            Ok(Ok(false)) => {
                tracing::error!("the lock in Consul was lost, and is taken again");
                let _ = kv.end_session(TAKING, &current).await;
                loop {
                    match take(&kv, &path, &mut info).await {
                        Ok(Some(new)) => {
                            *session.lock().unwrap_or_else(PoisonError::into_inner) = new;
                            break;
                        }
                        Ok(None) => tracing::error!("the lock in Consul has another holder now"),
                        Err(_) => tracing::error!("the lock in Consul cannot be taken again yet"),
                    }
                    tokio::time::sleep(RECOVERY).await;
                }
            }
            Ok(Err(_)) | Err(_) => tracing::warn!("the session of the lock in Consul was not renewed this time"),
        }
    }
}

impl Locks {
    pub fn new(kv: Arc<Kv>) -> Locks {
        Locks {
            kv,
            held: Mutex::default(),
        }
    }

    fn take_held(&self, path: &str, id: &str) -> Option<Held> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        match held.get(path) {
            Some(lock) if lock.id == id => held.remove(path),
            _ => None,
        }
    }

    /// Acquires the lock of a state.
    pub async fn lock(&self, path: &str, info: LockInfo) -> std::result::Result<String, LockError> {
        store_client::lock::settled(|| self.take(path, info.clone())).await
    }

    async fn take(&self, path: &str, mut info: LockInfo) -> std::result::Result<String, LockError> {
        let Some(id) = take(&self.kv, path, &mut info).await? else {
            return Err(match holder(&self.kv, path).await? {
                Some(holder) => {
                    let message = format!("The state {path:?} is locked in Consul by the session {}.", holder.id);
                    LockError::held(Some(holder), message)
                }
                None => LockError::held(
                    None,
                    format!(
                        "The state {path:?} is locked in Consul, and nobody has written who holds it. A lock whose holder has ended \
                         goes by itself after half a minute. To see its session: consul kv get -detailed {}",
                        key(path)
                    ),
                ),
            });
        };
        let session = Arc::new(Mutex::new(id.clone()));
        let renewal = tokio::spawn(keep(self.kv.clone(), path.to_owned(), session.clone(), info));
        let lock = Held {
            id: id.clone(),
            session,
            renewal,
        };
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.insert(path.to_owned(), lock);
        Ok(id)
    }

    /// Ends the renewal of a lost lock, and its session unless that has expired.
    pub async fn forget(&self, path: &str, id: &str) {
        if let Some(held) = self.take_held(path, id) {
            held.renewal.abort();
            let _ = self.kv.end_session(RELEASING, &held.session()).await;
        }
    }

    /// Returns the holder of a state's lock. If the own lock is lost and nobody holds the lock, the renewal will acquire it again; until
    /// then, a write is allowed if the state is unchanged.
    pub async fn holder(&self, path: &str, own: &str) -> Result<Holder> {
        let session = {
            let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            held.get(path).filter(|lock| lock.id == own).map(Held::session)
        };
        let Some(session) = session else {
            return Ok(Holder::Free);
        };
        let pair = self.kv.get(WRITING, &key(path)).await?;
        match pair.and_then(|pair| pair.session) {
            Some(holder) if holder == session => Ok(Holder::Own),
            Some(other) => {
                // A session records itself after it has acquired the lock, so the recorded holder may still be the previous one.
                let info = holder(&self.kv, path).await?.filter(|info| info.id == other);
                Ok(Holder::Other(Box::new(info.unwrap_or_else(|| LockInfo {
                    id: other,
                    ..LockInfo::default()
                }))))
            }
            None => Ok(Holder::Unknown),
        }
    }

    /// Releases the lock with this ID, even if another program holds it.
    pub async fn unlock(&self, path: &str, id: &str) -> Result<()> {
        match self.take_held(path, id) {
            Some(held) => self.release(path, held).await,
            None => self.force(path, id).await,
        }
    }

    async fn release(&self, path: &str, held: Held) -> Result<()> {
        held.renewal.abort();
        let (kv, session) = (&self.kv, held.session());
        let pair = kv.get(RELEASING, &key(path)).await?;
        if pair.is_none_or(|pair| pair.session.as_deref() != Some(&session)) {
            let _ = kv.end_session(RELEASING, &session).await;
            let detail = format!(
                "consul lock was lost: the state {path:?} was not locked any more, or by another program, when the lock was to \
                 be released. What was written meanwhile is right: a state that another program has changed is not overwritten."
            );
            return Err(problem(UNLOCK, detail));
        }
        let info = kv.delete(RELEASING, &info_key(path), false).await;
        let released = kv.release(RELEASING, &key(path), &session).await;
        // The key belongs to another program if that has acquired the lock meanwhile.
        if let Ok(Some(pair)) = kv.get(RELEASING, &key(path)).await
            && pair.session.is_none()
            && pair.is_lock()
        {
            let _ = kv.delete_unchanged(RELEASING, &key(path), pair.index).await;
        }
        let ended = kv.end_session(RELEASING, &session).await;
        let mut problems = Diagnostics::new();
        for result in [info, released.map(drop), ended] {
            if let Err(found) = result {
                problems.append(found);
            }
        }
        match problems.has_errors() {
            true => Err(problems),
            false => Ok(()),
        }
    }

    /// Ends the session of another program that holds the lock, and removes the keys of the lock.
    async fn force(&self, path: &str, id: &str) -> Result<()> {
        let kv = &self.kv;
        let pair = kv.get(RELEASING, &key(path)).await?;
        let session = pair.and_then(|pair| pair.session);
        if session.as_deref() != Some(id) {
            let detail = match session {
                Some(session) => format!("The lock of the state {path:?} has the ID {session:?}, and not {id:?}."),
                None => format!("The state {path:?} is not locked."),
            };
            return Err(problem(UNLOCK, detail));
        }
        kv.end_session(RELEASING, id).await?;
        // Ending the session has released the lock, so it does no harm if a key cannot be deleted.
        for key in [key(path), info_key(path)] {
            if let Err(problems) = kv.delete(RELEASING, &key, false).await {
                tracing::warn!("the key {key:?} stays: {}", details(&problems));
            }
        }
        Ok(())
    }
}
