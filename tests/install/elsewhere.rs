//! Packages for other machines: `providers lock`, `providers mirror`, and installation from such a mirror.

use crate::{requiring, serve, workspace};
use support::Workspace;
use support::registry::{Registry, platform};
use support::server::Server;

const OTHER: &str = "-platform=plan9_mips";

#[test]
fn locked_for_several_platforms() {
    let registry = Registry::new()
        .with("acme/anvil", "1.2.0", "one")
        .with("acme/anvil", "2.0.0", "two");
    let (id, server) = (registry.key.id(), serve(registry));
    let name = format!("{}/acme/anvil", server.host());
    let w = workspace(&server, &requiring(&server, &[("acme/anvil", "~> 1.0")]));
    let here = platform();

    let lock = w.run(&["providers", "lock", "-no-color"]).ok();
    assert_eq!(
        lock.stdout,
        format!(
            "- Fetching {name} 1.2.0 for {here}...\n- Retrieved {name} 1.2.0 for {here} (self-signed, key ID {id})\n- Obtained \
             {name} checksums for {here}; the lock file has its first entry for this provider\n\nSuccess! Monoform has updated the lock file.\n\nLook at the difference in .terraform.lock.hcl, and commit it \
             with the\nconfiguration, so that others install only packages with these checksums.\n\n"
        )
    );
    let text = w.read(".terraform.lock.hcl");
    assert_eq!(
        (text.matches("h1:").count(), text.matches("zh:").count()),
        (1, 2),
        "{text}"
    );

    let current = format!("-platform={here}");
    let both = ["providers", "lock", "-no-color", &current, OTHER];
    let lock = w.run(&both).ok();
    for line in [
        format!("- Obtained {name} checksums for {here}; the lock file had all of them\n"),
        format!("- Obtained {name} checksums for plan9_mips; the lock file has them in addition to those it had\n"),
    ] {
        assert!(lock.stdout.contains(&line), "{}", lock.all());
    }
    let text = w.read(".terraform.lock.hcl");
    assert_eq!(
        (text.matches("h1:").count(), text.matches("zh:").count()),
        (2, 2),
        "{text}"
    );
    let lock = w.run(&both).ok();
    assert!(
        lock.stdout
            .ends_with("\nSuccess! Monoform has validated the lock file and found no need for changes.\n"),
        "{}",
        lock.all()
    );
    assert_eq!(w.read(".terraform.lock.hcl"), text);
    w.run(&["init"]).ok();
    assert_eq!(w.read(".terraform.lock.hcl"), text, "init has nothing to add");

    // Three errors: a package without the locked checksum, a constraint that the lock file does not meet, and a
    // platform without packages.
    w.run(&["providers", "lock", "-platform=linux_vax"])
        .fails_with(&["Could not retrieve providers", "for linux_vax"]);
    w.write("main.tf", &requiring(&server, &[("acme/anvil", "~> 2.0")]));
    w.run(&["providers", "lock"])
        .fails_with(&["chose the version 1.2.0", "does not meet \"~> 2.0\"", "-upgrade"]);
    w.write("main.tf", &requiring(&server, &[("acme/anvil", "~> 1.0")]));
    let changed: String = text
        .lines()
        .filter(|line| !line.contains("h1:"))
        .map(|line| {
            if line.contains("zh:") {
                "    \"zh:00\",\n".to_owned()
            } else {
                format!("{line}\n")
            }
        })
        .collect();
    w.write(".terraform.lock.hcl", &changed.replacen("    \"zh:00\",\n", "", 1));
    w.run(&["providers", "lock"]).fails_with(&["it is not what was locked"]);
}

#[test]
fn mirror_without_a_network_leaves_built_in_providers_out() {
    let configuration = "resource \"null_resource\" \"a\" {\n}\nresource \"random_id\" \"a\" {\n  byte_length = 1\n}\n";
    let server = serve(Registry::new());
    let w = workspace(&server, configuration);
    public_registry_at(&w, &server);
    drop(server);
    let mirror = w.run(&["providers", "mirror", "-no-color", "mirror"]).ok();
    let said = mirror.all().split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "Warning: Built-in providers are not in the mirror",
        "- hashicorp/null - hashicorp/random The versions of the provider hashicorp/null cannot be listed",
        "internal-plugin link DIR",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    // The lock file selects a version of `null` that cannot be fetched. The mirror needs it, because other programs use
    // that provider, too.
    w.write(
        ".terraform.lock.hcl",
        "provider \"registry.terraform.io/hashicorp/null\" {\n  version = \"3.2.3\"\n}\n",
    );
    w.run(&["providers", "mirror", "mirror"])
        .fails_with(&["Could not retrieve providers", "hashicorp/null"]);
}

