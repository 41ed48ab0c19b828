//! Detached OpenPGP signatures, as much of them as provider registries use: keys and signatures of version 4, by RSA, EdDSA
//! (Ed25519) or ECDSA (NIST curves), with SHA-2.
//!
//! The libraries that know all of OpenPGP bring a hundred other crates for ciphers and keys that no registry signs with. Here
//! the cryptography is aws-lc's, which TLS brings anyway, and what is left is the packets: about as much as a zip file's
//! directory. A primary key counts, and a subkey that it binds for signing; a revoked key does not. Whether a key has
//! expired does not matter: packages stay as they were signed.

use aws_lc_rs::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};
use base64::Engine;
use sha2::{Digest, Sha256, Sha384, Sha512};

const PUBLIC_KEY: u8 = 6;
const PUBLIC_SUBKEY: u8 = 14;
const SIGNATURE: u8 = 2;

const OF_BYTES: u8 = 0x00;
const OF_TEXT: u8 = 0x01;
const BINDS_SUBKEY: u8 = 0x18;
const BINDS_PRIMARY: u8 = 0x19;
const REVOKES_KEY: u8 = 0x20;
const REVOKES_SUBKEY: u8 = 0x28;

const ED25519_CURVE: &[u8] = &[0x2b, 0x06, 0x01, 0x04, 0x01, 0xda, 0x47, 0x0f, 0x01];
const P256_CURVE: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const P384_CURVE: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x22];
const P521_CURVE: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x23];

/// A key with its subkeys that can sign.
#[derive(Clone, Debug)]
pub struct Certificate {
    primary: PublicKey,
    subkeys: Vec<PublicKey>,
}

/// A detached signature.
#[derive(Clone, Debug)]
pub struct Signature {
    kind: u8,
    algorithm: u8,
    hash: u8,
    /// What is hashed behind the document: the head of the signature, and its length.
    trailer: Vec<u8>,
    /// The ID of the key, if that is said.
    issuer: Option<[u8; 8]>,
    /// Whether the key it is about may sign documents, if that is said.
    for_signing: Option<bool>,
    /// A signature by the subkey, inside the one that binds it.
    embedded: Option<Box<Signature>>,
    numbers: Vec<Vec<u8>>,
}

#[derive(Clone, Debug)]
struct PublicKey {
    body: Vec<u8>,
    material: Material,
}

#[derive(Clone, Debug)]
enum Material {
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
    Ed25519(Vec<u8>),
    /// The curve's size in bytes, and the point.
    Ecdsa(usize, Vec<u8>),
    /// Of a kind that signs nothing here.
    Other,
}

/// Bytes that are read from the beginning.
struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    fn take(&mut self, n: usize) -> Result<&'b [u8], String> {
        let (taken, rest) = self.0.split_at_checked(n).ok_or("it ends too early")?;
        self.0 = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, String> {
        Ok(self.number(1)? as u8)
    }

    /// A number of at most four bytes.
    fn number(&mut self, bytes: usize) -> Result<usize, String> {
        Ok(self.take(bytes)?.iter().fold(0, |n, byte| n << 8 | usize::from(*byte)))
    }

    /// A big number, without leading zeros.
    fn mpi(&mut self) -> Result<Vec<u8>, String> {
        let bits = self.number(2)?;
        let bytes = self.take(bits.div_ceil(8))?;
        let zeros = bytes.iter().take_while(|b| **b == 0).count();
        Ok(bytes.get(zeros..).unwrap_or_default().to_vec())
    }

    /// A length in the newer notation; those of unknown size have no place in keys and signatures.
    fn length(&mut self, partial: bool) -> Result<usize, String> {
        match self.byte()? {
            first @ 0..=191 => Ok(usize::from(first)),
            first @ 192..=223 => Ok(((usize::from(first) - 192) << 8) + self.number(1)? + 192),
            255 => self.number(4),
            first if partial => Ok(((usize::from(first) - 192) << 8) + self.number(1)? + 192),
            _ => Err("a part of it has no length".to_owned()),
        }
    }

    /// The next packet: what it is, and its content.
    fn packet(&mut self) -> Result<(u8, &'b [u8]), String> {
        let head = self.byte()?;
        if head & 0x80 == 0 {
            return Err("it is not made of OpenPGP packets".to_owned());
        }
        if head & 0x40 != 0 {
            let length = self.length(false)?;
            return Ok((head & 0x3f, self.take(length)?));
        }
        let length = match head & 3 {
            0 => self.number(1)?,
            1 => self.number(2)?,
            2 => self.number(4)?,
            _ => self.0.len(),
        };
        Ok((head >> 2 & 0x0f, self.take(length)?))
    }
}

