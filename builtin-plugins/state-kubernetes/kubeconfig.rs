//! Kubeconfig files: the clusters and users of `kubectl`.
//!
//! Several files are merged by the rules of Terraform's backend, so that teams who also use Terraform find their states in the same
//! cluster. The rules differ from those of `kubectl`. If several clusters, users or contexts have the same name, `kubectl` uses only the
//! first one, as a whole. Terraform merges them field by field, and the later file takes precedence: objects such as `exec` are merged in
//! the same way, a list replaces a list, and an empty or false value replaces nothing. All relative paths in the result are relative to the
//! later file, even those from the earlier one. The first `current-context` is used by both programs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value as Json};

use crate::exec::{Exec, ExecError};
use crate::yaml::{self, YamlError};

/// Reason why the files name no usable cluster and user, as a part of a sentence.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KubeconfigError {
    #[error("the file {} cannot be read: {source}", path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("the file {} is no YAML: {source}", path.display())]
    Yaml { path: PathBuf, source: YamlError },
    #[error("the file {} has two {kind}s with the name {name:?}; remove or rename one", path.display())]
    Twice {
        path: PathBuf,
        kind: &'static str,
        name: String,
    },
    #[error("{kind} {name:?} does not exist in the files; there are: {known}")]
    Missing {
        kind: &'static str,
        name: String,
        known: String,
    },
    #[error("{field}-data of {part:?} is no Base64: {source}")]
    Base64 {
        field: &'static str,
        part: String,
        source: base64::DecodeError,
    },
    #[error("{field}-data of {part:?} is no text")]
    NotText { field: &'static str, part: String },
    #[error("{field} of {part:?} in {} cannot be read: {source}", path.display())]
    Content {
        field: &'static str,
        part: String,
        path: PathBuf,
        source: std::io::Error,
    },
    #[error(
        "the user {user:?} has the auth-provider {provider}, which Kubernetes has given up, and no token of it: log in with a program \
         of \"exec\" (such as kubelogin), or set \"token\" of the backend"
    )]
    AuthProvider { user: String, provider: Json },
    #[error(transparent)]
    Exec(#[from] ExecError),
}

/// Address of a cluster, and credentials for it.
#[derive(Clone, Default)]
pub(crate) struct Access {
    pub server: String,
    pub authorities: Option<String>,
    pub insecure: bool,
    pub server_name: Option<String>,
    pub proxy: Option<String>,
    /// Client certificate as PEM text, with its key in [`Access::key`].
    pub certificate: Option<String>,
    pub key: Option<String>,
    pub token: Option<String>,
    /// File that contains the token. It is read for each session.
    pub token_file: Option<PathBuf>,
    pub username: Option<String>,
    pub password: Option<String>,
    pub exec: Option<Exec>,
    /// Impersonation headers with their values.
    pub instead: Vec<(String, String)>,
}

impl Access {
    /// Removes the credentials. As in `kubectl`, they are not sent without TLS.
    pub fn without_user(&mut self) {
        *self = Access {
            server: std::mem::take(&mut self.server),
            authorities: self.authorities.take(),
            insecure: self.insecure,
            server_name: self.server_name.take(),
            proxy: self.proxy.take(),
            ..Access::default()
        };
    }
}

/// Names that override the selection in the files.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choice {
    pub context: Option<String>,
    pub user: Option<String>,
    pub cluster: Option<String>,
}

/// A cluster, user or context, and the directory to which its paths are relative.
struct Part {
    name: String,
    value: Json,
    folder: PathBuf,
}

type Parts = BTreeMap<String, Part>;

/// Result of merging the files.
#[derive(Default)]
struct Files {
    current: Option<String>,
    contexts: Parts,
    clusters: Parts,
    users: Parts,
}

impl Files {
    fn add(&mut self, path: &Path, text: &str) -> Result<(), KubeconfigError> {
        let json = yaml::read(text).map_err(|source| KubeconfigError::Yaml {
            path: path.to_owned(),
            source,
        })?;
        if self.current.is_none() {
            self.current = json["current-context"]
                .as_str()
                .filter(|name| !name.is_empty())
                .map(str::to_owned);
        }
        add_parts(&mut self.contexts, path, &json["contexts"], "context")?;
        add_parts(&mut self.clusters, path, &json["clusters"], "cluster")?;
        add_parts(&mut self.users, path, &json["users"], "user")
    }
}

/// Merges a list of clusters, users or contexts into those of earlier files.
fn add_parts(parts: &mut Parts, path: &Path, list: &Json, kind: &'static str) -> Result<(), KubeconfigError> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut names = BTreeSet::new();
    for entry in list.as_array().into_iter().flatten() {
        let name = entry["name"].as_str().unwrap_or_default();
        if !names.insert(name) {
            return Err(KubeconfigError::Twice {
                path: path.to_owned(),
                kind,
                name: name.to_owned(),
            });
        }
        let part = parts.entry(name.to_owned()).or_insert_with(|| Part {
            name: name.to_owned(),
            value: Json::Null,
            folder: PathBuf::new(),
        });
        merge(&mut part.value, &entry[kind]);
        // As in Terraform, all paths are relative to the last file that contains this entry.
        folder.clone_into(&mut part.folder);
    }
    Ok(())
}

