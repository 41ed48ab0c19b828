//! Loading: reads a directory and the modules that it calls, and builds the tree of modules.

mod directory;
mod file_kind;
mod listing;

use std::collections::BTreeMap;
use std::sync::Arc;

use files::io_reason;
use syntax::content;
use syntax::{Diagnostic, Diagnostics, Range, Severity, SourceMap};

use crate::early::{ConstValues, EarlyModule, Others, RootVariables};
use crate::files::{FileSource, clean, join};
use crate::losses::surrounds;
use crate::manifest::Manifest;
use crate::model::{CallAddress, Config, LiteralAddress, Module, ModuleCall, ModuleNode, Variable};
use crate::source_address::ModuleSource;
use crate::values;
use crate::version::{Constraint, Version};
use crate::{decode, providers};
pub(crate) use listing::{configuration_files, contradiction};
pub use listing::{has_configuration, has_queries};

/// Depth limit of the module tree. Symbolic links could make it infinite.
const MAX_DEPTH: usize = 64;

/// Inputs of loading other than files.
#[derive(Clone, Copy, Debug)]
pub struct LoadOptions<'o> {
    /// Version of the tool that `required_version` is compared with.
    pub tool_version: &'o str,
    /// Record of the directories in which remote modules are installed.
    pub manifest: &'o Manifest,
    /// The values of the root module's variables: sources of modules can depend on them.
    pub variables: RootVariables<'o>,
    /// Working directory, as `path.cwd` returns it.
    pub cwd: &'o str,
    pub workspace: &'o str,
}

impl<'o> LoadOptions<'o> {
    /// Creates options for a root module whose variables are not known: sources of modules can depend on the defaults
    /// of const variables only.
    #[must_use]
    pub fn new(tool_version: &'o str, manifest: &'o Manifest) -> LoadOptions<'o> {
        LoadOptions {
            tool_version,
            manifest,
            variables: RootVariables::None,
            cwd: ".",
            workspace: "default",
        }
    }
}

/// A loaded configuration with its sources and diagnostics.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The configuration, as far as it could be read; complete if there are no errors.
    pub config: Config,
    /// Text of every file that was read.
    pub sources: SourceMap,
    pub diagnostics: Diagnostics,
    /// The modules that must be installed first. Each has an error among the diagnostics, unless that error is inside of a block that a
    /// syntax error has garbled.
    pub missing: Vec<MissingModule>,
    /// Errors that appear only when modules are combined: calls that do not match the variables of a module, provider configurations,
    /// ephemeral outputs of the root. They are among the diagnostics, too. With such errors, the configuration can be shown and installed,
    /// but not evaluated.
    pub judged: Diagnostics,
}

/// A module that must be installed before the configuration is whole.
#[derive(Clone, Debug)]
pub struct MissingModule {
    pub path: addrs::Module,
    pub source: ModuleSource,
    pub version: Option<Constraint>,
    /// Known values of the call's arguments, for sources inside the module that depend on them. In the language of OpenTofu, arguments
    /// whose value is not known are included as unknown values.
    pub inputs: ConstValues,
    /// Range of the source argument.
    pub range: Range,
    /// The error among the diagnostics that reports the module.
    pub problem: Diagnostic,
}

impl Loaded {
    /// Returns the diagnostics, without those about modules that must be installed first.
    #[must_use]
    pub fn apart_from_missing(&self) -> Diagnostics {
        let mut out = Diagnostics::new();
        let others = self
            .diagnostics
            .iter()
            .filter(|d| self.missing.iter().all(|m| m.problem != **d));
        out.extend(others.cloned());
        out
    }

    /// Turns the errors in `judged` into warnings, for commands that evaluate nothing.
    #[must_use]
    pub fn for_reading(mut self) -> Loaded {
        for problem in &mut self.diagnostics.0 {
            if self.judged.iter().any(|judged| judged == problem) {
                problem.severity = Severity::Warning;
            }
        }
        self.judged = Diagnostics::new();
        self
    }
}

/// Reads the root module in a directory and all the modules it calls.
///
/// A directory without configuration files is an empty module. The caller decides whether that is an error:
/// [`Module::files`] of the root is empty then.
#[must_use]
pub fn load(files: &dyn FileSource, dir: &str, options: &LoadOptions<'_>) -> Loaded {
    load_files(files, dir, options, Purpose::Operation)
}

