//! Assembles a module from the decoded files of its directory: reports duplicate declarations, applies override files,
//! and resolves the provider of each resource.

use std::collections::BTreeMap;
use std::sync::Arc;

use syntax::{Diagnostic, Diagnostics, Range};

use crate::decode::{self, FileBlocks};
use crate::model::{Backend, Check, Local, Module, ModuleCall, ModuleFile, Output, Variable};
use crate::overrides;

/// Builds a module: merges its primary files, applies the override files, and resolves source addresses and provider
/// names.
pub(crate) fn module(
    source_dir: &str,
    files: Vec<ModuleFile>,
    primary: Vec<FileBlocks>,
    overriding: Vec<FileBlocks>,
    diagnostics: &mut Diagnostics,
) -> Module {
    let mut module = Module {
        source_dir: source_dir.into(),
        files,
        ..Module::default()
    };
    let mut requirements_at: Option<Range> = None;
    for file in primary {
        add(&mut module, file, &mut requirements_at, diagnostics);
    }
    // Override files change what primary files declare, so all primary files come first.
    for file in overriding {
        overrides::apply(&mut module, file, diagnostics);
    }
    if let (Some(backend), Some(cloud)) = (&module.backend, &module.cloud) {
        let summary = match backend.provider {
            Some(_) => "Conflicting 'cloud' and 'state_store' configuration blocks are present",
            None => "Both a backend and cloud configuration are present",
        };
        diagnostics.push(
            Diagnostic::error(
                summary,
                format!(
                    "State is kept in one place: a module has either a {} block or a cloud block. The cloud block is at {}.",
                    backend.block_type(),
                    cloud.range
                ),
            )
            .at(&backend.range),
        );
    }
    // The addresses are resolved only now, because an override file may have changed the source or the version.
    for call in module.module_calls.values_mut() {
        decode::literal_address(call, diagnostics);
    }
    // Local names get their meaning from the requirements of all files, override files included.
    resolve_providers(&mut module);
    resolve_state_store(&mut module, diagnostics);
    check_imports(&module, diagnostics);
    module
}

/// Adds a declaration to a map, or reports that the map has a declaration with this key already.
fn declare<K: Ord, V>(
    map: &mut BTreeMap<K, V>,
    key: K,
    value: V,
    range: fn(&V) -> &Range,
    duplicate: impl FnOnce(&K, &Range) -> (String, String),
    diagnostics: &mut Diagnostics,
) {
    // The first declaration stays in effect, so that references to it are not reported, too.
    if let Some(first) = map.get(&key) {
        let (summary, detail) = duplicate(&key, range(first));
        diagnostics.push(Diagnostic::error(summary, detail).at(range(&value)));
    } else {
        map.insert(key, value);
    }
}

/// A declaration that its name alone identifies.
trait Named {
    fn name(&self) -> &Arc<str>;
    fn range(&self) -> &Range;
}

/// Implements [`Named`] from the fields `name` and `range`.
macro_rules! named {
    ($($ty:ty),*) => {$(
        impl Named for $ty {
            fn name(&self) -> &Arc<str> {
                &self.name
            }
            fn range(&self) -> &Range {
                &self.range
            }
        }
    )*};
}
named!(Variable, Local, Output, ModuleCall, Check);

fn declare_named<V: Named>(
    map: &mut BTreeMap<Arc<str>, V>,
    items: Vec<V>,
    what: &str,
    summary: fn(&str) -> String,
    diagnostics: &mut Diagnostics,
) {
    for item in items {
        let duplicate = |name: &Arc<str>, first: &Range| {
            let detail =
                format!("A {what} named \"{name}\" is at {first} already. Its name must be unique within the module.");
            (summary(name), detail)
        };
        declare(map, item.name().clone(), item, V::range, duplicate, diagnostics);
    }
}

fn add(module: &mut Module, mut file: FileBlocks, requirements_at: &mut Option<Range>, diagnostics: &mut Diagnostics) {
    module.required_versions.append(&mut file.required_versions);
    add_settings(module, &mut file, requirements_at, diagnostics);
    add_providers(module, &mut file, diagnostics);
    add_named(module, &mut file, diagnostics);
    add_resources(module, &mut file, diagnostics);
    module.moved.extend(file.moved);
    module.removed.extend(file.removed);
    module.imports.extend(file.imports);
}

