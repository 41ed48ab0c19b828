//! Module registries.

use crate::{call, says, tgz};
use support::Workspace;
use support::server::{Reply, Server};

/// Starts a registry that requires a token. Its module `team/net/any` has the versions 1.0.0, 1.2.0, 2.0.0 and a
/// prerelease. Its other modules have unusual or wrong answers, such as a package that does not exist.
pub fn registry() -> Server {
    Server::https(|request| {
        let token = request.header("authorization") == "Bearer sesame";
        match request.path() {
            "/.well-known/terraform.json" => Reply::json(r#"{"modules.v1":"/v1/modules/"}"#),
            path if path.starts_with("/archive/") => {
                // The archive is public, so its request must not carry the token.
                assert_eq!(request.header("authorization"), "");
                let version = path.trim_start_matches("/archive/").trim_end_matches(".tar.gz");
                Reply::ok(tgz(&[
                    ("net-x/main.tf", &says(version)),
                    (
                        "net-x/modules/inner/main.tf",
                        &format!("module \"up\" {{\n  source = \"../..\"\n}}\n{}", says("inner")),
                    ),
                ]))
            }
            _ if !token => Reply::status(401),
            "/v1/modules/team/net/any/versions" => Reply::json(
                r#"{"modules":[{"source":"team/net/any","versions":[{"version":"1.0.0"},{"version":"2.0.0"},
                    {"version":"1.2.0"},{"version":"3.0.0-beta1"},{"version":"not one"}]}]}"#,
            ),
            "/v1/modules/team/pre/any/versions" => {
                Reply::json(r#"{"modules":[{"versions":[{"version":"1.0.0-rc1"}]}]}"#)
            }
            "/v1/modules/team/empty/any/versions" => Reply::json(r#"{"modules":[]}"#),
            "/v1/modules/team/broken/any/versions" => Reply::json(r#"{"modules":["#),
            // Programs in Go write null for empty lists.
            "/v1/modules/team/null/any/versions" => Reply::json(
                r#"{"meta":null,"modules":[{"source":null,"versions":[
                    {"version":"1.0.0","root":null,"submodules":null},{"version":"0.9.0","root":{"providers":null,"dependencies":null}}]}]}"#,
            ),
            "/v1/modules/team/none-null/any/versions" => Reply::json(r#"{"modules":null}"#),
            "/v1/modules/team/list-null/any/versions" => Reply::json(r#"{"modules":[{"versions":null}]}"#),
            "/v1/modules/team/local/any/versions" => {
                Reply::json(r#"{"modules":[{"versions":[{"version":"1.0.0"},{"version":"2.0.0"}]}]}"#)
            }
            "/v1/modules/team/local/any/1.0.0/download" => Reply::status(204).with("X-Terraform-Get", "file:///etc"),
            "/v1/modules/team/local/any/2.0.0/download" => {
                Reply::status(204).with("X-Terraform-Get", "git::file:///srv/repository?ref=v1")
            }
            path if path.ends_with("/download") => {
                let version = path.split('/').rev().nth(1).unwrap_or_default().to_owned();
                Reply::status(204).with(
                    "X-Terraform-Get",
                    &format!("/archive/{version}.tar.gz//*?archive=tar.gz"),
                )
            }
            _ => Reply::status(404),
        }
    })
}

pub fn workspace(server: &Server, configuration: &str) -> Workspace {
    let w = Workspace::with(&[("main.tf", configuration), ("../roots.pem", &server.certificate)]);
    let roots = w.dir().join("../roots.pem");
    let host = server.host().replace('.', "_");
    w.env("SSL_CERT_FILE", roots.to_string_lossy())
        .env(&format!("TF_TOKEN_{host}"), "sesame")
}

