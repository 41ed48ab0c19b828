//! OpenPGP signatures: over documents, and over keys (user IDs, subkey bindings, revocations).

use super::Error;
use super::packet::{Reader, dearmored};
use data_encoding::HEXUPPER;

const SIGNATURE: u8 = 2;

/// Signature types.
pub(super) mod kind {
    pub const OF_BYTES: u8 = 0x00;
    pub const OF_TEXT: u8 = 0x01;
    /// Signature types for the four degrees of certainty that a user ID belongs to a key.
    pub const NAMES: std::ops::RangeInclusive<u8> = 0x10..=0x13;
    pub const BINDS_SUBKEY: u8 = 0x18;
    pub const BINDS_PRIMARY: u8 = 0x19;
    pub const ABOUT_KEY: u8 = 0x1f;
    pub const REVOKES_KEY: u8 = 0x20;
    pub const REVOKES_SUBKEY: u8 = 0x28;
    pub const REVOKES_NAME: u8 = 0x30;
}

#[derive(Clone, Debug)]
pub struct Signature {
    pub(super) kind: u8,
    pub(super) algorithm: u8,
    pub(super) hash: u8,
    /// Bytes that are hashed after the document: the signature's own head, and its length.
    pub(super) trailer: Vec<u8>,
    /// Creation time, in seconds since the epoch.
    pub(super) made: u64,
    /// Lifetime in seconds, if the signature expires.
    lifetime: Option<u64>,
    /// Key ID of the issuer, if it is named.
    issuer: Option<[u8; 8]>,
    /// Key flag that allows the key to sign documents; `None` if the signature has no key flags.
    pub(super) for_signing: Option<bool>,
    /// Signature by the subkey, inside the one that binds it.
    pub(super) embedded: Option<Box<Signature>>,
    pub(super) numbers: Vec<Vec<u8>>,
}

impl Signature {
    /// Parses the signatures in a file, which may be by several keys. Unreadable signatures are left out, unless there are no
    /// others.
    pub fn read_all(text: &[u8]) -> Result<Vec<Signature>, Error> {
        let bytes = dearmored(text)?;
        let mut reader = Reader(&bytes);
        let mut out = Vec::new();
        let mut wrong = None;
        while !reader.0.is_empty() {
            match reader.packet()? {
                (SIGNATURE, body) => match Signature::read_body(body) {
                    Ok(signature) => out.push(signature),
                    // A file may contain a signature of a newer kind in addition to one that can be verified.
                    Err(why) => wrong = wrong.or(Some(why)),
                },
                _ => wrong = wrong.or(Some(Error::NotASignature)),
            }
        }
        match wrong {
            Some(why) if out.is_empty() => Err(why),
            _ => Ok(out),
        }
    }

    pub(super) fn read_body(body: &[u8]) -> Result<Signature, Error> {
        let mut reader = Reader(body);
        let version = reader.byte()?;
        if version != 4 {
            return Err(Error::SignatureVersion(version));
        }
        let (kind, algorithm, hash) = (reader.byte()?, reader.byte()?, reader.byte()?);
        let length = reader.number(2)?;
        let hashed = reader.take(length)?;
        let mut trailer = body.get(..6 + length).unwrap_or_default().to_vec();
        let size = u32::try_from(trailer.len()).unwrap_or(u32::MAX);
        trailer.extend([4, 0xff]);
        trailer.extend(size.to_be_bytes());
        let length = reader.number(2)?;
        let unhashed = reader.take(length)?;
        // The first bytes of the hash are only a quick check for readers.
        reader.take(2)?;
        let mut signature = Signature {
            kind,
            algorithm,
            hash,
            trailer,
            made: 0,
            lifetime: None,
            issuer: None,
            for_signing: None,
            embedded: None,
            numbers: Vec::new(),
        };
        let mut dated = false;
        signature.parts(hashed, Some(&mut dated))?;
        if !dated {
            return Err(Error::NoDate);
        }
        signature.parts(unhashed, None)?;
        // Ed25519 of RFC 9580 has two values of 32 bytes where EdDSA has multiprecision integers.
        if algorithm == 27 {
            signature.numbers = vec![reader.take(32)?.to_vec(), reader.take(32)?.to_vec()];
        }
        while !reader.0.is_empty() {
            signature.numbers.push(reader.mpi()?);
        }
        Ok(signature)
    }

    /// Parses the subpackets of the unsigned area or, with `signed`, of the signed one. `signed` becomes true if that has a
    /// creation time.
    fn parts(&mut self, area: &[u8], signed: Option<&mut bool>) -> Result<(), Error> {
        let mut area = Reader(area);
        let is_signed = signed.is_some();
        let mut dated = false;
        while !area.0.is_empty() {
            let (critical, kind, mut content) = area.subpacket()?;
            match kind {
                2 if is_signed => {
                    self.made = content.number(4)? as u64;
                    dated = true;
                }
                3 if is_signed => self.lifetime = Some(content.number(4)? as u64).filter(|seconds| *seconds > 0),
                // The key ID (16) and the fingerprint (33) of the issuer need not be signed, because the issuer's key verifies the
                // signature anyway.
                16 => self.issuer = content.take(8)?.try_into().ok(),
                33 if content.byte()? == 4 => {
                    self.issuer = content.take(20)?.get(12..).and_then(|id| id.try_into().ok());
                }
                27 if is_signed => self.for_signing = Some(content.byte()? & 2 != 0),
                // This signature proves that the subkey itself agrees. One level of nesting is enough.
                32 if self.kind == kind::BINDS_SUBKEY => {
                    self.embedded = Signature::read_body(content.0)
                        .ok()
                        .filter(|s| s.kind == kind::BINDS_PRIMARY)
                        .map(Box::new);
                }
                // Known subpackets without effect here: preferences, key expiry and the like.
                2..=7 | 9 | 11 | 12 | 21..=35 => {}
                _ if critical && is_signed => {
                    return Err(Error::UnknownCritical(kind));
                }
                _ => {}
            }
        }
        if let Some(signed) = signed {
            *signed = dated;
        }
        Ok(())
    }

    /// Returns the key ID of the issuer, if it is named.
    #[must_use]
    pub fn issuer(&self) -> Option<String> {
        self.issuer.map(|id| HEXUPPER.encode(&id))
    }

    #[must_use]
    pub fn has_expired(&self, now: u64) -> bool {
        self.lifetime
            .is_some_and(|seconds| self.made.saturating_add(seconds) <= now)
    }

    /// Returns the name of the signature's algorithms, if they are not accepted.
    #[must_use]
    pub fn not_relied_on(&self) -> Option<String> {
        let algorithm = match self.algorithm {
            // These are RSA (two numbers), ECDSA, and two encodings of Ed25519.
            1 | 3 | 19 | 22 | 27 => None,
            17 => Some("DSA".to_owned()),
            28 => Some("Ed448".to_owned()),
            other => Some(format!("an algorithm of the number {other}")),
        };
        let hash = match self.hash {
            8..=10 => None,
            1 => Some("MD5".to_owned()),
            2 => Some("SHA-1".to_owned()),
            3 => Some("RIPEMD-160".to_owned()),
            11 => Some("SHA-224".to_owned()),
            other => Some(format!("a hash of the number {other}")),
        };
        let all: Vec<String> = algorithm.into_iter().chain(hash).collect();
        (!all.is_empty()).then(|| all.join(" and "))
    }
}
