//! Secrets that contain states, and leases that lock them.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use monoform_sdk::state_store::{DEFAULT, LockError, LockInfo, WorkspaceSupport};
use monoform_sdk::{Result, async_trait};
use serde_json::{Map, Value as Json, json};
use store_client::about::{About, DELETE, LIST, LOCK, READ, UNLOCK, WRITE, problem};
use store_client::guard::{LockedStore, Revision, Snapshot, Written as Outcome};
use store_client::gzip;
use store_client::lock::{Created, Found, LockRecord, Records, Removed};

use crate::api::{Api, Kind, Written};
use crate::config::Settings;

/// Key of the state in its secret. Also the label of all secrets and leases, and a part of their names.
const STATE: &str = "tfstate";
const SUFFIX: &str = "tfstateSecretSuffix";
const WORKSPACE: &str = "tfstateWorkspace";
const LOCK_INFO: &str = "app.terraform.io/lock-info";

/// Maximum size in bytes of the compressed data in one secret, which is the limit of Kubernetes.
const PART: usize = 1 << 20;

/// Number of attempts to write a secret while other clients change it.
const ATTEMPTS: u32 = 5;

/// Client for the states of a namespace.
pub(crate) struct Client {
    api: Api,
    suffix: String,
    labels: BTreeMap<String, String>,
}

/// Returns true if an object can have this name, which must be a DNS subdomain in lower case.
fn is_name(name: &str) -> bool {
    let is_part = |part: &str| {
        let fits = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
        !part.is_empty() && part.bytes().all(fits) && !part.starts_with('-') && !part.ends_with('-')
    };
    name.len() <= 253 && name.split('.').all(is_part)
}

/// Returns the number of the part in the name of a secret. The first part has the number zero.
fn number(base: &str, name: &str) -> Option<usize> {
    match name.strip_prefix(base)? {
        "" => Some(0),
        rest => rest.strip_prefix("-part-")?.parse().ok().filter(|number| *number > 0),
    }
}

fn name_of(object: &Json) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

/// Returns the version of an object, which changes with each write.
fn version(object: &Json) -> Option<Revision> {
    Revision::named(object["metadata"]["resourceVersion"].as_str())
}

fn holder(lease: &Json) -> Option<&str> {
    lease["spec"]["holderIdentity"].as_str()
}

fn lock_info(lease: &Json) -> Option<LockInfo> {
    let text = lease["metadata"]["annotations"][LOCK_INFO].as_str()?;
    LockInfo::from_json(text.as_bytes())
}

impl Client {
    pub fn new(settings: Settings) -> Client {
        Client {
            api: Api {
                sessions: settings.sessions,
                namespace: settings.namespace,
            },
            suffix: settings.suffix,
            labels: settings.labels,
        }
    }

    /// Returns the name of a state's secret.
    fn secret(&self, summary: &str, workspace: &str) -> Result<String> {
        let name = format!("{STATE}-{workspace}-{}", self.suffix);
        match is_name(&name) {
            true => Ok(name),
            false => Err(problem(
                summary,
                format!(
                    "the secret name {name} is invalid: the names of objects in Kubernetes have at most 253 small letters, digits, \
                     hyphens and dots, and begin and end with a letter or a digit. The workspace and secret_suffix must be such that \
                     this is so."
                ),
            )),
        }
    }

    fn labels(&self, workspace: &str) -> BTreeMap<String, String> {
        let own = [
            (STATE, "true"),
            (SUFFIX, self.suffix.as_str()),
            (WORKSPACE, workspace),
            // The same label as in Terraform, so that each program finds the states of the other.
            ("app.kubernetes.io/managed-by", "terraform"),
        ];
        let mut labels: BTreeMap<String, String> = own.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        labels.extend(self.labels.clone());
        labels
    }

