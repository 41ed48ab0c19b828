//! Objects of the bucket, some of which are locks.

use monoform_sdk::state_store::{DEFAULT, LockError, LockInfo, WorkspaceSupport};
use monoform_sdk::{Result, async_trait};
use serde_json::Value as Json;
use store_client::about::{About, DELETE, LIST, LOCK, READ, UNLOCK, WRITE, problem};
use store_client::guard::{LockedStore, Revision, Snapshot, Written};
use store_client::listing::{self, Page};
use store_client::lock::{Created, Found, LockRecord, Records, Removed};
use store_client::name::joined;
use store_client::sum::md5_base64;
use store_client::{Answer, Method};

use crate::cloud::{Condition, code_and_message};
use crate::settings::{Encryption, Settings};
use crate::upload;

/// URL segment between a bucket and its objects.
pub(crate) const OBJECTS: &str = "o";

/// Client for a bucket with states.
pub(crate) struct Client {
    pub settings: Settings,
}

impl Client {
    pub fn new(settings: Settings) -> Client {
        Client { settings }
    }

    /// Checks that an identity is available.
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

    pub fn what(&self, doing: &str, object: &str) -> String {
        format!(
            "{doing} the object {object:?} of the bucket {:?}",
            self.settings.cloud.bucket
        )
    }

    /// Returns the headers for reading an object that is encrypted with a customer-supplied key.
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

    /// Returns the headers for writing an object.
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

    /// Writes an object in one request, with an optional condition.
    pub async fn put(&self, about: About<'_>, object: &str, content: Vec<u8>, condition: Condition) -> Result<Written> {
        let mut headers = self.writing();
        headers.extend(condition);
        headers.push(("content-type", "application/json".to_owned()));
        // With the checksum, the service rejects a body that was damaged in transit.
        headers.push(("content-md5", md5_base64(&content)));
        let answer = self
            .request(about, Method::PUT, object, &headers, Some(content))
            .await?;
        self.settings.cloud.written(about, &answer)
    }

    /// Requests one page of a list. Its elements are in the field `part`.
    async fn list(
        &self,
        about: About<'_>,
        (kind, part): (&str, &str),
        query: &[(&str, &str)],
    ) -> Result<(Answer, Json)> {
        let cloud = &self.settings.cloud;
        let answer = cloud.send(about, Method::GET, ((kind, ""), query), &[], None).await?;
        if !answer.status.is_success() {
            return Err(cloud.problem(about, &answer));
        }
        let json: Option<Json> = serde_json::from_slice(&answer.body).ok();
        match json.filter(|json| json[part].is_array()) {
            Some(json) => Ok((answer, json)),
            // An invalid answer must not count as an empty list, which would mean that there are no objects.
            None => {
                let (url, bucket) = (&cloud.url, &cloud.bucket);
                let detail = format!(
                    "{} failed: for the bucket {bucket:?}, {url} answered with something that is no list of objects. A proxy may \
                     have answered instead of the service.",
                    about.what
                );
                Err(problem(about.summary, detail))
            }
        }
    }

    async fn page(&self, about: About<'_>, place: Option<String>) -> Result<Page> {
        let mut query = vec![("prefix", self.settings.prefix.as_str()), ("limit", "1000")];
        query.extend(place.as_deref().map(|place| ("start", place)));
        let (_, json) = self.list(about, (OBJECTS, "objects"), &query).await?;
        let objects = json["objects"].as_array().into_iter().flatten();
        Ok(Page {
            names: objects.map(|object| name_of(object).to_owned()).collect(),
            next: json["nextStartWith"].as_str().map(str::to_owned),
        })
    }

    /// Requests one page of the IDs of an object's versions.
    async fn versions(&self, about: About<'_>, object: &str, place: Option<String>) -> Result<Page> {
        let mut query = vec![("prefix", object)];
        query.extend(place.as_deref().map(|place| ("page", place)));
        let (answer, json) = self.list(about, ("objectversions", "items"), &query).await?;
        // The prefix also matches objects whose names continue after it.
        let items = json["items"].as_array().into_iter().flatten();
        let own = items.filter(|version| name_of(version) == object);
        Ok(Page {
            names: own
                .map(|version| version["versionId"].as_str().unwrap_or_default().to_owned())
                .collect(),
            next: answer.header("opc-next-page").map(str::to_owned),
        })
    }
}

fn name_of(item: &Json) -> &str {
    item["name"].as_str().unwrap_or_default()
}

