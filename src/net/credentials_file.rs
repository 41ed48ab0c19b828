//! `credentials.tfrc.json`: the file of the CLI configuration that `login` and `logout` change, in the format that
//! Terraform and OpenTofu share.
//!
//! Only the entry of one host is changed; the rest of the file stays, down to the digits of numbers.

use std::io;
use std::path::{Path, PathBuf};

use addrs::program::Mode;

use serde_json::{Map, Value as Json, json};

use crate::hosts::Host;
use crate::token::Token;
use files::{Environment, Policy, io_reason};

/// The reason that the file cannot be read or changed. The text is a clause without any content of the file.
#[derive(Debug, thiserror::Error)]
#[error("{}", reason.text(path))]
pub struct CredentialsFileError {
    path: PathBuf,
    reason: Reason,
}

#[derive(Debug)]
enum Reason {
    Read(io::Error),
    /// The text is not a JSON object; the parser fails at this position.
    NotJson {
        line: usize,
        column: usize,
    },
    /// The member `credentials` is not an object.
    Entry,
    Encode(serde_json::Error),
    NoDirectory,
    Write(io::Error),
}

impl Reason {
    fn text(&self, path: &Path) -> String {
        let path = path.display();
        match self {
            Reason::Read(error) => format!("{path} cannot be read: {}", io_reason(error)),
            Reason::NotJson { line, column } => {
                format!("{path} cannot be read: it is not a JSON object (line {line}, column {column})")
            }
            Reason::Entry => format!("\"credentials\" in the file {path} is not a JSON object"),
            Reason::Encode(error) => format!("{path} cannot be written: {error}"),
            Reason::NoDirectory => format!("{path} cannot be written: its directory does not exist"),
            Reason::Write(error) => format!("{path} cannot be written: {}", io_reason(error)),
        }
    }
}

/// Returns the path of the file, in the directory of the user's CLI configuration; `None` if that directory is not
/// known.
#[must_use]
pub fn path(environment: &Environment) -> Option<PathBuf> {
    environment
        .cli_configuration(Mode::current().paths())
        .map(|paths| paths.directory.join("credentials.tfrc.json"))
}

/// Returns true if the file has a token for a host. An unreadable file has none.
#[must_use]
pub fn has(path: &Path, host: &Host) -> bool {
    read(path).is_ok_and(|document| {
        let hosts = document.get("credentials").and_then(Json::as_object);
        hosts.is_some_and(|hosts| hosts.keys().any(|name| Host::parse(name).as_ref() == Some(host)))
    })
}

/// Replaces the token of a host; `None` removes it.
///
/// # Errors
/// Returns an error if the file cannot be read or written; it is then unchanged.
pub fn update(path: &Path, host: &Host, token: Option<&Token>) -> Result<(), CredentialsFileError> {
    let error = |reason| CredentialsFileError {
        path: path.to_owned(),
        reason,
    };
    let mut document = read(path)?;
    let entry = document.entry("credentials").or_insert_with(|| json!({}));
    let Some(hosts) = entry.as_object_mut() else {
        return Err(error(Reason::Entry));
    };
    // The hosts are compared as parsed names, because the file may spell the host differently, for example in
    // Unicode.
    hosts.retain(|name, _| Host::parse(name).as_ref() != Some(host));
    if let Some(token) = token {
        hosts.insert(host.display(), json!({ "token": token.expose() }));
    }
    let text = serde_json::to_string_pretty(&document).map_err(|e| error(Reason::Encode(e)))?;
    // Programs that wrote the file before may have left it readable for others. It is private from here on.
    files::replace(path, text.as_bytes(), Policy::SECRET).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => error(Reason::NoDirectory),
        _ => error(Reason::Write(e)),
    })
}

fn read(path: &Path) -> Result<Map<String, Json>, CredentialsFileError> {
    let error = |reason| CredentialsFileError {
        path: path.to_owned(),
        reason,
    };
    let text = match std::fs::read(path) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Map::new()),
        Err(e) => return Err(error(Reason::Read(e))),
    };
    // An empty file has no tokens, as in Terraform.
    if text.is_empty() {
        return Ok(Map::new());
    }
    // The parser's message would quote the file, which contains secrets.
    serde_json::from_slice(&text).map_err(|e| {
        error(Reason::NotJson {
            line: e.line(),
            column: e.column(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_host_is_changed_and_the_rest_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("credentials.tfrc.json");
        let (a, b) = (Host::parse("a.example").unwrap(), Host::parse("b.example").unwrap());
        update(&path, &a, Some(&Token::new("1"))).unwrap();
        assert!(has(&path, &a) && !has(&path, &b));
        std::fs::write(
            &path,
            r#"{"other":12345678901234567890.10,"credentials":{"A.Example":{"token":"1","x":1},"c":{}}}"#,
        )
        .unwrap();
        update(&path, &b, Some(&Token::new("2"))).unwrap();
        update(&path, &a, Some(&Token::new("3"))).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("12345678901234567890.10"), "{text}");
        let document: Json = serde_json::from_str(&text).unwrap();
        assert_eq!(
            document["credentials"],
            json!({"c": {}, "b.example": {"token": "2"}, "a.example": {"token": "3"}})
        );
        update(&path, &a, None).unwrap();
        update(&path, &b, None).unwrap();
        assert!(!has(&path, &a) && !has(&path, &b));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn what_cannot_be_understood_is_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c");
        let host = Host::parse("a.example").unwrap();
        for text in ["{\"secret", "[]", "{\"credentials\": 1}"] {
            std::fs::write(&path, text).unwrap();
            let error = update(&path, &host, Some(&Token::new("1"))).unwrap_err();
            assert!(!error.to_string().contains("secret"), "{error}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        let error = update(&dir.path().join("no/c"), &host, None).unwrap_err();
        assert!(error.to_string().contains("directory does not exist"), "{error}");
    }
}
