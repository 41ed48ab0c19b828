//! Tables of values that are computed once, by the first thread that needs them.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use super::Reported;

pub(super) type Slot<T> = Arc<OnceLock<Result<T, Reported>>>;

pub(super) fn read<T>(lock: &RwLock<T>) -> std::sync::RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn write<T>(lock: &RwLock<T>) -> std::sync::RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

// Most slots exist already, so a read lock is tried first. The map is not locked while a value is computed.
pub(super) fn slot<K: Clone + Eq + std::hash::Hash, T>(memo: &RwLock<HashMap<K, Slot<T>>>, key: &K) -> Slot<T> {
    if let Some(slot) = read(memo).get(key) {
        return slot.clone();
    }
    write(memo).entry(key.clone()).or_default().clone()
}
