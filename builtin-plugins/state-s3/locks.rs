//! Locks: objects beside the states, items of a table, or both; and the checksums in the table.

use monoform_sdk::state_store::{LockError, LockInfo};
use monoform_sdk::{Diagnostic, Diagnostics, Result};
use serde_json::{Value as Json, json};
use store_client::guard::Holder;
use store_client::{Answer, Method, consistent};

use crate::aws;
use crate::client::Client;

const LOCK: &str = "Error acquiring the state lock";
const UNLOCK: &str = "Cannot release the state lock";

fn details(problems: &Diagnostics) -> String {
    problems
        .0
        .iter()
        .map(|d| d.detail.clone())
        .collect::<Vec<_>>()
        .join(" ")
}

/// An attribute of an item that a table has.
fn attribute(answer: &Answer, name: &str) -> Option<String> {
    let json: Json = serde_json::from_slice(&answer.body).ok()?;
    json["Item"][name]["S"].as_str().map(str::to_owned)
}

/// What became of one of two kinds of locks.
enum Released {
    /// It is free now.
    Now,
    /// It was free before.
    NotHeld,
}

/// How often a lock is tried for that was held, and is free when it is asked who holds it.
const ATTEMPTS: u32 = 10;

/// Why a lock could not be taken, where it was asked who holds it.
fn not_taken(problems: Diagnostics, holder: Result<Option<LockInfo>>) -> LockError {
    match holder {
        Ok(Some(holder)) => LockError::held(Some(holder), details(&problems)),
        Ok(None) => LockError::Failed(problems),
        Err(why) => {
            let detail = format!(
                "{} Who holds the lock cannot be read: {}",
                details(&problems),
                details(&why)
            );
            Diagnostic::error(LOCK, detail).into()
        }
    }
}

impl Client {
    fn lock_key(key: &str) -> String {
        format!("{key}.tflock")
    }

    /// What a lock calls the state.
    fn lock_path(&self, key: &str) -> String {
        format!("{}/{key}", self.settings.bucket)
    }

    /// Takes the lock of a state.
    pub(crate) async fn take(&self, key: &str, mut info: LockInfo) -> std::result::Result<String, LockError> {
        info.path = self.lock_path(key);
        if self.settings.lock_file {
            self.take_file(key, &info).await?;
        }
        if let Some(table) = &self.settings.table
            && let Err(error) = self.take_item(table, key, &info).await
        {
            if self.settings.lock_file
                && let Err(problems) = self.release_file(key, &info.id).await
            {
                let detail = format!(
                    "{} The lock file that was made before cannot be removed either: {}",
                    details(&error.into_diagnostics()),
                    details(&problems)
                );
                return Err(Diagnostic::error(LOCK, detail).into());
            }
            return Err(error);
        }
        match self.settings.lock_file || self.settings.table.is_some() {
            true => Ok(info.id),
            // Nothing keeps others out.
            false => Ok(String::new()),
        }
    }

    async fn take_file(&self, key: &str, info: &LockInfo) -> std::result::Result<(), LockError> {
        let lock_key = Client::lock_key(key);
        let what = format!(
            "Making the lock file {lock_key:?} in the bucket {:?}",
            self.settings.bucket
        );
        let body = info.to_json().into_bytes();
        let mut headers = self.writing(&body);
        headers.push(("if-none-match", "*".to_owned()));
        let mut left = ATTEMPTS;
        loop {
            left -= 1;
            let put = self.object(Method::PUT, Some(&lock_key), "", headers.clone(), body.clone(), &what);
            let (problems, held) = match put.await {
                Ok(answer) if answer.status.is_success() => return Ok(()),
                Ok(answer) => {
                    let held = matches!(answer.status.as_u16(), 409 | 412);
                    (aws::problem(LOCK, &what, &self.place(), &answer), held)
                }
                Err(problems) => (problems, false),
            };
            match self.file_holder(&lock_key).await {
                Ok(None) if held && left > 0 => {}
                holder => return Err(not_taken(problems, holder)),
            }
        }
    }

