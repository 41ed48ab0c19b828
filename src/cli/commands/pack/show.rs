//! Listing and verifying packs.

use std::path::Path;

use pack::index::{Index, PackedFile};
use pack::signature::PublicKey;
use pack::{Pack, PackError};
use serde_json::json;
use syntax::Diagnostic;

use super::failed;
use crate::outcome::{Failure, Outcome};
use crate::session::Session;

/// Returns the size of files, unpacked and as stored.
fn sizes(index: &Index, files: &[PackedFile]) -> (u64, u64) {
    let blobs = files.iter().filter_map(|file| index.blob_of(file));
    blobs.fold((0, 0), |(size, stored), blob| (size + blob.size, stored + blob.length))
}

/// Formats a size for display.
pub(in crate::commands) fn bytes(count: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "one digit after the point is shown")]
    let count_f = count as f64;
    match count {
        0..1_000 => format!("{count} B"),
        1_000..1_000_000 => format!("{:.1} kB", count_f / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", count_f / 1e6),
        _ => format!("{:.1} GB", count_f / 1e9),
    }
}

pub(super) fn list(session: &Session, path: &Path, as_json: bool) -> Result<Outcome, Failure> {
    let conditions = session.pack_conditions();
    // A pack can be inspected, whoever has signed it, because nothing in it is used.
    let pack = match Pack::open(path, &conditions.clone().to_inspect()) {
        Ok(pack) => pack,
        Err(error) => return Err(failed("Cannot read the pack", &error)),
    };
    let index = pack.index();
    if as_json {
        return Ok(Outcome::document(&document(&pack)));
    }
    let executable = &index.executable;
    let mut outcome = Outcome::line(format!(
        "Monoform v{} for {} ({})",
        executable.version,
        executable.platform,
        bytes(executable.size)
    ));
    if let Some(key) = pack.signed_by() {
        outcome = outcome.and_line(format!("Signed with the key {}", key.fingerprint()));
    }
    if let Err(error) = conditions.trust.check(&pack) {
        let warning = Diagnostic::warning("Pack not trusted", format!("Nothing in it is used here: {error}."));
        outcome = outcome.and_unplaced(warning);
    }
    let line = |name: String, files: &[PackedFile]| {
        let (size, stored) = sizes(index, files);
        format!("  {name} ({}, {} packed)", bytes(size), bytes(stored))
    };
    if index.providers.is_empty() {
        outcome = outcome.and_line("It carries no provider.");
    } else {
        outcome = outcome.and_line("\nProviders:");
    }
    for provider in &index.providers {
        let address = provider.address.for_display();
        let name = format!("{address} v{} for {}", provider.version, provider.platform);
        outcome = outcome.and_line(line(name, &provider.files));
    }
    if !index.modules.is_empty() {
        outcome = outcome.and_line("\nModules:");
    }
    for module in &index.modules {
        outcome = outcome.and_line(line(modules::mirror::for_display(&module.address), &module.files));
    }
    if !index.configurations.is_empty() {
        outcome = outcome.and_line("\nConfigurations:");
    }
    for configuration in &index.configurations {
        outcome = outcome.and_line(line(configuration.name.clone(), &configuration.files));
    }
    if index.cli_config.is_some() {
        outcome = outcome.and_line("\nIt carries a CLI configuration.");
    }
    Ok(outcome)
}

/// Returns a pack's contents as a JSON document.
fn document(pack: &Pack) -> serde_json::Value {
    let index = pack.index();
    let providers = index.providers.iter().map(|provider| {
        let (size, stored) = sizes(index, &provider.files);
        json!({
            "address": provider.address.to_string(),
            "version": provider.version.to_string(),
            "platform": provider.platform.to_string(),
            "hashes": provider.hashes,
            "size": size,
            "stored_size": stored,
        })
    });
    let modules = index.modules.iter().map(|module| {
        let (size, stored) = sizes(index, &module.files);
        json!({
            "address": module.address,
            "size": size,
            "stored_size": stored,
        })
    });
    let configurations = index.configurations.iter().map(|configuration| {
        let (size, stored) = sizes(index, &configuration.files);
        json!({
            "name": configuration.name,
            "files": configuration.files.len(),
            "size": size,
            "stored_size": stored,
        })
    });
    json!({
        "format_version": "1.0",
        "identity": pack.identity(),
        "signed_by": pack.signed_by().map(PublicKey::fingerprint),
        "executable": {
            "version": index.executable.version,
            "platform": index.executable.platform.to_string(),
            "size": index.executable.size,
        },
        "providers": providers.collect::<Vec<_>>(),
        "modules": modules.collect::<Vec<_>>(),
        "configurations": configurations.collect::<Vec<_>>(),
        "cli_configuration": index.cli_config.is_some(),
    })
}

pub(super) fn verify(session: &Session, path: &Path, trust: Option<&str>) -> Result<Outcome, Failure> {
    let verified = || -> Result<_, PackError> {
        let conditions = session.pack_conditions().with_key(trust.map(Path::new));
        Pack::open(path, &conditions)?.verify()
    };
    match verified() {
        Ok(verified) => {
            let style = session.ui.style();
            let signed = match verified.signed_by {
                Some(key) => format!("signed with the key {}", key.fingerprint()),
                None => "not signed".to_owned(),
            };
            Ok(Outcome::line(style.good(format!(
                "{} is whole ({}), and {signed}.",
                path.display(),
                bytes(verified.bytes)
            ))))
        }
        Err(error) => Err(failed("Cannot verify the pack", &error)),
    }
}
