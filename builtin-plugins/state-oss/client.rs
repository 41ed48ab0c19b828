//! The objects of the bucket, and the locks and checksums in the table.

use monoform_sdk::state_store::{DEFAULT, LockError, LockInfo, WorkspaceSupport};
use monoform_sdk::{Diagnostic, Diagnostics, Result, async_trait};
use store_client::guard::{Holder, LockedStore, Revision, Snapshot, Written};
use store_client::name::joined;
use store_client::sum::md5_hex;
use store_client::xml::{self, Xml};
use store_client::{Method, consistent};

use crate::cloud::About;
use crate::settings::Settings;
use crate::table::{IsThere, Table};

const READ: &str = "Error reading the state";
const WRITE: &str = "Error writing the state";
const DELETE: &str = "Error deleting the state";
const LIST: &str = "Failed to list workspaces";
const UNLOCK: &str = "Cannot release the state lock";

/// The columns of the table.
const INFO: &str = "Info";
const DIGEST: &str = "Digest";

/// How often a lock is tried for that was held, and is free when it is asked who holds it.
const ATTEMPTS: u32 = 10;

/// A bucket with states.
pub(crate) struct Client {
    settings: Settings,
}

fn problem(summary: &str, detail: String) -> Diagnostics {
    Diagnostic::error(summary, detail).into()
}

fn details(problems: &Diagnostics) -> &str {
    problems.0.first().map_or("", |problem| problem.detail.as_str())
}

impl Client {
    pub fn new(settings: Settings) -> Client {
        Client { settings }
    }

    /// Whether there are credentials, and the table if there is to be one.
    pub async fn check(&self) -> Result<()> {
        let Settings { cloud, table, .. } = &self.settings;
        cloud.credential().await?;
        match table {
            Some(table) => table.check(cloud).await,
            None => Ok(()),
        }
    }

    fn object(&self, workspace: &str) -> String {
        let Settings { prefix, key, .. } = &self.settings;
        match workspace {
            DEFAULT => joined(&[prefix, key]),
            name => joined(&[prefix, name, key]),
        }
    }

    /// The key of a lock's row.
    fn lock_key(&self, workspace: &str) -> String {
        format!("{}/{}", self.settings.bucket, self.object(workspace))
    }

    /// And that of the checksum's.
    fn digest_key(&self, workspace: &str) -> String {
        format!("{}-md5", self.lock_key(workspace))
    }

    fn what(&self, doing: &str, object: &str) -> String {
        format!("{doing} the object {object:?} of the bucket {:?}", self.settings.bucket)
    }

    /// The content of an object; `None` if it is not there, or empty.
    async fn get(&self, object: &str) -> Result<Snapshot> {
        let Settings { cloud, bucket, .. } = &self.settings;
        let what = self.what("Reading", object);
        let about = About {
            summary: READ,
            what: &what,
        };
        let answer = cloud.send(about, Method::GET, (bucket, object, &[]), &[], None).await?;
        match answer.status.as_u16() {
            200 => Ok(Some(answer.body).filter(|body| !body.is_empty()).into()),
            404 if xml::tag(&answer.text(), "Code").as_deref() != Some("NoSuchBucket") => Ok(None.into()),
            _ => Err(cloud.problem(about, bucket, &answer)),
        }
    }

    /// The checksum that the table has for a state; `None` without a table, and where none can be had: that is only logged.
    async fn digest(&self, workspace: &str) -> Option<String> {
        let table = self.settings.table.as_ref()?;
        let found = table
            .get(&self.settings.cloud, &self.digest_key(workspace), DIGEST)
            .await;
        let found = found.inspect_err(|problems| tracing::warn!("{}", details(problems)));
        consistent::recorded(found.ok()?)
    }

    async fn lock_in(&self, table: &Table, key: &str) -> Result<Option<LockInfo>> {
        let info = table.get(&self.settings.cloud, key, INFO).await?;
        Ok(info.and_then(|info| LockInfo::from_json(info.as_bytes())))
    }

    /// Tries once to take the lock of a state.
    async fn take(&self, table: &Table, key: &str, info: &LockInfo) -> std::result::Result<(), LockError> {
        for _ in 0..ATTEMPTS {
            let made = table.make(&self.settings.cloud, key, INFO, &info.to_json()).await?;
            let Err(IsThere) = made else { return Ok(()) };
            match self.lock_in(table, key).await? {
                // A request may have been done whose answer was lost.
                Some(holder) if holder.id == info.id => return Ok(()),
                Some(holder) => {
                    let message = format!("The row {key:?} is in the table {:?} already.", table.name);
                    return Err(LockError::held(Some(holder), message));
                }
                // It was released between the two questions.
                None => {}
            }
        }
        let detail = format!(
            "The row {key:?} of the table {:?} is there, but has no lock information in it. If nobody works on the state, delete the \
             row.",
            table.name
        );
        Err(LockError::held(None, detail))
    }
}

#[async_trait]
impl LockedStore for Client {
    fn support(&self) -> WorkspaceSupport {
        WorkspaceSupport::NamedAndDefault
    }