#[test]
fn a_mirror_is_enough_to_install_from() {
    let registry = Registry::new()
        .with("acme/anvil", "1.2.0", "one")
        .with("acme/rocket", "0.1.0", "fuel")
        .with("hashicorp/null", "3.2.3", "null");
    let server = serve(registry);
    let host = server.host();
    let (anvil, rocket) = (format!("{host}/acme/anvil"), format!("{host}/acme/rocket"));
    let mut configuration = requiring(&server, &[("acme/anvil", "~> 1.0"), ("acme/rocket", "")]);
    configuration.push_str("resource \"null_resource\" \"built_in\" {}\nresource \"terraform_data\" \"a\" {}\n");
    let w = workspace(&server, &configuration);
    public_registry_at(&w, &server);
    w.write("file", "");
    w.run(&["providers", "mirror", "file/mirror"])
        .fails_with(&["Cannot use the output directory", "not a directory"]);
    // The mirror's directory is created together with its parent directories.
    w.run(&["providers", "mirror", "a/b/mirror"]).ok();
    assert!(w.exists(&format!("a/b/mirror/{anvil}/index.json")));
    let here = platform();
    let current = format!("-platform={here}");

    let mirror = w
        .run(&["providers", "mirror", "-no-color", &current, OTHER, "../mirror"])
        .ok();
    for line in [
        "- Skipping terraform.io/builtin/terraform because it is built in to Monoform\n".to_owned(),
        format!(
            "- Mirroring {anvil}...\n  - Selected v1.2.0 to meet constraints ~> 1.0\n  - Downloading package for {here}...\n"
        ),
        format!("- Mirroring {rocket}...\n  - Selected v0.1.0 with no constraints\n"),
        // The built-in provider is mirrored, too, because other programs that install from the mirror do not have it.
        format!(
            "- Mirroring hashicorp/null...\n  - Selected v3.2.3 with no constraints\n  - Downloading package for {here}...\n"
        ),
        "  - Downloading package for plan9_mips...\n  - Package authenticated: self-signed".to_owned(),
    ] {
        assert!(mirror.stdout.contains(&line), "{line}\n{}", mirror.all());
    }
    let index: serde_json::Value = serde_json::from_str(&w.read(&format!("../mirror/{anvil}/index.json"))).unwrap();
    assert_eq!(index, serde_json::json!({"versions": {"1.2.0": {}}}));
    let null = "../mirror/registry.terraform.io/hashicorp/null";
    assert!(w.exists(&format!("{null}/terraform-provider-null_3.2.3_plan9_mips.zip")));
    assert!(w.exists(&format!("{null}/terraform-provider-null_3.2.3_{here}.zip")));
    let archives: serde_json::Value = serde_json::from_str(&w.read(&format!("../mirror/{anvil}/1.2.0.json"))).unwrap();
    assert_eq!(
        archives["archives"]["plan9_mips"]["url"],
        "terraform-provider-anvil_1.2.0_plan9_mips.zip"
    );
    // A later run finds the existing packages, and adds to them.
    w.run(&["providers", "mirror", "../mirror"]).ok();
    // The lock file must match the configuration.
    w.write(
        ".terraform.lock.hcl",
        &format!("provider \"{anvil}\" {{\n  version = \"0.9.0\"\n}}\n"),
    );
    w.run(&["providers", "mirror", "../mirror"]).fails_with(&[
        "Inconsistent dependency lock file",
        &format!("{anvil}: version 0.9.0 is locked, and the configuration requires \"~> 1.0\""),
        &format!("{rocket}: required by the configuration, and no version is locked"),
    ]);
    w.run(&["providers", "mirror", "-lock-file=false", "../mirror"]).ok();
    std::fs::remove_file(w.dir().join(".terraform.lock.hcl")).expect("the lock file");

    drop(server);
    w.run(&["init"])
        .fails_with(&["Failed to query available provider packages"]);
    let init = w.run(&["init", "-mirror=../mirror", "-no-color"]).ok();
    assert!(
        init.stdout
            .contains(&format!("- Installed {anvil} v1.2.0 (unauthenticated)\n")),
        "{}",
        init.all()
    );
    let lock = w.read(".terraform.lock.hcl");
    w.run(&["providers", "lock", "-fs-mirror=../mirror", &current, OTHER])
        .ok();
    assert_ne!(
        w.read(".terraform.lock.hcl"),
        lock,
        "the other platform's checksums were added"
    );
    let tree = w.run(&["providers"]).ok();
    assert_eq!(
        tree.stdout,
        format!(
            "\nProviders required by configuration:\n.\n├── provider[{anvil}] ~> 1.0\n├── provider[{rocket}]\n├── \
             provider[registry.terraform.io/hashicorp/null]\n└── provider[terraform.io/builtin/terraform]\n\n"
        )
    );
}

/// Makes this server answer in place of the public registry.
fn public_registry_at(w: &Workspace, server: &Server) {
    let services = format!(
        "services = {{ \"providers.v1\" = \"https://{}/v1/providers/\" }}",
        server.host()
    );
    w.write(
        "../home/.terraformrc",
        &format!("host \"registry.terraform.io\" {{\n  {services}\n}}\n"),
    );
}

