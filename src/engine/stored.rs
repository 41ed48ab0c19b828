//! Serialized form of those parts of a plan whose types belong to other crates: values, paths, addresses.
//!
//! The types of this crate derive serde. A field of a type from another crate has `#[serde(with = "stored")]`, which compiles only if the
//! type implements [`Stored`]. Addresses are stored as strings. Values are stored as msgpack with their type, in base64, and their marks as
//! separate lists of paths.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::{self, Display};
use std::sync::Arc;

use addrs::{AbsActionInstance, AbsProviderConfig, AbsResourceInstance, Target};
use config::{ActionEvent, ActionFailure};
use cty::{Marks, Path, Step, Type, Value};
use data_encoding::BASE64;
use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use state::{CheckResult, CheckStatus, CheckedObject};

pub(crate) fn serialize<T: Stored, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    value.store(serializer)
}

pub(crate) fn deserialize<'de, T: Stored, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::load(deserializer)
}

/// A type with a serialized form in plans.
pub(crate) trait Stored: Sized {
    fn store<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error>;
    fn load<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error>;
}

/// A type whose serialized form is a string.
trait Text: Sized {
    type Error: Display;
    fn text(&self) -> String;
    fn parse(text: &str) -> Result<Self, Self::Error>;
}

/// Error for a string that is not one of the keywords of a type.
struct UnknownWord(String);

impl Display for UnknownWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not one of the possible values", self.0)
    }
}

fn by_word<T: Copy>(words: &[(&str, T)], text: &str) -> Result<T, UnknownWord> {
    let found = words.iter().find(|(word, _)| *word == text);
    found
        .map(|(_, value)| *value)
        .ok_or_else(|| UnknownWord(text.to_owned()))
}

macro_rules! addresses {
    ($($ty:ty: $parse:path),*) => {$(
        impl Text for $ty {
            type Error = addrs::parse::ParseError;

            fn text(&self) -> String {
                self.to_string()
            }

            fn parse(text: &str) -> Result<Self, Self::Error> {
                $parse(text)
            }
        }
    )*};
}

addresses!(
    AbsResourceInstance: addrs::parse::resource_instance,
    AbsProviderConfig: addrs::parse::provider_config,
    AbsActionInstance: addrs::parse::action,
    Target: addrs::parse::target
);

macro_rules! plain_texts {
    ($($ty:ty),*) => {$(
        impl Text for $ty {
            type Error = Infallible;

            fn text(&self) -> String {
                self.to_string()
            }

            fn parse(text: &str) -> Result<Self, Self::Error> {
                Ok(text.into())
            }
        }
    )*};
}

plain_texts!(String, Arc<str>);

impl Text for ActionEvent {
    type Error = UnknownWord;

    fn text(&self) -> String {
        self.keyword().to_owned()
    }

    fn parse(text: &str) -> Result<ActionEvent, UnknownWord> {
        by_word(&ActionEvent::ALL, text)
    }
}

impl Text for ActionFailure {
    type Error = UnknownWord;

    fn text(&self) -> String {
        let word = match self {
            ActionFailure::Halt => "halt",
            ActionFailure::Taint => "taint",
            ActionFailure::Continue => "continue",
        };
        word.to_owned()
    }

    fn parse(text: &str) -> Result<ActionFailure, UnknownWord> {
        let all = [ActionFailure::Halt, ActionFailure::Taint, ActionFailure::Continue];
        let found = all.into_iter().find(|failure| failure.text() == text);
        found.ok_or_else(|| UnknownWord(text.to_owned()))
    }
}

impl Text for CheckStatus {
    type Error = UnknownWord;

    fn text(&self) -> String {
        self.as_str().to_owned()
    }

    fn parse(text: &str) -> Result<CheckStatus, UnknownWord> {
        let all = [
            CheckStatus::Pass,
            CheckStatus::Fail,
            CheckStatus::Error,
            CheckStatus::Unknown,
        ];
        by_word(&all.map(|status| (status.as_str(), status)), text)
    }
}

impl<T: Text> Stored for T {
    fn store<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }

    fn load<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

/// Wrapper that serializes a reference in its stored form.
struct Ref<'a, T>(&'a T);

impl<T: Stored> Serialize for Ref<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.store(serializer)
    }
}

/// Wrapper that deserializes a value from its stored form.
struct Own<T>(T);

impl<T: Stored> Serialize for Own<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.store(serializer)
    }
}

impl<'de, T: Stored> Deserialize<'de> for Own<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::load(deserializer).map(Own)
    }
}

impl<T: Stored> Stored for Vec<T> {
    fn store<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter().map(Ref))
    }

    fn load<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let items = Vec::<Own<T>>::deserialize(deserializer)?;
        Ok(items.into_iter().map(|item| item.0).collect())
    }
}

impl<T: Stored> Stored for Option<T> {
    fn store<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.as_ref().map(Ref).serialize(serializer)
    }

    fn load<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Option::<Own<T>>::deserialize(deserializer)?.map(|value| value.0))
    }
}

impl<T: Stored> Stored for Arc<T> {
    fn store<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        T::store(self, serializer)
    }

    fn load<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::load(deserializer).map(Arc::new)
    }
}

impl<A: Stored, B: Stored> Stored for (A, B) {
    fn store<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (Ref(&self.0), Ref(&self.1)).serialize(serializer)
    }

    fn load<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (a, b) = <(Own<A>, Own<B>)>::deserialize(deserializer)?;
        Ok((a.0, b.0))
    }
}

