//! Programs that know who we are to a cluster, such as those of cloud providers.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value as Json, json};

/// A program.
#[derive(Clone)]
pub(crate) struct Exec {
    pub api_version: String,
    pub command: PathBuf,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    /// What to do where there is no such program.
    pub hint: String,
    /// Whether it is told about the cluster.
    pub with_cluster: bool,
}

/// What a program says.
#[derive(Default)]
pub(crate) struct Said {
    pub token: Option<String>,
    pub certificate: Option<String>,
    pub key: Option<String>,
    /// When it ends, by RFC 3339.
    pub expires: Option<String>,
}

impl Exec {
    /// What a file says about a program.
    pub fn of_json(json: &Json, folder: &Path) -> Result<Exec, String> {
        let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
        let list = |name: &str| json[name].as_array().cloned().unwrap_or_default();
        let command = PathBuf::from(text(&json["command"]));
        if command.as_os_str().is_empty() {
            return Err("the program of \"exec\" has no command".to_owned());
        }
        Ok(Exec {
            api_version: text(&json["apiVersion"]),
            // A path, as opposed to a name, begins at the file.
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

    /// Runs it.
    pub async fn run(&self, cluster: &Json) -> Result<Said, String> {
        let shown = self.command.display();
        if !matches!(
            self.api_version.as_str(),
            "client.authentication.k8s.io/v1" | "client.authentication.k8s.io/v1beta1"
        ) {
            return Err(format!(
                "the api_version {:?} of the program {shown} is not known; there are client.authentication.k8s.io/v1 and \
                 client.authentication.k8s.io/v1beta1",
                self.api_version
            ));
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
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await;
        let ran = ran.map_err(|e| {
            let hint = if self.hint.is_empty() {
                String::new()
            } else {
                format!(". {}", self.hint.trim())
            };
            format!("the program {shown} cannot be run: {e}{hint}")
        })?;
        if !ran.status.success() {
            let said = String::from_utf8_lossy(&ran.stderr);
            let said: String = said.trim().chars().take(500).collect();
            return Err(format!("the program {shown} has failed ({}): {said}", ran.status));
        }
        self.said(&ran.stdout)
            .map_err(|why| format!("the program {shown} {why}"))
    }

    fn said(&self, text: &[u8]) -> Result<Said, String> {
        let json: Json = serde_json::from_slice(text)
            .map_err(|e| format!("says something that is no JSON: {}", store_client::json_reason(e)))?;
        let version = json["apiVersion"].as_str().unwrap_or_default();
        if version != self.api_version {
            return Err(format!(
                "answers in the version {version:?}, and was asked in {:?}",
                self.api_version
            ));
        }
        let part = |name: &str| {
            let text = json["status"][name].as_str();
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let said = Said {
            token: part("token"),
            certificate: part("clientCertificateData"),
            key: part("clientKeyData"),
            expires: part("expirationTimestamp"),
        };
        if said.certificate.is_some() != said.key.is_some() {
            return Err("gives one of certificate and key, and not the other".to_owned());
        }
        match said.token.is_some() || said.certificate.is_some() {
            true => Ok(said),
            false => Err("gives neither a token nor a certificate".to_owned()),
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
        let why = exec.run(&Json::Null).await.err().unwrap();
        assert!(why.contains("was asked in"), "{why}");
        (exec.command, exec.hint) = ("/does/not/exist".into(), "Install it.".into());
        let why = exec.run(&Json::Null).await.err().unwrap();
        assert!(why.contains("cannot be run") && why.ends_with("Install it."), "{why}");
    }
}
