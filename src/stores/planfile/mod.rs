//! Saved plans: one file with all data that apply needs.
//!
//! The file is a zip archive, readable only by its owner, because it holds values in clear text:
//!
//! | entry | content |
//! | --- | --- |
//! | `monoform-plan.json` | changes, outputs, variables, the execution graph; see [`Plan`] |
//! | `tfstate`, `tfstate-prev` | the state with refreshed objects, and the state before the refresh |
//! | `tfconfig/modules.json`, `tfconfig/m-KEY/FILE` | the configuration for which the plan was made |
//! | `.terraform.lock.hcl` | the provider selections, if there were any |
//! | `schemas` | the schemas of the types in the plan, to show it without plugins; optional |
//!
//! The form of the document is the serialized form of [`Plan`] (`engine/stored.rs`). The format number is raised with every change that an
//! older reader would misunderstand. Older formats are not supported, because a plan is meant to be applied soon.

mod error;
mod schemas;

use std::collections::BTreeMap;
use std::io::{Cursor, Read, Seek, Write};
use std::path::Path;
use std::sync::Arc;

use addrs::Program;
use config::files::MemoryFiles;
use config::manifest::Manifest;
use config::snapshot::{Snapshot, SnapshotModule};
use engine::plan::Plan;
use plugins::planned;
use provider::Schemas;
use serde::{Deserialize, Serialize};
use state::codec::is_sealed_plan;
use state::{Codec, State};
use syntax::Diagnostic;
use zip::write::SimpleFileOptions;

pub use error::PlanFileError;
pub use schemas::schemas_of;

use crate::backend::record::Saved;

const DOCUMENT: &str = "monoform-plan.json";
const MODULES: &str = "tfconfig/modules.json";
const LOCK_FILE: &str = ".terraform.lock.hcl";
const SCHEMAS: &str = "schemas";
/// Version of the document's format. A test compares a golden document, and so detects changes.
const FORMAT: u32 = 3;
/// Maximum size of an entry in bytes. The file may come from elsewhere, and must not fill the memory.
const MAX_ENTRY: u64 = 4 << 30;

/// Contents of a saved plan.
pub struct SavedPlan {
    pub plan: Plan,
    /// Configuration for which the plan was made.
    pub snapshot: Snapshot,
    pub lock_file: Option<Vec<u8>>,
    /// Workspace that the plan was made for.
    pub workspace: String,
    /// Backend that the plan was made with; `None` for local files, whose paths are in the configuration.
    pub backend: Option<Saved>,
    /// Schemas to show the plan with; `None` if the file has none, or if they cannot be read.
    pub schemas: Option<Schemas>,
}

/// Version of the document's format, and version of the program that wrote it. Documents of every format have both.
#[derive(Serialize, Deserialize)]
struct Version {
    format: u32,
    tool_version: String,
}

/// Fields of the document that do not belong to the plan itself.
#[derive(Serialize, Deserialize)]
struct Destination {
    workspace: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    backend: Option<Saved>,
}

// Only used for writing. With `flatten`, the feature `arbitrary_precision` of serde_json would deserialize every number as a map, so
// reading deserializes each part separately from the same text.
#[derive(Serialize)]
struct Document<'p> {
    #[serde(flatten)]
    version: Version,
    #[serde(flatten)]
    destination: Destination,
    #[serde(flatten)]
    plan: &'p Plan,
}

impl Document<'_> {
    fn new<'p>(saved: &'p SavedPlan, tool_version: &str) -> Document<'p> {
        Document {
            version: Version {
                format: FORMAT,
                tool_version: tool_version.to_owned(),
            },
            destination: Destination {
                workspace: saved.workspace.clone(),
                backend: saved.backend.clone(),
            },
            plan: &saved.plan,
        }
    }
}

/// Writes a plan to a file that only its owner may read. The file is created complete or not at all. A pipe or a device is written
/// directly.
pub fn write(path: &Path, saved: &SavedPlan, tool_version: &str, codec: &Codec) -> Result<(), Diagnostic> {
    let failed = |e: &dyn std::fmt::Display| {
        Diagnostic::error(
            "Failed to write plan file",
            format!("The plan file {} cannot be written: {e}.", path.display()),
        )
    };
    let mut output = files::Output::create(path, files::Policy::SECRET).map_err(|e| failed(&e))?;
    match codec.cipher() {
        None => write_archive(&mut output, saved, tool_version).map_err(|e| failed(&e))?,
        Some(cipher) => {
            let mut archive = Cursor::new(Vec::new());
            write_archive(&mut archive, saved, tool_version).map_err(|e| failed(&e))?;
            let sealed = cipher.seal(archive.into_inner(), None).map_err(|e| failed(&e))?;
            output.write_all(&sealed).map_err(|e| failed(&::files::io_reason(&e)))?;
        }
    }
    output.commit().map_err(|e| failed(&e))
}