    async fn workspaces(&self) -> Result<Vec<String>> {
        let Settings {
            cloud, bucket, prefix, ..
        } = &self.settings;
        let start = format!("{prefix}/");
        let what = format!("Listing the objects of the bucket {bucket:?} that begin with {start:?}");
        let about = About {
            summary: LIST,
            what: &what,
        };
        let default = self.object(DEFAULT);
        let mut names = std::collections::BTreeSet::new();
        let mut marker = String::new();
        loop {
            let query = [
                ("marker", marker.as_str()),
                ("max-keys", "1000"),
                ("prefix", start.as_str()),
            ];
            let answer = cloud.send(about, Method::GET, (bucket, "", &query), &[], None).await?;
            if !answer.status.is_success() {
                return Err(cloud.problem(about, bucket, &answer));
            }
            let listed = Xml::of(&answer).map_err(|failure| failure.diagnostic(about.summary, about.what))?;
            let mut last = "";
            for object in listed.texts("Key") {
                // As Terraform does it, everything that is there is a workspace.
                let name = object.strip_prefix(&start).and_then(|rest| rest.split('/').next());
                if let Some(name) = name.filter(|name| !name.is_empty() && object != default) {
                    names.insert(name.to_owned());
                }
                last = object;
            }
            if listed.text("IsTruncated") != Some("true") {
                names.remove(DEFAULT);
                return Ok([DEFAULT.to_owned()].into_iter().chain(names).collect());
            }
            let next = listed.text("NextMarker").filter(|next| !next.is_empty());
            marker = next.unwrap_or(last).to_owned();
        }
    }

    async fn read(&self, workspace: &str) -> Result<Snapshot> {
        let object = self.object(workspace);
        let mismatch = |expected: &str, actual: &str| {
            let table = self.settings.table.as_ref().map_or("", |table| &table.name);
            let detail = format!(
                "The object {object:?} has another checksum than the table records.\n\nActual checksum:   {actual}\nRecorded \
                 checksum: {expected}\n\nAnother program may just have written the state: try again. If the state is right (the last \
                 one that was written), store its checksum: in the table {table:?}, the row with the LockID {:?} must have the Digest \
                 {actual:?}.",
                self.digest_key(workspace)
            );
            problem("state data in OSS does not have the expected content", detail)
        };
        consistent::read(|| self.get(&object), || self.digest(workspace), mismatch).await
    }

    /// The service has no condition for an object that is to be replaced.
    async fn write(&self, workspace: &str, state: &[u8], _expected: Option<&Revision>) -> Result<Written> {
        let Settings {
            cloud,
            acl,
            encrypt,
            bucket,
            table,
            ..
        } = &self.settings;
        let object = self.object(workspace);
        let what = self.what("Writing", &object);
        let about = About {
            summary: WRITE,
            what: &what,
        };
        let mut headers = Vec::new();
        if !acl.is_empty() {
            headers.push(("x-oss-object-acl", acl.clone()));
        }
        if *encrypt {
            headers.push(("x-oss-server-side-encryption", "AES256".to_owned()));
        }
        let sum = md5_hex(state);
        let put = cloud
            .send(
                about,
                Method::PUT,
                (bucket, &object, &[]),
                &headers,
                Some(state.to_vec()),
            )
            .await;
        match put {
            Ok(answer) if answer.status.is_success() => {}
            Ok(answer) => return Err(cloud.problem(about, bucket, &answer)),
            Err(problems) => match self.get(&object).await {
                // It was written, and the answer was lost: without its checksum it could not be read.
                Ok(there) if there.state.as_deref() == Some(state) => {}
                _ => return Err(problems),
            },
        }
        if let Some(table) = table {
            let stored = table.put(cloud, &self.digest_key(workspace), DIGEST, &sum).await;
            // The state is written all the same.
            if let Err(problems) = stored {
                tracing::warn!("{}", details(&problems));
            }
        }
        Ok(Written::Done(None))
    }

    async fn delete(&self, workspace: &str) -> Result<()> {
        let Settings {
            cloud, bucket, table, ..
        } = &self.settings;
        if workspace == DEFAULT || workspace.is_empty() {
            let detail = "can't delete default state: the default workspace is always there.".to_owned();
            return Err(problem("Cannot delete the workspace", detail));
        }
        let object = self.object(workspace);
        let what = self.what("Deleting", &object);
        let about = About {
            summary: DELETE,
            what: &what,
        };
        let answer = cloud
            .send(about, Method::DELETE, (bucket, &object, &[]), &[], None)
            .await?;
        if !answer.status.is_success() && answer.status.as_u16() != 404 {
            return Err(cloud.problem(about, bucket, &answer));
        }
        if let Some(table) = table
            && let Err(problems) = table.delete(cloud, &self.digest_key(workspace)).await
        {
            tracing::warn!("{}", details(&problems));
        }
        Ok(())
    }

    async fn lock(&self, workspace: &str, mut info: LockInfo) -> std::result::Result<String, LockError> {
        let Some(table) = &self.settings.table else {
            // Nothing keeps others out.
            return Ok(String::new());
        };
        let key = self.lock_key(workspace);
        info.path.clone_from(&key);
        self.take(table, &key, &info).await?;
        Ok(info.id)
    }

    async fn unlock(&self, workspace: &str, id: &str) -> Result<()> {
        let Some(table) = &self.settings.table else {
            return Ok(());
        };
        let key = self.lock_key(workspace);
        let Some(holder) = self.lock_in(table, &key).await? else {
            return Err(problem(UNLOCK, format!("The state {key:?} is not locked.")));
        };
        if holder.id != id {
            let detail = format!(
                "lock id {id:?} does not match existing lock: the lock of {key:?} has the ID {:?}: {holder}.",
                holder.id
            );
            return Err(problem(UNLOCK, detail));
        }
        table.delete(&self.settings.cloud, &key).await
    }

    async fn holder(&self, workspace: &str, own: &str) -> Result<Holder> {
        let Some(table) = &self.settings.table else {
            return Ok(Holder::Unknown);
        };
        let found = self.lock_in(table, &self.lock_key(workspace)).await?;
        Ok(Holder::of(found, own))
    }
}
