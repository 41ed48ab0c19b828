//! The checksums of a file's content.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest, Md5};
use sha1::Sha1;
use sha2::{Sha256, Sha512};

/// Every checksum that the provider shows, as text.
pub(crate) struct Checksums {
    pub md5: String,
    pub sha1: String,
    pub sha256: String,
    pub base64sha256: String,
    pub sha512: String,
    pub base64sha512: String,
}

impl Checksums {
    pub fn of(content: &[u8]) -> Checksums {
        let (sha256, sha512) = (Sha256::digest(content), Sha512::digest(content));
        Checksums {
            md5: hex(&Md5::digest(content)),
            sha1: sha1(content),
            sha256: hex(&sha256),
            base64sha256: STANDARD.encode(sha256),
            sha512: hex(&sha512),
            base64sha512: STANDARD.encode(sha512),
        }
    }
}

/// The checksum that identifies a file.
pub(crate) fn sha1(content: &[u8]) -> String {
    hex(&Sha1::digest(content))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Sets the checksum attributes of a model, and its id.
macro_rules! with_checksums {
    ($model:expr, $content:expr) => {{
        let sums = $crate::checksums::Checksums::of($content);
        let mut model = $model;
        model.id = sums.sha1.clone().into();
        model.content_md5 = sums.md5.into();
        model.content_sha1 = sums.sha1.into();
        model.content_sha256 = sums.sha256.into();
        model.content_base64sha256 = sums.base64sha256.into();
        model.content_sha512 = sums.sha512.into();
        model.content_base64sha512 = sums.base64sha512.into();
        model
    }};
}
pub(crate) use with_checksums;
