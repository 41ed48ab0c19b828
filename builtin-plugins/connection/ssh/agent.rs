//! The agent that has the person's keys: signing with them, and letting the other machine do so, too.

use std::path::{Path, PathBuf};

use russh::Channel;
use russh::client::Msg;
use russh::keys::agent::AgentIdentity;
use russh::keys::agent::client::AgentClient;
use russh::keys::{PublicKey, decode_secret_key};
use tokio::net::UnixStream;

use crate::{Error, Result};

/// Which agent, and which of its keys comes first.
#[derive(Clone, Debug)]
pub struct AgentSettings {
    /// Where it listens.
    pub socket: PathBuf,
    /// A file with the key, or the key's comment.
    pub identity: Option<String>,
}

/// A connection to an agent, and its keys, the preferred one first.
pub async fn keys(settings: &AgentSettings) -> Result<(AgentClient<UnixStream>, Vec<AgentIdentity>)> {
    let what = |error: &dyn std::fmt::Display| {
        Error::new(format!(
            "the SSH agent at {} cannot be used: {error}",
            settings.socket.display()
        ))
    };
    let stream = UnixStream::connect(&settings.socket).await.map_err(|e| what(&e))?;
    let mut client = AgentClient::connect(stream);
    let mut identities = client.request_identities().await.map_err(|e| what(&e))?;
    if let Some(wanted) = &settings.identity {
        let key = key_in_file(Path::new(wanted));
        identities.sort_by_key(|identity| rank(identity, wanted, key.as_ref()));
    }
    Ok((client, identities))
}

/// How well a key fits: exactly, by the end of its comment, or not.
fn rank(identity: &AgentIdentity, wanted: &str, key: Option<&PublicKey>) -> u8 {
    let (data, comment) = match identity {
        AgentIdentity::PublicKey { key, comment } => (key.key_data(), comment),
        AgentIdentity::Certificate { certificate, comment } => (certificate.public_key(), comment),
    };
    if key.is_some_and(|key| key.key_data() == data) || comment == wanted {
        0
    } else if comment.ends_with(wanted) {
        1
    } else {
        2
    }
}

/// The public key in a file, or in the one beside it: a public key file, or a private key.
fn key_in_file(path: &Path) -> Option<PublicKey> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".pub");
    [path.to_owned(), beside.into()].iter().find_map(|path| {
        let text = std::fs::read_to_string(path).ok()?;
        let public = PublicKey::from_openssh(text.trim()).ok();
        public.or_else(|| Some(decode_secret_key(&text, None).ok()?.public_key().clone()))
    })
}

/// Passes what the other machine asks on to the agent, until one of them ends it.
pub async fn forward(channel: Channel<Msg>, socket: PathBuf) {
    let Ok(mut agent) = UnixStream::connect(&socket).await else {
        return;
    };
    let mut stream = channel.into_stream();
    // However it ends, there is nobody to tell.
    drop(tokio::io::copy_bidirectional(&mut stream, &mut agent).await);
}
