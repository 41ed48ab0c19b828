//! Tokens of hosts: from the environment, else from the CLI configuration, else from a helper program.

use files::Environment;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;

use crate::hosts::{CredentialsHelper, Host};
use crate::token::Token;
use files::io_reason;
use http::Error;

/// The time limit of a helper, which may ask a person or a service.
const HELPER_TIMEOUT: Duration = Duration::from_secs(60);

/// Describes the first character that a header value must not contain; `None` if there is none.
pub(crate) fn unsendable_character(value: &str) -> Option<&'static str> {
    let found = value.chars().find(|c| c.is_control() && *c != '\t')?;
    Some(match found {
        '\n' | '\r' => "a line end",
        _ => "a control character",
    })
}

/// Reads tokens from environment variables such as `TF_TOKEN_app_terraform_io`. In the names, `_` means a dot, and `__`
/// or a dash means a dash.
#[must_use]
pub fn from_environment(environment: &Environment) -> BTreeMap<Host, Token> {
    let mut tokens = BTreeMap::new();
    for (name, value) in environment.all() {
        let Some(name) = name.strip_prefix("TF_TOKEN_") else {
            continue;
        };
        // Pairs are replaced first, because otherwise each underscore of a pair would become a dot.
        let name = name.replace("__", "-").replace('_', ".");
        let token = Token::sendable(value).filter(|token| !token.expose().is_empty());
        match (Host::parse(&name), token) {
            (Some(host), Some(token)) => {
                tokens.insert(host, token);
            }
            _ => tracing::debug!("TF_TOKEN_… for \"{name}\" is not for a host"),
        }
    }
    tokens
}

/// Returns the names of environment variables whose tokens have characters that cannot be sent.
#[must_use]
pub fn unsendable(environment: &Environment) -> Vec<String> {
    let tokens = environment
        .all()
        .iter()
        .filter(|(name, _)| name.starts_with("TF_TOKEN_"));
    let unsendable = tokens.filter(|(_, value)| Token::sendable(value).is_none());
    unsendable.map(|(name, _)| name.to_owned()).collect()
}

/// Returns the newest program of a helper in these directories: `terraform-credentials-NAME`, with an optional version. `None` if there is
/// none.
#[must_use]
pub fn find_helper(name: &str, dirs: &[PathBuf]) -> Option<PathBuf> {
    let wanted = format!("terraform-credentials-{name}");
    let mut found: Vec<(Vec<u64>, PathBuf)> = Vec::new();
    for dir in dirs {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let file = entry.file_name().to_string_lossy().to_lowercase();
            let Some(rest) = file.strip_prefix(&wanted.to_lowercase()) else {
                continue;
            };
            let rest = rest.strip_suffix(".exe").unwrap_or(rest);
            // The names of plugins are `NAME_vVERSION_xPROTOCOL`; both parts are optional.
            let version = match rest.strip_prefix("_v") {
                Some(version) => version.split("_x").next().unwrap_or(version),
                None if rest.is_empty() || rest.starts_with("_x") => "0.0.0",
                None => continue,
            };
            let numbers = version.split('.').map(|n| n.parse().unwrap_or(0)).collect();
            if entry.path().is_file() {
                found.push((numbers, entry.path()));
            }
        }
    }
    found.sort();
    found.pop().map(|(_, path)| path)
}

/// Returns the error of a helper without an answer for a host.
pub(crate) fn helper_error(helper: &CredentialsHelper, host: &Host, what: &str) -> Error {
    Error::Credentials(format!(
        "the credentials helper \"{}\" has no answer for {host}: {what}",
        helper.name
    ))
}

/// Runs a helper with one of its verbs. Returns its output.
async fn run_helper(
    helper: &CredentialsHelper,
    program: &Path,
    (verb, input): (&str, &[u8]),
    host: &Host,
) -> Result<Vec<u8>, Error> {
    let failed = |what: String| helper_error(helper, host, &what);
    let mut command = tokio::process::Command::new(program);
    command
        .args(&helper.args)
        .args([verb, host.as_str()])
        .stdin(if input.is_empty() {
            Stdio::null()
        } else {
            Stdio::piped()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let run = async {
        let mut child = command.spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            // A helper may not read its input; it reports failures by its exit status.
            let _ = stdin.write_all(input).await;
        }
        child.wait_with_output().await
    };
    let output = tokio::time::timeout(HELPER_TIMEOUT, run)
        .await
        .map_err(|_| failed(format!("it did not answer within {} seconds", HELPER_TIMEOUT.as_secs())))?
        .map_err(|e| failed(format!("{} cannot be run: {}", program.display(), io_reason(&e))))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        let message = if message.is_empty() {
            output.status.to_string()
        } else {
            message
        };
        return Err(failed(message));
    }
    Ok(output.stdout)
}

