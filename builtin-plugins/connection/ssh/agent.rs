//! The user's SSH agent: authentication with its keys, and agent forwarding to the other machine.

use std::path::{Path, PathBuf};

use russh::Channel;
use russh::client::Msg;
use russh::keys::agent::AgentIdentity;
use russh::keys::agent::client::AgentClient;
use russh::keys::{PublicKey, decode_secret_key};
use system::streams::{self, LocalStream};

use crate::{Error, Result};

/// Socket of the agent, and the key that the connection block prefers.
#[derive(Clone, Debug)]
pub struct AgentSettings {
    /// Socket path of the agent.
    pub socket: PathBuf,
    /// `agent_identity`: path of a key file, or the comment of a key.
    pub identity: Option<String>,
}

/// Connects to the agent. Returns the connection and the keys, with the preferred key first.
pub async fn keys(settings: &AgentSettings) -> Result<(AgentClient<LocalStream>, Vec<AgentIdentity>)> {
    let what = |error: &dyn std::fmt::Display| {
        Error::new(format!(
            "the SSH agent at {} cannot be used: {error}",
            settings.socket.display()
        ))
    };
    let stream = streams::connect(&settings.socket).await.map_err(|e| what(&e))?;
    let mut client = AgentClient::connect(stream);
    let mut identities = client.request_identities().await.map_err(|e| what(&e))?;
    if let Some(wanted) = &settings.identity {
        let key = key_in_file(Path::new(wanted));
        // Servers allow few attempts, so the preferred key comes first. The sort is stable: other keys keep the agent's order.
        identities.sort_by_key(|identity| rank(identity, wanted, key.as_ref()));
    }
    Ok((client, identities))
}

/// Ranks a key by its similarity to the preferred one: 0 if the key or the whole comment is the same, 1 if its comment ends with the
/// preferred text, 2 otherwise.
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

/// Reads a public key from a file that contains the public or the private key, or else from the file with `.pub` appended to its name.
fn key_in_file(path: &Path) -> Option<PublicKey> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".pub");
    [path.to_owned(), beside.into()].iter().find_map(|path| {
        let text = std::fs::read_to_string(path).ok()?;
        let public = PublicKey::from_openssh(text.trim()).ok();
        public.or_else(|| Some(decode_secret_key(&text, None).ok()?.public_key().clone()))
    })
}

/// Copies between a forwarding channel and the agent until either side closes it.
pub async fn forward(channel: Channel<Msg>, socket: PathBuf) {
    let Ok(mut agent) = streams::connect(&socket).await else {
        return;
    };
    let mut stream = channel.into_stream();
    // An error is ignored: the other machine sees that the channel is closed.
    drop(tokio::io::copy_bidirectional(&mut stream, &mut agent).await);
}
