//! A WinRM service for tests. It parses every request, stores files in memory, and runs the few commands that it supports.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use monoform_sdk::cty::{Type, Value};
use monoform_sdk::{Output, Stop};
use roxmltree::Document;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;

use crate::{Connection, Content, Result, Settings, connect};

/// Record of the requests, and the state of the service.
#[derive(Default)]
struct Seen {
    actions: Vec<String>,
    files: HashMap<String, Vec<u8>>,
    /// Commands by shell, in the order of their start.
    commands: HashMap<String, Vec<String>>,
    /// Output of commands that has not been received yet.
    outputs: HashMap<String, Vec<String>>,
    authorizations: Vec<String>,
    shells: usize,
}

type Shared = Arc<Mutex<Seen>>;

fn lock(seen: &Shared) -> std::sync::MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Clone, Copy, PartialEq)]
enum Login {
    Basic,
    Ntlm,
}

/// Starts a service and returns its port.
async fn service(login: Login) -> (u16, Shared) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let seen = Shared::default();
    let shared = seen.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, login, shared.clone()));
        }
    });
    (port, seen)
}

/// The challenge message of the example in MS-NLMP.
fn challenge() -> Vec<u8> {
    let mut message = b"NTLMSSP\0\x02\0\0\0".to_vec();
    message.extend([12, 0, 12, 0, 56, 0, 0, 0]);
    message.extend(0xe28a_8233u32.to_le_bytes());
    message.extend([1, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef]);
    message.extend([0; 8]);
    message.extend([36, 0, 36, 0, 68, 0, 0, 0]);
    message.extend([6, 0, 0x70, 0x17, 0, 0, 0, 15]);
    let utf16 = |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
    message.extend(utf16("Server"));
    message.extend([2, 0, 12, 0]);
    message.extend(utf16("Domain"));
    message.extend([1, 0, 12, 0]);
    message.extend(utf16("Server"));
    message.extend([0; 4]);
    message
}

async fn serve<S: AsyncRead + AsyncWrite>(stream: S, login: Login, seen: Shared) -> Option<()> {
    let (reader, mut writer) = tokio::io::split(stream);
    let mut reader = BufReader::new(reader);
    let mut is_in = false;
    loop {
        let (mut length, mut authorization) = (0, String::new());
        let mut first = String::new();
        reader.read_line(&mut first).await.ok().filter(|n| *n > 0)?;
        assert_eq!(first.trim_end(), "POST /wsman HTTP/1.1");
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).await.ok()?;
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                break;
            };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse().unwrap(),
                "authorization" => authorization = value.to_owned(),
                "content-type" => assert_eq!(value, "application/soap+xml;charset=UTF-8"),
                _ => {}
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).await.ok()?;
        let mut header = String::new();
        match login {
            Login::Basic => is_in = authorization == format!("Basic {}", BASE64.encode("me:secret")),
            Login::Ntlm if !authorization.is_empty() => {
                let token = BASE64.decode(authorization.strip_prefix("Negotiate ")?).ok()?;
                match token[8] {
                    1 => {
                        assert!(body.is_empty());
                        header = format!("WWW-Authenticate: Negotiate {}\r\n", BASE64.encode(challenge()));
                    }
                    3 => is_in = proves(&token),
                    other => panic!("message {other}"),
                }
            }
            Login::Ntlm => {}
        }
        lock(&seen).authorizations.push(authorization);
        let (status, answer) = if is_in {
            answer(&seen, std::str::from_utf8(&body).unwrap()).await
        } else {
            (401, String::new())
        };
        let head = format!(
            "HTTP/1.1 {status} X\r\n{header}Content-Length: {}\r\n\r\n",
            answer.len()
        );
        writer.write_all(head.as_bytes()).await.ok()?;
        writer.write_all(answer.as_bytes()).await.ok()?;
    }
}

/// Returns true if a third message proves knowledge of the password in reply to the challenge above.
fn proves(message: &[u8]) -> bool {
    use hmac::{Hmac, KeyInit, Mac};
    use md4::{Digest, Md4};
    let utf16 = |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
    let part = |at: usize| {
        let number = |i: usize| usize::from(message[at + i]) + 256 * usize::from(message[at + i + 1]);
        &message[number(4)..number(4) + number(0)]
    };
    assert_eq!(part(28), utf16("CORP"));
    assert_eq!(part(36), utf16("me"));
    let mac = |key: &[u8], parts: &[&[u8]]| {
        let mut mac = Hmac::<md5::Md5>::new_from_slice(key).unwrap();
        parts.iter().for_each(|part| mac.update(part));
        mac.finalize().into_bytes().to_vec()
    };
    let key = mac(&Md4::digest(utf16("secret")), &[&utf16("MECORP")]);
    let answer = part(20);
    answer[..16] == mac(&key, &[&challenge()[24..32], &answer[16..]])
}

