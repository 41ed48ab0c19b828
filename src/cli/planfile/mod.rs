//! Saved plans: one file that holds all that apply needs.
//!
//! A zip archive, readable only by its owner, because it holds values in clear:
//!
//! | entry | content |
//! | --- | --- |
//! | `monoform-plan.json` | changes, outputs, variables, the execution graph; see [`Document`] |
//! | `tfstate`, `tfstate-prev` | the state with objects as they were found, and before that |
//! | `tfconfig/modules.json`, `tfconfig/m-KEY/FILE` | the configuration as it was planned |
//! | `.terraform.lock.hcl` | the provider selections, if there were any |
//!
//! Values are msgpack with their type, as base64 text; marks are lists of paths beside them. The format number is raised
//! with every change that an older reader would misunderstand; a plan is applied at once or not at all, so there is no
//! reading of older formats.

mod invocations;
mod stored;

use std::collections::BTreeMap;
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::sync::Arc;

use config::files::MemoryFiles;
use config::manifest::Manifest;
use config::snapshot::{Snapshot, SnapshotModule};
use engine::execgraph::ExecGraph;
use engine::plan::{Mode, OutputChange, Plan};
use serde::{Deserialize, Serialize};
use state::State;
use syntax::Diagnostic;
use zip::write::SimpleFileOptions;

use crate::backend::record::Saved;
use invocations::StoredInvocation;
use stored::{
    StoredChange, StoredCheck, StoredOutput, StoredPath, StoredValue, load_address, load_change, load_check, load_path,
    load_targets, load_value, store_change, store_check, store_path, store_value,
};
use views::program;

const DOCUMENT: &str = "monoform-plan.json";
const FORMAT: u32 = 3;
/// No entry of a plan is read beyond this size: a plan is written by this tool, but the file may be any.
const MAX_ENTRY: u64 = 4 << 30;

/// What a saved plan holds.
pub struct SavedPlan {
    /// The plan.
    pub plan: Plan,
    /// The configuration as it was planned.
    pub snapshot: Snapshot,
    /// The dependency lock file, if there was one.
    pub lock_file: Option<Vec<u8>>,
    /// The workspace it was made for.
    pub workspace: String,
    /// The backend that it was made with; `None` for files of the working directory, of which the configuration says where they are.
    pub backend: Option<Saved>,
}

#[derive(Serialize, Deserialize)]
struct Document {
    format: u32,
    tool_version: String,
    workspace: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    backend: Option<Saved>,
    mode: Mode,
    timestamp: String,
    /// Whether planning ended with errors: such a plan can be shown, not applied.
    #[serde(default)]
    errored: bool,
    targets: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    excludes: Vec<String>,
    force_replace: Vec<String>,
    variables: BTreeMap<String, StoredValue>,
    given_variables: BTreeMap<String, StoredValue>,
    changes: Vec<StoredChange>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    invocations: Vec<StoredInvocation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    invoke: Option<String>,
    drift: Vec<StoredChange>,
    outputs: BTreeMap<String, StoredOutput>,
    graph: ExecGraph,
    relevant_attributes: Vec<(String, StoredPath)>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    function_results: BTreeMap<String, String>,
    checks: Vec<StoredCheck>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    generated_config: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    dropped_data: Vec<String>,
}

fn document(saved: &SavedPlan, tool_version: &str) -> Result<Document, String> {
    let plan = &saved.plan;
    let outputs = plan.outputs.iter().map(|(name, o)| {
        let stored = StoredOutput {
            action: o.action,
            before: store_value(&o.before)?,
            after: store_value(&o.after)?,
            sensitive: o.sensitive,
        };
        Ok::<_, String>((name.to_string(), stored))
    });
    let variables = plan
        .variables
        .iter()
        .map(|(name, v)| Ok::<_, String>((name.to_string(), store_value(v)?)));
    let relevant = plan
        .relevant_attributes
        .iter()
        .map(|(a, p)| Ok::<_, String>((a.to_string(), store_path(p)?)));
    Ok(Document {
        format: FORMAT,
        tool_version: tool_version.to_owned(),
        workspace: saved.workspace.clone(),
        backend: saved.backend.clone(),
        mode: plan.mode,
        timestamp: plan.timestamp.clone(),
        errored: plan.errored,
        targets: plan.targets.iter().map(ToString::to_string).collect(),
        excludes: plan.excludes.iter().map(ToString::to_string).collect(),
        force_replace: plan.force_replace.iter().map(ToString::to_string).collect(),
        variables: variables.collect::<Result<_, _>>()?,
        given_variables: plan
            .given_variables
            .iter()
            .map(|(name, value)| Ok::<_, String>((name.to_string(), store_value(value)?)))
            .collect::<Result<_, _>>()?,
        changes: plan.changes.iter().map(store_change).collect::<Result<_, _>>()?,
        invocations: plan
            .invocations
            .iter()
            .map(invocations::store)
            .collect::<Result<_, _>>()?,
        invoke: plan.invoke.as_ref().map(ToString::to_string),
        drift: plan.drift.iter().map(store_change).collect::<Result<_, _>>()?,
        outputs: outputs.collect::<Result<_, _>>()?,
        graph: plan.graph.clone(),
        relevant_attributes: relevant.collect::<Result<_, _>>()?,
        function_results: plan.function_results.clone(),
        checks: plan.checks.iter().map(store_check).collect(),
        dropped_data: plan.dropped_data.iter().map(ToString::to_string).collect(),
        generated_config: plan
            .generated_config
            .iter()
            .map(|(address, text)| (address.to_string(), text.clone()))
            .collect(),
    })
}

