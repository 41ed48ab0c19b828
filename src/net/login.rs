//! Login to a host: the service `login.v1`, which is OAuth 2 (RFC 6749) with an authorization code and a proof key (RFC
//! 7636), or with a password.
//!
//! For a code, a browser visits the host and returns to a port of this machine, where [`Callback`] listens.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use url::Url;
use uuid::Uuid;

use crate::client::{Client, form};
use crate::discovery::LOGIN;
use crate::services::Services;
use crate::token::Token;
use http::shown;

/// The size limit of an answer with a token.
const LIMIT: u64 = 1024 * 1024;
/// Limit of the size of a browser's request, in bytes.
const HEAD_LIMIT: usize = 64 * 1024;

/// The time limit of a browser's request after it has connected.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Grant types for a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// Login by a code from a browser.
    Code,
    /// Login by name and password of the user.
    Password,
}

/// A host's description of its login service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OauthClient {
    id: String,
    /// Grant types that the host supports.
    pub grants: Vec<Grant>,
    authorization: Option<Url>,
    token: Url,
    /// The local ports to which the host may redirect the browser.
    pub ports: RangeInclusive<u16>,
    scopes: Vec<String>,
}

/// The error of a login service's description. The text is a clause.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MalformedService {
    /// The description is not an object.
    #[error("its service {LOGIN} is not described by an object")]
    NotObject,
    /// A property is missing or invalid: its name and the reason.
    #[error("\"{0}\" of its service {LOGIN} {1}")]
    Property(&'static str, &'static str),
    /// A property is not a URL.
    #[error("\"{0}\" of its service {LOGIN} is not an address ({1})")]
    Address(&'static str, url::ParseError),
}

/// Reason why a host issues no token. The text is a clause.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoginError {
    /// The port for the browser accepts no connections.
    #[error("the browser cannot be waited for: {}", files::io_reason(.0))]
    Callback(std::io::Error),
    /// The request for a token failed.
    #[error(transparent)]
    Request(#[from] crate::Error),
    /// The host refuses the request for a token, with an error code of RFC 6749 and an optional description.
    #[error("{host} answered \"{error}\"{}", description.as_ref().map(|text| format!(": {text}")).unwrap_or_default())]
    Refused {
        /// The URL of the host's token endpoint, for messages.
        host: String,
        error: String,
        description: Option<String>,
    },
    /// The host answers with an error status without explanation.
    #[error("{host} answered with status {status}")]
    Status {
        /// The URL of the host's token endpoint, for messages.
        host: String,
        status: http::StatusCode,
    },
    /// The response has a success status, but no token. Contains the URL of the host's token endpoint.
    #[error("the answer of {0} has no token in it")]
    NoToken(String),
}

/// The login service of a host, as service discovery found it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoginService {
    Offered(Box<OauthClient>),
    NotOffered,
    /// The host has other versions of the service only.
    OtherVersion,
    /// The description of the service is not valid.
    Malformed(MalformedService),
}

impl Services {
    #[must_use]
    pub fn login(&self) -> LoginService {
        match self.entries.get(LOGIN) {
            None | Some(Json::Null) if self.entries.keys().any(|name| name.starts_with("login.")) => {
                LoginService::OtherVersion
            }
            None | Some(Json::Null) => LoginService::NotOffered,
            Some(entry) => match self.oauth(entry) {
                Ok(client) => LoginService::Offered(Box::new(client)),
                Err(reason) => LoginService::Malformed(reason),
            },
        }
    }

