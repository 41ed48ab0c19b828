//! Connections: through other machines, to servers that start late, and interrupted ones.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::sshd::{Sshd, host_keys, key, public, user_key};
use crate::{apply, object};
use support::Workspace;
use support::ports::{ClosedPort, ServerPort};
use support::running::{Running, until};

const HELLO: &str = "provisioner \"remote-exec\" {\n  inline = [\"echo hello from $((40 + 2))\"]\n}\n";
const SAID: &str = "terraform_data.a (remote-exec): hello from 42";

fn saying(connection: &str) -> Workspace {
    Workspace::with(&[("main.tf", &object(&format!("{connection}{HELLO}")))])
}

fn by_key(server: &Sshd, more: &str) -> String {
    server.connection(&format!("private_key = file(\"{}\")\n{more}", user_key().display()))
}

pub fn a_server_that_comes_late() {
    let reserved = ServerPort::reserve();
    let port = reserved.number();
    let w = saying(&format!(
        "connection {{\nhost = \"localhost\"\nport = {port}\nuser = \"{}\"\nagent = false\nprivate_key = \
         file(\"{}\")\nscript_path = \"{}/late_%RAND%.sh\"\n}}\n",
        crate::sshd::user(),
        user_key().display(),
        std::env::temp_dir().display()
    ));
    let mut run = Running::monoform(&w, &["apply", "-no-color", "-auto-approve"]);
    // The second attempt fails with the same message.
    until("two attempts", || {
        run.output().matches("Connecting to remote host").count() >= 2
    });
    let _late = Sshd::start_at(reserved, "");
    run.sees(SAID);
    run.ends().ok();
    // The server never starts.
    let closed = ClosedPort::new();
    let w = saying(&format!(
        "connection {{\nhost = \"127.0.0.1\"\nport = {}\nagent = false\ntimeout = \"1500ms\"\n}}\n",
        closed.port()
    ));
    apply(&w).fails_with(&[
        "timeout - last error: dial tcp 127.0.0.1:",
        "connect: connection refused",
    ]);
}

pub fn paths_of_scripts() {
    let server = Sshd::usual();
    let plain = server.connection("");
    let line = plain
        .lines()
        .find(|line| line.starts_with("script_path"))
        .expect("a path");
    let base = tempfile::tempdir().expect("a directory");
    let apart = base.path().join("with space; touch owned");
    std::fs::create_dir(&apart).expect("a directory");
    let in_home = format!(".monoform-test-{}", std::process::id());
    for path in [format!("{}/s_%RAND%.sh", apart.display()), format!("~/{in_home}")] {
        let connection = by_key(&server, "").replace(line, &format!("script_path = \"{path}\""));
        assert!(connection.contains(&path), "{connection}");
        let w = saying(&connection);
        apply(&w).ok().shows(&[SAID]);
        assert!(!w.exists("owned") && !base.path().join("owned").exists(), "{path}");
    }
    // The scripts are at the paths from the arguments, and were emptied, as by Terraform.
    let left: Vec<_> = apart.read_dir().expect("a directory").flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(left[0].metadata().expect("it is there").len(), 0);
    // The home directory is the server's own, because the server does not have the environment of this test.
    let echo = format!("echo ~{}", crate::sshd::user());
    let home = std::process::Command::new("sh").args(["-c", &echo]).output();
    let home = String::from_utf8_lossy(&home.expect("sh runs").stdout)
        .trim()
        .to_owned();
    let script = Path::new(&home).join(in_home);
    assert_eq!(std::fs::read_to_string(&script).expect("the script"), "");
    std::fs::remove_file(script).expect("removed");
}

pub fn version_six_addresses() {
    let server = Sshd::usual();
    for host in ["::1", "[::1]"] {
        let w = saying(&by_key(&server, "").replace("127.0.0.1", host));
        apply(&w).ok().shows(&[SAID, "Host: [::1]"]);
    }
}

