//! Types of values.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// A type of values. Cloning costs at most a reference count.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Type {
    /// The unknown type, written `any`.
    Dynamic,
    /// Unicode text, normalized to NFC.
    String,
    /// A number of any size; see [`crate::Number`].
    Number,
    /// The booleans true and false.
    Bool,
    /// An ordered sequence of values of one type.
    List(Arc<Type>),
    /// An unordered collection of distinct values of one type.
    Set(Arc<Type>),
    /// Values of one type, by string key.
    Map(Arc<Type>),
    /// A fixed sequence, each element with its own type.
    Tuple(Arc<Vec<Type>>),
    /// Named attributes, each with its own type.
    Object(Arc<ObjectType>),
}

/// The attributes of an object type, sorted by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectType {
    attributes: Vec<ObjectAttribute>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectAttribute {
    pub name: Arc<str>,
    pub ty: Type,
    /// True if a conversion to this type may supply null for the attribute. Only type constraints have optional
    /// attributes; the type of a value has none.
    pub optional: bool,
}

/// Number of types in [`RECENT`].
const RECENT_TYPES: usize = 8;

thread_local! {
    /// Types of the last objects whose schema leaves types open, such as those of `terraform_data`. The instances of a resource mostly
    /// have one type: without sharing, each object would hold a copy, which is larger than its values.
    static RECENT: RefCell<VecDeque<Arc<ObjectType>>> = const { RefCell::new(VecDeque::new()) };
}

impl ObjectType {
    /// Builds an object type; the last of two attributes with one name counts.
    pub fn new(attributes: impl IntoIterator<Item = ObjectAttribute>) -> ObjectType {
        let mut list: Vec<ObjectAttribute> = attributes.into_iter().collect();
        list.sort_by(|a, b| a.name.cmp(&b.name));
        // The attributes are reversed, because `dedup_by` keeps the first of equal names, and the last one must stay.
        list.reverse();
        list.dedup_by(|a, b| a.name == b.name);
        list.reverse();
        ObjectType { attributes: list }
    }

    /// Returns the object type with the attribute names of this one and with these types, in the order of the attributes.
    pub(crate) fn with_types<'t>(&self, types: impl Iterator<Item = &'t Type> + Clone) -> Arc<ObjectType> {
        RECENT.with_borrow_mut(|recent| {
            let is_wanted = |known: &Arc<ObjectType>| {
                let both = known.attributes.iter().zip(&self.attributes);
                known.len() == self.len()
                    && both
                        .zip(types.clone())
                        .all(|((k, own), ty)| k.name == own.name && k.ty == *ty)
            };
            if let Some(known) = recent.iter().find(|known| is_wanted(known)) {
                return known.clone();
            }
            let attributes = self.attributes.iter().zip(types.clone());
            let new = Arc::new(ObjectType {
                attributes: attributes
                    .map(|(own, ty)| ObjectAttribute {
                        name: own.name.clone(),
                        ty: ty.clone(),
                        optional: false,
                    })
                    .collect(),
            });
            if recent.len() == RECENT_TYPES {
                recent.pop_front();
            }
            recent.push_back(new.clone());
            new
        })
    }

    /// Returns the attributes, sorted by name.
    #[must_use]
    pub fn attributes(&self) -> &[ObjectAttribute] {
        &self.attributes
    }

    /// Returns the position of an attribute.
    #[must_use]
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.attributes.binary_search_by(|a| (*a.name).cmp(name)).ok()
    }

    /// Returns the type of an attribute.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Type> {
        self.index_of(name).map(|i| &self.attributes[i].ty)
    }

    /// Returns the number of attributes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.attributes.len()
    }

    /// Returns true if there are no attributes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.attributes.is_empty()
    }
}

impl Type {
    /// Builds the type `list(element)`.
    #[must_use]
    pub fn list(element: Type) -> Type {
        Type::List(Arc::new(element))
    }

    /// Builds the type `set(element)`.
    #[must_use]
    pub fn set(element: Type) -> Type {
        Type::Set(Arc::new(element))
    }

    /// Builds the type `map(element)`.
    #[must_use]
    pub fn map(element: Type) -> Type {
        Type::Map(Arc::new(element))
    }

    /// Builds the type `tuple([…])`.
    pub fn tuple(elements: impl IntoIterator<Item = Type>) -> Type {
        Type::Tuple(Arc::new(elements.into_iter().collect()))
    }

    /// Builds the type `object({…})` without optional attributes.
    pub fn object<N: Into<Arc<str>>>(attributes: impl IntoIterator<Item = (N, Type)>) -> Type {
        Type::Object(Arc::new(ObjectType::new(attributes.into_iter().map(|(name, ty)| {
            ObjectAttribute {
                name: name.into(),
                ty,
                optional: false,
            }
        }))))
    }

    /// Returns the object type without attributes.
    #[must_use]
    pub fn empty_object() -> Type {
        Type::Object(Arc::new(ObjectType::default()))
    }

    /// Returns true for string, number and bool.
    #[must_use]
    pub fn is_primitive(&self) -> bool {
        matches!(self, Type::String | Type::Number | Type::Bool)
    }

    /// Returns true for lists, sets and maps.
    #[must_use]
    pub fn is_collection(&self) -> bool {
        matches!(self, Type::List(_) | Type::Set(_) | Type::Map(_))
    }