/// The bytes in an armored text, or of one that is not armored.
fn dearmored(text: &[u8]) -> Result<Vec<u8>, String> {
    if text.first().is_some_and(|first| first & 0x80 != 0) {
        return Ok(text.to_vec());
    }
    let text = std::str::from_utf8(text).map_err(|_| "it is neither OpenPGP packets nor armored text")?;
    let mut out = Vec::new();
    let mut inside = false;
    let mut head = false;
    let mut block = String::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with("-----BEGIN PGP ") {
            (inside, head) = (true, true);
        } else if line.starts_with("-----END PGP ") {
            let bytes = base64::engine::general_purpose::STANDARD.decode(&block);
            out.extend(bytes.map_err(|e| format!("its armor is damaged: {e}"))?);
            block.clear();
            inside = false;
        } else if inside && head {
            // Lines like `Comment: …`, then an empty one, which some leave out.
            head = line.contains(": ");
            if !head {
                block.push_str(line);
            }
        } else if inside && !line.starts_with('=') {
            block.push_str(line);
        }
    }
    if out.is_empty() || inside {
        return Err("it is neither OpenPGP packets nor armored text".to_owned());
    }
    Ok(out)
}

impl Certificate {
    /// The keys in a text. Those of a version or an algorithm that is not known here are left out.
    pub fn read_all(text: &[u8]) -> Result<Vec<Certificate>, String> {
        let bytes = dearmored(text)?;
        let mut reader = Reader(&bytes);
        let mut out: Vec<Certificate> = Vec::new();
        // Packets about a key that is left out are left out, too.
        let mut about: Option<PublicKey> = None;
        let mut subkey: Option<PublicKey> = None;
        let mut revoked = false;
        while !reader.0.is_empty() {
            let (tag, body) = reader.packet()?;
            match tag {
                PUBLIC_KEY => {
                    about = PublicKey::read(body).ok();
                    (subkey, revoked) = (None, false);
                    out.extend(about.clone().map(|primary| Certificate {
                        primary,
                        subkeys: Vec::new(),
                    }));
                }
                PUBLIC_SUBKEY => subkey = PublicKey::read(body).ok(),
                SIGNATURE => {
                    let (Some(primary), Ok(signature)) = (&about, Signature::read_body(body)) else {
                        continue;
                    };
                    match (signature.kind, &subkey) {
                        (REVOKES_KEY, None) if signature.is_by(primary, &primary.hashed()) && !revoked => {
                            revoked = true;
                            out.pop();
                            about = None;
                        }
                        (BINDS_SUBKEY, Some(sub)) if signature.binds(primary, sub) => {
                            if let Some(own) = out.last_mut() {
                                own.subkeys.push(sub.clone());
                            }
                        }
                        (REVOKES_SUBKEY, Some(sub)) => {
                            let about_both = [primary.hashed(), sub.hashed()].concat();
                            if signature.is_by(primary, &about_both)
                                && let Some(own) = out.last_mut()
                            {
                                own.subkeys.retain(|k| k.body != sub.body);
                            }
                        }
                        _ => {}
                    }
                }
                _ => {}
            }
        }
        Ok(out)
    }

