//! Requests of the store.

use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use monoform_sdk::state_store::{LockError, LockInfo, WorkspaceSupport};
use monoform_sdk::{Diagnostic, Diagnostics, Result, async_trait};
use store_client::guard::{Holder, LockedStore, Revision, Snapshot, Written};
use store_client::sum::md5_base64;
use store_client::{Answer, HeaderMap, HeaderValue, Method, Url};

use crate::config::Settings;

/// Client for a state at a URL.
pub(crate) struct Client {
    settings: Settings,
    /// Lock that this client holds.
    held: Mutex<Option<LockInfo>>,
}

const READ: &str = "Error reading the state";
const WRITE: &str = "Error writing the state";
const LOCK: &str = "Error acquiring the state lock";
const UNLOCK: &str = "Cannot release the state lock";

/// Builds the diagnostic for an unexpected answer, with advice for its status.
fn unexpected(summary: &str, what: &str, url: &Url, answer: &Answer) -> Diagnostics {
    let status = answer.status;
    let code = status.as_u16();
    let host = url.host_str().unwrap_or_default();
    let advice = match code {
        401 => {
            "It requires authentication: set \"username\" and \"password\" of the backend, or TF_HTTP_USERNAME and \
                TF_HTTP_PASSWORD."
        }
        403 => "It refuses this user: check \"username\" and \"password\" of the backend, and what the user may do.",
        405 | 501 => "It does not know this method: check the methods and addresses of the backend.",
        409 | 423 => "The state is locked by another program, or the lock that was held is gone.",
        500..=599 => "This is a problem of the server: its log may say more.",
        _ => "Check the addresses of the backend.",
    };
    let said = answer.text();
    let said = match said.trim() {
        "" => String::new(),
        text => format!(" It says: {}", text.chars().take(300).collect::<String>()),
    };
    let detail = format!("HTTP error: {code}. {what} was answered by {host} with the status {status}. {advice}{said}");
    Diagnostic::error(summary, detail).into()
}

impl Client {
    pub fn new(settings: Settings) -> Client {
        Client {
            settings,
            held: Mutex::new(None),
        }
    }

    fn held(&self) -> Option<LockInfo> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn hold(&self, lock: Option<LockInfo>) {
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = lock;
    }

    async fn send(
        &self,
        (summary, what): (&str, &str),
        method: &Method,
        url: &Url,
        body: Option<Vec<u8>>,
    ) -> Result<Answer> {
        let mut headers = HeaderMap::new();
        if let Some((name, password)) = &self.settings.login {
            let value = format!("Basic {}", BASE64.encode(format!("{name}:{password}")));
            if let Ok(mut value) = HeaderValue::from_str(&value) {
                value.set_sensitive(true);
                headers.insert("authorization", value);
            }
        }
        if let Some(body) = &body {
            headers.insert("content-type", HeaderValue::from_static("application/json"));
            // Like Terraform, sends the MD5 of the body, so that a server can verify it.
            if let Ok(sum) = HeaderValue::from_str(&md5_base64(body)) {
                headers.insert("content-md5", sum);
            }
        }
        let sent = self.settings.http.send(method.clone(), url, headers, body).await;
        sent.map_err(|failure| failure.diagnostic(summary, what).into())
    }
}

#[async_trait]
impl LockedStore for Client {
    fn support(&self) -> WorkspaceSupport {
        WorkspaceSupport::Single
    }

    async fn workspaces(&self) -> Result<Vec<String>> {
        Err(Diagnostic::error("Workspaces not supported", "The backend \"http\" has one state only.").into())
    }