pub fn bastions() {
    let stranger = key("bastion_stranger", &["-t", "ed25519"]);
    let own = key("bastion_user", &["-t", "ed25519"]);
    let bastion = Sshd::start(&format!("AuthorizedKeysFile {}", public(&own).display()));
    let server = Sshd::usual();
    let through = |host_key: &Path| {
        let more = format!(
            "bastion_host = \"127.0.0.1\"\nbastion_port = {}\nbastion_private_key = file(\"{}\")\nbastion_host_key = \
             file(\"{}\")\nhost_key = file(\"{}\")",
            bastion.port,
            own.display(),
            public(host_key).display(),
            public(&host_keys()[1]).display(),
        );
        let file = "provisioner \"file\" {\n  content = \"through\"\n  destination = \"DIR/there\"\n}\n";
        let connection = by_key(&server, &more).replace("30s", "2s");
        Workspace::with(&[("main.tf", &object(&format!("{connection}{HELLO}{file}")))])
    };
    let w = through(&host_keys()[0]);
    w.write(
        "main.tf",
        &w.read("main.tf").replace("DIR", &w.dir().display().to_string()),
    );
    apply(&w)
        .ok()
        .shows(&[SAID, "Using configured bastion host...", "Checking Host Key: true"]);
    assert_eq!(w.read("there"), "through");
    assert!(bastion.log().contains("Accepted publickey"), "{}", bastion.log());
    let w = through(&stranger);
    apply(&w).fails_with(&["Error connecting to bastion: SSH authentication failed", "key mismatch"]);
    // The bastion cannot reach the target.
    let closed = ClosedPort::new();
    let more = format!(
        "bastion_host = \"127.0.0.1\"\nbastion_port = {}\nbastion_private_key = file(\"{}\")",
        bastion.port,
        own.display()
    );
    let connection = by_key(&server, &more)
        .replace(
            &format!("port = {}\nuser", server.port),
            &format!("port = {}\nuser", closed.port()),
        )
        .replace("30s", "2s");
    apply(&saying(&connection)).fails_with(&["the bastion could not connect to 127.0.0.1:"]);
}

/// Forwards bytes in both directions, until one side ends, or this number of bytes was sent to the server.
fn pass(client: TcpStream, server: TcpStream, limit: u64) {
    let passed = Arc::new(AtomicU64::new(0));
    let one = |mut from: TcpStream, mut to: TcpStream, counted: Option<Arc<AtomicU64>>| {
        std::thread::spawn(move || {
            let mut buffer = [0; 16 * 1024];
            while let Ok(n) = from.read(&mut buffer) {
                if n == 0 || to.write_all(&buffer[..n]).is_err() {
                    break;
                }
                let n = n as u64;
                if counted
                    .as_ref()
                    .is_some_and(|all| all.fetch_add(n, Ordering::SeqCst) + n > limit)
                {
                    break;
                }
            }
            drop(from.shutdown(Shutdown::Both));
            drop(to.shutdown(Shutdown::Both));
        })
    };
    let (up, down) = (
        client.try_clone().expect("a socket"),
        server.try_clone().expect("a socket"),
    );
    one(up, down, Some(passed));
    one(server, client, None);
}

/// Requests to a proxy.
type Asked = Arc<Mutex<Vec<String>>>;

/// Starts a proxy that speaks HTTP or SOCKS 5, depending on the client. Returns its port, and the requests that it
/// gets.
fn proxy(credentials: Option<(&'static str, &'static str)>) -> (u16, Asked) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let asked: Asked = Arc::default();
    let noted = asked.clone();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let noted = noted.clone();
            std::thread::spawn(move || serve(client, credentials, &noted));
        }
    });
    (port, asked)
}

