//! Tests of whole configurations: encryption and decryption, and rejected texts.

mod chains;
mod programs;
mod settings;
mod transit;

use std::sync::Arc;

use config::files::MemoryFiles;
use config::known::KnownRoot;
use config::values::{SetVariables, ValueInputs, VariableFlag};
use files::Environment;
use state::codec::Cipher as _;
use syntax::Diagnostics;

use crate::settings::Settings;
use crate::{Encryption, Programs, Target};

const PASSPHRASE: &str = "correct horse battery staple";

/// Reads a configuration with the root variables `variables`.
fn encryption_with(config: &str, variables: &[&str]) -> Result<Encryption, Diagnostics> {
    let files: MemoryFiles = [("main.tf", config)].into_iter().collect();
    let root = config::load_root(&files, ".", "1.16.0").unwrap();
    assert!(!root.diagnostics.has_errors(), "{:?}", root.diagnostics);
    let settings = Settings::decode(&root.module.encryption.clone().unwrap().body)?;
    let flags: Vec<VariableFlag> = variables.iter().map(|v| VariableFlag::Var((*v).to_owned())).collect();
    let set = SetVariables::read(&ValueInputs {
        files: &files,
        environment: &std::collections::BTreeMap::new(),
        flags: &flags,
    });
    let known = KnownRoot::new(root.module, &set, "/", "default");
    let programs = Programs {
        left_out: vec![("azure_vault", "cloud-stores")],
        ..Programs::default()
    };
    Encryption::new(settings, known, &Environment::default(), programs)
}

/// Reads the body of an `encryption` block.
fn encryption(body: &str) -> Result<Encryption, Diagnostics> {
    encryption_with(&format!("terraform {{\n  encryption {{\n{body}\n  }}\n}}\n"), &[])
}

fn state(body: &str) -> Arc<Target> {
    encryption(body).unwrap().state().unwrap().clone()
}

fn summary(result: Result<Encryption, Diagnostics>) -> String {
    result.unwrap_err().0[0].summary.to_string()
}

/// Returns the error that the first use of a key causes.
fn refusal(body: &str) -> String {
    let problems = state(body).prepare().unwrap_err();
    format!("{}: {}", problems.0[0].summary, problems.0[0].detail)
}

/// Builds a configuration whose key is derived from a passphrase, with the smallest number of iterations.
fn of_passphrase(passphrase: &str) -> String {
    format!(
        "key_provider \"pbkdf2\" \"p\" {{\n passphrase = \"{passphrase}\"\n iterations = 200000\n}}\n\
         method \"aes_gcm\" \"m\" {{\n keys = key_provider.pbkdf2.p\n}}\nstate {{\n method = method.aes_gcm.m\n}}\n"
    )
}

fn sealed(target: &Target) -> Vec<u8> {
    target.seal(b"secret".to_vec(), None).unwrap()
}
