//! Conversion between the text of a state, in version 4 of the format, and the rows of the tables.
//!
//! The text is split by the names of JSON members. Members without a column are stored unchanged, so that fields of later versions of the
//! program are not lost. The texts of values are not changed, either: [`Document::render`] returns exactly the bytes that
//! [`Document::parse`] received, if the program has written them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;

use super::json::{Json, indented};

/// Additional member of the head, for resources without instances, which have no rows.
const EMPTY_RESOURCES: &str = "empty_resources";

/// Reason why a text is not a state that can be stored in the tables, as the end of a sentence.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DocumentError {
    #[error("it is encrypted, and encrypted attributes cannot be kept in columns")]
    Encrypted,
    #[error("its row was deleted at once by another program, or by a trigger. Run the command again")]
    Vanished,
    #[error("its format has the version {0}, and not 4")]
    Version(String),
    #[error("{place}: {why}")]
    Content { place: String, why: String },
}

pub(super) fn content(place: impl Into<String>, why: impl std::fmt::Display) -> DocumentError {
    DocumentError::Content {
        place: place.into(),
        why: why.to_string(),
    }
}

/// Members of a JSON object in the order of the text, each with its compact text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rest(Vec<(String, Json)>);

impl Rest {
    fn parse(text: &str, place: &str) -> Result<Rest, DocumentError> {
        let members: RawMembers = serde_json::from_str(text).map_err(|e| content(place, e))?;
        Ok(Rest(members.0))
    }

    fn take(&mut self, name: &str) -> Option<Json> {
        let at = self.0.iter().position(|(found, _)| found == name)?;
        Some(self.0.remove(at).1)
    }

    fn take_string(&mut self, name: &str, place: &str) -> Result<String, DocumentError> {
        match self.take(name) {
            None => Ok(String::new()),
            Some(text) => serde_json::from_str::<Option<String>>(text.as_str())
                .map(Option::unwrap_or_default)
                .map_err(|e| content(format!("{place}: {name}"), e)),
        }
    }

    fn take_number(&mut self, name: &str, place: &str) -> Result<i64, DocumentError> {
        match self.take(name) {
            None => Ok(0),
            Some(text) => serde_json::from_str(text.as_str()).map_err(|e| content(format!("{place}: {name}"), e)),
        }
    }

    fn take_bool(&mut self, name: &str, place: &str) -> Result<bool, DocumentError> {
        match self.take(name) {
            None => Ok(false),
            Some(text) => serde_json::from_str(text.as_str()).map_err(|e| content(format!("{place}: {name}"), e)),
        }
    }

    /// Renders the members as a JSON object.
    pub fn to_text(&self) -> String {
        let mut out = Writer::new();
        for (name, text) in &self.0 {
            out.member(name, text.as_str());
        }
        out.end()
    }

    /// Parses the result of [`Rest::to_text`].
    pub fn from_text(text: &str) -> Result<Rest, DocumentError> {
        Rest::parse(text, "stored members")
    }
}

/// Members in their order, including duplicates. Their texts are borrowed during parsing.
struct RawMembers(Vec<(String, Json)>);

impl<'de> serde::Deserialize<'de> for RawMembers {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<RawMembers, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = RawMembers;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<RawMembers, A::Error> {
                let mut members = Vec::new();
                while let Some((name, text)) = map.next_entry::<String, &RawValue>()? {
                    members.push((name, Json::compact(text.get())));
                }
                Ok(RawMembers(members))
            }
        }
        from.deserialize_map(Visitor)
    }
}

/// Writer of one JSON object.
struct Writer(String);

impl Writer {
    fn new() -> Writer {
        Writer("{".to_owned())
    }

    fn member(&mut self, name: &str, text: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.0.push_str(Json::string(name).as_str());
        self.0.push(':');
        self.0.push_str(text);
    }

    fn text(&mut self, name: &str, text: &str) {
        self.member(name, Json::string(text).as_str());
    }

    fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// Renders texts as the elements of a JSON array.
pub(super) fn array<'t>(texts: impl IntoIterator<Item = &'t str>) -> String {
    let texts: Vec<&str> = texts.into_iter().collect();
    format!("[{}]", texts.join(","))
}

/// Splits a JSON array into the texts of its elements. `null` counts as an empty array.
pub(super) fn elements(text: &str, place: &str) -> Result<Vec<Box<RawValue>>, DocumentError> {
    let list: Option<Vec<Box<RawValue>>> = serde_json::from_str(text).map_err(|e| content(place, e))?;
    Ok(list.unwrap_or_default())
}

/// State, split into its head, outputs and objects.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Document {
    pub head: Head,
    pub outputs: BTreeMap<String, Output>,
    pub objects: BTreeMap<Key, Object>,
}

