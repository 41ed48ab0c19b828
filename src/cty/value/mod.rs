//! Values of the language.

mod unknown;
mod walk;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::text::normalize;
use crate::types::ObjectAttribute;
use crate::{Marks, Number, ObjectType, Refinements, Type};

/// A value of the language: a type, content, and marks.
///
/// Constructors compute from the parts which marks occur inside of the value and if anything in it is unknown, so that
/// [`Value::is_wholly_known`], [`Value::deep_marks`] and [`Value::ty`] take constant time at any size.
///
/// `==` is structural: type, content, refinements and marks. The language's own equality, in which an unknown operand
/// gives an unknown result, is [`crate::ops::equals`].
#[derive(Clone, PartialEq)]
pub struct Value {
    ty: Type,
    kind: Kind,
    marks: Marks,
    deep_marks: Marks,
    deep_unknown: bool,
}

/// Content of a value, without its type and marks.
#[derive(Clone, PartialEq, Debug)]
pub enum Kind {
    /// A value that is not known yet, with its refinements.
    Unknown(Option<Arc<Refinements>>),
    /// The absent value.
    Null,
    /// A boolean, true or false.
    Bool(bool),
    /// A number of any precision.
    Number(Number),
    /// A string in NFC.
    String(Arc<str>),
    /// Elements of a list, tuple or set (a set's in canonical order), or attribute values of an object in the order of
    /// its type's attributes.
    Seq(Arc<[Value]>),
    /// Elements of a map, sorted by key.
    Map(Arc<[(Arc<str>, Value)]>),
}

impl Value {
    fn build(ty: Type, kind: Kind) -> Value {
        // The marks and unknown parts of all elements are computed once: checks of marks and unknown parts then
        // need no walk.
        let mut deep_marks = Marks::NONE;
        let mut deep_unknown = false;
        match &kind {
            Kind::Unknown(_) => deep_unknown = true,
            Kind::Seq(items) => {
                for item in items.iter() {
                    deep_marks |= item.deep_marks;
                    deep_unknown |= item.deep_unknown;
                }
            }
            Kind::Map(items) => {
                for (_, item) in items.iter() {
                    deep_marks |= item.deep_marks;
                    deep_unknown |= item.deep_unknown;
                }
            }
            _ => {}
        }
        Value {
            ty,
            kind,
            marks: Marks::NONE,
            deep_marks,
            deep_unknown,
        }
    }

    // ---- constructors -----------------------------------------------------------------------------------------

    /// Creates a null of this type.
    #[must_use]
    pub fn null(ty: Type) -> Value {
        Value::build(ty, Kind::Null)
    }

    #[must_use]
    pub fn bool(b: bool) -> Value {
        Value::build(Type::Bool, Kind::Bool(b))
    }

    pub fn number(n: impl Into<Number>) -> Value {
        Value::build(Type::Number, Kind::Number(n.into()))
    }

    /// Creates a string, normalized to NFC.
    pub fn string(s: impl AsRef<str>) -> Value {
        Value::build(Type::String, Kind::String(normalize(s.as_ref())))
    }

    /// Creates a string from shared text that is normalized already.
    #[must_use]
    pub fn shared_string(s: Arc<str>) -> Value {
        Value::build(Type::String, Kind::String(s))
    }

    /// Creates a list. Every element must have exactly the element type (or that type must be dynamic for an empty
    /// list).
    #[must_use]
    pub fn list(element: Type, items: Vec<Value>) -> Value {
        debug_assert!(items.iter().all(|i| i.ty == element), "list element of another type");
        Value::build(Type::list(element), Kind::Seq(items.into()))
    }

    /// Creates a set. Elements are put in canonical order, duplicates removed, and marks inside move to the set as a
    /// whole.
    #[must_use]
    pub fn set(element: Type, items: Vec<Value>) -> Value {
        // Equal elements with different marks would become one, so single elements cannot have marks.
        let mut marks = Marks::NONE;
        let items: Vec<Value> = items
            .into_iter()
            .map(|item| {
                let (item, inner) = item.unmark_deep();
                marks |= inner;
                item
            })
            .collect();
        let items = crate::set::canonical(&element, items);
        Value::build(Type::set(element), Kind::Seq(items.into())).with_marks(marks)
    }

