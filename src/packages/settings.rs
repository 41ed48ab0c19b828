//! Settings of plugin selection, from the caller.

use files::Environment;
use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::builtin::Builtins;
use crate::cli_config::CliConfig;

/// Environment variable that switches off built-in plugins, by name: `null,random`, or `*` for all.
pub const DISABLE_BUILTINS: &str = "MONOFORM_DISABLE_INTERNAL_PLUGINS";

/// Environment variable that restricts built-in plugins to exactly their own version, by name: `null,random`, or `*` for all. If
/// another version is required or locked, it must be installed.
pub const EXACT_BUILTINS: &str = "MONOFORM_EXACT_INTERNAL_PLUGINS";

/// Environment variable that allows plugins in the directory of the configuration (`terraform.d/plugins`) that neither `init` nor
/// the lock file has recorded, if it is set and not `0`.
pub const LOCAL_PLUGINS: &str = "MONOFORM_LOCAL_PLUGINS";

/// Settings of a [`crate::Catalog`].
#[derive(Clone, Debug)]
pub struct Settings {
    pub builtins: Builtins,
    /// Names of built-in plugins that are not used; `*` means all.
    pub disabled_builtins: BTreeSet<String>,
    /// Names of built-in plugins that are used only as exactly their own version; `*` means all.
    pub exact_builtins: BTreeSet<String>,
    pub environment: Environment,
    pub config: CliConfig,
    /// Directory of the root module.
    pub working_dir: PathBuf,
    /// Data directory: `.terraform`, or the value of TF_DATA_DIR.
    pub data_dir: PathBuf,
    /// Directories set by `-plugin-dir`, which replace all other search directories.
    pub plugin_dirs: Vec<PathBuf>,
    /// True if `plugin_dirs` was recorded in the data directory by an earlier `init -plugin-dir`.
    pub plugin_dirs_remembered: bool,
    /// Client for registries and mirrors; `None` if no request is allowed.
    pub client: Option<net::Client>,
    pub program: addrs::Program,
}

impl Settings {
    /// Returns the default settings for a working directory.
    #[must_use]
    pub fn new(builtins: Builtins, environment: Environment, config: CliConfig, working_dir: PathBuf) -> Settings {
        let data_dir = working_dir.join(environment.get("TF_DATA_DIR").unwrap_or(".terraform"));
        // The directories of `init -plugin-dir` also apply to later commands, as in Terraform.
        let remembered = std::fs::read(data_dir.join("plugin_path")).ok();
        let plugin_dirs: Vec<PathBuf> = remembered
            .and_then(|json| serde_json::from_slice(&json).ok())
            .unwrap_or_default();
        let names = |variable: &str, configured: &BTreeSet<String>| -> BTreeSet<String> {
            let listed = environment.get(variable).unwrap_or("").split(',').map(str::trim);
            let listed = listed.filter(|s| !s.is_empty()).map(str::to_owned);
            listed.chain(configured.iter().cloned()).collect()
        };
        let disabled_builtins = names(DISABLE_BUILTINS, &config.disabled_builtins);
        let exact_builtins = names(EXACT_BUILTINS, &config.exact_builtins);
        Settings {
            disabled_builtins,
            exact_builtins,
            builtins,
            environment,
            config,
            working_dir,
            data_dir,
            plugin_dirs_remembered: !plugin_dirs.is_empty(),
            plugin_dirs,
            client: None,
            program: addrs::Program::default(),
        }
    }

    /// Returns true if the built-in plugin of this name may be used.
    #[must_use]
    pub fn allows_builtin(&self, name: &str) -> bool {
        !self.disabled_builtins.contains(name) && !self.disabled_builtins.contains("*")
    }

    /// Returns true if the built-in plugin of this name may only be used as exactly its own version.
    #[must_use]
    pub fn exact_builtin(&self, name: &str) -> bool {
        self.exact_builtins.contains(name) || self.exact_builtins.contains("*")
    }

    /// Returns true if plugins in the directory of the configuration may run without being recorded.
    #[must_use]
    pub fn allows_local_plugins(&self) -> bool {
        let set = self.environment.get(LOCAL_PLUGINS);
        set.is_some_and(|value| !value.is_empty() && value != "0")
    }

    /// Returns the directory of the installed providers.
    #[must_use]
    pub fn providers_dir(&self) -> PathBuf {
        self.data_dir.join("providers")
    }
}
