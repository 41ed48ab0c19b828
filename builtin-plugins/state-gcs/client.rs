//! Objects of the bucket, some of which are locks.

use monoform_sdk::state_store::{LockError, LockInfo, WorkspaceSupport};
use monoform_sdk::{Diagnostic, Diagnostics, Result, async_trait};
use serde_json::{Value as Json, json};
use store_client::about::{About, DELETE, LIST, LOCK, READ, UNLOCK, WRITE, problem};
use store_client::guard::{LockedStore, Revision, Snapshot, Written};
use store_client::listing::{self, Page};
use store_client::lock::{Created, Found, LockRecord, Records, Removed};
use store_client::name::{encoded, joined};
use store_client::sum::md5_base64;
use store_client::{Answer, HeaderMap, HeaderValue, Method, Url, json_reason};

use crate::config::{Encryption, Settings};

const STATE: &str = ".tfstate";
const LOCK_FILE: &str = ".tflock";

/// Client for a bucket with states.
pub(crate) struct Client {
    settings: Settings,
}

/// Returns the generation in an answer. It is a string in JSON, because it has 64 bits.
fn generation(answer: &Answer) -> Option<String> {
    let json: Json = serde_json::from_slice(&answer.body).ok()?;
    match &json["generation"] {
        Json::String(text) => Some(text.clone()),
        Json::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Returns the message of an error answer, which is JSON or plain text.
fn message(answer: &Answer) -> String {
    let text = answer.text();
    let json: Json = serde_json::from_str(&text).unwrap_or_default();
    let said = json["error"]["message"].as_str().unwrap_or(text.trim());
    said.chars().take(500).collect()
}

fn without_generation(about: About<'_>) -> Diagnostics {
    let detail = format!("{} was answered without the generation of the object.", about.what);
    problem(about.summary, detail)
}

impl Client {
    pub fn new(settings: Settings) -> Client {
        Client { settings }
    }

    fn object(&self, workspace: &str, ending: &str) -> String {
        joined(&[&self.settings.prefix, &format!("{workspace}{ending}")])
    }

    fn place(&self, object: &str) -> String {
        format!("gs://{}/{object}", self.settings.bucket)
    }

    fn what(&self, doing: &str, object: &str) -> String {
        format!("{doing} {}", self.place(object))
    }

    /// Returns the URL of an object, or of the list of objects.
    fn address(&self, object: Option<&str>, query: &str) -> Result<Url> {
        let mut path = format!("b/{}/o", encoded(&self.settings.bucket));
        if let Some(object) = object {
            path.push('/');
            path.push_str(&encoded(object));
        }
        self.joined_address(&path, query)
    }

    /// Returns the URL for uploads, which is not below the URL of the JSON API.
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
        about: About<'_>,
        method: Method,
        url: &Url,
        mut headers: HeaderMap,
        body: Option<Vec<u8>>,
    ) -> Result<Answer> {
        let http = &self.settings.http;
        self.settings.credentials.sign(http, &mut headers).await?;
        let sent = http.send(method, url, headers, body).await;
        sent.map_err(|failure| failure.diagnostic(about.summary, about.what).into())
    }

    /// Returns the headers for an object that is encrypted with a customer-supplied key.
    fn with_key(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        if let Encryption::Customer(key, sum) = &self.settings.encryption {
            headers.insert("x-goog-encryption-algorithm", HeaderValue::from_static("AES256"));
            // Base64 is always a valid header value, so nothing is left out here.
            if let (Ok(mut key), Ok(sum)) = (HeaderValue::from_str(key), HeaderValue::from_str(sum)) {
                key.set_sensitive(true);
                headers.insert("x-goog-encryption-key", key);
                headers.insert("x-goog-encryption-key-sha256", sum);
            }
        }
        headers
    }

    /// Reads an object and its generation.
    async fn get(&self, about: About<'_>, object: &str, headers: HeaderMap) -> Result<Snapshot> {
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

    /// Writes an object. `query` may contain a condition.
    async fn put(
        &self,
        about: About<'_>,
        object: &str,
        query: &str,
        headers: HeaderMap,
        body: &[u8],
    ) -> Result<Answer> {
        // With the checksum, the service rejects a body that was damaged in transit.
        let kind = "text/plain; charset=utf-8";
        let sum = md5_base64(body);
        let metadata = json!({"bucket": self.settings.bucket, "name": object, "contentType": kind, "md5Hash": sum});
        // The boundary contains the checksum of the state, so it cannot occur in the state.
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

    /// Returns the generation of an object; `None` if it does not exist.
    async fn generation(&self, about: About<'_>, object: &str) -> Result<Option<String>> {
        let url = self.address(Some(object), "")?;
        let answer = self.send(about, Method::GET, &url, HeaderMap::new(), None).await?;
        match answer.status.as_u16() {
            200 => generation(&answer).map(Some).ok_or_else(|| without_generation(about)),
            404 if !is_about_bucket(&answer) => Ok(None),
            _ => Err(self.problem(about, &answer)),
        }
    }

    /// Requests one page of the list of objects below the prefix.
    async fn page(&self, about: About<'_>, place: Option<String>) -> Result<Page> {
        let mut query = format!(
            "delimiter=%2F&prefix={}&fields=items(name)%2CnextPageToken",
            encoded(&self.settings.prefix)
        );
        if let Some(place) = place {
            query.push_str(&format!("&pageToken={}", encoded(&place)));
        }
        let url = self.address(None, &query)?;
        let answer = self.send(about, Method::GET, &url, HeaderMap::new(), None).await?;
        if answer.status.as_u16() != 200 {
            return Err(self.problem(about, &answer));
        }
        let json: Json = serde_json::from_slice(&answer.body).map_err(|e| {
            let detail = format!(
                "{} was answered with something that is no JSON: {}.",
                about.what,
                json_reason(e)
            );
            problem(about.summary, detail)
        })?;
        let items = json["items"].as_array().into_iter().flatten();
        let names = items.filter_map(|item| item["name"].as_str());
        Ok(Page {
            names: names
                .map(|name| name.rsplit('/').next().unwrap_or(name).to_owned())
                .collect(),
            next: json["nextPageToken"].as_str().map(str::to_owned),
        })
    }

    /// Builds the diagnostic for an error, with advice for its status.
    fn problem(&self, about: About<'_>, answer: &Answer) -> Diagnostics {
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

/// Returns true if the answer reports that the bucket does not exist, and not only the object.
fn is_about_bucket(answer: &Answer) -> bool {
    answer.status.as_u16() == 404 && message(answer).to_ascii_lowercase().contains("bucket does not exist")
}

#[async_trait]
impl LockedStore for Client {
    fn support(&self) -> WorkspaceSupport {
        WorkspaceSupport::NamedByState
    }

    async fn workspaces(&self) -> Result<Vec<String>> {
        let what = self.what("Listing the states in", &self.settings.prefix);
        let about = About {
            summary: LIST,
            what: &what,
        };
        let names = listing::names(about, |place| self.page(about, place)).await?;
        Ok(listing::workspaces(names.iter().map(String::as_str), "", STATE))
    }

    async fn read(&self, workspace: &str) -> Result<Snapshot> {
        let object = self.object(workspace, STATE);
        let what = self.what("Reading", &object);
        let about = About {
            summary: READ,
            what: &what,
        };
        let mut snapshot = self.get(about, &object, self.with_key()).await?;
        snapshot.state = snapshot.state.filter(|state| !state.is_empty());
        Ok(snapshot)
    }

    async fn write(&self, workspace: &str, state: &[u8], expected: Option<&Revision>) -> Result<Written> {
        let object = self.object(workspace, STATE);
        let what = self.what("Writing", &object);
        let about = About {
            summary: WRITE,
            what: &what,
        };
        let mut query = match &self.settings.encryption {
            Encryption::Kms(key) => format!("&kmsKeyName={}", encoded(key)),
            _ => String::new(),
        };
        match expected {
            Some(Revision::Named(generation)) => query.push_str(&format!("&ifGenerationMatch={}", encoded(generation))),
            // As a condition, the generation 0 means that the object does not exist.
            Some(Revision::Absent) => query.push_str("&ifGenerationMatch=0"),
            None => {}
        }
        let answer = self.put(about, &object, &query, self.with_key(), state).await?;
        match answer.status.as_u16() {
            200..=299 => Ok(Written::Done(Revision::named(generation(&answer).as_deref()))),
            412 => Ok(Written::Changed),
            _ => Err(self.problem(about, &answer)),
        }
    }

    async fn delete(&self, workspace: &str) -> Result<()> {
        let object = self.object(workspace, STATE);
        let what = self.what("Deleting", &object);
        let about = About {
            summary: DELETE,
            what: &what,
        };
        let url = self.address(Some(&object), "")?;
        let answer = self.send(about, Method::DELETE, &url, HeaderMap::new(), None).await?;
        match answer.status.as_u16() {
            200..=299 => Ok(()),
            404 if !is_about_bucket(&answer) => Ok(()),
            _ => Err(self.problem(about, &answer)),
        }
    }

    fn lock_records<'s>(&'s self, workspace: &'s str) -> Result<Records<'s>> {
        Ok(vec![Box::new(LockObject {
            client: self,
            object: self.object(workspace, LOCK_FILE),
        })])
    }
}

/// Object that locks a state. As in Terraform, the lock ID is its generation.
struct LockObject<'c> {
    client: &'c Client,
    object: String,
}

#[async_trait]
impl LockRecord for LockObject<'_> {
    fn name(&self) -> String {
        format!("the lock {}", self.path())
    }

    fn path(&self) -> String {
        self.client.place(&self.object)
    }

    async fn create(&self, info: &LockInfo) -> std::result::Result<Created, LockError> {
        let what = self.client.what("Writing the lock", &self.object);
        let about = About {
            summary: LOCK,
            what: &what,
        };
        let body = info.to_json().into_bytes();
        // The lock is not encrypted with the customer-supplied key, so that everyone can read its holder.
        let headers = HeaderMap::new();
        let answer = self
            .client
            .put(about, &self.object, "&ifGenerationMatch=0", headers, &body)
            .await?;
        match answer.status.as_u16() {
            200..=299 => Ok(Created::Done(
                generation(&answer).ok_or_else(|| without_generation(about))?,
            )),
            412 => Ok(Created::Exists),
            _ => Err(self.client.problem(about, &answer).into()),
        }
    }

    async fn find(&self, summary: &str) -> Result<Option<Found>> {
        let what = self.client.what("Reading the lock", &self.object);
        let about = About { summary, what: &what };
        let Snapshot { state, revision } = self.client.get(about, &self.object, HeaderMap::new()).await?;
        let Some(content) = state else {
            return Ok(None);
        };
        let info = LockInfo::from_json(&content).ok_or_else(|| {
            let detail = format!(
                "The object {} is no lock: it has no lock information in it.",
                self.path()
            );
            problem(summary, detail)
        })?;
        let generation = match revision {
            Some(Revision::Named(generation)) => generation,
            // Some compatible services do not return the generation with the content.
            _ => match self.client.generation(about, &self.object).await? {
                Some(generation) => generation,
                None => return Ok(None),
            },
        };
        Ok(Some(Found {
            version: Some(generation.clone()),
            ..Found::with_id(info, generation)
        }))
    }

    async fn remove(&self, found: &Found) -> Result<Removed> {
        let what = self.client.what("Removing the lock", &self.object);
        let about = About {
            summary: UNLOCK,
            what: &what,
        };
        // With this condition, a newer lock of another program is not removed.
        let query = format!("ifGenerationMatch={}", found.info.id);
        let url = self.client.address(Some(&self.object), &query)?;
        let answer = self
            .client
            .send(about, Method::DELETE, &url, HeaderMap::new(), None)
            .await?;
        match answer.status.as_u16() {
            200..=299 => Ok(Removed::Done),
            412 => Ok(Removed::Changed),
            404 if !is_about_bucket(&answer) => Ok(Removed::Changed),
            _ => Err(self.client.problem(about, &answer)),
        }
    }
}
