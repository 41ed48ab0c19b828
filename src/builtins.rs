//! Table of built-in plugins, from which dispatch, listing, links and the plugin host take their data.

use std::path::PathBuf;
use std::process::ExitCode;

use monoform_sdk::AnyStateStore;
use packages::builtin::{BuiltinProvider, Builtins, SchemaChange};
use packages::packed::Carried;
use versions::Version;

pub struct Plugin {
    pub name: &'static str,
    pub kind: Kind,
    /// Version of the official plugin that this one implements, or, for a part of Terraform, the version of Terraform. Configurations can
    /// require a version of a provider only.
    pub version: Option<&'static str>,
    /// Earlier released versions that it implements, too.
    pub earlier: &'static [&'static str],
    /// Serves the plugin until the caller ends it.
    pub serve: fn() -> ExitCode,
}

/// Official releases that raised the schema version of a resource type: provider, type, release, schema version. Releases before
/// the first one have version 0. An earlier release refuses a state with a later version than its own.
const SCHEMA_CHANGES: &[(&str, &str, &str, u64)] = &[
    ("random", "random_password", "3.2.0", 1),
    ("random", "random_password", "3.3.0", 2),
    ("random", "random_password", "3.4.3", 3),
    ("random", "random_string", "3.0.0", 1),
    ("random", "random_string", "3.3.0", 2),
    ("tls", "tls_private_key", "4.0.0", 1),
];

/// Kind of a plugin in the table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Provider of the public registry's `hashicorp` namespace.
    Provider,
    /// Provider that is part of Terraform: `terraform.io/builtin/NAME`.
    LanguageProvider,
    Provisioner,
    /// State store, which configurations call a backend.
    StateStore,
}

/// Kind of a plugin, as the arguments of `internal-plugin` name it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    Provider,
    Provisioner,
    StateStore,
}

impl Kind {
    pub fn sort(self) -> Sort {
        match self {
            Kind::Provider | Kind::LanguageProvider => Sort::Provider,
            Kind::Provisioner => Sort::Provisioner,
            Kind::StateStore => Sort::StateStore,
        }
    }
}

impl Plugin {
    /// Returns the protocol versions that the plugin is served with.
    pub fn protocols(&self) -> &'static [u32] {
        match self.kind {
            Kind::Provider | Kind::LanguageProvider => &[5, 6],
            // Protocol 6 has no provisioners, and protocol 5 no state stores.
            Kind::Provisioner => &[5],
            Kind::StateStore => &[6],
        }
    }
}

/// Returns the environment of this process, for state stores that use the tokens of the CLI configuration.
#[expect(
    clippy::disallowed_methods,
    reason = "the names of variables with tokens depend on the host, so all are read"
)]
fn environment() -> state_remote::Environment {
    state_remote::Environment::read(std::env::vars_os())
}

/// State stores for `terraform_remote_state`, which reads states in the provider's own process.
const STORES: provider_terraform::Stores = &[
    #[cfg(feature = "cloud-stores")]
    (state_azurerm::NAME, || AnyStateStore::new(state_azurerm::store())),
    (state_remote::CLOUD, || {
        AnyStateStore::new(state_remote::cloud(provider_terraform::VERSION, environment()))
    }),
    (state_consul::NAME, || AnyStateStore::new(state_consul::store())),
    #[cfg(feature = "cloud-stores")]
    (state_cos::NAME, || AnyStateStore::new(state_cos::store())),
    #[cfg(feature = "cloud-stores")]
    (state_gcs::NAME, || AnyStateStore::new(state_gcs::store())),
    (state_http::NAME, || AnyStateStore::new(state_http::store())),
    (state_inmem::NAME, || AnyStateStore::new(state_inmem::store())),
    #[cfg(feature = "cloud-stores")]
    (state_kubernetes::NAME, || AnyStateStore::new(state_kubernetes::store())),
    #[cfg(feature = "cloud-stores")]
    (state_oci::NAME, || AnyStateStore::new(state_oci::store())),
    #[cfg(feature = "cloud-stores")]
    (state_oss::NAME, || AnyStateStore::new(state_oss::store())),
    (state_pg::NAME, || AnyStateStore::new(state_pg::store())),
    (state_remote::REMOTE, || {
        AnyStateStore::new(state_remote::remote(provider_terraform::VERSION, environment()))
    }),
    #[cfg(feature = "cloud-stores")]
    (state_s3::NAME, || AnyStateStore::new(state_s3::store())),
];

/// Names of the built-in key providers (key services of clouds), for the encryption of states and saved plans.
#[cfg(feature = "cloud-stores")]
pub const KEY_PROVIDERS: &[&str] = key_providers::NAMES;
#[cfg(not(feature = "cloud-stores"))]
pub const KEY_PROVIDERS: &[&str] = &[];