fn serve(mut client: TcpStream, credentials: Option<(&str, &str)>, asked: &Asked) -> Option<()> {
    use base64::Engine as _;
    let mut first = [0];
    client.read_exact(&mut first).ok()?;
    // On a TLS handshake, a proxy without TLS closes the connection, or answers that this is no HTTP.
    if first[0] == 0x16 {
        client.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").ok()?;
        return None;
    }
    if first[0] != 5 {
        let mut head = first.to_vec();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            client.read_exact(&mut byte).ok()?;
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).ok()?;
        asked.lock().ok()?.push(head.clone());
        if let Some((user, password)) = credentials {
            let wanted = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
            if !head.contains(&format!("Proxy-Authorization: Basic {wanted}\r\n")) {
                client
                    .write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
                    .ok()?;
                return None;
            }
        }
        let target: SocketAddr = head.split(' ').nth(1)?.parse().ok()?;
        let server = TcpStream::connect(target).ok()?;
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").ok()?;
        pass(client, server, u64::MAX);
        return Some(());
    }
    let mut read = |n: usize| {
        let mut bytes = vec![0; n];
        client.read_exact(&mut bytes).ok()?;
        Some(bytes)
    };
    let count = read(1)?[0];
    let methods = read(usize::from(count))?;
    match credentials {
        None => client.write_all(&[5, 0]).ok()?,
        Some(_) if !methods.contains(&2) => {
            client.write_all(&[5, 0xff]).ok()?;
            return None;
        }
        Some((user, password)) => {
            client.write_all(&[5, 2]).ok()?;
            let mut read = |n: usize| {
                let mut bytes = vec![0; n];
                client.read_exact(&mut bytes).ok()?;
                Some(bytes)
            };
            let length = usize::from(read(2)?[1]);
            let given_user = read(length)?;
            let length = usize::from(read(1)?[0]);
            let given_password = read(length)?;
            let right = given_user == user.as_bytes() && given_password == password.as_bytes();
            client.write_all(&[1, u8::from(!right)]).ok()?;
            if !right {
                return None;
            }
        }
    }
    let mut request = [0; 10];
    client.read_exact(&mut request).ok()?;
    let port = u16::from_be_bytes([request[8], request[9]]);
    let address = Ipv4Addr::new(request[4], request[5], request[6], request[7]);
    asked.lock().ok()?.push(format!("socks {address}:{port}"));
    let server = TcpStream::connect((address, port)).ok()?;
    client.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0]).ok()?;
    pass(client, server, u64::MAX);
    Some(())
}

pub fn proxies() {
    let server = Sshd::usual();
    let (open, asked) = proxy(None);
    let (closed, asked_closed) = proxy(Some(("me", "se cret")));
    let with = |scheme: &str, port: u16, more: &str| {
        let more = format!("proxy_scheme = \"{scheme}\"\nproxy_host = \"127.0.0.1\"\nproxy_port = {port}\n{more}");
        saying(&by_key(&server, &more).replace("30s", "2s"))
    };
    for scheme in ["http", "https", "socks5"] {
        apply(&with(scheme, open, "")).ok().shows(&[
            SAID,
            "Using configured proxy host...",
            "ProxyHost: 127.0.0.1",
            "ProxyUserPassword: false",
        ]);
        let right = "proxy_user_name = \"me\"\nproxy_user_password = \"se cret\"";
        apply(&with(scheme, closed, right))
            .ok()
            .shows(&[SAID, "ProxyUserName: me", "ProxyUserPassword: true"]);
        let wrong = "proxy_user_name = \"me\"\nproxy_user_password = \"public\"";
        let said = if scheme == "socks5" {
            "the proxy refused the user name or the password"
        } else {
            "the proxy answered \"HTTP/1.1 407 Proxy Authentication Required\""
        };
        apply(&with(scheme, closed, wrong)).fails_with(&["Error connecting to proxy 127.0.0.1:", said]);
    }
    let asked = asked.lock().expect("a list").join("\n");
    assert!(
        asked.contains(&format!("CONNECT 127.0.0.1:{} HTTP/1.1\r\n", server.port)),
        "{asked}"
    );
    assert!(asked.contains(&format!("socks 127.0.0.1:{}", server.port)), "{asked}");
    assert!(!asked_closed.lock().expect("a list").is_empty());
    // The proxy connects to the bastion, and the bastion to the target.
    let bastion = Sshd::usual();
    let more = format!("bastion_host = \"127.0.0.1\"\nbastion_port = {}", bastion.port);
    apply(&with("socks5", open, &more)).ok().shows(&[SAID]);
    assert!(bastion.log().contains("Accepted publickey"));
}