/// Writes a plan to a file that only its owner may read. The file appears whole or not at all; a pipe or a device is
/// written into.
pub fn write(path: &Path, saved: &SavedPlan, tool_version: &str) -> Result<(), Diagnostic> {
    let failed = |e: &dyn std::fmt::Display| {
        Diagnostic::error(
            "Failed to write plan file",
            format!("The plan file {} cannot be written: {e}.", path.display()),
        )
    };
    let mut output = files::Output::create(path, files::Policy::SECRET).map_err(|e| failed(&e))?;
    write_archive(&mut output, saved, tool_version).map_err(|e| failed(&e))?;
    output.commit().map_err(|e| failed(&e))
}

fn write_archive(out: impl Write + Seek, saved: &SavedPlan, tool_version: &str) -> Result<(), String> {
    let mut zip = zip::ZipWriter::new(std::io::BufWriter::new(out));
    let options = SimpleFileOptions::default()
        .compression_method(zip::CompressionMethod::Deflated)
        .compression_level(Some(1))
        .unix_permissions(0o600)
        // The same plan is the same file, whenever it is written.
        .last_modified_time(zip::DateTime::default())
        .large_file(true);
    let mut entry = |name: &str, content: &[u8]| {
        zip.start_file(name, options).map_err(|e| e.to_string())?;
        zip.write_all(content).map_err(|e| ::files::io_reason(&e))
    };
    let document = serde_json::to_vec(&document(saved, tool_version)?).map_err(|e| e.to_string())?;
    entry(DOCUMENT, &document)?;
    for (name, state) in [
        ("tfstate", &saved.plan.prior_state),
        ("tfstate-prev", &saved.plan.previous_state),
    ] {
        entry(name, &state::document::encode(state).map_err(|e| e.to_string())?)?;
    }
    entry("tfconfig/modules.json", saved.snapshot.manifest().to_json().as_bytes())?;
    for (key, module) in &saved.snapshot.modules {
        for (name, content) in &module.files {
            entry(&format!("tfconfig/m-{key}/{name}"), content)?;
        }
    }
    if let Some(lock_file) = &saved.lock_file {
        entry(".terraform.lock.hcl", lock_file)?;
    }
    let mut inner = zip.finish().map_err(|e| e.to_string())?;
    inner.flush().map_err(|e| ::files::io_reason(&e))
}

/// Whether a file is an archive at all: a saved plan, rather than a state.
#[must_use]
pub fn looks_like_plan(path: &Path) -> bool {
    let mut magic = [0; 4];
    std::fs::File::open(path)
        .and_then(|mut f| f.read_exact(&mut magic))
        .is_ok()
        && magic == *b"PK\x03\x04"
}