/// Loads as [`load`] does, with the query files of the directory: their `list` blocks are resources of the root module.
#[must_use]
pub fn load_with_queries(files: &dyn FileSource, dir: &str, options: &LoadOptions<'_>) -> Loaded {
    load_files(files, dir, options, Purpose::Query)
}

/// Loads as [`load`] does, for tests: provider configurations are not checked, because those of test files are not known yet (see
/// [`Config::with_root_providers`]), and outputs may be ephemeral, because no state is stored.
#[must_use]
pub fn load_for_tests(files: &dyn FileSource, dir: &str, options: &LoadOptions<'_>) -> Loaded {
    load_files(files, dir, options, Purpose::Tests)
}

/// Loads as [`load`] does, to install the modules and providers that the configuration needs. Missing provider configurations and
/// ephemeral outputs of the root are not reported: tests bring their own configurations, and other commands report both. Terraform's
/// `init` does the same.
#[must_use]
pub fn load_for_installation(files: &dyn FileSource, dir: &str, options: &LoadOptions<'_>) -> Loaded {
    load_files(files, dir, options, Purpose::Installation)
}

/// Loads one module without the modules that it calls, so that nothing must be installed. The called modules are empty: only the
/// sources and versions of the calls are known.
#[must_use]
pub fn load_alone(files: &dyn FileSource, dir: &str, options: &LoadOptions<'_>) -> Loaded {
    load_files(files, dir, options, Purpose::Alone)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Alone,
    Installation,
    Operation,
    Query,
    Tests,
}

fn load_files(files: &dyn FileSource, dir: &str, options: &LoadOptions<'_>, purpose: Purpose) -> Loaded {
    let mut loader = Loader {
        tests: purpose == Purpose::Tests,
        alone: purpose == Purpose::Alone,
        queries: (purpose == Purpose::Query).then(|| clean(dir)),
        ..Loader::new(files, options)
    };
    let dir = clean(dir);
    let module = loader.directory(&dir).unwrap_or_else(|error| {
        loader.diagnostics.push(Diagnostic::error(
            "Failed to read module directory",
            format!("The directory {dir} cannot be read: {}.", io_reason(&error)),
        ));
        Arc::new(Module {
            source_dir: dir.as_str().into(),
            ..Module::default()
        })
    });
    let values = loader.root_values(&module);
    let mut ancestors = vec![dir];
    let mut root = {
        let others = Others::Root(options.variables);
        loader.node(addrs::Module::root(), module, None, values, others, &mut ancestors)
    };
    let Loader {
        sources,
        mut diagnostics,
        mut between,
        mut judged,
        missing,
        unavailable,
        providers_in_doubt,
        left_out,
        ..
    } = loader;
    diagnostics.extend(contradiction(&left_out));
    let mut of_providers = Diagnostics::new();
    providers::resolve(&mut root, &mut of_providers);
    if purpose == Purpose::Installation {
        of_providers
            .0
            .retain(|problem| problem.summary != providers::NOT_PRESENT);
    }
    // Errors in `terraform`, `provider` or `module` blocks make the resolution doubtful: its errors may only be
    // consequences.
    if !providers_in_doubt && !matches!(purpose, Purpose::Tests | Purpose::Alone) {
        judged.extend(of_providers);
    }
    if !matches!(purpose, Purpose::Tests | Purpose::Installation | Purpose::Alone) {
        root_outputs(&root.module, &mut judged);
    }
    let config = Config { root };
    // Problems inside of parts that a syntax error may have garbled are dropped, because they may be consequences of that error.
    let broken = config.broken_parts();
    let garbled = |d: &Diagnostic| {
        d.subject
            .as_ref()
            .is_some_and(|s| broken.iter().any(|b| surrounds(b, s)))
    };
    judged.0.retain(|d| !garbled(d));
    between.extend(judged.clone());
    between.extend(unavailable);
    between.0.retain(|d| !garbled(d));
    judged.0.retain(Diagnostic::is_error);
    diagnostics.extend(between);
    Loaded {
        config,
        sources,
        diagnostics,
        missing,
        judged,
    }
}