/// Adds the blocks that a module has at most once: `required_providers`, `backend` or `state_store`, `encryption`,
/// `cloud`.
fn add_settings(
    module: &mut Module,
    file: &mut FileBlocks,
    requirements_at: &mut Option<Range>,
    diagnostics: &mut Diagnostics,
) {
    for (range, entries) in std::mem::take(&mut file.required_providers) {
        if let Some(first) = requirements_at {
            diagnostics.push(
                Diagnostic::error(
                    "Duplicate required providers configuration",
                    format!("A module has one required_providers block; the first is at {first}."),
                )
                .at(&range),
            );
            continue;
        }
        *requirements_at = Some(range);
        module
            .required_providers
            .extend(entries.into_iter().map(|e| (e.name.clone(), e)));
    }
    for backend in std::mem::take(&mut file.backends) {
        if let Some(first) = &module.backend {
            diagnostics.push(second_place(first, &backend));
        } else {
            module.backend = Some(backend);
        }
    }
    for encryption in std::mem::take(&mut file.encryptions) {
        if let Some(first) = &module.encryption {
            diagnostics.push(
                Diagnostic::error(
                    "Duplicate encryption configuration",
                    format!("A module has one encryption block; the first is at {}.", first.range),
                )
                .at(&encryption.range),
            );
        } else {
            module.encryption = Some(encryption);
        }
    }
    for cloud in std::mem::take(&mut file.clouds) {
        if let Some(first) = &module.cloud {
            diagnostics.push(
                Diagnostic::error(
                    "Duplicate HCP Terraform configurations",
                    format!("A module has one cloud block; the first is at {}.", first.range),
                )
                .at(&cloud.range),
            );
        } else {
            module.cloud = Some(cloud);
        }
    }
}

fn add_providers(module: &mut Module, file: &mut FileBlocks, diagnostics: &mut Diagnostics) {
    for meta in std::mem::take(&mut file.provider_metas) {
        // The block is stored under its local name for now: the provider is known when the requirements of all
        // files are read (`resolve_providers`).
        let key = addrs::Provider::default_for(meta.name.clone());
        declare(
            &mut module.provider_meta,
            key,
            meta,
            |m| &m.range,
            |key, first| {
                (
                    "Duplicate provider_meta block".into(),
                    format!(
                        "A module has one provider_meta block for a provider; the one for \"{}\" is at {first}.",
                        key.ty
                    ),
                )
            },
            diagnostics,
        );
    }
    for config in std::mem::take(&mut file.provider_configs) {
        declare(
            &mut module.provider_configs,
            config.address.clone(),
            config,
            |c| &c.range,
            |key, first| {
                let detail = match &key.alias {
                    None => format!(
                        "The default configuration of the provider \"{}\" is at {first}. Any further one needs an \"alias\".",
                        key.name
                    ),
                    Some(alias) => format!(
                        "A configuration of the provider \"{}\" with the alias \"{alias}\" is at {first}. Each needs an alias of \
                         its own.",
                        key.name
                    ),
                };
                ("Duplicate provider configuration".into(), detail)
            },
            diagnostics,
        );
    }
}

/// Adds the declarations that a name alone identifies: variables, local values, outputs, module calls, checks.
fn add_named(module: &mut Module, file: &mut FileBlocks, diagnostics: &mut Diagnostics) {
    declare_named(
        &mut module.variables,
        std::mem::take(&mut file.variables),
        "variable",
        |_| "Duplicate variable declaration".into(),
        diagnostics,
    );
    declare_named(
        &mut module.locals,
        std::mem::take(&mut file.locals),
        "local value",
        |_| "Duplicate local value definition".into(),
        diagnostics,
    );
    declare_named(
        &mut module.outputs,
        std::mem::take(&mut file.outputs),
        "output",
        |_| "Duplicate output definition".into(),
        diagnostics,
    );
    declare_named(
        &mut module.module_calls,
        std::mem::take(&mut file.module_calls),
        "module call",
        |_| "Duplicate module call".into(),
        diagnostics,
    );
    declare_named(
        &mut module.checks,
        std::mem::take(&mut file.checks),
        "check block",
        |name| format!("Duplicate check \"{name}\" configuration"),
        diagnostics,
    );
}

fn add_resources(module: &mut Module, file: &mut FileBlocks, diagnostics: &mut Diagnostics) {
    for resource in std::mem::take(&mut file.resources) {
        declare(
            &mut module.resources,
            resource.address.clone(),
            resource,
            |r| &r.range,
            |key, first| {
                let kind = match key.mode {
                    addrs::Mode::Managed => "resource",
                    addrs::Mode::Data => "data",
                    addrs::Mode::Ephemeral => "ephemeral",
                    addrs::Mode::List => "list",
                };
                (
                    format!("Duplicate {kind} \"{}\" configuration", key.ty),
                    format!("There is a {key} at {first} already. Names are unique for each type within a module."),
                )
            },
            diagnostics,
        );
    }
    for action in std::mem::take(&mut file.actions) {
        declare(
            &mut module.actions,
            action.address.clone(),
            action,
            |a| &a.range,
            |key, first| {
                (
                    format!("Duplicate action \"{}\" configuration", key.ty),
                    format!("There is an {key} at {first} already. Names are unique for each type within a module."),
                )
            },
            diagnostics,
        );
    }
}