    /// Returns the secrets of a state by part number.
    async fn parts(&self, about: About<'_>, workspace: &str, with_data: bool) -> Result<BTreeMap<usize, Json>> {
        let base = self.secret(about.summary, workspace)?;
        let labels: Vec<String> = self
            .labels(workspace)
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let secrets = self.api.secrets(about, &labels.join(","), with_data).await?;
        let numbered = secrets
            .into_iter()
            .filter_map(|secret| Some((number(&base, name_of(&secret))?, secret)));
        Ok(numbered.collect())
    }

    fn what(&self, doing: &str, kind: &str, name: &str) -> String {
        format!("{doing} the {kind} {name:?} in the namespace {:?}", self.api.namespace)
    }

    /// Writes the secret of one part of a state. If a version is expected, the secret must still have it.
    async fn write_part(
        &self,
        about: About<'_>,
        (workspace, name): (&str, &str),
        data: &[u8],
        expected: Option<&Revision>,
    ) -> Result<Outcome> {
        for _ in 0..ATTEMPTS {
            let there = self.api.get(about, Kind::Secret, name).await?;
            let current = there.as_ref().map_or(Some(Revision::Absent), version);
            // The update contains the version that was read here, so a change after this check is a conflict.
            if expected.is_some() && current.as_ref() != expected {
                return Ok(Outcome::Changed);
            }
            let written = match there {
                Some(mut secret) => {
                    secret["data"][STATE] = BASE64.encode(data).into();
                    self.api.update(about, Kind::Secret, name, &secret).await?
                }
                None => {
                    let mut secret = Kind::Secret.object(json!({
                        "name": name,
                        "namespace": self.api.namespace,
                        "labels": self.labels(workspace),
                        "annotations": {"encoding": "gzip"},
                    }));
                    secret["data"] = json!({STATE: BASE64.encode(data)});
                    self.api.create(about, Kind::Secret, &secret).await?
                }
            };
            if let Written::Done(revision) = written {
                return Ok(Outcome::Done(revision));
            }
        }
        Err(problem(
            about.summary,
            format!(
                "{} failed: another program changed it at the same time in every attempt.",
                about.what
            ),
        ))
    }

    /// Deletes an object if it exists. An object without the label of this store is not deleted, but is an error.
    async fn delete_own(&self, about: About<'_>, kind: Kind, name: &str) -> Result<()> {
        let Some(object) = self.api.get(about, kind, name).await? else {
            return Ok(());
        };
        // Another program may have created an object with this name.
        if object["metadata"]["labels"][STATE] != "true" {
            let detail = format!(
                "The object {name:?} does not have the label \"{STATE}\": it is of another program, and stays."
            );
            return Err(problem(about.summary, detail));
        }
        self.api.delete(about, kind, name).await
    }
}

/// Lease that locks a state while it has a holder.
struct LockLease<'c> {
    client: &'c Client,
    workspace: &'c str,
    lease: String,
}

impl LockLease<'_> {
    fn what(&self, doing: &str) -> String {
        self.client.what(doing, "lease", &self.lease)
    }

    async fn get(&self, about: About<'_>) -> Result<Option<Json>> {
        self.client.api.get(about, Kind::Lease, &self.lease).await
    }

    async fn update(&self, about: About<'_>, lease: &Json) -> Result<Written> {
        self.client.api.update(about, Kind::Lease, &self.lease, lease).await
    }
}

