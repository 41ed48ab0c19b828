//! Fuzz target: any bytes as the answer of a DNS server, and any text as a name or the text of a record. No crash, and a name
//! that is written is read again as the same.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    provider_dns::fuzzing::answer(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        provider_dns::fuzzing::texts(text);
    }
});