/// Fields of a state other than its outputs and objects.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Head {
    pub terraform_version: String,
    pub serial: i64,
    pub lineage: String,
    pub check_results: Json,
    pub rest: Rest,
}

impl Default for Head {
    fn default() -> Head {
        Head {
            terraform_version: String::new(),
            serial: 0,
            lineage: String::new(),
            check_results: Json::compact("null"),
            rest: Rest::default(),
        }
    }
}

impl Head {
    fn take(members: &mut Rest) -> Result<Head, DocumentError> {
        Ok(Head {
            terraform_version: members.take_string("terraform_version", "state")?,
            serial: members.take_number("serial", "state")?,
            lineage: members.take_string("lineage", "state")?,
            check_results: members.take("check_results").unwrap_or_else(|| Json::compact("null")),
            rest: std::mem::take(members),
        })
    }

    /// Renders the head as a JSON object, for the history.
    pub fn to_text(&self) -> String {
        let mut out = Writer::new();
        out.text("terraform_version", &self.terraform_version);
        out.member("serial", &self.serial.to_string());
        out.text("lineage", &self.lineage);
        out.member("check_results", self.check_results.as_str());
        for (name, text) in &self.rest.0 {
            out.member(name, text.as_str());
        }
        out.end()
    }

    /// Parses the result of [`Head::to_text`].
    pub fn from_text(text: &str) -> Result<Head, DocumentError> {
        Head::take(&mut Rest::parse(text, "state")?)
    }
}

/// An output of the root module: its value, its type, and its sensitivity.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Output {
    pub value: Json,
    pub ty: Json,
    pub sensitive: bool,
    pub rest: Rest,
}

impl Output {
    pub fn from_text(text: &str, name: &str) -> Result<Output, DocumentError> {
        let place = format!("output \"{name}\"");
        let mut members = Rest::parse(text, &place)?;
        Ok(Output {
            value: members.take("value").unwrap_or_else(|| Json::compact("null")),
            ty: members.take("type").unwrap_or_else(|| Json::compact("null")),
            sensitive: members.take_bool("sensitive", &place)?,
            rest: members,
        })
    }

    pub fn to_text(&self) -> String {
        let mut out = Writer::new();
        out.member("value", self.value.as_str());
        out.member("type", self.ty.as_str());
        if self.sensitive {
            out.member("sensitive", "true");
        }
        for (name, text) in &self.rest.0 {
            out.member(name, text.as_str());
        }
        out.end()
    }
}

/// Parts of an object's address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// Address of the module instance; empty for the root module.
    pub module: String,
    pub mode: String,
    pub ty: String,
    pub name: String,
    /// Instance key as JSON; empty for an instance without a key.
    pub instance: String,
    /// Deposed key; empty for the current object.
    pub deposed: String,
}

impl Key {
    /// Returns a hash of the key, for use in database indexes, whose entries are too short for some addresses.
    pub fn sum(&self) -> String {
        let parts = [
            &self.module,
            &self.mode,
            &self.ty,
            &self.name,
            &self.instance,
            &self.deposed,
        ];
        let texts = parts.map(|part| Json::string(part).into_text());
        store_client::sum::sha256_hex(array(texts.iter().map(String::as_str)).as_bytes())
    }

    /// Returns the address of the instance in the syntax of the Terraform language.
    pub fn address(&self) -> String {
        let mut out = String::new();
        if !self.module.is_empty() {
            let _ = write!(out, "{}.", self.module);
        }
        if self.mode == "data" {
            out.push_str("data.");
        }
        let _ = write!(out, "{}.{}", self.ty, self.name);
        if !self.instance.is_empty() {
            // The JSON text of the key has Go's escapes, some of which the Terraform language does not support, so the key is rendered
            // again.
            let key = serde_json::from_str::<serde_json::Value>(&self.instance).map(|key| key.to_string());
            let key = key.unwrap_or_else(|_| self.instance.clone());
            let _ = write!(out, "[{}]", key.replace("${", "$${").replace("%{", "%%{"));
        }
        out
    }
}

/// An object of the state.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Object {
    pub provider: String,
    /// `tainted`, or empty.
    pub status: String,
    pub schema_version: i64,
    /// Attributes. `None` if the state has them in the flat form of early versions; they are then in `rest`.
    pub attributes: Option<Json>,
    pub sensitive: Json,
    pub private: Option<Vec<u8>>,
    pub dependencies: Vec<String>,
    pub create_before_destroy: bool,
    pub rest: Rest,
}

/// Members without a column that come before the private data.
const BEFORE_PRIVATE: &[&str] = &["identity_schema_version", "identity"];

