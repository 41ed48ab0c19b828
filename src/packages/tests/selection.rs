//! Tests of provider selection, and of the files that an installation writes.
#![cfg(unix)]
// Helpers of tests may panic, as tests do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use addrs::Provider;
use addrs::platform::Platform;
use files::Environment;
use packages::builtin::{BuiltinProvider, Builtins, SchemaChange};
use packages::cli_config::CliConfig;
use packages::install::InstallOptions;
use packages::selection::Selection;
use packages::{Catalog, Settings};
use syntax::Diagnostics;
use tempfile::TempDir;
use versions::{Constraints, Version};

/// A machine with a home directory, a working directory, and an executable that has the built-in null provider.
struct Machine {
    dir: TempDir,
    environment: BTreeMap<String, String>,
    reattached: BTreeSet<Provider>,
}

impl Machine {
    fn new() -> Machine {
        let dir = tempfile::tempdir().unwrap();
        for name in ["home", "work", "bin"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        std::fs::write(dir.path().join("bin/monoform"), "us").unwrap();
        let mut environment = BTreeMap::new();
        environment.insert("HOME".to_owned(), dir.path().join("home").display().to_string());
        environment.insert(
            "XDG_DATA_DIRS".to_owned(),
            dir.path().join("share").display().to_string(),
        );
        Machine {
            dir,
            environment,
            reattached: BTreeSet::new(),
        }
    }

    /// Returns a machine that runs plugins in the working directory without a record.
    fn trusting() -> Machine {
        let mut machine = Machine::new();
        machine
            .environment
            .insert("MONOFORM_LOCAL_PLUGINS".to_owned(), "1".to_owned());
        machine
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir
            .path()
            .join(path.replace("OS_ARCH", &Platform::current().to_string()))
    }

    fn file(&self, path: &str) -> PathBuf {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, path.file_name().unwrap().as_encoded_bytes()).unwrap();
        path
    }

    fn write(&self, path: &str, text: &str) {
        std::fs::write(self.path(path), text).unwrap();
    }

    fn read(&self, path: &str) -> String {
        std::fs::read_to_string(self.path(path)).unwrap()
    }

    fn catalog(&self) -> Catalog {
        let v = |text| Version::parse(text).unwrap();
        let builtins = Builtins {
            executable: self.path("bin/monoform"),
            state_stores: Vec::new(),
            left_out: vec![("remote-exec", "ssh")],
            carried: packages::packed::Carried::Nothing,
            providers: vec![
                BuiltinProvider {
                    address: Provider::default_for("null"),
                    name: "null".into(),
                    version: Some(v("3.2.3")),
                    earlier: vec![v("3.0.0"), v("3.2.0"), v("3.2.2")],
                    schema_changes: vec![SchemaChange {
                        resource: "null_thing".into(),
                        since: v("3.2.1"),
                        version: 1,
                    }],
                    protocols: vec![5, 6],
                },
                BuiltinProvider {
                    address: Provider::builtin("terraform"),
                    name: "terraform".into(),
                    version: None,
                    earlier: vec![],
                    schema_changes: vec![],
                    protocols: vec![6],
                },
            ],
            provisioners: vec!["local-exec".into(), "file".into()],
        };
        let environment = Environment::from(self.environment.clone());
        let (config, diagnostics) = CliConfig::load(&environment);
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        let settings = Settings::new(builtins, environment, config, self.path("work"));
        Catalog::new(settings, self.reattached.clone())
    }

    fn resolve(&self, provider: &str, constraints: &str) -> Result<(Selection, Diagnostics), Diagnostics> {
        let address = Provider::parse(provider).unwrap();
        let mut selections = self.catalog().resolve(&requirement(provider, constraints))?;
        Ok((selections.providers.remove(&address).unwrap(), selections.warnings))
    }
}

fn requirement(provider: &str, constraints: &str) -> BTreeMap<Provider, Constraints> {
    let constraints = if constraints.is_empty() {
        Constraints::any()
    } else {
        Constraints::parse(constraints).unwrap()
    };
    [(Provider::parse(provider).unwrap(), constraints)].into()
}

