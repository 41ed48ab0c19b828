//! Requests for the blobs of the container, and for their leases.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use monoform_sdk::state_store::{DEFAULT, LockError, LockInfo, WorkspaceSupport};
use monoform_sdk::{Diagnostic, Diagnostics, Result, async_trait};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use store_client::about::{About, DELETE, LIST, LOCK, READ, UNLOCK, WRITE};
use store_client::guard::{LockedStore, Revision, Snapshot, Written};
use store_client::listing::{self, Page};
use store_client::lock::{Created, Found, LockRecord, Records, Removed};
use store_client::xml::{self, Xml};
use store_client::{Answer, Bytes, HeaderMap, HeaderName, HeaderValue, Method, Url};

use crate::access::Access;
use crate::login::For;
use crate::manager::Manager;
use crate::settings::{How, Settings};

/// Name of the metadata entry of a blob that has the lock info of the lease's holder, as in Terraform.
const LOCK_INFO: &str = "terraformlockid";
const METADATA: &str = "x-ms-meta-";

/// Characters to encode in the name of a blob.
const NAME: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b'/')
    .remove(b':');
/// Characters to encode in a part of a query.
const QUERY: &AsciiSet = &NAME.add(b'/').add(b':');

/// Client for a container with states.
pub(crate) struct Client {
    settings: Settings,
    access: Access,
    /// URL of the account's blob service.
    blobs: Url,
    /// IDs of the leases that this client holds, by the names of blobs.
    leases: Mutex<BTreeMap<String, String>>,
}

type Headers<'a> = &'a [(&'a str, &'a str)];

/// Lease status and metadata of a blob.
struct Properties {
    is_leased: bool,
    metadata: BTreeMap<String, String>,
}

impl Properties {
    fn from_answer(answer: &Answer) -> Properties {
        let metadata = answer.headers.iter().filter_map(|(name, value)| {
            let name = name.as_str().strip_prefix(METADATA)?;
            Some((name.to_owned(), value.to_str().ok()?.to_owned()))
        });
        Properties {
            is_leased: answer.header("x-ms-lease-status") == Some("locked"),
            metadata: metadata.collect(),
        }
    }

    /// Returns the holder of the lease.
    fn holder(&self) -> Option<LockInfo> {
        let text = BASE64.decode(self.metadata.get(LOCK_INFO)?).ok()?;
        LockInfo::from_json(&text)
    }

    fn headers(&self) -> Vec<(String, &str)> {
        self.metadata
            .iter()
            .map(|(name, value)| (format!("{METADATA}{name}"), value.as_str()))
            .collect()
    }
}

/// Returns the code of an error.
fn code(answer: &Answer) -> String {
    // Responses to HEAD have no body.
    let of_header = answer.header("x-ms-error-code").map(str::to_owned);
    of_header
        .or_else(|| xml::tag(&answer.text(), "Code"))
        .unwrap_or_default()
}

impl Client {
    /// Creates a client. If the settings require it, the URL and the key of the account are requested first.
    pub async fn connect(settings: Settings) -> Result<Client> {
        let mut blobs = format!("https://{}.blob.{}", settings.account, settings.cloud.suffix);
        if settings.lookup || matches!(settings.how, How::LookedUp) {
            blobs = Manager::new(&settings).await?.blobs().await?;
        }
        let access = match &settings.how {
            How::Key(key) => Access::key(&settings.account, key)?,
            How::Signature(query) => Access::Signature(query.clone()),
            How::Token => Access::Token,
            How::LookedUp => Access::key(&settings.account, &Manager::new(&settings).await?.key().await?)?,
        };
        let blobs = Url::parse(&blobs).map_err(|e| {
            Diagnostic::error(
                "Invalid azurerm backend configuration",
                format!("The address of the blobs, {blobs:?}, cannot be understood: {e}."),
            )
        })?;
        Ok(Client {
            settings,
            access,
            blobs,
            leases: Mutex::default(),
        })
    }

    fn blob(&self, workspace: &str) -> String {
        match workspace {
            DEFAULT => self.settings.key.clone(),
            name => format!("{}env:{name}", self.settings.key),
        }
    }

    fn name(&self, blob: &str) -> String {
        let Settings { container, account, .. } = &self.settings;
        format!("the blob {blob:?} in the container {container:?} of the storage account {account:?}")
    }

