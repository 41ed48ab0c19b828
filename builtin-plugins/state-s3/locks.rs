//! Locks, which are objects beside the states, items of a table, or both; and the checksums in the table.

use monoform_sdk::state_store::{LockError, LockInfo};
use monoform_sdk::{Result, async_trait};
use serde_json::{Value as Json, json};
use store_client::about::{LOCK, UNLOCK, problem};
use store_client::consistent::Sums;
use store_client::lock::{Created, Found, LockRecord, Records, Removed};
use store_client::{Answer, Method};

use crate::aws;
use crate::client::Client;

/// Returns an attribute of an item.
fn attribute(answer: &Answer, name: &str) -> Option<String> {
    let json: Json = serde_json::from_slice(&answer.body).ok()?;
    json["Item"][name]["S"].as_str().map(str::to_owned)
}

/// Lock file of a state.
struct LockFile<'c> {
    client: &'c Client,
    path: String,
    key: String,
}

impl LockFile<'_> {
    fn what(&self, doing: &str) -> String {
        format!("{doing} {}", self.name())
    }
}

#[async_trait]
impl LockRecord for LockFile<'_> {
    fn name(&self) -> String {
        format!(
            "the lock file {:?} in the bucket {:?}",
            self.key, self.client.settings.bucket
        )
    }

    fn path(&self) -> String {
        self.path.clone()
    }

    async fn create(&self, info: &LockInfo) -> std::result::Result<Created, LockError> {
        let what = self.what("Making");
        let body = info.to_json().into_bytes();
        let mut headers = self.client.writing(&body);
        // The condition makes the object a lock: of two programs, only one can create it.
        headers.push(("if-none-match", "*".to_owned()));
        let answer = self
            .client
            .object(Method::PUT, Some(&self.key), "", headers, body, &what)
            .await?;
        match answer.status.as_u16() {
            200..=299 => Ok(Created::Done(info.id.clone())),
            409 | 412 => Ok(Created::Exists),
            _ => Err(aws::problem(LOCK, &what, &self.client.place(), &answer).into()),
        }
    }

    async fn find(&self, summary: &str) -> Result<Option<Found>> {
        let what = self.what("Reading");
        let headers = self.client.reading();
        let answer = self
            .client
            .object(Method::GET, Some(&self.key), "", headers, Vec::new(), &what)
            .await?;
        match answer.status.as_u16() {
            200 => match LockInfo::from_json(&answer.body) {
                Some(info) => Ok(Some(Found::new(info))),
                None => Err(problem(
                    summary,
                    format!("The lock file {:?} has no lock information in it.", self.key),
                )),
            },
            404 => Ok(None),
            _ => Err(aws::problem(summary, &what, &self.client.place(), &answer)),
        }
    }

    /// Deletes the object without a condition.
    async fn remove(&self, _found: &Found) -> Result<Removed> {
        let what = self.what("Removing");
        let answer = self
            .client
            // Not every service that is compatible with S3 supports conditional deletes. The caller has compared the lock ID.
            .object(Method::DELETE, Some(&self.key), "", Vec::new(), Vec::new(), &what)
            .await?;
        match answer.status.is_success() {
            true => Ok(Removed::Done),
            false => Err(aws::problem(UNLOCK, &what, &self.client.place(), &answer)),
        }
    }
}

/// Item of a table that locks a state.
struct LockItem<'c> {
    client: &'c Client,
    table: &'c str,
    path: String,
}

impl LockItem<'_> {
    fn what(&self, doing: &str) -> String {
        format!("{doing} {}", self.name())
    }
}