fn write_archive(out: impl Write + Seek, saved: &SavedPlan, tool_version: &str) -> Result<(), PlanFileError> {
    let mut zip = zip::ZipWriter::new(std::io::BufWriter::new(out));
    let options = SimpleFileOptions::default()
        .compression_method(zip::CompressionMethod::Deflated)
        // The fastest compression level, because most plans are read once, and soon.
        .compression_level(Some(1))
        .unix_permissions(0o600)
        // A fixed timestamp makes plan files reproducible: equal plans give identical bytes.
        .last_modified_time(zip::DateTime::default())
        .large_file(true);
    let mut entry = |name: &str, content: &[u8]| {
        zip.start_file(name, options)?;
        Ok::<_, PlanFileError>(zip.write_all(content)?)
    };
    entry(DOCUMENT, &serde_json::to_vec(&Document::new(saved, tool_version))?)?;
    for (name, state) in [
        ("tfstate", &saved.plan.prior_state),
        ("tfstate-prev", &saved.plan.previous_state),
    ] {
        entry(name, &state::document::encode(state)?)?;
    }
    entry(MODULES, saved.snapshot.manifest().to_json().as_bytes())?;
    for (key, module) in &saved.snapshot.modules {
        for (name, content) in &module.files {
            entry(&format!("tfconfig/m-{key}/{name}"), content)?;
        }
    }
    if let Some(lock_file) = &saved.lock_file {
        entry(LOCK_FILE, lock_file)?;
    }
    if let Some(schemas) = &saved.schemas {
        entry(SCHEMAS, &planned::encode(schemas))?;
    }
    Ok(zip.finish()?.flush()?)
}

/// Returns true if a file is a saved plan and not a state: it begins like a zip archive, or it is encrypted and has no lineage.
#[must_use]
pub fn looks_like_plan(path: &Path) -> bool {
    let mut magic = [0; 4];
    let Ok(mut file) = std::fs::File::open(path) else {
        return false;
    };
    match file.read_exact(&mut magic) {
        Ok(()) if magic.starts_with(b"{") => std::fs::read(path).is_ok_and(|text| is_sealed_plan(&text)),
        Ok(()) => magic == *b"PK\x03\x04",
        Err(_) => false,
    }
}

pub fn read(path: &Path, tool_version: &str, program: Program, codec: &Codec) -> Result<SavedPlan, Diagnostic> {
    open(path, tool_version, program, codec).map_err(|e| {
        Diagnostic::error(
            "Failed to read plan file",
            format!("The plan file {} cannot be read: {e}.", path.display()),
        )
    })
}

fn open(path: &Path, tool_version: &str, program: Program, codec: &Codec) -> Result<SavedPlan, PlanFileError> {
    let mut file = std::fs::File::open(path)?;
    let mut magic = [0; 1];
    // An encrypted plan is a JSON document.
    let sealed = file.read(&mut magic)? == 1 && magic == *b"{";
    file.rewind()?;
    match codec.cipher() {
        None if sealed => match is_sealed_plan(&std::fs::read(path)?) {
            true => Err(PlanFileError::Encrypted),
            false => Err(PlanFileError::NoArchive),
        },
        Some(cipher) if sealed => {
            let text = std::fs::read(path)?;
            if !is_sealed_plan(&text) {
                return Err(PlanFileError::NoArchive);
            }
            read_archive(Cursor::new(cipher.open(&text)?.text), tool_version, program)
        }
        Some(cipher) => {
            cipher.accept_plain()?;
            read_archive(std::io::BufReader::new(file), tool_version, program)
        }
        None => read_archive(std::io::BufReader::new(file), tool_version, program),
    }
}

