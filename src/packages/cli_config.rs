//! The CLI configuration file: settings of the user's machine, independent of any configuration of infrastructure.

mod oci;
#[cfg(test)]
mod tests;

use files::Environment;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use addrs::Provider;
use addrs::program::Mode;
use net::hosts::CredentialsHelper;
use net::{Host, HostSettings, Token};
use pack::Pack;
use serde_json::Value as Json;
use syntax::{Diagnostic, Diagnostics};

use crate::hcl1::{self, Item, Node};
use crate::packed::Carried;
use crate::provider_pattern::{Pattern, PatternError};
use crate::repository_template::{RepositoryTemplate, TemplateError};

/// Prefix of error messages about an environment variable's value.
pub const OF_VARIABLE: &str = "The environment variable ";

/// Settings of all CLI configuration files together.
#[derive(Clone, Debug, Default)]
pub struct CliConfig {
    /// Plugin cache directory, shared by all working directories.
    pub plugin_cache_dir: Option<PathBuf>,
    /// True if packages in the plugin cache may be used whose checksums are not in the lock file.
    pub plugin_cache_may_break_lock_file: bool,
    /// Service overrides and tokens of hosts, and the credentials helper.
    pub hosts: HostSettings,
    /// Installation methods of the `provider_installation` block. Without one, the directories of [`crate::discovery`] and the
    /// registries are used.
    pub provider_installation: Option<Vec<Method>>,
    /// Directories with providers under development, by address.
    pub dev_overrides: BTreeMap<Provider, PathBuf>,
    /// Names of built-in plugins that are not used; `*` means all.
    pub disabled_builtins: BTreeSet<String>,
    /// Names of built-in plugins that may not replace another version; `*` means all.
    pub exact_builtins: BTreeSet<String>,
}

/// Installation method: a package source, with the providers that it is used for.
#[derive(Clone, Debug, PartialEq)]
pub struct Method {
    pub source: Source,
    /// Patterns of the providers that the method is used for; empty for all.
    pub include: Vec<Pattern>,
    /// Patterns of the providers that the method is not used for.
    pub exclude: Vec<Pattern>,
}

/// Source of packages in the CLI configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Filesystem mirror: a directory in mirror layout.
    FilesystemMirror(PathBuf),
    /// URL of a network mirror, ending in a slash.
    NetworkMirror(String),
    /// OCI repositories, one for each provider.
    OciMirror(RepositoryTemplate),
    /// Registry of each provider.
    Direct,
}

/// Error in a setting. The text is a clause without a full stop.
#[derive(Debug, thiserror::Error)]
enum SettingError {
    #[error("the plugin cache directory {} does not exist, so that no cache is used; create it", .0.display())]
    NoCache(PathBuf),
    #[error("there can be only one {0} block")]
    SecondBlock(&'static str),
    #[error("dev_overrides must come before all installation methods")]
    LateOverrides,
    #[error("\"{address}\" is not a provider address: {reason}")]
    Provider { address: String, reason: String },
    #[error("\"{text}\" is not a provider pattern: {source}")]
    Pattern { text: String, source: PatternError },
    #[error("{method} has no argument \"{argument}\"")]
    NoArgument { method: String, argument: String },
    #[error("{0} needs the argument \"{1}\"")]
    Missing(&'static str, &'static str),
    #[error("the mirror's URL {0} must begin with https://")]
    NotHttps(String),
    #[error("\"{0}\" is not an installation method")]
    Method(String),
    #[error("the environment variable {0} is not set")]
    NotSet(String),
    #[error("\"{name}\" must be {expected}")]
    Type { name: String, expected: &'static str },
    #[error("\"{0}\" is not the name of a host")]
    Host(String),
    #[error("a \"{0}\" block has one label")]
    Labels(String),
    #[error("the token for {0} has characters that cannot be sent, such as a line end, so that it is not used")]
    Token(String),
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error("{0}")]
    Oci(String),
}

impl SettingError {
    fn type_of(name: &str, expected: &'static str) -> SettingError {
        SettingError::Type {
            name: name.to_owned(),
            expected,
        }
    }
}

impl Method {
    /// Returns true if the method is used for this provider.
    #[must_use]
    pub fn applies_to(&self, provider: &Provider) -> bool {
        let any = |list: &[Pattern]| list.iter().any(|p| p.matches(provider));
        (self.include.is_empty() || any(&self.include)) && !any(&self.exclude)
    }
}

impl CliConfig {
    /// Reads the CLI configuration files that this environment selects. An error is about one setting or file; all other settings take
    /// effect.
    #[must_use]
    pub fn load(environment: &Environment) -> (CliConfig, Diagnostics) {
        CliConfig::load_with(environment, &Carried::Nothing)
    }

