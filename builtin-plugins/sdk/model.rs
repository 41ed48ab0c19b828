//! Rust types for values of the configuration language, so that no plugin walks maps by hand.
//!
//! [`Cty`] ties a Rust type to a Terraform type. An [`Attr`] is known, null or unknown; [`Any`] is a value whose type is only known at run
//! time. A struct becomes a [`Model`] by [`#[derive(Model)]`](derive@crate::Model), or, in fewer lines, by [`model!`](crate::model!).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use cty::{Number, ObjectType, Step, Type, Value};

pub use crate::model_error::ModelError;
use crate::schema::shape::Member;
use crate::type_rules::{self, TypeRules};

/// Rust type that represents a Terraform type.
pub trait Cty: Sized {
    /// Returns the Terraform type that this Rust type represents.
    fn ty() -> Type;
    /// Converts a value of the Terraform type to this Rust type.
    fn from_cty(value: &Value) -> Result<Self, ModelError>;
    /// Converts this value to the Terraform type.
    fn to_cty(&self) -> Value;
    /// Returns the rules of the type itself, which hold for every attribute of it: see [`CustomType`](crate::CustomType).
    fn rules() -> TypeRules {
        TypeRules::default()
    }
}

/// A value that may be null or unknown.
///
/// A collection that is known but has an unknown element counts as unknown, unless its elements are of this type too: an
/// `Attr<Vec<String>>` is then [`Attr::Unknown`], an `Attr<Vec<Attr<String>>>` says which element it is.
///
/// ```
/// use monoform_sdk::Attr;
///
/// let name: Attr<String> = "Rex".into();
/// assert_eq!(name.as_str(), Some("Rex"));
/// assert_eq!(name.known().map(String::len), Some(3));
///
/// let absent: Attr<i64> = None.into();
/// assert!(absent.is_null() && !absent.is_unknown());
/// assert_eq!(absent.or(7), 7);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Attr<T> {
    /// A known value that is not null.
    Known(T),
    /// Null: the value is absent.
    #[default]
    Null,
    /// Not known before apply, because it is a result of this object or of another one.
    Unknown,
}

