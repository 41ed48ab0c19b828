//! Credentials files of container tools: `auth.json` of Podman and others, `config.json` of Docker.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use files::{Environment, io_reason};
use net::Token;
use serde::Deserialize;

use crate::credentials::Credentials;
use crate::error::OciError;

/// Name of Docker's file before it was called `config.json`.
const OLDER: &str = ".dockercfg";

/// The content of one credentials file: credentials, and the names of helpers that store credentials.
#[derive(Debug, Default, Deserialize)]
pub struct DockerFile {
    #[serde(default, deserialize_with = "net::absent::or_default")]
    auths: BTreeMap<String, Auth>,
    /// Names of helpers by host.
    #[serde(default, deserialize_with = "net::absent::or_default", rename = "credHelpers")]
    helpers: BTreeMap<String, String>,
    /// Name of the helper for all other hosts.
    #[serde(default, rename = "credsStore")]
    store: Option<String>,
}

/// The credentials for a host or a part of its repositories. If a helper stores the credentials, Docker writes an empty object here.
#[derive(Debug, Default, Deserialize)]
struct Auth {
    #[serde(default, deserialize_with = "net::absent::or_default")]
    auth: String,
    #[serde(default, deserialize_with = "net::absent::or_default")]
    username: String,
    #[serde(default, deserialize_with = "net::absent::or_default")]
    password: String,
    #[serde(default, deserialize_with = "net::absent::or_default", rename = "identitytoken")]
    identity: String,
    #[serde(default, deserialize_with = "net::absent::or_default", rename = "registrytoken")]
    registry: String,
}

/// Source of the credentials for a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    Here(Credentials),
    /// The name of a helper.
    Helper(String),
}

impl DockerFile {
    /// Reads a file; `None` if it does not exist. A file named `.dockercfg` has the older form.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read, or is not JSON of the expected form.
    pub fn read(path: &Path) -> Result<Option<DockerFile>, OciError> {
        let failed = |reason: String| OciError::CredentialsFile {
            path: path.to_owned(),
            reason,
        };
        match std::fs::read(path) {
            // The error's text would show a part of the file.
            Ok(text) => DockerFile::parse(&text, is_older(path)).map(Some).map_err(|error| {
                failed(format!(
                    "it is not JSON of the expected form (line {}, column {})",
                    error.line(),
                    error.column()
                ))
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(io_reason(&error))),
        }
    }

    /// Parses the content of a file. The older form has only the credentials by host.
    fn parse(text: &[u8], older: bool) -> serde_json::Result<DockerFile> {
        match older {
            true => serde_json::from_slice(text).map(|auths| DockerFile {
                auths,
                ..DockerFile::default()
            }),
            false => serde_json::from_slice(text),
        }
    }

    /// Returns the entries for a repository with their specificity: 0 for all hosts, 1 for the host, more for a part of
    /// its repositories.
    ///
    /// # Errors
    ///
    /// Returns an error if a matching entry is not valid.
    pub fn entries(&self, host: &str, name: &str) -> Result<Vec<(usize, Entry)>, EntryError> {
        let mut found = Vec::new();
        for (key, auth) in &self.auths {
            if let Some(specificity) = specificity(&normalised(key), host, name)
                && let Some(credentials) = auth.credentials().map_err(|mistake| EntryError {
                    key: key.clone(),
                    mistake,
                })?
            {
                found.push((specificity, Entry::Here(credentials)));
            }
        }
        let helpers = self.helpers.iter().filter(|(key, _)| normalised(key) == host);
        found.extend(helpers.map(|(_, helper)| (1, Entry::Helper(helper.clone()))));
        found.extend(self.store.iter().map(|helper| (0, Entry::Helper(helper.clone()))));
        Ok(found)
    }
}

/// The error of an entry in a credentials file. The text is a clause.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{key}\" {mistake}")]
pub struct EntryError {
    key: String,
    mistake: &'static str,
}

impl Auth {
    fn credentials(&self) -> Result<Option<Credentials>, &'static str> {
        if !self.registry.is_empty() {
            return Ok(Some(Credentials::Access {
                access: Token::new(&*self.registry),
                refresh: None,
            }));
        }
        if !self.identity.is_empty() {
            return Ok(Some(Credentials::Refresh(Token::new(&*self.identity))));
        }
        let (username, password) = match self.auth.is_empty() {
            true => (self.username.clone(), self.password.clone()),
            false => {
                let bytes = STANDARD.decode(self.auth.trim()).map_err(|_| "is not in base64")?;
                let text = String::from_utf8(bytes).map_err(|_| "is not text")?;
                let (username, password) = text.split_once(':').ok_or("has no colon behind the name")?;
                // Zero bytes at the end are removed, as in Docker.
                (username.to_owned(), password.trim_end_matches('\0').to_owned())
            }
        };
        Ok((!username.is_empty()).then(|| Credentials::Password {
            username,
            password: Token::new(password),
        }))
    }
}

/// Returns true if a file has the form from before `config.json`.
fn is_older(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == OLDER)
}

/// Returns the number of parts of a repository's address that a key matches (1 for the host alone); `None` if the key does not
/// match.
pub fn specificity(key: &str, host: &str, name: &str) -> Option<usize> {
    let (key_host, key_name) = key.split_once('/').unwrap_or((key, ""));
    let fits = key_name.is_empty() || name == key_name || name.strip_prefix(key_name)?.starts_with('/');
    (key_host == host && fits).then(|| 1 + key_name.split('/').filter(|part| !part.is_empty()).count())
}