    /// Reads the CLI configuration as [`CliConfig::load`] does. Without a file of settings, the CLI configuration in the pack is used.
    #[must_use]
    pub fn load_with(environment: &Environment, carried: &Carried) -> (CliConfig, Diagnostics) {
        let mut loader = Loader {
            environment,
            config: CliConfig::default(),
            diagnostics: Diagnostics::new(),
            place: String::new(),
        };
        let named = environment
            .get("TF_CLI_CONFIG_FILE")
            .or_else(|| environment.get("TERRAFORM_CONFIG"));
        if let Some(path) = named {
            if Path::new(path).exists() {
                loader.file(Path::new(path));
            } else {
                loader.diagnostics.push(Diagnostic::warning(
                    "Unable to open CLI configuration file",
                    format!(
                        "The file {path}, which the environment names as the CLI configuration file, does not exist."
                    ),
                ));
            }
        } else {
            // As in Terraform, a file that the environment names replaces all others.
            let paths = environment.cli_configuration(Mode::current().paths());
            let main = paths.as_ref().map(|paths| paths.file.clone());
            let mut files: Vec<PathBuf> = main.into_iter().filter(|path| path.exists()).collect();
            files.extend(paths.iter().flat_map(|paths| extra_files(&paths.directory)));
            // Credentials that `login` has stored are not a configuration of the machine, so the configuration of a pack applies in spite
            // of them.
            let tokens_only = files.iter().all(|path| path.ends_with("credentials.tfrc.json"));
            if let Some(pack) = carried.pack().filter(|_| tokens_only) {
                loader.pack(pack);
            }
            files.iter().for_each(|path| loader.file(path));
        }
        // The environment comes last, because it overrides the files.
        if let Some(dir) = environment.get("TF_PLUGIN_CACHE_DIR").filter(|dir| !dir.is_empty()) {
            loader.place = format!("{OF_VARIABLE}TF_PLUGIN_CACHE_DIR");
            let dir = loader.existing_cache(dir.into());
            loader.config.plugin_cache_dir = dir;
        }
        // Requests ignore tokens that cannot be sent, and the registry's status 401 would not explain that.
        for name in net::credentials::unsendable(environment) {
            loader.place = format!("{OF_VARIABLE}{name}");
            loader.report(SettingError::Token(name.trim_start_matches("TF_TOKEN_").to_owned()));
        }
        if environment
            .get("TF_PLUGIN_CACHE_MAY_BREAK_DEPENDENCY_LOCK_FILE")
            .is_some_and(|v| v != "0")
        {
            loader.config.plugin_cache_may_break_lock_file = true;
        }
        (loader.config, loader.diagnostics)
    }
}

/// Returns the reason why a CLI configuration must not be put into a pack, as a clause: it cannot be read, or has credentials. `None` if
/// it may be.
#[must_use]
pub fn not_to_be_carried(text: &str) -> Option<String> {
    let items = match hcl1::parse(text) {
        Ok(items) => items,
        Err(error) => return Some(error.to_string()),
    };
    let (secret, kind) = items.iter().find_map(|item| {
        let kind = item.keys.first().map(String::as_str)?;
        matches!(kind, "credentials" | "oci_credentials").then_some((item, kind))
    })?;
    let place = match secret.line {
        0 => String::new(),
        line => format!("line {line}: "),
    };
    Some(format!(
        "{place}the \"{kind}\" block holds a secret, which would be readable in every copy of the pack; remove the block, and put it \
         into a file of the machine{}",
        match kind {
            "credentials" => ", or use the environment variable TF_TOKEN_HOST there",
            _ => "",
        }
    ))
}

fn extra_files(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return Vec::new();
    };
    let wanted = |path: &PathBuf| {
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("");
        (name.ends_with(".tfrc") || name.ends_with(".tfrc.json")) && path.is_file()
    };
    let mut paths: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).filter(wanted).collect();
    // The order of directory entries is random, and the first plugin_cache_dir wins.
    paths.sort();
    paths
}

