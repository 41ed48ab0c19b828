//! Requests to one repository of an OCI registry.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use net::{Client, Response, Token, Url, shown};
use serde::Deserialize;
use tokio::io::AsyncWriteExt as _;

use crate::address::{Digest, Reference, Repository};
use crate::challenge::{Challenge, challenge};
use crate::credentials::Credentials;
use crate::error::OciError;
use crate::login::{self, Login};
use crate::manifest::{IMAGE, INDEX, Manifest};

/// The size limit of a manifest, as the specification recommends.
const MANIFEST_LIMIT: u64 = 4 << 20;
/// The limit of pages of tags. Registries send some hundred tags on each page.
const PAGES: usize = 1_000;
/// The time limit of a request other than for a blob.
const PATIENCE: Duration = Duration::from_secs(30);

/// The value of the header `Authorization` for a repository, which `Debug` does not show.
#[derive(Clone, Debug)]
pub struct Authorization(Token);

impl Authorization {
    fn bearer(token: &Token) -> Authorization {
        Authorization(Token::new(format!("Bearer {}", token.expose())))
    }

    fn basic(username: &str, password: &Token) -> Authorization {
        let pair = STANDARD.encode(format!("{username}:{}", password.expose()));
        Authorization(Token::new(format!("Basic {pair}")))
    }

    /// Returns the value, to be sent to the registry and nowhere else.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose()
    }
}

/// One repository. A login is made when the registry requests it, and kept for later requests.
#[derive(Debug)]
pub struct Registry<'c> {
    client: &'c Client,
    repository: Repository,
    authorization: Mutex<Option<Authorization>>,
}

#[derive(Deserialize)]
struct Tags {
    // The member is null in a repository without tags.
    #[serde(default, deserialize_with = "net::absent::list")]
    tags: Vec<String>,
}

#[derive(Deserialize)]
struct TokenAnswer {
    token: Option<String>,
    access_token: Option<String>,
}

