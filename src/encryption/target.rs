//! Chains of methods: the first one encrypts, and all are tried for decryption.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use state::CipherError;
use state::codec::{Cipher, Head, Opened};
use syntax::{Diagnostic, Diagnostics};

use crate::envelope::{Metadata, Sealed};
use crate::keys::{Builder, Mode};
use crate::method::Method;

/// Encryption of one kind of data: states, saved plans, or states that a data source reads.
pub struct Target {
    name: String,
    builder: Arc<Builder>,
    /// Indexes of the methods in order of precedence; never empty.
    methods: Vec<usize>,
    /// The first method with its key. It is cached for the whole run, so that results can be saved even if a key provider fails later.
    encrypting: Mutex<Option<Arc<(Method, Metadata)>>>,
    /// Cache of methods for decryption, by index and stored metadata. Deriving a key takes long, and all records of a journal have the same
    /// key.
    decrypting: Mutex<HashMap<(usize, Metadata), Arc<Method>>>,
}

/// Prints only the name, because other fields contain keys.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Target {
    pub(crate) fn new(name: String, builder: Arc<Builder>, methods: Vec<usize>) -> Target {
        Target {
            name,
            builder,
            methods,
            encrypting: Mutex::default(),
            decrypting: Mutex::default(),
        }
    }

    /// Obtains the key for encryption, so that it is available when results must be saved.
    ///
    /// # Errors
    /// The key is not available, or the configuration has errors.
    pub fn prepare(&self) -> Result<(), Diagnostics> {
        self.primary().map(drop)
    }

    fn primary(&self) -> Result<Arc<(Method, Metadata)>, Diagnostics> {
        let mut encrypting = self.encrypting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ready) = &*encrypting {
            return Ok(ready.clone());
        }
        let primary = self.methods.first().copied();
        let built = primary.map_or_else(
            || Ok((Method::Unencrypted, Metadata::new())),
            |method| self.builder.method(method, Mode::Encrypt),
        )?;
        let built = Arc::new(built);
        *encrypting = Some(built.clone());
        Ok(built)
    }

    fn decrypting(&self, method: usize, metadata: &Metadata) -> Result<Arc<Method>, Diagnostics> {
        let mut known = self.decrypting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ready) = known.get(&(method, metadata.clone())) {
            return Ok(ready.clone());
        }
        let (built, _) = self.builder.method(method, Mode::Decrypt(metadata))?;
        let built = Arc::new(built);
        known.insert((method, metadata.clone()), built.clone());
        Ok(built)
    }

    fn is_plain(&self, method: usize) -> bool {
        self.builder.is_unencrypted(method)
    }
}

impl Cipher for Target {
    fn seal(&self, text: Vec<u8>, head: Option<Head<'_>>) -> Result<Vec<u8>, CipherError> {
        if self.methods.first().is_some_and(|primary| self.is_plain(*primary)) {
            return Ok(text);
        }
        let primary = self.primary().map_err(clause)?;
        let (method, metadata) = &*primary;
        let data = method
            .encrypt(text)
            .map_err(|e| CipherError(format!("encryption failed for {}: {e}", self.name)))?;
        let sealed = Sealed {
            metadata: metadata.clone(),
            data,
        };
        sealed.write(head)
    }

    fn open(&self, sealed: &[u8]) -> Result<Opened, CipherError> {
        let Sealed { metadata, data } = Sealed::read(sealed)?;
        let mut attempts = String::new();
        for (at, method) in self.methods.iter().enumerate() {
            if self.is_plain(*method) {
                continue;
            }
            // A key that cannot be obtained is an error. The next method is tried only if this key does not decrypt the text.
            let ready = self.decrypting(*method, &metadata).map_err(clause)?;
            match ready.decrypt(&data) {
                Ok(text) => {
                    return Ok(Opened { text, outdated: at > 0 });
                }
                Err(e) => attempts.push_str(&format!(
                    "\nattempted decryption failed for {} by {}: {e}",
                    self.name,
                    self.builder.shown(*method)
                )),
            }
        }
        Err(CipherError(format!(
            "decryption failed for all provided methods: {}{attempts}",
            match attempts.is_empty() {
                true => "none of them decrypts",
                false => "the keys are not those that it was encrypted with, or it was damaged",
            }
        )))
    }

    fn accept_plain(&self) -> Result<bool, CipherError> {
        if !self.methods.iter().any(|method| self.is_plain(*method)) {
            return Err(CipherError(
                "encountered unencrypted payload without unencrypted method configured: to encrypt what is stored in clear \
                 text now, add a method \"unencrypted\" as a fallback until it has been written once"
                    .to_owned(),
            ));
        }
        Ok(!self.methods.first().is_some_and(|primary| self.is_plain(*primary)))
    }
}

/// Joins the errors of a configuration to a clause.
fn clause(problems: Diagnostics) -> CipherError {
    let text = |problem: &Diagnostic| format!("{}: {}", problem.summary, problem.detail.trim_end_matches('.'));
    let errors: Vec<String> = problems.iter().filter(|d| d.is_error()).map(text).collect();
    CipherError(errors.join("; "))
}
