//! The objects of the bucket, and the locks among them.

use monoform_sdk::state_store::{DEFAULT, LockError, LockInfo, WorkspaceSupport};
use monoform_sdk::{Diagnostic, Diagnostics, Result, async_trait};
use serde_json::Value as Json;
use store_client::guard::{Holder, LockedStore, Revision, Snapshot, Written};
use store_client::name::joined;
use store_client::sum::md5_base64;
use store_client::{Answer, Method};

use crate::cloud::{About, said};
use crate::settings::{Encryption, Settings};
use crate::upload;

const READ: &str = "Error reading the state";
pub(crate) const WRITE: &str = "Error writing the state";
const DELETE: &str = "Error deleting the state";
const LIST: &str = "Failed to list workspaces";
const LOCK: &str = "Error acquiring the state lock";
const UNLOCK: &str = "Cannot release the state lock";

/// How often a lock is tried for that was held, and is free when it is asked who holds it.
const ATTEMPTS: u32 = 10;

/// The part of a bucket's address under which its objects are.
pub(crate) const OBJECTS: &str = "o";

/// The header with the condition of a write.
pub(crate) type Condition = Option<(&'static str, String)>;

/// Where the next page of a list begins; `None` after the last.
type Next = fn(&Answer, &Json) -> Option<String>;

/// A bucket with states.
pub(crate) struct Client {
    pub settings: Settings,
}

fn problem(summary: &str, detail: impl Into<String>) -> Diagnostics {
    Diagnostic::error(summary, detail).into()
}

impl Client {
    pub fn new(settings: Settings) -> Client {
        Client { settings }
    }

    /// Whether there is an identity.
    pub async fn check(&self) -> Result<()> {
        self.settings.cloud.identity().await.map(drop)
    }

    fn object(&self, workspace: &str) -> String {
        let Settings { prefix, key, .. } = &self.settings;
        match workspace {
            DEFAULT => key.clone(),
            name => joined(&[prefix, name, key]),
        }
    }

    fn lock_object(&self, workspace: &str) -> String {
        format!("{}.lock", self.object(workspace))
    }

    pub fn what(&self, doing: &str, object: &str) -> String {
        format!(
            "{doing} the object {object:?} of the bucket {:?}",
            self.settings.cloud.bucket
        )
    }

    /// The headers for reading what is encrypted with our own key.
    fn reading(&self) -> Vec<(&'static str, String)> {
        match &self.settings.encryption {
            Encryption::Own(algorithm, key, sum) => vec![
                ("opc-sse-customer-algorithm", algorithm.clone()),
                ("opc-sse-customer-key", key.clone()),
                ("opc-sse-customer-key-sha256", sum.clone()),
            ],
            Encryption::Usual | Encryption::Service(_) => Vec::new(),
        }
    }

    /// The headers for writing.
    pub fn writing(&self) -> Vec<(&'static str, String)> {
        match &self.settings.encryption {
            Encryption::Service(key) => vec![("opc-sse-kms-key-id", key.clone())],
            _ => self.reading(),
        }
    }

    async fn request(
        &self,
        about: About<'_>,
        method: Method,
        object: &str,
        headers: &[(&'static str, String)],
        body: Option<Vec<u8>>,
    ) -> Result<Answer> {
        let place = ((OBJECTS, object), [].as_slice());
        self.settings.cloud.send(about, method, place, headers, body).await
    }

    /// Puts an object in one piece, on a condition.
    pub async fn put(&self, about: About<'_>, object: &str, content: Vec<u8>, condition: Condition) -> Result<Written> {
        let mut headers = self.writing();
        headers.extend(condition);
        headers.push(("content-type", "application/json".to_owned()));
        headers.push(("content-md5", md5_base64(&content)));
        let answer = self
            .request(about, Method::PUT, object, &headers, Some(content))
            .await?;
        self.written(about, &answer)
    }

    /// What became of the write of an object.
    pub fn written(&self, about: About<'_>, answer: &Answer) -> Result<Written> {
        match answer.status.as_u16() {
            200..=299 => Ok(Written::Done(Revision::named(answer.header("etag")))),
            412 => Ok(Written::Changed),
            _ => Err(self.settings.cloud.problem(about, answer)),
        }
    }

    /// Who holds a lock, and which version of the object says so; `None` if there is none.
    async fn lock_in(&self, summary: &str, object: &str) -> Result<Option<(LockInfo, String)>> {
        let what = self.what("Reading", object);
        let about = About { summary, what: &what };
        let answer = self.request(about, Method::GET, object, &[], None).await?;
        match answer.status.as_u16() {
            200 => {
                let info = LockInfo::from_json(&answer.body);
                let info = info
                    .ok_or_else(|| problem(summary, format!("The object {object:?} has no lock information in it.")))?;
                Ok(Some((info, answer.header("etag").unwrap_or_default().to_owned())))
            }
            404 if said(&answer).0 != "BucketNotFound" => Ok(None),
            _ => Err(self.settings.cloud.problem(about, &answer)),
        }
    }

    /// All pages of a list: the items in this member of the answers. Where the next page begins is said by `next`.
    async fn pages(
        &self,
        about: About<'_>,
        kind: &str,
        query: &[(&str, &str)],
        member: &str,
        (parameter, next): (&str, Next),
    ) -> Result<Vec<Json>> {
        let cloud = &self.settings.cloud;
        let mut items = Vec::new();
        let mut page: Option<String> = None;
        loop {
            let mut query = query.to_vec();
            query.extend(page.as_deref().map(|page| (parameter, page)));
            let answer = cloud.send(about, Method::GET, ((kind, ""), &query), &[], None).await?;
            if !answer.status.is_success() {
                return Err(cloud.problem(about, &answer));
            }
            let mut json: Json = serde_json::from_slice(&answer.body).unwrap_or_default();
            page = next(&answer, &json);
            if let Json::Array(more) = json[member].take() {
                items.extend(more);
            }
            if page.is_none() {
                return Ok(items);
            }
        }
    }
}

fn name_of(item: &Json) -> &str {
    item["name"].as_str().unwrap_or_default()
}

#[async_trait]
impl LockedStore for Client {
    fn support(&self) -> WorkspaceSupport {
        WorkspaceSupport::NamedAndDefault
    }

    async fn workspaces(&self) -> Result<Vec<String>> {
        let Settings { prefix, key, .. } = &self.settings;
        let what = format!("Listing the objects that begin with {prefix:?}");
        let about = About {
            summary: LIST,
            what: &what,
        };
        let query = [("prefix", prefix.as_str()), ("limit", "1000")];
        let next = |_: &Answer, json: &Json| json["nextStartWith"].as_str().map(str::to_owned);
        let objects = self.pages(about, OBJECTS, &query, "objects", ("start", next)).await?;
        let folder = match joined(&[prefix]) {
            text if text.is_empty() => text,
            text => format!("{text}/"),
        };
        let end = format!("/{key}");
        let mut names = std::collections::BTreeSet::new();
        for object in &objects {
            let name = name_of(object)
                .strip_prefix(&folder)
                .and_then(|rest| rest.strip_suffix(&end));
            if let Some(name) = name.filter(|name| !name.is_empty() && !name.contains('/') && *name != DEFAULT) {
                names.insert(name.to_owned());
            }
        }
        Ok([DEFAULT.to_owned()].into_iter().chain(names).collect())
    }

    async fn read(&self, workspace: &str) -> Result<Snapshot> {
        let object = self.object(workspace);
        let what = self.what("Reading", &object);
        let about = About {
            summary: READ,
            what: &what,
        };
        let answer = self.request(about, Method::GET, &object, &self.reading(), None).await?;
        match answer.status.as_u16() {
            200 if answer.body.is_empty() => Err(problem(
                READ,
                format!("{what} failed: object {object:?} is empty. A state is not; delete the object."),
            )),
            200 => Ok(Snapshot {
                revision: Revision::named(answer.header("etag")),
                state: Some(answer.body),
            }),
            404 if !matches!(said(&answer).0.as_str(), "BucketNotFound" | "NamespaceNotFound") => Ok(Snapshot {
                state: None,
                revision: Some(Revision::Absent),
            }),
            _ => Err(self.settings.cloud.problem(about, &answer)),
        }
    }

    async fn write(&self, workspace: &str, state: &[u8], expected: Option<&Revision>) -> Result<Written> {
        let object = self.object(workspace);
        let what = self.what("Writing", &object);
        let about = About {
            summary: WRITE,
            what: &what,
        };
        let condition = expected.map(|expected| match expected {
            Revision::Named(tag) => ("if-match", tag.clone()),
            Revision::Absent => ("if-none-match", "*".to_owned()),
        });
        match state.len() > upload::PART {
            true => upload::in_parts(self, about, (&object, condition), state, upload::PART).await,
            false => self.put(about, &object, state.to_vec(), condition).await,
        }
    }

    async fn delete(&self, workspace: &str) -> Result<()> {
        if workspace == DEFAULT || workspace.is_empty() {
            let detail = "can't delete default state: the default workspace is always there.";
            return Err(problem("Cannot delete the workspace", detail));
        }
        let object = self.object(workspace);
        let what = self.what("Listing the versions of", &object);
        let about = About {
            summary: DELETE,
            what: &what,
        };
        let query = [("prefix", object.as_str())];
        let next = |answer: &Answer, _: &Json| {
            let page = answer.header("opc-next-page").filter(|page| !page.is_empty());
            page.map(str::to_owned)
        };
        let versions = self
            .pages(about, "objectversions", &query, "items", ("page", next))
            .await?;
        let cloud = &self.settings.cloud;
        let what = self.what("Deleting", &object);
        let about = About { what: &what, ..about };
        // The names of other objects may begin like this one's.
        for version in versions.iter().filter(|version| name_of(version) == object) {
            let id = version["versionId"].as_str().map(|id| ("versionId", id));
            let query: Vec<(&str, &str)> = id.into_iter().collect();
            let place = ((OBJECTS, object.as_str()), query.as_slice());
            let answer = cloud.send(about, Method::DELETE, place, &[], None).await?;
            if !answer.status.is_success() && answer.status.as_u16() != 404 {
                return Err(cloud.problem(about, &answer));
            }
        }
        Ok(())
    }

    async fn lock(&self, workspace: &str, mut info: LockInfo) -> std::result::Result<String, LockError> {
        let lock = self.lock_object(workspace);
        info.path = self.object(workspace);
        let what = self.what("Making", &lock);
        let about = About {
            summary: LOCK,
            what: &what,
        };
        let content = info.to_json().into_bytes();
        let headers = [
            ("if-none-match", "*".to_owned()),
            ("content-md5", md5_base64(&content)),
            ("content-type", "application/json".to_owned()),
        ];
        for _ in 0..ATTEMPTS {
            let answer = self
                .request(about, Method::PUT, &lock, &headers, Some(content.clone()))
                .await?;
            match answer.status.as_u16() {
                200..=299 => return Ok(info.id),
                409 | 412 => {}
                _ => return Err(self.settings.cloud.problem(about, &answer).into()),
            }
            match self.lock_in(LOCK, &lock).await? {
                // A request may have been done whose answer was lost.
                Some((holder, _)) if holder.id == info.id => return Ok(info.id),
                Some((holder, _)) => {
                    return Err(LockError::held(
                        Some(holder),
                        format!("The object {lock:?} is there already."),
                    ));
                }
                // It was released between the two questions.
                None => {}
            }
        }
        Err(LockError::held(
            None,
            format!("Others take the lock {lock:?} again and again."),
        ))
    }

    async fn unlock(&self, workspace: &str, id: &str) -> Result<()> {
        let lock = self.lock_object(workspace);
        let Some((holder, version)) = self.lock_in(UNLOCK, &lock).await? else {
            return Err(problem(
                UNLOCK,
                format!("The state is not locked: there is no object {lock:?}."),
            ));
        };
        if holder.id != id {
            let detail = format!(
                "lock ID '{id}' does not match the existing lock ID '{}' of the object {lock:?}: {holder}.",
                holder.id
            );
            return Err(problem(UNLOCK, detail));
        }
        let what = self.what("Deleting", &lock);
        let about = About {
            summary: UNLOCK,
            what: &what,
        };
        let answer = self
            .request(about, Method::DELETE, &lock, &[("if-match", version)], None)
            .await?;
        match answer.status.is_success() {
            true => Ok(()),
            false => Err(self.settings.cloud.problem(about, &answer)),
        }
    }

    async fn holder(&self, workspace: &str, own: &str) -> Result<Holder> {
        let found = self.lock_in(WRITE, &self.lock_object(workspace)).await?;
        Ok(Holder::of(found.map(|(info, _)| info), own))
    }
}