    fn oauth(&self, entry: &Json) -> Result<OauthClient, MalformedService> {
        let entry = entry.as_object().ok_or(MalformedService::NotObject)?;
        let bad = MalformedService::Property;
        let id = entry.get("client").and_then(Json::as_str);
        let id = id.ok_or_else(|| bad("client", "is missing or not text"))?;
        let texts = |name: &'static str| -> Result<Option<Vec<String>>, MalformedService> {
            let Some(value) = entry.get(name) else { return Ok(None) };
            let list = value.as_array().ok_or_else(|| bad(name, "is not a list"))?;
            let text = |item: &Json| item.as_str().map(str::to_owned);
            let list: Option<Vec<String>> = list.iter().map(text).collect();
            list.map(Some)
                .ok_or_else(|| bad(name, "has something in it that is not text"))
        };
        let grants: Vec<Grant> = match texts("grant_types")? {
            // This is the default of Terraform's protocol.
            None => vec![Grant::Code],
            Some(names) => names.iter().filter_map(|name| grant(name)).collect(),
        };
        let address = |name: &'static str| -> Result<Option<Url>, MalformedService> {
            let Some(value) = entry.get(name) else { return Ok(None) };
            let text = value.as_str().ok_or_else(|| bad(name, "is not text"))?;
            let url = match &self.base {
                Some(base) => base.join(text),
                None => Url::parse(text),
            };
            let url = url.map_err(|error| MalformedService::Address(name, error))?;
            if !matches!(url.scheme(), "https" | "http") || !url.username().is_empty() || url.password().is_some() {
                return Err(bad(name, "is an address that cannot be used"));
            }
            Ok(Some(url))
        };
        let authorization = address("authz")?;
        if authorization.is_none() && grants.contains(&Grant::Code) {
            return Err(bad("authz", "is missing"));
        }
        Ok(OauthClient {
            id: id.to_owned(),
            grants,
            authorization,
            token: address("token")?.ok_or_else(|| bad("token", "is missing"))?,
            ports: match entry.get("ports") {
                None => 1024..=65535,
                Some(ports) => port_range(ports)
                    .ok_or_else(|| bad("ports", "must be two port numbers from 1024 on, the lower one first"))?,
            },
            scopes: texts("scopes")?.unwrap_or_default(),
        })
    }
}

fn grant(name: &str) -> Option<Grant> {
    match name {
        "authz_code" => Some(Grant::Code),
        "password" => Some(Grant::Password),
        _ => None,
    }
}

fn port_range(ports: &Json) -> Option<RangeInclusive<u16>> {
    let [low, high] = ports.as_array()?.as_slice() else {
        return None;
    };
    // Ports below 1024 are reserved for the system.
    let port = |value: &Json| u16::try_from(value.as_u64()?).ok().filter(|port| *port >= 1024);
    let (low, high) = (port(low)?, port(high)?);
    (low <= high).then_some(low..=high)
}

/// One login by a code, with the secrets that are checked when the browser returns.
#[derive(Debug)]
pub struct Attempt {
    callback: Callback,
    state: String,
    verifier: String,
}

impl Attempt {
    /// Listens at a port of the range; `None` if none is free.
    pub async fn begin(client: &OauthClient) -> Option<Attempt> {
        Some(Attempt {
            callback: Callback::listen(client.ports.clone()).await?,
            // The state proves that a request at the port belongs to this login.
            state: Uuid::new_v4().to_string(),
            // The 64 characters contain 244 random bits; a verifier has at least 43 characters.
            verifier: format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple()),
        })
    }

    /// Returns the authorization URL for the browser; `None` if the host has none.
    #[must_use]
    pub fn address(&self, client: &OauthClient) -> Option<Url> {
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(&self.verifier));
        let redirect = self.callback.redirect();
        let scopes = client.scopes.join(" ");
        let mut url = client.authorization.clone()?;
        // The parameters are ordered by name, as other programs send them.
        let mut parameters = BTreeMap::from([
            ("client_id", &*client.id),
            ("code_challenge", &*challenge),
            ("code_challenge_method", "S256"),
            ("redirect_uri", &*redirect),
            ("response_type", "code"),
            ("state", &*self.state),
        ]);
        if !scopes.is_empty() {
            parameters.insert("scope", &scopes);
        }
        url.query_pairs_mut().extend_pairs(parameters);
        Some(url)
    }

    /// Waits for the code from the browser, and exchanges it for a token.
    ///
    /// # Errors
    /// Returns an error if the host gives no token.
    pub async fn finish(mut self, net: &Client, client: &OauthClient) -> Result<Token, LoginError> {
        let code = self.callback.code(&self.state).await?;
        let redirect = self.callback.redirect();
        let parameters = [
            ("client_id", &*client.id),
            ("code", &*code),
            ("code_verifier", &*self.verifier),
            ("grant_type", "authorization_code"),
            ("redirect_uri", &*redirect),
        ];
        token(net, client, &parameters).await
    }
}