    fn what(&self, doing: &str, blob: &str) -> String {
        format!("{doing} {}", self.name(blob))
    }

    fn lease(&self, blob: &str) -> Option<String> {
        let leases = self.leases.lock().unwrap_or_else(PoisonError::into_inner);
        leases.get(blob).cloned()
    }

    fn hold(&self, blob: &str, lease: Option<&str>) {
        let mut leases = self.leases.lock().unwrap_or_else(PoisonError::into_inner);
        match lease {
            Some(lease) => leases.insert(blob.to_owned(), lease.to_owned()),
            None => leases.remove(blob),
        };
    }

    /// Sends a request for a blob, or for the container if `blob` is empty.
    async fn send(
        &self,
        about: About<'_>,
        method: Method,
        (blob, query): (&str, &str),
        headers: Headers<'_>,
        body: Option<Vec<u8>>,
    ) -> Result<Answer> {
        let Settings {
            http,
            login,
            cloud,
            container,
            ..
        } = &self.settings;
        let mut url = self.blobs.clone();
        let base = url.path().trim_end_matches('/').to_owned();
        let path = match blob {
            "" => format!("{base}/{container}"),
            blob => format!("{base}/{container}/{}", utf8_percent_encode(blob, NAME)),
        };
        url.set_path(&path);
        url.set_query((!query.is_empty()).then_some(query));
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            let value = HeaderValue::from_str(value);
            let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), value) else {
                let detail = format!(
                    "{} failed: the value of {name} has characters that are not allowed.",
                    about.what
                );
                return Err(Diagnostic::error(about.summary, detail).into());
            };
            all.insert(name, value);
        }
        if matches!(self.access, Access::Token) {
            let token = login.token(http, For::Storage(&cloud.storage)).await?;
            if let Some(value) = token.bearer() {
                all.insert("authorization", value);
            }
        }
        let length = body.as_ref().map_or(0, Vec::len);
        // The service requires the header Content-Length even if there is no body.
        let body = body.or_else(|| (method == Method::PUT).then(Vec::new)).map(Bytes::from);
        let mut make = || {
            let (mut url, mut headers) = (url.clone(), all.clone());
            self.access.sign(&method, &mut url, &mut headers, length)?;
            Ok((method.clone(), url, headers, body.clone()))
        };
        let sent = http.send_signed(&mut make).await;
        sent.map_err(|failure| failure.diagnostic(about.summary, about.what).into())
    }

    /// Reads the properties of a blob; `None` if it does not exist. The request contains the ID of a lease that this client holds, so it
    /// fails if the lease is lost.
    async fn properties(&self, about: About<'_>, blob: &str) -> Result<Option<Properties>> {
        self.properties_under(about, blob, self.lease(blob)).await
    }

    async fn properties_under(
        &self,
        about: About<'_>,
        blob: &str,
        lease: Option<String>,
    ) -> Result<Option<Properties>> {
        let headers: Vec<(&str, &str)> = lease.iter().map(|id| ("x-ms-lease-id", id.as_str())).collect();
        let answer = self.send(about, Method::HEAD, (blob, ""), &headers, None).await?;
        match answer.status.as_u16() {
            200 => Ok(Some(Properties::from_answer(&answer))),
            // Only a missing blob means that there is no state. A missing container is an error, because the configured name is probably
            // wrong.
            404 if code(&answer) != "ContainerNotFound" => Ok(None),
            _ => Err(self.problem(about, &answer)),
        }
    }

    /// Writes a blob with its metadata.
    async fn put(
        &self,
        about: About<'_>,
        blob: &str,
        content: Vec<u8>,
        properties: Option<&Properties>,
    ) -> Result<Written> {
        let lease = self.lease(blob);
        // Writing a blob replaces its metadata, which contain the holder of the lock, so they are sent again.
        let metadata = properties.map(Properties::headers).unwrap_or_default();
        let mut headers = vec![
            ("x-ms-blob-type", "BlockBlob"),
            ("x-ms-blob-content-type", "application/json"),
            ("content-type", "application/json"),
        ];
        headers.extend(lease.iter().map(|id| ("x-ms-lease-id", id.as_str())));
        headers.extend(metadata.iter().map(|(name, value)| (name.as_str(), *value)));
        let answer = self
            .send(about, Method::PUT, (blob, ""), &headers, Some(content))
            .await?;
        match answer.status.as_u16() {
            201 => Ok(Written::Done(None)),
            409 | 412 if lease.is_some() && code(&answer).starts_with("Lease") => Ok(Written::LockLost(format!(
                "Azure Storage refused the write ({}), since the lease of this program on the blob {blob:?} was broken or released.",
                code(&answer)
            ))),
            _ => Err(self.problem(about, &answer)),
        }
    }

    /// Sets or removes the holder in the metadata of a leased blob. From then on, requests of this client for the blob contain the lease.
    async fn put_holder(&self, about: About<'_>, blob: &str, lease: &str, info: Option<&LockInfo>) -> Result<()> {
        self.hold(blob, Some(lease));
        // Setting metadata replaces all of them, so those of other programs are read first and sent again.
        let mut properties = self.properties(about, blob).await?.unwrap_or(Properties {
            is_leased: true,
            metadata: BTreeMap::new(),
        });
        match info {
            Some(info) => properties
                .metadata
                .insert(LOCK_INFO.to_owned(), BASE64.encode(info.to_json())),
            None => properties.metadata.remove(LOCK_INFO),
        };
        let metadata = properties.headers();
        let mut headers = vec![("x-ms-lease-id", lease)];
        headers.extend(metadata.iter().map(|(name, value)| (name.as_str(), *value)));
        let answer = self
            .send(about, Method::PUT, (blob, "comp=metadata"), &headers, None)
            .await?;
        match answer.status.as_u16() {
            200 => Ok(()),
            _ => Err(self.problem(about, &answer)),
        }
    }

    async fn release_lease(&self, about: About<'_>, blob: &str, lease: &str) -> Result<()> {
        let headers = [("x-ms-lease-action", "release"), ("x-ms-lease-id", lease)];
        let answer = self
            .send(about, Method::PUT, (blob, "comp=lease"), &headers, None)
            .await?;
        match answer.status.as_u16() {
            200 => Ok(()),
            _ => Err(self.problem(about, &answer)),
        }
    }

    /// Requests one page of the list of blobs with a prefix.
    async fn page(&self, about: About<'_>, prefix: &str, place: Option<String>) -> Result<Page> {
        let mut query = format!(
            "restype=container&comp=list&prefix={}",
            utf8_percent_encode(prefix, QUERY)
        );
        if let Some(place) = place {
            query.push_str(&format!("&marker={}", utf8_percent_encode(&place, QUERY)));
        }
        let answer = self.send(about, Method::GET, ("", &query), &[], None).await?;
        if answer.status.as_u16() != 200 {
            return Err(self.problem(about, &answer));
        }
        let listed = Xml::from_answer(&answer).map_err(|failure| failure.diagnostic(about.summary, about.what))?;
        Ok(Page {
            names: listed.texts("Name").map(str::to_owned).collect(),
            next: listed.text("NextMarker").map(str::to_owned),
        })
    }

    /// Builds the diagnostic for an error, with advice for its code.
    fn problem(&self, about: About<'_>, answer: &Answer) -> Diagnostics {
        let Settings {
            container,
            account,
            login,
            ..
        } = &self.settings;
        let code = code(answer);
        let who = match &self.access {
            Access::Key(..) => "the key of the account (access_key or ARM_ACCESS_KEY)".to_owned(),
            Access::Signature(_) => "the shared access signature (sas_token or ARM_SAS_TOKEN)".to_owned(),
            Access::Token => login.origin(),
        };
        let text = answer.text();
        let reason = xml::tag(&text, "AuthenticationErrorDetail").unwrap_or_default();
        let advice = match (code.as_str(), answer.status.as_u16()) {
            ("ContainerNotFound", _) => format!(
                " Create the container: az storage container create --name {container} --account-name {account}\nOr, if it is \
                 there, correct container_name or storage_account_name."
            ),
            ("AuthenticationFailed", _) if reason.contains("date") || reason.contains("time") => format!(
                " What requests are signed with is {who}. If it is right, the clock of this machine is wrong ({reason})."
            ),
            ("AuthenticationFailed" | "InvalidAuthenticationInfo", _) => {
                format!(" What requests are signed with is not accepted: {who}. It may be wrong, or have expired.")
            }
            ("KeyBasedAuthenticationNotPermitted", _) => {
                " The account does not accept keys: set use_azuread_auth = true.".to_owned()
            }
            ("AuthorizationPermissionMismatch" | "AuthorizationFailure" | "InsufficientAccountPermissions", _)
            | (_, 403) => format!(
                " What requests are signed with does not permit this: {who}. With Entra ID the role Storage Blob Data Contributor \
                 is needed; a shared access signature needs the permissions to read, add, create, write, delete and list; the \
                 firewall of the account must let this machine in."
            ),
            ("LeaseIdMissing" | "LeaseIdMismatchWithBlobOperation" | "LeaseLost", _) => {
                " The state is locked by another program, or the lock that was held is gone.".to_owned()
            }
            ("MetadataTooLarge" | "RequestHeaderFieldsTooLarge", _) => {
                " The metadata of the blob has more than 8 KiB: remove some of it.".to_owned()
            }
            _ => String::new(),
        };
        let message = xml::tag(&text, "Message").unwrap_or_default();
        // The second line contains only the ID of the request, for Azure's support.
        let message = message.lines().next().unwrap_or_default().trim_end_matches('.');
        let detail = answer.describe(about.what, &code, message, advice.trim_start());
        Diagnostic::error(about.summary, detail).into()
    }
}

