//! Schemas of resource identities: the attributes that together say which object an object is, wherever its state is.

use std::collections::BTreeMap;
use std::sync::Arc;

use cty::Type;
use cty::types::{ObjectAttribute, ObjectType};

/// The schema of the identities of a resource type. Its version is counted apart from that of the type's objects.
#[derive(Clone, Debug, PartialEq)]
pub struct IdentitySchema {
    /// The version of stored identities.
    pub version: u64,
    pub attributes: BTreeMap<Arc<str>, IdentityAttribute>,
    /// The type of an identity, computed once.
    ty: Arc<ObjectType>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct IdentityAttribute {
    /// Its type.
    pub ty: Type,
    /// An import by identity must give it.
    pub required_for_import: bool,
    /// An import by identity may leave it out.
    pub optional_for_import: bool,
    pub description: String,
}

impl IdentitySchema {
    /// A schema of these attributes.
    #[must_use]
    pub fn new(version: u64, attributes: BTreeMap<Arc<str>, IdentityAttribute>) -> IdentitySchema {
        IdentitySchema {
            version,
            ty: Arc::new(object_type(&attributes, |_| false)),
            attributes,
        }
    }

    /// The type of an identity.
    #[must_use]
    pub fn implied_type(&self) -> Type {
        Type::Object(self.ty.clone())
    }

    /// The type of the `identity` argument of an import block: attributes that are optional for import may be left out.
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