/// Exchanges a user's name and password for a token.
///
/// # Errors
/// Returns an error if the host gives no token.
pub async fn by_password(net: &Client, client: &OauthClient, user: &str, password: &str) -> Result<Token, LoginError> {
    let scopes = client.scopes.join(" ");
    let mut parameters = vec![
        ("client_id", &*client.id),
        ("grant_type", "password"),
        ("password", password),
    ];
    if !scopes.is_empty() {
        parameters.push(("scope", &scopes));
    }
    parameters.push(("username", user));
    token(net, client, &parameters).await
}

async fn token(net: &Client, client: &OauthClient, parameters: &[(&str, &str)]) -> Result<Token, LoginError> {
    let body = form(parameters.iter().copied());
    let request = net.post(client.token.clone(), "application/x-www-form-urlencoded", body);
    // A code can be used only once, so the request is not repeated.
    let request = request.header("accept", "application/json").retries(0).redirects(0);
    let mut response = request.send().await?;
    let (status, host) = (response.status(), shown(&response.url));
    let body = response.bytes(LIMIT).await?;
    let answer: Json = serde_json::from_slice(&body).unwrap_or_default();
    let text = |name: &str| answer.get(name).and_then(Json::as_str).filter(|text| !text.is_empty());
    if let (true, Some(token)) = (status.is_success(), text("access_token")) {
        return Ok(Token::new(token));
    }
    // Only errors of RFC 6749 are reported; other parts of the answer are not shown.
    Err(match text("error") {
        Some(error) => LoginError::Refused {
            host,
            error: error.to_owned(),
            description: text("error_description").map(str::to_owned),
        },
        None if status.is_success() => LoginError::NoToken(host),
        None => LoginError::Status { host, status },
    })
}

/// Listener on a local port, to which the host redirects the browser.
#[derive(Debug)]
struct Callback {
    listener: TcpListener,
    port: u16,
}

impl Callback {
    async fn listen(ports: RangeInclusive<u16>) -> Option<Callback> {
        let (low, count) = (u32::from(*ports.start()), ports.len().max(1));
        // The search begins at a random port, so that two logins at once do not receive each other's answers.
        let start = Uuid::new_v4().as_u128() as usize % count;
        for offset in 0..count {
            let port = u16::try_from(low + u32::try_from((start + offset) % count).ok()?).ok()?;
            // Listens on the loopback address only, because other machines must not send codes.
            if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await {
                return Some(Callback { listener, port });
            }
        }
        None
    }

    fn redirect(&self) -> String {
        format!("http://localhost:{}/login", self.port)
    }

    /// Waits for a request with this state and a code. Other requests are refused, since anybody can send them.
    async fn code(&mut self, state: &str) -> Result<String, LoginError> {
        let (sender, mut codes) = mpsc::channel(1);
        loop {
            tokio::select! {
                Some(code) = codes.recv() => return Ok(code),
                accepted = self.listener.accept() => {
                    let (stream, _) = accepted.map_err(LoginError::Callback)?;
                    let (sender, state) = (sender.clone(), state.to_owned());
                    // Browsers open connections in advance on which they may send nothing.
                    tokio::spawn(tokio::time::timeout(REQUEST_TIMEOUT, async move {
                        if let Some(code) = answer(stream, &state).await {
                            // Only the first code counts.
                            let _ = sender.try_send(code);
                        }
                    }));
                }
            }
        }
    }
}

