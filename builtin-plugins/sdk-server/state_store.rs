//! State stores in the protocol: states in chunks, and locks with their holders.

use std::sync::{Mutex, PoisonError};

use futures::{Stream, StreamExt as _};
use monoform_sdk::state_store::{LockError, LockInfo, WorkspaceSupport};
use monoform_sdk::{Empty, Members, Provider, Result, StateStore, async_trait};
use proto::tfplugin6 as pb;
use tonic::Status;

/// Chunk size in bytes if the host does not propose one.
const USUAL_PIECE: usize = 8 << 20;

/// Maximum chunk size in bytes.
const LARGEST_PIECE: usize = 128 << 20;

/// Size limit in bytes of the lock info in an answer's metadata. tonic limits the total size of the metadata.
const LARGEST_HOLDER: usize = 4 << 10;

/// A provider whose only member is a state store.
pub(crate) struct OneStore<S> {
    name: &'static str,
    store: Mutex<Option<S>>,
}

impl<S: StateStore> OneStore<S> {
    pub fn new(name: &'static str, store: S) -> OneStore<S> {
        OneStore {
            name,
            store: Mutex::new(Some(store)),
        }
    }
}

#[async_trait]
impl<S: StateStore> Provider for OneStore<S> {
    type Config = Empty;
    type Client = ();

    fn members(&self, members: &mut Members<()>) {
        // The store is moved out, since members are listed only once.
        if let Some(store) = self.store.lock().unwrap_or_else(PoisonError::into_inner).take() {
            members.state_store(self.name, store);
        }
    }

    async fn configure(&self, _config: Empty, _terraform_version: &str) -> Result<()> {
        Ok(())
    }
}

/// Returns the chunk size for reading states. The host proposes a size, or 0 for the default.
pub(crate) fn chunk_size(requested: usize) -> usize {
    match requested {
        0 => USUAL_PIECE,
        size => size.min(LARGEST_PIECE),
    }
}

/// Returns the value of the metadata `STATE_WORKSPACES` for these workspaces.
pub(crate) fn support_text(support: WorkspaceSupport) -> &'static str {
    match support {
        WorkspaceSupport::Single => "single",
        WorkspaceSupport::Named => "named",
        WorkspaceSupport::NamedAndDefault => "default",
        WorkspaceSupport::NamedByState => "by-state",
        WorkspaceSupport::NamedWithoutDefault => "no-default",
    }
}

/// Returns the lock info for a new lock: from the metadata of the request or, without metadata, with this process as the holder.
pub(crate) fn lock_info(metadata: Option<&[u8]>, operation: &str) -> LockInfo {
    metadata
        .and_then(LockInfo::from_json)
        .unwrap_or_else(|| LockInfo::of_this_process(operation))
}

/// Returns the lock info of the current holder as metadata for the answer; `None` if the error has none.
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
        // The lock info is too large, so only the lock ID is sent, which `force-unlock` needs.
        false => Some(
            LockInfo {
                id: holder.id.clone(),
                ..LockInfo::default()
            }
            .to_json(),
        ),
    }
}

/// Splits a state into chunks: offset, total length and bytes. An empty state has no chunks.
pub(crate) fn pieces(state: &[u8], size: usize) -> impl Iterator<Item = (pb::StateRange, i64, &[u8])> {
    let length = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    let total = length(state.len());
    let mut start = 0;
    state.chunks(size.max(1)).map(move |bytes| {
        // Both ends of a range are inclusive in the protocol, as in HTTP.
        let end = start + bytes.len() - 1;
        let range = pb::StateRange {
            start: length(start),
            end: length(end),
        };
        start = end + 1;
        (range, total, bytes)
    })
}

/// Joins the chunks of a state.
pub(crate) async fn gather(
    mut pieces: impl Stream<Item = std::result::Result<pb::write_state_bytes::RequestChunk, Status>> + Unpin,
) -> std::result::Result<(pb::RequestChunkMeta, Vec<u8>), Status> {
    let mut meta = None;
    let mut state = Vec::new();
    let mut total = 0;
    while let Some(piece) = pieces.next().await {
        let piece = piece?;
        // Only the first chunk has the metadata of the request.
        meta = meta.or(piece.meta);
        total = usize::try_from(piece.total_length).unwrap_or_default();
        state.extend_from_slice(&piece.bytes);
    }
    let meta = meta.ok_or_else(|| Status::invalid_argument("no piece names the state store and the workspace"))?;
    // An aborted stream can look like a completed one. Without this check, half a state could be stored.
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
