//! What a lock says about who holds it, and why one could not be had.

#![expect(clippy::disallowed_methods, reason = "a lock has the time in it")]

use std::fmt;

use cty::json::Json;

use crate::{Diagnostic, Diagnostics, env};

/// Who holds a lock, and what for, as all programs of this family write it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockInfo {
    /// The name of the lock: a UUID, unless the store has names of its own.
    pub id: String,
    /// What the holder does, such as `OperationTypeApply`.
    pub operation: String,
    /// More about it, in words.
    pub info: String,
    /// `user@host`.
    pub who: String,
    /// The version of the holder.
    pub version: String,
    /// When the lock was taken, by RFC 3339.
    pub created: String,
    /// What is locked.
    pub path: String,
}

impl LockInfo {
    /// A lock taken by this process now: for callers that say nothing about themselves.
    #[must_use]
    pub fn of_this_process(operation: &str) -> LockInfo {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let user = env::first(&["USER", "LOGNAME"]).unwrap_or_else(|| rustix::process::getuid().as_raw().to_string());
        LockInfo {
            id: uuid(),
            operation: operation.to_owned(),
            who: format!("{user}@{host}"),
            created: jiff::Timestamp::now().to_string(),
            ..LockInfo::default()
        }
    }

    /// The JSON text, without line breaks, its keys in the order and its characters escaped as Terraform does it.
    #[must_use]
    pub fn to_json(&self) -> String {
        let members = [
            ("ID", &self.id),
            ("Operation", &self.operation),
            ("Info", &self.info),
            ("Who", &self.who),
            ("Version", &self.version),
            ("Created", &self.created),
            ("Path", &self.path),
        ];
        let members = members.map(|(name, text)| format!("\"{name}\":{}", Json::from(&**text)));
        format!("{{{}}}", members.join(","))
    }

    /// Reads JSON text; `None` if it is no object. What it does not say stays empty.
    #[must_use]
    pub fn from_json(text: &[u8]) -> Option<LockInfo> {
        let Json::Object(object) = Json::parse(text).ok()? else {
            return None;
        };
        // The readers of others take keys in any case.
        let text = |name: &str| {
            let found = object.get(name).or_else(|| {
                let same = |(key, _): &(&String, &Json)| key.eq_ignore_ascii_case(name);
                object.iter().find(same).map(|(_, value)| value)
            });
            found.and_then(Json::as_str).unwrap_or_default().to_owned()
        };
        Some(LockInfo {
            id: text("ID"),
            operation: text("Operation"),
            info: text("Info"),
            who: text("Who"),
            version: text("Version"),
            created: text("Created"),
            path: text("Path"),
        })
    }
}

/// One field a line.
impl fmt::Display for LockInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} by {} since {} for {}",
            self.id, self.who, self.created, self.operation
        )
    }
}

/// A random UUID (version 4).
fn uuid() -> String {
    use ring::rand::SecureRandom as _;
    let mut bytes = [0_u8; 16];
    if ring::rand::SystemRandom::new().fill(&mut bytes).is_err() {
        // Without random numbers the time must do.
        bytes = jiff::Timestamp::now().as_nanosecond().to_be_bytes();
    }
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
    format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}

/// Why a lock could not be had.
#[derive(Clone, Debug)]
pub enum LockError {
    /// Somebody else has it. It is worth trying again later if it is known who that is.
    Held {
        /// Who has it, if that is known.
        holder: Option<Box<LockInfo>>,
        /// What to tell the person.
        message: String,
    },
    /// Something else went wrong.
    Failed(Diagnostics),
}

impl LockError {
    /// Somebody has the lock.
    #[must_use]
    pub fn held(holder: Option<LockInfo>, message: impl Into<String>) -> LockError {
        LockError::Held {
            holder: holder.map(Box::new),
            message: message.into(),
        }
    }

    /// The messages for a person, the holder not among them.
    #[must_use]
    pub fn into_diagnostics(self) -> Diagnostics {
        match self {
            LockError::Held { message, .. } => Diagnostic::error("Error acquiring the state lock", message).into(),
            LockError::Failed(problems) => problems,
        }
    }
}

impl From<Diagnostics> for LockError {
    fn from(problems: Diagnostics) -> LockError {
        LockError::Failed(problems)
    }
}

impl From<Diagnostic> for LockError {
    fn from(problem: Diagnostic) -> LockError {
        LockError::Failed(problem.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_the_keys_in_order_and_is_read_again() {
        let info = LockInfo {
            id: "1".into(),
            info: "a <b>".into(),
            ..LockInfo::default()
        };
        let text = info.to_json();
        assert_eq!(
            text,
            "{\"ID\":\"1\",\"Operation\":\"\",\"Info\":\"a \\u003cb\\u003e\",\"Who\":\"\",\"Version\":\"\",\"Created\":\"\",\"Path\":\"\"}"
        );
        assert_eq!(LockInfo::from_json(text.as_bytes()), Some(info));
        assert_eq!(LockInfo::from_json(b"[]"), None);
    }

    #[test]
    fn uuids_are_of_version_4_and_differ() {
        let (one, other) = (uuid(), uuid());
        assert!(one != other && one.len() == 36 && one.as_bytes()[14] == b'4', "{one}");
    }
}
