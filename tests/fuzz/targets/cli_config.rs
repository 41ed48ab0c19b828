//! Fuzz target: any text as a CLI configuration, in native and in JSON syntax. No crash.

#![no_main]

use libfuzzer_sys::fuzz_target;
use packages::cli_config::CliConfig;
use files::Environment;

fuzz_target!(|bytes: &[u8]| {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    std::io::Write::write_all(&mut file, bytes).expect("a file");
    let path = file.path().to_string_lossy().into_owned();
    drop(CliConfig::load(&Environment::from([("TF_CLI_CONFIG_FILE".to_owned(), path)])));
});
