//! The one table of built-in plugins: dispatch, listing, links and the host's registry all read it.

use std::path::PathBuf;
use std::process::ExitCode;

use monoform_sdk::AnyStateStore;
use packages::builtin::{BuiltinProvider, Builtins, SchemaChange};
use packages::packed::Carried;
use versions::Version;

/// A built-in plugin.
pub struct Plugin {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub kind: Kind,
    /// The version of the official plugin it stands for, or of the Terraform that has it inside; configurations can ask for
    /// that of a provider only.
    pub version: Option<&'static str>,
    /// Earlier released versions it stands for, too.
    pub earlier: &'static [&'static str],
    /// Serves it until the caller is done.
    pub serve: fn() -> ExitCode,
}

/// Which official releases raised the schema version of a resource type: provider, type, release, schema version. Releases before
/// the first one have version 0. An earlier release refuses a state with a later version than its own.
const SCHEMA_CHANGES: &[(&str, &str, &str, u64)] = &[
    ("random", "random_password", "3.2.0", 1),
    ("random", "random_password", "3.3.0", 2),
    ("random", "random_password", "3.4.3", 3),
    ("random", "random_string", "3.0.0", 1),
    ("random", "random_string", "3.3.0", 2),
    ("tls", "tls_private_key", "4.0.0", 1),
];

/// What a plugin is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A provider of the public registry's `hashicorp` namespace.
    Provider,
    /// A provider that is part of the language.
    LanguageProvider,
    /// A provisioner.
    Provisioner,
    /// A state store: a backend.
    StateStore,
}

/// The word for a kind of plugin on the command line of `internal-plugin`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// `provider`.
    Provider,
    /// `provisioner`.
    Provisioner,
    /// `state`.
    StateStore,
}

impl Kind {
    /// Its word.
    pub fn sort(self) -> Sort {
        match self {
            Kind::Provider | Kind::LanguageProvider => Sort::Provider,
            Kind::Provisioner => Sort::Provisioner,
            Kind::StateStore => Sort::StateStore,
        }
    }
}

impl Plugin {
    /// The protocol versions it speaks.
    pub fn protocols(&self) -> &'static [u32] {
        match self.kind {
            Kind::Provider | Kind::LanguageProvider => &[5, 6],
            Kind::Provisioner => &[5],
            Kind::StateStore => &[6],
        }
    }
}

/// The environment of this process, for what speaks to servers with the tokens of the CLI configuration.
#[expect(
    clippy::disallowed_methods,
    reason = "the names of variables with tokens depend on the host, so all are read"
)]
fn environment() -> state_remote::Environment {
    state_remote::Environment::read(std::env::vars_os())
}

/// The state stores, for whoever needs them in a process of its own.
const STORES: provider_terraform::Stores = &[
    (state_azurerm::NAME, || AnyStateStore::new(state_azurerm::store())),
    (state_remote::CLOUD, || {
        AnyStateStore::new(state_remote::cloud(provider_terraform::VERSION, environment()))
    }),
    (state_consul::NAME, || AnyStateStore::new(state_consul::store())),
    (state_cos::NAME, || AnyStateStore::new(state_cos::store())),
    (state_gcs::NAME, || AnyStateStore::new(state_gcs::store())),
    (state_http::NAME, || AnyStateStore::new(state_http::store())),
    (state_inmem::NAME, || AnyStateStore::new(state_inmem::store())),
    (state_kubernetes::NAME, || AnyStateStore::new(state_kubernetes::store())),
    (state_oci::NAME, || AnyStateStore::new(state_oci::store())),
    (state_oss::NAME, || AnyStateStore::new(state_oss::store())),
    (state_pg::NAME, || AnyStateStore::new(state_pg::store())),
    (state_remote::REMOTE, || {
        AnyStateStore::new(state_remote::remote(provider_terraform::VERSION, environment()))
    }),
    (state_s3::NAME, || AnyStateStore::new(state_s3::store())),
];

