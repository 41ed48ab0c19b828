//! Requests to the API and their answers, which are JSON:API documents.

use std::time::Duration;

use net::{Client, Method, Response, Token, Url, shown};
use serde_json::{Value as Json, json};

/// The media type of JSON:API.
const JSON_API: &str = "application/vnd.api+json";

/// Maximum number of retries of a request. With the pauses between them, they take some minutes.
const RETRIES: u64 = 12;

/// Maximum size of a JSON:API document in bytes.
const LIMIT: u64 = 64 * 1024 * 1024;
/// Maximum size of a state in bytes.
const STATE_LIMIT: u64 = 1 << 30;

/// Time limit of one request, answer included.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Reason why a request failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// The resource does not exist, or the token may not see it.
    #[error("resource not found")]
    NotFound,
    /// The token is not accepted.
    #[error("unauthorized: the token is not accepted")]
    Unauthorized,
    /// The request contradicts the state of the resource. Contains the server's explanation, if there is one.
    #[error("{}", if .0.is_empty() { "conflict" } else { .0 })]
    Conflict(String),
    /// The server refuses the request. Contains the status and the server's explanation, if there is one.
    #[error("{}", if .1.is_empty() { format!("the server answered with status {}", .0) } else { .1.clone() })]
    Refused(u16, String),
    /// There is no answer, or the answer cannot be used.
    #[error("{0}")]
    Failed(String),
}

/// Access to the API of a host: the HTTP client, the base URL and the token.
#[derive(Clone)]
pub(crate) struct Api {
    pub net: Client,
    /// Base of the paths of requests; ends with a slash.
    pub base: Url,
    pub token: Token,
    /// Set if requests are marked as those of a `cloud` block.
    pub integration: bool,
}

/// A document, and the description of the server from the headers of the same answer.
pub(crate) struct Answer {
    pub document: Json,
    pub server: Server,
}

/// Description of a server, from the headers of its answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Server {
    /// Version of the server's API, if the server sends one.
    pub api_version: Option<(u64, u64)>,
    /// Name of the product, for messages.
    pub name: String,
    /// Release of Terraform Enterprise, such as `v202302-1`; `None` for HCP Terraform.
    pub release: Option<String>,
}

impl Server {
    fn from_headers(response: &Response) -> Server {
        let version = response.header("tfp-api-version").and_then(|text| {
            let (major, minor) = text.split_once('.')?;
            Some((major.parse().ok()?, minor.parse().ok()?))
        });
        // The name is printed in messages, so only the two known products are accepted from a server.
        let named = |name: &&str| matches!(*name, "HCP Terraform" | "Terraform Enterprise");
        Server {
            api_version: version,
            name: response
                .header("tfp-appname")
                .filter(named)
                .unwrap_or("HCP Terraform")
                .to_owned(),
            release: response
                .header("x-tfe-version")
                .filter(|text| !text.is_empty())
                .map(str::to_owned),
        }
    }

    /// Returns true if the API has this version or a later one.
    #[must_use]
    pub fn is_at_least(&self, major: u64, minor: u64) -> bool {
        self.api_version.is_some_and(|version| version >= (major, minor))
    }
}

impl Api {
    pub async fn get(&self, path: &str) -> Result<Json, ApiError> {
        Ok(self.send(Method::GET, path, None).await?.document)
    }

    pub async fn post(&self, path: &str, body: &Json) -> Result<Json, ApiError> {
        Ok(self.send(Method::POST, path, Some(body)).await?.document)
    }

    pub async fn patch(&self, path: &str, body: &Json) -> Result<Json, ApiError> {
        Ok(self.send(Method::PATCH, path, Some(body)).await?.document)
    }

    pub async fn delete(&self, path: &str) -> Result<(), ApiError> {
        self.send(Method::DELETE, path, None).await.map(drop)
    }

    /// Sends a request; the path may include a query.
    pub async fn send(&self, method: Method, path: &str, body: Option<&Json>) -> Result<Answer, ApiError> {
        let url = self
            .base
            .join(path)
            .map_err(|e| ApiError::Failed(format!("{path} is no path: {e}")))?;
        let mut request = self
            .net
            .request(method, url)
            .token(Some(&self.token))
            .header("accept", JSON_API);
        if let Some(body) = body {
            request = request.body(JSON_API, body.to_string());
        }
        request = request.header("terraform-version", &self.net.settings().terraform_version);
        if self.integration {
            request = request.header("x-terraform-integration", "cloud");
        }
        let sent = request.retries(RETRIES).timeout(TIMEOUT).send().await;
        let mut response = sent.map_err(|e| ApiError::Failed(e.to_string()))?;
        let server = Server::from_headers(&response);
        let body = accepted(&mut response, LIMIT).await?;
        let document = match body.is_empty() {
            // The answers to some actions, such as unlocking, have no body.
            true => Json::Null,
            false => serde_json::from_slice(&body)
                .map_err(|_| ApiError::Failed(format!("the answer of {} is no JSON document", shown(&response.url))))?,
        };
        Ok(Answer { document, server })
    }

    /// Gets a body that is not a JSON:API document, such as the output of a policy check.
    pub async fn text(&self, path: &str) -> Result<Vec<u8>, ApiError> {
        self.fetch(self.address(path)?, JSON_API).await
    }

    /// Downloads from a URL that an answer contained. The URL may be on another host.
    pub async fn download(&self, address: &str) -> Result<Vec<u8>, ApiError> {
        self.fetch(self.address(address)?, "application/json").await
    }

