//! The parts of a saved plan as they are written, and the way there and back.

use addrs::AbsResourceInstance;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cty::{Marks, Step, Type, Value};
use engine::plan::{Action, IdentityChange, ImportedBy, Reason, ResourceChange};
use serde::{Deserialize, Serialize};
use state::{CheckResult, CheckStatus, CheckedObject};

/// How something with conditions turned out, as in states.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredCheck {
    pub(super) kind: String,
    pub(super) address: String,
    pub(super) status: String,
    pub(super) objects: Vec<(String, String, Vec<String>)>,
}

/// A value: msgpack with its type in base64, and its marks by path.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredValue {
    pub(super) value: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) sensitive: Vec<StoredPath>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) ephemeral: Vec<StoredPath>,
}

pub(super) type StoredPath = Vec<StoredStep>;

#[derive(Serialize, Deserialize)]
pub(super) enum StoredStep {
    #[serde(rename = "attr")]
    Attribute(String),
    #[serde(rename = "index")]
    Index(String),
}

#[derive(Serialize, Deserialize)]
pub(super) struct StoredChange {
    pub(super) address: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) previous_address: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) deposed: Option<String>,
    pub(super) provider: String,
    pub(super) action: Action,
    pub(super) reason: Reason,
    pub(super) before: StoredValue,
    pub(super) after: StoredValue,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) replace_paths: Vec<StoredPath>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) private: String,
    pub(super) config_known: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) importing: Option<StoredImport>,
    /// The identities before and after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) identity: Option<(Option<String>, Option<String>)>,
}

/// What an object is imported by.
#[derive(Serialize, Deserialize)]
pub(super) enum StoredImport {
    #[serde(rename = "id")]
    Id(String),
    /// Msgpack with its type in base64.
    #[serde(rename = "identity")]
    Identity(String),
    #[serde(rename = "sensitive")]
    Sensitive,
}

#[derive(Serialize, Deserialize)]
pub(super) struct StoredOutput {
    pub(super) action: Action,
    pub(super) before: StoredValue,
    pub(super) after: StoredValue,
    pub(super) sensitive: bool,
}

// ---- to text --------------------------------------------------------------------------------------------------------

pub(super) fn store_plain(value: &Value) -> Result<String, String> {
    let bytes = cty::msgpack::encode(value, &Type::Dynamic).map_err(|e| e.to_string())?;
    Ok(BASE64.encode(bytes))
}

pub(super) fn store_value(value: &Value) -> Result<StoredValue, String> {
    let marked = value.paths_with_marks();
    let paths = |mark: Marks| -> Result<Vec<StoredPath>, String> {
        marked
            .iter()
            .filter(|(_, m)| m.contains(mark))
            .map(|(path, _)| store_path(path))
            .collect()
    };
    Ok(StoredValue {
        value: store_plain(&value.clone().unmark_deep().0)?,
        sensitive: paths(Marks::SENSITIVE)?,
        ephemeral: paths(Marks::EPHEMERAL)?,
    })
}

pub(super) fn store_path(path: &cty::Path) -> Result<StoredPath, String> {
    path.0
        .iter()
        .map(|step| {
            Ok(match step {
                Step::Attribute(name) => StoredStep::Attribute(name.to_string()),
                Step::Index(key) => StoredStep::Index(store_plain(&key.clone().unmark_deep().0)?),
            })
        })
        .collect()
}

pub(super) fn store_change(change: &ResourceChange) -> Result<StoredChange, String> {
    Ok(StoredChange {
        address: change.address.to_string(),
        previous_address: change.previous_address.as_ref().map(ToString::to_string),
        deposed: change.deposed.as_deref().map(str::to_owned),
        provider: change.provider.to_string(),
        action: change.action,
        reason: change.reason,
        before: store_value(&change.before)?,
        after: store_value(&change.after)?,
        replace_paths: change.replace_paths.iter().map(store_path).collect::<Result<_, _>>()?,
        private: BASE64.encode(&change.private),
        config_known: change.config_known,
        importing: change.importing.as_ref().map(store_import).transpose()?,
        identity: change.identity.as_deref().map(store_identity).transpose()?,
    })
}

fn store_import(target: &ImportedBy) -> Result<StoredImport, String> {
    Ok(match target {
        ImportedBy::Id(id) => StoredImport::Id(id.to_string()),
        ImportedBy::Identity(identity) => StoredImport::Identity(store_plain(identity)?),
        ImportedBy::Sensitive => StoredImport::Sensitive,
    })
}

fn store_identity(identity: &IdentityChange) -> Result<(Option<String>, Option<String>), String> {
    Ok((
        identity.before.as_ref().map(store_plain).transpose()?,
        identity.after.as_ref().map(store_plain).transpose()?,
    ))
}