/// Merges the value of a later file into that of an earlier one.
fn merge(earlier: &mut Json, later: &Json) {
    match (earlier, later) {
        (Json::Object(earlier), Json::Object(later)) => {
            for (name, value) in later {
                merge(earlier.entry(name.clone()).or_insert(Json::Null), value);
            }
        }
        (earlier, later) if !is_empty(later) => *earlier = later.clone(),
        _ => {}
    }
}

fn is_empty(value: &Json) -> bool {
    match value {
        Json::Null | Json::Bool(false) => true,
        Json::String(text) => text.is_empty(),
        Json::Array(list) => list.is_empty(),
        Json::Object(object) => object.is_empty(),
        Json::Bool(true) | Json::Number(_) => false,
    }
}

fn find<'p>(parts: &'p Parts, kind: &'static str, name: &str) -> Result<&'p Part, KubeconfigError> {
    parts.get(name).ok_or_else(|| {
        let known: Vec<&str> = parts.keys().map(String::as_str).collect();
        KubeconfigError::Missing {
            kind,
            name: name.to_owned(),
            known: known.join(", "),
        }
    })
}

/// Returns a text of a part if it is not empty.
fn text(value: &Json, name: &str) -> Option<String> {
    value[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Returns the content of a field that is either Base64 in the file, or the path of another file; `None` if the field is not set.
fn content(part: &Part, field: &'static str) -> Result<Option<String>, KubeconfigError> {
    let name = || part.name.clone();
    if let Some(data) = text(&part.value, &format!("{field}-data")) {
        // Block scalars of YAML may break the lines of a long value.
        let bytes = BASE64.decode(data.split_whitespace().collect::<String>());
        let bytes = bytes.map_err(|source| KubeconfigError::Base64 {
            field,
            part: name(),
            source,
        })?;
        return String::from_utf8(bytes)
            .map(Some)
            .map_err(|_| KubeconfigError::NotText { field, part: name() });
    }
    let Some(path) = text(&part.value, field) else {
        return Ok(None);
    };
    let path = part.folder.join(path);
    match std::fs::read_to_string(&path) {
        Ok(content) => Ok(Some(content)),
        Err(source) => Err(KubeconfigError::Content {
            field,
            part: name(),
            path,
            source,
        }),
    }
}

/// Reads and merges the files. Without files, the result is empty.
pub(crate) fn read(paths: &[PathBuf], choice: &Choice) -> Result<Access, KubeconfigError> {
    let mut files = Files::default();
    for path in paths {
        match std::fs::read_to_string(path) {
            Ok(text) => files.add(path, &text)?,
            // A missing file counts as an empty one.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                tracing::info!("there is no file {}", path.display());
            }
            Err(source) => {
                return Err(KubeconfigError::File {
                    path: path.clone(),
                    source,
                });
            }
        }
    }
    let empty = Json::Object(Map::new());
    let context = choice.context.as_ref().or(files.current.as_ref());
    let context = match context {
        Some(name) if choice.context.is_some() || !files.contexts.is_empty() => {
            &find(&files.contexts, "context", name)?.value
        }
        _ => &empty,
    };
    let mut access = Access::default();
    if let Some(name) = choice.cluster.clone().or_else(|| text(context, "cluster")) {
        of_cluster(&mut access, find(&files.clusters, "cluster", &name)?)?;
    }
    if let Some(name) = choice.user.clone().or_else(|| text(context, "user")) {
        of_user(&mut access, find(&files.users, "user", &name)?)?;
    }
    Ok(access)
}

fn of_cluster(access: &mut Access, part: &Part) -> Result<(), KubeconfigError> {
    let value = &part.value;
    access.server = text(value, "server").unwrap_or_default();
    access.authorities = content(part, "certificate-authority")?;
    access.insecure = value["insecure-skip-tls-verify"].as_bool() == Some(true);
    access.server_name = text(value, "tls-server-name");
    access.proxy = text(value, "proxy-url");
    Ok(())
}

fn of_user(access: &mut Access, part: &Part) -> Result<(), KubeconfigError> {
    let value = &part.value;
    access.certificate = content(part, "client-certificate")?;
    access.key = content(part, "client-key")?;
    access.token = text(value, "token");
    access.token_file = text(value, "tokenFile").map(|path| part.folder.join(path));
    access.username = text(value, "username");
    access.password = text(value, "password");
    if value["exec"].is_object() {
        access.exec = Some(Exec::of_json(&value["exec"], &part.folder)?);
    }
    let provider = &value["auth-provider"];
    if provider.is_object() {
        // An auth provider caches its token in the file. The token is used whether or not it has expired.
        let token = text(&provider["config"], "id-token").or_else(|| text(&provider["config"], "access-token"));
        access.token = Some(token.ok_or_else(|| KubeconfigError::AuthProvider {
            user: part.name.clone(),
            provider: provider["name"].clone(),
        })?);
    }
    if let Some(user) = text(value, "as") {
        access.instead.push(("impersonate-user".to_owned(), user));
    }
    if let Some(id) = text(value, "as-uid") {
        access.instead.push(("impersonate-uid".to_owned(), id));
    }
    for group in value["as-groups"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Json::as_str)
    {
        access.instead.push(("impersonate-group".to_owned(), group.to_owned()));
    }
    for (name, values) in value["as-user-extra"].as_object().into_iter().flatten() {
        for extra in values.as_array().into_iter().flatten().filter_map(Json::as_str) {
            access
                .instead
                .push((format!("impersonate-extra-{name}"), extra.to_owned()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod unit {
    use super::*;

    /// Reads files with these texts, each in a separate directory.
    fn access_of_files(texts: &[&str], choice: &Choice) -> Result<Access, KubeconfigError> {
        let dir = tempfile::tempdir().unwrap();
        let path = |at: usize| dir.path().join(at.to_string()).join("config");
        for (at, text) in texts.iter().enumerate() {
            let path = path(at);
            std::fs::create_dir(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            std::fs::write(path.with_file_name("ca"), format!("CA of file {at}")).unwrap();
        }
        let mut paths: Vec<PathBuf> = (0..texts.len()).map(path).collect();
        paths.insert(0, dir.path().join("none"));
        read(&paths, choice)
    }

    fn context(name: &str) -> Choice {
        Choice {
            context: Some(name.into()),
            ..Choice::default()
        }
    }

    const ONE: &str = "
current-context: c
contexts:
- name: c
  context: {cluster: k, user: u}
- name: d
  context: {cluster: k, user: u}
clusters:
- name: k
  cluster: {server: https://one, certificate-authority: ca, insecure-skip-tls-verify: true}
users:
- name: u
  user:
    token: t
    as: other
    as-groups: [a]
    exec: {apiVersion: v, command: ./one, args: [a], env: [{name: A, value: a}]}
";

    const TWO: &str = "
current-context: d
contexts:
- name: d
  context: {cluster: l}
clusters:
- name: k
  cluster: {server: https://two, insecure-skip-tls-verify: false}
- name: l
  cluster: {server: https://three, certificate-authority: ca}
users:
- name: u
  user:
    token: ''
    as-groups: [b, c]
    exec: {command: ./two, args: []}
";

    #[test]
    fn of_several_files_the_later_one_counts_field_by_field() {
        let access = access_of_files(&[ONE, TWO], &Choice::default()).unwrap();
        assert_eq!(access.server, "https://two");
        assert!(access.insecure);
        assert_eq!(access.token.as_deref(), Some("t"));
        let instead: Vec<&str> = access.instead.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(instead, ["other", "b", "c"]);
        // The path in the first file is relative to the second file, which also contains the cluster.
        assert_eq!(access.authorities.as_deref(), Some("CA of file 1"));
        let exec = access.exec.unwrap();
        assert!(exec.command.ends_with("1/./two"), "{:?}", exec.command);
        assert_eq!(
            (exec.args.as_slice(), exec.api_version.as_str()),
            (&["a".to_owned()][..], "v")
        );
        assert_eq!(exec.env, [("A".to_owned(), "a".to_owned())]);
        // The files in the opposite order.
        let access = access_of_files(&[TWO, ONE], &Choice::default()).unwrap();
        assert_eq!(
            access.server, "https://one",
            "of the context d, which has the cluster of the later file"
        );
        assert_eq!(access.authorities.as_deref(), Some("CA of file 1"));
    }

    #[test]
    fn arguments_take_precedence_over_files() {
        let access = access_of_files(&[ONE, TWO], &context("d")).unwrap();
        assert_eq!(
            (access.server.as_str(), access.token.as_deref()),
            ("https://three", Some("t"))
        );
        let choice = Choice {
            cluster: Some("l".into()),
            ..Choice::default()
        };
        let access = access_of_files(&[ONE, TWO], &choice).unwrap();
        assert_eq!(
            (access.server.as_str(), access.authorities.as_deref()),
            ("https://three", Some("CA of file 1"))
        );
        let why = access_of_files(&[ONE, TWO], &context("x")).err().unwrap().to_string();
        assert!(
            why.contains("context \"x\" does not exist") && why.contains("there are: c, d"),
            "{why}"
        );
        assert_eq!(access_of_files(&[], &Choice::default()).unwrap().server, "");
    }

    #[test]
    fn two_with_one_name_in_a_file_are_refused() {
        let twice = "users:\n- name: u\n  user: {token: a}\n- name: u\n  user: {token: b}\n";
        let why = access_of_files(&[ONE, twice], &Choice::default())
            .err()
            .unwrap()
            .to_string();
        assert!(why.contains("1/config has two users with the name \"u\""), "{why}");
    }
}