/// Returns true if an answer with the status 404 is about the object. The status is the same for a missing bucket or namespace, which is an
/// error.
fn is_of_object(answer: &Answer) -> bool {
    !matches!(
        code_and_message(answer).0.as_str(),
        "BucketNotFound" | "NamespaceNotFound"
    )
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
        let names = listing::names(about, |place| self.page(about, place)).await?;
        let folder = match joined(&[prefix]) {
            text if text.is_empty() => text,
            text => format!("{text}/"),
        };
        let names = names.iter().map(String::as_str);
        Ok(listing::workspaces(names, &folder, &format!("/{key}")))
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
            // An empty object must not count as a missing state, because everything would be created again.
            200 if answer.body.is_empty() => Err(problem(
                READ,
                format!("{what} failed: object {object:?} is empty. A state is not; delete the object."),
            )),
            200 => Ok(Snapshot {
                revision: Revision::named(answer.header("etag")),
                state: Some(answer.body),
            }),
            404 if is_of_object(&answer) => Ok(Snapshot {
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
        // With the condition, the service does not overwrite a state that another program has written meanwhile.
        let condition = expected.map(|expected| match expected {
            Revision::Named(tag) => ("if-match", tag.clone()),
            Revision::Absent => ("if-none-match", "*".to_owned()),
        });
        match state.len() > upload::PART {
            true => {
                let headers = self.writing();
                let to = (&self.settings.cloud, headers.as_slice());
                upload::in_parts(to, about, (&object, condition), state, upload::PART).await
            }
            false => self.put(about, &object, state.to_vec(), condition).await,
        }
    }

    async fn delete(&self, workspace: &str) -> Result<()> {
        let object = self.object(workspace);
        let what = self.what("Listing the versions of", &object);
        let about = About {
            summary: DELETE,
            what: &what,
        };
        // In a bucket with versioning, a plain delete would leave all versions of the state readable, so each is deleted.
        let versions = listing::names(about, |place| self.versions(about, &object, place)).await?;
        let cloud = &self.settings.cloud;
        let what = self.what("Deleting", &object);
        let about = About { what: &what, ..about };
        for version in &versions {
            let id = Some(version.as_str()).filter(|id| !id.is_empty());
            let query: Vec<(&str, &str)> = id.map(|id| ("versionId", id)).into_iter().collect();
            let place = ((OBJECTS, object.as_str()), query.as_slice());
            let answer = cloud.send(about, Method::DELETE, place, &[], None).await?;
            if !answer.status.is_success() && answer.status.as_u16() != 404 {
                return Err(cloud.problem(about, &answer));
            }
        }
        Ok(())
    }

    fn lock_records<'s>(&'s self, workspace: &'s str) -> Result<Records<'s>> {
        let state = self.object(workspace);
        Ok(vec![Box::new(LockObject {
            client: self,
            object: format!("{state}.lock"),
            state,
        })])
    }
}

/// Object that locks a state.
struct LockObject<'c> {
    client: &'c Client,
    object: String,
    state: String,
}

#[async_trait]
impl LockRecord for LockObject<'_> {
    fn name(&self) -> String {
        format!(
            "the lock {:?} in the bucket {:?}",
            self.object, self.client.settings.cloud.bucket
        )
    }

    fn path(&self) -> String {
        self.state.clone()
    }

    async fn create(&self, info: &LockInfo) -> std::result::Result<Created, LockError> {
        let what = self.client.what("Making", &self.object);
        let about = About {
            summary: LOCK,
            what: &what,
        };
        let content = info.to_json().into_bytes();
        let headers = [
            // The condition makes the object a lock: of two programs, only one can create it.
            ("if-none-match", "*".to_owned()),
            ("content-md5", md5_base64(&content)),
            ("content-type", "application/json".to_owned()),
        ];
        let answer = self
            .client
            .request(about, Method::PUT, &self.object, &headers, Some(content))
            .await?;
        match answer.status.as_u16() {
            200..=299 => Ok(Created::Done(info.id.clone())),
            409 | 412 => Ok(Created::Exists),
            _ => Err(self.client.settings.cloud.problem(about, &answer).into()),
        }
    }

    async fn find(&self, summary: &str) -> Result<Option<Found>> {
        let what = self.client.what("Reading", &self.object);
        let about = About { summary, what: &what };
        let answer = self.client.request(about, Method::GET, &self.object, &[], None).await?;
        match answer.status.as_u16() {
            200 => match LockInfo::from_json(&answer.body) {
                Some(info) => Ok(Some(Found {
                    version: answer.header("etag").map(str::to_owned),
                    ..Found::new(info)
                })),
                None => Err(problem(
                    summary,
                    format!("The object {:?} has no lock information in it.", self.object),
                )),
            },
            404 if is_of_object(&answer) => Ok(None),
            _ => Err(self.client.settings.cloud.problem(about, &answer)),
        }
    }

    async fn remove(&self, found: &Found) -> Result<Removed> {
        let what = self.client.what("Deleting", &self.object);
        let about = About {
            summary: UNLOCK,
            what: &what,
        };
        // With the condition, a lock that has replaced the one that was read is not deleted.
        let condition: Vec<(&'static str, String)> =
            found.version.iter().map(|tag| ("if-match", tag.clone())).collect();
        let answer = self
            .client
            .request(about, Method::DELETE, &self.object, &condition, None)
            .await?;
        match answer.status.as_u16() {
            200..=299 => Ok(Removed::Done),
            412 => Ok(Removed::Changed),
            404 if is_of_object(&answer) => Ok(Removed::Changed),
            _ => Err(self.client.settings.cloud.problem(about, &answer)),
        }
    }
}