impl<T> Attr<T> {
    /// Returns the value if it is known and not null.
    pub fn known(&self) -> Option<&T> {
        match self {
            Attr::Known(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the value by move if it is known and not null.
    pub fn into_known(self) -> Option<T> {
        match self {
            Attr::Known(value) => Some(value),
            _ => None,
        }
    }

    /// Returns the value, or `other` if it is null or unknown.
    pub fn or(self, other: T) -> T {
        self.into_known().unwrap_or(other)
    }

    /// Returns true if the value is null.
    pub fn is_null(&self) -> bool {
        matches!(self, Attr::Null)
    }

    /// Returns true if the value is not known yet.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Attr::Unknown)
    }
}

impl Attr<String> {
    /// Returns the text if it is known and not null.
    pub fn as_str(&self) -> Option<&str> {
        self.known().map(String::as_str)
    }

    /// Returns the text; empty if it is null or unknown.
    pub fn text(&self) -> &str {
        self.as_str().unwrap_or_default()
    }
}

impl<T> From<T> for Attr<T> {
    fn from(value: T) -> Attr<T> {
        Attr::Known(value)
    }
}

impl<T> From<Option<T>> for Attr<T> {
    fn from(value: Option<T>) -> Attr<T> {
        value.map_or(Attr::Null, Attr::Known)
    }
}

impl From<&str> for Attr<String> {
    fn from(value: &str) -> Attr<String> {
        Attr::Known(value.to_owned())
    }
}

impl<T: Cty> Cty for Attr<T> {
    fn ty() -> Type {
        T::ty()
    }
    fn from_cty(value: &Value) -> Result<Attr<T>, ModelError> {
        if value.is_null() {
            Ok(Attr::Null)
        } else if value.is_known() {
            match T::from_cty(value) {
                // `T` cannot represent an unknown part, so the whole value counts as unknown.
                Err(error) if error.unknown => Ok(Attr::Unknown),
                other => other.map(Attr::Known),
            }
        } else {
            Ok(Attr::Unknown)
        }
    }
    fn to_cty(&self) -> Value {
        match self {
            Attr::Known(value) => value.to_cty(),
            Attr::Null => Value::null(T::ty()),
            Attr::Unknown => Value::unknown(T::ty()),
        }
    }
    fn rules() -> TypeRules {
        T::rules()
    }
}

/// A value of any type: known, null or unknown.
///
/// ```
/// use monoform_sdk::Any;
/// use monoform_sdk::cty::Value;
///
/// let any = Any(Value::tuple(vec!["a".into(), 1.into()]));
/// assert_eq!(any.0.as_seq().map(<[Value]>::len), Some(2));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Any(pub Value);

impl Default for Any {
    fn default() -> Any {
        Any(Value::null(Type::Dynamic))
    }
}

impl Cty for Any {
    fn ty() -> Type {
        Type::Dynamic
    }
    fn from_cty(value: &Value) -> Result<Any, ModelError> {
        Ok(Any(value.clone()))
    }
    fn to_cty(&self) -> Value {
        self.0.clone()
    }
}

/// The elements of a set. Their order and repetitions are ignored: sets with the same elements are equal.
///
/// ```
/// use monoform_sdk::Set;
///
/// assert_eq!(Set(vec![1, 2]), Set(vec![2, 1, 2]));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Set<T>(pub Vec<T>);

impl<T: PartialEq> PartialEq for Set<T> {
    fn eq(&self, other: &Set<T>) -> bool {
        let within = |some: &[T], all: &[T]| some.iter().all(|item| all.contains(item));
        // The order is usually the same, so the sets are first compared in one pass.
        self.0 == other.0 || within(&self.0, &other.0) && within(&other.0, &self.0)
    }
}

fn wrong(wanted: &str, value: &Value) -> ModelError {
    if value.is_null() {
        ModelError::new(format!("{wanted} is required, but the value is null"))
    } else if value.is_known() {
        ModelError::new(format!("{wanted} is required, but the value is of type {}", value.ty()))
    } else {
        ModelError {
            unknown: true,
            ..ModelError::new(format!("{wanted} is required, but the value is unknown"))
        }
    }
}

impl Cty for String {
    fn ty() -> Type {
        Type::String
    }
    fn from_cty(value: &Value) -> Result<String, ModelError> {
        value
            .as_str()
            .map(str::to_owned)
            .ok_or_else(|| wrong("a string", value))
    }
    fn to_cty(&self) -> Value {
        Value::string(self)
    }
}

impl Cty for bool {
    fn ty() -> Type {
        Type::Bool
    }
    fn from_cty(value: &Value) -> Result<bool, ModelError> {
        value.as_bool().ok_or_else(|| wrong("a bool", value))
    }
    fn to_cty(&self) -> Value {
        Value::bool(*self)
    }
}

impl Cty for i64 {
    fn ty() -> Type {
        Type::Number
    }
    fn from_cty(value: &Value) -> Result<i64, ModelError> {
        let number = value.as_number().ok_or_else(|| wrong("a number", value))?;
        // Terraform's numbers have a mantissa of 512 bits. A number that does not fit is refused, because rounding would change it.
        number
            .to_i64()
            .ok_or_else(|| ModelError::new(format!("{number} is not a whole number of 64 bits")))
    }
    fn to_cty(&self) -> Value {
        Value::number(*self)
    }
}

impl Cty for Number {
    fn ty() -> Type {
        Type::Number
    }
    fn from_cty(value: &Value) -> Result<Number, ModelError> {
        value.as_number().cloned().ok_or_else(|| wrong("a number", value))
    }
    fn to_cty(&self) -> Value {
        Value::number(self.clone())
    }
}

fn elements<T: Cty>(value: &Value, what: &str) -> Result<Vec<T>, ModelError> {
    let items = value.as_seq().ok_or_else(|| wrong(what, value))?;
    items
        .iter()
        .enumerate()
        .map(|(i, item)| T::from_cty(item).map_err(|e| e.under(Step::Index(Value::number(i as i64)))))
        .collect()
}

impl<T: Cty> Cty for Vec<T> {
    fn ty() -> Type {
        Type::list(T::ty())
    }
    fn from_cty(value: &Value) -> Result<Vec<T>, ModelError> {
        elements(value, "a list")
    }
    fn to_cty(&self) -> Value {
        let mut items: Vec<Value> = self.iter().map(Cty::to_cty).collect();
        match element_type(T::ty(), &mut items) {
            Some(element) => Value::list(element, items),
            None => Value::tuple(items),
        }
    }
    fn rules() -> TypeRules {
        TypeRules::elements(T::rules())
    }
}

impl<T: Cty> Cty for Set<T> {
    fn ty() -> Type {
        Type::set(T::ty())
    }
    fn from_cty(value: &Value) -> Result<Set<T>, ModelError> {
        elements(value, "a set").map(Set)
    }
    fn to_cty(&self) -> Value {
        let mut items: Vec<Value> = self.0.iter().map(Cty::to_cty).collect();
        match element_type(T::ty(), &mut items) {
            Some(element) => Value::set(element, items),
            None => Value::tuple(items),
        }
    }
    fn rules() -> TypeRules {
        TypeRules::elements(T::rules())
    }
}

impl<T: Cty> Cty for BTreeMap<String, T> {
    fn ty() -> Type {
        Type::map(T::ty())
    }
    fn from_cty(value: &Value) -> Result<BTreeMap<String, T>, ModelError> {
        let entries = value.entries().ok_or_else(|| wrong("a map", value))?;
        entries
            .map(|(key, item)| match T::from_cty(item) {
                Ok(item) => Ok((key.to_string(), item)),
                Err(e) => Err(e.under(Step::Index(Value::shared_string(key.clone())))),
            })
            .collect()
    }
    fn to_cty(&self) -> Value {
        let mut items: Vec<Value> = self.values().map(Cty::to_cty).collect();
        let element = element_type(T::ty(), &mut items);
        let entries = self.keys().map(|key| Arc::from(key.as_str())).zip(items);
        match element {
            Some(element) => Value::map(element, entries.collect()),
            None => Value::object::<Arc<str>>(entries),
        }
    }
    fn rules() -> TypeRules {
        TypeRules::elements(T::rules())
    }
}

/// Returns the type of a collection's elements: the declared type or, if that is the dynamic type ([`Any`]) or contains it, the common type
/// of the elements. `None` if the elements have different types: no collection can hold them, and `wire::encode` reports that. Also `None`
/// for blocks with an attribute of the dynamic type: they form a tuple or an object in any case, as in the protocol.
fn element_type(declared: Type, items: &mut [Value]) -> Option<Type> {
    if !declared.has_dynamic() {
        return Some(declared);
    }
    // The elements of such blocks may have attributes of different types.
    if declared.as_object().is_some() {
        return None;
    }
    let open = |item: &Value| *item.ty() == Type::Dynamic;
    let Some(found) = items.iter().find(|item| !open(item)).map(|item| item.ty().clone()) else {
        return Some(declared);
    };
    // Null and unknown elements do not determine a type.
    for item in items.iter_mut().filter(|item| open(item)) {
        *item = match item.is_known() {
            true => Value::null(found.clone()),
            false => Value::unknown(found.clone()),
        };
    }
    items.iter().all(|item| *item.ty() == found).then_some(found)
}

/// Struct that represents a block. Only the derive macro implements this trait.
pub trait Model: Cty + Clone + Default + Send + Sync + 'static {
    /// Returns the attributes and nested blocks, in the order of declaration.
    fn members() -> Vec<Member>;
    /// Returns the doc comment of the struct: the purpose of a block with this content.
    fn description() -> &'static str {
        ""
    }
    /// Returns the value of the attribute or block of this name; `None` if there is none.
    fn field(&self, name: &str) -> Option<Value>;

