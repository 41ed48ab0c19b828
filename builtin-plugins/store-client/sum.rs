//! Checksums and HMAC signatures, in the encodings that requests use.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use md5::{Digest as _, Md5};
use sha1::Sha1;
use sha2::Sha256;

#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[must_use]
pub fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

#[must_use]
pub fn md5(bytes: &[u8]) -> Vec<u8> {
    Md5::digest(bytes).to_vec()
}

#[must_use]
pub fn md5_hex(bytes: &[u8]) -> String {
    hex(&md5(bytes))
}

/// Returns the MD5 in Base64, as in the header `Content-MD5`.
#[must_use]
pub fn md5_base64(bytes: &[u8]) -> String {
    base64(&md5(bytes))
}

#[must_use]
pub fn sha1_hex(bytes: &[u8]) -> String {
    hex(&Sha1::digest(bytes))
}

#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

#[must_use]
pub fn sha256_base64(bytes: &[u8]) -> String {
    base64(&Sha256::digest(bytes))
}

fn mac<M: Mac + KeyInit>(key: &[u8], text: &[u8]) -> Vec<u8> {
    // HMAC accepts keys of any length, so this cannot fail.
    let Ok(mut mac) = <M as KeyInit>::new_from_slice(key) else {
        return Vec::new();
    };
    mac.update(text);
    mac.finalize().into_bytes().to_vec()
}

#[must_use]
pub fn hmac_sha1(key: &[u8], text: &[u8]) -> Vec<u8> {
    mac::<Hmac<Sha1>>(key, text)
}

#[must_use]
pub fn hmac_sha256(key: &[u8], text: &[u8]) -> Vec<u8> {
    mac::<Hmac<Sha256>>(key, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checksums of the empty text, and the HMAC examples of RFC 2202 and RFC 4231 (case 2).
    #[test]
    fn sums_are_those_of_the_standards() {
        assert_eq!(md5_hex(b""), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(md5_base64(b""), "1B2M2Y8AsgTpgAmY7PhCfg==");
        assert_eq!(sha256_base64(b""), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
        let text = b"what do ya want for nothing?";
        assert_eq!(
            hex(&hmac_sha1(b"Jefe", text)),
            "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"
        );
        assert_eq!(
            hex(&hmac_sha256(b"Jefe", text)),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }
}