    /// The fingerprint, in hexadecimal digits.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        crate::hash::hex(&self.primary.fingerprint()).to_uppercase()
    }

    /// The ID: the end of the fingerprint.
    #[must_use]
    pub fn id(&self) -> String {
        self.fingerprint().split_off(24)
    }

    /// Whether this key, or one of its subkeys, has made a signature of a document.
    #[must_use]
    pub fn has_signed(&self, document: &[u8], signature: &Signature) -> bool {
        let document = match signature.kind {
            OF_BYTES => document.to_vec(),
            OF_TEXT => with_network_line_ends(document),
            _ => return false,
        };
        let mut keys = std::iter::once(&self.primary).chain(&self.subkeys);
        keys.any(|key| signature.is_by(key, &document))
    }

    /// Whether the key of this ID is this one or one of its subkeys.
    #[must_use]
    pub fn has_key(&self, id: &str) -> bool {
        let mut keys = std::iter::once(&self.primary).chain(&self.subkeys);
        keys.any(|key| crate::hash::hex(&key.fingerprint()).to_uppercase().ends_with(id))
    }
}

/// Text as signatures of texts see it.
fn with_network_line_ends(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for line in text.split_inclusive(|b| *b == b'\n') {
        match line.strip_suffix(b"\n") {
            Some(line) => {
                out.extend(line.strip_suffix(b"\r").unwrap_or(line));
                out.extend(b"\r\n");
            }
            None => out.extend(line),
        }
    }
    out
}

impl PublicKey {
    fn read(body: &[u8]) -> Result<PublicKey, String> {
        let mut reader = Reader(body);
        if reader.byte()? != 4 {
            return Err("it is a key of an unknown version".to_owned());
        }
        reader.take(4)?;
        let material = match reader.byte()? {
            1 | 3 => Material::Rsa {
                n: reader.mpi()?,
                e: reader.mpi()?,
            },
            algorithm @ (19 | 22) => {
                let length = reader.number(1)?;
                let curve = reader.take(length)?;
                let point = reader.mpi()?;
                match (algorithm, curve, point.split_first()) {
                    (22, ED25519_CURVE, Some((0x40, key))) => Material::Ed25519(key.to_vec()),
                    (19, P256_CURVE, _) => Material::Ecdsa(32, point),
                    (19, P384_CURVE, _) => Material::Ecdsa(48, point),
                    (19, P521_CURVE, _) => Material::Ecdsa(66, point),
                    _ => Material::Other,
                }
            }
            _ => Material::Other,
        };
        Ok(PublicKey {
            body: body.to_vec(),
            material,
        })
    }

    /// A key as signatures about it see it.
    fn hashed(&self) -> Vec<u8> {
        let length = u16::try_from(self.body.len()).unwrap_or(u16::MAX).to_be_bytes();
        [&[0x99], &length[..], &self.body].concat()
    }

    fn fingerprint(&self) -> Vec<u8> {
        sha1::Sha1::digest(self.hashed()).to_vec()
    }
}

impl Signature {
    /// Reads a detached signature.
    pub fn read(text: &[u8]) -> Result<Signature, String> {
        let bytes = dearmored(text)?;
        let (tag, body) = Reader(&bytes).packet()?;
        if tag != SIGNATURE {
            return Err("it is OpenPGP, but no signature".to_owned());
        }
        Signature::read_body(body)
    }