#[test]
fn from_the_first_plan_to_an_upgrade() {
    let server = registry();
    let source = format!("{}/team/net/any", server.host());
    let w = workspace(&server, &call(&source, "version = \"~> 1.0\""));

    w.run(&["plan", "-no-color"])
        .fails_with(&["Module not installed", "main.tf line 2", "Run \"init\""]);
    assert_eq!(server.requests(), [""; 0], "a plan asks nobody");

    let init = w.run(&["init", "-no-color"]).ok();
    let lines =
        format!("Initializing modules...\nDownloading {source} 1.2.0 for m...\n- m in .terraform/modules/m/net-x\n");
    assert!(init.stdout.contains(&lines), "{}", init.all());
    assert_eq!(
        w.read(".terraform/modules/modules.json"),
        format!(
            "{{\"Modules\":[{{\"Key\":\"\",\"Source\":\"\",\"Dir\":\".\"}},{{\"Key\":\"m\",\"Source\":\"{source}\",\
             \"Version\":\"1.2.0\",\"Dir\":\".terraform/modules/m/net-x\"}}]}}"
        )
    );
    let plan = w.run(&["plan", "-no-color"]).ok();
    assert!(plan.stdout.contains("+ said = \"1.2.0\""), "{}", plan.all());

    server.requests();
    let again = w.run(&["init", "-no-color"]).ok();
    assert!(!again.stdout.contains("Downloading"), "{}", again.all());
    assert_eq!(server.requests(), [""; 0], "what is installed is not asked for");

    // The installed version stays as long as it meets the constraint.
    w.write("main.tf", &call(&source, "version = \">= 1.0\""));
    w.run(&["get"]).ok();
    assert_eq!(server.requests(), [""; 0]);
    let upgrade = w.run(&["init", "-upgrade", "-no-color"]).ok();
    let lines = format!("Upgrading modules...\nDownloading {source} 2.0.0 for m...\n");
    assert!(upgrade.stdout.contains(&lines), "{}", upgrade.all());
    w.write("main.tf", &call(&source, "version = \"1.0.0\""));
    w.run(&["plan"])
        .fails_with(&["Module version requirements have changed"]);
    w.run(&["get"]).ok();
    assert!(w.read(".terraform/modules/modules.json").contains("\"1.0.0\""));

    // Only an exact constraint selects a pre-release.
    w.write("main.tf", &call(&source, "version = \"3.0.0-beta1\""));
    w.run(&["get"]).ok();
    assert!(w.read(".terraform/modules/modules.json").contains("\"3.0.0-beta1\""));
}

#[test]
fn a_directory_of_a_registry_module() {
    let server = registry();
    let source = format!("{}/team/net/any//modules/inner", server.host());
    let w = workspace(&server, &call(&source, ""));
    let get = w.run(&["get", "-no-color"]).ok();
    let package = source.trim_end_matches("//modules/inner");
    assert_eq!(
        get.stdout,
        format!(
            "Downloading {package} 2.0.0 for m...\n- m in .terraform/modules/m/net-x/modules/inner\n- m.up in \
             .terraform/modules/m/net-x\n"
        )
    );
    let missing = format!("{}/team/net/any//nothing", server.host());
    w.write("main.tf", &call(&missing, ""));
    w.run(&["get"]).fails_with(&[
        "Unreadable module subdirectory",
        "no directory \"*/nothing\"",
        "main.tf line 2",
    ]);
}

#[test]
fn lists_may_be_null() {
    let server = registry();
    let w = workspace(&server, &call(&format!("{}/team/null/any", server.host()), ""));
    w.run(&["get"]).ok();
    assert!(w.read(".terraform/modules/modules.json").contains("\"1.0.0\""));
    for (name, error) in [
        ("none-null", "lists no module"),
        ("list-null", "Module has no versions"),
    ] {
        w.write("main.tf", &call(&format!("{}/team/{name}/any", server.host()), ""));
        w.run(&["get"]).fails_with(&[error]);
    }
}

#[test]
fn a_registry_cannot_name_files_of_this_machine() {
    let server = registry();
    let w = workspace(&server, "");
    for version in ["1.0.0", "2.0.0"] {
        let source = format!("{}/team/local/any", server.host());
        w.write("main.tf", &call(&source, &format!("version = \"{version}\"")));
        w.run(&["get"]).fails_with(&[
            "Invalid package location from module registry",
            "a server must not name files of this machine",
        ]);
        assert!(!w.exists(".terraform/modules/m"));
    }
}

