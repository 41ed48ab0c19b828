//! What a pack carries, and whether it is whole.

use std::path::Path;

use pack::index::{Index, PackedFile};
use pack::signature::PublicKey;
use pack::{Pack, PackError};
use serde_json::json;
use syntax::{Diagnostic, SourceMap};

use super::failed;
use crate::session::{Session, Status};

/// The size of files, unpacked and as they are stored.
fn sizes(index: &Index, files: &[PackedFile]) -> (u64, u64) {
    let blobs = files.iter().filter_map(|file| index.blob_of(file));
    blobs.fold((0, 0), |(size, stored), blob| (size + blob.size, stored + blob.length))
}

/// A size for people.
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

pub(super) fn list(session: &Session, path: &Path, as_json: bool) -> Status {
    let conditions = session.pack_conditions();
    let pack = match Pack::open(path, &conditions.clone().to_inspect()) {
        Ok(pack) => pack,
        Err(error) => return failed(session, "Cannot read the pack", &error),
    };
    let index = pack.index();
    if as_json {
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
        let document = json!({
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
        });
        session.ui.exact_line(cty::json::to_text(&document, Some(2)));
        return 0;
    }
    let executable = &index.executable;
    session.ui.line(format!(
        "Monoform v{} for {} ({})",
        executable.version,
        executable.platform,
        bytes(executable.size)
    ));
    if let Some(key) = pack.signed_by() {
        session.ui.line(format!("Signed with the key {}", key.fingerprint()));
    }
    if let Err(error) = conditions.trust.check(&pack) {
        session.show(
            &Diagnostic::warning("Pack not trusted", format!("Nothing in it is used here: {error}.")).into(),
            &SourceMap::default(),
        );
    }
    let line = |name: String, files: &[PackedFile]| {
        let (size, stored) = sizes(index, files);
        session
            .ui
            .line(format!("  {name} ({}, {} packed)", bytes(size), bytes(stored)));
    };
    if index.providers.is_empty() {
        session.ui.line("It carries no provider.");
    } else {
        session.ui.line("\nProviders:");
    }
    for provider in &index.providers {
        let address = provider.address.for_display();
        let name = format!("{address} v{} for {}", provider.version, provider.platform);
        line(name, &provider.files);
    }
    if !index.modules.is_empty() {
        session.ui.line("\nModules:");
    }
    for module in &index.modules {
        line(modules::mirror::for_display(&module.address), &module.files);
    }
    if !index.configurations.is_empty() {
        session.ui.line("\nConfigurations:");
    }
    for configuration in &index.configurations {
        line(configuration.name.clone(), &configuration.files);
    }
    if index.cli_config.is_some() {
        session.ui.line("\nIt carries a CLI configuration.");
    }
    0
}

pub(super) fn verify(session: &Session, path: &Path, trust: Option<&str>) -> Status {
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
            session.ui.line(style.good(format!(
                "{} is whole ({}), and {signed}.",
                path.display(),
                bytes(verified.bytes)
            )));
            0
        }
        Err(error) => failed(session, "Cannot verify the pack", &error),
    }
}
