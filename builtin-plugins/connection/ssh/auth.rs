//! Authentication over SSH.

use russh::client::{AuthResult, Handle, Handler, KeyboardInteractiveAuthResponse};
use russh::keys::agent::AgentIdentity;
use russh::keys::{HashAlg, PrivateKey, PrivateKeyWithHashAlg, PublicKeyOrCertificate};
use russh::{MethodKind, MethodSet, Signer};

use super::agent::{self, AgentSettings};
use super::keys::UserKey;
use super::settings::Hop;
use crate::{Error, Result};

/// Authentication methods in the order of attempts.
const ORDER: [Way; 4] = [Way::Key, Way::Password, Way::Interactive, Way::Agent];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Key,
    Password,
    Interactive,
    Agent,
}

impl Way {
    fn kind(self) -> MethodKind {
        match self {
            Way::Key | Way::Agent => MethodKind::PublicKey,
            Way::Password => MethodKind::Password,
            Way::Interactive => MethodKind::KeyboardInteractive,
        }
    }

    /// Returns true if there are credentials for the method. A private key in the block excludes the keys of the agent.
    fn is_there(self, hop: &Hop, agent: Option<&AgentSettings>) -> bool {
        match self {
            Way::Key => hop.key.is_some(),
            Way::Password | Way::Interactive => hop.password.is_some(),
            Way::Agent => agent.is_some() && hop.key.is_none(),
        }
    }
}

/// Authenticates with each method at most once, if the server offers it. A server may require several methods.
pub(super) async fn log_in<H: Handler>(handle: &mut Handle<H>, hop: &Hop, agent: Option<&AgentSettings>) -> Result<()> {
    let mut attempted = vec!["none"];
    // The method "none" makes the server send its list of methods.
    let mut allowed = match handle.authenticate_none(&hop.user).await? {
        AuthResult::Success => return Ok(()),
        AuthResult::Failure { remaining_methods, .. } => remaining_methods,
    };
    let mut left: Vec<Way> = ORDER.into_iter().filter(|way| way.is_there(hop, agent)).collect();
    let mut problem = None;
    while let Some(next) = left.iter().position(|way| allowed.contains(&way.kind())) {
        let way = left.remove(next);
        attempted.push((&way.kind()).into());
        let answer = match way {
            Way::Key => match &hop.key {
                Some(key) => with_key(handle, &hop.user, key).await?,
                None => continue,
            },
            Way::Password => {
                let password = hop.password.clone().unwrap_or_default();
                handle.authenticate_password(&hop.user, password).await?
            }
            Way::Interactive => interactively(handle, &hop.user, hop.password.as_deref().unwrap_or_default()).await?,
            Way::Agent => match agent {
                Some(agent) => match with_agent(handle, &hop.user, agent).await {
                    Ok(answer) => answer,
                    Err(error) => {
                        // A user may still log in with a password, so the error of the agent is shown only if all methods fail.
                        problem = Some(error);
                        continue;
                    }
                },
                None => continue,
            },
        };
        match answer {
            AuthResult::Success => return Ok(()),
            AuthResult::Failure {
                remaining_methods,
                partial_success,
            } => {
                // A server that closes the connection sends no list of methods. Its last answer is then no refusal of the method.
                if handle.is_closed() {
                    return Err(Error::new(format!(
                        "the server closed the connection while logging in, after the methods [{}]",
                        attempted.join(" ")
                    )));
                }
                // Without partial success, an empty list is ignored: it would end the attempts although other methods may be left.
                if partial_success || !remaining_methods.is_empty() {
                    allowed = remaining_methods;
                }
            }
        }
    }
    Err(refused(&attempted, &allowed, problem))
}

fn refused(attempted: &[&str], allowed: &MethodSet, problem: Option<Error>) -> Error {
    let allowed: Vec<&str> = allowed.iter().map(Into::into).collect();
    let problem = problem.map(|error| format!("; {error}")).unwrap_or_default();
    Error::new(format!(
        "ssh: handshake failed: ssh: unable to authenticate, attempted methods [{}], no supported methods remain (the server \
         wants one of: {}){problem}",
        attempted.join(" "),
        allowed.join(", ")
    ))
}

/// Returns the hash for signatures with an RSA key: the strongest one that the server announces.
async fn rsa_hash<H: Handler>(handle: &Handle<H>) -> Result<Option<HashAlg>> {
    Ok(handle.best_supported_rsa_hash().await?.flatten())
}