    fn read_body(body: &[u8]) -> Result<Signature, String> {
        let mut reader = Reader(body);
        let version = reader.byte()?;
        if version != 4 {
            return Err(format!(
                "it is a signature of version {version}, and only version 4 is known"
            ));
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
        // The first bytes of the hash, which save nobody anything.
        reader.take(2)?;
        let mut signature = Signature {
            kind,
            algorithm,
            hash,
            trailer,
            issuer: None,
            for_signing: None,
            embedded: None,
            numbers: Vec::new(),
        };
        signature.subpackets(hashed, true)?;
        signature.subpackets(unhashed, false)?;
        while !reader.0.is_empty() {
            signature.numbers.push(reader.mpi()?);
        }
        Ok(signature)
    }

    fn subpackets(&mut self, area: &[u8], hashed: bool) -> Result<(), String> {
        let mut area = Reader(area);
        while !area.0.is_empty() {
            let length = area.length(true)?;
            let mut content = Reader(area.take(length)?);
            match content.byte()? & 0x7f {
                16 => self.issuer = content.take(8)?.try_into().ok(),
                33 if content.byte()? == 4 => {
                    self.issuer = content.take(20)?.get(12..).and_then(|id| id.try_into().ok())
                }
                27 if hashed => self.for_signing = Some(content.byte()? & 2 != 0),
                // One inside the other is enough.
                32 if self.kind == BINDS_SUBKEY => {
                    self.embedded = Signature::read_body(content.0)
                        .ok()
                        .filter(|s| s.kind == BINDS_PRIMARY)
                        .map(Box::new);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether it binds a subkey for signing, and the subkey agrees.
    fn binds(&self, primary: &PublicKey, subkey: &PublicKey) -> bool {
        let both = [primary.hashed(), subkey.hashed()].concat();
        self.for_signing == Some(true)
            && self.is_by(primary, &both)
            && self.embedded.as_ref().is_some_and(|back| back.is_by(subkey, &both))
    }

    /// The ID of the key that has signed, if that is said.
    #[must_use]
    pub fn issuer(&self) -> Option<String> {
        self.issuer.map(|id| crate::hash::hex(&id).to_uppercase())
    }

    /// Whether a key has made it of these bytes.
    fn is_by(&self, key: &PublicKey, of: &[u8]) -> bool {
        let message = [of, &self.trailer].concat();
        match (&key.material, self.numbers.as_slice()) {
            (Material::Rsa { n, e }, [number]) if matches!(self.algorithm, 1 | 3) => {
                let parameters = match self.hash {
                    8 => &signature::RSA_PKCS1_2048_8192_SHA256,
                    9 => &signature::RSA_PKCS1_2048_8192_SHA384,
                    10 => &signature::RSA_PKCS1_2048_8192_SHA512,
                    _ => return false,
                };
                let Some(number) = padded(number, n.len()) else {
                    return false;
                };
                RsaPublicKeyComponents { n, e }
                    .verify(parameters, &message, &number)
                    .is_ok()
            }
            (Material::Ed25519(point), [r, s]) if self.algorithm == 22 => {
                // What is signed is the hash, not the message.
                let digest = match self.hash {
                    8 => Sha256::digest(&message).to_vec(),
                    9 => Sha384::digest(&message).to_vec(),
                    10 => Sha512::digest(&message).to_vec(),
                    _ => return false,
                };
                let (Some(r), Some(s)) = (padded(r, 32), padded(s, 32)) else {
                    return false;
                };
                let key = UnparsedPublicKey::new(&signature::ED25519, point);
                key.verify(&digest, &[r, s].concat()).is_ok()
            }
            (Material::Ecdsa(size, point), [r, s]) if self.algorithm == 19 => {
                let parameters = match (size, self.hash) {
                    (32, 8) => &signature::ECDSA_P256_SHA256_FIXED,
                    (48, 9) => &signature::ECDSA_P384_SHA384_FIXED,
                    (66, 10) => &signature::ECDSA_P521_SHA512_FIXED,
                    _ => return false,
                };
                let (Some(r), Some(s)) = (padded(r, *size), padded(s, *size)) else {
                    return false;
                };
                let key = UnparsedPublicKey::new(parameters, point);
                key.verify(&message, &[r, s].concat()).is_ok()
            }
            _ => false,
        }
    }
}

/// A number with leading zeros, of this many bytes.
fn padded(number: &[u8], size: usize) -> Option<Vec<u8>> {
    let zeros = size.checked_sub(number.len())?;
    Some([&vec![0; zeros][..], number].concat())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Made by GnuPG 2.2: keys of four kinds, and each one's signature of the same line. `sub` signs by a subkey.
    const MADE: [(&str, &[u8], &[u8]); 4] = [
        (
            "rsa",
            include_bytes!("tests/openpgp/rsa2048.asc"),
            include_bytes!("tests/openpgp/rsa2048.sig"),
        ),
        (
            "ed25519",
            include_bytes!("tests/openpgp/ed25519.asc"),
            include_bytes!("tests/openpgp/ed25519.sig"),
        ),
        (
            "p256",
            include_bytes!("tests/openpgp/nistp256.asc"),
            include_bytes!("tests/openpgp/nistp256.sig"),
        ),
        (
            "sub",
            include_bytes!("tests/openpgp/sub.asc"),
            include_bytes!("tests/openpgp/sub.sig"),
        ),
    ];
    const DOCUMENT: &[u8] = b"abc  file_1.zip\n";

    #[test]
    fn what_gnupg_has_signed() {
        for (name, key, signature) in MADE {
            let keys = Certificate::read_all(key).unwrap();
            let signature = Signature::read(signature).unwrap();
            assert_eq!(keys.len(), 1, "{name}");
            assert!(keys[0].has_signed(DOCUMENT, &signature), "{name}");
            assert!(keys[0].has_key(&signature.issuer().unwrap()), "{name}");
            assert!(!keys[0].has_signed(b"abd  file_1.zip\n", &signature), "{name}");
            for (other, key, _) in MADE.iter().filter(|(other, ..)| *other != name) {
                let key = &Certificate::read_all(key).unwrap()[0];
                assert!(
                    !key.has_signed(DOCUMENT, &signature),
                    "{other} has not signed for {name}"
                );
            }
        }
        let sub = &Certificate::read_all(MADE[3].1).unwrap()[0];
        assert_eq!((sub.id().as_str(), sub.subkeys.len()), ("B6EC67E884F547EC", 1));
    }

    #[test]
    fn a_subkey_counts_only_with_its_binding() {
        let bytes = dearmored(MADE[3].1).unwrap();
        let signature = Signature::read(MADE[3].2).unwrap();
        // The last packet is the binding: without it, and with one bit of it changed.
        let mut without = Reader(&bytes);
        let mut end = 0;
        while let Ok((tag, _)) = without.packet() {
            if tag == PUBLIC_SUBKEY {
                end = bytes.len() - without.0.len();
            }
        }
        let mut changed = bytes.clone();
        *changed.last_mut().unwrap() ^= 1;
        for bytes in [&bytes[..end], &changed] {
            let keys = Certificate::read_all(bytes).unwrap();
            assert!(!keys[0].has_signed(DOCUMENT, &signature));
        }
        // Another's subkey under one's own key.
        let mut stolen = dearmored(MADE[1].1).unwrap();
        stolen.extend(&bytes[bytes.len() - (bytes.len() - 222)..]);
        for key in Certificate::read_all(&stolen).unwrap() {
            assert!(!key.has_signed(DOCUMENT, &signature));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_are_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), which in 0..4_usize, at in 0..900_usize, bit in 0..8) {
            let _ = Certificate::read_all(&bytes);
            let _ = Signature::read(&bytes);
            let mut key = dearmored(MADE[which].1).unwrap();
            let at = at % key.len();
            key[at] ^= 1_u8 << bit;
            let signature = Signature::read(MADE[which].2).unwrap();
            for key in Certificate::read_all(&key).unwrap_or_default() {
                let _ = key.has_signed(DOCUMENT, &signature);
            }
            let mut changed = MADE[which].2.to_vec();
            let at = at % changed.len();
            changed[at] ^= 1_u8 << bit;
            let _ = Signature::read(&changed).map(|s| Certificate::read_all(MADE[which].1).unwrap()[0].has_signed(DOCUMENT, &s));
        }
    }
}
