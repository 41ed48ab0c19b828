//! One request: its parts, its retries and its response.

use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::retry::{Backoff, may_change};
use http::rules::LONGEST_PAUSE;
use http::{Bytes, Error, HeaderMap, HeaderName, HeaderValue, Method, Phase, Response, Url, shown};

use crate::client::{Client, Retry};
use crate::credentials::unsendable_character;
use crate::token::Token;

/// The default limit of redirects.
const REDIRECTS: usize = 10;

impl Client {
    pub fn get(&self, url: Url) -> Request<'_> {
        Request {
            client: self,
            method: Method::GET,
            body: None,
            url,
            headers: HeaderMap::new(),
            netrc: false,
            redirects: REDIRECTS,
            retries: 1,
            timeout: None,
            to_registry: false,
            invalid: None,
        }
    }

    pub fn post(&self, url: Url, content_type: &'static str, body: impl Into<Vec<u8>>) -> Request<'_> {
        let mut request = self.get(url);
        request.method = Method::POST;
        request.body = Some(Bytes::from(body.into()));
        request
            .headers
            .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        request
    }

    /// Creates a request of any method; [`Request::body`] sets its body.
    pub fn request(&self, method: Method, url: Url) -> Request<'_> {
        let mut request = self.get(url);
        request.method = method;
        request
    }

    /// Creates a PUT request without a body, which some services require for a read.
    pub fn put(&self, url: Url) -> Request<'_> {
        let mut request = self.get(url);
        request.method = Method::PUT;
        request
    }
}

/// A request before it is sent.
#[derive(Debug)]
#[must_use = "a request does nothing before it is sent"]
pub struct Request<'c> {
    client: &'c Client,
    method: Method,
    body: Option<Bytes>,
    url: Url,
    headers: HeaderMap,
    netrc: bool,
    redirects: usize,
    retries: u64,
    timeout: Option<Duration>,
    to_registry: bool,
    /// The error of a header that cannot be sent.
    // An invalid header makes the whole request fail, because the request could mean something else without it.
    invalid: Option<Error>,
}

