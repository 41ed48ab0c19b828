//! Schemas of resource identities: the attributes that identify an object independently of state.

use std::collections::BTreeMap;
use std::sync::Arc;

use cty::Type;
use cty::types::{ObjectAttribute, ObjectType};

/// The schema of the identities of a resource type. Its version is independent of the resource's schema version.
#[derive(Clone, Debug, PartialEq)]
pub struct IdentitySchema {
    /// The schema version of stored identities.
    pub version: u64,
    pub attributes: BTreeMap<Arc<str>, IdentityAttribute>,
    /// The type of an identity, cached.
    ty: Arc<ObjectType>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct IdentityAttribute {
    pub ty: Type,
    /// True if an import by identity must set the attribute.
    pub required_for_import: bool,
    /// True if an import by identity may omit the attribute.
    pub optional_for_import: bool,
    pub description: String,
}

impl IdentitySchema {
    #[must_use]
    pub fn new(version: u64, attributes: BTreeMap<Arc<str>, IdentityAttribute>) -> IdentitySchema {
        IdentitySchema {
            version,
            ty: Arc::new(object_type(&attributes, |_| false)),
            attributes,
        }
    }

    #[must_use]
    pub fn implied_type(&self) -> Type {
        Type::Object(self.ty.clone())
    }

    /// Returns the type of `identity` in an import block, where attributes that are optional for import are optional.
    #[must_use]
    pub fn import_type(&self) -> Type {
        Type::Object(Arc::new(object_type(&self.attributes, |a| a.optional_for_import)))
    }
}

fn object_type(
    attributes: &BTreeMap<Arc<str>, IdentityAttribute>,
    optional: impl Fn(&IdentityAttribute) -> bool,
) -> ObjectType {
    ObjectType::new(attributes.iter().map(|(name, attribute)| ObjectAttribute {
        name: name.clone(),
        ty: attribute.ty.clone(),
        optional: optional(attribute),
    }))
}