#[async_trait]
impl LockedStore for Client {
    fn support(&self) -> WorkspaceSupport {
        WorkspaceSupport::NamedByState
    }

    async fn workspaces(&self) -> Result<Vec<String>> {
        let prefix = format!("{}env:", self.settings.key);
        let what = self.what("Listing what begins like", &prefix);
        let about = About {
            summary: LIST,
            what: &what,
        };
        let names = listing::names(about, |place| self.page(about, &prefix, place)).await?;
        Ok(listing::workspaces(names.iter().map(String::as_str), &prefix, ""))
    }

    async fn read(&self, workspace: &str) -> Result<Snapshot> {
        let blob = self.blob(workspace);
        let what = self.what("Reading", &blob);
        let about = About {
            summary: READ,
            what: &what,
        };
        let lease = self.lease(&blob);
        let headers: Vec<(&str, &str)> = lease.iter().map(|id| ("x-ms-lease-id", id.as_str())).collect();
        let answer = self.send(about, Method::GET, (&blob, ""), &headers, None).await?;
        match answer.status.as_u16() {
            // Locking creates an empty blob if there is no state yet.
            200 => Ok(Some(answer.body).filter(|body| !body.is_empty()).into()),
            404 if code(&answer) != "ContainerNotFound" => Ok(None.into()),
            _ => Err(self.problem(about, &answer)),
        }
    }

