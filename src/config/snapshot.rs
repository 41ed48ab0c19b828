//! Configuration files inside a plan file, so that apply reads exactly what was planned.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::files::{MemoryFiles, join};
use crate::manifest::{Manifest, ManifestEntry};
use crate::model::{Config, ModuleNode};

/// Files of all modules of a configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Modules by key in the manifest: the path of calls, joined by dots.
    pub modules: BTreeMap<String, SnapshotModule>,
}

/// Manifest entry and files of one module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotModule {
    pub entry: ManifestEntry,
    pub files: BTreeMap<String, Arc<[u8]>>,
}

impl Snapshot {
    /// Returns the files as a source from which the configuration can be loaded, with the links that it needs.
    #[must_use]
    pub fn files(&self) -> MemoryFiles {
        let mut files = MemoryFiles::default();
        for (key, module) in &self.modules {
            for (name, content) in &module.files {
                files.insert(&join(&module.entry.dir, name), content.clone());
            }
            let caller = key.rsplit_once('.').map_or("", |(caller, _)| caller);
            let source = &module.entry.source;
            if let Some(caller) = self.modules.get(caller).filter(|_| !key.is_empty())
                && (source.starts_with("./") || source.starts_with("../"))
            {
                // The recorded directory is the real path. If the call's path goes through a link, loading needs that
                // link as well.
                let written = join(&caller.entry.dir, source);
                if written != module.entry.dir {
                    files.link(&written, &module.entry.dir);
                }
            }
        }
        files
    }

    /// Returns the manifest of the snapshot's modules.
    #[must_use]
    pub fn manifest(&self) -> Manifest {
        Manifest {
            modules: self
                .modules
                .iter()
                .map(|(key, m)| (key.clone(), m.entry.clone()))
                .collect(),
        }
    }

    /// Returns the directory of the root module.
    #[must_use]
    pub fn root_dir(&self) -> &str {
        self.modules.get("").map_or(".", |m| &m.entry.dir)
    }
}

impl Config {
    /// Returns the manifest of all modules as they were loaded.
    #[must_use]
    pub fn manifest(&self) -> Manifest {
        let entry = |node: &&ModuleNode| (Manifest::key(&node.path), node.manifest_entry());
        Manifest {
            modules: self.nodes().iter().map(entry).collect(),
        }
    }

    /// Returns the files of every module.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let modules = self.nodes().into_iter().map(|node| {
            let files = node
                .module
                .files
                .iter()
                .map(|f| (f.name.to_string(), f.content.clone()))
                .collect();
            (
                Manifest::key(&node.path),
                SnapshotModule {
                    entry: node.manifest_entry(),
                    files,
                },
            )
        });
        Snapshot {
            modules: modules.collect(),
        }
    }
}

impl ModuleNode {
    fn manifest_entry(&self) -> ManifestEntry {
        ManifestEntry {
            source: self.source.clone(),
            version: self.version.clone(),
            dir: self.module.source_dir.to_string(),
        }
    }
}