impl<'c> Request<'c> {
    /// Adds a token, which redirects to another origin do not receive.
    pub fn token(self, token: Option<&Token>) -> Request<'c> {
        match token {
            Some(token) => self.secret("authorization", format!("Bearer {}", token.expose())),
            None => self,
        }
    }

    /// Sets the body and its content type.
    pub fn body(mut self, content_type: &'static str, body: impl Into<Vec<u8>>) -> Request<'c> {
        self.body = Some(Bytes::from(body.into()));
        self.header("content-type", content_type)
    }

    /// Adds a header. A value that cannot be sent is the error of the request.
    pub fn header(mut self, name: &'static str, value: impl AsRef<str>) -> Request<'c> {
        match HeaderValue::from_str(value.as_ref()) {
            Ok(value) => {
                self.headers.insert(HeaderName::from_static(name), value);
            }
            Err(_) => self.refuse(format!("the value of the header {name}"), value.as_ref()),
        }
        self
    }

    /// Adds a header that is not shown, and that redirects to another origin do not receive.
    pub fn secret(mut self, name: &'static str, value: impl AsRef<str>) -> Request<'c> {
        match HeaderValue::from_str(value.as_ref()) {
            Ok(mut value) => {
                // Sensitive values are not logged, and are not kept in HTTP/2's compression table.
                value.set_sensitive(true);
                self.headers.insert(HeaderName::from_static(name), value);
            }
            Err(_) => self.refuse(format!("the secret in the header {name}"), value.as_ref()),
        }
        self
    }

    fn refuse(&mut self, what: String, value: &str) {
        let character = unsendable_character(value).unwrap_or("a character that is not allowed there");
        self.invalid.get_or_insert(Error::Header { what, character });
    }

    /// Adds the login of `.netrc` for the host, unless the URL or a header has credentials.
    pub fn with_netrc(mut self) -> Request<'c> {
        self.netrc = true;
        self
    }

    /// Sets the limit of redirects. With 0, a redirect is returned as the response.
    pub fn redirects(mut self, limit: usize) -> Request<'c> {
        self.redirects = limit;
        self
    }

    /// Sets the maximum number of repetitions.
    pub fn retries(mut self, retries: u64) -> Request<'c> {
        self.retries = retries;
        self
    }

    /// Sets the time limit of each try, which includes the body if [`Request::read`] reads it.
    pub fn timeout(mut self, timeout: Duration) -> Request<'c> {
        self.timeout = Some(timeout);
        self
    }

    /// Follows the rules of registries: sends the version of Terraform, and takes the number of retries and the
    /// time limit from environment variables.
    pub fn to_registry(mut self) -> Request<'c> {
        self.to_registry = true;
        // The variables and their defaults are Terraform's.
        self.retries = self.client.number("TF_REGISTRY_DISCOVERY_RETRY", 1);
        let seconds = self.client.number("TF_REGISTRY_CLIENT_TIMEOUT", 10);
        self.timeout = Some(Duration::from_secs(seconds.max(1)));
        let version = self.client.settings().terraform_version.clone();
        self.header("x-terraform-version", version)
    }

    /// Sends the request. Returns the response, whatever its status.
    pub async fn send(self) -> Result<Response, Error> {
        let mut tries = 0;
        loop {
            let result = self.limited(self.once()).await;
            let (error, pause) = match &result {
                Ok(response) if may_change(response.status()) => (response.failure(), pause(Some(response), tries)),
                Err(error) if error.worth_another_try() => (error.clone(), pause(None, tries)),
                _ => return result,
            };
            if tries >= self.retries {
                return result;
            }
            tries += 1;
            self.again(&error, pause, tries).await;
        }
    }

    /// Sends the request, and reads the whole body. The status must be a success, and the body at most `limit`
    /// bytes. Returns the URL that answered, and the body.
    pub async fn read(self, limit: u64) -> Result<(Url, Vec<u8>), Error> {
        let mut tries = 0;
        loop {
            // The body is received within the attempt, so that a connection that breaks in the middle of it is
            // retried.
            let whole = async {
                let response = self.once().await?;
                if may_change(response.status()) {
                    let pause = pause(Some(&response), tries);
                    return Ok(Err((response.failure(), pause)));
                }
                let mut response = response.success()?;
                let body = response.bytes(limit).await?;
                Ok(Ok((response.url, body)))
            };
            let (error, pause) = match self.limited(whole).await {
                Ok(Ok(done)) => return Ok(done),
                Ok(Err(failed)) => failed,
                Err(error) if error.worth_another_try() => (error, pause(None, tries)),
                Err(error) => return Err(error),
            };
            if tries >= self.retries {
                return Err(error);
            }
            tries += 1;
            self.again(&error, pause, tries).await;
        }
    }

    async fn again(&self, error: &Error, pause: Duration, attempt: u64) {
        let why = error.to_string();
        let of = self.retries;
        let retry = Retry {
            why,
            pause,
            attempt,
            of,
        };
        self.client.before_another_try(retry).await;
    }

    async fn limited<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        match self.timeout {
            None => work.await,
            Some(limit) => tokio::time::timeout(limit, work).await.unwrap_or_else(|_| {
                Err(Error::Timeout {
                    url: shown(&self.url),
                    seconds: limit.as_secs(),
                    phase: Phase::Whole,
                })
            }),
        }
    }

    /// Sends the request once, and follows redirects.
    async fn once(&self) -> Result<Response, Error> {
        if let Some(error) = &self.invalid {
            return Err(error.clone());
        }
        let watched = self.client.watch(&self.method, &self.url);
        let mut headers = self.headers.clone();
        if let Some(value) = watched
            .as_ref()
            .and_then(|watched| HeaderValue::from_str(&watched.traceparent).ok())
        {
            headers.insert(HeaderName::from_static("traceparent"), value);
        }
        let login = |host: &str| self.client.netrc().login(host).cloned();
        let waiting = |host: &str| self.client.waiting(host);
        let request = http::Request {
            method: self.method.clone(),
            url: &self.url,
            headers,
            body: self.body.clone(),
            redirects: http::Redirects::within(self.redirects),
            login: if self.netrc { Some(&login) } else { None },
            waiting: &waiting,
        };
        let result = self.client.transport().send(request).await;
        if let Some(watched) = watched {
            (watched.end)(result.as_ref().map(Response::status));
        }
        result
    }
}

