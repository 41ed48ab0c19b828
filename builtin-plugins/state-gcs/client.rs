//! The objects of the bucket, and the locks among them.

use monoform_sdk::state_store::{DEFAULT, LockError, LockInfo, WorkspaceSupport};
use monoform_sdk::{Diagnostic, Diagnostics, Result, async_trait};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value as Json, json};
use store_client::guard::{Holder, LockedStore, Revision, Snapshot, Written};
use store_client::sum::md5_base64;
use store_client::{Answer, HeaderMap, HeaderValue, Method, Url, json_reason};

use crate::config::{Encryption, Settings};

const READ: &str = "Error reading the state";
const WRITE: &str = "Error writing the state";
const DELETE: &str = "Error deleting the state";
const LIST: &str = "Failed to list workspaces";
const LOCK: &str = "Error acquiring the state lock";
const UNLOCK: &str = "Cannot release the state lock";

const STATE: &str = ".tfstate";
const LOCK_FILE: &str = ".tflock";

/// What stays as it is in a part of a path or of a query.
const PART: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, PART).to_string()
}

/// A bucket with states.
pub(crate) struct Client {
    settings: Settings,
}

/// Joins prefix and name as Terraform does: without empty parts, and those that lead nowhere.
fn joined(prefix: &str, name: &str) -> String {
    let mut out: Vec<&str> = Vec::new();
    for part in prefix.split('/').chain([name]) {
        match part {
            "" | "." => {}
            ".." => drop(out.pop()),
            part => out.push(part),
        }
    }
    out.join("/")
}

/// What a request is about: for messages.
struct About<'a> {
    summary: &'a str,
    what: String,
}