/// Reads a saved plan.
pub fn read(path: &Path, tool_version: &str) -> Result<SavedPlan, Diagnostic> {
    let failed = |e: &str| {
        Diagnostic::error(
            "Failed to read plan file",
            format!("The plan file {} cannot be read: {e}.", path.display()),
        )
    };
    let file = std::fs::File::open(path).map_err(|e| failed(&::files::io_reason(&e)))?;
    let mut zip = zip::ZipArchive::new(std::io::BufReader::new(file))
        .map_err(|_| failed("it is not a saved plan, or it is damaged. Make a new one with \"plan -out=FILE\""))?;
    if zip.index_for_name(DOCUMENT).is_none() {
        if zip.index_for_name("tfplan").is_some() {
            let command = program::command();
            return Err(failed(&format!(
                "it was saved by Terraform or OpenTofu, whose plan files only they can read. Make the plan with \"{command} \
                 plan -out=FILE\" instead"
            )));
        }
        return Err(failed("it is a zip archive, but not a saved plan"));
    }
    let mut entries: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for i in 0..zip.len() {
        let mut entry = zip.by_index(i).map_err(|e| failed(&e.to_string()))?;
        let mut content = Vec::new();
        let size = entry
            .by_ref()
            .take(MAX_ENTRY + 1)
            .read_to_end(&mut content)
            .map_err(|e| failed(&e.to_string()))?;
        if size as u64 > MAX_ENTRY {
            return Err(failed("an entry is larger than any plan"));
        }
        let name = entry.name().map_err(|e| failed(&e.to_string()))?.into_owned();
        entries.insert(name, content);
    }
    let document = entries.get(DOCUMENT).map(Vec::as_slice).unwrap_or_default();
    let head: Head = serde_json::from_slice(document).map_err(|e| failed(&files::json_reason(e)))?;
    if head.format != FORMAT || head.tool_version != tool_version {
        return Err(failed(&format!(
            "it was saved by version {} of Monoform, and only that can apply it; this is {tool_version}",
            head.tool_version
        )));
    }
    let document: Document = serde_json::from_slice(document).map_err(|e| failed(&files::json_reason(e)))?;
    load(&document, entries).map_err(|e| failed(&e))
}

#[derive(Deserialize)]
struct Head {
    format: u32,
    tool_version: String,
}

/// Reads the document of a plan with an empty configuration and empty states, and writes it again: for the fuzz target.
///
/// # Errors
/// What is wrong with it.
pub fn reread_document(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let document_read: Document = serde_json::from_slice(bytes).map_err(files::json_reason)?;
    let entries = [
        ("tfstate", &b""[..]),
        ("tfstate-prev", b""),
        ("tfconfig/modules.json", b"{\"Modules\":[]}"),
    ];
    let entries = entries.map(|(name, content)| (name.to_owned(), content.to_vec()));
    let saved = load(&document_read, entries.into())?;
    serde_json::to_vec(&document(&saved, &document_read.tool_version)?).map_err(|e| e.to_string())
}

fn load(document: &Document, mut entries: BTreeMap<String, Vec<u8>>) -> Result<SavedPlan, String> {
    let mut state = |name: &str| -> Result<State, String> {
        let text = entries
            .remove(name)
            .ok_or_else(|| format!("the entry {name} is missing"))?;
        Ok(state::document::decode(&text)
            .map_err(|e| e.to_string())?
            .unwrap_or_default())
    };
    let (prior_state, previous_state) = (state("tfstate")?, state("tfstate-prev")?);
    let manifest = entries
        .remove("tfconfig/modules.json")
        .ok_or("the entry tfconfig/modules.json is missing")?;
    let manifest = Manifest::parse(&manifest).map_err(|e| e.to_string())?;
    let mut modules: BTreeMap<String, SnapshotModule> = manifest
        .modules
        .iter()
        .map(|(key, entry)| {
            (
                key.clone(),
                SnapshotModule {
                    entry: entry.clone(),
                    files: BTreeMap::new(),
                },
            )
        })
        .collect();
    let lock_file = entries.remove(".terraform.lock.hcl");
    for (name, content) in entries {
        let Some((key, file)) = name.strip_prefix("tfconfig/m-").and_then(|rest| rest.split_once('/')) else {
            continue;
        };
        let module = modules
            .get_mut(key)
            .ok_or_else(|| format!("the module {key:?} is not in the manifest"))?;
        module.files.insert(file.to_owned(), Arc::from(content));
    }
    let outputs = document.outputs.iter().map(|(name, o)| {
        let output = OutputChange {
            action: o.action,
            before: load_value(&o.before)?,
            after: load_value(&o.after)?,
            sensitive: o.sensitive,
        };
        Ok::<_, String>((name.as_str().into(), output))
    });
    let changes = document
        .changes
        .iter()
        .map(load_change)
        .collect::<Result<Vec<_>, _>>()?;
    check_graph(&document.graph, changes.len(), document.invocations.len())?;
    let plan = Plan {
        mode: document.mode,
        timestamp: document.timestamp.clone(),
        variables: document
            .variables
            .iter()
            .map(|(name, v)| Ok::<_, String>((name.as_str().into(), load_value(v)?)))
            .collect::<Result<_, _>>()?,
        given_variables: document
            .given_variables
            .iter()
            .map(|(name, v)| Ok::<_, String>((name.as_str().into(), load_value(v)?)))
            .collect::<Result<_, _>>()?,
        targets: load_targets(&document.targets)?,
        excludes: load_targets(&document.excludes)?,
        force_replace: document
            .force_replace
            .iter()
            .map(|a| load_address(a))
            .collect::<Result<_, _>>()?,
        changes,
        invocations: document
            .invocations
            .iter()
            .map(invocations::load)
            .collect::<Result<_, _>>()?,
        invoke: (document.invoke.as_deref())
            .map(addrs::parse::action)
            .transpose()
            .map_err(|e| e.to_string())?,
        drift: document.drift.iter().map(load_change).collect::<Result<_, _>>()?,
        outputs: outputs.collect::<Result<_, _>>()?,
        previous_state,
        prior_state,
        graph: document.graph.clone(),
        relevant_attributes: document
            .relevant_attributes
            .iter()
            .map(|(a, p)| Ok::<_, String>((load_address(a)?, load_path(p)?)))
            .collect::<Result<_, _>>()?,
        function_results: document.function_results.clone(),
        checks: document.checks.iter().map(load_check).collect::<Result<_, _>>()?,
        generated_config: document
            .generated_config
            .iter()
            .map(|(address, text)| Ok::<_, String>((load_address(address)?, text.clone())))
            .collect::<Result<_, _>>()?,
        queries: Vec::new(),
        dropped_data: document
            .dropped_data
            .iter()
            .map(|a| load_address(a))
            .collect::<Result<_, _>>()?,
        errored: document.errored,
        saved: true,
    };
    Ok(SavedPlan {
        plan,
        snapshot: Snapshot { modules },
        lock_file,
        workspace: document.workspace.clone(),
        backend: document.backend.clone(),
    })
}