    /// Creates a map. Every element must have exactly the element type.
    #[must_use]
    pub fn map(element: Type, items: BTreeMap<Arc<str>, Value>) -> Value {
        debug_assert!(items.values().all(|i| i.ty == element), "map element of another type");
        Value::build(
            Type::map(element),
            Kind::Map(items.into_iter().collect::<Vec<_>>().into()),
        )
    }

    /// Creates a map from elements that are sorted by key.
    pub(crate) fn map_of_sorted(element: Type, items: Arc<[(Arc<str>, Value)]>) -> Value {
        debug_assert!(
            items.iter().all(|(_, i)| i.ty == element),
            "map element of another type"
        );
        debug_assert!(items.is_sorted_by(|(a, _), (b, _)| a < b), "map elements out of order");
        Value::build(Type::map(element), Kind::Map(items))
    }

    #[must_use]
    pub fn tuple(items: Vec<Value>) -> Value {
        let ty = Type::tuple(items.iter().map(|i| i.ty.clone()));
        Value::build(ty, Kind::Seq(items.into()))
    }

    /// Creates an object; the last of two attributes with one name counts.
    pub fn object<N: Into<Arc<str>>>(attributes: impl IntoIterator<Item = (N, Value)>) -> Value {
        let sorted: BTreeMap<Arc<str>, Value> = attributes.into_iter().map(|(n, v)| (n.into(), v)).collect();
        let ty = ObjectType::new(sorted.iter().map(|(name, v)| ObjectAttribute {
            name: name.clone(),
            ty: v.ty.clone(),
            optional: false,
        }));
        Value::build(
            Type::Object(Arc::new(ty)),
            Kind::Seq(sorted.into_values().collect::<Vec<_>>().into()),
        )
    }

    /// Creates an object of type `ty`, from attribute values in the order of the type's attributes.
    ///
    /// If an attribute's type is dynamic, the value's own type replaces it in the type of the object.
    #[must_use]
    pub fn object_of(ty: &Arc<ObjectType>, values: Vec<Value>) -> Value {
        debug_assert_eq!(ty.len(), values.len(), "object with missing attributes");
        // Usually the value has the type already, which is shared with other objects.
        let same = ty
            .attributes()
            .iter()
            .zip(&values)
            .all(|(a, v)| !a.optional && a.ty == v.ty);
        let ty = match same {
            true => ty.clone(),
            false => ty.with_types(values.iter().map(|v| &v.ty)),
        };
        Value::build(Type::Object(ty), Kind::Seq(values.into()))
    }

    /// Creates the object without attributes.
    #[must_use]
    pub fn empty_object() -> Value {
        Value::build(Type::empty_object(), Kind::Seq(Arc::new([])))
    }

    /// Creates the tuple without elements.
    #[must_use]
    pub fn empty_tuple() -> Value {
        Value::tuple(Vec::new())
    }

    // ---- type and state ----------------------------------------------------------------------------------------

    #[must_use]
    pub fn ty(&self) -> &Type {
        &self.ty
    }

    /// Returns the content, regardless of marks.
    #[must_use]
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Returns the marks of the value itself.
    #[must_use]
    pub fn marks(&self) -> Marks {
        self.marks
    }