#[test]
fn a_built_in_provider_that_cannot_be_fetched_for_a_mirror_is_an_error() {
    let server = serve(Registry::new());
    let w = workspace(&server, "resource \"null_resource\" \"built_in\" {}\n");
    public_registry_at(&w, &server);
    for platform in [format!("-platform={}", platform()), OTHER.to_owned()] {
        w.run(&["providers", "mirror", &platform, "../mirror"])
            .fails_with(&["hashicorp/null", "has these providers built in"]);
    }
}

#[test]
fn mirror_has_the_providers_of_the_plugin_directory() {
    let text = "terraform {\n  required_providers {\n    x = { source = \"example.com/acme/x\" }\n  }\n}\n";
    let w = Workspace::with(&[("main.tf", text)]);
    let installed = "../home/.terraform.d/plugins/example.com/acme/x";
    w.write(
        &format!("{installed}/1.0.0/{}/terraform-provider-x_v1.0.0", platform()),
        "x",
    );
    // The provider is only in the plugin directory; no registry is queried.
    w.run(&["providers", "mirror", "-no-color", "../mirror"])
        .ok()
        .shows(&["- Mirroring example.com/acme/x...\n  - Selected v1.0.0 with no constraints\n  - Packing "]);
    let archive = format!(
        "../mirror/example.com/acme/x/terraform-provider-x_1.0.0_{}.zip",
        platform()
    );
    assert!(w.exists(&archive) && w.exists("../mirror/example.com/acme/x/index.json"));
    w.run(&["providers", "mirror", OTHER, "../mirror"])
        .fails_with(&["no usable package for plan9_mips"]);
    std::fs::remove_dir_all(w.dir().join(installed)).expect("a directory");
    w.run(&["init", "-mirror=../mirror"]).ok();
    let locked = w.read(".terraform.lock.hcl");
    assert!(
        locked.contains("version = \"1.0.0\"") && locked.contains("h1:"),
        "{locked}"
    );
}

#[test]
fn a_lock_file_for_one_platform_is_warned_about() {
    let w = Workspace::with(&[(
        "main.tf",
        "terraform {\n  required_providers {\n    x = { source = \"example.com/acme/x\" }\n  }\n}\n",
    )]);
    let package =
        |os_arch: &str| format!("../home/.terraform.d/plugins/example.com/acme/x/1.0.0/{os_arch}/terraform-provider-x");
    w.write(&package(&platform()), "x");
    let init = w.run(&["init", "-no-color"]).ok();
    let said = support::words(&init.stdout);
    let warning = format!(
        "Warning: Incomplete lock file information for providers The dependency lock file has a checksum for {} only",
        platform()
    );
    assert!(
        said.contains(&warning) && said.contains("- example.com/acme/x"),
        "{}",
        init.all()
    );
    // The second installation changes nothing.
    let again = w.run(&["init", "-no-color"]).ok();
    assert!(!again.stdout.contains("Incomplete lock file"), "{}", again.all());
    // Checksums that a registry has signed are for all platforms.
    let server = serve(Registry::new().with("acme/anvil", "1.2.0", "one"));
    let w = workspace(&server, &requiring(&server, &[("acme/anvil", "")]));
    let init = w.run(&["init", "-no-color"]).ok();
    assert!(!init.stdout.contains("Incomplete lock file"), "{}", init.all());
}

#[test]
fn errors_are_reported() {
    let server = serve(Registry::new().with("acme/anvil", "1.2.0", "one"));
    let w = workspace(&server, &requiring(&server, &[("acme/anvil", "")]));
    for (arguments, said) in [
        (&["lock", "-fs-mirror=a", "-net-mirror=b"][..], "use one of"),
        (&["lock", "-oci-mirror=r.example/x", "-net-mirror=b"], "use one of"),
        (&["lock", "-oci-mirror=r.example/{x}"], "not to {x}"),
        (&["lock", "-fs-mirror=nowhere"], "it is no directory"),
        (&["lock", "-net-mirror=http://example.com/"], "begins with https:"),
        (&["lock", "-platform=linux"], "\"linux_amd64\""),
        (&["lock", "acme/other"], "No module of the configuration requires"),
        (&["lock", "a/b/c/d"], "Invalid provider argument"),
        (&["mirror"], "No output directory specified"),
        (&["mirror", "-platform=x", "."], "Invalid target platform"),
    ] {
        let mut all = vec!["providers"];
        all.extend(arguments);
        w.run(&all).fails_with(&[said]);
    }
    std::fs::remove_file(w.dir().join("main.tf")).unwrap();
    for arguments in [
        &["providers"][..],
        &["providers", "lock"],
        &["providers", "mirror", "."],
    ] {
        w.run(arguments).fails_with(&["No configuration files"]);
    }
}
