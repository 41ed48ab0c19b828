//! Fuzz target: any line as the handshake of a plugin. No crash.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|line: &str| plugins::fuzzing::handshake(line));