fn executable(selection: &Selection) -> &Path {
    match selection {
        Selection::External(found) | Selection::Installed(found) => &found.executable,
        Selection::DevOverride(path) => path,
        other => panic!("{other:?}"),
    }
}

/// Returns the version that a built-in is used in place of.
fn in_place_of(selection: &Selection) -> Option<String> {
    match selection {
        Selection::Builtin { in_place_of, .. } => in_place_of.as_ref().map(ToString::to_string),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_builtin_is_used_in_place_of_earlier_versions_and_says_so() {
    let machine = Machine::new();
    for (constraints, expected) in [
        ("", None),
        ("~> 3.2.1", None),
        (">= 3.0", None),
        ("3.2.0", Some("3.2.0")),
        ("< 3.2.3", Some("3.2.2")),
    ] {
        let (selection, warnings) = machine.resolve("null", constraints).unwrap();
        assert_eq!(
            selection.version().unwrap().to_string(),
            "3.2.3",
            "its own, whatever is required"
        );
        assert_eq!(in_place_of(&selection).as_deref(), expected, "{constraints}");
        assert_eq!(
            warnings.len(),
            usize::from(expected.is_some()),
            "{constraints}: {warnings:?}"
        );
    }
    let (_, warnings) = machine.resolve("null", "3.2.0").unwrap();
    let text = &warnings.0[0].detail;
    for part in [
        "hashicorp/null 3.2.3, built in, in place of 3.2.0",
        "records for null_thing are newer than hashicorp/null 3.2.0 accepts",
        "MONOFORM_EXACT_INTERNAL_PLUGINS=null",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let (_, warnings) = machine.resolve("null", "3.2.2").unwrap();
    assert!(!warnings.0[0].detail.contains("null_thing"), "{warnings:?}");
    for constraints in ["~> 2.1", ">= 4.0.0", "3.1.7"] {
        let errors = machine.resolve("null", constraints).unwrap_err();
        assert!(
            errors.0[0].detail.contains("The built-in provider is version 3.2.3"),
            "{errors:?}"
        );
        assert!(errors.0[0].detail.contains(constraints), "{errors:?}");
    }
}

fn null_lock(version: &str) -> String {
    format!("provider \"registry.terraform.io/hashicorp/null\" {{\n  version = \"{version}\"\n}}\n")
}

#[test]
fn an_installed_locked_version_comes_before_the_builtin_of_another_version() {
    let machine = Machine::new();
    machine.write("work/.terraform.lock.hcl", &null_lock("3.2.4"));
    let (selection, warnings) = machine.resolve("null", "").unwrap();
    assert_eq!(in_place_of(&selection).as_deref(), Some("3.2.4"));
    assert!(
        warnings.0[0]
            .detail
            .contains("in place of 3.2.4 of the dependency lock file"),
        "{warnings:?}"
    );
    let dir = "work/.terraform/providers/registry.terraform.io/hashicorp/null/3.2.4/OS_ARCH";
    let file = machine.file(&format!("{dir}/terraform-provider-null_v3.2.4"));
    for constraints in ["", "~> 3.0", "3.2.4"] {
        let (selection, warnings) = machine.resolve("null", constraints).unwrap();
        assert_eq!(executable(&selection), file, "{constraints}");
        assert!(warnings.is_empty(), "{warnings:?}");
    }
    // An upgrade selects the built-in provider, and the installed one is not selected again.
    let upgrade = InstallOptions {
        upgrade: true,
        ..InstallOptions::default()
    };
    let done = machine
        .catalog()
        .install(&requirement("null", ""), upgrade, &mut |_| {})
        .unwrap();
    assert_eq!(
        in_place_of(&done.providers[&Provider::default_for("null")].selection),
        None
    );
    assert!(matches!(
        machine.resolve("null", "").unwrap().0,
        Selection::Builtin { .. }
    ));
    // A link to this executable counts as the built-in provider.
    std::fs::create_dir_all(machine.path(dir)).unwrap();
    std::os::unix::fs::symlink(machine.path("bin/monoform"), &file).unwrap();
    assert!(matches!(
        machine.resolve("null", "").unwrap().0,
        Selection::Builtin { .. }
    ));
    // A locked version that the built-in provider implements is not reported as replaced.
    machine.write("work/.terraform.lock.hcl", &null_lock("3.2.3"));
    let (selection, warnings) = machine.resolve("null", "").unwrap();
    assert!(in_place_of(&selection).is_none() && warnings.is_empty());
}

#[test]
fn exact_builtins_are_used_for_their_own_version_only() {
    let mut machine = Machine::new();
    for names in ["null", "*", "random, null"] {
        machine
            .environment
            .insert("MONOFORM_EXACT_INTERNAL_PLUGINS".into(), names.into());
        assert!(matches!(
            machine.resolve("null", "~> 3.2").unwrap().0,
            Selection::Builtin { .. }
        ));
        let errors = machine.resolve("null", "3.2.0").unwrap_err();
        assert!(errors.0[0].detail.contains("exact_internal_plugins"), "{errors:?}");
    }
    machine.environment.remove("MONOFORM_EXACT_INTERNAL_PLUGINS");
    machine.write("rc", "exact_internal_plugins = [\"null\"]");
    machine
        .environment
        .insert("TF_CLI_CONFIG_FILE".into(), machine.path("rc").display().to_string());
    assert!(machine.resolve("null", "3.2.0").is_err());
    machine.write("rc", "disable_internal_plugins = [\"*\"]");
    let errors = machine.resolve("null", "").unwrap_err();
    assert!(errors.0[0].detail.contains("switched off"), "{errors:?}");
}

#[test]
fn constraints_on_a_part_of_the_language_are_refused_by_installation_only() {
    let machine = Machine::new();
    let terraform = "terraform.io/builtin/terraform";
    for constraints in ["", "1.0.0", "~> 99.0"] {
        let (selection, _) = machine.resolve(terraform, constraints).unwrap();
        assert!(matches!(selection, Selection::Builtin { version: None, .. }));
    }
    let install = |constraints| {
        let required = requirement(terraform, constraints);
        machine
            .catalog()
            .install(&required, InstallOptions::default(), &mut |_| {})
    };
    assert!(install("").is_ok());
    assert_eq!(
        install("1.0.0").unwrap_err().0[0].summary,
        "Invalid dependency on built-in provider"
    );
    assert!(machine.resolve("terraform.io/builtin/other", "").is_err());
}

#[test]
fn a_newer_version_for_another_platform_is_no_reason_to_choose_an_older_one() {
    let machine = Machine::new();
    let base = "home/.terraform.d/plugins/example.com/acme/anvil";
    machine.file(&format!("{base}/1.1.0/OS_ARCH/terraform-provider-anvil"));
    machine.file(&format!("{base}/1.2.0/plan9_mips/terraform-provider-anvil"));
    let address = "example.com/acme/anvil";
    let install = |constraints| {
        let required = requirement(address, constraints);
        machine
            .catalog()
            .install(&required, InstallOptions::default(), &mut |_| {})
    };
    for errors in [machine.resolve(address, "").unwrap_err(), install("").unwrap_err()] {
        assert_eq!(errors.0[0].summary, "Incompatible provider version");
        let text = &errors.0[0].detail;
        assert!(
            text.contains("v1.2.0") && text.contains("plan9_mips") && text.contains("\"1.1.0\""),
            "{text}"
        );
    }
    assert!(machine.resolve(address, "< 1.2.0").is_ok());
    assert!(install("1.1.0").is_ok());
    // The lock file decides.
    assert_eq!(
        machine.resolve(address, "").unwrap().0.version().unwrap().to_string(),
        "1.1.0"
    );
}

#[test]
fn near_names_and_namespaces_are_suggested() {
    let machine = Machine::new();
    machine.file("home/.terraform.d/plugins/example.com/acme/anvil/1.1.0/OS_ARCH/terraform-provider-anvil");
    for (wrong, right) in [
        ("hashicorp/nul", "hashicorp/null"),
        ("acme/null", "hashicorp/null"),
        ("example.com/acme/anvill", "example.com/acme/anvil"),
        ("anvil", "example.com/acme/anvil"),
    ] {
        let errors = machine.resolve(wrong, "").unwrap_err();
        let hint = format!("Did you mean {right}?");
        assert!(errors.0[0].detail.contains(&hint), "{}", errors.0[0].detail);
    }
    let missing = machine.catalog().check_provisioners(["local-exc"]);
    assert!(
        missing.0[0].detail.contains("Did you mean \"local-exec\"?"),
        "{missing:?}"
    );
}

#[test]
fn executables_that_a_person_installed_come_first_with_a_warning() {
    for place in [
        "work/terraform-provider-null_v3.2.9",
        "bin/terraform-provider-null_v3.2.9_x5",
        "work/terraform.d/plugins/terraform-provider-null_v3.2.9",
        "work/terraform.d/plugins/OS_ARCH/terraform-provider-null_v3.2.9",
        "work/.terraform/plugins/OS_ARCH/terraform-provider-null_v3.2.9",
        "home/.terraform.d/plugins/terraform-provider-null_v3.2.9",
        "home/.terraform.d/plugins/OS_ARCH/terraform-provider-null_v3.2.9",
        "home/.terraform.d/plugins/registry.terraform.io/hashicorp/null/3.2.9/OS_ARCH/terraform-provider-null",
        "home/.local/share/terraform/plugins/registry.terraform.io/hashicorp/null/3.2.9/OS_ARCH/terraform-provider-null_v3",
        "share/terraform/plugins/registry.terraform.io/hashicorp/null/3.2.9/OS_ARCH/terraform-provider-null.x",
    ] {
        let machine = Machine::trusting();
        let file = machine.file(place);
        let (selection, warnings) = machine.resolve("null", "~> 3.0").unwrap();
        assert_eq!(executable(&selection), file, "{place}");
        assert_eq!(selection.version().unwrap().to_string(), "3.2.9");
        let text = format!("{} overrides an internal plugin for null-provider.", file.display());
        assert!(warnings.0[0].detail.starts_with(&text), "{warnings:?}");
        // An executable that does not meet the constraints is not used.
        let (selection, warnings) = machine.resolve("null", "3.2.2").unwrap();
        assert_eq!(in_place_of(&selection).as_deref(), Some("3.2.2"));
        assert_eq!(warnings.0[0].summary, "Built-in provider version differs");
    }
}

#[test]
fn the_newest_version_counts_and_of_equal_ones_the_first() {
    let machine = Machine::trusting();
    machine.file("home/.terraform.d/plugins/terraform-provider-acme_v1.0.0");
    let first = machine.file("work/terraform.d/plugins/terraform-provider-acme_v1.10.0");
    machine.file("home/.terraform.d/plugins/terraform-provider-acme_v1.10.0");
    machine.file("home/.terraform.d/plugins/terraform-provider-acme_v1.9.0");
    machine.file("home/.terraform.d/plugins/terraform-provider-acme_v2.0.0-beta1");
    let (selection, warnings) = machine.resolve("acme", "").unwrap();
    assert_eq!(executable(&selection), first);
    assert!(warnings.is_empty());
    let (selection, _) = machine.resolve("acme", "2.0.0-beta1").unwrap();
    assert_eq!(selection.version().unwrap().to_string(), "2.0.0-beta1");
}

#[test]
fn links_to_this_executable_override_nothing() {
    let machine = Machine::new();
    let link = machine.path("bin/terraform-provider-null_v3.2.9");
    std::os::unix::fs::symlink(machine.path("bin/monoform"), link).unwrap();
    let (selection, warnings) = machine.resolve("null", "").unwrap();
    assert!(matches!(selection, Selection::Builtin { .. }) && warnings.is_empty());
}

#[test]
fn builtins_can_be_switched_off() {
    let mut machine = Machine::new();
    machine
        .environment
        .insert("MONOFORM_DISABLE_INTERNAL_PLUGINS".into(), "random, null".into());
    let errors = machine.resolve("null", "").unwrap_err();
    assert!(errors.0[0].detail.contains("switched off"), "{errors:?}");
    // Providers that are part of the language cannot be switched off.
    machine
        .environment
        .insert("MONOFORM_DISABLE_INTERNAL_PLUGINS".into(), "*".into());
    assert!(machine.resolve("terraform.io/builtin/terraform", "").is_ok());
}

#[test]
fn overrides_beat_everything() {
    let mut machine = Machine::new();
    let file = machine.file("dev/terraform-provider-null");
    machine.file("work/terraform-provider-null_v3.2.9");
    let dev = machine.path("dev").display().to_string();
    machine.write(
        "rc",
        &format!("provider_installation {{\n dev_overrides {{ \"hashicorp/null\" = \"{dev}\" }}\n direct {{}}\n}}"),
    );
    machine
        .environment
        .insert("TF_CLI_CONFIG_FILE".into(), machine.path("rc").display().to_string());
    let (selection, warnings) = machine.resolve("null", "99.0.0").unwrap();
    assert_eq!(executable(&selection), file);
    assert_eq!(warnings.0[0].summary, "Provider development overrides are in effect");
    std::fs::remove_file(file).unwrap();
    assert_eq!(
        machine.resolve("null", "").unwrap_err().0[0].summary,
        "Invalid provider development override"
    );
    machine.reattached.insert(Provider::default_for("null"));
    let (selection, warnings) = machine.resolve("null", "99.0.0").unwrap();
    assert!(matches!(selection, Selection::Reattached) && warnings.is_empty());
}

#[test]
fn explicit_methods_replace_the_usual_directories() {
    let mut machine = Machine::new();
    machine.file("work/terraform-provider-acme_v1.0.0");
    let file = machine.file("mirror/registry.terraform.io/hashicorp/acme/0.5.0/OS_ARCH/terraform-provider-acme_v0.5.0");
    let mirror = machine.path("mirror").display().to_string();
    let rc = format!(
        "provider_installation {{ filesystem_mirror {{\n path = \"{mirror}\"\n exclude = [\"hashicorp/other\"] }} }}"
    );
    machine.write("rc", &rc);
    machine
        .environment
        .insert("TF_CLI_CONFIG_FILE".into(), machine.path("rc").display().to_string());
    assert_eq!(executable(&machine.resolve("acme", "").unwrap().0), file);
    machine.file("mirror/registry.terraform.io/hashicorp/other/0.5.0/OS_ARCH/terraform-provider-other");
    assert!(machine.resolve("other", "").is_err());
}

#[test]
fn the_error_says_what_was_found_and_where() {
    let machine = Machine::trusting();
    let file = machine.file("home/.terraform.d/plugins/terraform-provider-acme_v1.0.0");
    let errors = machine.resolve("acme", ">= 2.0.0").unwrap_err();
    let path = |path: &str| machine.path(path).display().to_string();
    let expected = format!(
        "The provider hashicorp/acme is required in a version that meets \">= 2.0.0\", but it is not available.\n\nRun \
         \"monoform init\" to install it.\n\nThese versions are on this machine, but cannot be used:\n  - 1.0.0 ({})\n\nThese \
         directories were searched:\n  - {}\n  - {}\n  - {} (does not exist)\n  - {}\n  - {} (does not exist)\n  - {} (does not \
         exist)\n\nFor a machine without a network, make an executable that carries it where there is one \
         (\"help air-gapped\"):\n  monoform pack -out=FILE \"-provider=hashicorp/acme@>= 2.0.0\"",
        file.display(),
        path("work"),
        path("bin"),
        path("work/terraform.d/plugins"),
        path("home/.terraform.d/plugins"),
        path("home/.local/share/terraform/plugins"),
        path("share/terraform/plugins"),
    );
    assert_eq!(errors.0[0].detail, expected);
    // A flat file has no namespace, so it is not used for a provider of another one, but the error explains
    // where to put it.
    let errors = machine.resolve("example.com/corp/acme", "").unwrap_err();
    let detail = &errors.0[0].detail;
    let named = format!("The name of {} has no namespace", file.display());
    let place = format!("/example.com/corp/acme/1.0.0/{}\n", Platform::current());
    assert!(detail.contains(&named) && detail.contains(&place), "{detail}");
}

#[test]
fn installation_links_and_locks_what_is_not_built_in() {
    let mut machine = Machine::new();
    let package = "home/.terraform.d/plugins/registry.terraform.io/hashicorp/demo/2.3.1/OS_ARCH";
    machine.file(&format!("{package}/terraform-provider-demo_v2.3.1"));
    machine.write(&format!("{package}/terraform-provider-demo_v2.3.1"), "hello 2.3.1\n");
    let mut requirements = requirement("demo", "~> 2");
    requirements.extend(requirement("null", "~> 3.0"));
    let done = machine
        .catalog()
        .install(&requirements, InstallOptions::default(), &mut |_| {})
        .unwrap();
    assert!(done.lock_created && done.lock_changed);
    assert!(done.providers[&Provider::default_for("demo")].new);
    // The lock file that Terraform 1.11.4 writes for the same package has no entry for the built-in provider.
    let lock = "# This file is maintained automatically by \"terraform init\".\n# Manual edits may be lost in future updates.\n\n\
                provider \"registry.terraform.io/hashicorp/demo\" {\n  version     = \"2.3.1\"\n  constraints = \"~> 2.0\"\n  \
                hashes = [\n    \"h1:HjQrdQkcyU/G2Tnaxf3TWWQQCacIKfjFwpdrCKgLncg=\",\n  ]\n}\n";
    assert_eq!(machine.read("work/.terraform.lock.hcl"), lock);
    let link = machine.path("work/.terraform/providers/registry.terraform.io/hashicorp/demo/2.3.1/OS_ARCH");
    assert_eq!(std::fs::read_link(link).unwrap(), machine.path(package));

    // A second installation changes nothing.
    let done = machine
        .catalog()
        .install(&requirements, InstallOptions::default(), &mut |_| {})
        .unwrap();
    assert!(!done.lock_changed && !done.providers[&Provider::default_for("demo")].new);

    // When a newer version appears, the locked one stays selected until an upgrade.
    machine
        .file("home/.terraform.d/plugins/registry.terraform.io/hashicorp/demo/2.4.0/OS_ARCH/terraform-provider-demo");
    let (selection, _) = machine.resolve("demo", "~> 2").unwrap();
    assert_eq!(selection.version().unwrap().to_string(), "2.3.1");
    let read_only = InstallOptions {
        upgrade: true,
        read_only_lock: true,
        ..InstallOptions::default()
    };
    let errors = machine
        .catalog()
        .install(&requirements, read_only, &mut |_| {})
        .unwrap_err();
    assert_eq!(errors.0[0].summary, "Provider dependency changes detected");
    assert_eq!(machine.read("work/.terraform.lock.hcl"), lock);
    let upgrade = InstallOptions {
        upgrade: true,
        read_only_lock: false,
        ..InstallOptions::default()
    };
    let done = machine.catalog().install(&requirements, upgrade, &mut |_| {}).unwrap();
    let outcome = &done.providers[&Provider::default_for("demo")];
    assert_eq!(outcome.selection.version().unwrap().to_string(), "2.4.0");
    assert_eq!(outcome.locked.as_ref().unwrap().to_string(), "2.3.1");
    assert!(machine.read("work/.terraform.lock.hcl").contains("\"2.4.0\""));

    // A provider that the user runs is not installed, and its lock entry stays.
    machine.reattached.insert(Provider::default_for("demo"));
    let done = machine.catalog().install(&requirements, upgrade, &mut |_| {}).unwrap();
    assert_eq!(done.warnings.0[0].summary, "Unmanaged providers are in effect");
    assert!(machine.read("work/.terraform.lock.hcl").contains("\"2.4.0\""));
}

#[test]
fn the_text_of_constraints_alone_changes_no_lock_file_and_checksums_are_a_warning_where_it_is_read_only() {
    let machine = Machine::new();
    machine
        .file("home/.terraform.d/plugins/registry.terraform.io/hashicorp/demo/2.3.1/OS_ARCH/terraform-provider-demo");
    let install = |constraints: &str, read_only_lock| {
        let options = InstallOptions {
            read_only_lock,
            ..InstallOptions::default()
        };
        machine
            .catalog()
            .install(&requirement("demo", constraints), options, &mut |_| {})
    };
    install("~> 2.0", false).unwrap();
    let lock = machine.read("work/.terraform.lock.hcl");
    for constraints in ["", ">= 2.0", "2.3.1"] {
        for read_only_lock in [true, false] {
            let done = install(constraints, read_only_lock).unwrap();
            assert!(
                !done.lock_changed && done.warnings.is_empty(),
                "{constraints}: {:?}",
                done.warnings
            );
        }
        assert_eq!(machine.read("work/.terraform.lock.hcl"), lock);
    }
    let bare = "provider \"registry.terraform.io/hashicorp/demo\" {\n  version = \"2.3.1\"\n}\n";
    machine.write("work/.terraform.lock.hcl", bare);
    let done = install("", true).unwrap();
    assert_eq!(done.warnings.0[0].summary, "Provider lock file not updated");
    assert_eq!(machine.read("work/.terraform.lock.hcl"), bare);
    assert!(install("", false).unwrap().lock_changed);
    // Removing a provider changes the lock file.
    let read_only = InstallOptions {
        read_only_lock: true,
        ..InstallOptions::default()
    };
    let errors = machine
        .catalog()
        .install(&BTreeMap::new(), read_only, &mut |_| {})
        .unwrap_err();
    assert_eq!(errors.0[0].summary, "Provider dependency changes detected");
}

#[test]
fn locked_and_installed_packages_are_used_without_their_source() {
    let machine = Machine::new();
    let source = machine.file("home/.terraform.d/plugins/terraform-provider-acme_v1.0.0");
    machine
        .catalog()
        .install(&requirement("acme", ""), InstallOptions::default(), &mut |_| {})
        .unwrap();
    let installed = machine.path("work/.terraform/providers/registry.terraform.io/hashicorp/acme/1.0.0/OS_ARCH");
    // As if the package had been copied, and its source removed.
    let file = installed.join("terraform-provider-acme_v1.0.0");
    std::fs::remove_file(&file).unwrap();
    std::fs::rename(source, &file).unwrap();
    let (selection, _) = machine.resolve("acme", "").unwrap();
    assert!(matches!(&selection, Selection::Installed(found) if found.executable == file));
    machine
        .catalog()
        .install(&requirement("acme", ""), InstallOptions::default(), &mut |_| {})
        .unwrap();
    // Without its lock entry the package is not used.
    std::fs::remove_file(machine.path("work/.terraform.lock.hcl")).unwrap();
    assert!(machine.resolve("acme", "").is_err());
}

#[tokio::test]
async fn a_package_that_was_changed_is_not_started() {
    let machine = Machine::new();
    let file = machine.file("home/.terraform.d/plugins/terraform-provider-acme_v1.0.0");
    machine
        .catalog()
        .install(&requirement("acme", ""), InstallOptions::default(), &mut |_| {})
        .unwrap();
    std::fs::write(file, "changed").unwrap();
    let catalog = machine.catalog();
    catalog.resolve(&requirement("acme", "")).unwrap();
    let Err(errors) = catalog.select(&Provider::default_for("acme")).await else {
        panic!("it was selected")
    };
    assert_eq!(errors.0[0].summary, "Provider checksum mismatch");
    let errors = machine
        .catalog()
        .install(&requirement("acme", ""), InstallOptions::default(), &mut |_| {})
        .unwrap_err();
    assert_eq!(errors.0[0].summary, "Provider checksum mismatch");
}

#[test]
fn lock_entries_of_others_stay() {
    let machine = Machine::new();
    let lock = "# This file is maintained automatically by \"terraform init\".\n# Manual edits may be lost in future updates.\n\n\
                provider \"registry.terraform.io/hashicorp/null\" {\n  version = \"3.2.4\"\n  hashes = [\n    \"zh:abc\",\n  ]\n}\n";
    machine.write("work/.terraform.lock.hcl", lock);
    let done = machine
        .catalog()
        .install(&requirement("null", ""), InstallOptions::default(), &mut |_| {})
        .unwrap();
    let outcome = &done.providers[&Provider::default_for("null")];
    assert!(matches!(outcome.selection, Selection::Builtin { .. }));
    // `init` prints this version in its line about the provider.
    assert_eq!(outcome.locked.as_ref().unwrap().to_string(), "3.2.4");
    assert!(!done.lock_changed);
    assert_eq!(machine.read("work/.terraform.lock.hcl"), lock);
    // If there is no provider to install, no lock file is written.
    std::fs::remove_file(machine.path("work/.terraform.lock.hcl")).unwrap();
    machine
        .catalog()
        .install(&requirement("null", ""), InstallOptions::default(), &mut |_| {})
        .unwrap();
    assert!(!machine.path("work/.terraform.lock.hcl").exists() && !machine.path("work/.terraform").exists());
}

#[test]
fn provisioners() {
    let machine = Machine::trusting();
    assert!(machine.catalog().check_provisioners(["local-exec", "file"]).is_empty());
    let file = machine.file("home/.terraform.d/plugins/terraform-provisioner-file");
    let ansible = machine.file("work/terraform-provisioner-ansible_v2.0.0");
    assert!(ansible.exists());
    let found = machine
        .catalog()
        .check_provisioners(["local-exec", "file", "ansible", "chef"]);
    assert_eq!(found.len(), 2);
    let text = format!("{} overrides an internal plugin for file-provisioner.", file.display());
    assert!(found.0[0].detail.starts_with(&text) && !found.0[0].is_error());
    assert!(found.0[1].is_error() && found.0[1].detail.contains("\"chef\""));
    assert!(!found.0[1].detail.contains("the feature"), "{found:?}");
    let left_out = machine.catalog().check_provisioners(["remote-exec"]);
    assert!(left_out.0[0].detail.contains("the feature \"ssh\""), "{left_out:?}");
}

#[test]
fn plugins_of_the_configuration_need_a_record() {
    let machine = Machine::new();
    let theirs = machine.file("work/terraform.d/plugins/terraform-provider-null_v3.2.9");
    machine.file("work/terraform-provisioner-ansible_v2.0.0");
    let (selection, warnings) = machine.resolve("null", "").unwrap();
    assert!(matches!(selection, Selection::Builtin { .. }));
    assert!(
        warnings.0[0].summary.contains("Plugin of the configuration not used"),
        "{warnings:?}"
    );
    machine.file("work/terraform.d/plugins/terraform-provider-acme_v1.0.0");
    let error = machine.resolve("acme", "").unwrap_err();
    assert!(error.0[0].detail.contains("init has not recorded them"), "{error:?}");
    assert!(machine.catalog().check_provisioners(["ansible"]).has_errors());
    // An entry of another version, or without checksums, does not count.
    for entry in [null_lock("3.2.8"), null_lock("3.2.9")] {
        machine.write("work/.terraform.lock.hcl", &entry);
        let chosen = machine.resolve("null", "").map(|(selection, _)| selection);
        assert!(!matches!(chosen, Ok(Selection::External(_))), "{entry}");
    }
    std::fs::remove_file(machine.path("work/.terraform.lock.hcl")).unwrap();
    // Plugins that `init` has recorded may run.
    machine
        .catalog()
        .install(&requirement("null", ""), InstallOptions::default(), &mut |_| {})
        .unwrap();
    assert_eq!(executable(&machine.resolve("null", "").unwrap().0), theirs);
    machine.catalog().record_provisioners(["ansible"]).unwrap();
    assert!(machine.catalog().check_provisioners(["ansible"]).is_empty());
    machine.write("work/terraform-provisioner-ansible_v2.0.0", "changed");
    assert!(machine.catalog().check_provisioners(["ansible"]).has_errors());
}
