//! OCI registries: mirrors of providers, packages of modules, and authentication.

use std::sync::OnceLock;

use support::Workspace;
use support::oci::{Access, Artifacts};
use support::registry::{platform, zip};
use support::server::{Reply, Server};

use crate::workspace;

const PROVIDER: &str = "terraform {\n  required_providers {\n    anvil = {\n      source  = \"example.com/acme/anvil\"\n      \
                        version = \"~> 1.0\"\n    }\n  }\n}\n";

/// Returns the archive of a provider whose program has this content.
fn anvil(content: &str) -> Vec<u8> {
    zip(&[("terraform-provider-anvil", content.as_bytes())])
}

/// Returns the archive of a module with this output. A module in its directory `sub` has the output "below".
fn module(value: &str) -> Vec<u8> {
    let file = format!("output \"value\" {{\n  value = \"{value}\"\n}}\n");
    zip(&[
        ("main.tf", file.as_bytes()),
        ("sub/main.tf", file.replace(value, "below").as_bytes()),
    ])
}

/// Returns a configuration that calls the module at an address and has its value as an output.
fn call(source: &str) -> String {
    format!("module \"m\" {{\n  source = \"{source}\"\n}}\n\noutput \"value\" {{\n  value = module.m.value\n}}\n")
}

/// Returns artifacts: three versions of a provider, of which one has build metadata and one is only for another
/// platform, and one version of a module. Both repositories also have a tag that is not a version.
fn artifacts(access: Access) -> Artifacts {
    let mut artifacts = Artifacts::new(access);
    let platform = platform();
    let newest = anvil("1.1.0");
    artifacts.provider(
        "p/acme/anvil",
        "1.0.0",
        &[(&platform, &anvil("1.0.0")), ("plan9_mips", &anvil("other"))],
    );
    artifacts.provider("p/acme/anvil", "1.1.0_linux.2", &[(&platform, &newest)]);
    artifacts.provider("p/acme/anvil", "2.0.0", &[("plan9_mips", &newest)]);
    artifacts.provider("p/acme/anvil", "latest", &[(&platform, &newest)]);
    artifacts.module("m/net", "latest", &module("newest"));
    artifacts.module("m/net", "1.0", &module("one"));
    artifacts.page = 2;
    artifacts
}

/// Starts a registry with these artifacts.
fn serve(artifacts: Artifacts) -> Server {
    let address: &'static OnceLock<String> = Box::leak(Box::default());
    let server = Server::https(move |request| artifacts.answer(request, address.get().map_or("", String::as_str)));
    address.set(server.url("")).expect("once");
    server
}

/// Returns a workspace whose providers come from a mirror in this registry. Its CLI configuration ends with `more`.
fn mirrored(server: &Server, more: &str, configuration: &str) -> Workspace {
    let w = workspace(server, configuration);
    let config = format!(
        "provider_installation {{\n  oci_mirror {{\n    repository_template = \"{}/p/${{namespace}}/${{type}}\"\n    include = \
         [\"example.com/*/*\"]\n  }}\n}}\n{more}",
        server.host()
    );
    w.write("../home/.terraformrc", &config);
    w
}

/// Returns the `oci_credentials` block for a registry.
fn login(server: &Server, body: &str) -> String {
    format!("oci_credentials \"{}\" {{\n{body}\n}}\n", server.host())
}

#[test]
fn providers_from_a_mirror() {
    let server = serve(artifacts(Access::Open));
    let w = mirrored(&server, "", PROVIDER);
    let init = w.run(&["init", "-no-color"]).ok();
    assert!(
        init.stdout
            .contains("- Installed example.com/acme/anvil v1.1.0+linux.2 (verified checksum)\n"),
        "{}",
        init.all()
    );
    let installed = format!(
        ".terraform/providers/example.com/acme/anvil/1.1.0+linux.2/{}/terraform-provider-anvil",
        platform()
    );
    assert_eq!(w.read(&installed), "1.1.0");
    assert!(w.read(".terraform.lock.hcl").contains("h1:"));

    // Nothing is requested again, and a constraint selects an older version.
    server.requests();
    w.run(&["init"]).ok();
    assert_eq!(server.requests(), [""; 0]);
    let older = PROVIDER.replace("~> 1.0", "1.0.0");
    mirrored(&server, "", &older).run(&["init"]).ok();

    let other = PROVIDER.replace("~> 1.0", "2.0.0");
    mirrored(&server, "", &other)
        .run(&["init"])
        .fails_with(&["2.0.0", "only for plan9_mips"]);
    let absent = PROVIDER.replace("acme/anvil", "acme/hammer");
    mirrored(&server, "", &absent)
        .run(&["init"])
        .fails_with(&["acme/hammer", "does not exist"]);
}

