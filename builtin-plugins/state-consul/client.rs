//! States in Consul: a single value, or several values and a list of their keys.

use std::borrow::Cow;
use std::sync::Arc;

use monoform_sdk::state_store::{DEFAULT, LockError, LockInfo, WorkspaceSupport};
use monoform_sdk::{Result, async_trait};
use serde_json::{Value as Json, json};
use store_client::about::{About, DELETE, LIST, READ, WRITE, details, problem};
use store_client::guard::{Holder, LockedStore, Revision, Snapshot, Written};
use store_client::sum::md5_hex;
use store_client::{gzip, listing};

use crate::config::Settings;
use crate::kv::{Kv, Stored};
use crate::locks::Locks;

/// Separator between the path and the name of a workspace.
const WORKSPACE: &str = "-env:";

/// Size in bytes of a piece of a large state. It is the default limit for values in Consul.
const PIECE: usize = 524_288;

/// Size in bytes above which a state is never written as one value, because no cluster accepts such a transaction.
const ONE_VALUE: usize = 16 << 20;

pub(crate) struct Client {
    settings: Settings,
    kv: Arc<Kv>,
    locks: Locks,
}

/// List of the pieces of a state.
struct Pieces {
    keys: Vec<String>,
    /// MD5 of the whole state, uncompressed, in hexadecimal.
    sum: String,
}

impl Pieces {
    /// Parses a value. Returns `None` if it is a state and not a list of pieces.
    fn parse(value: &[u8]) -> Option<Pieces> {
        let json: Json = serde_json::from_slice(value).ok()?;
        let sum = json["current-hash"].as_str()?.to_owned();
        let keys = json["chunks"].as_array()?.iter();
        Some(Pieces {
            keys: keys.filter_map(|key| key.as_str().map(str::to_owned)).collect(),
            sum,
        })
    }

    /// Returns the prefix of the keys with the pieces.
    fn folder(path: &str, sum: &str) -> String {
        format!("{}/tfstate.{sum}/", path.trim_end_matches('/'))
    }
}

impl Client {
    pub fn new(settings: Settings) -> Client {
        Client {
            locks: Locks::new(settings.kv.clone()),
            kv: settings.kv.clone(),
            settings,
        }
    }

    fn path(&self, workspace: &str) -> String {
        match workspace {
            DEFAULT => self.settings.path.clone(),
            name => format!("{}{WORKSPACE}{name}", self.settings.path),
        }
    }

    async fn store_pieces(
        &self,
        about: About<'_>,
        path: &str,
        (sum, value): (&str, &[u8]),
        index: Option<u64>,
    ) -> Result<Stored> {
        let folder = Pieces::folder(path, sum);
        let mut keys = Vec::new();
        // The keys of the pieces contain the checksum, so the pieces of the previous state can be read until the list is replaced.
        for (number, piece) in value.chunks(PIECE).enumerate() {
            let key = format!("{folder}{number}");
            self.kv.put(about, &key, piece.to_vec()).await?;
            keys.push(key);
        }
        let list = json!({"chunks": keys, "current-hash": sum}).to_string();
        match self.kv.store(about, path, list.as_bytes(), index).await? {
            Stored::TooLarge => Err(problem(
                about.summary,
                format!(
                    "{}: the state is too large for Consul, even as the list of its pieces.",
                    about.what
                ),
            )),
            stored => Ok(stored),
        }
    }
}

#[async_trait]
impl LockedStore for Client {
    fn support(&self) -> WorkspaceSupport {
        WorkspaceSupport::NamedAndDefault
    }

    async fn workspaces(&self) -> Result<Vec<String>> {
        let prefix = format!("{}{WORKSPACE}", self.settings.path);
        let about = About {
            summary: LIST,
            what: &format!("Listing the keys that begin with {prefix:?}"),
        };
        let keys = self.kv.keys(about, &prefix).await?;
        Ok(listing::workspaces(keys.iter().map(String::as_str), &prefix, ""))
    }