/// The number of a generation, which is text in JSON.
fn generation(answer: &Answer) -> Option<String> {
    let json: Json = serde_json::from_slice(&answer.body).ok()?;
    match &json["generation"] {
        Json::String(text) => Some(text.clone()),
        Json::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The message of an error, which is JSON or plain text.
fn message(answer: &Answer) -> String {
    let text = answer.text();
    let json: Json = serde_json::from_str(&text).unwrap_or_default();
    let said = json["error"]["message"].as_str().unwrap_or(text.trim());
    said.chars().take(500).collect()
}

impl Client {
    pub fn new(settings: Settings) -> Client {
        Client { settings }
    }

    fn object(&self, workspace: &str, ending: &str) -> String {
        joined(&self.settings.prefix, &format!("{workspace}{ending}"))
    }

    fn place(&self, object: &str) -> String {
        format!("gs://{}/{object}", self.settings.bucket)
    }

    fn about<'a>(&self, summary: &'a str, what: &str, object: &str) -> About<'a> {
        About {
            summary,
            what: format!("{what} {}", self.place(object)),
        }
    }

    /// The address of an object, or of all of them.
    fn address(&self, object: Option<&str>, query: &str) -> Result<Url> {
        let mut path = format!("b/{}/o", encoded(&self.settings.bucket));
        if let Some(object) = object {
            path.push('/');
            path.push_str(&encoded(object));
        }
        self.joined_address(&path, query)
    }

    /// The address of writes. It is not below the one of the interface.
    fn upload_address(&self, query: &str) -> Result<Url> {
        let path = format!("/upload/storage/v1/b/{}/o", encoded(&self.settings.bucket));
        self.joined_address(&path, query)
    }

    fn joined_address(&self, path: &str, query: &str) -> Result<Url> {
        let mut url = self.settings.endpoint.join(path).map_err(|e| {
            Diagnostic::error(
                "Invalid GCS backend configuration",
                format!("The address of the service is not one that objects can be below: {e}."),
            )
        })?;
        url.set_query((!query.is_empty()).then_some(query));
        Ok(url)
    }

    async fn send(
        &self,
        about: &About<'_>,
        method: Method,
        url: &Url,
        mut headers: HeaderMap,
        body: Option<Vec<u8>>,
    ) -> Result<Answer> {
        let http = &self.settings.http;
        self.settings.credentials.sign(http, &mut headers).await?;
        let sent = http.send(method, url, headers, body).await;
        sent.map_err(|failure| failure.diagnostic(about.summary, &about.what).into())
    }

    /// The headers for what is encrypted with our own key.
    fn with_key(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Encryption::Customer(key, sum) = &self.settings.encryption {
            headers.insert("x-goog-encryption-algorithm", HeaderValue::from_static("AES256"));
            // Base64 fits into headers.
            if let (Ok(mut key), Ok(sum)) = (HeaderValue::from_str(key), HeaderValue::from_str(sum)) {
                key.set_sensitive(true);
                headers.insert("x-goog-encryption-key", key);
                headers.insert("x-goog-encryption-key-sha256", sum);
            }
        }
        headers
    }

    /// The content of an object, and its generation.
    async fn get(&self, about: &About<'_>, object: &str, headers: HeaderMap) -> Result<Snapshot> {
        let url = self.address(Some(object), "alt=media")?;
        let answer = self.send(about, Method::GET, &url, headers, None).await?;
        match answer.status.as_u16() {
            200 => Ok(Snapshot {
                revision: Revision::named(answer.header("x-goog-generation")),
                state: Some(answer.body),
            }),
            404 if !is_about_bucket(&answer) => Ok(Snapshot {
                state: None,
                revision: Some(Revision::Absent),
            }),
            _ => Err(self.problem(about, &answer)),
        }
    }

    /// Writes an object, under a condition if `query` has one.
    async fn put(
        &self,
        about: &About<'_>,
        object: &str,
        query: &str,
        headers: HeaderMap,
        body: &[u8],
    ) -> Result<Answer> {
        // The service compares the sum, and refuses what was changed on its way.
        let kind = "text/plain; charset=utf-8";
        let sum = md5_base64(body);
        let metadata = json!({"bucket": self.settings.bucket, "name": object, "contentType": kind, "md5Hash": sum});
        let boundary = format!("monoform-{}", sum.trim_end_matches('=').replace(['+', '/'], "-"));
        let mut parts = format!(
            "--{boundary}\r\nContent-Type: application/json\r\n\r\n{metadata}\r\n--{boundary}\r\nContent-Type: {kind}\r\n\r\n"
        )
        .into_bytes();
        parts.extend_from_slice(body);
        parts.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
        let mut headers = headers;
        if let Ok(kind) = HeaderValue::from_str(&format!("multipart/related; boundary={boundary}")) {
            headers.insert("content-type", kind);
        }
        let url = self.upload_address(&format!("uploadType=multipart&name={}{query}", encoded(object)))?;
        self.send(about, Method::POST, &url, headers, Some(parts)).await
    }

    /// Who holds a lock, by the name that it has for unlocking; `None` if nobody does.
    async fn lock_in(&self, object: &str) -> Result<Option<(LockInfo, String)>> {
        let about = self.about(LOCK, "Reading the lock", object);
        let Some(content) = self.get(&about, object, HeaderMap::new()).await?.state else {
            return Ok(None);
        };
        let unreadable = || {
            let detail = format!(
                "The object {} is no lock: it has no lock information in it.",
                self.place(object)
            );
            Diagnostics::from(Diagnostic::error(LOCK, detail))
        };
        let mut info = LockInfo::from_json(&content).ok_or_else(unreadable)?;
        let Some(generation) = self.generation(&about, object).await? else {
            return Ok(None);
        };
        let own_name = std::mem::replace(&mut info.id, generation);
        Ok(Some((info, own_name)))
    }

    /// The generation of an object; `None` if it is not there.
    async fn generation(&self, about: &About<'_>, object: &str) -> Result<Option<String>> {
        let url = self.address(Some(object), "")?;
        let answer = self.send(about, Method::GET, &url, HeaderMap::new(), None).await?;
        match answer.status.as_u16() {
            200 => match generation(&answer) {
                Some(generation) => Ok(Some(generation)),
                None => {
                    let detail = format!("{} was answered without the generation of the object.", about.what);
                    Err(Diagnostic::error(about.summary, detail).into())
                }
            },
            404 if !is_about_bucket(&answer) => Ok(None),
            _ => Err(self.problem(about, &answer)),
        }
    }

    /// An answer that is an error, in words.
    fn problem(&self, about: &About<'_>, answer: &Answer) -> Diagnostics {
        let bucket = &self.settings.bucket;
        let advice = match answer.status.as_u16() {
            404 if is_about_bucket(answer) => format!(
                " Create the bucket: gcloud storage buckets create gs://{bucket} --uniform-bucket-level-access\nOr, if it is \
                 there, correct \"bucket\" or the account that is used."
            ),
            401 => format!(
                " The credentials are not accepted: they may have expired. They are {}.",
                self.settings.credentials.origin()
            ),
            403 => format!(
                " The account needs the permissions of the role Storage Object User on the bucket: gcloud storage buckets \
                 add-iam-policy-binding gs://{bucket} --member=serviceAccount:ACCOUNT --role=roles/storage.objectUser\nThe \
                 credentials are {}.",
                self.settings.credentials.origin()
            ),
            400 if message(answer).contains("customer-supplied encryption key")
                || message(answer).contains("encryption key") =>
            {
                " The state is encrypted with another key than \"encryption_key\" (or GOOGLE_ENCRYPTION_KEY), or with none."
                    .to_owned()
            }
            412 => " The object has changed meanwhile.".to_owned(),
            500..=599 => " This is a problem of the service: try again later.".to_owned(),
            _ => String::new(),
        };
        let said = match message(answer) {
            text if text.is_empty() => String::new(),
            text => format!(": {}", text.trim_end_matches('.')),
        };
        let detail = format!(
            "{} was answered with the status {}{said}.{advice}",
            about.what, answer.status
        );
        Diagnostic::error(about.summary, detail).into()
    }
}