/// A graph that speaks of nodes or changes that are not there, or that waits for itself, must not be walked.
fn check_graph(graph: &ExecGraph, changes: usize, invocations: usize) -> Result<(), String> {
    use engine::execgraph::Operation;
    let nodes = graph.nodes.len();
    let edges = graph
        .edges
        .iter()
        .all(|(a, b)| (*a as usize) < nodes && (*b as usize) < nodes);
    let operations = graph.nodes.iter().all(|n| match n {
        Operation::Change(i) | Operation::Destroy(i) => (*i as usize) < changes,
        Operation::Invoke(i) => (*i as usize) < invocations,
        Operation::GroupStart(_) | Operation::GroupEnd(_) => true,
    });
    if edges && operations && graph.cycle().is_none() {
        Ok(())
    } else {
        Err("its execution graph is damaged".into())
    }
}

/// The files of a saved plan's configuration, to load from.
#[must_use]
pub fn files(saved: &SavedPlan) -> MemoryFiles {
    saved.snapshot.files()
}

#[cfg(test)]
mod tests {
    use addrs::{AbsProviderConfig, Provider};

    use cty::{Marks, Type, Value};
    use engine::invocation::{ActionInvocation, InvocationTrigger, LifecycleTrigger};
    use engine::plan::{Action, IdentityChange, ImportedBy, Reason, ResourceChange};

    use super::*;

    fn invocation(trigger: InvocationTrigger) -> ActionInvocation {
        ActionInvocation {
            address: addrs::parse::action("module.m[\"k\"].action.t.a[1]").unwrap(),
            provider: AbsProviderConfig::root(Provider::default_for("t")),
            config: Value::object([("secret", Value::string("x").with_marks(Marks::SENSITIVE))]),
            trigger: Arc::new(trigger),
        }
    }