fn envelope(body: &str) -> String {
    format!(
        "<s:Envelope xmlns:s=\"http://www.w3.org/2003/05/soap-envelope\" \
         xmlns:rsp=\"http://schemas.microsoft.com/wbem/wsman/1/windows/shell\" \
         xmlns:w=\"http://schemas.dmtf.org/wbem/wsman/1/wsman.xsd\"><s:Header/><s:Body>{body}</s:Body></s:Envelope>"
    )
}

async fn answer(seen: &Shared, request: &str) -> (u16, String) {
    let (action, shell, command, text) = {
        let document = Document::parse(request).unwrap();
        let named = |name: &str| document.descendants().find(|node| node.tag_name().name() == name);
        let text = |name: &str| named(name).and_then(|node| node.text()).unwrap_or_default().to_owned();
        for needed in [
            "To",
            "MessageID",
            "ResourceURI",
            "OperationTimeout",
            "ReplyTo",
            "MaxEnvelopeSize",
        ] {
            assert!(named(needed).is_some(), "{needed} is missing");
        }
        let command = document.descendants().find_map(|node| node.attribute("CommandId"));
        let action = text("Action").rsplit('/').next().unwrap_or_default().to_owned();
        (
            action,
            text("Selector"),
            command.unwrap_or_default().to_owned(),
            text("Command"),
        )
    };
    lock(seen).actions.push(action.clone());
    match action.as_str() {
        "Create" => {
            let mut seen = lock(seen);
            seen.shells += 1;
            let id = format!("SHELL-{}", seen.shells);
            (
                200,
                envelope(&format!("<rsp:Shell><rsp:ShellId>{id}</rsp:ShellId></rsp:Shell>")),
            )
        }
        "Command" => {
            let mut seen = lock(seen);
            let commands = seen.commands.entry(shell.clone()).or_default();
            commands.push(text.clone());
            let id = format!("{shell}-{}", commands.len());
            let outputs = run(&mut seen, &text);
            seen.outputs.insert(id.clone(), outputs);
            let body = format!("<rsp:CommandResponse><rsp:CommandId>{id}</rsp:CommandId></rsp:CommandResponse>");
            (200, envelope(&body))
        }
        "Receive" => {
            let next = {
                let mut seen = lock(seen);
                let left = seen.outputs.entry(command).or_default();
                (!left.is_empty()).then(|| left.remove(0))
            };
            match next {
                Some(part) if part == "timeout" => {
                    let fault =
                        "<s:Fault><s:Code><s:Subcode><s:Value>w:TimedOut</s:Value></s:Subcode></s:Code></s:Fault>";
                    (500, envelope(fault))
                }
                Some(part) => (
                    200,
                    envelope(&format!("<rsp:ReceiveResponse>{part}</rsp:ReceiveResponse>")),
                ),
                None => {
                    // A command that does not end.
                    tokio::time::sleep(Duration::from_secs(60)).await;
                    (500, String::new())
                }
            }
        }
        _ => (200, envelope("")),
    }
}

fn stream(name: &str, text: &str) -> String {
    format!(
        "<rsp:Stream Name=\"{name}\" CommandId=\"C\">{}</rsp:Stream>",
        BASE64.encode(text)
    )
}

fn done(status: i64) -> String {
    format!(
        "<rsp:CommandState CommandId=\"C\" State=\"http://schemas.microsoft.com/wbem/wsman/1/windows/shell/CommandState/Done\">\
         <rsp:ExitCode>{status}</rsp:ExitCode></rsp:CommandState>"
    )
}