/// Whether an answer says that there is no such bucket, and not only no such object.
fn is_about_bucket(answer: &Answer) -> bool {
    answer.status.as_u16() == 404 && message(answer).to_ascii_lowercase().contains("bucket does not exist")
}

#[async_trait]
impl LockedStore for Client {
    fn support(&self) -> WorkspaceSupport {
        WorkspaceSupport::NamedByState
    }

    async fn workspaces(&self) -> Result<Vec<String>> {
        let prefix = &self.settings.prefix;
        let about = self.about(LIST, "Listing the states in", prefix);
        let mut names = vec![DEFAULT.to_owned()];
        let mut page = String::new();
        loop {
            let query = format!(
                "delimiter=%2F&prefix={}&fields=items(name)%2CnextPageToken{page}",
                encoded(prefix)
            );
            let url = self.address(None, &query)?;
            let answer = self.send(&about, Method::GET, &url, HeaderMap::new(), None).await?;
            if answer.status.as_u16() != 200 {
                return Err(self.problem(&about, &answer));
            }
            let json: Json = serde_json::from_slice(&answer.body).map_err(|e| {
                let detail = format!(
                    "{} was answered with something that is no JSON: {}.",
                    about.what,
                    json_reason(e)
                );
                Diagnostic::error(LIST, detail)
            })?;
            let items = json["items"].as_array().into_iter().flatten();
            for name in items.filter_map(|item| item["name"].as_str()) {
                let base = name.rsplit('/').next().unwrap_or(name);
                match base.strip_suffix(STATE) {
                    Some(workspace) if workspace != DEFAULT => names.push(workspace.to_owned()),
                    _ => {}
                }
            }
            match json["nextPageToken"].as_str() {
                Some(token) if !token.is_empty() => page = format!("&pageToken={}", encoded(token)),
                _ => return Ok(names),
            }
        }
    }

    async fn read(&self, workspace: &str) -> Result<Snapshot> {
        let object = self.object(workspace, STATE);
        let about = self.about(READ, "Reading", &object);
        let mut snapshot = self.get(&about, &object, self.with_key()).await?;
        snapshot.state = snapshot.state.filter(|state| !state.is_empty());
        Ok(snapshot)
    }

    async fn write(&self, workspace: &str, state: &[u8], expected: Option<&Revision>) -> Result<Written> {
        let object = self.object(workspace, STATE);
        let about = self.about(WRITE, "Writing", &object);
        let mut query = match &self.settings.encryption {
            Encryption::Kms(key) => format!("&kmsKeyName={}", encoded(key)),
            _ => String::new(),
        };
        match expected {
            Some(Revision::Named(generation)) => query.push_str(&format!("&ifGenerationMatch={}", encoded(generation))),
            Some(Revision::Absent) => query.push_str("&ifGenerationMatch=0"),
            None => {}
        }
        let answer = self.put(&about, &object, &query, self.with_key(), state).await?;
        match answer.status.as_u16() {
            200..=299 => Ok(Written::Done(Revision::named(generation(&answer).as_deref()))),
            412 => Ok(Written::Changed),
            _ => Err(self.problem(&about, &answer)),
        }
    }

