//! State stores as the protocol sees them: bytes in pieces, locks with who holds them.

use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use futures::{Stream, StreamExt as _};
use proto::tfplugin6 as pb;
use tonic::Status;

use super::core::Core;
use crate::guard::{guarded, guarded_now};
use crate::state_store::{LockError, LockInfo, WorkspaceSupport};
use crate::wire::{Wire, decode};
use crate::{AnyStateStore, Diagnostic, Diagnostics, Empty, Members, Provider, Result, StateClient, StateStore};

/// How large pieces are that nobody has asked for, and how large they may be.
const USUAL_PIECE: usize = 8 << 20;
const LARGEST_PIECE: usize = 128 << 20;

/// The largest lock information that goes along with an answer: the library limits what all metadata takes.
const LARGEST_HOLDER: usize = 4 << 10;

/// A state store, and the client it was configured to be.
pub(crate) struct ServedStore {
    pub store: AnyStateStore,
    client: RwLock<Option<(Arc<dyn StateClient>, usize)>>,
}

impl ServedStore {
    pub fn new(store: AnyStateStore) -> ServedStore {
        ServedStore {
            store,
            client: RwLock::new(None),
        }
    }
}

/// One state store as a provider that has nothing else.
pub(crate) struct OneStore<S> {
    name: &'static str,
    store: std::sync::Mutex<Option<S>>,
}

impl<S: StateStore> OneStore<S> {
    pub fn new(name: &'static str, store: S) -> OneStore<S> {
        OneStore {
            name,
            store: std::sync::Mutex::new(Some(store)),
        }
    }
}

#[async_trait]
impl<S: StateStore> Provider for OneStore<S> {
    type Config = Empty;
    type Client = ();

    fn members(&self, members: &mut Members<()>) {
        // Members are listed once.
        if let Some(store) = self.store.lock().unwrap_or_else(PoisonError::into_inner).take() {
            members.state_store(self.name, store);
        }
    }

    async fn configure(&self, _config: Empty, _terraform_version: &str) -> Result<()> {
        Ok(())
    }
}

impl Core {
    fn store(&self, name: &str) -> Result<&ServedStore> {
        self.state_stores.get(name).ok_or_else(|| {
            Diagnostic::error(
                "Unknown state store",
                format!("This plugin has no state store called {name:?}."),
            )
            .into()
        })
    }

    fn client(&self, name: &str) -> Result<(Arc<dyn StateClient>, usize)> {
        let client = self.store(name)?.client.read().unwrap_or_else(PoisonError::into_inner);
        client.clone().ok_or_else(|| {
            Diagnostic::error(
                "State store not configured",
                format!(
                    "The state store {name:?} was used before it was configured. This is a bug in the program that did."
                ),
            )
            .into()
        })
    }

    pub fn validate_store(&self, name: &str, config: &Wire) -> Diagnostics {
        let check = || -> Result<Diagnostics> {
            let store = &self.store(name)?.store;
            Ok(store.validate(&decode(config, &store.schema().ty)?))
        };
        guarded_now(check).unwrap_or_else(Err).unwrap_or_else(|errors| errors)
    }

    pub async fn configure_store(
        &self,
        name: &str,
        config: &Wire,
        chunk_size: usize,
    ) -> Result<(usize, WorkspaceSupport)> {
        let store = self.store(name)?;
        let config = decode(config, &store.store.schema().ty)?;
        let client = guarded(store.store.configure(&config)).await?;
        let chunk_size = match chunk_size {
            0 => USUAL_PIECE,
            size => size.min(LARGEST_PIECE),
        };
        let support = client.support();
        *store.client.write().unwrap_or_else(PoisonError::into_inner) = Some((client, chunk_size));
        Ok((chunk_size, support))
    }

    pub async fn states(&self, name: &str) -> Result<Vec<String>> {
        let (client, _) = self.client(name)?;
        guarded(client.workspaces()).await
    }

    pub async fn read_state(&self, name: &str, workspace: &str) -> Result<(Vec<u8>, usize)> {
        let (client, chunk_size) = self.client(name)?;
        let state = guarded(client.read(workspace)).await?;
        Ok((state.unwrap_or_default(), chunk_size))
    }