/// The root module, loaded without the modules that it calls, with its sources and diagnostics.
#[derive(Clone, Debug)]
pub struct RootModule {
    pub module: Arc<Module>,
    /// Text of every file that was read.
    pub sources: SourceMap,
    pub diagnostics: Diagnostics,
}

/// Reads the root module in a directory without the modules that it calls, for settings that are needed before the state is read.
///
/// # Errors
/// The directory cannot be read.
pub fn load_root(files: &dyn FileSource, dir: &str, tool_version: &str) -> std::io::Result<RootModule> {
    let manifest = Manifest::default();
    let options = LoadOptions::new(tool_version, &manifest);
    let mut loader = Loader::new(files, &options);
    let module = loader.directory(&clean(dir))?;
    Ok(RootModule {
        module,
        sources: loader.sources,
        diagnostics: loader.diagnostics,
    })
}

struct Loader<'l> {
    files: &'l dyn FileSource,
    options: &'l LoadOptions<'l>,
    /// The modules read so far, by directory: several calls share one.
    modules: BTreeMap<String, Arc<Module>>,
    sources: SourceMap,
    diagnostics: Diagnostics,
    /// Problems of calls between modules, and of const variables and their values.
    between: Diagnostics,
    /// Errors that matter only to commands that evaluate ([`Loaded::judged`]), and related warnings. `load_files` appends them to `between`
    /// at the end.
    judged: Diagnostics,
    missing: Vec<MissingModule>,
    /// Errors of modules that are not installed or not readable.
    unavailable: Diagnostics,
    /// True if `terraform`, `provider` or `module` blocks have errors, so that errors about provider configurations
    /// may be consequences.
    providers_in_doubt: bool,
    /// True if the configuration is loaded for tests.
    tests: bool,
    /// True if called modules are not read.
    alone: bool,
    /// Directory whose query files are read besides its configuration files.
    queries: Option<String>,
    /// OpenTofu's files that are not read, because Terraform's of the same name are.
    left_out: Vec<String>,
}

impl<'l> Loader<'l> {
    fn new(files: &'l dyn FileSource, options: &'l LoadOptions<'l>) -> Loader<'l> {
        Loader {
            files,
            options,
            modules: BTreeMap::new(),
            sources: SourceMap::default(),
            diagnostics: Diagnostics::new(),
            between: Diagnostics::new(),
            judged: Diagnostics::new(),
            missing: Vec::new(),
            unavailable: Diagnostics::new(),
            providers_in_doubt: false,
            tests: false,
            alone: false,
            queries: None,
            left_out: Vec::new(),
        }
    }
}

impl Loader<'_> {
    /// Returns the values of the root module's const variables, and reports their problems. Of the other variables
    /// that are set, only syntax errors and undeclared names are reported.
    fn root_values(&mut self, module: &Module) -> ConstValues {
        let given = match self.options.variables {
            RootVariables::None => ConstValues::new(),
            RootVariables::Known(values) => values.clone(),
            RootVariables::Set(set) => {
                let collected = values::collect_const(module, set);
                self.sources.extend(collected.sources);
                if !self.tests {
                    // In tests, an undeclared value may be meant for a test file or for another module.
                    self.between.extend(collected.undeclared);
                }
                self.between.extend(collected.diagnostics);
                for name in &collected.missing {
                    let missing = module.variables.get(name).map(values::missing_variable);
                    self.between.extend(missing);
                }
                let set = &collected.values;
                let values = set.iter().map(|(name, found)| (name.clone(), found.value.clone()));
                let early = EarlyModule::new(module, values.collect(), self.options.cwd, self.files.mounts());
                early.validate(&|name| set.get(name)?.source.range().cloned(), &mut self.between);
                return early.into_values();
            }
        };
        let of_const = module.variables.values().filter(|v| v.is_const);
        let known = |name: &str| given.get(name).filter(|value| value.is_wholly_known());
        let value = |v: &Variable| known(&v.name).cloned().or_else(|| v.default.clone());
        of_const.filter_map(|v| Some((v.name.clone(), value(v)?))).collect()
    }