struct Loader<'e> {
    environment: &'e Environment,
    config: CliConfig,
    diagnostics: Diagnostics,
    /// Location of the current setting, for errors.
    place: String,
}

/// Reason why no settings could be read from a CLI configuration.
#[derive(Debug, thiserror::Error)]
enum ReadError {
    #[error("cannot be read: {}", files::io_reason(.0))]
    Io(std::io::Error),
    #[error("it is not valid Unicode text")]
    NotUtf8,
    #[error(transparent)]
    Pack(pack::PackError),
    #[error(transparent)]
    Syntax(#[from] hcl1::ParseError),
}

impl Loader<'_> {
    /// Reports an error in a setting. All other settings still take effect.
    fn report(&mut self, error: SettingError) {
        let detail = format!("{}: {error}.", self.place);
        self.diagnostics
            .push(Diagnostic::error("Invalid CLI configuration", detail));
    }

    /// Returns a plugin cache directory if it exists; otherwise reports an error. It is never created: a mistyped path would hide the
    /// cache that the user meant.
    fn existing_cache(&mut self, dir: PathBuf) -> Option<PathBuf> {
        if dir.is_dir() {
            return Some(dir);
        }
        self.report(SettingError::NoCache(dir));
        None
    }

    fn file(&mut self, path: &Path) {
        let parsed = match std::fs::read_to_string(path) {
            Ok(text) => hcl1::parse(&text).map_err(ReadError::from),
            Err(error) => Err(ReadError::Io(error)),
        };
        self.items(&path.display().to_string(), parsed, path.parent());
    }

    /// Reads the CLI configuration of a pack.
    fn pack(&mut self, pack: &Pack) {
        let text = match pack.cli_config() {
            Ok(None) => return,
            Ok(Some(bytes)) => String::from_utf8(bytes).map_err(|_| ReadError::NotUtf8),
            Err(error) => Err(ReadError::Pack(error)),
        };
        let parsed = text.and_then(|text| Ok(hcl1::parse(&text)?));
        self.items(
            &format!("The CLI configuration of the pack {}", pack.path().display()),
            parsed,
            None,
        );
    }

    /// Applies the settings of a CLI configuration file, or of the one in a pack. Relative paths in it begin at `dir`.
    fn items(&mut self, name: &str, parsed: Result<Vec<Item>, ReadError>, dir: Option<&Path>) {
        let items = match parsed {
            Ok(items) => items,
            Err(error) => {
                let detail = format!("{name}: {error}.");
                return self
                    .diagnostics
                    .push(Diagnostic::error("Invalid CLI configuration file", detail));
            }
        };
        for item in items {
            self.place = match item.line {
                0 => name.to_owned(),
                line => format!("{name} line {line}"),
            };
            if let Err(error) = self.item(item, dir) {
                self.report(error);
            }
        }
    }