/// Every built-in plugin.
pub const PLUGINS: &[Plugin] = &[
    Plugin {
        name: provider_archive::NAME,
        kind: Kind::Provider,
        version: Some(provider_archive::VERSION),
        earlier: provider_archive::RELEASED,
        serve: || monoform_sdk_server::serve_provider(provider_archive::provider()),
    },
    Plugin {
        name: provider_cloudinit::NAME,
        kind: Kind::Provider,
        version: Some(provider_cloudinit::VERSION),
        earlier: provider_cloudinit::RELEASED,
        serve: || monoform_sdk_server::serve_provider(provider_cloudinit::provider()),
    },
    Plugin {
        name: provider_dns::NAME,
        kind: Kind::Provider,
        version: Some(provider_dns::VERSION),
        earlier: provider_dns::RELEASED,
        serve: || monoform_sdk_server::serve_provider(provider_dns::provider()),
    },
    Plugin {
        name: provider_external::NAME,
        kind: Kind::Provider,
        version: Some(provider_external::VERSION),
        earlier: provider_external::RELEASED,
        serve: || monoform_sdk_server::serve_provider(provider_external::provider()),
    },
    Plugin {
        name: provider_http::NAME,
        kind: Kind::Provider,
        version: Some(provider_http::VERSION),
        earlier: provider_http::RELEASED,
        serve: || monoform_sdk_server::serve_provider(provider_http::provider()),
    },
    Plugin {
        name: provider_local::NAME,
        kind: Kind::Provider,
        version: Some(provider_local::VERSION),
        earlier: provider_local::RELEASED,
        serve: || monoform_sdk_server::serve_provider(provider_local::provider()),
    },
    Plugin {
        name: provider_null::NAME,
        kind: Kind::Provider,
        version: Some(provider_null::VERSION),
        earlier: provider_null::RELEASED,
        serve: || monoform_sdk_server::serve_provider(provider_null::provider()),
    },
    Plugin {
        name: provider_random::NAME,
        kind: Kind::Provider,
        version: Some(provider_random::VERSION),
        earlier: provider_random::RELEASED,
        serve: || monoform_sdk_server::serve_provider(provider_random::provider()),
    },
    Plugin {
        name: provider_template::NAME,
        kind: Kind::Provider,
        version: Some(provider_template::VERSION),
        earlier: provider_template::RELEASED,
        serve: || monoform_sdk_server::serve_provider(provider_template::provider()),
    },
    Plugin {
        name: provider_terraform::NAME,
        kind: Kind::LanguageProvider,
        version: Some(provider_terraform::VERSION),
        earlier: &[],
        serve: || monoform_sdk_server::serve_provider(provider_terraform::with_stores(STORES)),
    },
    Plugin {
        name: provider_time::NAME,
        kind: Kind::Provider,
        version: Some(provider_time::VERSION),
        earlier: provider_time::RELEASED,
        serve: || monoform_sdk_server::serve_provider(provider_time::provider()),
    },
    Plugin {
        name: provider_tls::NAME,
        kind: Kind::Provider,
        version: Some(provider_tls::VERSION),
        earlier: provider_tls::RELEASED,
        serve: || monoform_sdk_server::serve_provider(provider_tls::provider()),
    },
    Plugin {
        name: provisioner_file::NAME,
        kind: Kind::Provisioner,
        // Provisioners are part of Terraform, as that provider is.
        version: Some(provider_terraform::VERSION),
        earlier: &[],
        serve: || monoform_sdk_server::serve_provisioner(provisioner_file::provisioner()),
    },
    Plugin {
        name: provisioner_local_exec::NAME,
        kind: Kind::Provisioner,
        version: Some(provider_terraform::VERSION),
        earlier: &[],
        serve: || monoform_sdk_server::serve_provisioner(provisioner_local_exec::provisioner()),
    },
    Plugin {
        name: provisioner_remote_exec::NAME,
        kind: Kind::Provisioner,
        version: Some(provider_terraform::VERSION),
        earlier: &[],
        serve: || monoform_sdk_server::serve_provisioner(provisioner_remote_exec::provisioner()),
    },
    Plugin {
        name: state_azurerm::NAME,
        kind: Kind::StateStore,
        version: Some(provider_terraform::VERSION),
        earlier: &[],
        serve: || monoform_sdk_server::serve_state_store(state_azurerm::NAME, state_azurerm::store()),
    },
    Plugin {
        name: state_remote::CLOUD,
        kind: Kind::StateStore,
        version: Some(provider_terraform::VERSION),
        earlier: &[],
        serve: || {
            monoform_sdk_server::serve_state_store(
                state_remote::CLOUD,
                state_remote::cloud(provider_terraform::VERSION, environment()),
            )
        },
    },
    Plugin {
        name: state_consul::NAME,
        kind: Kind::StateStore,
        version: Some(provider_terraform::VERSION),
        earlier: &[],
        serve: || monoform_sdk_server::serve_state_store(state_consul::NAME, state_consul::store()),
    },
    Plugin {
        name: state_cos::NAME,
        kind: Kind::StateStore,
        version: Some(provider_terraform::VERSION),
        earlier: &[],
        serve: || monoform_sdk_server::serve_state_store(state_cos::NAME, state_cos::store()),
    },
    Plugin {
        name: state_gcs::NAME,
        kind: Kind::StateStore,
        version: Some(provider_terraform::VERSION),
        earlier: &[],
        serve: || monoform_sdk_server::serve_state_store(state_gcs::NAME, state_gcs::store()),
    },
    Plugin {
        name: state_http::NAME,
        kind: Kind::StateStore,
        version: Some(provider_terraform::VERSION),
        earlier: &[],
        serve: || monoform_sdk_server::serve_state_store(state_http::NAME, state_http::store()),
    },
    Plugin {
        name: state_inmem::NAME,
        kind: Kind::StateStore,
        version: Some(provider_terraform::VERSION),
        earlier: &[],
        serve: || monoform_sdk_server::serve_state_store(state_inmem::NAME, state_inmem::store()),
    },
    Plugin {
        name: state_kubernetes::NAME,
        kind: Kind::StateStore,
        version: Some(provider_terraform::VERSION),
        earlier: &[],
        serve: || monoform_sdk_server::serve_state_store(state_kubernetes::NAME, state_kubernetes::store()),
    },
    Plugin {
        name: state_oci::NAME,
        kind: Kind::StateStore,
        version: Some(provider_terraform::VERSION),
        earlier: &[],
        serve: || monoform_sdk_server::serve_state_store(state_oci::NAME, state_oci::store()),
    },
    Plugin {
        name: state_oss::NAME,
        kind: Kind::StateStore,
        version: Some(provider_terraform::VERSION),
        earlier: &[],
        serve: || monoform_sdk_server::serve_state_store(state_oss::NAME, state_oss::store()),
    },
    Plugin {
        name: state_pg::NAME,
        kind: Kind::StateStore,
        version: Some(provider_terraform::VERSION),
        earlier: &[],
        serve: || monoform_sdk_server::serve_state_store(state_pg::NAME, state_pg::store()),
    },
    Plugin {
        name: state_remote::REMOTE,
        kind: Kind::StateStore,
        version: Some(provider_terraform::VERSION),
        earlier: &[],
        serve: || {
            monoform_sdk_server::serve_state_store(
                state_remote::REMOTE,
                state_remote::remote(provider_terraform::VERSION, environment()),
            )
        },
    },
    Plugin {
        name: state_s3::NAME,
        kind: Kind::StateStore,
        version: Some(provider_terraform::VERSION),
        earlier: &[],
        serve: || monoform_sdk_server::serve_state_store(state_s3::NAME, state_s3::store()),
    },
];