#[test]
fn checksums_of_a_mirror_for_other_platforms() {
    let server = serve(artifacts(Access::Token("user", "hunter2")));
    let w = workspace(&server, &PROVIDER.replace("~> 1.0", "1.0.0"));
    w.write(
        "../home/.terraformrc",
        &login(&server, "  username = \"user\"\n  password = \"hunter2\""),
    );
    let template = format!("-oci-mirror={}/p/{{namespace}}/{{type}}", server.host());
    let ours = format!("-platform={}", platform());
    w.run(&["providers", "lock", &template, &ours, "-platform=plan9_mips"])
        .ok();
    let lock = w.read(".terraform.lock.hcl");
    assert_eq!(
        (lock.matches("h1:").count(), lock.matches("zh:").count()),
        (2, 0),
        "{lock}"
    );
    let two = PROVIDER.replace(
        "    anvil = {",
        "    hammer = {\n      source = \"example.com/acme/hammer\"\n    }\n    anvil = {",
    );
    let one_for_all = format!("-oci-mirror={}/p/acme/anvil", server.host());
    workspace(&server, &two)
        .run(&["providers", "lock", &one_for_all])
        .fails_with(&["both for", "Use more placeholders"]);
}

#[test]
fn what_is_not_a_provider_or_not_what_its_digest_says_is_refused() {
    let mut mixed = artifacts(Access::Open);
    mixed.module("p/acme/anvil", "1.5.0", &anvil("x"));
    mirrored(&serve(mixed), "", PROVIDER)
        .run(&["init"])
        .fails_with(&["it is a module package, and not a provider"]);
    for (media_type, why) in [
        ("archive/zip", "was expected: it was damaged on its way"),
        ("application/vnd.oci.image.manifest.v1+json", "not what its digest says"),
    ] {
        let mut damaged = artifacts(Access::Open);
        damaged.damage(media_type);
        let server = serve(damaged);
        let w = mirrored(&server, "", PROVIDER);
        w.run(&["init"]).fails_with(&[why]);
        assert!(!w.exists(".terraform/providers/example.com"), "nothing is installed");
    }
}

