//! Schemas by type name, converted on first use.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Reason why a schema cannot be used: a clause that names the invalid part.
pub type ConvertError = Box<dyn std::error::Error + Send + Sync>;

/// Converts the schema of one type.
type Convert<T> = Arc<dyn Fn(&str) -> Result<T, ConvertError> + Send + Sync>;

/// Schemas by type name.
///
/// The largest providers have thousands of types, of which a configuration uses a few. The names are therefore known from the
/// start, and a schema is converted from its message when it is first used.
pub struct SchemaMap<T> {
    entries: BTreeMap<Arc<str>, OnceLock<Result<T, Arc<str>>>>,
    /// Conversion of schemas; `None` if all were set from the start.
    convert: Option<Convert<T>>,
}

impl<T> SchemaMap<T> {
    /// Creates a map with these names, whose schemas are converted when they are first used.
    pub fn lazy(
        names: impl IntoIterator<Item = Arc<str>>,
        convert: impl Fn(&str) -> Result<T, ConvertError> + Send + Sync + 'static,
    ) -> SchemaMap<T> {
        SchemaMap {
            entries: names.into_iter().map(|name| (name, OnceLock::new())).collect(),
            convert: Some(Arc::new(convert)),
        }
    }

    fn converted<'m>(&'m self, name: &str, entry: &'m OnceLock<Result<T, Arc<str>>>) -> Result<&'m T, &'m str> {
        let converted = entry.get_or_init(|| match &self.convert {
            Some(convert) => convert(name).map_err(|error| error.to_string().into()),
            None => Err("it is missing".into()),
        });
        converted.as_ref().map_err(|reason| &**reason)
    }

    /// Returns the schema of a type; `None` if there is no such type, or its schema is invalid (see [`SchemaMap::problem`]).
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&T> {
        self.converted(name, self.entries.get(name)?).ok()
    }

    /// Returns the reason why the schema of a type cannot be used; `None` if it can, or does not exist.
    #[must_use]
    pub fn problem(&self, name: &str) -> Option<&str> {
        self.converted(name, self.entries.get(name)?).err()
    }

    /// Converts all schemas. Returns the reason why the first invalid one cannot be used; `None` if all are valid.
    #[must_use]
    pub fn first_problem(&self) -> Option<&str> {
        self.entries
            .iter()
            .find_map(|(name, entry)| self.converted(name, entry).err())
    }

    #[must_use]
    pub fn contains_key(&self, name: &str) -> bool {
        self.entries.contains_key(name)
    }

    /// Returns the names of all types, sorted, without converting schemas.
    pub fn keys(&self) -> impl Iterator<Item = &Arc<str>> {
        self.entries.keys()
    }

    /// Converts all schemas, and returns the valid ones in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &T)> {
        let entries = self.entries.iter();
        entries.filter_map(|(name, entry)| Some((name, self.converted(name, entry).ok()?)))
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns true if the schema of a type has been converted.
    #[must_use]
    pub fn is_converted(&self, name: &str) -> bool {
        self.entries.get(name).is_some_and(|entry| entry.get().is_some())
    }

    /// Sets the schema of a type.
    pub fn insert(&mut self, name: Arc<str>, schema: T) {
        self.entries.insert(name, OnceLock::from(Ok(schema)));
    }

    /// Returns the schema of a type for changes; `None` if there is no such type, or its schema is invalid.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut T> {
        self.get(name)?;
        self.entries.get_mut(name)?.get_mut()?.as_mut().ok()
    }
}

impl<T> Default for SchemaMap<T> {
    fn default() -> SchemaMap<T> {
        SchemaMap {
            entries: BTreeMap::new(),
            convert: None,
        }
    }
}

impl<T: Clone> Clone for SchemaMap<T> {
    fn clone(&self) -> SchemaMap<T> {
        SchemaMap {
            entries: self.entries.clone(),
            convert: self.convert.clone(),
        }
    }
}

impl<T> fmt::Debug for SchemaMap<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.keys()).finish()
    }
}

impl<T> From<BTreeMap<Arc<str>, T>> for SchemaMap<T> {
    fn from(schemas: BTreeMap<Arc<str>, T>) -> SchemaMap<T> {
        schemas.into_iter().collect()
    }
}

impl<T> FromIterator<(Arc<str>, T)> for SchemaMap<T> {
    fn from_iter<I: IntoIterator<Item = (Arc<str>, T)>>(schemas: I) -> SchemaMap<T> {
        let entries = schemas.into_iter();
        SchemaMap {
            entries: entries
                .map(|(name, schema)| (name, OnceLock::from(Ok(schema))))
                .collect(),
            convert: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn numbers(converted: &Arc<AtomicUsize>) -> SchemaMap<u32> {
        let converted = converted.clone();
        let names = ["one", "two", "damaged"].map(Arc::from);
        SchemaMap::lazy(names, move |name| {
            converted.fetch_add(1, Ordering::Relaxed);
            match name {
                "one" => Ok(1),
                "two" => Ok(2),
                _ => Err(format!("{name} is no number").into()),
            }
        })
    }

    #[test]
    fn schema_is_converted_once_and_only_if_it_is_used() {
        let converted = Arc::default();
        let map = numbers(&converted);
        assert!(map.contains_key("one") && map.len() == 3 && map.keys().count() == 3);
        assert_eq!(converted.load(Ordering::Relaxed), 0);
        assert_eq!(
            (map.get("two"), map.get("two"), map.get("three")),
            (Some(&2), Some(&2), None)
        );
        assert_eq!(converted.load(Ordering::Relaxed), 1);
        assert!(map.is_converted("two") && !map.is_converted("one"));
    }

    #[test]
    fn invalid_schema_is_absent_and_has_a_reason() {
        let map = numbers(&Arc::default());
        assert_eq!(
            (map.get("damaged"), map.problem("damaged")),
            (None, Some("damaged is no number"))
        );
        assert_eq!((map.problem("one"), map.problem("three")), (None, None));
        assert_eq!(map.first_problem(), Some("damaged is no number"));
        let all: Vec<u32> = map.iter().map(|(_, number)| *number).collect();
        assert_eq!(all, [1, 2]);
    }

    #[test]
    fn schema_that_is_set_takes_the_place_of_the_converted_one() {
        let mut map = numbers(&Arc::default());
        map.insert("one".into(), 7);
        *map.get_mut("two").unwrap() += 10;
        assert_eq!((map.get("one"), map.get("two")), (Some(&7), Some(&12)));
    }
}
