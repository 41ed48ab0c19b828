//! What the rooms above decide about plugins.

use files::Environment;
use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::builtin::Builtins;
use crate::cli_config::CliConfig;

/// Switches off built-in plugins, by name: `null,random`, or `*` for all.
pub const DISABLE_BUILTINS: &str = "MONOFORM_DISABLE_INTERNAL_PLUGINS";

/// Lets built-in plugins be used for exactly their own version only, by name: `null,random`, or `*` for all. Any other version
/// that is required or locked must be installed.
pub const EXACT_BUILTINS: &str = "MONOFORM_EXACT_INTERNAL_PLUGINS";

/// Lets plugins run that lie in the directory of the configuration (`terraform.d/plugins`) and that neither `init` nor the lock file
/// has recorded, if it is set and not `0`.
pub const LOCAL_PLUGINS: &str = "MONOFORM_LOCAL_PLUGINS";

/// What a [`crate::Catalog`] needs to know.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The plugins in our own executable.
    pub builtins: Builtins,
    /// Names of built-in plugins not to be used; `*` means all.
    pub disabled_builtins: BTreeSet<String>,
    /// Names of built-in plugins that are used for no version but their own; `*` means all.
    pub exact_builtins: BTreeSet<String>,
    /// The environment variables.
    pub environment: Environment,
    /// The CLI configuration.
    pub config: CliConfig,
    /// The directory of the root module.
    pub working_dir: PathBuf,
    /// `.terraform`, or what stands for it.
    pub data_dir: PathBuf,
    /// Directories given by a person, which replace all others.
    pub plugin_dirs: Vec<PathBuf>,
    /// These come from the data directory, where an earlier `init -plugin-dir` has recorded them.
    pub plugin_dirs_remembered: bool,
    /// The client for registries and mirrors; none if no request is allowed.
    pub client: Option<net::Client>,
    /// The name of this program in messages.
    pub program: addrs::Program,
}

impl Settings {
    /// The usual settings for a working directory.
    #[must_use]
    pub fn new(builtins: Builtins, environment: Environment, config: CliConfig, working_dir: PathBuf) -> Settings {
        let data_dir = working_dir.join(environment.get("TF_DATA_DIR").unwrap_or(".terraform"));
        // What `init -plugin-dir` said holds for later commands.
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

    /// Whether a built-in plugin of this name may be used.
    #[must_use]
    pub fn allows_builtin(&self, name: &str) -> bool {
        !self.disabled_builtins.contains(name) && !self.disabled_builtins.contains("*")
    }

    /// Whether a built-in plugin of this name may be used only as exactly its own version.
    #[must_use]
    pub fn exact_builtin(&self, name: &str) -> bool {
        self.exact_builtins.contains(name) || self.exact_builtins.contains("*")
    }

    /// Whether plugins in the directory of the configuration may run without being recorded.
    #[must_use]
    pub fn allows_local_plugins(&self) -> bool {
        let set = self.environment.get(LOCAL_PLUGINS);
        set.is_some_and(|value| !value.is_empty() && value != "0")
    }

    /// Where installed providers are.
    #[must_use]
    pub fn providers_dir(&self) -> PathBuf {
        self.data_dir.join("providers")
    }
}