    /// Builds the node of a module and, recursively, the nodes of the modules it calls.
    fn node(
        &mut self,
        path: addrs::Module,
        module: Arc<Module>,
        from: Option<(&CallAddress, Option<String>)>,
        values: ConstValues,
        others: Others<'_>,
        ancestors: &mut Vec<String>,
    ) -> ModuleNode {
        let mut node = ModuleNode {
            path,
            module: module.clone(),
            source: from.as_ref().map(|(a, _)| a.source.to_string()).unwrap_or_default(),
            constraint: from.as_ref().and_then(|(a, _)| a.version.clone()),
            version: from.and_then(|(_, version)| version),
            children: BTreeMap::new(),
            providers: BTreeMap::new(),
        };
        if !node.path.is_root() {
            providers::misplaced(&node, &mut self.diagnostics);
        }
        let early = EarlyModule::new(&module, values, self.options.cwd, self.files.mounts());
        let early = early.with_others(others, self.options.workspace);
        for call in module.module_calls.values() {
            let path = node.path.child(call.name.clone());
            if let Some(child) = self.child(path, call, &early, ancestors) {
                // A module for another version of the tool has only the diagnostic about that, since its
                // variables were not read.
                if !child.module.refused && !self.alone {
                    check_inputs(call, &child.module, &mut self.judged);
                }
                node.children.insert(call.name.clone(), child);
            }
        }
        node
    }

    fn child(
        &mut self,
        path: addrs::Module,
        call: &ModuleCall,
        early: &EarlyModule<'_>,
        ancestors: &mut Vec<String>,
    ) -> Option<ModuleNode> {
        let address = match &call.address {
            LiteralAddress::Invalid => return None,
            LiteralAddress::Known(address) => address.clone(),
            LiteralAddress::Evaluated => early.address(call, &mut self.between)?,
        };
        if self.alone {
            return Some(ModuleNode {
                path,
                module: Arc::default(),
                source: address.source.to_string(),
                version: None,
                constraint: address.version.clone(),
                children: BTreeMap::new(),
                providers: BTreeMap::new(),
            });
        }
        let (dir, version) = match &address.source {
            ModuleSource::Local(relative) => {
                let caller_dir = &early.module().source_dir;
                // The real path is used, so that a directory reached through different links is one module, and so that a cycle is found.
                (self.files.real(&join(caller_dir, relative.as_str())), None)
            }
            ModuleSource::Registry(_) | ModuleSource::Remote(_) => self.installed(&path, &address, call, early)?,
        };
        if ancestors.contains(&dir) || ancestors.len() >= MAX_DEPTH {
            self.diagnostics.push(
                Diagnostic::error(
                    "Module calls itself",
                    format!(
                        "The module in the directory {dir} calls itself, by way of {path}. Remove one of these calls."
                    ),
                )
                .at(call.source_range()),
            );
            return None;
        }
        let module = match self.directory(&dir) {
            Ok(module) => module,
            Err(error) => {
                self.unavailable.push(
                    Diagnostic::error(
                        "Unreadable module directory",
                        format!(
                            "The directory {dir} of the module \"{}\" cannot be read: {}.",
                            call.name,
                            io_reason(&error)
                        ),
                    )
                    .at(call.source_range()),
                );
                return None;
            }
        };
        let values = self.call_values(call, early, &module);
        ancestors.push(dir);
        let node = {
            let others = Others::Call(early, call);
            self.node(path, module, Some((&address, version)), values, others, ancestors)
        };
        ancestors.pop();
        Some(node)
    }

    /// Evaluates and validates the const variables of a called module.
    fn call_values(&mut self, call: &ModuleCall, early: &EarlyModule<'_>, module: &Module) -> ConstValues {
        if !module.variables.values().any(|v| v.is_const) {
            return ConstValues::new();
        }
        let values = early.inputs(call, module, &mut self.between);
        let early = EarlyModule::new(module, values, self.options.cwd, self.files.mounts());
        let place = |name: &str| call.inputs.attribute(name).map(|a| a.expr.range().clone());
        early.validate(&place, &mut self.between);
        early.into_values()
    }