const DONE: &str = "<!DOCTYPE html>\n<html>\n<head><title>Login</title></head>\n<body>\n<p>The host has sent what is needed to get \
                    a token. You can close this page; the terminal shows what came of it.</p>\n</body>\n</html>\n";

/// Reads a request and responds to it. Returns the code in the request, if its state is that of this login.
async fn answer(mut stream: TcpStream, state: &str) -> Option<String> {
    let code = read(&mut stream).await.and_then(|parameters| {
        let value = |name: &str| parameters.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone());
        let expected = value("state").is_some_and(|found| found == state);
        value("code").filter(|code| expected && !code.is_empty())
    });
    let (status, body) = match &code {
        Some(_) => ("200 OK", DONE),
        None => ("400 Bad Request", ""),
    };
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    // The browser may have closed the connection already.
    let _ = stream.write_all(text.as_bytes()).await;
    let _ = stream.shutdown().await;
    code
}

/// Returns the parameters of a request, from the form in its body and from its query; `None` if its head is incomplete
/// or too large.
async fn read(stream: &mut TcpStream) -> Option<Vec<(String, String)>> {
    let mut request = Vec::new();
    let head_end = loop {
        if let Some(end) = request.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        // Any program on this machine can connect, so memory is limited.
        if request.len() > HEAD_LIMIT || stream.read_buf(&mut request).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(request.get(..head_end)?).into_owned();
    let mut lines = head.lines();
    let target = lines.next()?.split(' ').nth(1)?;
    let length = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim().eq_ignore_ascii_case("content-length")).then(|| value.trim().parse::<usize>().ok())?
    });
    let length = length.unwrap_or_default().min(HEAD_LIMIT);
    while request.len() < head_end + length && stream.read_buf(&mut request).await.ok()? > 0 {}
    let query = target.split_once('?').map_or("", |(_, query)| query);
    let pairs = url::form_urlencoded::parse(query.as_bytes());
    let body = url::form_urlencoded::parse(request.get(head_end..).unwrap_or_default());
    Some(body.into_owned().chain(pairs.into_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::NetSettings;
    use serde_json::json;
    use support::server::{Reply, Server};

    fn service(entry: Json) -> LoginService {
        Services {
            base: Url::parse("https://h.example/.well-known/terraform.json").ok(),
            entries: [(LOGIN.to_owned(), entry)].into(),
        }
        .login()
    }

    #[test]
    fn what_hosts_say_about_their_service() {
        let LoginService::Offered(client) = service(json!({"client": "c", "authz": "/a", "token": "/t"})) else {
            panic!("it is offered");
        };
        assert_eq!(client.ports, 1024..=65535);
        assert_eq!(client.token.as_str(), "https://h.example/t");
        let complete = json!({
            "client": "c", "authz": "/a", "token": "/t", "grant_types": ["password", "other", "authz_code"],
            "ports": [2000, 2000], "scopes": ["x", "y"],
        });
        let LoginService::Offered(client) = service(complete.clone()) else {
            panic!("it is offered");
        };
        assert_eq!(client.grants, [Grant::Password, Grant::Code]);
        assert_eq!(client.ports, 2000..=2000);
        for (name, value, expected) in [
            ("client", json!(1), "client"),
            ("authz", json!("ftp://x"), "authz"),
            ("token", Json::Null, "token"),
            ("ports", json!([80, 2000]), "ports"),
            ("ports", json!([3000, 2000]), "ports"),
            ("scopes", json!("x"), "scopes"),
            ("grant_types", json!([1]), "grant_types"),
        ] {
            let mut entry = complete.clone();
            entry[name] = value;
            let LoginService::Malformed(reason) = service(entry) else {
                panic!("{name} is wrong");
            };
            assert!(reason.to_string().contains(expected), "{reason}");
        }
        assert!(matches!(service(json!("/x")), LoginService::Malformed(_)));
        assert_eq!(service(Json::Null), LoginService::OtherVersion);
        assert_eq!(Services::default().login(), LoginService::NotOffered);
    }

    /// Acts as a browser: visits the host, and follows its redirect.
    async fn ask(url: &str) -> String {
        let url = Url::parse(url).unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", url.port().unwrap())).await.unwrap();
        let request = format!(
            "GET {}?{} HTTP/1.1\r\nHost: x\r\n\r\n",
            url.path(),
            url.query().unwrap_or_default()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer.lines().next().unwrap_or_default().to_owned()
    }

    #[tokio::test]
    async fn a_code_is_exchanged_once_for_a_token_with_the_proof() {
        let server = Server::https(|request| {
            let body: BTreeMap<String, String> = url::form_urlencoded::parse(&request.body).into_owned().collect();
            match (request.path(), body.get("code").map(String::as_str)) {
                ("/t", Some("right")) => {
                    assert_eq!(body["grant_type"], "authorization_code");
                    Reply::json(&json!({"access_token": body["code_verifier"], "token_type": "bearer"}).to_string())
                }
                _ => Reply::new(400, r#"{"error":"invalid_grant","error_description":"no"}"#),
            }
        });
        let entry = json!({"client": "c d", "authz": "/a?x=1", "token": server.url("/t"), "scopes": ["x", "y"]});
        let net = Client::trusting(NetSettings::default(), server.trusted());
        for (code, fine) in [("right", true), ("wrong", false)] {
            let LoginService::Offered(client) = service(entry.clone()) else {
                panic!("it is offered");
            };
            let attempt = Attempt::begin(&client).await.unwrap();
            let address = attempt.address(&client).unwrap();
            let sent: Vec<String> = address.query_pairs().map(|(name, _)| name.into_owned()).collect();
            let names = "x client_id code_challenge code_challenge_method redirect_uri response_type scope state";
            assert_eq!(sent.join(" "), names);
            let sent: BTreeMap<String, String> = address.query_pairs().into_owned().collect();
            assert_eq!(sent["scope"], "x y");
            let (verifier, back, state) = (attempt.verifier.clone(), &sent["redirect_uri"], &sent["state"]);
            assert_eq!(
                sent["code_challenge"],
                URL_SAFE_NO_PAD.encode(Sha256::digest(&verifier))
            );
            let browser = async {
                // A connection without a request, and requests that do not belong to this login.
                let silent = TcpStream::connect(back.trim_start_matches("http://").trim_end_matches("/login")).await;
                assert!(ask(&format!("{back}?state=other&code=right")).await.contains("400"));
                assert!(ask(&format!("{back}?state={state}")).await.contains("400"));
                assert!(ask(&format!("{back}?code={code}&state={state}")).await.contains("200"));
                drop(silent);
            };
            let (result, ()) = tokio::join!(attempt.finish(&net, &client), browser);
            match result {
                Ok(token) => assert!(fine && token.expose() == verifier),
                Err(error) => assert!(!fine && error.to_string().contains("\"invalid_grant\": no"), "{error}"),
            }
        }
    }

    #[tokio::test]
    async fn a_password_is_exchanged_and_no_port_is_an_error() {
        let server = Server::https(|request| match String::from_utf8_lossy(&request.body).as_ref() {
            "client_id=c&grant_type=password&password=p%26&username=me" => Reply::json(r#"{"access_token":"t"}"#),
            _ => Reply::status(500),
        });
        let entry = json!({"client": "c", "token": server.url("/t"), "grant_types": ["password"]});
        let LoginService::Offered(mut client) = service(entry) else {
            panic!("it is offered");
        };
        let net = Client::trusting(NetSettings::default(), server.trusted());
        assert_eq!(by_password(&net, &client, "me", "p&").await.unwrap().expose(), "t");
        let error = by_password(&net, &client, "me", "x").await.unwrap_err();
        assert!(error.to_string().contains("500"), "{error}");
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = taken.local_addr().unwrap().port();
        client.ports = port..=port;
        assert!(Attempt::begin(&client).await.is_none());
    }
}
