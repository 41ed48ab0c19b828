//! Objects of the bucket, some of which are locks.

use std::collections::HashSet;
use std::time::Duration;

use monoform_sdk::state_store::{LockError, LockInfo, WorkspaceSupport};
use monoform_sdk::{Result, async_trait};
use serde_json::{Value as Json, json};
use store_client::Method;
use store_client::about::{About, DELETE, LIST, LOCK, READ, UNLOCK, WRITE, details, problem};
use store_client::guard::{LockedStore, Revision, Snapshot, Written};
use store_client::listing::{self, Page};
use store_client::lock::{Created, Found, LockRecord, Records, Removed};
use store_client::name::{joined, state_object};
use store_client::sum::md5_hex;
use store_client::xml::is_about_bucket;
use tokio::sync::Mutex;

use crate::config::Settings;
use crate::services::Refused;

/// Key of the tag that serializes locking, because only one program can create it.
const TAG: &str = "tencentcloud-terraform-lock";
/// Number of attempts to remove the tag, at intervals of a second.
const ATTEMPTS: u32 = 30;

/// Header that contains the MD5 of an object.
const SUM: &str = "x-cos-meta-md5";

/// Client for a bucket with states.
pub(crate) struct Client {
    settings: Settings,
    /// Locks that this process created and whose tags it has removed.
    untagged: Mutex<HashSet<String>>,
}

impl Client {
    pub fn new(settings: Settings) -> Client {
        Client {
            settings,
            untagged: Mutex::default(),
        }
    }

    /// Checks that credentials are available.
    pub async fn check(&self) -> Result<()> {
        self.settings.cloud.credential().await.map(drop)
    }

    fn object(&self, workspace: &str) -> String {
        state_object(&self.settings.prefix, workspace, &self.settings.key)
    }

    fn what(&self, doing: &str, object: &str) -> String {
        format!("{doing} the object {object:?} of the bucket {:?}", self.settings.bucket)
    }

    /// Reads an object and verifies its checksum. Returns `None` if it does not exist.
    async fn get(&self, summary: &str, object: &str) -> Result<Option<Vec<u8>>> {
        let what = self.what("Reading", object);
        let about = About { summary, what: &what };
        let cloud = &self.settings.cloud;
        let answer = cloud
            .send(about, Method::GET, (&format!("/{object}"), &[]), &[], None)
            .await?;
        match answer.status.as_u16() {
            200 => {}
            404 if !is_about_bucket(&answer) => return Ok(None),
            _ => return Err(cloud.problem(about, &self.settings.bucket, &answer)),
        }
        let (expected, actual) = (answer.header(SUM).unwrap_or_default(), md5_hex(&answer.body));
        // As in Terraform, an object without a valid checksum is refused.
        if expected.len() != 32 {
            return Err(problem(
                summary,
                format!(
                    "{what} failed: checksum {expected:?} invalid. The object was not written by a program like this one."
                ),
            ));
        }
        if expected != actual {
            return Err(problem(
                summary,
                format!("{what} failed: checksum mismatch: its content has {actual}, and its header says {expected}."),
            ));
        }
        Ok(Some(answer.body))
    }

    async fn put(&self, summary: &str, object: &str, content: Vec<u8>) -> Result<()> {
        let what = self.what("Writing", object);
        let about = About { summary, what: &what };
        let Settings {
            cloud,
            acl,
            encrypt,
            bucket,
            ..
        } = &self.settings;
        let mut headers = vec![(SUM, md5_hex(&content)), ("x-cos-acl", acl.clone())];
        if *encrypt {
            headers.push(("x-cos-server-side-encryption", "AES256".to_owned()));
        }
        let answer = cloud
            .send(
                about,
                Method::PUT,
                (&format!("/{object}"), &[]),
                &headers,
                Some(content),
            )
            .await?;
        match answer.status.is_success() {
            true => Ok(()),
            false => Err(cloud.problem(about, bucket, &answer)),
        }
    }

    async fn remove(&self, summary: &str, object: &str) -> Result<()> {
        let what = self.what("Deleting", object);
        let about = About { summary, what: &what };
        let Settings { cloud, bucket, .. } = &self.settings;
        let answer = cloud
            .send(about, Method::DELETE, (&format!("/{object}"), &[]), &[], None)
            .await?;
        match answer.status.as_u16() {
            200..=299 | 404 => Ok(()),
            _ => Err(cloud.problem(about, bucket, &answer)),
        }
    }

    /// Returns the value of the tag for the lock of a state.
    fn tag(&self, lock: &str) -> String {
        md5_hex(format!("{}:{lock}", self.settings.bucket).as_bytes())
    }

    async fn on_tag(&self, action: &str, value: &str) -> Result<std::result::Result<Json, Refused>> {
        let body = json!({"TagKey": TAG, "TagValue": value});
        self.settings.cloud.call(("tag", "2018-08-13", action), &body).await
    }

    /// Removes the tag if it exists.
    async fn remove_tag(&self, lock: &str) -> Result<()> {
        let value = self.tag(lock);
        let mut why = String::new();
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            // Deleting a tag that does not exist is an error, so it is looked up first.
            let there = match self.on_tag("DescribeTags", &value).await? {
                Ok(json) => json["Tags"].as_array().is_some_and(|tags| !tags.is_empty()),
                Err(refused) => {
                    why = refused.to_string();
                    continue;
                }
            };
            if !there {
                return Ok(());
            }
            match self.on_tag("DeleteTag", &value).await? {
                Ok(_) => return Ok(()),
                Err(refused) => why = refused.to_string(),
            }
        }
        Err(problem(
            UNLOCK,
            format!(
                "The tag {TAG} with the value {value} cannot be removed, and nobody can lock the state before: {why}."
            ),
        ))
    }

    /// Requests one page of the list of objects with a prefix.
    async fn page(&self, about: About<'_>, prefix: &str, place: Option<String>) -> Result<Page> {
        let Settings { cloud, bucket, .. } = &self.settings;
        let query = listing::bucket_query(prefix, place.as_deref());
        let answer = cloud.send(about, Method::GET, ("/", &query), &[], None).await?;
        if answer.status.as_u16() != 200 {
            return Err(cloud.problem(about, bucket, &answer));
        }
        Page::of_bucket(about, &answer)
    }
}

