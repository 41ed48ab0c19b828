//! State client: requests for the objects of the bucket.

use monoform_sdk::state_store::{DEFAULT, WorkspaceSupport};
use monoform_sdk::{Diagnostic, Result, async_trait};
use store_client::about::{About, LIST, READ, WRITE};
use store_client::consistent;
use store_client::guard::{LockedStore, Revision, Snapshot, Written};
use store_client::listing::{self, Page};
use store_client::lock::Records;
use store_client::name::{encoded, encoded_path, joined};
use store_client::sum::sha256_base64;
use store_client::xml::Xml;
use store_client::{Answer, Method, Url};

use crate::aws::{self, Request, ResourceNames, code};
use crate::credentials::Credentials;
use crate::services::url;
use crate::settings::{Encryption, Settings};

/// Client for a bucket with states.
pub(crate) struct Client {
    pub settings: Settings,
    credentials: Credentials,
}

impl Client {
    /// Creates a client, after checking the credentials and their account.
    pub async fn connect(settings: Settings) -> Result<Client> {
        let credentials = settings.account().await?;
        Ok(Client { settings, credentials })
    }

    pub fn place(&self) -> ResourceNames<'_> {
        ResourceNames {
            bucket: &self.settings.bucket,
            table: self.settings.table.as_deref().unwrap_or_default(),
            region: &self.settings.services.region,
        }
    }

    /// Returns the key of a workspace's state.
    pub fn key(&self, workspace: &str) -> String {
        match workspace {
            DEFAULT => self.settings.key.clone(),
            name => joined(&[&self.settings.prefix, name, &self.settings.key]),
        }
    }

    /// Returns the URL of an object or of the bucket. The query must be percent-encoded.
    fn address(&self, key: Option<&str>, query: &str) -> Result<Url> {
        let bucket = &self.settings.bucket;
        let mut address = url("S3", &self.settings.services.s3)?;
        let host = address.host_str().unwrap_or_default().to_owned();
        // The bucket is a subdomain of the host, but an IP address has no subdomains.
        let is_name = address.domain().is_some();
        // A certificate for "*.s3.amazonaws.com" does not match a bucket whose name contains a dot, so such a subdomain is used only for
        // http.
        let fits = bucket
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
            || address.scheme() == "http"
                && bucket
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c));
        let base = address.path().trim_end_matches('/').to_owned();
        let key = encoded_path(key.unwrap_or_default());
        if !self.settings.services.path_style && is_name && fits {
            let named = format!("{bucket}.{host}");
            address.set_host(Some(&named)).map_err(|e| {
                Diagnostic::error(
                    "Invalid S3 backend configuration",
                    format!("{named:?} is not the name of a server: {e}."),
                )
            })?;
            address.set_path(&format!("{base}/{key}"));
        } else {
            address.set_path(&format!("{base}/{}/{key}", encoded_path(bucket)));
        }
        address.set_query((!query.is_empty()).then_some(query));
        Ok(address)
    }

    /// Sends a signed request for an object or for the bucket.
    pub async fn object(
        &self,
        method: Method,
        key: Option<&str>,
        query: &str,
        headers: Vec<(&'static str, String)>,
        body: Vec<u8>,
        what: &str,
    ) -> Result<Answer> {
        let Settings { http, services, .. } = &self.settings;
        let credential = self.credentials.get(http, services).await?;
        let request = Request {
            service: "s3",
            region: &services.region,
            method,
            url: self.address(key, query)?,
            headers,
            body,
        };
        aws::send(http, Some(&credential), request, what).await
    }

    pub async fn dynamodb(&self, operation: &str, body: serde_json::Value, what: &str) -> Result<Answer> {
        let Settings { http, services, .. } = &self.settings;
        let credential = self.credentials.get(http, services).await?;
        let request = Request {
            service: "dynamodb",
            region: &services.region,
            method: Method::POST,
            url: url("DynamoDB", &services.dynamodb)?,
            headers: vec![
                ("content-type", "application/x-amz-json-1.0".to_owned()),
                ("x-amz-target", format!("DynamoDB_20120810.{operation}")),
            ],
            body: body.to_string().into_bytes(),
        };
        aws::send(http, Some(&credential), request, what).await
    }

    /// Returns the headers for reading an object that is encrypted with a customer-provided key.
    pub fn reading(&self) -> Vec<(&'static str, String)> {
        match &self.settings.encryption {
            Encryption::Customer(key, sum) => vec![
                ("x-amz-server-side-encryption-customer-algorithm", "AES256".to_owned()),
                ("x-amz-server-side-encryption-customer-key", key.clone()),
                ("x-amz-server-side-encryption-customer-key-md5", sum.clone()),
            ],
            _ => Vec::new(),
        }
    }

    /// Returns the headers for writing an object.
    pub fn writing(&self, body: &[u8]) -> Vec<(&'static str, String)> {
        let mut headers = self.reading();
        headers.push(("content-type", "application/json".to_owned()));
        match &self.settings.encryption {
            // `reading` includes the headers for a customer-provided key, which writing needs, too.
            Encryption::None | Encryption::Customer(..) => {}
            Encryption::S3 => headers.push(("x-amz-server-side-encryption", "AES256".to_owned())),
            Encryption::Kms(key) => {
                headers.push(("x-amz-server-side-encryption", "aws:kms".to_owned()));
                headers.push(("x-amz-server-side-encryption-aws-kms-key-id", key.clone()));
            }
        }
        if self.settings.checksum {
            headers.push(("x-amz-sdk-checksum-algorithm", "SHA256".to_owned()));
            headers.push(("x-amz-checksum-sha256", sha256_base64(body)));
        }
        if let Some(acl) = &self.settings.acl {
            headers.push(("x-amz-acl", acl.clone()));
        }
        headers
    }

    /// Reads an object and its ETag.
    async fn get(&self, key: &str) -> Result<Snapshot> {
        let what = format!("Reading the object {key:?} of the bucket {:?}", self.settings.bucket);
        let answer = self
            .object(Method::GET, Some(key), "", self.reading(), Vec::new(), &what)
            .await?;
        match answer.status.as_u16() {
            200 => Ok(Snapshot {
                revision: Revision::named(answer.header("etag")),
                // An empty object counts as a missing state.
                state: Some(answer.body).filter(|body| !body.is_empty()),
            }),
            404 if code(&answer) != "NoSuchBucket" => Ok(Snapshot {
                state: None,
                revision: Some(Revision::Absent),
            }),
            _ => Err(aws::problem(READ, &what, &self.place(), &answer)),
        }
    }

    /// Writes an object. With lock files, it is written only if it still has the expected revision.
    async fn put(&self, key: &str, content: &[u8], expected: Option<&Revision>) -> Result<Written> {
        let what = format!("Writing the object {key:?} of the bucket {:?}", self.settings.bucket);
        let mut headers = self.writing(content);
        // Services that are compatible with S3 may not support conditional writes, and would refuse the header. A lock file itself requires
        // a conditional write, so with lock files the service must support them.
        if self.settings.lock_file {
            match expected {
                Some(Revision::Named(tag)) => headers.push(("if-match", tag.clone())),
                Some(Revision::Absent) => headers.push(("if-none-match", "*".to_owned())),
                None => {}
            }
        }
        let answer = self
            .object(Method::PUT, Some(key), "", headers, content.to_vec(), &what)
            .await?;
        match answer.status.as_u16() {
            200..=299 => Ok(Written::Done(Revision::named(answer.header("etag")))),
            409 | 412 => Ok(Written::Changed),
            // The object that was to be replaced does not exist any more.
            404 if code(&answer) == "NoSuchKey" => Ok(Written::Changed),
            _ => Err(aws::problem(WRITE, &what, &self.place(), &answer)),
        }
    }

    /// Requests one page of the list of objects with a prefix.
    async fn page(&self, about: About<'_>, prefix: &str, place: Option<String>) -> Result<Page> {
        let mut query = match &place {
            Some(place) => format!("continuation-token={}&", encoded(place)),
            None => String::new(),
        };
        query.push_str(&format!("list-type=2&max-keys=1000&prefix={}", encoded(prefix)));
        let answer = self
            .object(Method::GET, None, &query, Vec::new(), Vec::new(), about.what)
            .await?;
        if !answer.status.is_success() {
            // With the default prefix, a refused listing counts as an empty one, so that permission to read one state is enough.
            if self.settings.prefix == "env:" && code(&answer) == "AccessDenied" {
                tracing::warn!("workspaces cannot be listed: access is denied");
                return Ok(Page::default());
            }
            return Err(aws::problem(about.summary, about.what, &self.place(), &answer));
        }
        let listed = Xml::from_answer(&answer).map_err(|failure| failure.diagnostic(about.summary, about.what))?;
        let is_more = listed.text("IsTruncated") == Some("true");
        Ok(Page {
            names: listed.texts("Key").map(str::to_owned).collect(),
            next: listed
                .text("NextContinuationToken")
                .filter(|_| is_more)
                .map(str::to_owned),
        })
    }
}

