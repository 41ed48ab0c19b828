//! Cache of values derived from a block schema, computed on first use. Thousands of objects are decoded, merged and
//! marked with one schema, and schemas of large providers have hundreds of attributes at several depths.

use std::sync::{Arc, OnceLock};

use cty::Value;
use cty::types::ObjectType;

/// Cache of derived values of one block schema. Cloning gives an empty cache, so that a cloned schema may be changed.
#[derive(Default)]
pub struct Derived {
    pub(crate) object: OnceLock<Arc<ObjectType>>,
    pub(crate) empty: OnceLock<Value>,
    pub(crate) sensitive: OnceLock<bool>,
    pub(crate) write_only: OnceLock<bool>,
}

impl std::fmt::Debug for Derived {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Derived")
    }
}

impl Clone for Derived {
    fn clone(&self) -> Derived {
        Derived::default()
    }
}

impl PartialEq for Derived {
    /// Always true, because the content of the cache follows from the schema.
    fn eq(&self, _: &Derived) -> bool {
        true
    }
}
