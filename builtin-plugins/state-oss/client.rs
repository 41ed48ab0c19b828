//! Objects of the bucket, and rows of the table, which are locks and checksums.

use monoform_sdk::state_store::{DEFAULT, LockError, LockInfo, WorkspaceSupport};
use monoform_sdk::{Result, async_trait};
use store_client::about::{About, DELETE, LIST, READ, WRITE, problem};
use store_client::consistent::Sums;
use store_client::guard::{LockedStore, Revision, Snapshot, Written};
use store_client::listing::{self, Page};
use store_client::lock::{Created, Found, LockRecord, Records, Removed};
use store_client::name::state_object;
use store_client::xml::is_about_bucket;
use store_client::{Method, consistent};

use crate::cloud::Cloud;
use crate::settings::Settings;
use crate::table::{IsThere, Table};

/// Column with the lock info, in the row of a lock.
const INFO: &str = "Info";

/// Column with the MD5, in the row of a checksum.
const DIGEST: &str = "Digest";

/// Client for a bucket with states.
pub(crate) struct Client {
    settings: Settings,
}

impl Client {
    pub fn new(settings: Settings) -> Client {
        Client { settings }
    }

    /// Checks that credentials are available, and that the table exists if one is configured.
    pub async fn check(&self) -> Result<()> {
        let Settings { cloud, table, .. } = &self.settings;
        cloud.credential().await?;
        match table {
            Some(table) => table.check(cloud).await,
            None => Ok(()),
        }
    }

    fn object(&self, workspace: &str) -> String {
        state_object(&self.settings.prefix, workspace, &self.settings.key)
    }

    /// Returns the key of the row for a lock.
    fn lock_key(&self, workspace: &str) -> String {
        format!("{}/{}", self.settings.bucket, self.object(workspace))
    }

    /// Returns the key of the row for a checksum.
    fn digest_key(lock_key: &str) -> String {
        format!("{lock_key}-md5")
    }

    fn what(&self, doing: &str, object: &str) -> String {
        format!("{doing} the object {object:?} of the bucket {:?}", self.settings.bucket)
    }

    /// Reads an object. The snapshot has no state if the object does not exist or is empty.
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
            // Only a missing object means that there is no state. A missing bucket is an error, because the configured name is probably
            // wrong.
            404 if !is_about_bucket(&answer) => Ok(None.into()),
            _ => Err(cloud.problem(about, bucket, &answer)),
        }
    }

    async fn put(&self, object: &str, content: &[u8]) -> Result<Written> {
        let Settings {
            cloud,
            acl,
            encrypt,
            bucket,
            ..
        } = &self.settings;
        let what = self.what("Writing", object);
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
        let place = (bucket.as_str(), object, [].as_slice());
        let answer = cloud
            .send(about, Method::PUT, place, &headers, Some(content.to_vec()))
            .await?;
        match answer.status.is_success() {
            true => Ok(Written::Done(None)),
            false => Err(cloud.problem(about, bucket, &answer)),
        }
    }

    /// Requests one page of the list of objects with a prefix.
    async fn page(&self, about: About<'_>, prefix: &str, place: Option<String>) -> Result<Page> {
        let Settings { cloud, bucket, .. } = &self.settings;
        let query = listing::bucket_query(prefix, place.as_deref());
        let answer = cloud.send(about, Method::GET, (bucket, "", &query), &[], None).await?;
        if !answer.status.is_success() {
            return Err(cloud.problem(about, bucket, &answer));
        }
        Page::of_bucket(about, &answer)
    }
}

/// Checksums, which are rows of the table. Without a table there are none.
#[async_trait]
impl Sums for Client {
    async fn find(&self, key: &str) -> Result<Option<String>> {
        let Settings { cloud, table, .. } = &self.settings;
        match table {
            Some(table) => table.get(cloud, &Client::digest_key(key), DIGEST).await,
            None => Ok(None),
        }
    }

