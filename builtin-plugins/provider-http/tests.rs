//! Tests of the data source with servers on this machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use monoform_sdk::cty::{Type, Value};
use monoform_sdk::{Diagnostic, Result};
use monoform_sdk_testing::Harness;

use crate::test_server::{Asked, Authority, Reply, Server, home_made};

async fn ask(url: &str, more: &[(&str, Value)]) -> Result<Value> {
    let mut config = vec![("url", Value::string(url))];
    config.extend_from_slice(more);
    Harness::new(crate::provider()).data("http", &config).await
}

async fn body(url: &str, more: &[(&str, Value)]) -> String {
    let state = ask(url, more).await.unwrap();
    state.get("response_body").unwrap().as_str().unwrap().to_owned()
}

async fn error(url: &str, more: &[(&str, Value)]) -> Diagnostic {
    ask(url, more).await.unwrap_err().0.remove(0)
}

fn headers(entries: &[(&str, &str)]) -> (&'static str, Value) {
    let entries = entries.iter().map(|(k, v)| (Arc::from(*k), Value::string(v)));
    ("request_headers", Value::map(Type::String, entries.collect()))
}

fn retry(attempts: i64, min: i64, max: i64) -> (&'static str, Value) {
    let members = [("attempts", attempts), ("min_delay_ms", min), ("max_delay_ms", max)];
    ("retry", Value::object(members.map(|(k, n)| (k, Value::number(n)))))
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    std::io::Write::write_all(&mut encoder, text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

/// Formats a received request as one line.
fn line(asked: &Asked) -> String {
    let words = [&asked.method, &asked.path, &asked.body];
    words.map(String::as_str).join(" ").trim_end().to_owned()
}

#[test]
fn the_schema_is_the_official_one() {
    assert_eq!(
        Harness::new(crate::provider()).schema_text(),
        "data http v0\n  body string computed deprecated\n  ca_cert_pem string optional\n  client_cert_pem string optional\n  \
         client_key_pem string optional\n  id string computed\n  insecure bool optional\n  method string optional\n  \
         request_body string optional\n  request_headers map(string) optional\n  request_timeout_ms number optional\n  \
         response_body string computed\n  response_body_base64 string computed\n  response_headers map(string) computed\n  \
         status_code number computed\n  url string required\n"
    );
}

#[tokio::test]
async fn a_response_with_its_parts() {
    let server = Server::http(|asked| match &*asked.path {
        "/gz" => Reply::ok(gzip("small again")).with("content-encoding", "GZIP"),
        "/bytes" => Reply::ok(b"\xffa".to_vec()),
        path if path.starts_with("/status") => Reply::new(path[7..].parse().unwrap(), "text"),
        _ => Reply::ok("é")
            .with("x-two", "1")
            .with("x-two", "2")
            .with("content-type", "text/plain"),
    })
    .await;
    let url = server.url("/é?a=b");
    let state = ask(&url, &[]).await.unwrap();
    for (name, expected) in [
        ("id", Value::string(&url)),
        ("response_body", "é".into()),
        ("body", "é".into()),
        ("response_body_base64", "w6k=".into()),
        ("status_code", 200.into()),
        ("method", Value::null(Type::String)),
    ] {
        assert_eq!(state.get(name), Some(&expected), "{name}");
    }
    let got = state.get("response_headers").unwrap();
    let header = |name: &str| got.get(name).and_then(Value::as_str).map(str::to_owned);
    assert_eq!(header("X-Two").as_deref(), Some("1, 2"));
    assert_eq!(header("Content-Type").as_deref(), Some("text/plain"));
    assert_eq!(header("Content-Length").as_deref(), Some("2"));

    let state = ask(&server.url("/gz"), &[]).await.unwrap();
    assert_eq!(state.get("response_body"), Some(&"small again".into()));
    let got = state.get("response_headers").unwrap();
    assert!(got.get("Content-Encoding").is_none() && got.get("Content-Length").is_none());
    let as_it_is = ask(&server.url("/gz"), &[headers(&[("accept-encoding", "gzip")])])
        .await
        .unwrap();
    assert!(
        as_it_is
            .get("response_headers")
            .unwrap()
            .get("Content-Encoding")
            .is_some()
    );

    let state = ask(&server.url("/bytes"), &[]).await.unwrap();
    assert_eq!(state.get("response_body"), Some(&"\u{fffd}a".into()));
    assert_eq!(state.get("response_body_base64"), Some(&"/2E=".into()));

    for status in [204, 304, 400, 404, 501] {
        let state = ask(&server.url(&format!("/status{status}")), &[]).await.unwrap();
        assert_eq!(state.get("status_code"), Some(&i64::from(status).into()));
    }
}

#[tokio::test]
async fn a_request_with_its_parts() {
    let server = Server::http(|_| Reply::ok("")).await;
    let url = server.url("/");
    ask(&url, &[]).await.unwrap();
    ask(&url, &[("method", "HEAD".into())]).await.unwrap();
    let given = headers(&[
        ("HOST", "other.example"),
        ("x-A", "1"),
        ("User-Agent", "me"),
        ("content-length", "99"),
    ]);
    ask(&url, &[("method", "POST".into()), ("request_body", "b".into()), given])
        .await
        .unwrap();
    ask(&url, &[("method", "POST".into()), ("request_body", "".into())])
        .await
        .unwrap();
    let with_password = url.replacen("://", "://me:secret@", 1);
    ask(&with_password, &[]).await.unwrap();

    let asked = server.asked();
    let lines: Vec<_> = asked.iter().map(line).collect();
    assert_eq!(lines, ["GET /", "HEAD /", "POST / b", "POST /", "GET /"]);
    assert_eq!(asked[0].header("user-agent"), "Go-http-client/1.1");
    assert_eq!(asked[0].header("accept-encoding"), "gzip");
    assert!(!asked[0].headers.contains_key("content-length") && !asked[1].headers.contains_key("accept-encoding"));
    for (name, expected) in [
        ("host", "other.example"),
        ("x-a", "1"),
        ("user-agent", "me"),
        ("content-length", "1"),
    ] {
        assert_eq!(asked[2].header(name), expected, "{name}");
    }
    assert_eq!(asked[3].header("content-length"), "0");
    assert_eq!(asked[4].header("authorization"), "Basic bWU6c2VjcmV0");

    for (given, summary) in [
        (("method", Value::from("get")), "Invalid Attribute Value Match"),
        (("method", "PUT".into()), "Invalid Attribute Value Match"),
        (("request_timeout_ms", 0.into()), "Invalid Attribute Value"),
        (retry(-1, 0, 0), "Invalid Attribute Value"),
        (retry(1, 10, 9), "Invalid Attribute Value"),
        (headers(&[("a b", "x")]), "Error creating request"),
        (headers(&[("a", "x\ny")]), "Error creating request"),
    ] {
        let name = given.0;
        assert_eq!(error(&url, &[given]).await.summary, summary, "{name}");
    }
    assert_eq!(error("example.com/x", &[]).await.summary, "Error creating request");
    let found = error("ftp://example.com/x", &[retry(3, 60_000, 60_000)]).await;
    assert!(
        found.detail.contains("unsupported protocol scheme \"ftp\""),
        "{}",
        found.detail
    );
}

#[tokio::test]
async fn redirects_are_followed_as_they_say() {
    let other =
        Server::http(|asked| Reply::ok(format!("{}{}", asked.header("authorization"), asked.header("x-a")))).await;
    let away = other.url("/");
    let server = Server::http(move |asked| match &*asked.path {
        "/away" => Reply::redirect(302, &away.replace("127.0.0.1", "localhost")),
        "/file" => Reply::redirect(302, "file:///etc/passwd"),
        "/nowhere" => Reply::new(302, "stay"),
        "/end" => Reply::ok(format!(
            "{} {}",
            line(asked),
            asked.header("host").starts_with("virtual")
        )),
        path => match path[1..].split_once('/') {
            Some((status, "0")) => Reply::redirect(status.parse().unwrap(), "/end"),
            Some((status, n)) => {
                let n: u32 = n.parse().unwrap();
                Reply::redirect(status.parse().unwrap(), &format!("/{status}/{}", n - 1))
            }
            None => Reply::new(404, ""),
        },
    })
    .await;
    let post = [("method", Value::from("POST")), ("request_body", "b".into())];
    for (path, given, expected) in [
        ("/301/2", &post[..], "GET /end false"),
        ("/303/0", &post[..], "GET /end false"),
        ("/307/0", &post[..], "POST /end b false"),
        ("/308/1", &post[..], "POST /end b false"),
        ("/302/8", &[], "GET /end false"),
        ("/302/0", &[headers(&[("host", "virtual")])], "GET /end true"),
        ("/nowhere", &[], "stay"),
        (
            "/away",
            &[headers(&[("authorization", "secret"), ("x-a", "kept")])],
            "kept",
        ),
    ] {
        assert_eq!(body(&server.url(path), given).await, expected, "{path}");
    }
    assert_eq!(server.asked()[1].header("referer"), server.url("/301/2"));

    let before = server.asked().len();
    let found = error(&server.url("/302/9"), &[retry(3, 60_000, 60_000)]).await;
    assert!(found.detail.contains("stopped after 10 redirects"), "{}", found.detail);
    assert_eq!(server.asked().len() - before, 10);
    let found = error(&server.url("/file"), &[retry(3, 60_000, 60_000)]).await;
    assert!(
        found.detail.contains("unsupported protocol scheme \"file\""),
        "{}",
        found.detail
    );
}

#[tokio::test]
async fn what_is_tried_again() {
    let count = AtomicUsize::new(0);
    let server = Server::http(
        move |asked| match (&*asked.path, count.fetch_add(1, Ordering::SeqCst)) {
            ("/third", n) if n < 2 => Reply::new(503, ""),
            ("/soon", 0) => Reply::new(429, "").with("retry-after", "0"),
            ("/past", _) => Reply::new(503, "").with("retry-after", "Fri, 31 Dec 1999 23:59:59 GMT"),
            ("/never", _) => Reply::new(500, ""),
            _ => Reply::ok(format!("at last, {}", asked.body)),
        },
    )
    .await;
    let post = [
        ("method", Value::from("POST")),
        ("request_body", "b".into()),
        retry(2, 1, 2),
    ];
    assert_eq!(body(&server.url("/third"), &post).await, "at last, b");

    let found = error(&server.url("/never"), &[]).await;
    assert_eq!(found.summary, "Error making request");
    assert!(
        found.detail.contains("giving up after 1 attempt(s)") && found.detail.contains("500"),
        "{}",
        found.detail
    );
    let found = error(
        &server.url("/never").replacen("://", "://me:secret@", 1),
        &[retry(1, 1, 1)],
    )
    .await;
    assert!(
        found.detail.contains("giving up after 2 attempt(s)"),
        "{}",
        found.detail
    );
    assert!(!found.detail.contains("secret"), "{}", found.detail);
    // The pause that the server requests overrides the configured pauses.
    let begin = Instant::now();
    assert!(
        error(&server.url("/past"), &[retry(2, 60_000, 60_000)])
            .await
            .detail
            .contains("3 attempt(s)")
    );
    assert!(begin.elapsed() < Duration::from_secs(30));

    let nobody = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let found = error(&format!("http://{nobody}/"), &[retry(1, 1, 1)]).await;
    assert!(
        found.detail.contains("giving up after 2 attempt(s)"),
        "{}",
        found.detail
    );
    assert!(found.detail.contains("refuses connections"), "{}", found.detail);
}

#[tokio::test]
async fn a_server_that_takes_too_long() {
    let server = Server::http(|_| Reply::ok("late").late(Duration::from_secs(60))).await;
    let limit = ("request_timeout_ms", Value::from(30));
    let found = error(&server.url("/"), &[limit, retry(1, 1, 1)]).await;
    let expected = "request exceeded the specified timeout: 30ms, err: GET ";
    assert!(found.detail.starts_with(expected), "{}", found.detail);
    assert!(found.detail.contains("2 attempt(s)"), "{}", found.detail);
    assert_eq!(server.asked().len(), 2);
}

#[tokio::test]
async fn servers_and_clients_with_certificates() {
    let (authority, other) = (Authority::new("one"), Authority::new("other"));
    let ca = |a: &Authority| ("ca_cert_pem", Value::string(format!("# a comment\n{}", a.pem)));
    let server = Server::https(&authority.sign("127.0.0.1"), None, |asked| {
        Reply::ok(format!("{:?}", asked.version)).with("x-lower-case", "1")
    })
    .await;
    let url = server.url("/");
    assert_eq!(body(&url, &[ca(&authority)]).await, "HTTP/2.0");
    assert_eq!(body(&url, &[("insecure", true.into())]).await, "HTTP/2.0");
    let state = ask(&url, &[ca(&authority), headers(&[("Host", "virtual")])])
        .await
        .unwrap();
    assert_eq!(state.get("response_body"), Some(&"HTTP/1.1".into()));
    assert!(state.get("response_headers").unwrap().get("X-Lower-Case").is_some());
    assert_eq!(server.asked()[2].header("host"), "virtual");

    // A request that fails because of an untrusted certificate is not retried.
    for given in [vec![], vec![ca(&other)]] {
        let mut given = given;
        given.push(retry(3, 60_000, 60_000));
        let found = error(&url, &given).await;
        assert!(
            found.detail.contains("signed by an unknown authority"),
            "{}",
            found.detail
        );
    }
    for (given, summary) in [
        (vec![("ca_cert_pem", Value::from(""))], "Error configuring TLS client"),
        (vec![("ca_cert_pem", "nonsense".into())], "Error configuring TLS client"),
        (
            vec![ca(&authority), ("insecure", false.into())],
            "Invalid Attribute Combination",
        ),
    ] {
        assert_eq!(error(&url, &given).await.summary, summary);
    }

    let wrong_name = Server::https(&authority.sign("other.example"), None, |_| Reply::ok("")).await;
    let found = error(&wrong_name.url("/"), &[ca(&authority), retry(3, 60_000, 60_000)]).await;
    assert!(found.detail.contains("is for other names"), "{}", found.detail);

    let pair = authority.sign("client");
    let client = |certificate: &str, key: &str| {
        [
            ("client_cert_pem", Value::string(certificate)),
            ("client_key_pem", Value::string(key)),
            ca(&authority),
        ]
    };
    let server = Server::https(&authority.sign("127.0.0.1"), Some(&authority), |_| Reply::ok("welcome")).await;
    let url = server.url("/");
    assert_eq!(body(&url, &client(&pair.0, &pair.1)).await, "welcome");
    assert!(
        error(&url, &[ca(&authority)])
            .await
            .detail
            .contains("giving up after 1 attempt(s)")
    );
    let (stranger, key) = other.sign("client");
    assert!(error(&url, &client(&stranger, &key)).await.summary == "Error making request");
    for (certificate, key) in [(&*pair.0, &*key), ("nonsense", &*pair.1), (&*pair.0, "nonsense")] {
        assert_eq!(
            error(&url, &client(certificate, key)).await.summary,
            "error creating x509 key pair"
        );
    }
    let found = error(&url, &client(&pair.0, &pair.1)[..1]).await;
    assert_eq!(found.summary, "Invalid Attribute Combination");
}

#[tokio::test]
async fn a_server_s_own_certificate_is_trusted_where_it_is_named() {
    let made = home_made("127.0.0.1");
    let server = Server::https(&made, None, |_| Reply::ok("home")).await;
    assert_eq!(
        body(&server.url("/"), &[("ca_cert_pem", Value::string(&made.0))]).await,
        "home"
    );

    let elsewhere = home_made("other.example");
    let server = Server::https(&elsewhere, None, |_| Reply::ok("home")).await;
    let found = error(&server.url("/"), &[("ca_cert_pem", Value::string(&elsewhere.0))]).await;
    assert!(found.detail.contains("is for other names"), "{}", found.detail);
}
