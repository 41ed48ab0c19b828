//! Credentials helpers of Docker: programs `docker-credential-NAME`.
//!
//! `get` reads the host from standard input and writes JSON with `Username` and `Secret`. With the name `<token>`, the
//! secret is a refresh token.

use std::process::Stdio;
use std::time::Duration;

use files::io_reason;
use net::Token;
use serde::Deserialize;
use tokio::io::AsyncWriteExt as _;

use crate::credentials::Credentials;
use crate::error::OciError;

/// The time limit of a helper, which may ask a person or a service.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The message of a helper without credentials for a host.
const NOT_FOUND: &str = "credentials not found";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    #[serde(default, deserialize_with = "net::absent::or_default")]
    username: String,
    #[serde(default, deserialize_with = "net::absent::or_default")]
    secret: String,
}

/// Requests the credentials of a host from a helper; `None` if it has none.
///
/// # Errors
///
/// Returns an error if the helper cannot be run, fails, or has an invalid answer.
pub async fn ask(name: &str, host: &str) -> Result<Option<Credentials>, OciError> {
    let failed = |reason: String| OciError::Helper {
        name: name.to_owned(),
        host: host.to_owned(),
        reason,
    };
    // The name comes from a file: with a slash in it, any program could be executed.
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || !name.chars().all(plain) {
        return Err(failed("this is not the name of a helper".to_owned()));
    }
    // All of Docker's tools use this URL as the key of its own registry.
    let server = match host {
        "docker.io" => "https://index.docker.io/v1/",
        host => host,
    };
    let mut command = tokio::process::Command::new(format!("docker-credential-{name}"));
    command
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let run = async {
        let mut child = command.spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            // A helper may not read its input; it reports failures by its exit status.
            let _ = stdin.write_all(format!("{server}\n").as_bytes()).await;
        }
        child.wait_with_output().await
    };
    let output = tokio::time::timeout(TIMEOUT, run)
        .await
        .map_err(|_| failed(format!("it did not answer within {} seconds", TIMEOUT.as_secs())))?
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => failed("there is no such program on the PATH".to_owned()),
            _ => failed(format!("it cannot be run: {}", io_reason(&error))),
        })?;
    if !output.status.success() {
        // Helpers write this message to standard output.
        let said = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).trim().to_owned());
        if said.iter().any(|text| text.contains(NOT_FOUND)) {
            return Ok(None);
        }
        let said = said.into_iter().find(|text| !text.is_empty());
        return Err(failed(said.unwrap_or_else(|| output.status.to_string())));
    }
    // The answer contains a secret, so no part of it is shown.
    let answer: Answer = serde_json::from_slice(&output.stdout)
        .map_err(|_| failed("its answer is not JSON of the expected form".to_owned()))?;
    Ok(match (&*answer.username, answer.secret.is_empty()) {
        (_, true) => None,
        ("<token>", false) => Some(Credentials::Refresh(Token::new(answer.secret))),
        (_, false) => Some(Credentials::Password {
            username: answer.username,
            password: Token::new(answer.secret),
        }),
    })
}