    async fn fetch(&self, url: Url, accept: &str) -> Result<Vec<u8>, ApiError> {
        // The token is sent only to its own host: logs and states are often on a storage host, at a signed URL.
        let own = url.origin() == self.base.origin();
        let request = self.net.request(Method::GET, url).token(own.then_some(&self.token));
        let request = request
            .header("accept", accept)
            .header("terraform-version", &self.net.settings().terraform_version)
            .retries(RETRIES)
            .timeout(TIMEOUT);
        let mut response = request.send().await.map_err(|e| ApiError::Failed(e.to_string()))?;
        accepted(&mut response, STATE_LIMIT).await
    }

    /// Uploads a body by PUT to a URL that an answer contained.
    pub async fn upload(&self, address: &str, body: Vec<u8>) -> Result<(), ApiError> {
        // The content is sent without the token: the URL itself is a secret, and the storage host must not receive
        // another one.
        let request = self.net.request(Method::PUT, self.address(address)?);
        let request = request.header("accept", "application/json, */*");
        let request = request
            .body("application/octet-stream", body)
            .retries(RETRIES)
            .timeout(TIMEOUT);
        let mut response = request.send().await.map_err(|e| ApiError::Failed(e.to_string()))?;
        accepted(&mut response, LIMIT).await.map(drop)
    }

    // The server sends the URL. Only `http` and `https` are accepted, because other schemes could name a local file.
    fn address(&self, address: &str) -> Result<Url, ApiError> {
        let url = self
            .base
            .join(address)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https"));
        url.ok_or_else(|| ApiError::Failed("an address in the answer of the server cannot be used".to_owned()))
    }
}

/// Returns the body of a successful answer; turns any other answer into an error.
async fn accepted(response: &mut Response, limit: u64) -> Result<Vec<u8>, ApiError> {
    let status = response.status();
    let body = response
        .bytes(limit)
        .await
        .map_err(|e| ApiError::Failed(e.to_string()))?;
    if status.is_success() {
        return Ok(body);
    }
    Err(match status.as_u16() {
        401 => ApiError::Unauthorized,
        404 => ApiError::NotFound,
        409 => ApiError::Conflict(error_text(&body)),
        code => ApiError::Refused(code, error_text(&body)),
    })
}

/// Joins the messages of the errors in a document.
fn error_text(body: &[u8]) -> String {
    let document: Json = serde_json::from_slice(body).unwrap_or_default();
    let errors = document.get("errors").and_then(Json::as_array);
    let line = |error: &Json| {
        let text = |name: &str| error.get(name).and_then(Json::as_str).filter(|text| !text.is_empty());
        match (error.as_str(), text("title"), text("detail")) {
            (Some(text), ..) => text.to_owned(),
            (_, Some(title), Some(detail)) => format!("{title}: {detail}"),
            (_, title, detail) => title.or(detail).unwrap_or_default().to_owned(),
        }
    };
    let lines: Vec<String> = errors
        .into_iter()
        .flatten()
        .map(line)
        .filter(|line| !line.is_empty())
        .collect();
    lines.join("; ")
}

/// Escapes one segment of a path, or one value of a query.
pub(crate) fn part(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// Builds a document with one object.
pub(crate) fn object(ty: &str, attributes: Json) -> Json {
    json!({"data": {"type": ty, "attributes": attributes}})
}

/// Returns the object of a document; null if it has none.
pub(crate) fn data(document: &Json) -> &Json {
    document.get("data").unwrap_or(&Json::Null)
}

/// Returns the objects of a list document.
pub(crate) fn items(document: &Json) -> impl Iterator<Item = &Json> {
    document.get("data").and_then(Json::as_array).into_iter().flatten()
}

/// Returns the number of the next page; `None` on the last one.
pub(crate) fn next_page(document: &Json, page: u64) -> Option<u64> {
    let next = document.pointer("/meta/pagination/next-page").and_then(Json::as_u64);
    // A server that repeats a page number must not cause endless requests.
    next.filter(|next| *next > page)
}

/// Returns the identifier of an object.
pub(crate) fn id(data: &Json) -> Result<String, ApiError> {
    let id = data.get("id").and_then(Json::as_str);
    id.map(str::to_owned)
        .ok_or_else(|| ApiError::Failed("the answer of the server has no identifier in it".to_owned()))
}

/// Returns a string attribute of an object; `None` if it is missing, or not a string.
pub(crate) fn text<'d>(data: &'d Json, name: &str) -> Option<&'d str> {
    data.get("attributes")?.get(name)?.as_str()
}

/// Returns the identifiers of a relation to several objects.
pub(crate) fn all_related(data: &Json, name: &str) -> Vec<String> {
    let all = data
        .pointer(&format!("/relationships/{name}/data"))
        .and_then(Json::as_array);
    let ids = all.into_iter().flatten().filter_map(|item| item.get("id")?.as_str());
    ids.map(str::to_owned).collect()
}

/// Reads a property that is false if it is absent.
pub(crate) fn truth(data: &Json, pointer: &str) -> bool {
    data.pointer(pointer).and_then(Json::as_bool).unwrap_or_default()
}

/// Returns the identifier of a relation to one object; `None` if there is none.
pub(crate) fn related(data: &Json, name: &str) -> Option<String> {
    let id = data.pointer(&format!("/relationships/{name}/data/id"))?;
    id.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_what_the_server_says() {
        let text = r#"{"errors":[{"status":"422","title":"invalid","detail":"Name is taken"},{"title":"b"},"c",{}]}"#;
        assert_eq!(error_text(text.as_bytes()), "invalid: Name is taken; b; c");
        assert_eq!(error_text(b"<html>"), "");
        assert_eq!(part("a b/ä"), "a%20b%2F%C3%A4");
    }
}
