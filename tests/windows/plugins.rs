//! A provider in Go on the official plugin framework, built for Windows.

use support::exchange::{PROVIDER_CONFIGURATION, build_provider, provider_manages_objects};

use crate::machine::{Windows, quoted};

#[test]
fn provider_in_go_is_installed_and_manages_objects() {
    let test = "provider_in_go_is_installed_and_manages_objects";
    let Some(mut w) = Windows::with(&[("main.tf", PROVIDER_CONFIGURATION), ("books/x", "")], test) else {
        return;
    };
    if support::needs("go", test).is_none() {
        return;
    }
    build_provider(&w.files, "windows_amd64", &[]);
    let mirror = quoted(&w.path("mirror"));
    w.files.write(
        "cli.tfrc",
        &format!("provider_installation {{\n  filesystem_mirror {{\n    path = {mirror}\n  }}\n}}\n"),
    );
    let settings = w.path("cli.tfrc");
    w.files = w.files.env("TF_CLI_CONFIG_FILE", settings);

    provider_manages_objects(&w.files, &|args| w.run(args));
    let installed =
        ".terraform/providers/example.com/test/shelf/1.0.0/windows_amd64/terraform-provider-shelf_v1.0.0.exe";
    assert!(w.files.exists(installed), "it is copied where there are no links");
}