#[async_trait]
impl LockedStore for Client {
    fn support(&self) -> WorkspaceSupport {
        WorkspaceSupport::NamedAndDefault
    }

    async fn workspaces(&self) -> Result<Vec<String>> {
        let prefix = match self.settings.prefix.as_str() {
            "" => String::new(),
            prefix => format!("{prefix}/"),
        };
        let what = format!(
            "Listing the objects of the bucket {:?} with the prefix {prefix:?}",
            self.settings.bucket
        );
        let about = About {
            summary: LIST,
            what: &what,
        };
        let names = listing::names(about, |place| self.page(about, &prefix, place)).await?;
        let end = format!("/{}", self.settings.key);
        Ok(listing::workspaces(names.iter().map(String::as_str), &prefix, &end))
    }

    async fn read(&self, workspace: &str) -> Result<Snapshot> {
        let key = self.key(workspace);
        let mismatch = |expected: &str, actual: &str| {
            let place = format!("{}/{key}", self.settings.bucket);
            let detail = format!(
                "The state in the bucket has another checksum than the table records.\n\n\
                 Bucket: {}\nKey:    {key}\nActual checksum:   {actual}\nRecorded checksum: {expected}\n\n\
                 Another program may just have written the state: try again. If the state is right (the last one that was \
                 written), store its checksum: in the table {:?}, the item with the LockID \"{place}-md5\" must have the \
                 Digest {actual:?}.",
                self.settings.bucket,
                self.settings.table.as_deref().unwrap_or_default()
            );
            Diagnostic::error("state data in S3 does not have the expected content", detail).into()
        };
        consistent::read(self, &key, || self.get(&key), mismatch).await
    }

    async fn write(&self, workspace: &str, state: &[u8], expected: Option<&Revision>) -> Result<Written> {
        let key = self.key(workspace);
        let put = self.put(&key, state, expected);
        consistent::write(self, &key, state, put, || self.get(&key)).await
    }

    async fn delete(&self, workspace: &str) -> Result<()> {
        let key = self.key(workspace);
        let what = format!("Deleting the object {key:?} of the bucket {:?}", self.settings.bucket);
        let answer = self
            .object(Method::DELETE, Some(&key), "", Vec::new(), Vec::new(), &what)
            .await?;
        if !answer.status.is_success() && answer.status.as_u16() != 404 {
            return Err(aws::problem(WRITE, &what, &self.place(), &answer));
        }
        // The checksum is removed last, because readers compare the object with it as long as the object exists.
        consistent::forget(self, &key).await;
        Ok(())
    }

    fn lock_records<'s>(&'s self, workspace: &'s str) -> Result<Records<'s>> {
        Ok(self.records(&self.key(workspace)))
    }
}