#[async_trait]
impl LockRecord for LockLease<'_> {
    fn name(&self) -> String {
        format!(
            "the lease {:?} in the namespace {:?}",
            self.lease, self.client.api.namespace
        )
    }

    /// Empty, as in Terraform's lock records for this backend.
    fn path(&self) -> String {
        String::new()
    }

    async fn create(&self, info: &LockInfo) -> std::result::Result<Created, LockError> {
        let what = self.what("Taking");
        let about = About {
            summary: LOCK,
            what: &what,
        };
        let written = match self.get(about).await? {
            None => {
                let mut lease = Kind::Lease.object(json!({
                    "name": self.lease,
                    "labels": self.client.labels(self.workspace),
                    "annotations": {LOCK_INFO: info.to_json()},
                }));
                lease["spec"] = json!({"holderIdentity": info.id});
                self.client.api.create(about, Kind::Lease, &lease).await?
            }
            Some(lease) if holder(&lease).is_some() => return Ok(Created::Exists),
            // A lease without a holder is a released lock. The update contains the version of the lease, so if several programs take it at
            // the same time, only one succeeds.
            Some(mut lease) => {
                if !lease["metadata"]["annotations"].is_object() {
                    lease["metadata"]["annotations"] = Json::Object(Map::new());
                }
                lease["metadata"]["annotations"][LOCK_INFO] = info.to_json().into();
                lease["spec"]["holderIdentity"] = info.id.as_str().into();
                self.update(about, &lease).await?
            }
        };
        Ok(match written {
            Written::Done(_) => Created::Done(info.id.clone()),
            Written::Conflict => Created::Exists,
        })
    }

    async fn find(&self, summary: &str) -> Result<Option<Found>> {
        let what = self.what("Reading");
        let lease = self.get(About { summary, what: &what }).await?.unwrap_or_default();
        let Some(id) = holder(&lease) else {
            return Ok(None);
        };
        let info = lock_info(&lease);
        let anonymous = info.is_none().then(|| {
            format!(
                "Its holder {id:?} does not say who that is. To free it: kubectl delete lease {} --namespace {}",
                self.lease, self.client.api.namespace
            )
        });
        Ok(Some(Found {
            anonymous,
            ..Found::new(LockInfo {
                id: id.to_owned(),
                ..info.unwrap_or_default()
            })
        }))
    }

    async fn remove(&self, found: &Found) -> Result<Removed> {
        let what = self.what("Freeing");
        let about = About {
            summary: UNLOCK,
            what: &what,
        };
        // The update is refused if the lease was changed after this read.
        let lease = self.get(about).await?;
        let Some(mut lease) = lease.filter(|lease| holder(lease) == Some(&found.info.id)) else {
            return Ok(Removed::Changed);
        };
        if let Some(spec) = lease["spec"].as_object_mut() {
            spec.shift_remove("holderIdentity");
        }
        if let Some(annotations) = lease["metadata"]["annotations"].as_object_mut() {
            annotations.shift_remove(LOCK_INFO);
        }
        Ok(match self.update(about, &lease).await? {
            Written::Done(_) => Removed::Done,
            Written::Conflict => Removed::Changed,
        })
    }
}

#[async_trait]
impl LockedStore for Client {
    fn support(&self) -> WorkspaceSupport {
        WorkspaceSupport::NamedByState
    }

    async fn workspaces(&self) -> Result<Vec<String>> {
        let about = About {
            summary: LIST,
            what: &format!(
                "Listing the secrets with states in the namespace {:?}",
                self.api.namespace
            ),
        };
        let secrets = self.api.secrets(about, &format!("{STATE}=true"), false).await?;
        let workspaces = secrets.iter().filter_map(|secret| {
            let labels = &secret["metadata"]["labels"];
            let is_ours = labels[SUFFIX] == *self.suffix;
            labels[WORKSPACE].as_str().filter(|name| is_ours && *name != DEFAULT)
        });
        let names: BTreeSet<&str> = workspaces.collect();
        // The default workspace is listed even without a secret.
        Ok([DEFAULT].into_iter().chain(names).map(str::to_owned).collect())
    }