    pub async fn write_state(&self, name: &str, workspace: &str, state: Vec<u8>) -> Result<()> {
        let (client, _) = self.client(name)?;
        guarded(client.write(workspace, state)).await
    }

    pub async fn delete_state(&self, name: &str, workspace: &str) -> Result<()> {
        let (client, _) = self.client(name)?;
        guarded(client.delete(workspace)).await
    }

    pub async fn lock_state(
        &self,
        name: &str,
        workspace: &str,
        info: LockInfo,
    ) -> std::result::Result<String, LockError> {
        let (client, _) = self.client(name)?;
        match guarded(async { Ok(client.lock(workspace, info).await) }).await {
            Ok(result) => result,
            Err(panicked) => Err(LockError::Failed(panicked)),
        }
    }

    pub async fn unlock_state(&self, name: &str, workspace: &str, id: &str) -> Result<()> {
        let (client, _) = self.client(name)?;
        guarded(client.unlock(workspace, id)).await
    }
}

/// What the metadata of an answer says about workspaces.
pub(crate) fn support_text(support: WorkspaceSupport) -> &'static str {
    match support {
        WorkspaceSupport::Single => "single",
        WorkspaceSupport::Named => "named",
        WorkspaceSupport::NamedAndDefault => "default",
        WorkspaceSupport::NamedByState => "by-state",
        WorkspaceSupport::NamedWithoutDefault => "no-default",
    }
}

/// Who asks for a lock.
pub(crate) fn lock_info(metadata: Option<&[u8]>, operation: &str) -> LockInfo {
    metadata
        .and_then(LockInfo::from_json)
        .unwrap_or_else(|| LockInfo::of_this_process(operation))
}

/// Who has the lock, for the metadata of the answer.
pub(crate) fn holder(error: &LockError) -> Option<String> {
    let LockError::Held {
        holder: Some(holder), ..
    } = error
    else {
        return None;
    };
    let text = holder.to_json();
    match text.len() <= LARGEST_HOLDER {
        true => Some(text),
        // Its name is what counts.
        false => Some(
            LockInfo {
                id: holder.id.clone(),
                ..LockInfo::default()
            }
            .to_json(),
        ),
    }
}

/// The pieces of a state: where they are, the length of the whole, and the bytes. Of an empty state there are none.
pub(crate) fn pieces(state: &[u8], size: usize) -> impl Iterator<Item = (pb::StateRange, i64, &[u8])> {
    let length = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    let total = length(state.len());
    let mut start = 0;
    state.chunks(size.max(1)).map(move |bytes| {
        let end = start + bytes.len() - 1;
        let range = pb::StateRange {
            start: length(start),
            end: length(end),
        };
        start = end + 1;
        (range, total, bytes)
    })
}

/// Puts the pieces of a state together.
pub(crate) async fn gather(
    mut pieces: impl Stream<Item = std::result::Result<pb::write_state_bytes::RequestChunk, Status>> + Unpin,
) -> std::result::Result<(pb::RequestChunkMeta, Vec<u8>), Status> {
    let mut meta = None;
    let mut state = Vec::new();
    let mut total = 0;
    while let Some(piece) = pieces.next().await {
        let piece = piece?;
        meta = meta.or(piece.meta);
        total = usize::try_from(piece.total_length).unwrap_or_default();
        state.extend_from_slice(&piece.bytes);
    }
    let meta = meta.ok_or_else(|| Status::invalid_argument("no piece says which state it belongs to"))?;
    if state.len() != total {
        let what = format!("{} of {total} bytes of the state arrived", state.len());
        return Err(Status::invalid_argument(what));
    }
    Ok((meta, state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_a_state_with_ends_included() {
        let found: Vec<_> = pieces(b"abcde", 2)
            .map(|(r, total, b)| (r.start, r.end, total, b))
            .collect();
        assert_eq!(found, [(0, 1, 5, &b"ab"[..]), (2, 3, 5, b"cd"), (4, 4, 5, b"e")]);
        assert_eq!(pieces(b"", 2).count(), 0);
    }
}