/// Serves one request for an encryption key; `None` if this build has no key provider of this name.
pub fn serve_keys(name: &str) -> Option<ExitCode> {
    #[cfg(feature = "cloud-stores")]
    if KEY_PROVIDERS.contains(&name) {
        return Some(key_providers::serve(name));
    }
    let _ = name;
    None
}

/// Plugins that this build leaves out: the name, and the Cargo feature that adds it.
const LEFT_OUT: &[(&str, &str)] = &[
    #[cfg(not(feature = "ssh"))]
    ("file", "ssh"),
    #[cfg(not(feature = "ssh"))]
    ("remote-exec", "ssh"),
    #[cfg(not(feature = "cloud-stores"))]
    ("azurerm", "cloud-stores"),
    #[cfg(not(feature = "cloud-stores"))]
    ("cos", "cloud-stores"),
    #[cfg(not(feature = "cloud-stores"))]
    ("gcs", "cloud-stores"),
    #[cfg(not(feature = "cloud-stores"))]
    ("kubernetes", "cloud-stores"),
    #[cfg(not(feature = "cloud-stores"))]
    ("oci", "cloud-stores"),
    #[cfg(not(feature = "cloud-stores"))]
    ("oss", "cloud-stores"),
    #[cfg(not(feature = "cloud-stores"))]
    ("s3", "cloud-stores"),
    #[cfg(not(feature = "cloud-stores"))]
    ("aws_kms", "cloud-stores"),
    #[cfg(not(feature = "cloud-stores"))]
    ("azure_vault", "cloud-stores"),
    #[cfg(not(feature = "cloud-stores"))]
    ("gcp_kms", "cloud-stores"),
];

/// Builds the entry of a provider in the public registry's `hashicorp` namespace.
const fn provider(
    name: &'static str,
    version: &'static str,
    earlier: &'static [&'static str],
    serve: fn() -> ExitCode,
) -> Plugin {
    Plugin {
        name,
        kind: Kind::Provider,
        version: Some(version),
        earlier,
        serve,
    }
}

/// Builds the entry of a plugin that is a part of Terraform, and implements a version of Terraform itself.
const fn part_of_terraform(kind: Kind, name: &'static str, serve: fn() -> ExitCode) -> Plugin {
    Plugin {
        name,
        kind,
        version: Some(provider_terraform::VERSION),
        earlier: &[],
        serve,
    }
}