    /// Who holds the lock file; `None` if there is none.
    async fn file_holder(&self, lock_key: &str) -> Result<Option<LockInfo>> {
        let what = format!(
            "Reading the lock file {lock_key:?} in the bucket {:?}",
            self.settings.bucket
        );
        let answer = self
            .object(Method::GET, Some(lock_key), "", self.reading(), Vec::new(), &what)
            .await?;
        match answer.status.as_u16() {
            200 => LockInfo::from_json(&answer.body).map(Some).ok_or_else(|| {
                Diagnostic::error(
                    LOCK,
                    format!("The lock file {lock_key:?} has no lock information in it."),
                )
                .into()
            }),
            404 => Ok(None),
            _ => Err(aws::problem(LOCK, &what, &self.place(), &answer)),
        }
    }

    async fn take_item(&self, table: &str, key: &str, info: &LockInfo) -> std::result::Result<(), LockError> {
        let what = format!("Making the lock {:?} in the DynamoDB table {table:?}", info.path);
        let request = json!({
            "TableName": table,
            "Item": {"LockID": {"S": info.path}, "Info": {"S": info.to_json()}},
            "ConditionExpression": "attribute_not_exists(LockID)",
        });
        let mut left = ATTEMPTS;
        loop {
            left -= 1;
            let (problems, held) = match self.dynamodb("PutItem", request.clone(), &what).await {
                Ok(answer) if answer.status.is_success() => return Ok(()),
                Ok(answer) => {
                    let held = String::from_utf8_lossy(&answer.body).contains("ConditionalCheckFailed");
                    (aws::problem(LOCK, &what, &self.place(), &answer), held)
                }
                Err(problems) => (problems, false),
            };
            match self.item_holder(table, key).await {
                Ok(None) if held && left > 0 => {}
                holder => return Err(not_taken(problems, holder)),
            }
        }
    }

    async fn item(&self, table: &str, id: &str, columns: &str, what: &str) -> Result<Answer> {
        let request = json!({
            "TableName": table,
            "Key": {"LockID": {"S": id}},
            "ProjectionExpression": columns,
            "ConsistentRead": true,
        });
        self.dynamodb("GetItem", request, what).await
    }

    async fn item_holder(&self, table: &str, key: &str) -> Result<Option<LockInfo>> {
        let path = self.lock_path(key);
        let what = format!("Reading the lock {path:?} in the DynamoDB table {table:?}");
        let answer = self.item(table, &path, "LockID, Info", &what).await?;
        if !answer.status.is_success() {
            return Err(aws::problem(LOCK, &what, &self.place(), &answer));
        }
        Ok(attribute(&answer, "Info").and_then(|info| LockInfo::from_json(info.as_bytes())))
    }

    /// Releases the lock of a state. Of two kinds of locks one may be missing: that of a process which was killed between them.
    pub(crate) async fn release(&self, key: &str, id: &str) -> Result<()> {
        if !self.settings.lock_file && self.settings.table.is_none() {
            return Ok(());
        }
        let file = match self.settings.lock_file {
            true => self.release_file(key, id).await,
            false => Ok(Released::NotHeld),
        };
        let item = match &self.settings.table {
            Some(table) => self.release_item(table, key, id).await,
            None => Ok(Released::NotHeld),
        };
        match (file, item) {
            (Ok(Released::NotHeld), Ok(Released::NotHeld)) => Err(Client::another(&self.lock_path(key), None, id)),
            (Ok(_), Ok(_)) => Ok(()),
            (Err(one), Err(other)) => {
                let detail = format!(
                    "Neither the lock file nor the lock in DynamoDB is released. {} {}",
                    details(&one),
                    details(&other)
                );
                Err(Diagnostic::error(UNLOCK, detail).into())
            }
            (Err(one), Ok(_)) | (Ok(_), Err(one)) => Err(one),
        }
    }

    /// Whose the lock of a state is. Of two kinds of locks both must be the own ones.
    pub(crate) async fn holder_of(&self, key: &str, own: &str) -> Result<Holder> {
        let mut holder = Holder::Free;
        if self.settings.lock_file {
            holder = Holder::of(self.file_holder(&Client::lock_key(key)).await?, own);
            if !matches!(holder, Holder::Own) {
                return Ok(holder);
            }
        }
        if let Some(table) = &self.settings.table {
            holder = Holder::of(self.item_holder(table, key).await?, own);
        }
        Ok(holder)
    }

