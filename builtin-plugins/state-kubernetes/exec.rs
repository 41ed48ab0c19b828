//! Credential plugins: programs, such as those of cloud providers, that print credentials for a cluster.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value as Json, json};

/// Reason why a plugin provides no credentials, as a part of a sentence.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExecError {
    #[error("the program of \"exec\" has no command")]
    NoCommand,
    #[error(
        "the api_version {version:?} of the program {program} is not known; there are client.authentication.k8s.io/v1 and \
         client.authentication.k8s.io/v1beta1"
    )]
    Version { program: String, version: String },
    #[error("the program {program} cannot be run: {source}{}", hinted(hint))]
    Start {
        program: String,
        source: std::io::Error,
        /// Advice on installing the plugin, from the kubeconfig file.
        hint: String,
    },
    #[error("the program {program} has failed ({status}): {said}")]
    Failed {
        program: String,
        status: std::process::ExitStatus,
        said: String,
    },
    #[error("the program {program} {problem}")]
    Answer { program: String, problem: AnswerError },
}

/// Error in the output of a credential plugin.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AnswerError {
    #[error("says something that is no JSON: {}", store_client::json_reason(.0))]
    NotJson(#[from] serde_json::Error),
    #[error("answers in the version {actual:?}, and was asked in {expected:?}")]
    Version { actual: String, expected: String },
    #[error("gives one of certificate and key, and not the other")]
    Half,
    #[error("gives neither a token nor a certificate")]
    Nothing,
}

fn hinted(hint: &str) -> String {
    match hint.trim() {
        "" => String::new(),
        hint => format!(". {hint}"),
    }
}

/// A credential plugin.
#[derive(Clone)]
pub(crate) struct Exec {
    pub api_version: String,
    pub command: PathBuf,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    /// Advice on installing the plugin, from the kubeconfig file.
    pub hint: String,
    /// True if the plugin receives a description of the cluster.
    pub with_cluster: bool,
}

/// Credentials in the output of a plugin.
#[derive(Default)]
pub(crate) struct Credential {
    pub token: Option<String>,
    pub certificate: Option<String>,
    pub key: Option<String>,
    /// Expiry time in RFC 3339.
    pub expires: Option<String>,
}

impl Exec {
    /// Reads the configuration of a plugin in a kubeconfig file.
    pub fn of_json(json: &Json, folder: &Path) -> Result<Exec, ExecError> {
        let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
        let list = |name: &str| json[name].as_array().cloned().unwrap_or_default();
        let command = PathBuf::from(text(&json["command"]));
        if command.as_os_str().is_empty() {
            return Err(ExecError::NoCommand);
        }
        Ok(Exec {
            api_version: text(&json["apiVersion"]),
            // A path is relative to the file; a bare name is searched in PATH.
            command: match command.components().count() {
                1 => command,
                _ => folder.join(command),
            },
            args: list("args").iter().map(text).collect(),
            env: list("env")
                .iter()
                .map(|e| (text(&e["name"]), text(&e["value"])))
                .collect(),
            hint: text(&json["installHint"]),
            with_cluster: json["provideClusterInfo"].as_bool() == Some(true),
        })
    }

    pub async fn run(&self, cluster: &Json) -> Result<Credential, ExecError> {
        let program = self.command.display().to_string();
        if !matches!(
            self.api_version.as_str(),
            "client.authentication.k8s.io/v1" | "client.authentication.k8s.io/v1beta1"
        ) {
            return Err(ExecError::Version {
                program,
                version: self.api_version.clone(),
            });
        }
        let mut info =
            json!({"kind": "ExecCredential", "apiVersion": self.api_version, "spec": {"interactive": false}});
        if self.with_cluster {
            info["spec"]["cluster"] = cluster.clone();
        }
        let ran = tokio::process::Command::new(&self.command)
            .args(&self.args)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .env("KUBERNETES_EXEC_INFO", info.to_string())
            // No input: the plugin is told that it is not interactive, and a question would wait forever.
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await;
        let ran = match ran {
            Ok(ran) => ran,
            Err(source) => {
                return Err(ExecError::Start {
                    program,
                    source,
                    hint: self.hint.clone(),
                });
            }
        };
        if !ran.status.success() {
            let said = String::from_utf8_lossy(&ran.stderr);
            let said: String = said.trim().chars().take(500).collect();
            return Err(ExecError::Failed {
                program,
                status: ran.status,
                said,
            });
        }
        self.parse_answer(&ran.stdout)
            .map_err(|problem| ExecError::Answer { program, problem })
    }

    fn parse_answer(&self, text: &[u8]) -> Result<Credential, AnswerError> {
        let json: Json = serde_json::from_slice(text)?;
        let version = json["apiVersion"].as_str().unwrap_or_default();
        // Versions have different fields, so an answer in another version would be misread.
        if version != self.api_version {
            return Err(AnswerError::Version {
                actual: version.to_owned(),
                expected: self.api_version.clone(),
            });
        }
        let part = |name: &str| {
            let text = json["status"][name].as_str();
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let said = Credential {
            token: part("token"),
            certificate: part("clientCertificateData"),
            key: part("clientKeyData"),
            expires: part("expirationTimestamp"),
        };
        if said.certificate.is_some() != said.key.is_some() {
            return Err(AnswerError::Half);
        }
        match said.token.is_some() || said.certificate.is_some() {
            true => Ok(said),
            false => Err(AnswerError::Nothing),
        }
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    #[tokio::test]
    async fn programs_say_who_we_are() {
        let script = r#"echo '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{"token":"'$T$(echo $KUBERNETES_EXEC_INFO | grep -c '"server":"https://x"')'"}}'"#;
        let json = json!({
            "apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": ["-c", script],
            "env": [{"name": "T", "value": "token"}], "provideClusterInfo": true,
        });
        let mut exec = Exec::of_json(&json, Path::new("/")).unwrap();
        let said = exec.run(&json!({"server": "https://x"})).await.unwrap();
        assert_eq!(said.token.as_deref(), Some("token1"));
        exec.api_version = "client.authentication.k8s.io/v1beta1".into();
        let why = exec.run(&Json::Null).await.err().unwrap().to_string();
        assert!(why.contains("was asked in"), "{why}");
        (exec.command, exec.hint) = ("/does/not/exist".into(), "Install it.".into());
        let why = exec.run(&Json::Null).await.err().unwrap().to_string();
        assert!(why.contains("cannot be run") && why.ends_with("Install it."), "{why}");
    }
}