/// The plugin of this name, if there is one of this sort.
pub fn find(name: &str, sort: Sort) -> Option<&'static Plugin> {
    PLUGINS.iter().find(|p| p.name == name && p.kind.sort() == sort)
}

/// The plugin that an executable's name asks for: `terraform-provider-NAME[_vX.Y.Z][_xN]`, `terraform-provisioner-NAME`.
pub fn named_by_executable(executable: &str) -> Option<&'static Plugin> {
    let (rest, sort) = if let Some(rest) = executable.strip_prefix("terraform-provider-") {
        (rest, Sort::Provider)
    } else {
        (executable.strip_prefix("terraform-provisioner-")?, Sort::Provisioner)
    };
    let name = rest.split("_v").next().unwrap_or(rest);
    let name = name.split("_x").next().unwrap_or(name);
    find(name, sort)
}

/// The path of this executable. Where the operating system does not say (on Linux without `/proc`), it is what the program
/// was called by, found as a shell would.
#[expect(clippy::disallowed_methods, reason = "a program without a path is found by PATH")]
pub fn own_executable() -> PathBuf {
    if let Ok(path) = std::env::current_exe() {
        return path;
    }
    let called_as = PathBuf::from(std::env::args_os().next().unwrap_or_default());
    if called_as.components().count() > 1 {
        return std::path::absolute(&called_as).unwrap_or(called_as);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|dir| dir.join(&called_as))
        .find(|p| p.is_file())
        .unwrap_or(called_as)
}