    async fn read(&self, workspace: &str) -> Result<Snapshot> {
        let path = self.path(workspace);
        let about = About {
            summary: READ,
            what: &format!("Reading the key {path:?} of Consul"),
        };
        let Some(pair) = self.kv.get(about, &path).await? else {
            return Ok(Snapshot {
                state: None,
                revision: Some(Revision::Absent),
            });
        };
        let revision = Some(Revision::Named(pair.index.to_string()));
        let pieces = Pieces::parse(&pair.value);
        let mut value = pair.value;
        if let Some(pieces) = &pieces {
            value = Vec::new();
            for key in &pieces.keys {
                let piece = self.kv.get(about, key).await?;
                let piece = piece.ok_or_else(|| {
                    problem(
                        READ,
                        format!("Key {key:?} could not be found: it is a piece of the state {path:?}."),
                    )
                })?;
                value.extend_from_slice(&piece.value);
            }
        }
        // Compression is recognized by the first byte of gzip, with which JSON never begins, because the state may have been written with
        // another value of `gzip`.
        if value.first() == Some(&0x1f) {
            value = gzip::decompressed(&value).map_err(|e| {
                problem(
                    READ,
                    format!("The state in the key {path:?} cannot be decompressed: {e}."),
                )
            })?;
        }
        if let Some(pieces) = pieces
            && md5_hex(&value) != pieces.sum
        {
            return Err(problem(
                READ,
                format!(
                    "The remote state does not match the expected hash: the pieces of the state {path:?} have the MD5 {}, and must \
                     have {}.",
                    md5_hex(&value),
                    pieces.sum
                ),
            ));
        }
        Ok(Snapshot {
            state: Some(value).filter(|state| !state.is_empty()),
            revision,
        })
    }

    async fn write(&self, workspace: &str, state: &[u8], expected: Option<&Revision>) -> Result<Written> {
        let path = self.path(workspace);
        let about = About {
            summary: WRITE,
            what: &format!("Writing the key {path:?} of Consul"),
        };
        // The old list names the pieces to remove, so it is read before it is overwritten.
        let before = self
            .kv
            .get(about, &path)
            .await?
            .and_then(|pair| Pieces::parse(&pair.value));
        let sum = md5_hex(state);
        let value = match self.settings.gzip {
            true => Cow::Owned(
                gzip::compressed(state).map_err(|e| problem(WRITE, format!("The state cannot be compressed: {e}.")))?,
            ),
            false => Cow::Borrowed(state),
        };
        // No key has the index 0. As a condition, it means that the key must not exist.
        let index = expected.map(|expected| match expected {
            Revision::Named(index) => index.parse().unwrap_or_default(),
            Revision::Absent => 0,
        });
        let mut stored = match value.len() <= ONE_VALUE {
            true => self.kv.store(about, &path, &value, index).await?,
            false => Stored::TooLarge,
        };
        let as_one = !matches!(stored, Stored::TooLarge);
        if !as_one {
            stored = self.store_pieces(about, &path, (&sum, &value), index).await?;
        }
        let Stored::Done(index) = stored else {
            return Ok(Written::Changed);
        };
        // Leftover pieces of the previous state do no harm, so a failure to remove them is not an error.
        if let Some(before) = before.filter(|before| as_one || before.sum != sum)
            && let Err(problems) = self.kv.delete(about, &Pieces::folder(&path, &before.sum), true).await
        {
            tracing::warn!("pieces of an earlier state stay: {}", details(&problems));
        }
        Ok(Written::Done(Some(Revision::Named(index.to_string()))))
    }

    async fn delete(&self, workspace: &str) -> Result<()> {
        let path = self.path(workspace);
        let about = About {
            summary: DELETE,
            what: &format!("Deleting the key {path:?} of Consul"),
        };
        let pieces = self
            .kv
            .get(about, &path)
            .await?
            .and_then(|pair| Pieces::parse(&pair.value));
        // The list is deleted first, because pieces without a list are harmless, but a list without pieces is a damaged state.
        self.kv.delete(about, &path, false).await?;
        match pieces {
            Some(pieces) => self.kv.delete(about, &Pieces::folder(&path, &pieces.sum), true).await,
            None => Ok(()),
        }
    }

    async fn lock(&self, workspace: &str, info: LockInfo) -> std::result::Result<String, LockError> {
        match self.settings.lock {
            true => self.locks.lock(&self.path(workspace), info).await,
            false => Ok(String::new()),
        }
    }

    async fn unlock(&self, workspace: &str, id: &str) -> Result<()> {
        match self.settings.lock {
            true => self.locks.unlock(&self.path(workspace), id).await,
            false => Ok(()),
        }
    }

    async fn forget_lock(&self, workspace: &str, id: &str) {
        self.locks.forget(&self.path(workspace), id).await;
    }

    async fn holder(&self, workspace: &str, own: &str) -> Result<Holder> {
        self.locks.holder(&self.path(workspace), own).await
    }
}
