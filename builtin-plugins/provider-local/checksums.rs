//! The checksums of a file's content.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use data_encoding::HEXLOWER;
use md5::{Digest, Md5};
use monoform_sdk::schema::computed;
use monoform_sdk::{Attr, model};
use sha1::Sha1;
use sha2::{Sha256, Sha512};

model! {
    /// Every checksum that the provider shows.
    pub struct Checksums {
        /// The SHA-1 checksum of the content in hexadecimal.
        pub id: Attr<String> = computed(),
        /// The MD5 checksum of the content in hexadecimal.
        pub content_md5: Attr<String> = computed(),
        /// The SHA-1 checksum of the content in hexadecimal.
        pub content_sha1: Attr<String> = computed(),
        /// The SHA-256 checksum of the content in hexadecimal.
        pub content_sha256: Attr<String> = computed(),
        /// The SHA-256 checksum of the content in base64.
        pub content_base64sha256: Attr<String> = computed(),
        /// The SHA-512 checksum of the content in hexadecimal.
        pub content_sha512: Attr<String> = computed(),
        /// The SHA-512 checksum of the content in base64.
        pub content_base64sha512: Attr<String> = computed(),
    }
}

impl Checksums {
    pub fn compute(content: &[u8]) -> Checksums {
        let (sha256, sha512) = (Sha256::digest(content), Sha512::digest(content));
        Checksums {
            id: sha1(content).into(),
            content_md5: HEXLOWER.encode(&Md5::digest(content)).into(),
            content_sha1: sha1(content).into(),
            content_sha256: HEXLOWER.encode(&sha256).into(),
            content_base64sha256: STANDARD.encode(sha256).into(),
            content_sha512: HEXLOWER.encode(&sha512).into(),
            content_base64sha512: STANDARD.encode(sha512).into(),
        }
    }
}

/// Returns the SHA-1 checksum, which identifies a file.
pub(crate) fn sha1(content: &[u8]) -> String {
    HEXLOWER.encode(&Sha1::digest(content))
}