#[async_trait]
impl LockRecord for LockItem<'_> {
    fn name(&self) -> String {
        format!("the lock {:?} in the DynamoDB table {:?}", self.path, self.table)
    }

    fn path(&self) -> String {
        self.path.clone()
    }

    async fn create(&self, info: &LockInfo) -> std::result::Result<Created, LockError> {
        let what = self.what("Making");
        let request = json!({
            "TableName": self.table,
            "Item": {"LockID": {"S": self.path}, "Info": {"S": info.to_json()}},
            // The condition makes the item a lock: of two programs, only one can create it.
            "ConditionExpression": "attribute_not_exists(LockID)",
        });
        let answer = self.client.dynamodb("PutItem", request, &what).await?;
        if answer.status.is_success() {
            return Ok(Created::Done(info.id.clone()));
        }
        match answer.text().contains("ConditionalCheckFailed") {
            true => Ok(Created::Exists),
            false => Err(aws::problem(LOCK, &what, &self.client.place(), &answer).into()),
        }
    }

    async fn find(&self, summary: &str) -> Result<Option<Found>> {
        let what = self.what("Reading");
        let answer = self.client.item(self.table, &self.path, "LockID, Info", &what).await?;
        if !answer.status.is_success() {
            return Err(aws::problem(summary, &what, &self.client.place(), &answer));
        }
        Ok(attribute(&answer, "Info").map(|info| Found::of_text(&info)))
    }

    async fn remove(&self, _found: &Found) -> Result<Removed> {
        let what = self.what("Removing");
        let request = json!({"TableName": self.table, "Key": {"LockID": {"S": self.path}}});
        let answer = self.client.dynamodb("DeleteItem", request, &what).await?;
        match answer.status.is_success() {
            true => Ok(Removed::Done),
            false => Err(aws::problem(UNLOCK, &what, &self.client.place(), &answer)),
        }
    }
}

impl Client {
    /// Returns `BUCKET/KEY`, which is the `Path` in the lock record of a state, and the key of its item in the DynamoDB table.
    fn lock_path(&self, key: &str) -> String {
        format!("{}/{key}", self.settings.bucket)
    }

    /// Returns the locks (object, item, or both) of the state with this key.
    pub(crate) fn records(&self, key: &str) -> Records<'_> {
        let mut records = Records::new();
        // All programs must create the two locks in the same order. Otherwise, each of two programs could hold one of them.
        if self.settings.lock_file {
            records.push(Box::new(LockFile {
                client: self,
                path: self.lock_path(key),
                key: format!("{key}.tflock"),
            }));
        }
        if let Some(table) = &self.settings.table {
            records.push(Box::new(LockItem {
                client: self,
                table,
                path: self.lock_path(key),
            }));
        }
        records
    }

    async fn item(&self, table: &str, id: &str, columns: &str, what: &str) -> Result<Answer> {
        let request = json!({
            "TableName": table,
            "Key": {"LockID": {"S": id}},
            "ProjectionExpression": columns,
            // An eventually consistent read, which is the default, could return a lock that was already released.
            "ConsistentRead": true,
        });
        self.dynamodb("GetItem", request, what).await
    }

    fn digest_id(&self, key: &str) -> String {
        format!("{}-md5", self.lock_path(key))
    }

    /// Checks that a request for a checksum succeeded.
    fn done(&self, answer: &Answer, what: &str) -> Result<()> {
        match answer.status.is_success() {
            true => Ok(()),
            false => Err(aws::problem(LOCK, what, &self.place(), answer)),
        }
    }
}

/// Checksums, which are items of the table. Without a table there are none.
#[async_trait]
impl Sums for Client {
    async fn find(&self, key: &str) -> Result<Option<String>> {
        let Some(table) = &self.settings.table else {
            return Ok(None);
        };
        let what = "Reading the checksum of the state in DynamoDB";
        let answer = self.item(table, &self.digest_id(key), "LockID, Digest", what).await?;
        self.done(&answer, what)?;
        Ok(attribute(&answer, "Digest"))
    }

    async fn record(&self, key: &str, sum: &str) -> Result<()> {
        let Some(table) = &self.settings.table else {
            return Ok(());
        };
        let what = "Writing the checksum of the state to DynamoDB";
        let request = json!({
            "TableName": table,
            "Item": {"LockID": {"S": self.digest_id(key)}, "Digest": {"S": sum}},
        });
        self.done(&self.dynamodb("PutItem", request, what).await?, what)
    }

    async fn forget(&self, key: &str) -> Result<()> {
        let Some(table) = &self.settings.table else {
            return Ok(());
        };
        let what = "Removing the checksum of the state from DynamoDB";
        let request = json!({"TableName": table, "Key": {"LockID": {"S": self.digest_id(key)}}});
        self.done(&self.dynamodb("DeleteItem", request, what).await?, what)
    }
}