/// Returns the pause before another try: the one that the server requests, or else one that doubles with each try.
fn pause(response: Option<&Response>, tries: u64) -> Duration {
    const BACKOFF: Backoff = Backoff {
        first: Duration::from_millis(500),
        longest: LONGEST_PAUSE,
    };
    let asked = response.and_then(Response::asked_pause);
    asked.unwrap_or_else(|| BACKOFF.pause(tries))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{NetSettings, Notice};
    use http::StatusCode;
    use support::server::{Reply, Request as Received, Server};

    fn client() -> Client {
        Client::new(NetSettings {
            terraform_version: "1.2.3".to_owned(),
            product: "Monoform/0".to_owned(),
            ..NetSettings::default()
        })
    }

    fn token(request: &Received) -> &str {
        Some(request.header("authorization"))
            .filter(|t| !t.is_empty())
            .unwrap_or("none")
    }

    #[test]
    fn what_is_shown_has_no_secrets() {
        let url = Url::parse("https://user:pass@example.com/a?X-Amz-Signature=s#f").unwrap();
        assert_eq!(shown(&url), "https://example.com/a");
        assert_eq!(pause(None, 0), Duration::from_millis(500));
        assert_eq!(pause(None, 500), LONGEST_PAUSE);
    }

    #[tokio::test]
    async fn a_token_does_not_follow_to_another_host() {
        let other = Server::http(|request| Reply::ok(token(request)));
        let target = other.url("/there");
        let server = Server::http(move |request| match request.path() {
            "/away" => Reply::redirect(&target),
            "/here" => Reply::redirect("stay"),
            "/round" => Reply::redirect("/round"),
            "/file" => Reply::redirect("file:///etc/passwd"),
            _ => Reply::ok(format!("{} {}", token(request), request.header("user-agent"))),
        });
        let client = client();
        let read = async |path: &str| {
            let token = Token::new("t");
            let request = client.get(server.url(path).parse().unwrap()).token(Some(&token));
            request
                .read(100)
                .await
                .map(|(_, body)| String::from_utf8(body).unwrap())
        };
        assert_eq!(read("/here").await.unwrap(), "Bearer t Terraform/1.2.3 Monoform/0");
        assert_eq!(read("/away").await.unwrap(), "none");
        assert!(matches!(
            read("/round").await,
            Err(Error::TooManyRedirects { limit: 10, .. })
        ));
        assert!(matches!(read("/file").await, Err(Error::BadRedirect { .. })));
    }

    #[tokio::test]
    async fn no_secret_follows_a_redirect_to_another_origin() {
        let names = |request: &Received| {
            let named = ["authorization", "x-api-key", "x-marked", "x-plain"];
            named
                .into_iter()
                .filter(|name| !request.header(name).is_empty())
                .collect::<Vec<_>>()
                .join(" ")
        };
        let other = Server::http(move |request| Reply::ok(names(request)));
        let target = other.url("/there");
        let server = Server::http(move |request| match request.path() {
            "/away" => Reply::redirect(&target),
            "/here" => Reply::redirect("stay"),
            _ => Reply::ok(names(request)),
        });
        let client = client();
        let read = async |path: &str| {
            let request = client
                .get(server.url(path).parse().unwrap())
                .secret("authorization", "a")
                .secret("x-marked", "b")
                .header("x-api-key", "c")
                .header("x-plain", "d");
            String::from_utf8(request.read(100).await.unwrap().1).unwrap()
        };
        assert_eq!(read("/here").await, "authorization x-api-key x-marked x-plain");
        assert_eq!(read("/away").await, "x-plain");
    }

    #[tokio::test]
    async fn a_busy_server_is_asked_again() {
        let server = Server::http({
            let count = std::sync::atomic::AtomicUsize::new(0);
            move |request| match request.path() {
                "/later" if count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0 => {
                    Reply::status(503).with("Retry-After", "0")
                }
                "/never" => Reply::status(500).with("Retry-After", "0"),
                "/missing" => Reply::status(404),
                _ => Reply::ok("done"),
            }
        });
        let told = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let hear = told.clone();
        let client = client().reporting(move |notice| {
            if let Notice::Retry(retry) = notice {
                hear.lock().unwrap().push(retry.clone());
            }
        });
        let read = async |path: &str, limit| client.get(server.url(path).parse().unwrap()).read(limit).await;
        assert_eq!(read("/later", 4).await.unwrap().1, b"done");
        assert_eq!(
            read("/never", 4).await.unwrap_err().status(),
            Some(StatusCode::INTERNAL_SERVER_ERROR)
        );
        assert_eq!(server.count("/never"), 2);
        let told: Vec<String> = told
            .lock()
            .unwrap()
            .iter()
            .map(|r| format!("{} {}/{}", r.why, r.attempt, r.of))
            .collect();
        let expected = |path: &str, status: &str| format!("{} answered with status {status} 1/1", server.url(path));
        assert_eq!(
            told,
            [
                expected("/later", "503 Service Unavailable"),
                expected("/never", "500 Internal Server Error")
            ]
        );
        assert_eq!(
            read("/missing", 4).await.unwrap_err().status(),
            Some(StatusCode::NOT_FOUND)
        );
        assert_eq!(server.count("/missing"), 1);
        assert!(matches!(read("/big", 3).await, Err(Error::TooLarge { limit: 3, .. })));
    }

    /// Starts a server that handles each connection with `act`.
    fn server(act: impl Fn(std::net::TcpStream) + Send + 'static) -> u16 {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || listener.incoming().flatten().for_each(act));
        port
    }

    #[tokio::test]
    async fn failed_connection_is_reported_with_host_and_remedy_and_without_layers() {
        use std::io::{Read, Write};
        let hasty = server(|stream| {
            let _ = (&stream).read(&mut [0; 64]);
            drop(stream);
        });
        let plain = server(|mut stream| {
            let _ = stream.read(&mut [0; 64]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        });
        let silent = server(std::mem::forget);
        let secure = Server::https(|_| Reply::ok(""));
        let settings = NetSettings {
            environment: [("TF_REGISTRY_CLIENT_TIMEOUT".to_owned(), "1".to_owned())].into(),
            ..NetSettings::default()
        };
        let client = Client::trusting(settings, secure.trusted());
        for (url, expected) in [
            (
                "http://no-such-host.invalid/x".to_owned(),
                "the name no-such-host.invalid cannot be resolved",
            ),
            (format!("http://127.0.0.1:{hasty}/x"), "127.0.0.1 closed the connection"),
            (format!("https://127.0.0.1:{plain}/x"), "does not speak TLS"),
            (
                format!("http://127.0.0.1:{silent}/x"),
                "/x did not answer within 1 seconds",
            ),
        ] {
            let url = url.parse().unwrap();
            let error = client.get(url).to_registry().retries(0).send().await.unwrap_err();
            let text = error.to_string();
            assert!(text.contains(expected), "{text}");
            for layer in ["os error", "client error", "Kind", "{"] {
                assert!(!text.contains(layer), "{text}");
            }
        }
    }

    #[tokio::test]
    async fn refused_connection_is_reported_without_secrets() {
        let url = {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            format!("http://u:secret@{}/x?key=secret", listener.local_addr().unwrap())
        };
        let error = client().get(url.parse().unwrap()).retries(0).send().await.unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("127.0.0.1 refuses connections at port ") && !text.contains("secret"),
            "{text}"
        );
        assert!(error.is_unreachable() && !text.contains("os error"));
    }
}