/// Object that locks a state. The service has no condition under which an existing object is not overwritten. So the program first creates
/// a tag, which only one program can do.
struct LockObject<'c> {
    client: &'c Client,
    object: String,
}

#[async_trait]
impl LockRecord for LockObject<'_> {
    fn name(&self) -> String {
        format!(
            "the lock file {:?} in the bucket {:?}",
            self.object, self.client.settings.bucket
        )
    }

    fn path(&self) -> String {
        self.object.clone()
    }

    async fn create(&self, info: &LockInfo) -> std::result::Result<Created, LockError> {
        let tag = self.client.tag(&self.object);
        if let Err(refused) = self.client.on_tag("CreateTag", &tag).await? {
            return self.without_tag(&refused).await;
        }
        let content = info.to_json().into_bytes();
        let id = md5_hex(&content);
        // Only one program at a time has the tag, but an earlier holder may have left its lock object.
        let created = match self.find(LOCK).await {
            Ok(Some(_)) => Ok(Created::Exists),
            Ok(None) => {
                let put = self.client.put(LOCK, &self.object, content).await;
                put.map(|()| Created::Done(id))
            }
            Err(problems) => Err(problems),
        };
        // Removing the tag allows the next client to try to lock.
        match self.client.remove_tag(&self.object).await {
            Err(problems) => tracing::warn!("{}", details(&problems)),
            Ok(()) if matches!(created, Ok(Created::Done(_))) => {
                self.client.untagged.lock().await.insert(self.object.clone());
            }
            Ok(()) => {}
        }
        created.map_err(LockError::Failed)
    }

    /// Reads the lock object. As in Terraform, the lock ID is the MD5 of its content.
    async fn find(&self, summary: &str) -> Result<Option<Found>> {
        let Some(content) = self.client.get(summary, &self.object).await? else {
            return Ok(None);
        };
        let info = LockInfo::from_json(&content).ok_or_else(|| {
            let detail = format!("The object {:?} has no lock information in it.", self.object);
            problem(summary, detail)
        })?;
        Ok(Some(Found::with_id(info, md5_hex(&content))))
    }

    async fn remove(&self, _found: &Found) -> Result<Removed> {
        self.client.remove(UNLOCK, &self.object).await?;
        // This process has already removed its tag. If a tag exists now, another client is creating its lock, and must not be disturbed.
        if self.client.untagged.lock().await.remove(&self.object) {
            return Ok(Removed::Done);
        }
        // Another process created the lock, or this one could not remove the tag. A process that is killed after it has written the object
        // also leaves its tag.
        self.client.remove_tag(&self.object).await.map(|()| Removed::Done)
    }
}

impl LockObject<'_> {
    /// Returns the result of a lock whose tag could not be created: the lock exists already, another program has the tag, or the user may
    /// not create tags.
    async fn without_tag(&self, refused: &Refused) -> std::result::Result<Created, LockError> {
        if self.find(LOCK).await?.is_some() {
            return Ok(Created::Exists);
        }
        if refused.code.contains("Duplicate") || refused.code.contains("InUse") {
            let message = format!(
                "Another program is about to lock the state, or was killed while doing so: failed to create tag {TAG}: \
                 {refused}. If none is: tccli tag DeleteTag --TagKey {TAG} --TagValue {}",
                self.client.tag(&self.object)
            );
            return Err(LockError::held(None, message));
        }
        let detail = format!("failed to create tag {TAG}, which locks of states need: {refused}.");
        Err(problem(LOCK, detail).into())
    }
}

#[async_trait]
impl LockedStore for Client {
    fn support(&self) -> WorkspaceSupport {
        WorkspaceSupport::NamedAndDefault
    }

    async fn workspaces(&self) -> Result<Vec<String>> {
        let Settings {
            bucket, prefix, key, ..
        } = &self.settings;
        let start = match joined(&[prefix]) {
            text if text.is_empty() => text,
            text => format!("{text}/"),
        };
        let what = format!("Listing the objects of the bucket {bucket:?} that begin with {start:?}");
        let about = About {
            summary: LIST,
            what: &what,
        };
        let names = listing::names(about, |place| self.page(about, &start, place)).await?;
        let end = format!("/{}", joined(&[key]));
        Ok(listing::workspaces(names.iter().map(String::as_str), &start, &end))
    }

    async fn read(&self, workspace: &str) -> Result<Snapshot> {
        let state = self.get(READ, &self.object(workspace)).await?;
        Ok(state.filter(|state| !state.is_empty()).into())
    }

    /// Writes without a condition, because the service has no conditional writes.
    async fn write(&self, workspace: &str, state: &[u8], _expected: Option<&Revision>) -> Result<Written> {
        self.put(WRITE, &self.object(workspace), state.to_vec()).await?;
        Ok(Written::Done(None))
    }

    async fn delete(&self, workspace: &str) -> Result<()> {
        self.remove(DELETE, &self.object(workspace)).await
    }

    fn lock_records<'s>(&'s self, workspace: &'s str) -> Result<Records<'s>> {
        Ok(vec![Box::new(LockObject {
            client: self,
            object: format!("{}.tflock", self.object(workspace)),
        })])
    }
}
