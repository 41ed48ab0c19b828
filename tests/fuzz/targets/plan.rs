//! Fuzz target: any bytes as the document of a saved plan. No crash, and a plan that is read is written and read again as
//! an equal one.

#![no_main]

use cli::fuzzing::reread_document;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(written) = reread_document(bytes) else { return };
    let again = reread_document(&written).expect("a written plan can be read");
    assert_eq!(written, again);
});
