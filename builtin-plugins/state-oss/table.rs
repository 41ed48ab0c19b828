//! Table with locks and checksums.

use monoform_sdk::{Diagnostic, Result};
use prost::Message;
use store_client::sum::md5_base64;
use store_client::{Answer, Bytes, HeaderMap, HeaderName, Method, Url, header_value};

use crate::cloud::Cloud;
use crate::row::{Change, Condition, Describe, Get, Got, NOT_THERE, Refusal, WHETHER_OR_NOT};
use crate::services::now;
use crate::{row, sign};

/// Primary key column.
const KEY: &str = "LockID";

/// Number of attempts while the service is busy.
const ATTEMPTS: u32 = 6;

/// Pause after the first attempt. The pause doubles after each further one.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(100);

/// A table in an instance of Tablestore.
pub(crate) struct Table {
    pub url: Url,
    pub instance: String,
    pub name: String,
}

/// Error of a condition that is not met: the row exists already.
pub(crate) struct IsThere;

impl Table {
    /// Checks that the table can be used.
    pub async fn check(&self, cloud: &Cloud) -> Result<()> {
        let request = Describe {
            table: self.name.clone(),
        };
        let what = format!("Looking up the table {:?} of Tablestore", self.name);
        self.send(cloud, "/DescribeTable", request, &what, false)
            .await
            .map(drop)
    }

    pub async fn put(&self, cloud: &Cloud, key: &str, column: &str, value: &str) -> Result<()> {
        let request = self.change(row::written((KEY, key), &[(column, value)], false), WHETHER_OR_NOT);
        self.send(cloud, "/PutRow", request, &self.what("Writing", key), false)
            .await
            .map(drop)
    }

    /// Creates a row if it does not exist.
    pub async fn make(
        &self,
        cloud: &Cloud,
        key: &str,
        column: &str,
        value: &str,
    ) -> Result<std::result::Result<(), IsThere>> {
        // The service checks the condition and writes in one step, so of several programs only one creates the row and gets the lock.
        let request = self.change(row::written((KEY, key), &[(column, value)], false), NOT_THERE);
        let answer = self
            .send(cloud, "/PutRow", request, &self.what("Making", key), true)
            .await?;
        Ok(match answer.status.is_success() {
            true => Ok(()),
            false => Err(IsThere),
        })
    }

    /// Reads a column of a row. Returns `None` if the row or the column does not exist.
    pub async fn get(&self, cloud: &Cloud, key: &str, column: &str) -> Result<Option<String>> {
        let what = self.what("Reading", key);
        let request = Get {
            table: self.name.clone(),
            key: row::written((KEY, key), &[], false),
            columns: vec![KEY.to_owned(), column.to_owned()],
            versions: Some(1),
        };
        let answer = self.send(cloud, "/GetRow", request, &what, false).await?;
        let broken = || {
            Diagnostic::error(
                "Error reading a table",
                format!("{what} failed: the answer has no row."),
            )
        };
        let got = Got::decode(answer.body.as_slice()).map_err(|_| broken())?;
        if got.row.is_empty() {
            return Ok(None);
        }
        Ok(row::read(&got.row).ok_or_else(broken)?.remove(column))
    }

    /// Deletes a row. It is not an error if the row does not exist.
    pub async fn delete(&self, cloud: &Cloud, key: &str) -> Result<()> {
        let request = self.change(row::written((KEY, key), &[], true), WHETHER_OR_NOT);
        self.send(cloud, "/DeleteRow", request, &self.what("Deleting", key), false)
            .await
            .map(drop)
    }

    fn what(&self, doing: &str, key: &str) -> String {
        format!("{doing} the row {key:?} of the table {:?} of Tablestore", self.name)
    }

    fn change(&self, row: Vec<u8>, existence: i32) -> Change {
        Change {
            table: self.name.clone(),
            row,
            condition: Condition { existence },
        }
    }

    /// Sends a request, and repeats it while the service is busy. With `may_fail`, a condition that is not met is not an error.
    async fn send(
        &self,
        cloud: &Cloud,
        path: &str,
        request: impl Message,
        what: &str,
        may_fail: bool,
    ) -> Result<Answer> {
        const SUMMARY: &str = "Error in the table of locks";
        let body = Bytes::from(request.encode_to_vec());
        let mut pause = PAUSE;
        let mut left = ATTEMPTS;
        loop {
            left -= 1;
            let answer = self.once(cloud, path, body.clone(), what, SUMMARY).await?;
            if answer.status.is_success() {
                return Ok(answer);
            }
            let refusal = Refusal::decode(answer.body.as_slice()).unwrap_or_default();
            let message = refusal.message.unwrap_or_default();
            let busy = matches!(
                refusal.code.as_str(),
                "OTSRowOperationConflict"
                    | "OTSNotEnoughCapacityUnit"
                    | "OTSTableNotReady"
                    | "OTSPartitionUnavailable"
                    | "OTSServerBusy"
                    | "OTSStorageServerBusy"
            );
            match refusal.code.as_str() {
                // The caller handles this: another program has created the row.
                "OTSConditionCheckFail" if may_fail => return Ok(answer),
                _ if busy && left > 0 => {
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
                code => {
                    let detail = answer.describe(what, code, &message, &self.advice(code));
                    return Err(Diagnostic::error(SUMMARY, detail).into());
                }
            }
        }
    }

    fn advice(&self, code: &str) -> String {
        let Table { name, instance, .. } = self;
        match code {
            "OTSObjectNotExist" => format!(
                "Make the table {name:?} in the instance {instance:?}, with one column {KEY:?} of type STRING as its primary key \
                 (aliyun otsutil: create -t {name} --pk '[{{\"c\":\"{KEY}\",\"t\":\"string\"}}]'), or correct tablestore_table."
            ),
            "OTSAuthFailed" => {
                "Check the credentials, tablestore_endpoint (its first part is the name of the instance, unless \
                                tablestore_instance_name says it), and the clock of this machine."
                    .to_owned()
            }
            "OTSNoPermissionAccess" => "The account needs a policy that permits this (ots:*) on the table.".to_owned(),
            _ => String::new(),
        }
    }

    async fn once(&self, cloud: &Cloud, path: &str, body: Bytes, what: &str, summary: &str) -> Result<Answer> {
        let credential = cloud.credential().await?;
        let mut url = self.url.clone();
        url.set_path(path);
        let sum = md5_base64(&body);
        // The signature covers the time, so each attempt is signed again.
        let mut make = || {
            let time = now("%Y-%m-%dT%H:%M:%S.000Z");
            let mut parts = vec![
                ("x-ots-date", time.as_str()),
                ("x-ots-apiversion", "2015-12-31"),
                ("x-ots-accesskeyid", &credential.id),
                ("x-ots-contentmd5", &sum),
                ("x-ots-instancename", &self.instance),
            ];
            parts.extend(credential.token.as_deref().map(|token| ("x-ots-ststoken", token)));
            let signature = sign::of_table(&credential.key, path, &parts);
            parts.push(("x-ots-signature", &signature));
            let mut all = HeaderMap::new();
            for (name, value) in parts {
                all.insert(HeaderName::from_static(name), header_value(value)?);
            }
            Ok((Method::POST, url.clone(), all, Some(body.clone())))
        };
        let sent = cloud.services.calls.send_signed(&mut make).await;
        sent.map_err(|failure| failure.diagnostic(summary, what).into())
    }
}
