//! Fuzz target: any bytes as a private key in OpenSSH's format. No crash, and a key that is written is read again as an
//! equal one.

#![no_main]

use libfuzzer_sys::fuzz_target;
use openssh::PrivateKey;

fuzz_target!(|bytes: &[u8]| {
    let Ok(key) = PrivateKey::read(bytes) else { return };
    assert!(PrivateKey::read(&key.write(1)).as_ref() == Ok(&key));
});