async fn with_key<H: Handler>(handle: &mut Handle<H>, user: &str, key: &UserKey) -> Result<AuthResult> {
    // Only RSA keys have a choice of hashes. Without one, the algorithm implies SHA-1, which current servers refuse.
    let hash = if key.key.algorithm().is_rsa() {
        rsa_hash(handle).await?
    } else {
        None
    };
    match &key.certificate {
        None => {
            let key = PrivateKeyWithHashAlg::new(key.key.clone(), hash);
            Ok(handle.authenticate_publickey(user, key).await?)
        }
        Some(certificate) => {
            let mut signer = KeySigner(&key.key);
            handle
                .authenticate_certificate_with(user, certificate.clone(), hash, &mut signer)
                .await
        }
    }
}

/// Signs with a private key for authentication by certificate.
// The signer of russh uses SHA-1 for RSA certificates, which current servers refuse.
struct KeySigner<'k>(&'k PrivateKey);

impl Signer for KeySigner<'_> {
    type Error = Error;

    async fn auth_sign(&mut self, _: &AgentIdentity, hash: Option<HashAlg>, mut data: Vec<u8>) -> Result<Vec<u8>> {
        use russh::keys::signature::Signer as _;
        use russh::keys::ssh_encoding::Encode as _;
        use russh::keys::ssh_key::Signature;
        let failed = |error: &dyn std::fmt::Display| Error::new(format!("the key cannot sign: {error}"));
        let signature: Signature = match self.0.key_data().rsa() {
            Some(pair) => (pair, hash).try_sign(&data).map_err(|e| failed(&e))?,
            None => self.0.try_sign(&data).map_err(|e| failed(&e))?,
        };
        signature.encode_prefixed(&mut data).map_err(|e| failed(&e))?;
        Ok(data)
    }
}

/// Answers every question of the server with the password.
async fn interactively<H: Handler>(handle: &mut Handle<H>, user: &str, password: &str) -> Result<AuthResult> {
    /// Maximum number of rounds, so that a server cannot keep the client busy forever.
    const QUESTIONS: usize = 20;
    let mut answer = handle.authenticate_keyboard_interactive_start(user, None).await?;
    for _ in 0..QUESTIONS {
        match answer {
            KeyboardInteractiveAuthResponse::Success => return Ok(AuthResult::Success),
            KeyboardInteractiveAuthResponse::Failure {
                remaining_methods,
                partial_success,
            } => {
                return Ok(AuthResult::Failure {
                    remaining_methods,
                    partial_success,
                });
            }
            KeyboardInteractiveAuthResponse::InfoRequest { prompts, .. } => {
                let answers = vec![password.to_owned(); prompts.len()];
                answer = handle.authenticate_keyboard_interactive_respond(answers).await?;
            }
        }
    }
    Err(Error::new("the server goes on asking for the password"))
}

/// Tries the keys of the agent one after the other.
async fn with_agent<H: Handler>(handle: &mut Handle<H>, user: &str, settings: &AgentSettings) -> Result<AuthResult> {
    let (mut client, identities) = agent::keys(settings).await?;
    let mut answer = AuthResult::Failure {
        remaining_methods: MethodSet::empty(),
        partial_success: false,
    };
    for identity in identities {
        let shown: PublicKeyOrCertificate = match &identity {
            AgentIdentity::PublicKey { key, .. } => key.clone().into(),
            AgentIdentity::Certificate { certificate, .. } => certificate.clone().into(),
        };
        let hash = if shown.public_key().algorithm().is_rsa() {
            rsa_hash(handle).await?
        } else {
            None
        };
        let result = match identity {
            AgentIdentity::PublicKey { key, .. } => {
                handle.authenticate_publickey_with(user, key, hash, &mut client).await
            }
            AgentIdentity::Certificate { certificate, .. } => {
                handle
                    .authenticate_certificate_with(user, certificate, hash, &mut client)
                    .await
            }
        };
        match result {
            Ok(AuthResult::Success) => return Ok(AuthResult::Success),
            Ok(failure) => {
                let partial = matches!(
                    &failure,
                    AuthResult::Failure {
                        partial_success: true,
                        ..
                    }
                );
                answer = failure;
                // After partial success, the server requires another method instead of another key.
                if partial || handle.is_closed() {
                    break;
                }
            }
            // The agent may refuse to sign with this key (its token is not plugged in, or the user declines) but sign with the next.
            Err(error) if handle.is_closed() => return Err(Error::new(error.to_string())),
            Err(_) => {}
        }
    }
    Ok(answer)
}