    async fn delete(&self, workspace: &str) -> Result<()> {
        if workspace == DEFAULT || workspace.is_empty() {
            let detail = "The default workspace is always there.";
            return Err(Diagnostic::error("Cannot delete the workspace", detail).into());
        }
        let object = self.object(workspace, STATE);
        let about = self.about(DELETE, "Deleting", &object);
        let url = self.address(Some(&object), "")?;
        let answer = self.send(&about, Method::DELETE, &url, HeaderMap::new(), None).await?;
        match answer.status.as_u16() {
            200..=299 => Ok(()),
            404 if !is_about_bucket(&answer) => Ok(()),
            _ => Err(self.problem(&about, &answer)),
        }
    }

    async fn lock(&self, workspace: &str, info: LockInfo) -> std::result::Result<String, LockError> {
        store_client::lock::settled(|| self.take(workspace, info.clone())).await
    }

    async fn unlock(&self, workspace: &str, id: &str) -> Result<()> {
        let object = self.object(workspace, LOCK_FILE);
        if id.is_empty() || !id.bytes().all(|b| b.is_ascii_digit()) {
            let detail = format!(
                "Lock ID should be numerical value, got '{id}'. The ID of a lock in Google Cloud Storage is the generation of \
                 its object, which the message about the held lock shows."
            );
            return Err(Diagnostic::error(UNLOCK, detail).into());
        }
        let about = self.about(UNLOCK, "Removing the lock", &object);
        let url = self.address(Some(&object), &format!("ifGenerationMatch={id}"))?;
        let answer = self.send(&about, Method::DELETE, &url, HeaderMap::new(), None).await?;
        let detail = match answer.status.as_u16() {
            200..=299 => return Ok(()),
            404 if !is_about_bucket(&answer) => {
                format!("The state is not locked: there is no {}.", self.place(&object))
            }
            412 => match self.lock_in(&object).await {
                Ok(Some((holder, _))) => format!(
                    "The lock {} has the ID {:?}, and not {id:?}: {holder}.",
                    self.place(&object),
                    holder.id
                ),
                _ => format!("The lock {} has another ID than {id:?}.", self.place(&object)),
            },
            _ => return Err(self.problem(&about, &answer)),
        };
        Err(Diagnostic::error(UNLOCK, detail).into())
    }

    async fn holder(&self, workspace: &str, own: &str) -> Result<Holder> {
        let object = self.object(workspace, LOCK_FILE);
        let about = self.about(WRITE, "Reading the lock", &object);
        if self.generation(&about, &object).await?.as_deref() == Some(own) {
            return Ok(Holder::Own);
        }
        let found = self.lock_in(&object).await?;
        Ok(Holder::of(found.map(|(info, _)| info), own))
    }
}

impl Client {
    /// Tries once to take the lock of a state.
    async fn take(&self, workspace: &str, mut info: LockInfo) -> std::result::Result<String, LockError> {
        let object = self.object(workspace, LOCK_FILE);
        let about = self.about(LOCK, "Writing the lock", &object);
        info.path = self.place(&object);
        let body = info.to_json().into_bytes();
        let answer = self
            .put(&about, &object, "&ifGenerationMatch=0", HeaderMap::new(), &body)
            .await?;
        if answer.status.is_success() {
            return generation(&answer).ok_or_else(|| {
                let detail = format!("{} was answered without the generation of the object.", about.what);
                Diagnostic::error(LOCK, detail).into()
            });
        }
        if answer.status.as_u16() != 412 {
            return Err(LockError::Failed(self.problem(&about, &answer)));
        }
        match self.lock_in(&object).await? {
            // The answer to a first attempt was lost on its way: the lock is ours.
            Some((holder, name)) if !info.id.is_empty() && name == info.id => Ok(holder.id),
            Some((holder, _)) => Err(LockError::held(
                Some(holder),
                format!("The lock {} is there already.", self.place(&object)),
            )),
            None => Err(LockError::held(
                None,
                format!(
                    "The lock {} was there, and is gone now: try again.",
                    self.place(&object)
                ),
            )),
        }
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn names_are_joined_as_paths() {
        assert_eq!(joined("", "default.tfstate"), "default.tfstate");
        assert_eq!(joined("a//b/", "dev.tfstate"), "a/b/dev.tfstate");
        assert_eq!(joined("a/./b/../c/", "x.tflock"), "a/c/x.tflock");
        assert_eq!(encoded("a dir/s+t.tfstate"), "a%20dir%2Fs%2Bt.tfstate");
    }
}
