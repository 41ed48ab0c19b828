//! Pinned versions other than that of a built-in provider: installed, mirrored or cached packages have precedence, then the
//! built-in provider is used with a message; and providers without a requirement.

use std::collections::BTreeMap;

use crate::workspace;
use support::Workspace;
use support::registry::{platform, zip};
use support::server::{Reply, Server};

fn null(version: &str) -> String {
    format!(
        "terraform {{\n  required_providers {{\n    null = {{\n      source  = \"hashicorp/null\"\n      version = \"{version}\"\n    \
         }}\n  }}\n}}\n\nresource \"null_resource\" \"a\" {{}}\n"
    )
}

/// Makes a filesystem mirror with an archive of null 3.2.4; returns the CLI configuration for it.
fn mirrored(w: &Workspace) -> String {
    let dir = w.home().join("mirror/registry.terraform.io/hashicorp/null");
    std::fs::create_dir_all(&dir).expect("a directory");
    let archive = zip(&[("terraform-provider-null_v3.2.4", b"null 3.2.4")]);
    std::fs::write(
        dir.join(format!("terraform-provider-null_3.2.4_{}.zip", platform())),
        archive,
    )
    .expect("a file");
    support::only_from(&w.home().join("mirror"))
}

fn has(ran: &support::Ran, text: &str) {
    let plain: String = ran.all().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(plain.contains(text), "{text:?} is not in\n{}", ran.all());
}

#[test]
fn a_pinned_version_in_a_mirror_or_the_cache_comes_before_the_builtin() {
    let w = Workspace::with(&[("main.tf", &null("3.2.4"))]);
    let cache = w.home().join("cache");
    std::fs::create_dir(&cache).expect("a directory");
    w.write("../home/.terraformrc", &mirrored(&w));
    let w = w.env("TF_PLUGIN_CACHE_DIR", cache.to_string_lossy());
    let init = w.run(&["init", "-no-color"]).ok();
    has(&init, "- Installed hashicorp/null v3.2.4 (unauthenticated)");
    assert!(w.read(".terraform.lock.hcl").contains("\"3.2.4\""));

    // If no mirror has the version, the cache is used.
    std::fs::remove_dir_all(w.home().join("mirror")).expect("removed");
    std::fs::remove_dir_all(w.dir().join(".terraform")).expect("removed");
    let init = w.run(&["init", "-no-color"]).ok();
    has(&init, "- Using hashicorp/null v3.2.4 from the shared cache directory");

    // If no source has the version, the built-in provider is used, with a message about its other version. The lock file does not change.
    let lock = w.read(".terraform.lock.hcl");
    std::fs::remove_dir_all(&cache).expect("removed");
    std::fs::create_dir(&cache).expect("a directory");
    std::fs::remove_dir_all(w.dir().join(".terraform")).expect("removed");
    let init = w.run(&["init", "-no-color"]).ok();
    has(&init, "is built in to Monoform, in place of v3.2.4");
    assert!(!init.stdout.contains("Reusing"), "{}", init.all());
    assert_eq!(
        init.all().matches("Built-in provider version differs").count(),
        1,
        "{}",
        init.all()
    );
    assert_eq!(w.read(".terraform.lock.hcl"), lock);
    let plan = w.run(&["plan", "-no-color"]).ok();
    has(&plan, "built in, in place of 3.2.4 of the dependency lock file");
    assert_eq!(
        plan.all().matches("Built-in provider version differs").count(),
        1,
        "{}",
        plan.all()
    );

    // With this setting, only the exact version is accepted.
    let w = w.env("MONOFORM_EXACT_INTERNAL_PLUGINS", "null");
    w.run(&["init"]).fails_with(&["hashicorp/null"]);
    w.run(&["plan"])
        .fails_with(&["Provider not available", "exact_internal_plugins", "run init"]);
}