    fn item(&mut self, item: Item, dir: Option<&Path>) -> Result<(), SettingError> {
        let name = item.keys.first().cloned().unwrap_or_default();
        match name.as_str() {
            "plugin_cache_dir" => {
                let dir = self.path(&text(&item.value, &name)?)?;
                let dir = self.existing_cache(dir);
                // The setting of the first file is used, as in Terraform.
                self.config.plugin_cache_dir = self.config.plugin_cache_dir.take().or(dir);
            }
            "plugin_cache_may_break_dependency_lock_file" => {
                self.config.plugin_cache_may_break_lock_file |= boolean(&item.value, &name)?;
            }
            "disable_internal_plugins" => self.config.disabled_builtins.extend(texts(item.value, &name)?),
            "exact_internal_plugins" => self.config.exact_builtins.extend(texts(item.value, &name)?),
            "host" => {
                for (host, body) in labelled(item)? {
                    let mut services = BTreeMap::new();
                    for inner in body.into_iter().filter(|i| i.keys == ["services"]) {
                        for service in object(inner.value, "services")? {
                            services.insert(service.keys.join("."), json(service.value));
                        }
                    }
                    self.config.hosts.services.insert(host_name(&host)?, services);
                }
            }
            "credentials" => {
                for (host, body) in labelled(item)? {
                    for inner in body.into_iter().filter(|i| i.keys == ["token"]) {
                        // A token that cannot be a header value would make every request to the host fail.
                        let token = Token::sendable(&text(&inner.value, "token")?);
                        let token = token.ok_or_else(|| SettingError::Token(host.clone()))?;
                        self.config.hosts.tokens.insert(host_name(&host)?, token);
                    }
                }
            }
            "credentials_helper" => {
                for (name, body) in labelled(item)? {
                    if self.config.hosts.helper.is_some() {
                        return Err(SettingError::SecondBlock("credentials_helper"));
                    }
                    let mut args = Vec::new();
                    for inner in body.into_iter().filter(|i| i.keys == ["args"]) {
                        args = texts(inner.value, "args")?;
                    }
                    self.config.hosts.helper = Some(CredentialsHelper { name, args });
                }
            }
            "oci_credentials" => {
                for (key, body) in labelled(item)? {
                    oci::credentials(&key, body, &mut self.config.hosts.oci)?;
                }
            }
            "oci_default_credentials" => {
                oci::default_credentials(object(item.value, &name)?, &mut self.config.hosts.oci, dir)?;
            }
            "provider_installation" => {
                if self.config.provider_installation.is_some() {
                    return Err(SettingError::SecondBlock("provider_installation"));
                }
                let mut methods = Vec::new();
                // After an error, the valid methods must still limit where providers come from, instead of falling back to the
                // registries.
                for block in blocks(item.value, &name)? {
                    if let Err(error) = self.method(block, &mut methods) {
                        self.report(error);
                    }
                }
                self.config.provider_installation = Some(methods);
            }
            // These settings of HashiCorp's Checkpoint service have no effect, because nothing is sent to it. Their
            // type is checked nevertheless.
            "disable_checkpoint" | "disable_checkpoint_signature" => {
                boolean(&item.value, &name)?;
            }
            // Terraform ignores these settings of its early versions, too.
            "providers" | "provisioners" => {}
            // Settings of newer versions must not keep this version from running.
            other => tracing::warn!(setting = other, "unknown setting in the CLI configuration"),
        }
        Ok(())
    }

    fn method(&mut self, block: Item, methods: &mut Vec<Method>) -> Result<(), SettingError> {
        let kind = block.keys.first().cloned().unwrap_or_default();
        let body = object(block.value, &kind)?;
        if kind == "dev_overrides" {
            // Terraform has this rule, since overrides apply before any method.
            if !methods.is_empty() {
                return Err(SettingError::LateOverrides);
            }
            for item in body {
                let address = item.keys.join(".");
                let provider = Provider::parse(&address).map_err(|error| SettingError::Provider {
                    address: address.clone(),
                    reason: error.detail,
                })?;
                let dir = self.path(&text(&item.value, &address)?)?;
                self.config.dev_overrides.insert(provider, dir);
            }
            return Ok(());
        }
        let (mut path, mut url, mut template) = (None, None, None);
        let (mut include, mut exclude) = (Vec::new(), Vec::new());
        for item in body {
            let patterns = |node| -> Result<Vec<Pattern>, SettingError> {
                let parse =
                    |text: String| Pattern::parse(&text).map_err(|source| SettingError::Pattern { text, source });
                texts(node, "include and exclude")?.into_iter().map(parse).collect()
            };
            match (kind.as_str(), item.keys.join(".").as_str()) {
                (_, "include") => include = patterns(item.value)?,
                (_, "exclude") => exclude = patterns(item.value)?,
                ("filesystem_mirror", "path") => path = Some(self.path(&text(&item.value, "path")?)?),
                ("network_mirror", "url") => url = Some(text(&item.value, "url")?),
                ("oci_mirror", "repository_template") => {
                    template = Some(RepositoryTemplate::parse(&text(&item.value, "repository_template")?)?);
                }
                (_, other) => {
                    return Err(SettingError::NoArgument {
                        method: kind,
                        argument: other.to_owned(),
                    });
                }
            }
        }
        let source = match kind.as_str() {
            "filesystem_mirror" => {
                Source::FilesystemMirror(path.ok_or(SettingError::Missing("filesystem_mirror", "path"))?)
            }
            "network_mirror" => {
                let url = url.ok_or(SettingError::Missing("network_mirror", "url"))?;
                // As in Terraform, HTTPS is required: credentials are sent to the mirror, and the only checksums
                // are in its documents.
                if !url.starts_with("https://") {
                    return Err(SettingError::NotHttps(url));
                }
                Source::NetworkMirror(if url.ends_with('/') { url } else { url + "/" })
            }
            "oci_mirror" => {
                let template = template.ok_or(SettingError::Missing("oci_mirror", "repository_template"))?;
                // Otherwise two providers would share a repository, and one would be installed in place of the other.
                template.distinguishes(&include)?;
                Source::OciMirror(template)
            }
            "direct" => Source::Direct,
            other => return Err(SettingError::Method(other.to_owned())),
        };
        methods.push(Method {
            source,
            include,
            exclude,
        });
        Ok(())
    }

