//! The service of the zoo: a table in memory in the place of requests.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Default)]
pub struct Zoo {
    tables: Mutex<BTreeMap<String, Row>>,
}

pub type Row = BTreeMap<String, String>;

impl Zoo {
    fn tables(&self) -> MutexGuard<'_, BTreeMap<String, Row>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn put(&self, id: &str, columns: &[(&str, &str)]) {
        let owned = columns.iter().map(|(k, v)| (k.to_string(), v.to_string()));
        self.tables().entry(id.into()).or_default().extend(owned);
    }

    pub fn get(&self, id: &str) -> Option<Row> {
        self.tables().get(id).cloned()
    }

    pub fn remove(&self, id: &str) -> Option<Row> {
        self.tables().remove(id)
    }

    pub fn ids(&self, prefix: &str) -> Vec<String> {
        let tables = self.tables();
        let ids = tables.keys().filter(|id| id.starts_with(prefix));
        ids.cloned().collect()
    }
}
