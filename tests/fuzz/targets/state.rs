//! Fuzz target: any bytes as a state file of any version. No crash, and a state that is read is written and read again
//! as an equal one.

#![no_main]

use libfuzzer_sys::fuzz_target;
use state::document::{decode, encode};

fuzz_target!(|bytes: &[u8]| {
    let Ok(Some(state)) = decode(bytes) else { return };
    let written = encode(&state).expect("a state that was read can be written");
    let again = decode(&written).expect("a written state can be read").expect("a written state is not empty");
    assert!(state.same_content(&again), "the contents differ after writing and reading");
    assert_eq!(written, encode(&again).expect("a state that was read can be written"));
});
