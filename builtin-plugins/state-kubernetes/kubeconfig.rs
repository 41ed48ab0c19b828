//! The files in which `kubectl` keeps clusters and users.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value as Json};

use crate::exec::Exec;
use crate::yaml;

/// A cluster, and who we are to it.
#[derive(Clone, Default)]
pub(crate) struct Access {
    pub server: String,
    pub authorities: Option<String>,
    pub insecure: bool,
    pub server_name: Option<String>,
    pub proxy: Option<String>,
    /// Certificate and key of the client, as PEM text.
    pub certificate: Option<String>,
    pub key: Option<String>,
    pub token: Option<String>,
    /// Where the token is read from each time.
    pub token_file: Option<PathBuf>,
    pub username: Option<String>,
    pub password: Option<String>,
    pub exec: Option<Exec>,
    /// Whose place is taken: headers with their values.
    pub instead: Vec<(String, String)>,
}

impl Access {
    /// Removes who we are: as kubectl does it, that is not said without TLS.
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

/// What is chosen in the files, in place of what they choose themselves.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choice {
    pub context: Option<String>,
    pub user: Option<String>,
    pub cluster: Option<String>,
}

/// A part of a file, and the folder that paths in it begin at.
struct Part {
    name: String,
    value: Json,
    folder: PathBuf,
}

/// Several files as one: of parts with the same name the first counts.
#[derive(Default)]
struct Files {
    current: Option<String>,
    contexts: Vec<Part>,
    clusters: Vec<Part>,
    users: Vec<Part>,
}

impl Files {
    fn add(&mut self, path: &Path, text: &str) -> Result<(), String> {
        let json = yaml::read(text).map_err(|why| format!("the file {} is no YAML: {why}", path.display()))?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        if self.current.is_none() {
            self.current = json["current-context"]
                .as_str()
                .filter(|name| !name.is_empty())
                .map(str::to_owned);
        }
        let parts = |list: &str, inner: &str| -> Vec<Part> {
            let entries = json[list].as_array().into_iter().flatten();
            let part = |entry: &Json| Part {
                name: entry["name"].as_str().unwrap_or_default().to_owned(),
                value: entry[inner].clone(),
                folder: folder.clone(),
            };
            entries.map(part).collect()
        };
        self.contexts.extend(parts("contexts", "context"));
        self.clusters.extend(parts("clusters", "cluster"));
        self.users.extend(parts("users", "user"));
        Ok(())
    }
}

fn find<'p>(parts: &'p [Part], what: &str, name: &str) -> Result<&'p Part, String> {
    parts.iter().find(|part| part.name == name).ok_or_else(|| {
        let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
        format!(
            "{what} {name:?} does not exist in the files; there are: {}",
            names.join(", ")
        )
    })
}

/// Text of a part, if it is not empty.
fn text(value: &Json, name: &str) -> Option<String> {
    value[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// The content of what is in the file itself as Base64, or in another.
fn content(part: &Part, name: &str) -> Result<Option<String>, String> {
    if let Some(data) = text(&part.value, &format!("{name}-data")) {
        let bytes = BASE64.decode(data.split_whitespace().collect::<String>());
        let bytes = bytes.map_err(|e| format!("{name}-data of {:?} is no Base64: {e}", part.name))?;
        return String::from_utf8(bytes)
            .map(Some)
            .map_err(|_| format!("{name}-data of {:?} is no text", part.name));
    }
    let Some(path) = text(&part.value, name) else {
        return Ok(None);
    };
    let path = part.folder.join(path);
    std::fs::read_to_string(&path)
        .map(Some)
        .map_err(|e| format!("{name} of {:?} in {} cannot be read: {e}", part.name, path.display()))
}

/// What the files say; nothing if there are none.
pub(crate) fn read(paths: &[PathBuf], choice: &Choice) -> Result<Access, String> {
    let mut files = Files::default();
    for path in paths {
        match std::fs::read_to_string(path) {
            Ok(text) => files.add(path, &text)?,
            // A file that is not there has nothing in it.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                tracing::info!("there is no file {}", path.display());
            }
            Err(e) => return Err(format!("the file {} cannot be read: {e}", path.display())),
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

fn of_cluster(access: &mut Access, part: &Part) -> Result<(), String> {
    let value = &part.value;
    access.server = text(value, "server").unwrap_or_default();
    access.authorities = content(part, "certificate-authority")?;
    access.insecure = value["insecure-skip-tls-verify"].as_bool() == Some(true);
    access.server_name = text(value, "tls-server-name");
    access.proxy = text(value, "proxy-url");
    Ok(())
}

fn of_user(access: &mut Access, part: &Part) -> Result<(), String> {
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
        // The token that such a provider has got is used as long as it holds.
        let token = text(&provider["config"], "id-token").or_else(|| text(&provider["config"], "access-token"));
        access.token = Some(token.ok_or_else(|| {
            format!(
                "the user {:?} has the auth-provider {}, which Kubernetes has given up, and no token of it: log in with a program \
                 of \"exec\" (such as kubelogin), or set \"token\" of the backend",
                part.name, provider["name"]
            )
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

    #[test]
    fn files_are_one_and_choices_count_first() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::write(
            path("one"),
            "current-context: c\ncontexts:\n- name: c\n  context: {cluster: k, user: u}\nclusters:\n- name: k\n  cluster: {server: https://one}\n",
        )
        .unwrap();
        std::fs::write(
            path("two"),
            "current-context: d\nclusters:\n- name: k\n  cluster: {server: https://two}\n- name: l\n  cluster: {server: https://three, certificate-authority: ca}\nusers:\n- name: u\n  user: {token: t, as: other}\n",
        )
        .unwrap();
        std::fs::write(path("ca"), "PEM").unwrap();
        let files = [path("one"), path("none"), path("two")];
        let access = read(&files, &Choice::default()).unwrap();
        assert_eq!(
            (access.server.as_str(), access.token.as_deref()),
            ("https://one", Some("t"))
        );
        assert_eq!(access.instead, [("impersonate-user".to_owned(), "other".to_owned())]);
        let choice = Choice {
            cluster: Some("l".into()),
            ..Choice::default()
        };
        let access = read(&files, &choice).unwrap();
        assert_eq!(
            (access.server.as_str(), access.authorities.as_deref()),
            ("https://three", Some("PEM"))
        );
        let choice = Choice {
            context: Some("x".into()),
            ..Choice::default()
        };
        let why = read(&files, &choice).err().unwrap();
        assert!(
            why.contains("context \"x\" does not exist") && why.contains("there are: c"),
            "{why}"
        );
        assert_eq!(read(&[], &Choice::default()).unwrap().server, "");
    }
}
