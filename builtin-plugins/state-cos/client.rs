//! The objects of the bucket, and the locks among them.

use std::time::Duration;

use monoform_sdk::state_store::{DEFAULT, LockError, LockInfo, WorkspaceSupport};
use monoform_sdk::{Diagnostic, Diagnostics, Result, async_trait};
use serde_json::{Value as Json, json};
use store_client::Method;
use store_client::guard::{Holder, LockedStore, Revision, Snapshot, Written};
use store_client::name::joined;
use store_client::sum::md5_hex;
use store_client::xml::{self, Xml};

use crate::cloud::{About, Refused};
use crate::config::Settings;

const READ: &str = "Error reading the state";
const WRITE: &str = "Error writing the state";
const DELETE: &str = "Error deleting the state";
const LIST: &str = "Failed to list workspaces";
const LOCK: &str = "Error acquiring the state lock";
const UNLOCK: &str = "Cannot release the state lock";

/// The tag that only one can make.
const TAG: &str = "tencentcloud-terraform-lock";
/// How often its removal is tried, once a second.
const ATTEMPTS: u32 = 30;

/// The header with the MD5 of an object.
const SUM: &str = "x-cos-meta-md5";

/// A bucket with states.
pub(crate) struct Client {
    settings: Settings,
}

fn problem(summary: &str, detail: String) -> Diagnostics {
    Diagnostic::error(summary, detail).into()
}

impl Client {
    pub fn new(settings: Settings) -> Client {
        Client { settings }
    }

    /// Whether there are credentials.
    pub async fn check(&self) -> Result<()> {
        self.settings.cloud.credential().await.map(drop)
    }

    fn object(&self, workspace: &str) -> String {
        let Settings { prefix, key, .. } = &self.settings;
        match workspace {
            DEFAULT => joined(&[prefix, key]),
            name => joined(&[prefix, name, key]),
        }
    }

    fn what(&self, doing: &str, object: &str) -> String {
        format!("{doing} the object {object:?} of the bucket {:?}", self.settings.bucket)
    }