    async fn read(&self, workspace: &str) -> Result<Snapshot> {
        let name = self.secret(READ, workspace)?;
        let what = self.what("Reading", "secret", &name);
        let about = About {
            summary: READ,
            what: &what,
        };
        let mut all = Vec::new();
        let parts = self.parts(about, workspace, true).await?;
        let count = parts.len();
        // The version of the first part is used, because every write changes it.
        let revision = parts.get(&0).map_or(Some(Revision::Absent), version);
        let snapshot = |state| Snapshot { state, revision };
        for (place, (number, secret)) in parts.into_iter().enumerate() {
            if place != number {
                // Without this check, decompression would only report invalid data.
                let detail = format!("{what} failed: part {place} of {count} of the state is missing.");
                return Err(problem(READ, detail));
            }
            let Some(data) = secret["data"][STATE].as_str() else {
                return Ok(snapshot(None));
            };
            let bytes = BASE64
                .decode(data)
                .map_err(|e| problem(READ, format!("{what} failed: its data is no Base64: {e}.")))?;
            all.extend_from_slice(&bytes);
        }
        if all.is_empty() {
            return Ok(snapshot(None));
        }
        let state = gzip::decompressed(&all)
            .map_err(|e| problem(READ, format!("{what} failed: the state cannot be decompressed: {e}.")))?;
        Ok(snapshot(Some(state).filter(|state| !state.is_empty())))
    }

    async fn write(&self, workspace: &str, state: &[u8], expected: Option<&Revision>) -> Result<Outcome> {
        let base = self.secret(WRITE, workspace)?;
        let compressed =
            gzip::compressed(state).map_err(|e| problem(WRITE, format!("The state cannot be compressed: {e}.")))?;
        let what = self.what("Writing", "secret", &base);
        let about = About {
            summary: WRITE,
            what: &what,
        };
        let before = self.parts(about, workspace, false).await?;
        let mut count = 0;
        let mut revision = None;
        for part in compressed.chunks(PART) {
            let name = match count {
                0 => base.clone(),
                number => format!("{base}-part-{number}"),
            };
            // Only the first part is written conditionally. The program that succeeds with it also writes the other parts.
            let expected = expected.filter(|_| count == 0);
            match self.write_part(about, (workspace, &name), part, expected).await? {
                Outcome::Done(written) if count == 0 => revision = written,
                Outcome::Done(_) => {}
                refused => return Ok(refused),
            }
            count += 1;
        }
        // Deletes parts of the previous state that the new one does not have.
        for (number, secret) in before {
            if number >= count {
                self.delete_own(about, Kind::Secret, name_of(&secret)).await?;
            }
        }
        Ok(Outcome::Done(revision))
    }

    async fn delete(&self, workspace: &str) -> Result<()> {
        let base = self.secret(DELETE, workspace)?;
        let what = self.what("Deleting", "secret", &base);
        let about = About {
            summary: DELETE,
            what: &what,
        };
        for secret in self.parts(about, workspace, false).await?.values() {
            self.delete_own(about, Kind::Secret, name_of(secret)).await?;
        }
        self.delete_own(about, Kind::Lease, &format!("lock-{base}")).await
    }

    fn lock_records<'s>(&'s self, workspace: &'s str) -> Result<Records<'s>> {
        Ok(vec![Box::new(LockLease {
            client: self,
            workspace,
            lease: format!("lock-{}", self.secret(LOCK, workspace)?),
        })])
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn names_of_objects_are_those_of_domains() {
        assert!(is_name("tfstate-default-a.b") && is_name(&"a".repeat(253)));
        assert!(
            !is_name("tfstate-Default-a")
                && !is_name("tfstate-a_b")
                && !is_name("tfstate-")
                && !is_name(&"a".repeat(254))
        );
    }

    #[test]
    fn parts_are_recognized_by_their_names() {
        assert_eq!(number("tfstate-default-a", "tfstate-default-a"), Some(0));
        assert_eq!(number("tfstate-default-a", "tfstate-default-a-part-12"), Some(12));
        assert_eq!(number("tfstate-default-a", "tfstate-default-a-part-x"), None);
        assert_eq!(number("tfstate-default-a", "tfstate-default-ab"), None);
    }
}