    fn path(&self, text: &str) -> Result<PathBuf, SettingError> {
        let (path, missing) = self.environment.expand(text);
        match missing.first() {
            Some(name) => Err(SettingError::NotSet(name.clone())),
            None => Ok(path.into()),
        }
    }
}

/// Converts a value to JSON. A list with one element, which HCL 1 has in place of an object, becomes that object.
fn json(node: Node) -> Json {
    match node {
        Node::String(text) => text.into(),
        Node::Number(text) => serde_json::from_str(&text).unwrap_or(Json::String(text)),
        Node::Bool(value) => value.into(),
        Node::Null => Json::Null,
        Node::List(items) => items.into_iter().map(json).collect(),
        Node::Object(items) => items
            .into_iter()
            .map(|item| (item.keys.join("."), json(item.value)))
            .collect(),
    }
}

fn text(node: &Node, name: &str) -> Result<String, SettingError> {
    match node {
        Node::String(text) => Ok(text.clone()),
        _ => Err(SettingError::type_of(name, "text")),
    }
}

fn texts(node: Node, name: &str) -> Result<Vec<String>, SettingError> {
    match node {
        Node::List(items) => items.iter().map(|item| text(item, name)).collect(),
        _ => Err(SettingError::type_of(name, "a list of texts")),
    }
}

fn host_name(name: &str) -> Result<Host, SettingError> {
    Host::parse(name).ok_or_else(|| SettingError::Host(name.to_owned()))
}

fn boolean(node: &Node, name: &str) -> Result<bool, SettingError> {
    match node {
        Node::Bool(b) => Ok(*b),
        // HCL 1 files often have the truth value in quotes.
        Node::String(text) if text == "true" || text == "false" => Ok(text == "true"),
        _ => Err(SettingError::type_of(name, "true or false")),
    }
}

fn object(node: Node, name: &str) -> Result<Vec<Item>, SettingError> {
    match node {
        Node::Object(items) => Ok(items),
        // JSON may wrap a single block in a list.
        Node::List(mut items) if items.len() == 1 => object(items.remove(0), name),
        _ => Err(SettingError::type_of(name, "a block")),
    }
}

/// Returns the blocks in a block. In JSON they may be in a list, which keeps their order.
fn blocks(node: Node, name: &str) -> Result<Vec<Item>, SettingError> {
    let inner = match node {
        Node::List(items) => items
            .into_iter()
            .map(|item| object(item, name))
            .collect::<Result<Vec<_>, _>>()?
            .concat(),
        other => object(other, name)?,
    };
    Ok(inner
        .into_iter()
        .flat_map(|item| match item.value {
            Node::List(bodies) if bodies.iter().all(|b| matches!(b, Node::Object(_))) => bodies
                .into_iter()
                .map(|value| Item {
                    keys: item.keys.clone(),
                    value,
                    line: item.line,
                })
                .collect(),
            value => vec![Item {
                keys: item.keys,
                value,
                line: item.line,
            }],
        })
        .collect())
}

/// Returns pairs of label and body: one pair for a block with a label; in JSON, one for each member of the object.
fn labelled(item: Item) -> Result<Vec<(String, Vec<Item>)>, SettingError> {
    let name = item.keys.first().cloned().unwrap_or_default();
    match item.keys.as_slice() {
        [_, label] => Ok(vec![(label.clone(), object(item.value, &name)?)]),
        [_] => object(item.value, &name)?
            .into_iter()
            .map(|inner| Ok((inner.keys.join("."), object(inner.value, &name)?)))
            .collect(),
        _ => Err(SettingError::Labels(name)),
    }
}