pub(super) fn store_check(check: &CheckResult) -> StoredCheck {
    StoredCheck {
        kind: check.object_kind.to_string(),
        address: check.config_addr.to_string(),
        status: check.status.as_str().to_owned(),
        objects: check
            .objects
            .iter()
            .map(|o| {
                let messages = o.failure_messages.iter().map(ToString::to_string).collect();
                (o.object_addr.to_string(), o.status.as_str().to_owned(), messages)
            })
            .collect(),
    }
}

// ---- from text ------------------------------------------------------------------------------------------------------

pub(super) fn load_plain(text: &str) -> Result<Value, String> {
    let bytes = BASE64.decode(text).map_err(|e| e.to_string())?;
    cty::msgpack::decode(&bytes, &Type::Dynamic).map_err(|e| e.to_string())
}

pub(super) fn load_value(stored: &StoredValue) -> Result<Value, String> {
    let value = load_plain(&stored.value)?;
    let mut marks = Vec::new();
    for (paths, mark) in [
        (&stored.sensitive, Marks::SENSITIVE),
        (&stored.ephemeral, Marks::EPHEMERAL),
    ] {
        for path in paths {
            marks.push((load_path(path)?, mark));
        }
    }
    Ok(if marks.is_empty() {
        value
    } else {
        value.mark_paths(&marks)
    })
}

pub(super) fn load_path(stored: &StoredPath) -> Result<cty::Path, String> {
    let steps = stored.iter().map(|step| {
        Ok::<_, String>(match step {
            StoredStep::Attribute(name) => Step::Attribute(name.as_str().into()),
            StoredStep::Index(key) => Step::Index(load_plain(key)?),
        })
    });
    Ok(cty::Path(steps.collect::<Result<_, _>>()?))
}

pub(super) fn load_targets(texts: &[String]) -> Result<Vec<addrs::Target>, String> {
    let load = |text: &String| addrs::parse::target(text).map_err(|e| e.to_string());
    texts.iter().map(load).collect()
}

pub(super) fn load_address(text: &str) -> Result<AbsResourceInstance, String> {
    addrs::parse::resource_instance(text).map_err(|e| e.to_string())
}

pub(super) fn load_change(stored: &StoredChange) -> Result<ResourceChange, String> {
    Ok(ResourceChange {
        address: load_address(&stored.address)?,
        previous_address: stored.previous_address.as_deref().map(load_address).transpose()?,
        deposed: stored.deposed.as_deref().map(Into::into),
        provider: addrs::parse::provider_config(&stored.provider).map_err(|e| e.to_string())?,
        action: stored.action,
        reason: stored.reason,
        before: load_value(&stored.before)?,
        after: load_value(&stored.after)?,
        replace_paths: stored.replace_paths.iter().map(load_path).collect::<Result<_, _>>()?,
        private: BASE64.decode(&stored.private).map_err(|e| e.to_string())?,
        config_known: stored.config_known,
        importing: stored.importing.as_ref().map(load_import).transpose()?,
        identity: match &stored.identity {
            Some((before, after)) => IdentityChange::new(
                before.as_deref().map(load_plain).transpose()?,
                after.as_deref().map(load_plain).transpose()?,
            ),
            None => None,
        },
    })
}

fn load_import(stored: &StoredImport) -> Result<ImportedBy, String> {
    Ok(match stored {
        StoredImport::Id(id) => ImportedBy::Id(id.as_str().into()),
        StoredImport::Identity(identity) => ImportedBy::Identity(load_plain(identity)?),
        StoredImport::Sensitive => ImportedBy::Sensitive,
    })
}

pub(super) fn load_status(text: &str) -> Result<CheckStatus, String> {
    let all = [
        CheckStatus::Pass,
        CheckStatus::Fail,
        CheckStatus::Error,
        CheckStatus::Unknown,
    ];
    all.into_iter()
        .find(|s| s.as_str() == text)
        .ok_or_else(|| format!("{text:?} is not the result of a check"))
}

pub(super) fn load_check(stored: &StoredCheck) -> Result<CheckResult, String> {
    let objects = stored.objects.iter().map(|(address, status, messages)| {
        Ok::<_, String>(CheckedObject {
            object_addr: address.as_str().into(),
            status: load_status(status)?,
            failure_messages: messages.iter().map(|m| m.as_str().into()).collect(),
        })
    });
    Ok(CheckResult {
        object_kind: stored.kind.as_str().into(),
        config_addr: stored.address.as_str().into(),
        status: load_status(&stored.status)?,
        objects: objects.collect::<Result<_, _>>()?,
    })
}

// ---- the archive ----------------------------------------------------------------------------------------------------
