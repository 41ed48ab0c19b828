//! Contents of a new pack: packages, configurations and their files, from directories and from other packs.

use std::collections::BTreeSet;
use std::path::PathBuf;

use addrs::Provider;
use addrs::platform::Platform;
use versions::Version;

use crate::index::{PackedFile, PackedLink};
use crate::read::Pack;

/// Contents of a new pack. Later entries replace earlier ones, so that entries of another pack, which come first, can be updated.
#[derive(Debug, Default)]
pub struct Contents<'p> {
    /// Provider packages. The last one for a provider, version and platform is used.
    pub providers: Vec<ProviderContents<'p>>,
    /// Module packages. The last one with an address is used.
    pub modules: Vec<ModuleContents<'p>>,
    /// Configurations. The last one with a name is used.
    pub configurations: Vec<ConfigurationContents<'p>>,
    pub cli_config: Option<Source<'p>>,
}

#[derive(Clone, Debug, Default)]
pub struct Tree<'p> {
    pub files: Vec<Entry<'p>>,
    pub links: Vec<PackedLink>,
}

#[derive(Clone, Debug)]
pub struct ModuleContents<'p> {
    /// Address, as in the index of a module mirror.
    pub address: String,
    /// Subdirectory of the module in the package, as the registry gave it.
    pub subdir: Option<String>,
    pub tree: Tree<'p>,
}

#[derive(Clone, Debug)]
pub struct ConfigurationContents<'p> {
    pub name: String,
    /// Directory of the root module inside the tree; empty if that is the tree itself.
    pub root: String,
    pub tree: Tree<'p>,
}

#[derive(Clone, Debug)]
pub struct ProviderContents<'p> {
    pub address: Provider,
    pub version: Version,
    pub platform: Platform,
    /// Checksums for the lock file.
    pub hashes: BTreeSet<String>,
    pub files: Vec<Entry<'p>>,
}

#[derive(Clone, Debug)]
pub struct Entry<'p> {
    /// Path in the tree, with slashes.
    pub path: String,
    pub executable: bool,
    pub source: Source<'p>,
}

/// Source of a file's content.
#[derive(Clone, Debug)]
pub enum Source<'p> {
    File(PathBuf),
    /// Blob of another pack, by its position. The compressed frame is copied as it is.
    Pack(&'p Pack, usize),
}

impl<'p> Contents<'p> {
    #[must_use]
    pub fn from_pack(pack: &'p Pack) -> Contents<'p> {
        let taken = |files: &[PackedFile]| files.iter().map(|file| Entry::new(pack, file)).collect();
        let index = pack.index();
        Contents {
            providers: (index.providers.iter())
                .map(|provider| ProviderContents {
                    address: provider.address.clone(),
                    version: provider.version.clone(),
                    platform: provider.platform.clone(),
                    hashes: provider.hashes.clone(),
                    files: taken(&provider.files),
                })
                .collect(),
            modules: (index.modules.iter())
                .map(|module| ModuleContents {
                    address: module.address.clone(),
                    subdir: module.subdir.clone(),
                    tree: Tree {
                        files: taken(&module.files),
                        links: module.links.clone(),
                    },
                })
                .collect(),
            configurations: (index.configurations.iter())
                .map(|configuration| ConfigurationContents {
                    name: configuration.name.clone(),
                    root: configuration.root.clone(),
                    tree: Tree {
                        files: taken(&configuration.files),
                        links: configuration.links.clone(),
                    },
                })
                .collect(),
            cli_config: index.cli_config.map(|blob| Source::Pack(pack, blob)),
        }
    }
}

impl<'p> Entry<'p> {
    fn new(pack: &'p Pack, file: &PackedFile) -> Entry<'p> {
        Entry {
            path: file.path.clone(),
            executable: file.executable,
            source: Source::Pack(pack, file.blob),
        }
    }
}