    /// Returns the marks of the value itself and of everything inside.
    #[must_use]
    pub fn deep_marks(&self) -> Marks {
        self.deep_marks
    }

    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self.kind, Kind::Null)
    }

    /// Returns true if the value itself is known (its elements may not be).
    #[must_use]
    pub fn is_known(&self) -> bool {
        !matches!(self.kind, Kind::Unknown(_))
    }

    /// Returns true if the value and everything inside is known.
    #[must_use]
    pub fn is_wholly_known(&self) -> bool {
        !self.deep_unknown
    }

    /// Returns true if the value is known and not null.
    #[must_use]
    pub fn is_present(&self) -> bool {
        !matches!(self.kind, Kind::Unknown(_) | Kind::Null)
    }

    /// Returns true if the value is certainly not null, known or not.
    #[must_use]
    pub fn is_certainly_not_null(&self) -> bool {
        match &self.kind {
            Kind::Null => false,
            Kind::Unknown(r) => r.as_ref().is_some_and(|r| r.not_null),
            _ => true,
        }
    }

    /// Returns the refinements of an unknown value.
    #[must_use]
    pub fn refinements(&self) -> Option<&Refinements> {
        match &self.kind {
            Kind::Unknown(r) => r.as_deref(),
            _ => None,
        }
    }

    // ---- content ----------------------------------------------------------------------------------------------

    /// Returns the text of a known, non-null string.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match &self.kind {
            Kind::String(s) => Some(s),
            _ => None,
        }
    }

    /// Returns the shared text of a known, non-null string.
    #[must_use]
    pub fn as_arc_str(&self) -> Option<&Arc<str>> {
        match &self.kind {
            Kind::String(s) => Some(s),
            _ => None,
        }
    }

    /// Returns the content of a known, non-null bool.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match &self.kind {
            Kind::Bool(b) => Some(*b),
            _ => None,
        }
    }

    /// Returns the content of a known, non-null number.
    #[must_use]
    pub fn as_number(&self) -> Option<&Number> {
        match &self.kind {
            Kind::Number(n) => Some(n),
            _ => None,
        }
    }

    /// Returns the elements of a known, non-null list, set or tuple. They do not carry the marks of the value itself.
    #[must_use]
    pub fn as_seq(&self) -> Option<&[Value]> {
        match (&self.kind, &self.ty) {
            (Kind::Seq(items), Type::List(_) | Type::Set(_) | Type::Tuple(_)) => Some(items),
            _ => None,
        }
    }

    /// Returns the elements of a known, non-null map or object, sorted by name. They do not carry the marks of the
    /// value itself.
    pub fn entries(&self) -> Option<impl Iterator<Item = (&Arc<str>, &Value)>> {
        // Slices of names and values, or of pairs, so that one iterator type serves both.
        type Parts<'a> = (&'a [ObjectAttribute], &'a [Value], &'a [(Arc<str>, Value)]);
        let (names, values, pairs): Parts<'_> = match (&self.kind, &self.ty) {
            (Kind::Seq(values), Type::Object(o)) => (o.attributes(), values, &[]),
            (Kind::Map(pairs), _) => (&[], &[], pairs),
            _ => return None,
        };
        Some(
            names
                .iter()
                .map(|a| &a.name)
                .zip(values)
                .chain(pairs.iter().map(|(k, v)| (k, v))),
        )
    }

    /// Returns an attribute of a known, non-null object, or an element of a known, non-null map.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        match (&self.kind, &self.ty) {
            (Kind::Seq(values), Type::Object(o)) => o.index_of(name).and_then(|i| values.get(i)),
            (Kind::Map(pairs), _) => pairs
                .binary_search_by(|(k, _)| (**k).cmp(name))
                .ok()
                .map(|i| &pairs[i].1),
            _ => None,
        }
    }

    /// Returns the number of elements or attributes of a known, non-null collection, tuple or object.
    #[must_use]
    pub fn len(&self) -> Option<usize> {
        match &self.kind {
            Kind::Seq(items) => Some(items.len()),
            Kind::Map(items) => Some(items.len()),
            _ => None,
        }
    }

    /// Returns true for a known, non-null collection, tuple or object without elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }

    /// Adds refinements to an unknown value; see [`Value::unknown_refined`]. A known value is returned unchanged.
    #[must_use]
    pub fn refine(self, more: &Refinements) -> Value {
        let Kind::Unknown(known) = &self.kind else { return self };
        let known = known.as_deref().cloned().unwrap_or_default().merge(more);
        Value::unknown_refined(self.ty, known).with_marks(self.marks)
    }

    /// Adds the refinement "not null" to an unknown value. A null stays null.
    #[must_use]
    pub fn refine_not_null(self) -> Value {
        if self.is_known() || self.is_certainly_not_null() {
            self
        } else {
            self.refine(&Refinements::not_null())
        }
    }

    // ---- marks ------------------------------------------------------------------------------------------------

    /// Adds marks to the value itself.
    #[must_use]
    pub fn with_marks(mut self, marks: Marks) -> Value {
        self.marks |= marks;
        self.deep_marks |= marks;
        self
    }

    /// Separates the value from its own marks. Marks inside stay.
    #[must_use]
    pub fn unmark(self) -> (Value, Marks) {
        if self.marks.is_empty() {
            return (self, Marks::NONE);
        }
        let marks = self.marks;
        (Value::build(self.ty, self.kind), marks)
    }

    /// Separates the value from all marks, on it or inside. Takes constant time if there are none.
    #[must_use]
    pub fn unmark_deep(self) -> (Value, Marks) {
        let marks = self.deep_marks;
        if marks.is_empty() {
            return (self, marks);
        }
        let kind = match self.kind {
            Kind::Seq(items) => Kind::Seq(items.iter().map(|v| v.clone().unmark_deep().0).collect()),
            Kind::Map(items) => Kind::Map(
                items
                    .iter()
                    .map(|(k, v)| (k.clone(), v.clone().unmark_deep().0))
                    .collect(),
            ),
            other => other,
        };
        (Value::build(self.ty, kind), marks)
    }

    /// Replaces each part of the value by the result of `f` (one level). Types of elements of lists, sets and maps must
    /// not change; those of tuples and objects may.
    #[must_use]
    pub fn map_parts(&self, mut f: impl FnMut(Part<'_>, &Value) -> Value) -> Value {
        let out = match (&self.kind, &self.ty) {
            (Kind::Seq(items), Type::Object(o)) => Value::object_of(
                o,
                o.attributes()
                    .iter()
                    .zip(items.iter())
                    .map(|(a, v)| f(Part::Attribute(&a.name), v))
                    .collect(),
            ),
            // Converted elements may be equal, and may have another order.
            (Kind::Seq(items), Type::Set(e)) => {
                Value::set((**e).clone(), items.iter().map(|v| f(Part::SetElement, v)).collect())
            }
            (Kind::Seq(items), Type::Tuple(_)) => {
                Value::tuple(items.iter().enumerate().map(|(i, v)| f(Part::Index(i), v)).collect())
            }
            (Kind::Seq(items), ty) => Value::build(
                ty.clone(),
                Kind::Seq(items.iter().enumerate().map(|(i, v)| f(Part::Index(i), v)).collect()),
            ),
            (Kind::Map(items), ty) => Value::build(
                ty.clone(),
                Kind::Map(items.iter().map(|(k, v)| (k.clone(), f(Part::Key(k), v))).collect()),
            ),
            _ => return self.clone(),
        };
        out.with_marks(self.marks)
    }
}

