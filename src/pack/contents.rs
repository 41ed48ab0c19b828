//! What goes into a pack: packages, configurations and their files, from directories and from other packs.

use std::collections::BTreeSet;
use std::path::PathBuf;

use addrs::Provider;
use addrs::platform::Platform;
use versions::Version;

use crate::index::{PackedFile, PackedLink};
use crate::read::Pack;

/// The contents of a pack.
#[derive(Debug, Default)]
pub struct Contents<'p> {
    /// Provider packages. Of two for the same provider, version and platform, the later one counts.
    pub providers: Vec<ProviderContents<'p>>,
    /// Module packages. Of two with the same address, the later one counts.
    pub modules: Vec<ModuleContents<'p>>,
    /// Configurations. Of two with the same name, the later one counts.
    pub configurations: Vec<ConfigurationContents<'p>>,
    /// The CLI configuration.
    pub cli_config: Option<Source<'p>>,
}

/// A directory tree to add.
#[derive(Clone, Debug, Default)]
pub struct Tree<'p> {
    pub files: Vec<Entry<'p>>,
    pub links: Vec<PackedLink>,
}

/// A module package to add.
#[derive(Clone, Debug)]
pub struct ModuleContents<'p> {
    /// Its address, as the index of a mirror of modules has it.
    pub address: String,
    /// Where in it the registry says that the module is.
    pub subdir: Option<String>,
    /// Its files and links.
    pub tree: Tree<'p>,
}

/// A configuration to add.
#[derive(Clone, Debug)]
pub struct ConfigurationContents<'p> {
    pub name: String,
    /// The directory of the root module inside it; empty if that is the directory itself.
    pub root: String,
    /// Its files and links.
    pub tree: Tree<'p>,
}

/// A provider package to add.
#[derive(Clone, Debug)]
pub struct ProviderContents<'p> {
    pub address: Provider,
    pub version: Version,
    pub platform: Platform,
    /// Checksums for the lock file.
    pub hashes: BTreeSet<String>,
    pub files: Vec<Entry<'p>>,
}

/// A file to add.
#[derive(Clone, Debug)]
pub struct Entry<'p> {
    /// Its path, with slashes.
    pub path: String,
    /// Whether it can be executed.
    pub executable: bool,
    /// Its content.
    pub source: Source<'p>,
}

/// Where content comes from.
#[derive(Clone, Debug)]
pub enum Source<'p> {
    File(PathBuf),
    /// A blob of another pack. Its frame is taken as it is.
    Pack(&'p Pack, usize),
}

impl<'p> Contents<'p> {
    /// The contents of another pack.
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
    /// A file of another pack.
    fn new(pack: &'p Pack, file: &PackedFile) -> Entry<'p> {
        Entry {
            path: file.path.clone(),
            executable: file.executable,
            source: Source::Pack(pack, file.blob),
        }
    }
}
