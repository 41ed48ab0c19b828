//! Parser of keys.

use crate::wire::Reader;
use crate::{Error, MAGIC, PrivateKey};

impl PrivateKey {
    /// Parses the content of the PEM block.
    pub fn read(bytes: &[u8]) -> Result<PrivateKey, Error> {
        let mut outer = Reader(bytes.strip_prefix(MAGIC).ok_or(Error::NotOpenSsh)?);
        let cipher = outer.string()?;
        // Only encrypted keys have a key derivation function.
        let (_function, _options) = (outer.string()?, outer.string()?);
        if outer.u32()? != 1 {
            return Err(Error::SeveralKeys);
        }
        let _public = outer.string()?;
        if cipher != b"none" {
            return Err(Error::Encrypted);
        }
        let mut secret = Reader(outer.string()?);
        // Nothing was decrypted, so different numbers show that the key is damaged.
        if secret.u32()? != secret.u32()? {
            return Err(Error::CheckNumbers);
        }
        let key = read_secret(&mut secret)?;
        let _comment = secret.string()?;
        // No byte can follow 255, so longer padding does not match the sequence, and is rejected.
        if !secret
            .0
            .iter()
            .zip(1u32..)
            .all(|(byte, expected)| u32::from(*byte) == expected)
        {
            return Err(Error::Padding);
        }
        Ok(key)
    }
}

fn read_secret(secret: &mut Reader<'_>) -> Result<PrivateKey, Error> {
    let name = secret.string()?;
    Ok(match name {
        b"ssh-rsa" => PrivateKey::Rsa {
            n: secret.number()?,
            e: secret.number()?,
            d: secret.number()?,
            coefficient: secret.number()?,
            p: secret.number()?,
            q: secret.number()?,
        },
        b"ssh-ed25519" => {
            // The public key is read from the secret, which repeats it.
            let _public = secret.string()?;
            let (seed, public) = secret.string()?.split_at_checked(32).ok_or(Error::Length)?;
            PrivateKey::Ed25519 {
                seed: seed.to_vec(),
                public: public.to_vec(),
            }
        }
        _ if name.starts_with(b"ecdsa-sha2-") => PrivateKey::Ecdsa {
            curve: String::from_utf8_lossy(secret.string()?).into_owned(),
            point: secret.string()?.to_vec(),
            scalar: secret.number()?,
        },
        other => return Err(Error::Type(String::from_utf8_lossy(other).into_owned())),
    })
}
