//! Maps that copies of a state share.

use std::collections::{BTreeMap, btree_map};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A sorted map whose clones share one copy until one of them is changed. A run has several states, such as those before and after the
/// refresh, which usually differ in few objects.
#[derive(Debug)]
pub struct SharedMap<K, V>(Arc<BTreeMap<K, V>>);

impl<K, V> SharedMap<K, V> {
    /// Returns true if two maps share one copy.
    #[must_use]
    pub fn is_same(&self, other: &SharedMap<K, V>) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<K, V> Clone for SharedMap<K, V> {
    fn clone(&self) -> SharedMap<K, V> {
        SharedMap(self.0.clone())
    }
}

impl<K, V> Default for SharedMap<K, V> {
    fn default() -> SharedMap<K, V> {
        SharedMap(Arc::default())
    }
}

impl<K, V> From<BTreeMap<K, V>> for SharedMap<K, V> {
    fn from(map: BTreeMap<K, V>) -> SharedMap<K, V> {
        SharedMap(Arc::new(map))
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for SharedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> SharedMap<K, V> {
        SharedMap(Arc::new(entries.into_iter().collect()))
    }
}

impl<K, V> Deref for SharedMap<K, V> {
    type Target = BTreeMap<K, V>;

    fn deref(&self) -> &BTreeMap<K, V> {
        &self.0
    }
}

/// A mutable borrow copies the map if it is shared.
impl<K: Clone, V: Clone> DerefMut for SharedMap<K, V> {
    fn deref_mut(&mut self) -> &mut BTreeMap<K, V> {
        Arc::make_mut(&mut self.0)
    }
}

impl<'a, K, V> IntoIterator for &'a SharedMap<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = btree_map::Iter<'a, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}