/// Every built-in plugin.
pub const PLUGINS: &[Plugin] = &[
    provider(
        provider_archive::NAME,
        provider_archive::VERSION,
        provider_archive::RELEASED,
        || monoform_sdk_server::serve_provider(provider_archive::provider()),
    ),
    provider(
        provider_cloudinit::NAME,
        provider_cloudinit::VERSION,
        provider_cloudinit::RELEASED,
        || monoform_sdk_server::serve_provider(provider_cloudinit::provider()),
    ),
    provider(
        provider_dns::NAME,
        provider_dns::VERSION,
        provider_dns::RELEASED,
        || monoform_sdk_server::serve_provider(provider_dns::provider()),
    ),
    provider(
        provider_external::NAME,
        provider_external::VERSION,
        provider_external::RELEASED,
        || monoform_sdk_server::serve_provider(provider_external::provider()),
    ),
    provider(
        provider_http::NAME,
        provider_http::VERSION,
        provider_http::RELEASED,
        || monoform_sdk_server::serve_provider(provider_http::provider()),
    ),
    provider(
        provider_local::NAME,
        provider_local::VERSION,
        provider_local::RELEASED,
        || monoform_sdk_server::serve_provider(provider_local::provider()),
    ),
    provider(
        provider_null::NAME,
        provider_null::VERSION,
        provider_null::RELEASED,
        || monoform_sdk_server::serve_provider(provider_null::provider()),
    ),
    provider(
        provider_random::NAME,
        provider_random::VERSION,
        provider_random::RELEASED,
        || monoform_sdk_server::serve_provider(provider_random::provider()),
    ),
    provider(
        provider_template::NAME,
        provider_template::VERSION,
        provider_template::RELEASED,
        || monoform_sdk_server::serve_provider(provider_template::provider()),
    ),
    part_of_terraform(Kind::LanguageProvider, provider_terraform::NAME, || {
        monoform_sdk_server::serve_provider(provider_terraform::with_stores(STORES))
    }),
    provider(
        provider_time::NAME,
        provider_time::VERSION,
        provider_time::RELEASED,
        || monoform_sdk_server::serve_provider(provider_time::provider()),
    ),
    provider(
        provider_tls::NAME,
        provider_tls::VERSION,
        provider_tls::RELEASED,
        || monoform_sdk_server::serve_provider(provider_tls::provider()),
    ),
    #[cfg(feature = "ssh")]
    part_of_terraform(Kind::Provisioner, provisioner_file::NAME, || {
        monoform_sdk_server::serve_provisioner(provisioner_file::provisioner())
    }),
    part_of_terraform(Kind::Provisioner, provisioner_local_exec::NAME, || {
        monoform_sdk_server::serve_provisioner(provisioner_local_exec::provisioner())
    }),
    #[cfg(feature = "ssh")]
    part_of_terraform(Kind::Provisioner, provisioner_remote_exec::NAME, || {
        monoform_sdk_server::serve_provisioner(provisioner_remote_exec::provisioner())
    }),
    #[cfg(feature = "cloud-stores")]
    part_of_terraform(Kind::StateStore, state_azurerm::NAME, || {
        monoform_sdk_server::serve_state_store(state_azurerm::NAME, state_azurerm::store())
    }),
    part_of_terraform(Kind::StateStore, state_remote::CLOUD, || {
        let store = state_remote::cloud(provider_terraform::VERSION, environment());
        monoform_sdk_server::serve_state_store(state_remote::CLOUD, store)
    }),
    part_of_terraform(Kind::StateStore, state_consul::NAME, || {
        monoform_sdk_server::serve_state_store(state_consul::NAME, state_consul::store())
    }),
    #[cfg(feature = "cloud-stores")]
    part_of_terraform(Kind::StateStore, state_cos::NAME, || {
        monoform_sdk_server::serve_state_store(state_cos::NAME, state_cos::store())
    }),
    #[cfg(feature = "cloud-stores")]
    part_of_terraform(Kind::StateStore, state_gcs::NAME, || {
        monoform_sdk_server::serve_state_store(state_gcs::NAME, state_gcs::store())
    }),
    part_of_terraform(Kind::StateStore, state_http::NAME, || {
        monoform_sdk_server::serve_state_store(state_http::NAME, state_http::store())
    }),
    part_of_terraform(Kind::StateStore, state_inmem::NAME, || {
        monoform_sdk_server::serve_state_store(state_inmem::NAME, state_inmem::store())
    }),
    #[cfg(feature = "cloud-stores")]
    part_of_terraform(Kind::StateStore, state_kubernetes::NAME, || {
        monoform_sdk_server::serve_state_store(state_kubernetes::NAME, state_kubernetes::store())
    }),
    #[cfg(feature = "cloud-stores")]
    part_of_terraform(Kind::StateStore, state_oci::NAME, || {
        monoform_sdk_server::serve_state_store(state_oci::NAME, state_oci::store())
    }),
    #[cfg(feature = "cloud-stores")]
    part_of_terraform(Kind::StateStore, state_oss::NAME, || {
        monoform_sdk_server::serve_state_store(state_oss::NAME, state_oss::store())
    }),
    part_of_terraform(Kind::StateStore, state_pg::NAME, || {
        monoform_sdk_server::serve_state_store(state_pg::NAME, state_pg::store())
    }),
    part_of_terraform(Kind::StateStore, state_remote::REMOTE, || {
        let store = state_remote::remote(provider_terraform::VERSION, environment());
        monoform_sdk_server::serve_state_store(state_remote::REMOTE, store)
    }),
    #[cfg(feature = "cloud-stores")]
    part_of_terraform(Kind::StateStore, state_s3::NAME, || {
        monoform_sdk_server::serve_state_store(state_s3::NAME, state_s3::store())
    }),
];

pub fn find(name: &str, sort: Sort) -> Option<&'static Plugin> {
    PLUGINS.iter().find(|p| p.name == name && p.kind.sort() == sort)
}

/// Returns the plugin that the name of an executable selects: `terraform-provider-NAME[_vX.Y.Z][_xN]` or `terraform-provisioner-NAME`.
/// `None` if the name has another form, or no built-in plugin has this NAME.
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

/// Returns the path of this executable. If the operating system does not give it (on Linux without `/proc`), the name by which
/// the program was called is searched as a shell would.
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

/// Returns the table in the form that the plugin host uses.
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
                // Parts of Terraform have no versions that configurations could choose from.
                Kind::LanguageProvider | Kind::Provisioner | Kind::StateStore => None,
            },
            earlier: p.earlier.iter().filter_map(|v| Version::parse(v).ok()).collect(),
            schema_changes: schema_changes(p.name),
            protocols: p.protocols().to_vec(),
        });
    let executable = own_executable();
    Builtins {
        left_out: LEFT_OUT.to_vec(),
        // The command line searches for a pack once it knows its environment.
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
