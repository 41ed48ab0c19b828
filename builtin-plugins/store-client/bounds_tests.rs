//! Tests with hostile servers: they must not receive secrets, and must not cause unlimited use of memory or time. The rules are those of
//! the crate `http`; the crate `net` has the same tests for its client.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use crate::testing::{Asked, Reply, Server};
use crate::{Answer, Failure, HeaderMap, HeaderValue, HttpClient, Method, Retries, Settings, Url};

fn client(largest: usize) -> HttpClient {
    let retries = Retries {
        max: 0,
        ..Retries::default()
    };
    let settings = Settings {
        largest,
        retries,
        ..Settings::default()
    };
    HttpClient::new(settings).unwrap()
}

async fn get(client: &HttpClient, address: &str, headers: HeaderMap) -> Result<Answer, Failure> {
    let url = Url::parse(address).unwrap();
    client.send(Method::GET, &url, headers, None).await
}

/// Returns the names of the headers in a request that must not be sent to another server after a redirect.
fn secrets(asked: &Asked) -> Vec<String> {
    let names = asked
        .headers
        .keys()
        .filter(|name| name.starts_with("x-") || *name == "authorization");
    names.cloned().collect()
}

#[tokio::test]
async fn no_secret_follows_a_redirect_to_another_origin() {
    let other = Server::start(|_| Reply::new(200, "")).await;
    let target = format!("{}/there", other.address());
    let server = Server::start(move |asked| match asked.path() {
        "/away" => Reply::new(307, "").with("Location", &target),
        "/here" => Reply::new(302, "").with("Location", "/stay"),
        "/file" => Reply::new(302, "").with("Location", "file:///etc/passwd"),
        _ => Reply::new(200, ""),
    })
    .await;
    let mut headers = HeaderMap::new();
    for name in [
        "authorization",
        "x-consul-token",
        "x-goog-encryption-key",
        "x-amz-server-side-encryption-customer-key",
        "x-amz-security-token",
    ] {
        headers.insert(name, HeaderValue::from_static("secret"));
    }
    let mut marked = HeaderValue::from_static("secret");
    marked.set_sensitive(true);
    headers.insert("x-harmless-name", marked);
    headers.insert("accept", HeaderValue::from_static("application/json"));
    let client = client(100);
    for (path, status) in [("/here", 200), ("/away", 200)] {
        let answer = get(&client, &format!("{}{path}", server.address()), headers.clone())
            .await
            .unwrap();
        assert_eq!(answer.status.as_u16(), status);
    }
    assert_eq!(secrets(&server.asked()[1]).len(), 6, "the same origin gets them all");
    let there = &other.asked()[0];
    assert_eq!(secrets(there), Vec::<String>::new());
    assert_eq!(there.header("accept"), "application/json");
    let error = get(&client, &format!("{}/file", server.address()), headers)
        .await
        .unwrap_err();
    assert!(
        error.message.contains("an address that cannot be used"),
        "{}",
        error.message
    );
}

/// Starts a server that answers every request with `head` and `part`. If `endless` is set, it repeats `part` forever.
fn raw(head: &'static [u8], part: &'static [u8], endless: bool) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            drop(stream.read(&mut [0; 4096]));
            let mut sent = stream.write_all(head).and_then(|()| stream.write_all(part));
            while endless && sent.is_ok() {
                sent = stream.write_all(part);
            }
        }
    });
    address
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_not_read_to_its_end() {
    let endless = raw(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n", &[b'x'; 4096], true);
    let announced = raw(b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n", b"x", false);
    for address in [endless, announced] {
        let error = get(&client(10_000), &address, HeaderMap::new()).await.unwrap_err();
        assert!(
            error.message.contains("larger than the 10000 bytes"),
            "{}",
            error.message
        );
        assert!(!error.passing, "it is not asked again");
    }
    let enough = raw(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n", b"state", false);
    let answer = get(&client(5), &enough, HeaderMap::new()).await.unwrap();
    assert_eq!(answer.text(), "state");
}

/// With `start_paused`, the clock advances as soon as all tasks wait, so the test does not take 30 seconds.
#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_is_given_up() {
    // The server never accepts a connection.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    let error = get(&client(10), &address, HeaderMap::new()).await.unwrap_err();
    assert!(
        error.message.contains("did not answer within 30 seconds"),
        "{}",
        error.message
    );
    assert!(error.passing);
}