    /// Returns the directory of an installed remote module, and its version if it is of a registry. Reports a module that is not
    /// installed, or not with the source and version that the call requires, and returns `None`.
    fn installed(
        &mut self,
        path: &addrs::Module,
        address: &CallAddress,
        call: &ModuleCall,
        early: &EarlyModule<'_>,
    ) -> Option<(String, Option<String>)> {
        let source = &address.source;
        let entry = self.options.manifest.modules.get(&Manifest::key(path));
        // The manifest is that of an earlier `init`: the configuration may have changed since.
        let problem = match entry {
            None => Some((
                "Module not installed",
                "This module is not yet installed. Run \"init\" to install the modules that this configuration needs."
                    .to_owned(),
            )),
            Some(entry) if entry.source != source.to_string() => Some((
                "Module source has changed",
                format!(
                    "The source address was changed after this module was installed (from {}). Run \"init\" to install it \
                     again.",
                    entry.source
                ),
            )),
            Some(entry) if self.files.list(&clean(&entry.dir)).is_err() => Some((
                "Module not installed",
                format!(
                    "The directory {}, in which this module was installed, is not there. Run \"init\" to install the module again.",
                    entry.dir
                ),
            )),
            Some(entry) => match (&address.version, &entry.version) {
                (Some(constraint), Some(text)) => match Version::parse_lenient(text) {
                    Ok(version) if constraint.allows(&version) => None,
                    _ => Some((
                        "Module version requirements have changed",
                        format!(
                            "The installed version {text} of the module is not one that \"{}\" allows. Run \"init\" to install \
                             one that is.",
                            constraint.text
                        ),
                    )),
                },
                _ => None,
            },
        };
        if let Some((summary, detail)) = problem {
            let problem = Diagnostic::error(summary, detail).at(call.source_range());
            self.unavailable.push(problem.clone());
            self.missing.push(MissingModule {
                problem,
                path: path.clone(),
                source: source.clone(),
                version: address.version.clone(),
                inputs: early.known_inputs(call),
                range: call.source_range().clone(),
            });
            return None;
        }
        entry.map(|e| (clean(&e.dir), e.version.clone()))
    }
}

/// Reports ephemeral outputs of the root module, because outputs of the root are stored in the state.
fn root_outputs(module: &Module, diagnostics: &mut Diagnostics) {
    for output in module.outputs.values().filter(|o| o.ephemeral) {
        diagnostics.push(
            Diagnostic::error(
                "Ephemeral output not allowed",
                "The output values of the root module are stored in the state, so none of them can be ephemeral. Remove \
                 \"ephemeral = true\", or the output.",
            )
            .at(&output.range),
        );
    }
}

/// Checks the inputs of a call against the variables of the module.
fn check_inputs(call: &ModuleCall, module: &Module, diagnostics: &mut Diagnostics) {
    for attribute in &call.inputs.attributes {
        // A part of the module that could not be parsed may declare the variable.
        if !module.variables.contains_key(&attribute.name) && !module.losses.may_declare(&attribute.name) {
            if matches!(attribute.expr, syntax::ast::Expr::Json(_)) {
                let expected = module.variables.keys().map(|n| &**n);
                diagnostics.push(syntax::json::extraneous(attribute, expected));
                continue;
            }
            let names = module.variables.keys().map(|n| &**n);
            let near = content::near(&attribute.name, names.chain(decode::MODULE_ARGUMENTS.iter().copied()));
            diagnostics.push(content::unsupported_argument(attribute, near.as_ref()));
        }
    }
    for block in &call.inputs.blocks {
        let detail = if module.variables.contains_key(&block.ty) {
            format!(
                "Blocks of type \"{0}\" are not expected here. To set the variable \"{0}\", write an argument with an equals sign.",
                block.ty
            )
        } else {
            format!("Blocks of type \"{}\" are not expected here.", block.ty)
        };
        diagnostics.push(Diagnostic::error("Unsupported block type", detail).at(&block.type_range));
    }
    for variable in module.variables.values().filter(|v| v.is_required()) {
        if call.inputs.attribute(&variable.name).is_none() {
            diagnostics.push(
                Diagnostic::error(
                    "Missing required argument",
                    format!(
                        "The module requires the argument \"{}\", and this call does not set it.",
                        variable.name
                    ),
                )
                .at(&call.inputs.end),
            );
        }
    }
}
