//! Encryption of states and saved plans: from the configuration of the working directory and `TF_ENCRYPTION`.

use std::path::Path;
use std::sync::{Arc, PoisonError};

use config::files::Disk;
use config::known::{KnownRoot, may_encrypt};
use encryption::settings::Settings;
use encryption::{Encryption, Programs};
use state::{Cipher, Codec};
use syntax::{Diagnostic, Diagnostics};

use crate::core_version;
use crate::session::{Configured, Session};

const VARIABLE: &str = "TF_ENCRYPTION";

impl Session {
    /// Returns the configuration of the encryption. The first call reads it and shows its warnings, so a command that uses no state or plan
    /// does not evaluate it.
    ///
    /// # Errors
    /// The configuration has errors.
    pub fn encryption(&self) -> Configured {
        let mut known = self.encryption.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*known {
            return known.clone();
        }
        let read = self.read_encryption();
        *known = Some(read.clone());
        read
    }

    fn read_encryption(&self) -> Configured {
        let of_environment = self.env.get(VARIABLE).map(Settings::of_environment).transpose();
        let of_environment = of_environment?.flatten();
        // Most configurations have no encryption block, and need nothing but this search.
        let may = may_encrypt(&Disk, ".").map_err(|e| unreadable(&e))?;
        if of_environment.is_none() && !may {
            return Ok(None);
        }
        // The root module is loaded separately, because commands that read no configuration need the encryption
        // block, too: only the root module is loaded, and only this block of it is used.
        let root = config::load_root(&Disk, ".", core_version()).map_err(|e| unreadable(&e))?;
        let block = root.module.encryption.clone();
        let broken = !root.module.losses.broken.is_empty() || block.is_none();
        if may && broken && root.diagnostics.has_errors() {
            // If the block were ignored, a state would be written in clear text.
            return Err(root.diagnostics.into_iter().filter(Diagnostic::is_error).collect());
        }
        let mut settings: Option<Settings> = None;
        let bodies = block
            .iter()
            .flat_map(|block| std::iter::once(&block.body).chain(&block.overrides));
        let decoded = bodies.map(|body| Settings::decode(body)).collect::<Result<Vec<_>, _>>();
        for more in decoded?.into_iter().chain(of_environment) {
            settings = Some(match settings {
                Some(base) => base.with(more),
                None => more,
            });
        }
        let Some(settings) = settings else {
            return Ok(None);
        };
        let workspace = stores::workspace::selected(&self.stores())?;
        let cwd = self.original_dir.to_str().unwrap_or(".");
        let known = KnownRoot::new(root.module, &self.set_variables(), cwd, &workspace);
        let program = self.builtins.executable.to_string_lossy().into_owned();
        let programs = Programs {
            key_providers: vec![program, "internal-plugin".to_owned(), "key-provider".to_owned()],
            left_out: self.builtins.left_out.clone(),
        };
        let found = Encryption::new(settings, known, &self.env, programs)?;
        self.show_now(found.warnings(), &root.sources);
        Ok(Some(Arc::new(found)))
    }

    /// Discards the configuration of the encryption, so that a command that runs again after file changes reads it
    /// again.
    pub fn forget_encryption(&self) {
        *self.encryption.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Returns the codec of stored states, which encrypts them if that is configured.
    ///
    /// # Errors
    /// The configuration of the encryption has errors.
    pub fn state_codec(&self) -> Result<Codec, Diagnostics> {
        let encryption = self.encryption()?;
        let target = encryption.as_ref().and_then(|encryption| encryption.state());
        Ok(target.map_or(Codec::PLAIN, |target| Codec::new(target.clone() as Arc<dyn Cipher>)))
    }

    /// Returns the codec of saved plans, which encrypts them if that is configured.
    ///
    /// # Errors
    /// The configuration of the encryption has errors.
    pub fn plan_codec(&self) -> Result<Codec, Diagnostics> {
        let encryption = self.encryption()?;
        let target = encryption.as_ref().and_then(|encryption| encryption.plan());
        Ok(target.map_or(Codec::PLAIN, |target| Codec::new(target.clone() as Arc<dyn Cipher>)))
    }

    /// Warns about a plan that is saved in clear text although the backend stores its state encrypted.
    pub fn warn_of_plain_plan(&self, codec: &Codec, path: &Path) {
        let state_is_plain = self.state_codec().is_ok_and(|codec| codec.cipher().is_none());
        if codec.cipher().is_some() || state_is_plain {
            return;
        }
        self.warn_now(Diagnostic::warning(
            "Saved plan is not encrypted",
            format!(
                "The state is encrypted, but the plan in {} has its values in clear text. Add a \"plan\" block with a method to the \
                 \"encryption\" block.",
                path.display()
            ),
        ));
    }
}

fn unreadable(error: &std::io::Error) -> Diagnostics {
    Diagnostic::error(
        "Failed to read module directory",
        format!(
            "The configuration in the working directory cannot be read, so it is not known if states are encrypted: {}.",
            ::files::io_reason(error)
        ),
    )
    .into()
}

impl stores::Encryption for Session {
    fn states(&self) -> Result<Codec, Diagnostics> {
        self.state_codec()
    }

    fn prepare_states(&self) -> Result<(), Diagnostics> {
        match self.encryption()?.as_ref().and_then(|encryption| encryption.state()) {
            Some(target) => target.prepare(),
            None => Ok(()),
        }
    }
}