    /// Writes the state under the held lease: the service refuses every other write of a leased blob.
    async fn write(&self, workspace: &str, state: &[u8], _expected: Option<&Revision>) -> Result<Written> {
        let blob = self.blob(workspace);
        let what = self.what("Writing", &blob);
        let about = About {
            summary: WRITE,
            what: &what,
        };
        let properties = self.properties(about, &blob).await?;
        if self.settings.snapshot && properties.is_some() {
            let what = self.what("Making a snapshot of", &blob);
            let snapshot = About { what: &what, ..about };
            let lease = self.lease(&blob);
            let headers: Vec<(&str, &str)> = lease.iter().map(|id| ("x-ms-lease-id", id.as_str())).collect();
            let answer = self
                .send(snapshot, Method::PUT, (&blob, "comp=snapshot"), &headers, None)
                .await?;
            if answer.status.as_u16() != 201 {
                return Err(self.problem(snapshot, &answer));
            }
        }
        self.put(about, &blob, state.to_vec(), properties.as_ref()).await
    }

    async fn delete(&self, workspace: &str) -> Result<()> {
        let blob = self.blob(workspace);
        let what = self.what("Deleting", &blob);
        let about = About {
            summary: DELETE,
            what: &what,
        };
        // The service refuses to delete a blob that has snapshots, unless they are deleted with it.
        let headers = [("x-ms-delete-snapshots", "include")];
        let answer = self.send(about, Method::DELETE, (&blob, ""), &headers, None).await?;
        match answer.status.as_u16() {
            202 => Ok(()),
            404 if code(&answer) != "ContainerNotFound" => Ok(()),
            _ => Err(self.problem(about, &answer)),
        }
    }

    fn lock_records<'s>(&'s self, workspace: &'s str) -> Result<Records<'s>> {
        Ok(vec![Box::new(LockLease {
            client: self,
            blob: self.blob(workspace),
        })])
    }

