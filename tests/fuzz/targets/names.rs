//! Fuzz target: any text as a version, a version constraint and an address of every kind. No crash, and a displayed
//! value is read again as an equal one.

#![no_main]

use std::fmt::{Debug, Display};

use libfuzzer_sys::fuzz_target;
use versions::{Constraints, Dialect, Version};

fuzz_target!(|text: &str| {
    round_trip(text, Version::parse);
    round_trip(text, Version::parse_lenient);
    let version = Version::parse_lenient(text);
    for dialect in [Dialect::Provider, Dialect::Module] {
        let Ok(constraints) = Constraints::parse_dialect(text, dialect) else { continue };
        if let Ok(version) = &version {
            std::hint::black_box(constraints.allows(version));
        }
    }
    round_trip(text, addrs::parse::resource_instance);
    round_trip(text, addrs::parse::module_instance);
    round_trip(text, addrs::parse::config_resource);
    round_trip(text, addrs::parse::provider_config);
    drop(addrs::parse::target(text));
});

fn round_trip<T: Display + Debug + PartialEq, E: Debug>(text: &str, parse: impl Fn(&str) -> Result<T, E>) {
    let Ok(read) = parse(text) else { return };
    let again = parse(&read.to_string()).expect("a displayed value can be parsed");
    assert_eq!(read, again);
}