    async fn record(&self, key: &str, sum: &str) -> Result<()> {
        let Settings { cloud, table, .. } = &self.settings;
        match table {
            Some(table) => table.put(cloud, &Client::digest_key(key), DIGEST, sum).await,
            None => Ok(()),
        }
    }

    async fn forget(&self, key: &str) -> Result<()> {
        let Settings { cloud, table, .. } = &self.settings;
        match table {
            Some(table) => table.delete(cloud, &Client::digest_key(key)).await,
            None => Ok(()),
        }
    }
}

/// Row that locks a state.
struct LockRow<'c> {
    cloud: &'c Cloud,
    table: &'c Table,
    key: String,
}

#[async_trait]
impl LockRecord for LockRow<'_> {
    fn name(&self) -> String {
        format!("the row {:?} of the table {:?}", self.key, self.table.name)
    }

    fn path(&self) -> String {
        self.key.clone()
    }

    async fn create(&self, info: &LockInfo) -> std::result::Result<Created, LockError> {
        let made = self.table.make(self.cloud, &self.key, INFO, &info.to_json()).await?;
        Ok(match made {
            Ok(()) => Created::Done(info.id.clone()),
            Err(IsThere) => Created::Exists,
        })
    }

    async fn find(&self, _summary: &str) -> Result<Option<Found>> {
        let info = self.table.get(self.cloud, &self.key, INFO).await?;
        Ok(info.map(|info| Found::of_text(&info)))
    }

    async fn remove(&self, _found: &Found) -> Result<Removed> {
        // The row is deleted without a condition, because the caller has compared the lock ID.
        self.table.delete(self.cloud, &self.key).await.map(|()| Removed::Done)
    }
}

#[async_trait]
impl LockedStore for Client {
    fn support(&self) -> WorkspaceSupport {
        WorkspaceSupport::NamedAndDefault
    }

    async fn workspaces(&self) -> Result<Vec<String>> {
        let Settings { bucket, prefix, .. } = &self.settings;
        let start = format!("{prefix}/");
        let what = format!("Listing the objects of the bucket {bucket:?} that begin with {start:?}");
        let about = About {
            summary: LIST,
            what: &what,
        };
        let default = self.object(DEFAULT);
        let names = listing::names(about, |place| self.page(about, &start, place)).await?;
        // As in Terraform, every folder below the prefix is a workspace, whatever objects it contains.
        let others = names.iter().filter(|object| **object != default);
        let folders = others.filter_map(|object| object.strip_prefix(&start)?.split('/').next());
        Ok(listing::workspaces(folders, "", ""))
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
                Client::digest_key(&self.lock_key(workspace))
            );
            problem("state data in OSS does not have the expected content", detail)
        };
        consistent::read(self, &self.lock_key(workspace), || self.get(&object), mismatch).await
    }

    /// Writes without a condition, because the service has no conditional writes.
    async fn write(&self, workspace: &str, state: &[u8], _expected: Option<&Revision>) -> Result<Written> {
        let object = self.object(workspace);
        let put = self.put(&object, state);
        consistent::write(self, &self.lock_key(workspace), state, put, || self.get(&object)).await
    }

    async fn delete(&self, workspace: &str) -> Result<()> {
        let Settings { cloud, bucket, .. } = &self.settings;
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
        // The checksum is removed last, so that a failed deletion leaves a state with a valid checksum.
        consistent::forget(self, &self.lock_key(workspace)).await;
        Ok(())
    }

    fn lock_records<'s>(&'s self, workspace: &'s str) -> Result<Records<'s>> {
        let Settings { cloud, table, .. } = &self.settings;
        let key = self.lock_key(workspace);
        let row = table.as_ref().map(|table| LockRow { cloud, table, key });
        Ok(row
            .into_iter()
            .map(|row| Box::new(row) as Box<dyn LockRecord>)
            .collect())
    }
}