fn read_archive(file: impl Read + Seek, tool_version: &str, program: Program) -> Result<SavedPlan, PlanFileError> {
    let mut zip = zip::ZipArchive::new(file).map_err(|_| PlanFileError::NoArchive)?;
    if zip.index_for_name(DOCUMENT).is_none() {
        return Err(match zip.index_for_name("tfplan") {
            Some(_) => PlanFileError::Foreign {
                command: program.command,
            },
            None => PlanFileError::NoPlan,
        });
    }
    let mut entries: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for i in 0..zip.len() {
        let mut entry = zip.by_index(i)?;
        let mut content = Vec::new();
        // The sizes in the archive may be wrong, so the bytes are counted while they are read.
        let size = entry.by_ref().take(MAX_ENTRY + 1).read_to_end(&mut content)?;
        if size as u64 > MAX_ENTRY {
            return Err(PlanFileError::TooLarge);
        }
        let name = entry.name()?.into_owned();
        entries.insert(name, content);
    }
    let document = entries.remove(DOCUMENT).unwrap_or_default();
    // The version is read first, because the rest may have another form in another version.
    let version: Version = serde_json::from_slice(&document)?;
    if version.format != FORMAT || version.tool_version != tool_version {
        return Err(PlanFileError::OtherVersion {
            saved: version.tool_version,
            this: tool_version.to_owned(),
        });
    }
    load(&document, entries)
}

/// Reads the document of a plan with an empty configuration and empty states, and writes it again. For the fuzz target.
///
/// # Errors
/// The document is not valid.
pub fn reread_document(bytes: &[u8]) -> Result<Vec<u8>, PlanFileError> {
    let version: Version = serde_json::from_slice(bytes)?;
    let entries = [
        ("tfstate", &b""[..]),
        ("tfstate-prev", b""),
        (MODULES, b"{\"Modules\":[]}"),
    ];
    let entries = entries.map(|(name, content)| (name.to_owned(), content.to_vec()));
    let saved = load(bytes, entries.into())?;
    Ok(serde_json::to_vec(&Document::new(&saved, &version.tool_version))?)
}

fn load(document: &[u8], mut entries: BTreeMap<String, Vec<u8>>) -> Result<SavedPlan, PlanFileError> {
    let mut entry = |name: &'static str| entries.remove(name).ok_or(PlanFileError::Missing(name));
    let state =
        |text: Vec<u8>| -> Result<State, PlanFileError> { Ok(state::document::decode(&text)?.unwrap_or_default()) };
    let (prior_state, previous_state) = (state(entry("tfstate")?)?, state(entry("tfstate-prev")?)?);
    let manifest = Manifest::parse(&entry(MODULES)?).map_err(|e| PlanFileError::Manifest(e.to_string()))?;
    let lock_file = entries.remove(LOCK_FILE);
    // Without usable schemas in the file, they are requested from the plugins.
    let unusable = |reason: &plugins::MessageError| tracing::debug!(%reason, "the schemas of the plan are not used");
    let schemas = entries.remove(SCHEMAS);
    let schemas = schemas.and_then(|schemas| planned::decode(schemas).inspect_err(unusable).ok());
    let snapshot = snapshot(manifest, entries)?;
    let Destination { workspace, backend } = serde_json::from_slice(document)?;
    let mut text = serde_json::Deserializer::from_slice(document);
    let plan = Plan::read(&mut text, previous_state, prior_state)?;
    text.end()?;
    // The file may have been changed, and apply relies on the indexes in the graph.
    if !plan.graph.fits(plan.changes.len(), plan.invocations.len()) {
        return Err(PlanFileError::Graph);
    }
    Ok(SavedPlan {
        plan,
        snapshot,
        lock_file,
        workspace,
        backend,
        schemas,
    })
}

/// Builds the configuration from the files of the archive.
fn snapshot(manifest: Manifest, entries: BTreeMap<String, Vec<u8>>) -> Result<Snapshot, PlanFileError> {
    let module = |entry| SnapshotModule {
        entry,
        files: BTreeMap::new(),
    };
    let modules = manifest.modules.into_iter();
    let mut modules: BTreeMap<_, _> = modules.map(|(key, entry)| (key, module(entry))).collect();
    for (name, content) in entries {
        let Some((key, file)) = name.strip_prefix("tfconfig/m-").and_then(|rest| rest.split_once('/')) else {
            continue;
        };
        let module = modules
            .get_mut(key)
            .ok_or_else(|| PlanFileError::UnknownModule(key.to_owned()))?;
        module.files.insert(file.to_owned(), Arc::from(content));
    }
    Ok(Snapshot { modules })
}

/// Returns the files of a saved plan's configuration.
#[must_use]
pub fn files(saved: &SavedPlan) -> MemoryFiles {
    saved.snapshot.files()
}

#[cfg(test)]
mod tests;