#[test]
fn answers_of_another_form_are_explained_in_words() {
    for (ending, answer, why) in [
        (
            "/tags/list",
            r#"{"tags": 3}"#,
            "a list is expected here, and not the number 3",
        ),
        ("/manifests/", r#"{"manifests": ["#, "the text ends too early"),
    ] {
        let artifacts = artifacts(Access::Open);
        let server = Server::https(move |request| match request.path().contains(ending) {
            true => Reply::json(answer),
            false => artifacts.answer(request, ""),
        });
        mirrored(&server, "", PROVIDER).run(&["init"]).fails_with(&[why]);
    }
}

#[test]
fn modules_by_tag_and_digest() {
    let mut artifacts = artifacts(Access::Open);
    let digest = artifacts.module("m/net", "old", &module("old"));
    artifacts.provider("m/net", "provider", &[(&platform(), &anvil("x"))]);
    let server = serve(artifacts);
    let value = |source: &str| {
        let w = workspace(&server, &call(&format!("oci://{}/{source}", server.host())));
        w.run(&["init", "-no-color"]).ok();
        w.run(&["apply", "-auto-approve"]).ok();
        w.run(&["output", "-raw", "value"]).ok().stdout
    };
    assert_eq!(value("m/net"), "newest");
    assert_eq!(value("m/net?tag=1.0"), "one");
    assert_eq!(value(&format!("m/net?digest={digest}")), "old");
    assert_eq!(value("m/net//sub?tag=1.0"), "below");
    for (source, why) in [
        ("m/net?tag=none", "has no tag \"none\""),
        ("m/net?tag=1&tag=2", "either one \"tag\" or one \"digest\""),
        ("m/net?archive=zip", "\"archive\" is not for OCI registries"),
        ("M/net", "lower-case letters"),
        ("m/net?tag=provider", "it is a provider, and not a module package"),
        ("m/net//none", "none"),
    ] {
        let w = workspace(&server, &call(&format!("oci://{}/{source}", server.host())));
        w.run(&["init"]).fails_with(&[why]);
    }
}

#[test]
fn logins() {
    let password = "  username = \"user\"\n  password = \"hunter2\"";
    for access in [Access::Basic("user", "hunter2"), Access::Token("user", "hunter2")] {
        let server = serve(artifacts(access));
        let both = format!("{PROVIDER}{}", call(&format!("oci://{}/m/net", server.host())));
        let w = mirrored(&server, &login(&server, password), &both);
        w.run(&["init"]).ok();
        let wrong = login(&server, &password.replace("hunter2", "hunter3"));
        let refused = mirrored(&server, &wrong, &both).run(&["init"]);
        assert!(!refused.all().contains("hunter3"), "{}", refused.all());
        refused.fails_with(&["(401)", "are those of oci_credentials", "in the CLI configuration"]);
        mirrored(&server, "", &both)
            .run(&["init"])
            .fails_with(&["(401)", "a login may be missing", &server.host()]);

        // The credentials are those that container tools have stored.
        let w = mirrored(&server, "", &both);
        let stored = format!(
            "{{\"auths\": {{\"{}\": {{\"auth\": \"dXNlcjpodW50ZXIy\"}}}}}}",
            server.host()
        );
        w.write("../home/.docker/config.json", &stored);
        w.run(&["init"]).ok();
        let ambient = "oci_default_credentials {\n  discover_ambient_credentials = false\n}\n";
        let w = mirrored(&server, ambient, &both);
        w.write("../home/.docker/config.json", &stored);
        w.run(&["init"]).fails_with(&["(401)"]);
    }
}

#[test]
#[cfg(unix)]
fn tokens_and_helpers() {
    use std::os::unix::fs::PermissionsExt as _;

    let server = serve(artifacts(Access::Token("user", "hunter2")));
    let access = login(&server, "  access_token = \"open-sesame\"");
    mirrored(&server, &access, PROVIDER).run(&["init"]).ok();
    let expired = "  access_token = \"expired\"\n  refresh_token = \"hunter2\"";
    mirrored(&server, &login(&server, expired), PROVIDER)
        .run(&["init"])
        .ok();

    let helped = login(&server, "  docker_credentials_helper = \"test\"");
    let w = mirrored(&server, &helped, PROVIDER);
    let program = "#!/bin/sh\nread -r host\n[ \"$1\" = get ] || exit 1\necho \"{\\\"ServerURL\\\": \\\"$host\\\", \\\"Username\\\": \
                   \\\"user\\\", \\\"Secret\\\": \\\"hunter2\\\"}\"\n";
    w.write("../bin/docker-credential-test", program);
    let bin = w.dir().join("../bin");
    std::fs::set_permissions(
        bin.join("docker-credential-test"),
        std::fs::Permissions::from_mode(0o755),
    )
    .unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let w = w.env("PATH", path);
    w.run(&["init"]).ok();
    let absent = helped.replace("\"test\"", "\"absent\"");
    mirrored(&server, &absent, PROVIDER)
        .run(&["init"])
        .fails_with(&["docker-credential-absent", "no such program on the PATH"]);
}

/// Tests Debian's registry server, with uploaded artifacts.
#[test]
fn a_real_registry() {
    const TEST: &str = "oci::a_real_registry";
    let (Some(registry), Some(curl)) = (support::needs("docker-registry", TEST), support::needs("curl", TEST)) else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(at("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(at("key.pem"), made.signing_key.serialize_pem()).unwrap();
    let reserved = support::ports::ServerPort::reserve();
    let host = format!("127.0.0.1:{}", reserved.number());
    let config = format!(
        "version: 0.1\nstorage:\n  filesystem:\n    rootdirectory: {0}/data\nhttp:\n  addr: {host}\n  tls:\n    certificate: \
         {0}/cert.pem\n    key: {0}/key.pem\n",
        dir.path().display()
    );
    std::fs::write(at("config.yml"), config).unwrap();
    let child = std::process::Command::new(registry)
        .arg("serve")
        .arg(at("config.yml"))
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let _running = Running(child);
    let send = |method: &str, path: &str, kind: &str, content: &[u8]| {
        std::fs::write(at("body"), content).unwrap();
        let output = std::process::Command::new(&curl)
            .args([
                "-sS",
                "-D",
                "-",
                "-o",
                "/dev/null",
                "--retry",
                "40",
                "--retry-connrefused",
                "--retry-delay",
                "1",
                "--cacert",
            ])
            .arg(at("cert.pem"))
            .args(["-X", method, "-H", &format!("Content-Type: {kind}"), "--data-binary"])
            .arg(format!("@{}", at("body").display()))
            .arg(if path.starts_with("https:") {
                path.to_owned()
            } else {
                format!("https://{host}{path}")
            })
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    for upload in artifacts(Access::Open).uploads() {
        let (repository, reference) = (&upload.repository, &upload.reference);
        let answer = if upload.manifest {
            let path = format!("/v2/{repository}/manifests/{reference}");
            send("PUT", &path, &upload.media_type, &upload.content)
        } else {
            let begun = send("POST", &format!("/v2/{repository}/blobs/uploads/"), "text/plain", b"");
            let location = begun.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("location").then(|| value.trim().to_owned())
            });
            let location = location.unwrap_or_else(|| panic!("{begun}"));
            let joint = if location.contains('?') { '&' } else { '?' };
            let path = format!("{location}{joint}digest={reference}");
            send("PUT", &path, "application/octet-stream", &upload.content)
        };
        assert!(answer.contains("201 "), "{repository} {reference}: {answer}");
    }
    let w = Workspace::with(&[(
        "main.tf",
        &format!("{PROVIDER}{}", call(&format!("oci://{host}/m/net?tag=1.0"))),
    )]);
    let config = format!(
        "provider_installation {{\n  oci_mirror {{\n    repository_template = \"{host}/p/${{namespace}}/${{type}}\"\n    include = \
         [\"example.com/*/*\"]\n  }}\n}}\n"
    );
    w.write("../home/.terraformrc", &config);
    let w = w.env("SSL_CERT_FILE", at("cert.pem").to_string_lossy());
    let init = w.run(&["init", "-no-color"]).ok();
    assert!(
        init.stdout
            .contains("- Installed example.com/acme/anvil v1.1.0+linux.2 (verified checksum)\n"),
        "{}",
        init.all()
    );
    assert!(w.read(".terraform/modules/m/main.tf").contains("\"one\""));
}

struct Running(std::process::Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