impl<K: Text + Ord, V: Stored> Stored for BTreeMap<K, V> {
    fn store<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(key, value)| (key.text(), Ref(value))))
    }

    fn load<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let entries = BTreeMap::<String, Own<V>>::deserialize(deserializer)?;
        let load = |(key, value): (String, Own<V>)| Ok((K::parse(&key).map_err(D::Error::custom)?, value.0));
        entries.into_iter().map(load).collect()
    }
}

/// Implements [`Stored`] for a type of this crate by its serde form, so that it can be used inside collections and pointers.
macro_rules! derived {
    ($ty:ty) => {
        impl $crate::stored::Stored for $ty {
            fn store<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serde::Serialize::serialize(self, serializer)
            }

            fn load<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                serde::Deserialize::deserialize(deserializer)
            }
        }
    };
}

pub(crate) use derived;

/// Serialized form of values without marks: msgpack that includes the type, in base64.
pub(crate) mod unmarked {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(value: &Value, serializer: S) -> Result<S::Ok, S::Error> {
        // Encoded as a dynamic value, which includes its type, because plans are read without schemas.
        let bytes = cty::msgpack::encode(value, &Type::Dynamic).map_err(S::Error::custom)?;
        serializer.serialize_str(&BASE64.encode(&bytes))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        let bytes = bytes::deserialize(deserializer)?;
        cty::msgpack::decode(&bytes, &Type::Dynamic).map_err(D::Error::custom)
    }
}

/// Bytes in base64.
pub(crate) mod bytes {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64.encode(bytes))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        BASE64.decode(text.as_bytes()).map_err(D::Error::custom)
    }
}

/// Form of a value that has no marks, or whose marks are stored elsewhere.
#[derive(Serialize, Deserialize)]
pub(crate) struct Unmarked(#[serde(with = "unmarked")] pub(crate) Value);

impl Unmarked {
    pub(crate) fn new(value: &Value) -> Unmarked {
        Unmarked(value.clone().unmark_deep().0)
    }
}

/// Form of a value with its marks. Deprecation marks are not stored, because planning has reported them.
#[derive(Serialize, Deserialize)]
struct MarkedForm {
    value: Unmarked,
    // Omitted if there are no marks, as in most values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sensitive: Vec<Own<Path>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ephemeral: Vec<Own<Path>>,
}

impl Stored for Value {
    fn store<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let marked = self.paths_with_marks();
        let paths = |mark: Marks| {
            let with = marked.iter().filter(|(_, marks)| marks.contains(mark));
            with.map(|(path, _)| Own(path.clone())).collect()
        };
        MarkedForm {
            value: Unmarked::new(self),
            sensitive: paths(Marks::SENSITIVE),
            ephemeral: paths(Marks::EPHEMERAL),
        }
        .serialize(serializer)
    }

    fn load<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let MarkedForm {
            value: Unmarked(value),
            sensitive,
            ephemeral,
        } = MarkedForm::deserialize(deserializer)?;
        let with = |paths: Vec<Own<Path>>, mark: Marks| paths.into_iter().map(move |path| (path.0, mark));
        let marks: Vec<(Path, Marks)> = with(sensitive, Marks::SENSITIVE)
            .chain(with(ephemeral, Marks::EPHEMERAL))
            .collect();
        Ok(value.mark_paths(&marks))
    }
}

#[derive(Serialize, Deserialize)]
enum StepForm {
    #[serde(rename = "attr")]
    Attribute(String),
    #[serde(rename = "index")]
    Index(Unmarked),
}

impl Stored for Path {
    fn store<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|step| match step {
            Step::Attribute(name) => StepForm::Attribute(name.to_string()),
            Step::Index(key) => StepForm::Index(Unmarked::new(key)),
        }))
    }

    fn load<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let steps = Vec::<StepForm>::deserialize(deserializer)?.into_iter();
        let steps = steps.map(|step| match step {
            StepForm::Attribute(name) => Step::Attribute(name.into()),
            StepForm::Index(key) => Step::Index(key.0),
        });
        Ok(Path(steps.collect()))
    }
}

#[derive(Serialize, Deserialize)]
struct CheckForm {
    kind: String,
    address: String,
    status: Own<CheckStatus>,
    objects: Vec<Own<CheckedObject>>,
}

impl Stored for CheckResult {
    fn store<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // The result is destructured, so that a new field cannot be forgotten here.
        let CheckResult {
            object_kind,
            config_addr,
            status,
            objects,
        } = self;
        CheckForm {
            kind: object_kind.to_string(),
            address: config_addr.to_string(),
            status: Own(*status),
            objects: objects.iter().cloned().map(Own).collect(),
        }
        .serialize(serializer)
    }

    fn load<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let CheckForm {
            kind,
            address,
            status,
            objects,
        } = CheckForm::deserialize(deserializer)?;
        Ok(CheckResult {
            object_kind: kind.into(),
            config_addr: address.into(),
            status: status.0,
            objects: objects.into_iter().map(|object| object.0).collect(),
        })
    }
}

impl Stored for CheckedObject {
    fn store<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let CheckedObject {
            object_addr,
            status,
            failure_messages,
        } = self;
        (Ref(object_addr), Ref(status), Ref(failure_messages)).serialize(serializer)
    }

    fn load<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        type Form = (Own<Arc<str>>, Own<CheckStatus>, Own<Vec<Arc<str>>>);
        let (object_addr, status, failure_messages) = Form::deserialize(deserializer)?;
        Ok(CheckedObject {
            object_addr: object_addr.0,
            status: status.0,
            failure_messages: failure_messages.0,
        })
    }
}