    /// Builds a value of the object type `ty`, which must be that of this block, from the fields of this struct.
    fn to_object(&self, ty: &Arc<ObjectType>) -> Value {
        let values = ty
            .attributes()
            .iter()
            .map(|a| self.field(&a.name).unwrap_or_else(|| Value::null(a.ty.clone())))
            .collect();
        Value::object_of(ty, values)
    }
}

/// Model of a provider or block that has neither arguments nor nested blocks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Empty {}

impl Cty for Empty {
    fn ty() -> Type {
        Type::empty_object()
    }
    fn from_cty(_value: &Value) -> Result<Empty, ModelError> {
        Ok(Empty {})
    }
    fn to_cty(&self) -> Value {
        Value::empty_object()
    }
}

impl Model for Empty {
    fn members() -> Vec<Member> {
        Vec::new()
    }
    fn field(&self, _name: &str) -> Option<Value> {
        None
    }
}

/// Declares a struct and its schema in one place, in few lines.
///
/// ```
/// use monoform_sdk::schema::{computed, optional};
/// use monoform_sdk::{Attr, model};
///
/// model! {
///     /// A name made of words.
///     pub struct Pet {
///         /// The number of words.
///         pub length: Attr<i64> = optional().computed().default(2i64).requires_replace(),
///         /// The name.
///         pub id: Attr<String> = computed().keep(),
///     }
/// }
/// ```
///
/// The expression after `=` is the content of `#[member(…)]`, which [`Model`](derive@crate::Model) documents. A name that Rust does not
/// allow for a field is set by `#[name = "self"]` after the comment.
#[macro_export]
macro_rules! model {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident {
            $( $(#[doc = $doc:literal])* $(#[name = $rename:literal])? $fvis:vis $field:ident : $ty:ty = $member:expr ),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Default, PartialEq, $crate::Model)]
        $vis struct $name {
            $( $(#[doc = $doc])* #[member($(name = $rename,)? $member)] $fvis $field: $ty, )*
        }
    };
}

/// Returns the type of an object with these attributes. A part without a name is a flattened model, all of whose attributes are included.
#[doc(hidden)]
#[must_use]
pub fn object_type(parts: Vec<(Option<&'static str>, Type)>) -> Type {
    let mut all: Vec<(Arc<str>, Type)> = Vec::with_capacity(parts.len());
    for (name, ty) in parts {
        match (name, ty.as_object()) {
            (Some(name), _) => all.push((name.into(), ty)),
            (None, Some(object)) => all.extend(object.attributes().iter().map(|a| (a.name.clone(), a.ty.clone()))),
            (None, None) => {}
        }
    }
    Type::object(all)
}

/// Builds an object with these attributes. A part without a name is a flattened model, all of whose attributes are included.
#[doc(hidden)]
#[must_use]
pub fn object(parts: Vec<(Option<&'static str>, Value)>) -> Value {
    let mut all: Vec<(Arc<str>, Value)> = Vec::with_capacity(parts.len());
    for (name, value) in parts {
        match name {
            Some(name) => all.push((name.into(), value)),
            None => all.extend(
                value
                    .entries()
                    .into_iter()
                    .flatten()
                    .map(|(k, v)| (k.clone(), v.clone())),
            ),
        }
    }
    Value::object(all)
}

/// Returns the rules of an object with these attributes. A part without a name is a flattened model, all of whose attributes are included.
#[doc(hidden)]
#[must_use]
pub fn object_rules(parts: Vec<(Option<&'static str>, TypeRules)>) -> TypeRules {
    type_rules::of_object(parts)
}

/// Builds the error for a text that is not the name of a variant of an enum.
#[doc(hidden)]
#[must_use]
pub fn not_one_of(names: &[&str], text: &str) -> ModelError {
    let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    ModelError::new(format!("it must be one of {}, not {text:?}", names.join(", ")))
}

/// Adds a field to `Debug` output. The value of a sensitive or write-only field is replaced by `(sensitive)`.
#[doc(hidden)]
pub fn show(out: &mut fmt::DebugStruct<'_, '_>, members: &[Member], name: &str, value: &dyn fmt::Debug) {
    if members.iter().any(|m| m.name() == name && m.is_secret()) {
        out.field(name, &format_args!("(sensitive)"));
    } else {
        out.field(name, value);
    }
}

/// Reads the attribute of this name from an object; a missing one is null.
#[doc(hidden)]
pub fn read<T: Cty>(object: &Value, name: &'static str) -> Result<T, ModelError> {
    let result = match object.get(name) {
        Some(value) => T::from_cty(value),
        None if object.is_present() => T::from_cty(&Value::null(T::ty())),
        None => return Err(wrong("an object", object)),
    };
    result.map_err(|e| e.under(Step::Attribute(name.into())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Diagnostics;

    #[test]
    fn sets_are_equal_in_any_order() {
        assert_eq!(Set(vec![1, 2]), Set(vec![2, 1]));
        assert_eq!(Set(vec![1, 1, 2]), Set(vec![2, 1]));
        assert_ne!(Set(vec![1, 2]), Set(vec![1, 3]));
        assert_ne!(Set(vec![1]), Set(vec![1, 2]));
        assert_ne!(Set(vec![1, 2]), Set(vec![1]));
        assert_eq!(Set(vec![2_i64, 1]).to_cty(), Set(vec![1_i64, 2]).to_cty());
    }

    #[test]
    fn an_unknown_value_is_no_bug_of_the_plugin() {
        let unknown = Value::unknown(Vec::<i64>::ty());
        let errors: Diagnostics = Vec::<i64>::from_cty(&unknown).unwrap_err().into();
        assert_eq!(errors.0[0].summary, "Value not known yet");
        let wrong: Diagnostics = Vec::<i64>::from_cty(&"text".into()).unwrap_err().into();
        assert_eq!(wrong.0[0].summary, "Value Conversion Error");
    }
}