/// Runs a command. Returns the parts of its output.
fn run(seen: &mut Seen, command: &str) -> Vec<String> {
    assert!(command.len() < 8192);
    if let Some((text, file)) = command.strip_prefix("echo ").and_then(|rest| rest.split_once(" >> ")) {
        let file = seen.files.entry(file.trim_matches('"').to_owned()).or_default();
        file.extend(format!("{text} \r\n").into_bytes());
        return vec![done(0)];
    }
    if command.starts_with("powershell.exe ") {
        let encoded = BASE64.decode(command.rsplit(' ').next().unwrap()).unwrap();
        let units: Vec<u16> = encoded.chunks(2).map(|b| u16::from_le_bytes([b[0], b[1]])).collect();
        let script = String::from_utf16(&units).unwrap();
        let quoted = |before: &str| {
            let rest = script.split(before).nth(1).unwrap();
            rest.split('\'').nth(1).unwrap().to_owned()
        };
        let from = format!("%TEMP%\\{}", quoted("Join-Path $env:TEMP "));
        let to = quoted("PSPath(");
        if to.contains("directory") {
            return vec![stream("stderr", &format!("{to} is a directory\r\n")), done(1)];
        }
        let text = String::from_utf8(seen.files.remove(&from).unwrap_or_default()).unwrap();
        let content = text.lines().flat_map(|line| BASE64.decode(line.trim()).unwrap());
        let content = content.collect();
        seen.files.insert(to, content);
        return vec![done(0)];
    }
    let script = seen.files.get(command).cloned().unwrap_or_default();
    match String::from_utf8(script).unwrap().trim() {
        "fail" => vec![done(3)],
        "wait" => vec![stream("stdout", "waiting")],
        _ => vec![
            "timeout".to_owned(),
            format!("{}{}", stream("stdout", "one\r\ntw"), stream("stderr", "oops\r\n")),
            stream("stdout", "o\r\n"),
            done(0),
        ],
    }
}

async fn connection(port: u16, arguments: &[(&str, &str)]) -> (Settings, Result<Connection>) {
    let port = port.to_string();
    let usual = [
        ("type", "winrm"),
        ("host", "127.0.0.1"),
        ("port", &port),
        ("password", "secret"),
        ("timeout", "2s"),
    ];
    let all = usual
        .iter()
        .chain(arguments)
        .map(|(k, v)| ((*k).into(), Value::string(*v)));
    let settings = Settings::read(&Value::map(Type::String, all.collect())).unwrap();
    let connected = connect(&settings, None, &mut Stop::never()).await;
    (settings, connected)
}

async fn shown(connection: &mut Connection, command: &str, stop: &mut Stop) -> (Vec<String>, Result<()>) {
    let (output, mut lines) = Output::channel();
    let result = connection.run(command, &output, stop).await;
    drop(output);
    let mut all = Vec::new();
    while let Some(line) = lines.recv().await {
        all.push(line);
    }
    (all, result)
}

#[tokio::test]
async fn scripts_are_written_and_run() {
    for (login, arguments) in [
        (Login::Basic, &[("user", "me")][..]),
        (Login::Ntlm, &[("user", "CORP\\me"), ("use_ntlm", "true")]),
    ] {
        let (port, seen) = service(login).await;
        let (settings, connected) = connection(port, arguments).await;
        let mut machine = connected.unwrap();
        let path = settings.script_path();
        assert!(path.starts_with("C:/Temp/terraform_"), "{path}");
        machine.upload_script(&path, b"echo one\r\n".to_vec()).await.unwrap();
        assert_eq!(lock(&seen).files[&path], b"echo one\r\n");
        let (lines, result) = shown(&mut machine, &path, &mut Stop::never()).await;
        result.unwrap();
        let trimmed: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
        assert!(trimmed.contains(&"one") && trimmed.contains(&"oops"), "{lines:?}");
        machine
            .upload("C:/fails", Content::Bytes(b"fail".to_vec()))
            .await
            .unwrap();
        let (_, result) = shown(&mut machine, "C:/fails", &mut Stop::never()).await;
        assert_eq!(result.unwrap_err().to_string(), "\"C:/fails\" exit status: 3");
        let seen = lock(&seen);
        let count = |action: &str| seen.actions.iter().filter(|a| *a == action).count();
        // Every shell was deleted.
        assert_eq!(count("Create"), count("Delete"));
        if login == Login::Ntlm {
            // There was one connection with one login, which sends the header twice.
            assert_eq!(seen.authorizations.iter().filter(|a| !a.is_empty()).count(), 2);
        }
    }
}

