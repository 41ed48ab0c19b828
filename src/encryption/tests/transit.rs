//! Tests of the transit engine of OpenBao, with a fake server.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use state::codec::Cipher as _;

use super::*;

/// Starts a server that knows one key and one token. Returns its address and the received requests.
fn server() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let requests = seen.clone();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = Vec::new();
            let mut buffer = [0; 4096];
            let text = loop {
                let Ok(read @ 1..) = stream.read(&mut buffer) else {
                    break String::from_utf8_lossy(&request).to_lowercase();
                };
                request.extend_from_slice(&buffer[..read]);
                let text = String::from_utf8_lossy(&request).to_lowercase();
                let length = text
                    .split("content-length: ")
                    .nth(1)
                    .and_then(|t| t.lines().next()?.parse().ok());
                if let Some((_, body)) = text.split_once("\r\n\r\n")
                    && body.len() >= length.unwrap_or(0)
                {
                    break text;
                }
            };
            let key = STANDARD.encode([7; 32]);
            let (status, body) = match text.lines().next().unwrap_or_default() {
                _ if !text.contains("x-vault-token: good") => (403, "{\"errors\":[\"permission denied\"]}".to_owned()),
                "post /v1/my/transit/datakey/plaintext/a%20key http/1.1" if text.ends_with("{\"bits\":256}") => (
                    200,
                    format!("{{\"data\":{{\"plaintext\":\"{key}\",\"ciphertext\":\"vault:v1:abc\"}}}}"),
                ),
                "post /v1/my/transit/decrypt/a%20key http/1.1"
                    if text.ends_with("{\"ciphertext\":\"vault:v1:abc\"}") =>
                {
                    (200, format!("{{\"data\":{{\"plaintext\":\"{key}\"}}}}"))
                }
                "post /v1/my/transit/datakey/plaintext/a%20key http/1.1"
                    if text.ends_with("{\"bits\":256,\"associated_data\":\"zw52\"}") =>
                {
                    (
                        200,
                        format!("{{\"data\":{{\"plaintext\":\"{key}\",\"ciphertext\":\"vault:v1:env\"}}}}"),
                    )
                }
                "post /v1/my/transit/decrypt/a%20key http/1.1"
                    if text.ends_with("{\"ciphertext\":\"vault:v1:env\",\"associated_data\":\"zw52\"}") =>
                {
                    (200, format!("{{\"data\":{{\"plaintext\":\"{key}\"}}}}"))
                }
                _ => (404, "{\"errors\":[]}".to_owned()),
            };
            requests.lock().unwrap().push(text);
            let head = format!(
                "HTTP/1.1 {status} x\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            drop(stream.write_all((head + &body).as_bytes()));
        }
    });
    (address, seen)
}

fn of_transit(address: &str, token: &str, more: &str) -> String {
    format!(
        "key_provider \"openbao\" \"o\" {{\n address = \"{address}\"\n token = \"{token}\"\n key_name = \"a key\"\n \
         transit_engine_path = \"/my/transit\"\n {more}\n}}\n\
         method \"aes_gcm\" \"m\" {{\n keys = key_provider.openbao.o\n}}\nstate {{\n method = method.aes_gcm.m\n}}\n"
    )
}

#[test]
fn data_key_is_made_once_and_decrypted_by_the_server() {
    let (address, seen) = server();
    let target = state(&of_transit(&address, "good", ""));
    let (one, two) = (sealed(&target), sealed(&target));
    assert_ne!(one, two, "every text has a nonce of its own");
    assert_eq!(seen.lock().unwrap().len(), 1);
    let text = String::from_utf8(one.clone()).unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let metadata = STANDARD
        .decode(document["meta"]["key_provider.openbao.o"].as_str().unwrap())
        .unwrap();
    // OpenTofu stores the server's text encoded as base64.
    let ciphertext = STANDARD.encode("vault:v1:abc");
    assert_eq!(
        String::from_utf8(metadata).unwrap(),
        format!("{{\"ciphertext\":\"{ciphertext}\"}}")
    );
    let reader = state(&of_transit(&address, "good", ""));
    assert_eq!(reader.open(&one).unwrap().text, b"secret");
    assert_eq!(reader.open(&two).unwrap().text, b"secret");
    // Decryption needs only the stored key, which is requested once.
    assert_eq!(seen.lock().unwrap().len(), 2);
}

#[test]
fn answers_of_the_server_are_in_the_error() {
    let (address, _) = server();
    let error = refusal(&of_transit(&address, "bad", ""));
    assert!(
        error.starts_with("Unable to fetch encryption key data") && error.contains("403: permission denied"),
        "{error}"
    );
    let error = refusal(&of_transit(&address, "good", "key_length = 20"));
    assert!(error.contains("16, 32 or 64 bytes, and is 20"), "{error}");
}

#[test]
fn associated_data_is_sent_with_both_requests() {
    let (address, _) = server();
    // The server of these tests reads requests in lower case.
    let with = |data: &str| of_transit(&address, "good", &format!("associated_data = \"{data}\""));
    let one = sealed(&state(&with("ZW52")));
    assert_eq!(state(&with("ZW52")).open(&one).unwrap().text, b"secret");
    // Without the data the server does not decrypt.
    assert!(state(&of_transit(&address, "good", "")).open(&one).is_err());
    let error = refusal(&with("no base64!"));
    assert!(error.contains("associated data is not valid base64"), "{error}");
}