    async fn forget_lock(&self, workspace: &str, _id: &str) {
        self.hold(&self.blob(workspace), None);
    }
}

/// Lease that locks a state. The holder is recorded in the metadata of the blob.
struct LockLease<'c> {
    client: &'c Client,
    blob: String,
}

#[async_trait]
impl LockRecord for LockLease<'_> {
    fn name(&self) -> String {
        format!("the lease of {}", self.client.name(&self.blob))
    }

    fn path(&self) -> String {
        format!("{}/{}", self.client.settings.container, self.blob)
    }

    async fn create(&self, info: &LockInfo) -> std::result::Result<Created, LockError> {
        let (client, blob) = (self.client, &self.blob);
        let what = client.what("Locking", blob);
        let about = About {
            summary: LOCK,
            what: &what,
        };
        match client.properties(about, blob).await? {
            Some(properties) if properties.is_leased => return Ok(Created::Exists),
            Some(_) => {}
            // Only existing blobs can be leased.
            None => client.make_empty(about, blob).await?,
        }
        let headers = [
            ("x-ms-lease-action", "acquire"),
            // An infinite lease: one that expires would have to be renewed during long operations.
            ("x-ms-lease-duration", "-1"),
            ("x-ms-proposed-lease-id", info.id.as_str()),
        ];
        let answer = client
            .send(about, Method::PUT, (blob, "comp=lease"), &headers, None)
            .await?;
        match answer.status.as_u16() {
            201 => {}
            409 => return Ok(Created::Exists),
            _ => return Err(client.problem(about, &answer).into()),
        }
        let id = answer.header("x-ms-lease-id").unwrap_or(&info.id).to_owned();
        let info = LockInfo {
            id: id.clone(),
            ..info.clone()
        };
        if let Err(mut problems) = client.put_holder(about, blob, &id, Some(&info)).await {
            // A lease without a recorded holder would block other programs, and their errors could not name the holder. So it is released.
            let released = client.release_lease(about, blob, &id).await;
            client.hold(blob, None);
            if let Err(more) = released {
                problems.append(more);
            }
            return Err(LockError::Failed(problems));
        }
        Ok(Created::Done(id))
    }

    async fn find(&self, summary: &str) -> Result<Option<Found>> {
        let (client, blob) = (self.client, &self.blob);
        let what = client.what("Looking up the lease of", blob);
        // The request must not contain a lost lease, because the service would refuse it.
        let properties = client
            .properties_under(About { summary, what: &what }, blob, None)
            .await?;
        let leased = properties.filter(|properties| properties.is_leased);
        Ok(leased.map(|properties| match properties.holder() {
            Some(info) => Found::new(info),
            None => Found {
                anonymous: Some(format!(
                    "blob metadata \"{LOCK_INFO}\" was empty: the lease is not of a program like this one, or the one that took it is \
                     about to say so, or was killed before. To end the lease: az storage blob lease break --blob-name {blob:?} \
                     --container-name {} --account-name {}",
                    client.settings.container, client.settings.account
                )),
                ..Found::default()
            },
        }))
    }

    async fn remove(&self, found: &Found) -> Result<Removed> {
        let (client, blob, id) = (self.client, &self.blob, found.info.id.as_str());
        let what = client.what("Unlocking", blob);
        let about = About {
            summary: UNLOCK,
            what: &what,
        };
        // The holder is removed first, because metadata of a leased blob can be written only with the lease.
        client.put_holder(about, blob, id, None).await?;
        client.release_lease(about, blob, id).await?;
        client.hold(blob, None);
        Ok(Removed::Done)
    }
}

impl Client {
    /// Creates an empty blob if none exists. If several programs do this at the same time, all succeed.
    async fn make_empty(&self, about: About<'_>, blob: &str) -> Result<()> {
        let headers = [
            ("x-ms-blob-type", "BlockBlob"),
            ("x-ms-blob-content-type", "application/json"),
            ("content-type", "application/json"),
            // A blob that another program has created meanwhile must not be overwritten.
            ("if-none-match", "*"),
        ];
        let answer = self
            .send(about, Method::PUT, (blob, ""), &headers, Some(Vec::new()))
            .await?;
        match answer.status.as_u16() {
            201 | 409 | 412 => Ok(()),
            _ => Err(self.problem(about, &answer)),
        }
    }
}
