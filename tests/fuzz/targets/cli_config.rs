//! Any text as the CLI configuration file: no crash, only diagnostics.

#![no_main]

use std::collections::BTreeMap;

use libfuzzer_sys::fuzz_target;
use packages::{cli_config::CliConfig, environment::Environment};

fuzz_target!(|text: &str| {
    let file = std::env::temp_dir().join(format!("monoform-fuzz-{}.tfrc", std::process::id()));
    std::fs::write(&file, text).expect("a writable temporary directory");
    let variables = [("TF_CLI_CONFIG_FILE", file.display().to_string()), ("HOME", "/nonexistent".to_owned())];
    let environment = Environment(BTreeMap::from(variables.map(|(name, value)| (name.to_owned(), value))));
    drop(CliConfig::load(&environment));
});