    /// Returns true for tuples and objects.
    #[must_use]
    pub fn is_structural(&self) -> bool {
        matches!(self, Type::Tuple(_) | Type::Object(_))
    }

    /// Returns the element type of a list, set or map.
    #[must_use]
    pub fn element(&self) -> Option<&Type> {
        match self {
            Type::List(t) | Type::Set(t) | Type::Map(t) => Some(t),
            _ => None,
        }
    }

    /// Returns the object type, if this is one.
    #[must_use]
    pub fn as_object(&self) -> Option<&Arc<ObjectType>> {
        match self {
            Type::Object(o) => Some(o),
            _ => None,
        }
    }

    /// Returns true if this is `any`, or contains it.
    #[must_use]
    pub fn has_dynamic(&self) -> bool {
        match self {
            Type::Dynamic => true,
            Type::String | Type::Number | Type::Bool => false,
            Type::List(t) | Type::Set(t) | Type::Map(t) => t.has_dynamic(),
            Type::Tuple(ts) => ts.iter().any(Type::has_dynamic),
            Type::Object(o) => o.attributes.iter().any(|a| a.ty.has_dynamic()),
        }
    }

    /// Returns true if this is the target type, or can be obtained by replacing every `any` in it. Optional
    /// attributes are ignored.
    #[must_use]
    pub fn conforms_to(&self, want: &Type) -> bool {
        match (self, want) {
            (_, Type::Dynamic) => true,
            (Type::List(t), Type::List(w)) | (Type::Set(t), Type::Set(w)) | (Type::Map(t), Type::Map(w)) => {
                Arc::ptr_eq(t, w) || t.conforms_to(w)
            }
            (Type::Tuple(ts), Type::Tuple(ws)) => {
                Arc::ptr_eq(ts, ws) || ts.len() == ws.len() && ts.iter().zip(ws.iter()).all(|(t, w)| t.conforms_to(w))
            }
            (Type::Object(o), Type::Object(w)) => {
                let mut pairs = o.attributes.iter().zip(&w.attributes);
                Arc::ptr_eq(o, w)
                    || o.len() == w.len() && pairs.all(|(a, b)| a.name == b.name && a.ty.conforms_to(&b.ty))
            }
            _ => self == want,
        }
    }

    /// Returns the type with every attribute required: the type of a value that was converted to this constraint.
    #[must_use]
    pub fn without_optional(&self) -> Type {
        // Most types have no optional attributes, and are shared instead of copied.
        if !self.has_optional() {
            return self.clone();
        }
        match self {
            Type::List(t) => Type::list(t.without_optional()),
            Type::Set(t) => Type::set(t.without_optional()),
            Type::Map(t) => Type::map(t.without_optional()),
            Type::Tuple(ts) => Type::tuple(ts.iter().map(Type::without_optional)),
            Type::Object(o) => Type::Object(Arc::new(ObjectType {
                attributes: o
                    .attributes
                    .iter()
                    .map(|a| ObjectAttribute {
                        name: a.name.clone(),
                        ty: a.ty.without_optional(),
                        optional: false,
                    })
                    .collect(),
            })),
            other => other.clone(),
        }
    }

    /// Returns true if the type contains an optional attribute.
    #[must_use]
    pub fn has_optional(&self) -> bool {
        match self {
            Type::Dynamic | Type::String | Type::Number | Type::Bool => false,
            Type::List(t) | Type::Set(t) | Type::Map(t) => t.has_optional(),
            Type::Tuple(ts) => ts.iter().any(Type::has_optional),
            Type::Object(o) => o.attributes.iter().any(|a| a.optional || a.ty.has_optional()),
        }
    }

    /// Returns the name for messages: `string`, `list of number`, `object`.
    #[must_use]
    pub fn friendly_name(&self) -> String {
        match self {
            Type::Dynamic => "dynamic".into(),
            Type::String => "string".into(),
            Type::Number => "number".into(),
            Type::Bool => "bool".into(),
            Type::List(t) => format!("list of {}", t.friendly_name()),
            Type::Set(t) => format!("set of {}", t.friendly_name()),
            Type::Map(t) => format!("map of {}", t.friendly_name()),
            Type::Tuple(_) => "tuple".into(),
            Type::Object(_) => "object".into(),
        }
    }
}

/// Formats the type as a type expression: `list(string)`, `object({a=number})`.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Dynamic => f.write_str("any"),
            Type::String => f.write_str("string"),
            Type::Number => f.write_str("number"),
            Type::Bool => f.write_str("bool"),
            Type::List(t) => write!(f, "list({t})"),
            Type::Set(t) => write!(f, "set({t})"),
            Type::Map(t) => write!(f, "map({t})"),
            Type::Tuple(ts) => {
                f.write_str("tuple([")?;
                for (i, t) in ts.iter().enumerate() {
                    if i > 0 {
                        f.write_str(",")?;
                    }
                    write!(f, "{t}")?;
                }
                f.write_str("])")
            }
            Type::Object(o) => {
                f.write_str("object({")?;
                for (i, a) in o.attributes.iter().enumerate() {
                    if i > 0 {
                        f.write_str(",")?;
                    }
                    if a.optional {
                        write!(f, "{}=optional({})", a.name, a.ty)?;
                    } else {
                        write!(f, "{}={}", a.name, a.ty)?;
                    }
                }
                f.write_str("})")
            }
        }
    }
}

impl fmt::Debug for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