/// Starts a TLS terminator in front of another server of this machine; returns its port and its certificate.
fn tls_before(port: u16) -> (u16, String) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("a configuration");
    let config = Arc::new(config);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let own = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let config = config.clone();
            std::thread::spawn(move || {
                let server = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("the server");
                let connection = rustls::ServerConnection::new(config).expect("a connection");
                // A TLS connection cannot be split, so one thread serves both directions, and neither may block for
                // long.
                for socket in [&client, &server] {
                    socket
                        .set_read_timeout(Some(Duration::from_millis(5)))
                        .expect("a limit");
                }
                let mut outside = rustls::StreamOwned::new(connection, client);
                let mut inside = server;
                while copy_some(&mut outside, &mut inside) && copy_some(&mut inside, &mut outside) {}
            });
        }
    });
    (own, made.cert.pem())
}

/// Copies the available bytes, and waits a little if there are none. Returns false at the end and after an error.
fn copy_some(from: &mut impl Read, to: &mut impl Write) -> bool {
    let mut buffer = [0; 16 * 1024];
    match from.read(&mut buffer) {
        Ok(0) => false,
        Ok(n) => to.write_all(&buffer[..n]).and_then(|()| to.flush()).is_ok(),
        Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
    }
}

pub fn a_proxy_within_tls() {
    let server = Sshd::usual();
    let (plain, asked) = proxy(Some(("me", "se cret")));
    let (port, certificate) = tls_before(plain);
    let more = format!(
        "proxy_scheme = \"https\"\nproxy_host = \"127.0.0.1\"\nproxy_port = {port}\nproxy_user_name = \"me\"\n\
         proxy_user_password = \"se cret\""
    );
    let w = saying(&by_key(&server, &more).replace("30s", "2s"));
    w.write("ca.pem", &certificate);
    let trusted = w.dir().join("ca.pem").display().to_string();
    apply(&w.env("SSL_CERT_FILE", trusted)).ok().shows(&[SAID]);
    let before = asked.lock().expect("a list").len();
    assert!(before > 0);
    // If the proxy's certificate is not trusted, no request is sent to it.
    let w = saying(&by_key(&server, &more).replace("30s", "2s"));
    apply(&w).fails_with(&["Error connecting to proxy 127.0.0.1:", "certificate"]);
    assert_eq!(asked.lock().expect("a list").len(), before);
}

pub fn a_connection_that_is_cut() {
    let server = Sshd::usual();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let target = server.port;
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = TcpStream::connect((Ipv4Addr::LOCALHOST, target)).expect("the server");
            pass(client, server, 3_000_000);
        }
    });
    let w = Workspace::new();
    std::fs::File::create(w.dir().join("large"))
        .and_then(|file| file.set_len(20_000_000))
        .expect("a file");
    let connection = by_key(&server, "").replace(&format!("port = {target}"), &format!("port = {port}"));
    w.write(
        "main.tf",
        &object(&format!(
            "{connection}provisioner \"file\" {{\n  source = \"large\"\n  destination = \"{}/copy\"\n}}\n",
            w.dir().display()
        )),
    );
    let began = Instant::now();
    apply(&w).fails_with(&["file provisioner error", "Upload failed: ", "closed by the other side"]);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!(w.state()["resources"][0]["instances"][0]["status"], "tainted");
}
