//! Lock records: the holder and purpose of a state's lock.
//!
//! Terraform writes such a record as JSON next to a state file, and into the lock objects of its backends; other
//! programs read it to name the holder. The core, the plugin SDK and every state store share this type, so that records
//! have the same bytes everywhere and are read with the same tolerance.
//!
//! Start with [`LockInfo`].

#![expect(clippy::disallowed_methods, reason = "a lock record names the user and the time")]

use std::fmt;
use std::time::SystemTime;

use cty::json::Json;

/// The record of a lock, with Terraform's fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockInfo {
    /// The lock's ID: a UUID, unless the store names its locks.
    pub id: String,
    /// The holder's operation, such as `OperationTypeApply`.
    pub operation: String,
    /// Free text about the operation.
    pub info: String,
    /// `user@host`.
    pub who: String,
    /// The version of the program that holds the lock; may be empty.
    pub version: String,
    /// The time of locking in RFC 3339.
    pub created: String,
    /// Path or name of the locked state.
    pub path: String,
}

impl LockInfo {
    /// Creates a lock record for an operation, with the current user and time. The caller sets the path.
    #[must_use]
    pub fn new(operation: &str, version: &str) -> LockInfo {
        LockInfo {
            id: uuid::Uuid::new_v4().to_string(),
            operation: operation.to_owned(),
            who: format!("{}@{}", user(), system::user::machine()),
            version: version.to_owned(),
            created: gotext::instant::rfc3339_nano(SystemTime::now()),
            ..LockInfo::default()
        }
    }

    /// Creates a lock record of this process, for callers without a version.
    #[must_use]
    pub fn of_this_process(operation: &str) -> LockInfo {
        LockInfo::new(operation, "")
    }

    /// Returns the JSON on one line, with Terraform's order of keys and escapes.
    #[must_use]
    pub fn to_json(&self) -> String {
        // The text is formatted here, because a JSON object would sort its keys.
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

    /// Parses JSON; `None` if it is not an object. Missing fields are empty.
    #[must_use]
    pub fn from_json(text: &[u8]) -> Option<LockInfo> {
        let Json::Object(object) = Json::parse(text).ok()? else {
            return None;
        };
        // Terraform's parser ignores the case of keys, so some programs write them in lower case.
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

    /// Formats one field a line under a heading, like Terraform.
    #[must_use]
    pub fn details(&self) -> String {
        format!(
            "Lock Info:\n  ID:        {}\n  Path:      {}\n  Operation: {}\n  Who:       {}\n  Version:   {}\n  \
             Created:   {}\n  Info:      {}",
            self.id, self.path, self.operation, self.who, self.version, self.created, self.info
        )
    }
}

/// Formats the record as part of a sentence: ID, holder, time and operation.
impl fmt::Display for LockInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} by {} since {} for {}",
            self.id, self.who, self.created, self.operation
        )
    }
}

/// Returns the current user's name, or the user ID if no name is known.
fn user() -> String {
    // The system takes precedence over the environment, whose variables may be those of another user under `sudo` and
    // `su`.
    let variable = |name| std::env::var(name).ok().filter(|name| !name.is_empty());
    system::user::name()
        .or_else(|| variable("USER"))
        .or_else(|| variable("LOGNAME"))
        .unwrap_or_else(system::user::id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info() -> LockInfo {
        LockInfo {
            id: "1".into(),
            info: "a <b>".into(),
            ..LockInfo::default()
        }
    }

    #[test]
    fn json_has_the_keys_in_order_and_is_read_again() {
        let text = info().to_json();
        assert_eq!(
            text,
            "{\"ID\":\"1\",\"Operation\":\"\",\"Info\":\"a \\u003cb\\u003e\",\"Who\":\"\",\"Version\":\"\",\"Created\":\"\",\"Path\":\"\"}"
        );
        assert_eq!(LockInfo::from_json(text.as_bytes()), Some(info()));
    }

    #[test]
    fn records_of_other_programs_are_read_with_tolerance() {
        let lower = br#"{"id":"1","INFO":"a <b>","who":5,"more":[]}"#;
        assert_eq!(LockInfo::from_json(lower), Some(info()));
        assert_eq!(LockInfo::from_json(b"{}"), Some(LockInfo::default()));
        for malformed in [&b"[]"[..], b"", b"{", b"\"x\""] {
            assert_eq!(LockInfo::from_json(malformed), None);
        }
    }

    #[test]
    fn each_lock_has_its_own_id_and_a_holder() {
        let (one, other) = (LockInfo::new("x", "1"), LockInfo::of_this_process("x"));
        assert!(one.id != other.id && one.id.len() == 36, "{}", one.id);
        assert!(
            one.who.split_once('@').is_some_and(|(user, _)| !user.is_empty()),
            "{}",
            one.who
        );
        assert_eq!((&*one.version, &*other.version), ("1", ""));
    }

    #[test]
    fn details_have_one_field_a_line() {
        let lines: Vec<String> = info().details().lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 8);
        assert_eq!(
            (&*lines[0], &*lines[1], &*lines[7]),
            ("Lock Info:", "  ID:        1", "  Info:      a <b>")
        );
    }
}