#[test]
fn a_network_mirror_is_asked_for_a_pinned_version_and_a_registry_is_not() {
    let server = Server::https(|request| match request.path() {
        "/registry.terraform.io/hashicorp/null/index.json" => Reply::json(r#"{"versions":{"3.2.2":{}, "3.2.4":{}}}"#),
        "/registry.terraform.io/hashicorp/null/3.2.4.json" => {
            Reply::json(&format!(r#"{{"archives":{{"{}":{{"url":"/null.zip"}}}}}}"#, platform()))
        }
        "/registry.terraform.io/hashicorp/null/3.2.2.json" => {
            Reply::json(r#"{"archives":{"plan9_mips":{"url":"x.zip"}}}"#)
        }
        "/null.zip" => Reply::ok(zip(&[("terraform-provider-null_v3.2.4", b"null 3.2.4")])),
        _ => Reply::status(404),
    });
    let w = workspace(&server, &null("3.2.4"));
    let mirror = format!(
        "provider_installation {{\n  network_mirror {{\n    url = \"{}\"\n  }}\n}}\n",
        server.url("/")
    );
    w.write("../home/.terraformrc", &mirror);
    has(
        &w.run(&["init", "-no-color"]).ok(),
        "- Installed hashicorp/null v3.2.4 (unauthenticated)",
    );
    // The built-in provider is used if the mirror does not have the version for this platform.
    for version in ["3.2.3", "3.2.2"] {
        let w = workspace(&server, &null(version));
        w.write("../home/.terraformrc", &mirror);
        let line = format!("is built in to Monoform, in place of v{version}");
        has(&w.run(&["init", "-no-color"]).ok(), &line);
    }
    // The built-in version needs no server.
    let w = workspace(&server, &null("~> 3.0"));
    w.write("../home/.terraformrc", &mirror);
    server.requests();
    w.run(&["init", "-no-color"]).ok();
    assert_eq!(server.requests(), [""; 0]);
}

#[test]
fn states_that_the_pinned_release_refuses_are_warned_of() {
    let random = |version: &str| {
        format!(
            "terraform {{\n  required_providers {{\n    random = {{\n      source  = \"hashicorp/random\"\n      version = \"{version}\"\n    \
             }}\n  }}\n}}\n\nresource \"random_password\" \"a\" {{\n  length = 8\n}}\n"
        )
    };
    for (version, types) in [
        ("3.1.0", Some("random_password and random_string")),
        ("3.4.2", Some("random_password are")),
        ("3.4.3", None),
    ] {
        let w = Workspace::with(&[("main.tf", &random(version))]);
        let plan = w.run(&["plan", "-no-color"]).ok();
        has(&plan, &format!("built in, in place of {version}"));
        match types {
            Some(types) => has(&plan, &format!("records for {types}")),
            None => assert!(!plan.all().contains("schema versions"), "{}", plan.all()),
        }
    }
}

#[test]
fn schemas_have_required_providers_without_a_block_and_every_raised_version_is_on_record() {
    let names = [
        "archive",
        "cloudinit",
        "dns",
        "external",
        "http",
        "local",
        "null",
        "random",
        "template",
        "time",
        "tls",
    ];
    let lines: String = names
        .iter()
        .map(|n| format!("    {n} = {{ source = \"hashicorp/{n}\" }}\n"))
        .collect();
    let w = Workspace::with(&[(
        "main.tf",
        &format!("terraform {{\n  required_providers {{\n{lines}  }}\n}}\n"),
    )]);
    let schemas = w.run(&["providers", "schema", "-json"]).ok().json();
    let schemas = schemas["provider_schemas"].as_object().expect("an object");
    let found: Vec<&str> = schemas.keys().filter_map(|k| k.rsplit('/').next()).collect();
    assert_eq!(found, names);
    let mut raised: BTreeMap<&str, u64> = BTreeMap::new();
    for schema in schemas.values() {
        for (ty, resource) in schema["resource_schemas"].as_object().into_iter().flatten() {
            if let Some(version) = resource["version"].as_u64().filter(|version| *version > 0) {
                raised.insert(ty, version);
            }
        }
    }
    // These are the last versions in `SCHEMA_CHANGES` of the table of built-in plugins.
    let expected = [("random_password", 3), ("random_string", 2), ("tls_private_key", 1)];
    assert_eq!(raised, expected.into());
    let w = Workspace::with(&[("main.tf", "")]);
    assert_eq!(
        w.run(&["providers", "schema", "-json"]).ok().stdout.trim(),
        r#"{"format_version":"1.0"}"#
    );
}

#[test]
fn schemas_have_a_provider_of_which_only_a_function_is_called() {
    let w = Workspace::with(&[(
        "main.tf",
        "terraform {\n  required_providers {\n    clock = { source = \"hashicorp/time\" }\n  }\n}\n\noutput \"a\" {\n  value = \
         provider::clock::rfc3339_parse(\"2020-01-01T00:00:00Z\")\n}\n",
    )]);
    let schemas = w.run(&["providers", "schema", "-json"]).ok().json();
    assert!(
        schemas["provider_schemas"]["registry.terraform.io/hashicorp/time"]["functions"].is_object(),
        "{schemas}"
    );
}

#[test]
fn a_version_in_the_block_of_the_language_s_own_provider_is_refused_by_init_only() {
    let w = Workspace::with(&[(
        "main.tf",
        "provider \"terraform\" {\n  version = \"~> 99.0\"\n}\n\nresource \"terraform_data\" \"a\" {}\n",
    )]);
    w.run(&["validate"]).ok();
    w.run(&["plan"]).ok();
    w.run(&["init"]).fails_with(&[
        "Invalid dependency on built-in provider",
        "do not support explicit version constraints",
        "main.tf line 1",
    ]);
}

#[test]
fn entries_of_terraforms_lock_file_are_taken_over_for_the_registry_of_opentofu() {
    // This provider is not built in, because built-in providers need no entries in the lock file.
    let main = "terraform {\n  required_providers {\n    anvil = {\n      source  = \"hashicorp/anvil\"\n      version = \">= \
                3.0.0\"\n    }\n  }\n}\n";
    let w = Workspace::with(&[("main.tf", main)]);
    for host in ["registry.terraform.io", "registry.opentofu.org"] {
        for version in ["3.2.3", "3.2.4"] {
            let dir = w.home().join(format!("mirror/{host}/hashicorp/anvil"));
            std::fs::create_dir_all(&dir).expect("a directory");
            let archive = zip(&[(&format!("terraform-provider-anvil_v{version}"), host.as_bytes())]);
            let name = format!("terraform-provider-anvil_{version}_{}.zip", platform());
            std::fs::write(dir.join(name), archive).expect("a file");
        }
    }
    w.write("../home/.terraformrc", &support::only_from(&w.home().join("mirror")));
    // Makes the lock file of an earlier `terraform init`, when 3.2.3 was the newest version.
    let old = w.home().join("mirror/registry.terraform.io/hashicorp/anvil");
    let newest = old.join(format!("terraform-provider-anvil_3.2.4_{}.zip", platform()));
    let aside = w.home().join("aside.zip");
    std::fs::rename(&newest, &aside).expect("moved");
    let w = w.env("MONOFORM_MODE", "terraform");
    w.run(&["init"]).ok();
    std::fs::rename(&aside, &newest).expect("moved back");
    let lock = w.read(".terraform.lock.hcl");
    assert!(
        lock.contains("registry.terraform.io/hashicorp/anvil") && lock.contains("\"3.2.3\""),
        "{lock}"
    );
    let w = w.env("MONOFORM_MODE", "opentofu");
    w.run(&["init", "-lockfile=readonly"]).fails_with(&["lock"]);
    let init = w.run(&["init", "-no-color"]).ok();
    has(&init, "Dependency lock file entries automatically updated");
    has(
        &init,
        "registry.terraform.io/hashicorp/anvil => registry.opentofu.org/hashicorp/anvil",
    );
    let new = w.read(".terraform.lock.hcl");
    assert!(
        new.contains("registry.opentofu.org/hashicorp/anvil") && new.contains("\"3.2.3\""),
        "{new}"
    );
    assert!(!new.contains("registry.terraform.io"), "{new}");
    let hashes = |text: &str| {
        text.lines()
            .filter(|l| l.contains("h1:"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_ne!(hashes(&new), hashes(&lock), "the packages differ");
    // The message appears only once.
    let init = w.run(&["init", "-no-color"]).ok();
    assert!(!init.all().contains("automatically updated"), "{}", init.all());
}
