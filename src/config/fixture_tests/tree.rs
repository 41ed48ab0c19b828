//! Modules that call modules.

use std::collections::BTreeMap;

use super::{check, check_files, config, loaded, loaded_with, report};
use crate::files::Disk;
use crate::manifest::{Manifest, ManifestEntry};
use crate::{LoadOptions, load};

#[test]
fn local_modules_are_found_relative_to_their_caller() {
    let config = config(&[
        (
            "main.tf",
            "module \"a\" { source = \"./mods/a\" }\nmodule \"a2\" { source = \"./mods/a\" }\n",
        ),
        ("mods/a/main.tf", "module \"b\" { source = \"../b\" }\n"),
        ("mods/b/main.tf", "output \"o\" { value = 1 }\n"),
    ]);
    let paths: Vec<String> = config.nodes().iter().map(|n| n.path.to_string()).collect();
    assert_eq!(
        paths,
        ["", "module.a", "module.a.module.b", "module.a2", "module.a2.module.b"]
    );
    let b = addrs::Module::root().child("a").child("b");
    let node = config.node(&b).unwrap();
    assert_eq!((node.source_dir(), &*node.source), ("mods/b", "../b"));
    assert!(config.call(&b).is_some() && config.call(&addrs::Module::root()).is_none());
    assert_eq!(node.module.outputs["o"].range.file.as_ref(), "mods/b/main.tf");
}

#[test]
fn inputs_are_checked_against_variables() {
    check_files(
        &[
            ("main.tf", "module \"c\" {\n source = \"./c\"\n fooo = 1\n xyz {}\n}\n"),
            (
                "c/main.tf",
                "variable \"foo\" {}\nvariable \"bar\" {\n default = 1\n}\n",
            ),
        ],
        "error main.tf:1,12-12 Missing required argument
         error main.tf:3,2-6 Unsupported argument
         error main.tf:4,2-5 Unsupported block type",
    );
    // Missing arguments of a call are reported only if each module is valid by itself.
    check_files(
        &[
            ("main.tf", "module \"c\" {\n source = \"./c\"\n locals {}\n}\n"),
            ("c/main.tf", "variable \"foo\" {}\n"),
        ],
        "error main.tf:1,12-12 Missing required argument
         error main.tf:3,2-8 Reserved block type name in module block",
    );
    let loaded = loaded(&[
        ("main.tf", "module \"c\" {\n source = \"./c\"\n fooo = 1\n}\n"),
        ("c/main.tf", "variable \"foo\" {}\n"),
    ]);
    assert!(
        loaded
            .diagnostics
            .iter()
            .any(|d| d.detail.contains("Did you mean \"foo\"?"))
    );
    let loaded = self::loaded(&[
        (
            "main.tf",
            "module \"c\" {\n source = \"./c\"\n ignore_nested_deprecation = true\n}\n",
        ),
        ("c/main.tf", ""),
    ]);
    let said = loaded.diagnostics.iter().map(|d| &*d.detail).collect::<String>();
    assert!(said.contains("Did you mean \"ignore_nested_deprecations\"?"), "{said}");
}

#[test]
fn invalid_module_sources_are_refused() {
    check_files(
        &[
            (
                "main.tf",
                "module \"b\" { source = \"foo\" }\nmodule \"c\" {\n source = \"./c\"\n version = \"1.0\"\n}\nmodule \"d\" { source = var.x \
                 }\nmodule \"g\" { source = \"./nope\" }\nmodule \"h\" {}\n",
            ),
            ("c/main.tf", ""),
        ],
        "error main.tf:1,23-28 Invalid module source address
         error main.tf:3,11-16 Invalid registry module source address
         error main.tf:6,23-28 Reference to undeclared input variable
         error main.tf:7,23-31 Unreadable module directory
         error main.tf:8,12-12 Missing required argument",
    );
}

#[test]
fn a_module_that_calls_itself_is_an_error() {
    check_files(
        &[
            ("main.tf", "module \"a\" { source = \"./a\" }\n"),
            ("a/main.tf", "module \"b\" { source = \"../\" }\n"),
        ],
        "error a/main.tf:1,23-28 Module calls itself",
    );
}

#[test]
fn remote_modules_are_found_by_the_manifest() {
    let files = [
        (
            "main.tf",
            "module \"a\" {\n source = \"x/y/z\"\n version = \"~> 1.0\"\n}\n",
        ),
        (".terraform/modules/a/sub/main.tf", "output \"o\" { value = 1 }\n"),
    ];
    let entry = |version: &str| ManifestEntry {
        source: "registry.terraform.io/x/y/z".into(),
        version: Some(version.into()),
        dir: ".terraform/modules/a/sub".into(),
    };
    let with = |version: &str| Manifest {
        modules: BTreeMap::from([("a".to_owned(), entry(version))]),
    };
    let loaded = loaded_with(&files, &with("1.2.0"));
    assert_eq!(report(&loaded), "");
    assert_eq!(loaded.config.root.children["a"].version.as_deref(), Some("1.2.0"));
    let old = loaded_with(&files, &with("2.0.0"));
    assert_eq!(
        report(&old),
        "error main.tf:2,11-18 Module version requirements have changed"
    );
    let none = loaded_with(&files, &Manifest::default());
    assert_eq!(report(&none), "error main.tf:2,11-18 Module not installed");
    assert_eq!(none.missing.len(), 1);
}

