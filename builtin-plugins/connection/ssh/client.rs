//! One SSH connection: host key verification, algorithms, and the connection through a bastion.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use russh::client::{self, ChannelOpenHandle, Handle, Msg, Session};
use russh::keys::{PublicKey, PublicKeyOrCertificate};
use russh::{Channel, ChannelOpenFailure, Preferred, cipher, kex};
use tokio::io::{AsyncRead, AsyncWrite};

use super::agent::{self, AgentSettings};
use super::settings::{Hop, Settings};
use super::{auth, keys, proxy};
use crate::{Error, Result};

/// Interval of keepalive requests to a silent server.
const KEEPALIVE: Duration = Duration::from_secs(2);

/// Maximum number of unanswered keepalive requests. A dead server is noticed after two minutes, as in Terraform.
const MISSED: usize = 60;

/// Handler of the server's requests.
pub(super) struct Client {
    host: String,
    host_key: Option<PublicKey>,
    /// Socket path of the agent, if it is forwarded to the server.
    agent: Option<PathBuf>,
}

impl client::Handler for Client {
    type Error = Error;

    async fn check_server_key(&mut self, shown: &PublicKeyOrCertificate) -> Result<bool> {
        match &self.host_key {
            // Terraform accepts any host key unless the block has host_key.
            None => Ok(true),
            Some(expected) => match keys::check_host(expected, shown, &self.host) {
                Ok(()) => Ok(true),
                Err(problem) => Err(Error::new(format!("ssh: handshake failed: knownhosts: {problem}"))),
            },
        }
    }

    async fn server_channel_open_agent_forward(
        &mut self,
        channel: Channel<Msg>,
        reply: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<()> {
        match &self.agent {
            Some(socket) => {
                reply.accept().await;
                tokio::spawn(agent::forward(channel, socket.clone()));
            }
            None => reply.reject(ChannelOpenFailure::AdministrativelyProhibited).await,
        }
        Ok(())
    }
}

/// A connection to the target, and the connection to the bastion through which it runs.
pub(super) struct Connected {
    pub handle: Handle<Client>,
    bastion: Option<Handle<Client>>,
}

impl Connected {
    /// Connects and authenticates, through the proxy and the bastion if there are any.
    pub async fn to(settings: &Settings) -> Result<Connected> {
        let agent = settings.agent.as_ref();
        let Some(hop) = &settings.bastion else {
            let stream = proxy::dial(settings.proxy.as_ref(), &settings.target).await?;
            return Ok(Connected {
                handle: over(stream, &settings.target, agent, true).await?,
                bastion: None,
            });
        };
        let reached = async {
            let stream = proxy::dial(settings.proxy.as_ref(), hop).await?;
            over(stream, hop, agent, false).await
        };
        let bastion = reached
            .await
            .map_err(|error| error.context("Error connecting to bastion"))?;
        let target = &settings.target;
        let channel = bastion
            // The protocol requires an address from which the connection originates (RFC 4254, section 7.2). Servers only log it.
            .channel_open_direct_tcpip(target.host.as_str(), u32::from(target.port), "127.0.0.1", 0)
            .await
            .map_err(|error| {
                Error::new(match error {
                    russh::Error::ChannelOpenFailure(reason) => {
                        format!("the bastion could not connect to {}: {reason:?}", target.address())
                    }
                    other => Error::from(other).context("the bastion").to_string(),
                })
            })?;
        Ok(Connected {
            handle: over(channel.into_stream(), target, agent, true).await?,
            bastion: Some(bastion),
        })
    }

    /// Disconnects from the target, then from the bastion through which that connection runs.
    pub async fn close(self) {
        for handle in [Some(self.handle), self.bastion].into_iter().flatten() {
            // An error is ignored: the connection may be lost already.
            drop(handle.disconnect(russh::Disconnect::ByApplication, "", "").await);
            // Waits until the disconnect message is sent, but not for a server that does not respond.
            drop(tokio::time::timeout(Duration::from_secs(2), handle).await);
        }
    }
}

/// Opens an SSH connection over a stream, and authenticates.
async fn over<S>(stream: S, hop: &Hop, agent: Option<&AgentSettings>, forwards: bool) -> Result<Handle<Client>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let client = Client {
        host: hop.host.clone(),
        host_key: hop.host_key.clone(),
        // A bastion only forwards bytes, so the agent is not forwarded to it.
        agent: agent.filter(|_| forwards).map(|agent| agent.socket.clone()),
    };
    let whole = async {
        let mut handle = client::connect_stream(Arc::new(config(hop)), stream, client).await?;
        auth::log_in(&mut handle, hop, agent).await?;
        Ok(handle)
    };
    whole
        .await
        .map_err(|error: Error| error.context(format!("SSH authentication failed ({}@{})", hop.user, hop.address())))
}

fn config(hop: &Hop) -> client::Config {
    let mut preferred = Preferred::DEFAULT;
    // Key exchanges that Go's SSH library offers and russh does not offer by default. Some appliances support no others.
    let mut exchanges = preferred.kex.to_vec();
    let place = exchanges
        .iter()
        .position(|name| *name == kex::DH_GEX_SHA256)
        .unwrap_or_default();
    exchanges.splice(
        place..place,
        [
            kex::ECDH_SHA2_NISTP256,
            kex::ECDH_SHA2_NISTP384,
            kex::ECDH_SHA2_NISTP521,
        ],
    );
    exchanges.push(kex::DH_G14_SHA1);
    preferred.kex = Cow::Owned(exchanges);
    preferred.cipher = Cow::Borrowed(&[
        cipher::AES_256_GCM,
        cipher::CHACHA20_POLY1305,
        cipher::AES_256_CTR,
        cipher::AES_192_CTR,
        cipher::AES_128_CTR,
    ]);
    // A server has several host keys. Offering only the type of `host_key` makes it use the key that can be verified.
    if let Some(key) = &hop.host_key {
        preferred.key = Cow::Owned(keys::algorithms_of(key));
        preferred.host_key_certificates = Cow::Owned(keys::certificate_algorithms());
    }
    client::Config {
        preferred,
        keepalive_interval: Some(KEEPALIVE),
        keepalive_max: MISSED,
        nodelay: true,
        ..client::Config::default()
    }
}