    /// The content of an object, which is what its sum says; `None` if it is not there.
    async fn get(&self, summary: &str, object: &str) -> Result<Option<Vec<u8>>> {
        let what = self.what("Reading", object);
        let about = About { summary, what: &what };
        let cloud = &self.settings.cloud;
        let answer = cloud
            .send(about, Method::GET, (&format!("/{object}"), &[]), &[], None)
            .await?;
        match answer.status.as_u16() {
            200 => {}
            404 if xml::tag(&answer.text(), "Code").as_deref() != Some("NoSuchBucket") => return Ok(None),
            _ => return Err(cloud.problem(about, &self.settings.bucket, &answer)),
        }
        let (expected, actual) = (answer.header(SUM).unwrap_or_default(), md5_hex(&answer.body));
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

    /// The value of the tag for the lock of a state.
    fn tag(&self, lock: &str) -> String {
        md5_hex(format!("{}:{lock}", self.settings.bucket).as_bytes())
    }

    async fn on_tag(&self, action: &str, value: &str) -> Result<std::result::Result<Json, Refused>> {
        let body = json!({"TagKey": TAG, "TagValue": value});
        self.settings.cloud.call(("tag", "2018-08-13", action), &body).await
    }

    /// Removes the tag, if it is there.
    async fn remove_tag(&self, lock: &str) -> Result<()> {
        let value = self.tag(lock);
        let mut why = String::new();
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
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

    /// Who has made the lock; `None` if it is not there.
    async fn lock_in(&self, lock: &str) -> Result<Option<LockInfo>> {
        let Some(content) = self.get(LOCK, lock).await? else {
            return Ok(None);
        };
        let info = LockInfo::from_json(&content);
        let mut info =
            info.ok_or_else(|| problem(LOCK, format!("The object {lock:?} has no lock information in it.")))?;
        info.id = md5_hex(&content);
        Ok(Some(info))
    }

    /// Somebody has the tag, or tags cannot be made at all.
    async fn without_tag(&self, lock: &str, refused: &Refused) -> LockError {
        match self.lock_in(lock).await {
            Ok(Some(holder)) => LockError::held(Some(holder), format!("The lock {lock:?} is there already.")),
            Ok(None) if refused.code.contains("Duplicate") || refused.code.contains("InUse") => LockError::held(
                None,
                format!(
                    "Somebody is about to lock the state, or was killed while doing so: failed to create tag {TAG}: {refused}. If \
                     nobody is: tccli tag DeleteTag --TagKey {TAG} --TagValue {}",
                    self.tag(lock)
                ),
            ),
            Ok(None) => LockError::Failed(problem(
                LOCK,
                format!("failed to create tag {TAG}, which locks of states need: {refused}."),
            )),
            Err(problems) => LockError::Failed(problems),
        }
    }
}

#[async_trait]
impl LockedStore for Client {
    fn support(&self) -> WorkspaceSupport {
        WorkspaceSupport::NamedAndDefault
    }

    async fn workspaces(&self) -> Result<Vec<String>> {
        let Settings {
            cloud,
            bucket,
            prefix,
            key,
            ..
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
        let end = format!("/{}", joined(&[key]));
        let mut names = vec![DEFAULT.to_owned()];
        let mut marker = String::new();
        loop {
            let query = [
                ("marker", marker.as_str()),
                ("max-keys", "1000"),
                ("prefix", start.as_str()),
            ];
            let answer = cloud.send(about, Method::GET, ("/", &query), &[], None).await?;
            if answer.status.as_u16() != 200 {
                return Err(cloud.problem(about, bucket, &answer));
            }
            let listed = Xml::of(&answer).map_err(|failure| failure.diagnostic(about.summary, about.what))?;
            let mut last = "";
            for object in listed.texts("Key") {
                match object.strip_prefix(&start).and_then(|rest| rest.strip_suffix(&end)) {
                    Some(name) if !name.is_empty() && !name.contains('/') => names.push(name.to_owned()),
                    _ => {}
                }
                last = object;
            }
            if listed.text("IsTruncated") != Some("true") {
                return Ok(names);
            }
            let next = listed.text("NextMarker").filter(|next| !next.is_empty());
            marker = next.unwrap_or(last).to_owned();
        }
    }

    async fn read(&self, workspace: &str) -> Result<Snapshot> {
        let state = self.get(READ, &self.object(workspace)).await?;
        Ok(state.filter(|state| !state.is_empty()).into())
    }

    /// The service has no condition for an object that is to be replaced.
    async fn write(&self, workspace: &str, state: &[u8], _expected: Option<&Revision>) -> Result<Written> {
        self.put(WRITE, &self.object(workspace), state.to_vec()).await?;
        Ok(Written::Done(None))
    }

    async fn delete(&self, workspace: &str) -> Result<()> {
        if workspace == DEFAULT || workspace.is_empty() {
            let detail =
                "default state is not allowed to be deleted: the default workspace is always there.".to_owned();
            return Err(problem("Cannot delete the workspace", detail));
        }
        self.remove(DELETE, &self.object(workspace)).await
    }

    async fn lock(&self, workspace: &str, info: LockInfo) -> std::result::Result<String, LockError> {
        store_client::lock::settled(|| self.take(workspace, info.clone())).await
    }

    async fn unlock(&self, workspace: &str, id: &str) -> Result<()> {
        let lock = format!("{}.tflock", self.object(workspace));
        let Some(holder) = self.lock_in(&lock).await? else {
            return Err(problem(
                UNLOCK,
                format!("The state is not locked: lock file {lock} not exists."),
            ));
        };
        if holder.id != id {
            let detail = format!(
                "lock id mismatch: the lock {lock:?} has the ID {:?}, and not {id:?}: {holder}.",
                holder.id
            );
            return Err(problem(UNLOCK, detail));
        }
        self.remove(UNLOCK, &lock).await?;
        self.remove_tag(&lock).await
    }

    async fn holder(&self, workspace: &str, own: &str) -> Result<Holder> {
        let found = self.lock_in(&format!("{}.tflock", self.object(workspace))).await?;
        Ok(Holder::of(found, own))
    }
}

impl Client {
    /// Tries once to take the lock of a state.
    async fn take(&self, workspace: &str, mut info: LockInfo) -> std::result::Result<String, LockError> {
        let lock = format!("{}.tflock", self.object(workspace));
        if let Err(refused) = self.on_tag("CreateTag", &self.tag(&lock)).await? {
            return Err(self.without_tag(&lock, &refused).await);
        }
        info.path.clone_from(&lock);
        let content = info.to_json().into_bytes();
        let id = md5_hex(&content);
        let taken = match self.lock_in(&lock).await {
            Ok(Some(holder)) => Err(LockError::held(Some(holder), format!("lock file {lock} exists."))),
            Ok(None) => self.put(LOCK, &lock, content).await.map_err(LockError::Failed),
            Err(problems) => Err(LockError::Failed(problems)),
        };
        // Whoever is next may look now.
        if let Err(problems) = self.remove_tag(&lock).await {
            tracing::warn!("{}", problems.0.first().map_or("", |p| p.detail.as_str()));
        }
        taken.map(|()| id)
    }
}