/// Stores the token of a host in a helper, which replaces the token that it has for the host.
pub async fn store_in_helper(
    helper: &CredentialsHelper,
    program: &Path,
    host: &Host,
    token: &Token,
) -> Result<(), Error> {
    let document = serde_json::json!({ "token": token.expose() }).to_string();
    run_helper(helper, program, ("store", document.as_bytes()), host)
        .await
        .map(drop)
}

/// Removes the token of a host from a helper.
pub async fn forget_in_helper(helper: &CredentialsHelper, program: &Path, host: &Host) -> Result<(), Error> {
    run_helper(helper, program, ("forget", b""), host).await.map(drop)
}

pub async fn ask_helper(helper: &CredentialsHelper, program: &Path, host: &Host) -> Result<Option<Token>, Error> {
    let failed = |what: String| helper_error(helper, host, &what);
    let stdout = run_helper(helper, program, ("get", b""), host).await?;
    // Even an answer that cannot be parsed may contain a token: no part of it is shown.
    let answer: serde_json::Value = serde_json::from_slice(&stdout)
        .map_err(|_| failed("its answer is not the JSON that was expected".to_owned()))?;
    match answer.get("token") {
        None | Some(serde_json::Value::Null) => Ok(None),
        Some(serde_json::Value::String(token)) => match Token::sendable(token) {
            Some(token) if token.expose().is_empty() => Ok(None),
            Some(token) => Ok(Some(token)),
            None => Err(failed(
                "its token has characters that cannot be sent, such as a line end".to_owned(),
            )),
        },
        Some(_) => Err(failed("the token in its answer is not text".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_names_hosts() {
        let variables = [
            ("TF_TOKEN_app_terraform_io", "a"),
            ("TF_TOKEN_my__site_example_com", "b"),
            ("TF_TOKEN_xn--80akhbyknj4f_com", "c"),
            ("TF_TOKEN_", "d"),
            ("TF_TOKEN_empty_com", ""),
            ("TF_TOKEN_file_example_com", "d\n"),
            ("TF_TOKEN_two_example_com", "e\nf"),
        ];
        let environment = variables.map(|(n, v)| (n.to_owned(), v.to_owned())).into();
        let tokens = from_environment(&environment);
        assert_eq!(unsendable(&environment), ["TF_TOKEN_two_example_com"]);
        let found: Vec<(&str, &str)> = tokens.iter().map(|(h, t)| (h.as_str(), t.expose())).collect();
        assert_eq!(
            found,
            [
                ("app.terraform.io", "a"),
                ("file.example.com", "d"),
                ("my-site.example.com", "b"),
                ("xn--80akhbyknj4f.com", "c")
            ]
        );
        assert!(!format!("{tokens:?}").contains("\"a\""));
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_helper_is_found_and_run() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        for (version, text) in [
            ("_v1.9.0", "exit 1"),
            (
                "_v1.10.0",
                "case \"$*\" in 'x get has.it') echo '{\"token\":\"t\"}';; 'x get no.such') echo '{}';; *) echo oops >&2; exit 3;; esac",
            ),
        ] {
            let path = dir.path().join(format!("terraform-credentials-store{version}"));
            std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        assert_eq!(find_helper("sto", &[dir.path().into()]), None);
        let program = find_helper("store", &[dir.path().into()]).unwrap();
        assert!(program.ends_with("terraform-credentials-store_v1.10.0"));
        let helper = CredentialsHelper {
            name: "store".to_owned(),
            args: vec!["x".to_owned()],
        };
        let ask = async |host: &str| ask_helper(&helper, &program, &Host::parse(host).unwrap()).await;
        assert_eq!(ask("has.it").await.unwrap(), Some(Token::new("t")));
        assert_eq!(ask("no.such").await.unwrap(), None);
        let error = ask("bad.one").await.unwrap_err().to_string();
        assert!(error.contains("oops") && error.contains("bad.one"), "{error}");
    }
}