impl<'c> Registry<'c> {
    #[must_use]
    pub fn new(client: &'c Client, repository: Repository) -> Registry<'c> {
        Registry {
            client,
            repository,
            authorization: Mutex::new(None),
        }
    }

    #[must_use]
    pub fn repository(&self) -> &Repository {
        &self.repository
    }

    /// Returns the authorization of the last request, for requests outside of this type; `None` if the registry required
    /// none.
    #[must_use]
    pub fn authorization(&self) -> Option<Authorization> {
        let authorization = self.authorization.lock();
        authorization.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the URL of a blob.
    ///
    /// # Errors
    ///
    /// Returns an error if the URL is not valid.
    pub fn blob_url(&self, digest: &Digest) -> Result<Url, OciError> {
        self.repository.url(&format!("blobs/{digest}"))
    }

    /// Returns all tags of the repository.
    ///
    /// # Errors
    ///
    /// Returns an error if the repository does not exist, or if the request failed.
    pub async fn tags(&self) -> Result<Vec<String>, OciError> {
        let mut url = self.repository.url("tags/list")?;
        let mut all = Vec::new();
        for _ in 0..PAGES {
            let mut response = self.send(&url, None).await?;
            let absent = || "does not exist".to_owned();
            let body = self.body(&mut response, absent).await?;
            let page: Tags =
                serde_json::from_slice(&body).map_err(|error| unusable(&url, files::json_reason(error)))?;
            all.extend(page.tags);
            let next = response.headers("link").find_map(next_page).map(str::to_owned);
            let Some(next) = next else {
                return Ok(all);
            };
            // The next request carries the credentials, which may be sent to this registry only.
            let next = url.join(&next).ok().filter(|next| next.origin() == url.origin());
            url = next.ok_or_else(|| {
                unusable(
                    &url,
                    "the address of the next page is not one of the registry".to_owned(),
                )
            })?;
        }
        Err(unusable(&url, format!("there are more than {PAGES} pages of tags")))
    }

    /// Returns a manifest and its media type.
    pub(crate) async fn manifest(&self, reference: &Reference) -> Result<(Manifest, String), OciError> {
        let url = self.repository.url(&format!("manifests/{reference}"))?;
        let mut response = self.send(&url, Some(&format!("{INDEX}, {IMAGE}"))).await?;
        let absent = || match reference {
            Reference::Tag(tag) => format!("has no tag \"{tag}\""),
            Reference::Digest(digest) => format!("has no manifest {digest}"),
        };
        let body = self.body(&mut response, absent).await?;
        let announced = response.header("docker-content-digest").and_then(Digest::parse);
        let expected = match reference {
            Reference::Digest(digest) => Some(digest.clone()),
            Reference::Tag(_) => announced,
        };
        // For a tag, the expected digest comes from the server itself, so the comparison detects damage, but not forgery.
        if let Some(digest) = expected.filter(|digest| !digest.is_of(&body)) {
            return Err(self.damaged(&digest));
        }
        let manifest: Manifest =
            serde_json::from_slice(&body).map_err(|error| unusable(&url, files::json_reason(error)))?;
        let kind = response.header("content-type").unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim().to_owned();
        // By the specification both types are equal. If they differ, the one in the manifest is used, because it
        // was hashed.
        let kind = manifest.media_type.clone().unwrap_or(kind);
        Ok((manifest, kind))
    }

    /// Downloads a blob to a new file, and verifies its size and digest.
    pub(crate) async fn download(&self, digest: &Digest, size: u64, to: &Path, limit: u64) -> Result<(), OciError> {
        let artifact = self.artifact(digest);
        if size > limit {
            return Err(OciError::TooLarge { artifact, size, limit });
        }
        let url = self.blob_url(digest)?;
        let mut response = self.send_without_limit(&url).await?;
        if response.status().as_u16() == 404 {
            return Err(self.not_found(format!("has no blob {digest}")));
        }
        self.refused(&response, None)?;
        let mut file = tokio::fs::File::create_new(to).await.map_err(OciError::write(to))?;
        let (mut hasher, mut received) = (digest.hasher(), 0_u64);
        while let Some(part) = response.chunk().await? {
            let part = part.as_ref();
            received += part.len() as u64;
            // The size is checked before the end, because a wrong blob could be endless.
            if received > size {
                return Err(self.damaged(digest));
            }
            hasher.update(part);
            file.write_all(part).await.map_err(OciError::write(to))?;
        }
        // Without a flush, the error of the last write would be lost.
        file.flush().await.map_err(OciError::write(to))?;
        if received != size || !hasher.matches(digest) {
            return Err(self.damaged(digest));
        }
        Ok(())
    }

    /// Returns the name of an artifact in the repository, for messages.
    pub(crate) fn artifact(&self, digest: &Digest) -> String {
        format!("{}@{digest}", self.repository)
    }

    fn damaged(&self, digest: &Digest) -> OciError {
        OciError::Digest {
            artifact: self.artifact(digest),
        }
    }

    pub(crate) fn not_found(&self, what: String) -> OciError {
        OciError::NotFound {
            repository: self.repository.to_string(),
            what,
        }
    }

    async fn body(&self, response: &mut Response, absent: impl Fn() -> String) -> Result<Vec<u8>, OciError> {
        if response.status().as_u16() == 404 {
            return Err(self.not_found(absent()));
        }
        self.refused(response, None)?;
        Ok(response.bytes(MANIFEST_LIMIT).await?)
    }

    /// Returns an error if the response is not a success.
    fn refused(&self, response: &Response, login: Option<&Login>) -> Result<(), OciError> {
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        // Other statuses have nothing to do with credentials.
        if !matches!(status.as_u16(), 401 | 403) {
            return Err(response.failure().into());
        }
        let host = self.repository.host();
        let credentials = match login {
            Some(login) => format!("the credentials are those of {}", login.from),
            None => format!(
                "a login may be missing: set oci_credentials \"{host}\" in the CLI configuration, or log in with a container tool"
            ),
        };
        Err(OciError::Refused {
            repository: self.repository.to_string(),
            status: status.as_u16(),
            credentials,
        })
    }

    async fn once(&self, url: &Url, accept: Option<&str>, limit: Option<Duration>) -> Result<Response, OciError> {
        let mut request = self.client.get(url.clone());
        if let Some(accept) = accept {
            request = request.header("accept", accept);
        }
        if let Some(authorization) = self.authorization() {
            request = request.secret("authorization", authorization.expose());
        }
        if let Some(limit) = limit {
            request = request.timeout(limit);
        }
        Ok(request.send().await?)
    }

    async fn send(&self, url: &Url, accept: Option<&str>) -> Result<Response, OciError> {
        self.authorized(url, accept, Some(PATIENCE)).await
    }

    async fn send_without_limit(&self, url: &Url) -> Result<Response, OciError> {
        self.authorized(url, None, None).await
    }

    /// Sends a request. If the registry requests a login, makes it and sends the request again.
    async fn authorized(&self, url: &Url, accept: Option<&str>, limit: Option<Duration>) -> Result<Response, OciError> {
        let response = self.once(url, accept, limit).await?;
        if response.status().as_u16() != 401 {
            return Ok(response);
        }
        let Some(challenge) = challenge(response.headers("www-authenticate")) else {
            return Ok(response);
        };
        let login = login::find(self.client, &self.repository).await?;
        let authorization = self.answer(&challenge, login.as_ref()).await?;
        let Some(authorization) = authorization else {
            return Ok(response);
        };
        *self.authorization.lock().unwrap_or_else(PoisonError::into_inner) = Some(authorization);
        let mut response = self.once(url, accept, limit).await?;
        // The access token in the configuration may have expired.
        if response.status().as_u16() == 401
            && let Some(Login {
                credentials: Credentials::Access {
                    refresh: Some(refresh), ..
                },
                from,
            }) = &login
        {
            let refreshing = Login {
                credentials: Credentials::Refresh(refresh.clone()),
                from: from.clone(),
            };
            let authorization = self.answer(&challenge, Some(&refreshing)).await?;
            *self.authorization.lock().unwrap_or_else(PoisonError::into_inner) = authorization;
            response = self.once(url, accept, limit).await?;
        }
        if matches!(response.status().as_u16(), 401 | 403) {
            self.refused(&response, login.as_ref())?;
        }
        Ok(response)
    }

    /// Returns the authorization for a challenge; `None` if there are no credentials and the challenge requires some.
    async fn answer(&self, asked: &Challenge, login: Option<&Login>) -> Result<Option<Authorization>, OciError> {
        let credentials = login.map(|login| &login.credentials);
        if let Some(Credentials::Access { access, .. }) = credentials {
            return Ok(Some(Authorization::bearer(access)));
        }
        let Challenge::Bearer { realm, service, scope } = asked else {
            return match credentials {
                Some(Credentials::Password { username, password }) => {
                    Ok(Some(Authorization::basic(username, password)))
                }
                Some(_) => Err(self.no_login("it wants a name and a password, and there is only a token".to_owned())),
                None => Ok(None),
            };
        };
        let url = Url::parse(realm).ok().filter(|url| url.scheme() == "https");
        let Some(mut url) = url else {
            return Err(self.no_login(format!(
                "its tokens are at \"{realm}\", and credentials are sent to https:// addresses only"
            )));
        };
        // If a challenge has no scope, reading this repository is requested.
        let pull = format!("repository:{}:pull", self.repository.name());
        let scope = scope.as_deref().unwrap_or(&pull);
        let service = service.as_deref().unwrap_or_default();
        let request = match credentials {
            Some(Credentials::Refresh(refresh)) => {
                let fields = [
                    ("grant_type", "refresh_token"),
                    ("service", service),
                    ("scope", scope),
                    ("client_id", "monoform"),
                    ("refresh_token", refresh.expose()),
                ];
                // The form contains credentials, but errors and logs contain only the URL.
                self.client
                    .post(url.clone(), "application/x-www-form-urlencoded", net::form(fields))
            }
            other => {
                if !service.is_empty() {
                    url.query_pairs_mut().append_pair("service", service);
                }
                url.query_pairs_mut().append_pair("scope", scope);
                let request = self.client.get(url.clone());
                match other {
                    Some(Credentials::Password { username, password }) => {
                        request.secret("authorization", Authorization::basic(username, password).expose())
                    }
                    _ => request,
                }
            }
        };
        let mut response = request.timeout(PATIENCE).send().await?;
        self.refused(&response, login)?;
        let body = response.bytes(MANIFEST_LIMIT).await?;
        // The answer contains a token, so no part of it is shown.
        let answer: TokenAnswer = serde_json::from_slice(&body)
            .map_err(|_| unusable(&url, "it is not JSON of the expected form".to_owned()))?;
        let token = answer.token.or(answer.access_token).filter(|token| !token.is_empty());
        let token = token.ok_or_else(|| unusable(&url, "there is no token in it".to_owned()))?;
        Ok(Some(Authorization::bearer(&Token::new(token))))
    }

    fn no_login(&self, reason: String) -> OciError {
        OciError::Login {
            repository: self.repository.to_string(),
            reason,
        }
    }
}

fn unusable(url: &Url, reason: String) -> OciError {
    OciError::Response {
        address: shown(url),
        reason,
    }
}

/// Returns the URL of the next page in a header `Link: <URL>; rel="next"`; `None` if it names no next page.
fn next_page(header: &str) -> Option<&str> {
    let (address, parameters) = header.trim().strip_prefix('<')?.split_once('>')?;
    let next = parameters.split(';').any(|parameter| {
        let parameter = parameter.trim();
        parameter.eq_ignore_ascii_case("rel=\"next\"") || parameter.eq_ignore_ascii_case("rel=next")
    });
    next.then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages() {
        assert_eq!(
            next_page("</v2/a/tags/list?n=1&last=x>; rel=\"next\""),
            Some("/v2/a/tags/list?n=1&last=x")
        );
        assert_eq!(next_page("<x>; rel=next"), Some("x"));
        assert_eq!(next_page("<x>; rel=\"prev\""), None);
        assert_eq!(next_page("x; rel=\"next\""), None);
    }

    #[test]
    fn an_authorization_is_not_shown() {
        let shown = format!("{:?}", Authorization::basic("user", &Token::new("hunter2")));
        assert!(!shown.contains("hunter2") && !shown.contains("dXNlcj"), "{shown}");
    }
}