    fn another(path: &str, holder: Option<&LockInfo>, id: &str) -> Diagnostics {
        let detail = match holder {
            None => format!("The state {path:?} is not locked."),
            Some(holder) => format!(
                "The lock of the state {path:?} has the ID {:?}, and not {id:?}: {holder}.",
                holder.id
            ),
        };
        Diagnostic::error(UNLOCK, detail).into()
    }

    async fn release_file(&self, key: &str, id: &str) -> Result<Released> {
        let lock_key = Client::lock_key(key);
        match self.file_holder(&lock_key).await? {
            None => return Ok(Released::NotHeld),
            Some(holder) if holder.id != id => return Err(Client::another(&self.lock_path(key), Some(&holder), id)),
            Some(_) => {}
        }
        let what = format!(
            "Removing the lock file {lock_key:?} in the bucket {:?}",
            self.settings.bucket
        );
        let answer = self
            .object(Method::DELETE, Some(&lock_key), "", Vec::new(), Vec::new(), &what)
            .await?;
        match answer.status.is_success() {
            true => Ok(Released::Now),
            false => Err(aws::problem(UNLOCK, &what, &self.place(), &answer)),
        }
    }

    async fn release_item(&self, table: &str, key: &str, id: &str) -> Result<Released> {
        let path = self.lock_path(key);
        match self.item_holder(table, key).await? {
            None => return Ok(Released::NotHeld),
            Some(holder) if holder.id != id => return Err(Client::another(&path, Some(&holder), id)),
            Some(_) => {}
        }
        let what = format!("Removing the lock {path:?} in the DynamoDB table {table:?}");
        let request = json!({"TableName": table, "Key": {"LockID": {"S": path}}});
        let answer = self.dynamodb("DeleteItem", request, &what).await?;
        match answer.status.is_success() {
            true => Ok(Released::Now),
            false => Err(aws::problem(UNLOCK, &what, &self.place(), &answer)),
        }
    }

    fn digest_id(&self, key: &str) -> String {
        format!("{}-md5", self.lock_path(key))
    }

    /// The checksum that the table has for a state; `None` without a table, and where none can be had: that is only logged, since
    /// what it guards against is rare.
    pub(crate) async fn digest(&self, key: &str) -> Option<String> {
        let table = self.settings.table.as_ref()?;
        let what = "Reading the checksum of the state in DynamoDB";
        let answer = match self.item(table, &self.digest_id(key), "LockID, Digest", what).await {
            Ok(answer) => answer,
            Err(problems) => {
                tracing::warn!("{}", details(&problems));
                return None;
            }
        };
        if !answer.status.is_success() {
            tracing::warn!("{}", details(&aws::problem(LOCK, what, &self.place(), &answer)));
            return None;
        }
        consistent::recorded(attribute(&answer, "Digest"))
    }

    /// Keeps the checksum of a state in the table.
    pub(crate) async fn store_digest(&self, key: &str, sum: &str) {
        let Some(table) = &self.settings.table else { return };
        let what = "Writing the checksum of the state to DynamoDB";
        let request = json!({
            "TableName": table,
            "Item": {"LockID": {"S": self.digest_id(key)}, "Digest": {"S": sum}},
        });
        self.tolerate(self.dynamodb("PutItem", request, what).await, what);
    }

    /// Forgets the checksum of a state that is gone.
    pub(crate) async fn delete_digest(&self, key: &str) {
        let Some(table) = &self.settings.table else { return };
        let what = "Removing the checksum of the state from DynamoDB";
        let request = json!({"TableName": table, "Key": {"LockID": {"S": self.digest_id(key)}}});
        self.tolerate(self.dynamodb("DeleteItem", request, what).await, what);
    }

    fn tolerate(&self, result: Result<Answer>, what: &str) {
        match result {
            Ok(answer) if answer.status.is_success() => {}
            Ok(answer) => tracing::warn!("{}", details(&aws::problem(LOCK, what, &self.place(), &answer))),
            Err(problems) => tracing::warn!("{}", details(&problems)),
        }
    }
}