impl Object {
    /// Parses an instance. Returns its key, the deposed key (empty for the current object), and the object.
    fn parse(text: &str, provider: &str, place: &str) -> Result<(String, String, Object), DocumentError> {
        let mut members = Rest::parse(text, place)?;
        let instance = members.take("index_key").map(Json::into_text).unwrap_or_default();
        let instance = if instance == "null" { String::new() } else { instance };
        let deposed = members.take_string("deposed", place)?;
        let private = match members.take("private") {
            None => None,
            Some(text) => {
                let encoded: Option<String> =
                    serde_json::from_str(text.as_str()).map_err(|e| content(format!("{place}: private"), e))?;
                let decoded = encoded.map(|encoded| STANDARD.decode(encoded)).transpose();
                decoded.map_err(|e| content(format!("{place}: private"), e))?
            }
        };
        let dependencies = match members.take("dependencies") {
            None => Vec::new(),
            Some(text) => serde_json::from_str::<Option<Vec<String>>>(text.as_str())
                .map_err(|e| content(format!("{place}: dependencies"), e))?
                .unwrap_or_default(),
        };
        let object = Object {
            provider: provider.to_owned(),
            status: members.take_string("status", place)?,
            schema_version: members.take_number("schema_version", place)?,
            attributes: members.take("attributes"),
            sensitive: members
                .take("sensitive_attributes")
                .unwrap_or_else(|| Json::compact("[]")),
            private,
            dependencies,
            create_before_destroy: members.take_bool("create_before_destroy", place)?,
            rest: members,
        };
        Ok((instance, deposed, object))
    }

    /// Renders an instance with its key. Members are in the order that states have.
    fn render(&self, key: &Key) -> String {
        let mut out = Writer::new();
        let mut rest: Vec<&(String, Json)> = self.rest.0.iter().collect();
        let mut take = |names: &[&str], out: &mut Writer| {
            for name in names {
                if let Some(at) = rest.iter().position(|(found, _)| found == name) {
                    let (name, text) = rest.remove(at);
                    out.member(name, text.as_str());
                }
            }
        };
        if !key.instance.is_empty() {
            out.member("index_key", &key.instance);
        }
        if !self.status.is_empty() {
            out.text("status", &self.status);
        }
        if !key.deposed.is_empty() {
            out.text("deposed", &key.deposed);
        }
        out.member("schema_version", &self.schema_version.to_string());
        if let Some(attributes) = &self.attributes {
            out.member("attributes", attributes.as_str());
        }
        take(&["attributes_flat"], &mut out);
        out.member("sensitive_attributes", self.sensitive.as_str());
        take(BEFORE_PRIVATE, &mut out);
        if let Some(private) = &self.private {
            out.text("private", &STANDARD.encode(private));
        }
        if !self.dependencies.is_empty() {
            let texts: Vec<String> = self.dependencies.iter().map(|d| Json::string(d).into_text()).collect();
            out.member("dependencies", &array(texts.iter().map(String::as_str)));
        }
        if self.create_before_destroy {
            out.member("create_before_destroy", "true");
        }
        for (name, text) in rest {
            out.member(name, text.as_str());
        }
        out.end()
    }

    /// Renders a resource with only this object, for the history.
    pub fn to_text(&self, key: &Key) -> String {
        render_resource(key, &self.provider, [self.render(key)].iter().map(String::as_str))
    }
}

fn render_resource<'t>(key: &Key, provider: &str, instances: impl IntoIterator<Item = &'t str>) -> String {
    let mut out = Writer::new();
    if !key.module.is_empty() {
        out.text("module", &key.module);
    }
    out.text("mode", &key.mode);
    out.text("type", &key.ty);
    out.text("name", &key.name);
    out.text("provider", provider);
    out.member("instances", &array(instances));
    out.end()
}

/// Removes the members of a resource that form its address, and returns the address.
fn resource_key(members: &mut Rest) -> Result<Key, DocumentError> {
    let mut text = |name: &str| members.take_string(name, "resource");
    Ok(Key {
        module: text("module")?,
        mode: text("mode")?,
        ty: text("type")?,
        name: text("name")?,
        instance: String::new(),
        deposed: String::new(),
    })
}

/// Splits a resource into its objects.
pub(crate) fn parse_resource(text: &str) -> Result<Vec<(Key, Object)>, DocumentError> {
    let mut members = Rest::parse(text, "resource")?;
    let key = resource_key(&mut members)?;
    let provider = members.take_string("provider", "resource")?;
    let place = key.address();
    let mut objects = Vec::new();
    if let Some(instances) = members.take("instances") {
        for instance in elements(instances.as_str(), &place)? {
            let (instance, deposed, object) = Object::parse(instance.get(), &provider, &place)?;
            let key = Key {
                instance,
                deposed,
                ..key.clone()
            };
            objects.push((key, object));
        }
    }
    Ok(objects)
}