    fn sample() -> SavedPlan {
        let secret = Value::object([
            ("id", Value::unknown_not_null(Type::String)),
            ("token", Value::string("t0ken").with_marks(Marks::SENSITIVE)),
            ("n", Value::number(3)),
        ]);
        let change = ResourceChange {
            address: load_address("module.m[\"k\"].t.a[0]").unwrap(),
            previous_address: None,
            deposed: Some("0a1b2c3d".into()),
            provider: AbsProviderConfig::root(Provider::default_for("t")),
            action: Action::DeleteThenCreate,
            reason: Reason::ReplaceByRequest,
            before: Value::null(Type::Dynamic),
            after: secret.clone(),
            replace_paths: vec![cty::Path::root().attribute("n").index(Value::number(0))],
            private: vec![0, 255, 7],
            config_known: true,
            importing: Some(ImportedBy::Identity(Value::object([("id", Value::string("x"))]))),
            identity: IdentityChange::new(None, Some(Value::object([("id", Value::string("x"))]))),
        };
        let graph = ExecGraph {
            nodes: vec![
                engine::execgraph::Operation::Destroy(0),
                engine::execgraph::Operation::Change(0),
            ],
            edges: vec![(0, 1)],
        };
        let entry = config::manifest::ManifestEntry {
            source: String::new(),
            version: None,
            dir: ".".into(),
        };
        let files = BTreeMap::from([("main.tf".to_owned(), Arc::from(&b"# empty"[..]))]);
        let modules = BTreeMap::from([(String::new(), SnapshotModule { entry, files })]);
        SavedPlan {
            plan: Plan {
                mode: Mode::Normal,
                timestamp: "2026-01-01T00:00:00Z".into(),
                variables: BTreeMap::from([("v".into(), Value::string("x"))]),
                given_variables: BTreeMap::from([("v".into(), Value::string("x"))]),
                targets: vec![addrs::parse::target("module.m").unwrap()],
                excludes: Vec::new(),
                force_replace: Vec::new(),
                invocations: vec![
                    invocation(InvocationTrigger::Lifecycle(LifecycleTrigger {
                        resource: load_address("t.a[0]").unwrap(),
                        event: config::ActionEvent::AfterUpdate,
                        block: 1,
                        action: 2,
                        on_failure: config::ActionFailure::Taint,
                    })),
                    invocation(InvocationTrigger::Invoke {
                        caller: Some(load_address("t.b").unwrap()),
                    }),
                ],
                invoke: Some(addrs::parse::action("action.t.a").unwrap()),
                changes: vec![change],
                drift: Vec::new(),
                outputs: BTreeMap::new(),
                previous_state: State::default(),
                prior_state: State::default(),
                graph,
                relevant_attributes: Vec::new(),
                function_results: BTreeMap::new(),
                checks: Vec::new(),
                generated_config: BTreeMap::new(),
                queries: Vec::new(),
                dropped_data: Vec::new(),
                errored: false,
                saved: false,
            },
            snapshot: Snapshot { modules },
            lock_file: Some(b"# lock".to_vec()),
            workspace: "default".into(),
            backend: None,
        }
    }

    #[test]
    fn a_saved_plan_comes_back_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p");
        let saved = sample();
        write(&path, &saved, "1.0.0").unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
        let back = read(&path, "1.0.0").unwrap();
        let (a, b) = (&saved.plan.changes[0], &back.plan.changes[0]);
        assert_eq!(
            (&a.address, &a.after, &a.private, &a.replace_paths),
            (&b.address, &b.after, &b.private, &b.replace_paths)
        );
        for (a, b) in saved.plan.invocations.iter().zip(&back.plan.invocations) {
            assert_eq!(
                (&a.address, &a.provider, &a.config, &a.trigger),
                (&b.address, &b.provider, &b.config, &b.trigger)
            );
        }
        assert_eq!(back.plan.invocations.len(), saved.plan.invocations.len());
        assert_eq!(back.plan.invoke, saved.plan.invoke);
        assert_eq!(back.snapshot, saved.snapshot);
        assert_eq!(back.plan.graph.edges, saved.plan.graph.edges);
        assert_eq!(back.lock_file.as_deref(), Some(&b"# lock"[..]));
        assert!(read(&path, "1.0.1").is_err(), "another version must not apply it");
        let other = dir.path().join("q");
        write(&other, &sample(), "1.0.0").unwrap();
        assert_eq!(
            std::fs::read(&path).unwrap(),
            std::fs::read(&other).unwrap(),
            "the same plan is the same file"
        );
    }

    #[test]
    fn damaged_and_foreign_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p");
        write(&path, &sample(), "1.0.0").unwrap();
        let bytes = std::fs::read(&path).unwrap();
        for cut in [0, 3, 100, bytes.len() / 2, bytes.len() - 1] {
            std::fs::write(&path, &bytes[..cut]).unwrap();
            assert!(read(&path, "1.0.0").is_err(), "cut at {cut}");
        }
        let mut zip = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
        zip.start_file("tfplan", SimpleFileOptions::default()).unwrap();
        zip.finish().unwrap();
        let Err(error) = read(&path, "1.0.0") else {
            panic!("read")
        };
        assert!(error.detail.contains("saved by Terraform"), "{}", error.detail);
    }
}