#[tokio::test]
async fn files_go_in_parts_and_shells_are_made_anew() {
    let (port, seen) = service(Login::Basic).await;
    let (_, connected) = connection(port, &[("user", "me")]).await;
    let mut machine = connected.unwrap();
    let content: Vec<u8> = (0..200_000u32).flat_map(|n| n.to_le_bytes()).take(150_000).collect();
    machine
        .upload("C:/data/large", Content::Bytes(content.clone()))
        .await
        .unwrap();
    assert_eq!(lock(&seen).files["C:/data/large"], content);
    machine.upload("C:/empty", Content::Bytes(Vec::new())).await.unwrap();
    assert_eq!(lock(&seen).files["C:/empty"], b"");
    let error = machine
        .upload("C:/directory", Content::Bytes(b"x".to_vec()))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "restoring the file returned code=1: C:/directory is a directory"
    );

    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("src/inner")).unwrap();
    for name in ["a", "inner/b", ".DS_Store"] {
        std::fs::write(dir.path().join("src").join(name), name).unwrap();
    }
    let source = dir.path().join("src");
    machine.upload_directory("C:/to", &source, false).await.unwrap();
    machine.upload_directory("C:/all/", &source, true).await.unwrap();
    let seen = lock(&seen);
    let mut names: Vec<&str> = seen
        .files
        .keys()
        .map(String::as_str)
        .filter(|n| n.contains("to/") || n.contains("all/"))
        .collect();
    names.sort_unstable();
    assert_eq!(
        names,
        ["C:/all/a", "C:/all/inner/b", "C:/to/src/a", "C:/to/src/inner/b"]
    );
    assert!(seen.commands.values().all(|commands| commands.len() <= 15));
}

#[tokio::test]
async fn wrong_password_is_reported() {
    for (login, arguments) in [
        (Login::Basic, &[("user", "you")][..]),
        (
            Login::Ntlm,
            &[("user", "CORP\\me"), ("password", "wrong"), ("use_ntlm", "true")],
        ),
    ] {
        let (port, _) = service(login).await;
        let error = connection(port, arguments).await.1.map(|_| ()).unwrap_err().to_string();
        assert!(
            error.starts_with("timeout - last error: http response error: 401"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn interruption_ends_the_command() {
    let (port, seen) = service(Login::Basic).await;
    let (_, connected) = connection(port, &[("user", "me")]).await;
    let mut machine = connected.unwrap();
    machine
        .upload("C:/waits", Content::Bytes(b"wait".to_vec()))
        .await
        .unwrap();
    let mut stop = Stop::after(Duration::from_millis(200));
    let (lines, result) = shown(&mut machine, "C:/waits", &mut stop).await;
    assert_eq!(lines, ["waiting"]);
    assert!(result.unwrap_err().to_string().ends_with("interrupted"));
    let actions = lock(&seen).actions.clone();
    assert_eq!(actions[actions.len() - 2..], ["Signal", "Delete"]);
}

/// Starts a service over TLS and returns its port and its certificate.
async fn secure_service() -> (u16, String) {
    let names = vec!["127.0.0.1".to_owned()];
    let pair = rcgen::generate_simple_self_signed(names).unwrap();
    let key = rustls::pki_types::PrivateKeyDer::try_from(pair.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![pair.cert.der().clone()], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if let Ok(stream) = acceptor.accept(stream).await {
                tokio::spawn(serve(stream, Login::Basic, Shared::default()));
            }
        }
    });
    (port, pair.cert.pem())
}

#[tokio::test]
async fn certificates_are_believed_as_the_block_says() {
    let (port, certificate) = secure_service().await;
    let stranger = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let stranger = stranger.cert.pem();
    for (name, value, fine) in [
        ("insecure", "true", true),
        ("cacert", certificate.as_str(), true),
        ("cacert", stranger.as_str(), false),
        ("insecure", "false", false),
        ("cacert", "nothing", false),
    ] {
        let (_, connected) = connection(port, &[("user", "me"), ("https", "true"), (name, value)]).await;
        match connected {
            Ok(mut machine) => {
                assert!(fine, "{name}");
                machine.upload("C:/x", Content::Bytes(b"x".to_vec())).await.unwrap();
            }
            Err(error) => {
                let text = error.to_string();
                assert!(!fine, "{text}");
                let known = text.contains("cannot be secured") || text.contains("holds no certificate");
                assert!(known, "{text}");
            }
        }
    }
}