impl Document {
    /// Splits the text of a state.
    ///
    /// # Errors
    /// The text is encrypted, or not a state in version 4 of the format.
    pub fn parse(text: &[u8]) -> Result<Document, DocumentError> {
        let text = std::str::from_utf8(text).map_err(|e| content("state", e))?;
        let mut members = Rest::parse(text, "state")?;
        if members.take("encryption_version").is_some() {
            return Err(DocumentError::Encrypted);
        }
        match members.take("version") {
            Some(version) if version.as_str() == "4" => {}
            Some(version) => return Err(DocumentError::Version(version.into_text())),
            None => return Err(content("state", "it has no version")),
        }
        let mut document = Document::default();
        if let Some(outputs) = members.take("outputs").filter(|outputs| outputs.as_str() != "null") {
            for (name, text) in Rest::parse(outputs.as_str(), "outputs")?.0 {
                let output = Output::from_text(text.as_str(), &name)?;
                document.outputs.insert(name, output);
            }
        }
        let mut empty = Vec::new();
        if let Some(resources) = members.take("resources") {
            for resource in elements(resources.as_str(), "resources")? {
                let objects = parse_resource(resource.get())?;
                if objects.is_empty() {
                    empty.push(Json::compact(resource.get()));
                }
                for (key, object) in objects {
                    let address = key.address();
                    if document.objects.insert(key, object).is_some() {
                        return Err(content(address, "the state has it twice"));
                    }
                }
            }
        }
        document.head = Head::take(&mut members)?;
        if !empty.is_empty() {
            let list = Json::compact(&array(empty.iter().map(Json::as_str)));
            document.head.rest.0.push((EMPTY_RESOURCES.to_owned(), list));
        }
        Ok(document)
    }

    /// Renders the text of the state.
    pub fn render(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.member("version", "4");
        out.text("terraform_version", &self.head.terraform_version);
        out.member("serial", &self.head.serial.to_string());
        out.text("lineage", &self.head.lineage);
        let mut outputs = Writer::new();
        for (name, output) in &self.outputs {
            outputs.member(name, &output.to_text());
        }
        out.member("outputs", &outputs.end());
        out.member("resources", &self.resources());
        out.member("check_results", self.head.check_results.as_str());
        for (name, text) in self.head.rest.0.iter().filter(|(name, _)| name != EMPTY_RESOURCES) {
            out.member(name, text.as_str());
        }
        let mut text = indented(&out.end());
        text.push('\n');
        text.into_bytes()
    }

    fn resources(&self) -> String {
        let mut objects: Vec<(&Key, &Object)> = self.objects.iter().collect();
        objects.sort_by_cached_key(|(key, _)| order(key));
        let mut resources: Vec<(Resource, String)> = Vec::new();
        for chunk in objects.chunk_by(|(a, _), (b, _)| resource_of(a) == resource_of(b)) {
            if let Some((key, object)) = chunk.first() {
                let instances: Vec<String> = chunk.iter().map(|(key, object)| object.render(key)).collect();
                let instances = instances.iter().map(String::as_str);
                resources.push((resource_of(key), render_resource(key, &object.provider, instances)));
            }
        }
        let empty = self.head.rest.0.iter().find(|(name, _)| name == EMPTY_RESOURCES);
        let empty = empty.and_then(|(_, list)| elements(list.as_str(), "").ok());
        for text in empty.unwrap_or_default() {
            if let Ok(key) = Rest::parse(text.get(), "").and_then(|mut members| resource_key(&mut members)) {
                resources.push((resource_of(&key), text.get().to_owned()));
            }
        }
        resources.sort();
        array(resources.iter().map(|(_, text)| text.as_str()))
    }
}

/// Module, mode, type and name: the order of resources in a state.
type Resource = [String; 4];

fn resource_of(key: &Key) -> Resource {
    [&key.module, &key.mode, &key.ty, &key.name].map(Clone::clone)
}

/// Sort key of objects in a state. Instances without a key come first, then number keys, then text keys. Current objects come before
/// deposed ones.
fn order(key: &Key) -> (Resource, u8, u64, String, String) {
    let (kind, number, text) = match serde_json::from_str::<serde_json::Value>(&key.instance) {
        Err(_) => (0, 0, String::new()),
        Ok(serde_json::Value::String(text)) => (2, 0, text),
        Ok(other) => (1, other.as_u64().unwrap_or_default(), other.to_string()),
    };
    (resource_of(key), kind, number, text, key.deposed.clone())
}