    async fn read(&self, _workspace: &str) -> Result<Snapshot> {
        let (what, url) = ("Reading the state", &self.settings.address);
        let answer = self.send((READ, what), &Method::GET, url, None).await?;
        match answer.status.as_u16() {
            200 => {}
            204 | 404 => return Ok(None.into()),
            _ => return Err(unexpected(READ, what, url, &answer)),
        }
        if answer.body.is_empty() {
            return Ok(None.into());
        }
        // As in Terraform, a malformed checksum is an error, but a checksum is not compared with the state.
        if let Some(sum) = answer.header("content-md5").filter(|sum| BASE64.decode(sum).is_err()) {
            let detail = format!("The header Content-MD5 of the server's answer is no Base64: {sum:?}.");
            return Err(Diagnostic::error(READ, detail).into());
        }
        Ok(Some(answer.body).into())
    }

    /// Writes the state, with the lock ID in the query for the server to check. The protocol has no other condition.
    async fn write(&self, _workspace: &str, state: &[u8], _expected: Option<&Revision>) -> Result<Written> {
        let mut url = self.settings.address.clone();
        let held = self.held();
        if let Some(lock) = &held {
            let others: Vec<(String, String)> = url
                .query_pairs()
                .into_owned()
                // The lock ID replaces a parameter `ID` that the address may have.
                .filter(|(name, _)| name != "ID")
                .collect();
            url.query_pairs_mut()
                .clear()
                .extend_pairs(others)
                .append_pair("ID", &lock.id);
        }
        let what = "Writing the state";
        let answer = self
            .send((WRITE, what), &self.settings.update_method, &url, Some(state.to_vec()))
            .await?;
        match answer.status.as_u16() {
            200 | 201 | 204 => Ok(Written::Done(None)),
            status @ (409 | 423) if held.is_some() => Ok(Written::LockLost(format!(
                "the server refused the write with the status {status}, since it does not know the lock with the ID of this program \
                 any more."
            ))),
            _ => Err(unexpected(WRITE, what, &url, &answer)),
        }
    }

    async fn delete(&self, _workspace: &str) -> Result<()> {
        let (what, url) = ("Deleting the state", &self.settings.address);
        let answer = self.send((WRITE, what), &Method::DELETE, url, None).await?;
        match answer.status.as_u16() {
            200 => Ok(()),
            _ => Err(unexpected(WRITE, what, url, &answer)),
        }
    }

    async fn lock(&self, _workspace: &str, info: LockInfo) -> std::result::Result<String, LockError> {
        let Some((method, url)) = &self.settings.lock else {
            return Ok(String::new());
        };
        // If this attempt fails, later writes must not send the ID of an earlier lock.
        self.hold(None);
        let what = "Taking the lock";
        let body = info.to_json().into_bytes();
        let answer = self.send((LOCK, what), method, url, Some(body)).await?;
        match answer.status.as_u16() {
            200 => {
                let id = info.id.clone();
                self.hold(Some(info));
                Ok(id)
            }
            409 | 423 => match LockInfo::from_json(&answer.body) {
                Some(holder) => {
                    let message = format!("HTTP remote state already locked: ID={}", holder.id);
                    Err(LockError::held(Some(holder), message))
                }
                None => Err(LockError::held(
                    None,
                    "HTTP remote state already locked, and the server does not say by whom: its answer is no lock information.",
                )),
            },
            _ => Err(unexpected(LOCK, what, url, &answer).into()),
        }
    }

    async fn unlock(&self, _workspace: &str, id: &str) -> Result<()> {
        let Some((method, url)) = &self.settings.unlock else {
            return Ok(());
        };
        // If the lock belongs to another program, only its ID is known.
        let lock = self.held().filter(|held| held.id == id).unwrap_or_else(|| LockInfo {
            id: id.to_owned(),
            ..LockInfo::default()
        });
        let what = "Releasing the lock";
        let answer = self
            .send((UNLOCK, what), method, url, Some(lock.to_json().into_bytes()))
            .await?;
        if answer.status.as_u16() != 200 {
            return Err(unexpected(UNLOCK, what, url, &answer));
        }
        self.hold(None);
        Ok(())
    }

    /// Returns an unknown holder, because the protocol cannot ask for it.
    async fn holder(&self, _workspace: &str, _own: &str) -> Result<Holder> {
        Ok(Holder::Unknown)
    }
}
