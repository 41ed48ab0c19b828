//! Data for completion from the working directory: workspaces, addresses, names of outputs and variables, providers, files.
//!
//! No server or plugin is contacted, nothing is written, and errors only lead to fewer candidates: the user waits for the answer
//! to a key press.

use std::collections::BTreeSet;
use std::path::Path;

use addrs::ConfigResource;
use state::State;
use stores::backend::Local;
use stores::backend::Source;
use stores::backend::record::Record;
use stores::workspace;

use crate::session::Session;
use crate::workdir;

/// Source of names for completion.
pub trait Live {
    fn workspaces(&self) -> Vec<String>;
    /// Addresses of the instances in the state.
    fn instances(&self) -> Vec<String>;
    /// Addresses of the configuration's modules and resources.
    fn configured(&self) -> Vec<String>;
    /// Addresses of the configuration's actions.
    fn actions(&self) -> Vec<String>;
    /// Names of the outputs in the state.
    fn outputs(&self) -> Vec<String>;
    /// Names of the root module's variables.
    fn variables(&self) -> Vec<String>;
    /// Source addresses of the providers of configuration and state.
    fn providers(&self) -> Vec<String>;
    /// Names in a directory; those of directories end in a slash.
    fn names_in(&self, dir: &str) -> Vec<String>;
}

pub struct WorkingDirectory<'s>(pub &'s Session);

impl WorkingDirectory<'_> {
    /// Returns the local backend that the last `init` recorded; `None` if states are in a store.
    fn local(&self) -> Option<Local> {
        // Completion can report nothing, so a broken record counts as none.
        let record = Record::read(self.0.env.data_dir()).unwrap_or_default();
        match record.backend {
            None => Some(Local::default()),
            Some(saved) => saved.local(),
        }
    }

    fn state(&self) -> State {
        let read = || {
            let workspace = workspace::selected(&self.0.stores()).ok()?;
            let path = self.local()?.state(&workspace);
            stores::session::read_source(&self.0.stores(), &Source::File(path)).ok()?
        };
        read().unwrap_or_default()
    }

    fn config(&self) -> config::Config {
        workdir::read_as_installed(self.0).0.config
    }
}

impl Live for WorkingDirectory<'_> {
    fn workspaces(&self) -> Vec<String> {
        self.local()
            .and_then(|local| local.workspaces().ok())
            .unwrap_or_default()
    }

    fn instances(&self) -> Vec<String> {
        let state = self.state();
        let each = state.instances();
        each.map(|(resource, _, key, _)| resource.instance(key.clone()).to_string())
            .collect()
    }

    fn configured(&self) -> Vec<String> {
        let config = self.config();
        let mut all = Vec::new();
        for node in config.nodes() {
            if !node.path.is_root() {
                all.push(node.path.to_string());
            }
            all.extend(node.module.resources.keys().map(|resource| {
                let module = node.path.clone();
                ConfigResource {
                    module,
                    resource: resource.clone(),
                }
                .to_string()
            }));
        }
        all
    }

    fn actions(&self) -> Vec<String> {
        let config = self.config();
        let mut all = Vec::new();
        for node in config.nodes() {
            let before = match node.path.is_root() {
                true => String::new(),
                false => format!("{}.", node.path),
            };
            all.extend(node.module.actions.keys().map(|action| format!("{before}{action}")));
        }
        all
    }

    fn outputs(&self) -> Vec<String> {
        self.state().outputs.keys().map(ToString::to_string).collect()
    }

    fn variables(&self) -> Vec<String> {
        let config = self.config();
        config.root.module.variables.keys().map(ToString::to_string).collect()
    }

    fn providers(&self) -> Vec<String> {
        let config = self.config();
        let required = config.nodes().into_iter().flat_map(|node| {
            let all = node.module.required_providers.values();
            all.map(|required| required.provider.to_string()).collect::<Vec<_>>()
        });
        let state = self.state();
        let stored = state
            .resources
            .values()
            .map(|resource| resource.provider.provider.to_string());
        let all: BTreeSet<String> = required.chain(stored).collect();
        all.into_iter().collect()
    }

    fn names_in(&self, dir: &str) -> Vec<String> {
        let dir = if dir.is_empty() { "." } else { dir };
        let entries = std::fs::read_dir(Path::new(dir)).into_iter().flatten();
        entries
            .filter_map(Result::ok)
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                let is_dir = entry.path().is_dir();
                Some(if is_dir { name + "/" } else { name })
            })
            .collect()
    }
}