/// Resolves local provider names to provider addresses, by the module's requirements or by the implied source.
fn resolve_providers(module: &mut Module) {
    let names: BTreeMap<Arc<str>, addrs::Provider> = module
        .required_providers
        .iter()
        .map(|(name, r)| (name.clone(), r.provider.clone()))
        .collect();
    let provider = |name: &str| {
        names
            .get(name)
            .cloned()
            .unwrap_or_else(|| addrs::Provider::implied(name))
    };
    for resource in module.resources.values_mut() {
        resource.provider = provider(&resource.local_provider().name);
    }
    for action in module.actions.values_mut() {
        action.provider = provider(&action.local_provider().name);
    }
    let resources = &module.resources;
    for import in &mut module.imports {
        // An import uses the provider of the `resource` block that it targets. Here only blocks of this module are
        // known, not those of nested modules.
        let own = import
            .to_resource
            .module
            .is_root()
            .then(|| resources.get(&import.to_resource.resource))
            .flatten();
        import.provider = match (&import.provider_ref, own) {
            (Some(r), _) => provider(&r.config.name),
            (None, Some(resource)) => resource.provider.clone(),
            (None, None) => provider(import.to_resource.resource.implied_provider()),
        };
    }
    // Until here the key was the local name; two local names of one provider now become one entry.
    let metas = std::mem::take(&mut module.provider_meta);
    for mut meta in metas.into_values() {
        meta.provider = provider(&meta.name);
        module.provider_meta.insert(meta.provider.clone(), meta);
    }
}

/// Resolves the provider of a `state_store` block, which the module must require under the same local name.
fn resolve_state_store(module: &mut Module, diagnostics: &mut Diagnostics) {
    let Some(store) = module.backend.as_mut().and_then(|b| b.provider.as_mut()) else {
        return;
    };
    if let Some(required) = module.required_providers.get(&store.name) {
        store.provider = required.provider.clone();
    } else if &*store.name != "terraform" && !module.losses.may_declare(&store.name) {
        // The built-in provider "terraform" needs no entry. Any other entry may be in a part of a file that could not
        // be parsed.
        diagnostics.push(
            Diagnostic::error(
                "Missing entry in required_providers",
                format!(
                    "The provider of a state store must be required by the module under the same name. Add an entry \"{}\" to \
                     the required_providers block.",
                    store.name
                ),
            )
            .at(&store.range),
        );
    }
}

/// Builds the error for a second `backend` or `state_store` block: a duplicate, or one that conflicts with the first.
fn second_place(first: &Backend, second: &Backend) -> Diagnostic {
    let (ty, other) = (second.block_type(), first.block_type());
    let (summary, detail) = if ty == other {
        (
            format!("Duplicate '{ty}' configuration block"),
            format!("A module has one {ty} block; the first is at {}.", first.range),
        )
    } else {
        (
            "Conflicting 'state_store' and 'backend' configuration blocks are present".to_owned(),
            format!(
                "State is kept in one place: a module has either a backend block or a state_store block. The {other} block is \
                 at {}.",
                first.range
            ),
        )
    };
    Diagnostic::error(summary, detail).at(&second.range)
}

/// Reports `import` blocks whose `provider` argument differs from that of the target's `resource` block, and instances
/// that two `import` blocks target.
fn check_imports(module: &Module, diagnostics: &mut Diagnostics) {
    let mut seen: BTreeMap<String, &Range> = BTreeMap::new();
    for import in &module.imports {
        let in_root = import.to_resource.module.is_root();
        let own = module.resources.get(&import.to_resource.resource).filter(|_| in_root);
        if let (Some(own), Some(named), Some(at)) = (own, &import.provider_ref, &import.provider_range)
            && own.provider_ref.as_ref().map(|r| &r.config) != Some(&named.config)
        {
            diagnostics.push(
                Diagnostic::error(
                    "Invalid import provider argument",
                    format!(
                        "The block of {}, at {}, selects its provider configuration. The \"provider\" argument of an import is for \
                         resources without a block: remove it here.",
                        own.address, own.range
                    ),
                )
                .at(at),
            );
        }
        // With for_each or computed keys, the instances are known only when a plan evaluates them.
        let Some(instance) = import.to_instance.as_ref().filter(|_| import.for_each.is_none()) else {
            continue;
        };
        if let Some(first) = seen.insert(instance.to_string(), &import.range) {
            diagnostics.push(
                Diagnostic::error(
                    format!("Duplicate import configuration for \"{instance}\""),
                    format!("An object can be imported once; an import block for {instance} is at {first} already."),
                )
                .at(import.to.range()),
            );
        }
    }
}
