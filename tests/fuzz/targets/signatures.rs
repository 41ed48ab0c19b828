//! Fuzz target: any bytes as a signature and as a signing key of a registry (OpenPGP). No crash.

#![no_main]

use libfuzzer_sys::fuzz_target;
use packages::signature::{Named, verify};

fuzz_target!(|bytes: &[u8]| {
    let (first, second) = bytes.split_at(bytes.len() / 2);
    for (signature, key) in [(bytes, bytes), (first, second)] {
        let named = Named {
            armored: String::from_utf8_lossy(key).into_owned(),
            trust: String::from_utf8_lossy(signature).into_owned(),
        };
        drop(verify(b"document", signature, &[named]));
    }
});