/// As in Terraform, there is no token if the helper fails, and the command continues: most requests need no token.
#[test]
fn a_credentials_helper_that_fails_does_not_end_the_command() {
    use std::os::unix::fs::PermissionsExt as _;
    let server = Server::https(|request| match request.path() {
        "/.well-known/terraform.json" => Reply::json(r#"{"modules.v1":"/v1/modules/"}"#),
        "/v1/modules/team/open/any/versions" => Reply::json(r#"{"modules":[{"versions":[{"version":"1.0.0"}]}]}"#),
        "/v1/modules/team/open/any/1.0.0/download" => Reply::status(204).with("X-Terraform-Get", "/b.tgz"),
        "/b.tgz" => Reply::ok(tgz(&[("main.tf", &says("open"))])),
        _ => Reply::status(404),
    });
    let source = format!("{}/team/open/any", server.host());
    for program in [Some("#!/bin/sh\necho locked >&2\nexit 1\n"), None] {
        let w = Workspace::with(&[
            ("main.tf", &call(&source, "")),
            ("../roots.pem", &server.certificate),
            ("../home/.terraformrc", "credentials_helper \"box\" {}\n"),
        ]);
        if let Some(program) = program {
            let helper = w.home().join(".terraform.d/plugins/terraform-credentials-box");
            std::fs::create_dir_all(helper.parent().expect("a directory")).expect("created");
            std::fs::write(&helper, program).expect("written");
            std::fs::set_permissions(&helper, std::fs::Permissions::from_mode(0o755)).expect("a mode");
        }
        let roots = w.dir().join("../roots.pem");
        let w = w.env("SSL_CERT_FILE", roots.to_string_lossy());
        let all = w.run(&["init", "-no-color"]).ok().all();
        let warned = support::words(&all)
            .matches("The host is asked without credentials")
            .count();
        assert_eq!(warned, 1, "told once: {all}");
        assert!(w.exists(".terraform/modules/m/main.tf"));
    }
}

/// Without HOME in the environment, the home directory in the system's user database is used.
#[test]
fn a_credentials_helper_is_found_without_a_home_in_the_environment() {
    use std::os::unix::fs::PermissionsExt as _;
    let server = registry();
    let w = Workspace::with(&[
        ("main.tf", &call(&format!("{}/team/net/any", server.host()), "")),
        ("../roots.pem", &server.certificate),
        ("../cli.tfrc", "credentials_helper \"box\" {}\n"),
    ]);
    let may_mount = std::process::Command::new("unshare")
        .args(["-m", "sh", "-c", "test $(id -u) = 0"])
        .stderr(std::process::Stdio::null())
        .status();
    if !may_mount.is_ok_and(|status| status.success()) {
        eprintln!("skipped: it takes a mount namespace");
        return;
    }
    // The test has its own user database, whose entry for the user names the home directory.
    let home = w.home();
    let helper = home.join(".terraform.d/plugins/terraform-credentials-box");
    std::fs::create_dir_all(helper.parent().expect("a directory")).expect("created");
    std::fs::write(&helper, "#!/bin/sh\necho '{\"token\": \"sesame\"}'\n").expect("written");
    std::fs::set_permissions(&helper, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    let passwd = home.join("passwd");
    std::fs::write(&passwd, format!("root:x:0:0:root:{}:/bin/sh\n", home.display())).expect("written");
    let script = format!(
        "mount --bind {} /etc/passwd && unset HOME && exec \"$0\" get -no-color",
        passwd.display()
    );
    let mut command = std::process::Command::new("unshare");
    support::isolated(&mut command, &home);
    command
        .args(["-m", "--propagation", "private", "sh", "-c", &script])
        .arg(support::monoform())
        .current_dir(w.dir())
        .env("SSL_CERT_FILE", w.dir().join("../roots.pem"))
        .env("TF_CLI_CONFIG_FILE", w.dir().join("../cli.tfrc"));
    support::ran(command.output().expect("unshare runs")).ok();
    let installed = w.read(".terraform/modules/modules.json");
    assert!(installed.contains("2.0.0"), "{installed}");
}

#[test]
fn a_token_that_cannot_be_sent_is_reported() {
    let server = registry();
    let w = workspace(&server, &call(&format!("{}/team/net/any", server.host()), ""));
    let host = server.host().replace('.', "_");
    let w = w.env(&format!("TF_TOKEN_{host}"), "ses\name");
    let said = support::words(&w.run(&["get", "-no-color"]).stderr);
    assert!(
        said.contains("characters that cannot be sent, such as a line end"),
        "{said}"
    );
}

#[test]
fn what_a_registry_does_not_have() {
    let server = registry();
    let w = workspace(&server, "");
    let get = |source: &str, more: &str| {
        w.write("main.tf", &call(&format!("{}/{source}", server.host()), more));
        w.run(&["get"])
    };
    get("team/net/any", "version = \"~> 4.0\"").fails_with(&[
        "Unresolvable module version constraint",
        "\"~> 4.0\"",
        "newest available version is 2.0.0; there are also 3.0.0-beta1, 1.2.0, 1.0.0",
        "main.tf line 2",
    ]);
    get("team/none/any", "").fails_with(&["Module not found", "has no module", "team/none/any"]);
    get("team/pre/any", "").fails_with(&["Module has no versions", "1.0.0-rc1"]);
    get("team/empty/any", "").fails_with(&["Invalid response from remote module registry", "lists no module"]);
    get("team/broken/any", "").fails_with(&["cannot be used: line 1, column 12: the text ends too early"]);
    assert!(!w.exists(".terraform/modules/m"));

    let stranger = workspace(&server, &call(&format!("{}/team/net/any", server.host()), ""));
    let host = server.host().replace('.', "_");
    let stranger = stranger.env(&format!("TF_TOKEN_{host}"), "");
    stranger
        .run(&["get"])
        .fails_with(&["Error accessing remote module registry", "401", "TF_TOKEN_"]);
    let distrusting = Workspace::with(&[("main.tf", &call(&format!("{}/team/net/any", server.host()), ""))]);
    distrusting
        .run(&["get"])
        .fails_with(&["Error accessing remote module registry", "SSL_CERT_FILE"]);
}

#[test]
fn hosts_by_the_cli_configuration() {
    let registry = Server::http(|request| match request.path() {
        "/m/a/b/c/versions" if request.header("authorization") == "Bearer from-config" => {
            Reply::json(r#"{"modules":[{"versions":[{"version":"1.0.0"}]}]}"#)
        }
        "/m/a/b/c/1.0.0/download" => Reply::status(200).with("X-Terraform-Get", "./b.tgz"),
        "/m/a/b/c/1.0.0/b.tgz" => Reply::ok(tgz(&[("main.tf", &says("configured"))])),
        _ => Reply::status(404),
    });
    let w = Workspace::with(&[
        ("main.tf", &call("modules.example.com/a/b/c", "")),
        (
            "../home/.terraformrc",
            &format!(
                "host \"modules.example.com\" {{\n  services = {{ \"modules.v1\" = \"{}\" }}\n}}\ncredentials \
                 \"modules.example.com\" {{\n  token = \"from-config\"\n}}\n",
                registry.url("/m/")
            ),
        ),
    ]);
    w.run(&["init"]).ok();
    let plan = w.run(&["plan", "-no-color"]).ok();
    assert!(plan.stdout.contains("configured"), "{}", plan.all());

    w.write("main.tf", &call("127.0.0.1:1/a/b/c", ""));
    w.run(&["init"]).fails_with(&[
        "Error accessing remote module registry",
        "127.0.0.1:1",
        "refuses connections",
    ]);
}