/// Position of a part in its value, for [`Value::map_parts`].
#[derive(Clone, Copy, Debug)]
pub enum Part<'a> {
    /// Name of an object's attribute.
    Attribute(&'a Arc<str>),
    /// Key of a map's element.
    Key(&'a Arc<str>),
    /// Position in a list or tuple.
    Index(usize),
    /// An element of a set, which has no position.
    SetElement,
}

impl std::fmt::Debug for Value {
    /// Formats for tests and logs. The content of a marked value is never printed, because it may be sensitive.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.marks.is_empty() {
            return write!(f, "<{:?} {}>", self.marks, self.ty);
        }
        match &self.kind {
            Kind::Unknown(None) => write!(f, "unknown({})", self.ty),
            Kind::Unknown(Some(r)) => write!(f, "unknown({}, {r:?})", self.ty),
            Kind::Null => write!(f, "null({})", self.ty),
            Kind::Bool(b) => write!(f, "{b}"),
            Kind::Number(n) => write!(f, "{n}"),
            Kind::String(s) => write!(f, "{s:?}"),
            Kind::Seq(items) => match &self.ty {
                Type::Object(o) => f
                    .debug_map()
                    .entries(o.attributes().iter().map(|a| &a.name).zip(items.iter()))
                    .finish(),
                Type::Set(_) => {
                    f.write_str("set")?;
                    f.debug_list().entries(items.iter()).finish()
                }
                Type::List(_) => {
                    f.write_str("list")?;
                    f.debug_list().entries(items.iter()).finish()
                }
                _ => f.debug_list().entries(items.iter()).finish(),
            },
            Kind::Map(items) => {
                f.write_str("map")?;
                f.debug_map().entries(items.iter().map(|(k, v)| (k, v))).finish()
            }
        }
    }
}

impl From<&str> for Value {
    fn from(s: &str) -> Value {
        Value::string(s)
    }
}

impl From<String> for Value {
    fn from(s: String) -> Value {
        Value::string(s)
    }
}

impl From<bool> for Value {
    fn from(b: bool) -> Value {
        Value::bool(b)
    }
}

impl From<i64> for Value {
    fn from(n: i64) -> Value {
        Value::number(n)
    }
}
