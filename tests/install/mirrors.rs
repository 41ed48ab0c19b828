//! Network mirrors and filesystem mirrors, and the selection between them for each provider.

use crate::{requiring, serve, workspace};
use support::Workspace;
use support::registry::{Registry, platform, sha256, zip};
use support::server::{Reply, Server};

/// Starts a mirror with versions 1.0.0 and 1.1.0 of `example.com/acme/anvil`. Version 1.0.0 has the checksum that
/// `sum` returns, and 1.1.0 has none.
fn mirror(sum: impl Fn(&[u8]) -> String + Send + Sync + 'static) -> Server {
    Server::https(move |request| {
        let platform = platform();
        let archive = zip(&[("terraform-provider-anvil", b"mirrored")]);
        match request.path() {
            "/m/example.com/acme/anvil/index.json" => Reply::json(r#"{"versions":{"1.0.0":{},"1.1.0":{}}}"#),
            "/m/example.com/acme/anvil/1.0.0.json" => Reply::json(&format!(
                r#"{{"archives":{{"{platform}":{{"url":"files/anvil.zip","hashes":["h1:unknown=","zh:{}"]}}}}}}"#,
                sum(&archive)
            )),
            "/m/example.com/acme/anvil/1.1.0.json" => {
                Reply::json(&format!(r#"{{"archives":{{"{platform}":{{"url":"/m/anvil.zip"}}}}}}"#))
            }
            "/m/example.com/acme/anvil/files/anvil.zip" | "/m/anvil.zip" => Reply::ok(archive),
            _ => Reply::status(404),
        }
    })
}

fn config(constraint: &str) -> String {
    format!(
        "terraform {{\n  required_providers {{\n    anvil = {{\n      source  = \"example.com/acme/anvil\"\n      version = \
         \"{constraint}\"\n    }}\n  }}\n}}\n"
    )
}

fn configured(server: &Server, methods: &str, constraint: &str) -> Workspace {
    let w = workspace(server, &config(constraint));
    w.write(
        "../home/.terraformrc",
        &format!("provider_installation {{\n{methods}\n}}\n"),
    );
    w
}

#[test]
fn network_mirrors() {
    let server = mirror(sha256);
    let methods = format!("network_mirror {{\n url = \"{}\"\n}}", server.url("/m"));
    let w = configured(&server, &methods, "1.0.0");
    let init = w.run(&["init", "-no-color"]).ok();
    assert!(
        init.stdout
            .contains("- Installed example.com/acme/anvil v1.0.0 (verified checksum)\n"),
        "{}",
        init.all()
    );
    let lock = w.read(".terraform.lock.hcl");
    assert_eq!(
        (lock.matches("h1:").count(), lock.matches("zh:").count()),
        (1, 0),
        "{lock}"
    );
    let w = configured(&server, &methods, ">= 1.0.0");
    let init = w.run(&["init", "-no-color"]).ok();
    assert!(
        init.stdout
            .contains("- Installed example.com/acme/anvil v1.1.0 (unauthenticated)\n"),
        "{}",
        init.all()
    );
    configured(&server, &methods, "2.0.0").run(&["init"]).fails_with(&[
        "There is no version",
        "the network mirror https://",
        "1.1.0, 1.0.0",
    ]);
    let elsewhere = format!("{methods}\nnetwork_mirror {{\n url = \"{}\"\n}}", server.url("/none"));
    configured(&server, &elsewhere, "1.0.0").run(&["init"]).ok();
    let excluded = methods.replace("url", "exclude = [\"example.com/*/*\"]\n url");
    configured(&server, &excluded, "1.0.0")
        .run(&["init"])
        .fails_with(&["names no source that it may be installed from"]);

    let wrong = mirror(|_| "00".repeat(32));
    let methods = format!("network_mirror {{\n url = \"{}\"\n}}", wrong.url("/m/"));
    let w = configured(&wrong, &methods, "1.0.0");
    w.run(&["init"]).fails_with(&[
        "Failed to install provider",
        "files/anvil.zip has the checksum",
        "h1:unknown= or zh:0000",
    ]);
    assert!(!w.exists(".terraform.lock.hcl"));
}

#[test]
fn archives_on_this_machine() {
    let w = Workspace::with(&[("main.tf", &config("~> 1.0"))]);
    let archive = zip(&[("terraform-provider-anvil_v1.4.0", b"packed")]);
    let name = format!("Terraform-Provider-Anvil_1.4.0_{}.zip", platform());
    let dir = w.home().join(".terraform.d/plugins/example.com/acme/anvil");
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join(&name), &archive).unwrap();
    let init = w.run(&["init", "-no-color"]).ok();
    let installed = "- Installed example.com/acme/anvil v1.4.0 (unauthenticated)\n";
    assert!(init.stdout.contains(installed), "{}", init.all());
    let program = format!(
        ".terraform/providers/example.com/acme/anvil/1.4.0/{}/terraform-provider-anvil_v1.4.0",
        platform()
    );
    assert_eq!(w.read(&program), "packed");
    // A changed archive is not accepted as the locked one.
    std::fs::remove_dir_all(w.dir().join(".terraform")).unwrap();
    std::fs::write(dir.join(&name), zip(&[("terraform-provider-anvil_v1.4.0", b"changed")])).unwrap();
    w.run(&["init"]).fails_with(&[
        "has none of the checksums that the dependency lock file records",
        "providers lock",
    ]);
    assert!(!w.exists(".terraform/providers/example.com"));
}

#[test]
fn the_newest_of_all_places() {
    let registry = Registry::new()
        .with("acme/anvil", "1.0.0", "old")
        .with("acme/anvil", "2.0.0", "new");
    let server = serve(registry);
    let w = workspace(&server, &requiring(&server, &[("acme/anvil", "")]));
    let host = server.host();
    let place = |version: &str| {
        format!(
            "../mirror/{host}/acme/anvil/{version}/{}/terraform-provider-anvil",
            platform()
        )
    };
    w.write(&place("1.5.0"), "here");
    let mirror = w.dir().join("../mirror");
    let methods = |direct: &str| {
        w.write(
            "../home/.terraformrc",
            &format!(
                "provider_installation {{\n  filesystem_mirror {{\n    path = \"{}\"\n  }}\n  {direct}\n}}\n",
                mirror.display()
            ),
        );
        let _ = std::fs::remove_file(w.dir().join(".terraform.lock.hcl"));
        server.requests();
        w.run(&["init", "-no-color"]).ok();
        (w.read(".terraform.lock.hcl"), server.requests().len())
    };
    let (lock, asked) = methods("");
    assert!(lock.contains("\"1.5.0\"") && asked == 0, "{lock}");
    let (lock, _) = methods("direct {}");
    assert!(lock.contains("\"2.0.0\""), "{lock}");
    let (lock, asked) = methods(&format!("direct {{\n exclude = [\"{host}/acme/*\"]\n }}"));
    assert!(lock.contains("\"1.5.0\"") && asked == 0, "{lock}");
    w.write(&place("2.1.0"), "newer");
    let (lock, asked) = methods("direct {}");
    assert!(lock.contains("\"2.1.0\"") && asked > 0, "{lock}");
}

#[test]
fn what_is_in_an_implied_mirror_is_never_asked_for() {
    let server = serve(Registry::new().with("acme/anvil", "2.0.0", "new"));
    let w = workspace(&server, &requiring(&server, &[("acme/anvil", ">= 2.0")]));
    let path = format!(
        "terraform.d/plugins/{}/acme/anvil/1.0.0/{}/terraform-provider-anvil",
        server.host(),
        platform()
    );
    w.write(&path, "here");
    w.run(&["init"]).fails_with(&["There is no version of the provider"]);
    assert_eq!(server.requests(), [""; 0]);
}