fn schema_changes(provider: &str) -> Vec<SchemaChange> {
    let own = SCHEMA_CHANGES.iter().filter(|(name, ..)| *name == provider);
    own.filter_map(|(_, resource, since, version)| {
        Some(SchemaChange {
            resource: (*resource).to_owned(),
            since: Version::parse(since).ok()?,
            version: *version,
        })
    })
    .collect()
}

/// The table as the host of plugins wants it.
pub fn table() -> Builtins {
    let providers = PLUGINS
        .iter()
        .filter(|p| p.kind.sort() == Sort::Provider)
        .map(|p| BuiltinProvider {
            address: match p.kind {
                Kind::LanguageProvider => addrs::Provider::builtin(p.name),
                _ => addrs::Provider::default_for(p.name),
            },
            name: p.name.to_owned(),
            version: match p.kind {
                Kind::Provider => p.version.and_then(|v| Version::parse(v).ok()),
                Kind::LanguageProvider | Kind::Provisioner | Kind::StateStore => None,
            },
            earlier: p.earlier.iter().filter_map(|v| Version::parse(v).ok()).collect(),
            schema_changes: schema_changes(p.name),
            protocols: p.protocols().to_vec(),
        });
    let executable = own_executable();
    Builtins {
        // The command line looks for it when it knows its environment.
        carried: Carried::Nothing,
        executable,
        providers: providers.collect(),
        provisioners: PLUGINS
            .iter()
            .filter(|p| p.kind == Kind::Provisioner)
            .map(|p| p.name.to_owned())
            .collect(),
        state_stores: PLUGINS
            .iter()
            .filter(|p| p.kind == Kind::StateStore)
            .map(|p| p.name.to_owned())
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_store_can_be_read_by_remote_state() {
        let plugins = PLUGINS.iter().filter(|p| p.kind == Kind::StateStore);
        let names: Vec<&str> = plugins.map(|p| p.name).collect();
        assert_eq!(names, STORES.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    }

    #[test]
    fn executables_are_known_by_every_form_of_their_name() {
        for name in [
            "terraform-provider-null",
            "terraform-provider-null_v3.2.1",
            "terraform-provider-null_v3.2.1_x5",
        ] {
            assert_eq!(named_by_executable(name).map(|p| p.name), Some("null"), "{name}");
        }
        assert_eq!(
            named_by_executable("terraform-provisioner-local-exec").map(|p| p.name),
            Some("local-exec")
        );
        for name in [
            "terraform",
            "terraform-provider-",
            "terraform-provider-local-exec",
            "terraform-provisioner-null",
        ] {
            assert!(named_by_executable(name).is_none(), "{name}");
        }
    }

    #[test]
    fn every_version_in_the_table_is_one() {
        for plugin in PLUGINS {
            for version in plugin.version.iter().chain(plugin.earlier) {
                assert!(Version::parse(version).is_ok(), "{} {version}", plugin.name);
            }
        }
    }

    #[test]
    fn schema_changes_are_of_releases_in_the_table_and_rise() {
        let mut before = ("", 0);
        for (provider, resource, since, version) in SCHEMA_CHANGES {
            let plugin = find(provider, Sort::Provider).unwrap();
            assert!(
                plugin.version.iter().chain(plugin.earlier).any(|v| v == since),
                "{provider} {since}"
            );
            assert!(before.0 != *resource || before.1 < *version, "{resource} {version}");
            before = (resource, *version);
        }
        let random = table().providers.into_iter().find(|p| p.name == "random").unwrap();
        let types = |release: &str| random.unreadable_by(&Version::parse(release).unwrap()).join(" ");
        assert_eq!(types("3.1.0"), "random_password random_string");
        assert_eq!(types("3.4.2"), "random_password");
        assert_eq!(types("3.4.3"), "");
    }
}
