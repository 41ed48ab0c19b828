//! The credentials for a repository: those of the CLI configuration, or those that container tools have stored.
//!
//! The most specific entry takes precedence; among equals, the CLI configuration does. If a helper has no
//! credentials for the host, the next entry is used.

use net::{Client, OciLogin};

use crate::address::Repository;
use crate::credentials::Credentials;
use crate::docker::{DockerFile, Entry, specificity, usual_files};
use crate::error::OciError;
use crate::helper;

/// The credentials and their source, for messages.
#[derive(Clone, Debug)]
pub struct Login {
    pub credentials: Credentials,
    pub from: String,
}

enum Candidate {
    Ready(Login),
    Helper { name: String, from: String },
}

/// Returns the credentials for a repository; `None` if there are none.
pub async fn find(client: &Client, repository: &Repository) -> Result<Option<Login>, OciError> {
    let settings = &client.settings().hosts.oci;
    let (host, name) = (repository.host().as_str(), repository.name());
    // The candidates are sorted by specificity. The sort is stable, so equal candidates keep the order of this
    // list.
    let mut candidates: Vec<(usize, Candidate)> = Vec::new();
    for (key, login) in &settings.logins {
        let Some(specificity) = specificity(key, host, name) else {
            continue;
        };
        let from = format!("oci_credentials \"{key}\" in the CLI configuration");
        let ready = |credentials| {
            Candidate::Ready(Login {
                credentials,
                from: from.clone(),
            })
        };
        candidates.push((
            specificity,
            match login.clone() {
                OciLogin::Password { username, password } => ready(Credentials::Password { username, password }),
                OciLogin::Tokens { access, refresh } => ready(Credentials::Access { access, refresh }),
                OciLogin::Helper(name) => Candidate::Helper { name, from },
            },
        ));
    }
    if settings.ambient {
        let environment = &client.settings().environment;
        let files = settings.files.clone().unwrap_or_else(|| usual_files(environment));
        for path in files {
            let Some(file) = DockerFile::read(&path)? else {
                continue;
            };
            let entries = file.entries(host, name).map_err(|error| OciError::CredentialsFile {
                path: path.clone(),
                reason: error.to_string(),
            })?;
            for (specificity, entry) in entries {
                let from = path.display().to_string();
                let candidate = match entry {
                    Entry::Here(credentials) => Candidate::Ready(Login { credentials, from }),
                    Entry::Helper(name) => Candidate::Helper { name, from },
                };
                candidates.push((specificity, candidate));
            }
        }
    }
    if let Some(name) = &settings.helper {
        let from = "oci_default_credentials in the CLI configuration".to_owned();
        candidates.push((
            0,
            Candidate::Helper {
                name: name.clone(),
                from,
            },
        ));
    }
    candidates.sort_by_key(|(specificity, _)| std::cmp::Reverse(*specificity));
    for (_, candidate) in candidates {
        match candidate {
            Candidate::Ready(login) => return Ok(Some(login)),
            Candidate::Helper { name, from } => {
                if let Some(credentials) = helper::ask(&name, host).await? {
                    let from = format!("docker-credential-{name}, named by {from}");
                    return Ok(Some(Login { credentials, from }));
                }
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use files::Environment;
    use net::Token;
    use net::{HostSettings, NetSettings, OciSettings};

    fn password(username: &str) -> OciLogin {
        OciLogin::Password {
            username: username.to_owned(),
            password: Token::new("p"),
        }
    }

    #[tokio::test]
    async fn the_most_specific_wins_and_then_the_configuration() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join(".docker")).unwrap();
        std::fs::write(
            home.path().join(".docker/config.json"),
            r#"{"auths": {"a.com": {"username": "docker", "password": "p"}, "a.com/x/y": {"username": "deep", "password": "p"},
                "b.com": {"username": "b", "password": "p"}}}"#,
        )
        .unwrap();
        let logins = [("a.com", password("host")), ("a.com/x", password("x"))];
        let client = |ambient: bool| {
            Client::new(NetSettings {
                environment: Environment::from([("HOME".to_owned(), home.path().to_str().unwrap().to_owned())]),
                hosts: HostSettings {
                    oci: OciSettings {
                        logins: logins.clone().map(|(key, login)| (key.to_owned(), login)).into(),
                        ambient,
                        ..OciSettings::default()
                    },
                    ..HostSettings::default()
                },
                ..NetSettings::default()
            })
        };
        for (repository, ambient, expected) in [
            ("a.com/z", true, Some("host")),
            ("a.com/x", true, Some("x")),
            ("a.com/xx", true, Some("host")),
            ("a.com/x/y/z", true, Some("deep")),
            ("a.com/x/y/z", false, Some("x")),
            ("b.com/z", true, Some("b")),
            ("b.com/z", false, None),
            ("c.com/z", true, None),
        ] {
            let found = find(&client(ambient), &Repository::parse(repository).unwrap())
                .await
                .unwrap();
            let name = found.map(|login| match login.credentials {
                Credentials::Password { username, .. } => username,
                other => panic!("{other:?}"),
            });
            assert_eq!(name.as_deref(), expected, "{repository} {ambient}");
        }
    }
}