#[test]
fn a_snapshot_loads_as_the_same_configuration() {
    let config = config(&[
        ("main.tf", "module \"a\" { source = \"./a\" }\n"),
        ("a/main.tf", "module \"b\" { source = \"../b\" }\n"),
        ("b/main.tf", "variable \"x\" {\n default = 1\n}\n"),
    ]);
    let snapshot = config.snapshot();
    assert_eq!(snapshot.modules.keys().collect::<Vec<_>>(), ["", "a", "a.b"]);
    let manifest = snapshot.manifest();
    let again = load(
        &snapshot.files(),
        snapshot.root_dir(),
        &LoadOptions::new("1.11.4", &manifest),
    );
    assert_eq!(report(&again), "");
    assert_eq!(again.config.snapshot(), snapshot);
    assert_eq!(again.sources.iter().count(), 3);
}

#[test]
fn root_only_blocks_in_modules_are_reported() {
    check_files(
        &[
            ("main.tf", "module \"a\" { source = \"./a\" }\n"),
            ("a/main.tf", "terraform {\n backend \"local\" {}\n}\n"),
        ],
        "warning a/main.tf:2,2-17 Backend configuration ignored",
    );
}

#[test]
fn module_for_another_core_version_has_one_diagnostic() {
    check_files(
        &[
            ("main.tf", "module \"a\" {\n source = \"./a\"\n input = 1\n}\n"),
            (
                "a/main.tf",
                "terraform {\n required_version = \">= 99\"\n}\nvariable \"input\" {}\n",
            ),
        ],
        "error a/main.tf:2,2-28 Unsupported Terraform Core version",
    );
}

#[test]
fn a_directory_on_disk_loads_like_one_in_memory() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().to_str().unwrap();
    std::fs::create_dir(temporary.path().join("dir.tf")).unwrap();
    std::fs::create_dir(temporary.path().join("child")).unwrap();
    std::fs::write(
        temporary.path().join("main.tf"),
        "module \"c\" {\n source = \"./child\"\n}\n",
    )
    .unwrap();
    std::fs::write(temporary.path().join("child/main.tf"), "locals {\n a = 1\n}\n").unwrap();
    let manifest = Manifest::default();
    let loaded = load(&Disk, dir, &LoadOptions::new("1.11.4", &manifest));
    assert_eq!(report(&loaded), "");
    assert!(loaded.config.root.children["c"].module.locals.contains_key("a"));
    let missing = load(&Disk, &format!("{dir}/nothing"), &LoadOptions::new("1.11.4", &manifest));
    assert_eq!(report(&missing), "error - Failed to read module directory");
}

#[test]
fn sources_are_evaluated_with_what_each_call_passes() {
    let files = [
        (
            "main.tf",
            "module \"x\" {\n source = \"./outer\"\n dir = \"one\"\n}\nmodule \"y\" {\n source = \"./outer\"\n dir = \"two\"\n}\n",
        ),
        (
            "outer/main.tf",
            "variable \"dir\" {\n const = true\n}\nlocals {\n b = \"${local.a}x\"\n a = \"../${var.dir}\"\n}\nmodule \"inner\" {\n \
             source = local.b\n}\n",
        ),
        ("onex/main.tf", ""),
        ("twox/main.tf", ""),
    ];
    let config = config(&files);
    let dir = |call: &str| {
        let inner = &config.root.children[call].children["inner"];
        (inner.source.clone(), inner.source_dir().to_owned())
    };
    assert_eq!(dir("x"), ("../onex".to_owned(), "onex".to_owned()));
    assert_eq!(dir("y"), ("../twox".to_owned(), "twox".to_owned()));
}

#[test]
fn local_values_that_need_each_other_are_reported_once() {
    check(
        "locals {\n a = local.b\n b = local.a\n}\nmodule \"m\" {\n source = local.a\n}\n",
        "error main.tf:3,6-13 Cycle: local.a, local.b",
    );
}

#[test]
fn long_chains_of_local_values_are_evaluated() {
    let mut text = "module \"m\" {\n source = local.v20000\n}\nlocals {\n v0 = \"./m\"\n".to_owned();
    for i in 1..=20_000 {
        text.push_str(&format!(" v{i} = local.v{}\n", i - 1));
    }
    text.push_str("}\n");
    assert_eq!(
        config(&[("main.tf", &text), ("m/main.tf", "")]).root.children["m"].source,
        "./m"
    );
}

#[test]
fn modules_that_are_missing_have_the_inputs_that_are_known() {
    let loaded = loaded(&[(
        "main.tf",
        "variable \"a\" {\n const = true\n default = \"1\"\n}\nvariable \"b\" {}\nmodule \"m\" {\n source = \"a/b/c\"\n version = \
         \"~> ${var.a}.0\"\n x = var.a\n y = var.b\n}\n",
    )]);
    let missing = &loaded.missing[0];
    assert_eq!(missing.version.as_ref().map(|v| v.text.as_str()), Some("~> 1.0"));
    // The default of a variable must not replace a value that is not known.
    let inputs = missing.inputs.iter().map(|(k, v)| (&**k, v.is_wholly_known()));
    assert_eq!(inputs.collect::<Vec<_>>(), [("x", true), ("y", false)]);
}