/// Returns a key of a credentials file in comparable form: without the scheme, the API version and the port 443, with the host in
/// lower case.
fn normalised(key: &str) -> String {
    let key = key.trim_start_matches("https://").trim_start_matches("http://");
    let key = key.trim_end_matches('/');
    let key = key
        .strip_suffix("/v1")
        .or_else(|| key.strip_suffix("/v2"))
        .unwrap_or(key);
    let (host, name) = key.split_at(key.find('/').unwrap_or(key.len()));
    let host = host.to_ascii_lowercase();
    // `docker.io` and both of these names mean Docker's registry.
    let host = match &*host {
        "index.docker.io" | "registry-1.docker.io" => "docker.io",
        host => host.strip_suffix(":443").unwrap_or(host),
    };
    format!("{host}{name}")
}

/// Returns the credentials files of container tools, in the order of their search.
pub fn usual_files(environment: &Environment) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let dir = |name: &str| environment.get(name).filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let home = environment.home();
    // This is Podman's directory on a system without a runtime directory.
    if system::Os::CURRENT != system::Os::Unix {
        files.extend(home.as_ref().map(|home| home.join(".config/containers/auth.json")));
    } else {
        files.extend(dir("XDG_RUNTIME_DIR").map(|dir| dir.join("containers/auth.json")));
    }
    let config = dir("XDG_CONFIG_HOME").or_else(|| Some(home.as_ref()?.join(".config")));
    files.extend(config.map(|dir| dir.join("containers/auth.json")));
    if let Some(home) = home {
        files.push(home.join(".docker/config.json"));
        files.push(home.join(OLDER));
    }
    files.dedup();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    fn password(username: &str, password: &str) -> Entry {
        Entry::Here(Credentials::Password {
            username: username.to_owned(),
            password: Token::new(password),
        })
    }

    #[test]
    fn entries_by_host_and_path() {
        let file: DockerFile = serde_json::from_str(
            r#"{
              "auths": {
                "https://Example.com:443/v2/": {"auth": "YTpiOmM="},
                "example.com/team": {"username": "t", "password": "p"},
                "example.com/team/x": {"identitytoken": "i"},
                "other.com": {},
                "https://index.docker.io/v1/": {"registrytoken": "r"}
              },
              "credHelpers": {"other.com": "one"},
              "credsStore": "all"
            }"#,
        )
        .unwrap();
        let all = || (0, Entry::Helper("all".to_owned()));
        assert_eq!(
            file.entries("example.com", "team/x").unwrap(),
            [
                (2, password("t", "p")),
                (3, Entry::Here(Credentials::Refresh(Token::new("i")))),
                (1, password("a", "b:c")),
                all()
            ]
        );
        assert_eq!(
            file.entries("example.com", "teams").unwrap(),
            [(1, password("a", "b:c")), all()]
        );
        assert_eq!(
            file.entries("other.com", "x").unwrap(),
            [(1, Entry::Helper("one".to_owned())), all()]
        );
        assert_eq!(file.entries("docker.io", "x").unwrap().len(), 2);
        assert_eq!(file.entries("example.com:5000", "x").unwrap(), [all()]);
        let bad: DockerFile = serde_json::from_str(r#"{"auths": {"h": {"auth": "!"}}}"#).unwrap();
        assert_eq!(bad.entries("h", "x").unwrap_err().to_string(), "\"h\" is not in base64");
        assert_eq!(bad.entries("g", "x").unwrap(), []);
    }

    #[test]
    fn the_older_file_has_credentials_by_host_without_a_wrapper() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".dockercfg");
        let text =
            r#"{"https://index.docker.io/v1/": {"auth": "YTpi", "email": "a@b"}, "example.com": {"auth": "YTpiOmM="}}"#;
        std::fs::write(&path, text).unwrap();
        let file = DockerFile::read(&path).unwrap().unwrap();
        assert_eq!(file.entries("docker.io", "x").unwrap(), [(1, password("a", "b"))]);
        assert_eq!(file.entries("example.com", "x").unwrap(), [(1, password("a", "b:c"))]);
        assert_eq!(file.entries("other.com", "x").unwrap(), []);
    }

    #[test]
    fn a_broken_file_is_an_error_without_its_content() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.json");
        assert!(DockerFile::read(&path).unwrap().is_none());
        std::fs::write(&path, "{\"auths\": {\"h\": \"hunter2\"}}").unwrap();
        let error = DockerFile::read(&path).unwrap_err().to_string();
        assert!(error.contains("config.json") && !error.contains("hunter2"), "{error}");
    }

    #[test]
    fn usual_places() {
        let environment = Environment::from([
            ("HOME".to_owned(), "/h".to_owned()),
            ("XDG_RUNTIME_DIR".to_owned(), "/r".to_owned()),
        ]);
        let files = usual_files(&environment);
        if system::Os::CURRENT == system::Os::Unix {
            let expected = [
                "/r/containers/auth.json",
                "/h/.config/containers/auth.json",
                "/h/.docker/config.json",
                "/h/.dockercfg",
            ];
            assert_eq!(files, expected.map(PathBuf::from));
        }
    }
}
