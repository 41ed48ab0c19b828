//! `providers serve`: a mirror directory and a pack, served as a network mirror and as a registry to Monoform and
//! Terraform.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use support::registry::{platform, zip};
use support::serving::{Serving, certificate, connect_from};
use support::{Ran, Workspace};

/// Configuration with a provider that can be run: a copy of this program, which serves the plugin that its file name
/// selects.
const MAIN: &str = "terraform {
  required_providers {
    null = {
      source  = \"example.com/acme/null\"
      version = \"~> 3.0\"
    }
  }
}

resource \"null_resource\" \"a\" {
}
";

/// Returns a machine with a certificate and a mirror that has one package unpacked and one as an archive.
fn machine() -> Workspace {
    let (certificate, key) = certificate();
    let w = Workspace::with(&[("main.tf", MAIN), ("cert.pem", &certificate), ("key.pem", &key)]);
    let base = w.dir().join("mirror/example.com/acme");
    let unpacked = base.join("null/3.2.3").join(platform());
    std::fs::create_dir_all(&unpacked).expect("a directory");
    std::fs::copy(support::lean(), unpacked.join("terraform-provider-null_v3.2.3")).expect("a copy");
    std::fs::create_dir_all(base.join("anvil")).expect("a directory");
    let archive = zip(&[("terraform-provider-anvil_v1.4.0", b"packed")]);
    let name = format!("terraform-provider-anvil_1.4.0_{}.zip", platform());
    std::fs::write(base.join("anvil").join(name), archive).expect("written");
    w
}

const TLS: [&str; 2] = ["-tls-cert=cert.pem", "-tls-key=key.pem"];

/// Returns a machine that installs from the server and trusts its certificate.
fn client(server: &Workspace, main: &str, cli_config: &str) -> Workspace {
    let w = Workspace::with(&[("main.tf", main), ("../home/.terraformrc", cli_config)]);
    let roots = server.dir().join("cert.pem");
    w.env("SSL_CERT_FILE", roots.to_string_lossy())
}

fn registry(host: &str) -> String {
    format!(
        "host \"example.com\" {{\n  services = {{\n    \"providers.v1\" = \"https://{host}/registry/example.com/v1/providers/\"\n  }}\n}}\n"
    )
}

/// Installs and runs the provider with Monoform and, if it is installed, with Terraform. Returns the lock files.
fn installs(server: &Workspace, cli_config: &str, how: &str) -> Vec<String> {
    let apply = ["apply", "-no-color", "-auto-approve"];
    let w = client(server, MAIN, cli_config);
    w.run(&["init", "-no-color"])
        .ok()
        .shows(&["example.com/acme/null v3.", how]);
    w.run(&apply).ok().shows(&["1 added"]);
    let mut locks = vec![w.read(".terraform.lock.hcl")];
    if support::needs("terraform", "providers_are_served_to_terraform").is_some() {
        let w = client(server, MAIN, cli_config);
        w.terraform(&["init", "-no-color"])
            .ok()
            .shows(&["Installed example.com/acme/null v3.", how]);
        w.terraform(&apply).ok().shows(&["1 added"]);
        locks.push(w.read(".terraform.lock.hcl"));
    }
    locks
}

#[test]
fn a_mirror_directory_is_served_as_a_network_mirror_and_as_a_registry() {
    let a = machine();
    let serving = Serving::start(&a, &[TLS[0], TLS[1], "mirror"]);
    installs(&a, &serving.network_mirror(), "verified checksum");
    installs(&a, &registry(&serving.host), "self-signed");
    // Archives are served unchanged, by the mirror and by the registry.
    let host = &serving.host;
    let anvil = "terraform {\n  required_providers {\n    anvil = {\n      source = \"example.com/acme/anvil\"\n    }\n  }\n}\n";
    let w = client(&a, anvil, &serving.network_mirror());
    w.run(&["init", "-no-color"]).ok();
    let archive = a.dir().join("mirror/example.com/acme/anvil");
    let archive = std::fs::read(archive.join(format!("terraform-provider-anvil_1.4.0_{}.zip", platform())));
    let sum = support::registry::sha256(&archive.expect("read"));
    let w = client(&a, anvil, &registry(host));
    w.run(&["init", "-no-color"]).ok();
    assert!(w.read(".terraform.lock.hcl").contains(&format!("zh:{sum}")));
    // Packages that are added later are served, too.
    let newer = a.dir().join("mirror/example.com/acme/null/3.3.0").join(platform());
    std::fs::create_dir_all(&newer).expect("a directory");
    std::fs::write(newer.join("terraform-provider-null_v3.3.0"), "newer").expect("written");
    let w = client(&a, MAIN, &serving.network_mirror());
    w.run(&["init", "-no-color"]).ok().shows(&["null v3.3.0"]);
    let missing = anvil.replace("anvil", "rocket");
    client(&a, &missing, &serving.network_mirror())
        .run(&["init"])
        .fails_with(&["acme/rocket"]);
    let log = serving.end();
    let line = "GET /providers/example.com/acme/null/index.json 200 ";
    assert!(log.contains(line), "{log}");
    assert!(
        log.contains("GET /providers/example.com/acme/rocket/index.json 404 "),
        "{log}"
    );
}

#[test]
fn packages_whose_programs_are_links_are_served() {
    let a = machine();
    let program = a.dir().join("program");
    std::fs::copy(support::lean(), &program).expect("a copy");
    a.run_program(&program, &["internal-plugin", "link", "links"]).ok();
    let links = a.dir().join("links");
    std::fs::create_dir_all(links.join("example.com")).expect("a directory");
    let of_vendor = links.join("registry.terraform.io/hashicorp");
    std::fs::rename(of_vendor, links.join("example.com/acme")).expect("renamed");
    let serving = Serving::start(&a, &[TLS[0], TLS[1], "links"]);
    assert!(!serving.said.contains("Warning"), "{}", serving.said);
    let locks = installs(&a, &serving.network_mirror(), "verified checksum");
    installs(&a, &registry(&serving.host), "self-signed");
    // The lock file has the checksums that a machine records when it uses the directory itself.
    let directory = format!(
        "provider_installation {{\n  filesystem_mirror {{\n    path = \"{}\"\n  }}\n}}\n",
        links.display()
    );
    for lock in &locks {
        let w = client(&a, MAIN, &directory);
        w.write(".terraform.lock.hcl", lock);
        w.run(&["init", "-no-color", "-lockfile=readonly"]).ok();
    }
    // The program is replaced while it is served, and neither the link nor its directory changes.
    let newer = a.dir().join("newer");
    std::fs::copy(support::lean(), &newer).expect("a copy");
    let mut file = std::fs::File::options().append(true).open(&newer).expect("opened");
    file.write_all(b"newer").expect("written");
    drop(file);
    std::fs::rename(&newer, &program).expect("renamed");
    let changed = installs(&a, &serving.network_mirror(), "verified checksum");
    assert_ne!(changed, locks);
    let log = serving.end();
    assert!(!log.contains(" 500 "), "{log}");
}

#[test]
fn packages_with_other_links_are_not_served_and_named() {
    let a = machine();
    a.write("secret.txt", "secret");
    let dir = |ty: &str| {
        a.dir()
            .join("mirror/example.com/acme")
            .join(ty)
            .join("1.0.0")
            .join(platform())
    };
    for (ty, link, target) in [
        ("beside", "LICENSE.txt", "secret.txt"),
        ("data", "terraform-provider-data_v1.0.0", "secret.txt"),
        ("gone", "terraform-provider-gone_v1.0.0", "no-such-program"),
    ] {
        std::fs::create_dir_all(dir(ty)).expect("a directory");
        std::os::unix::fs::symlink(a.dir().join(target), dir(ty).join(link)).expect("a link");
    }
    std::fs::write(dir("beside").join("terraform-provider-beside_v1.0.0"), "program").expect("written");
    let serving = Serving::start(&a, &["mirror"]);
    let said = support::words(&serving.said);
    for text in [
        "Packages are not served",
        "LICENSE.txt cannot be packed: it is a link that leads out of the package",
        "terraform-provider-data_v1.0.0 cannot be packed: it is a link",
        "terraform-provider-gone_v1.0.0 cannot be read",
        "Serving 2 providers",
    ] {
        assert!(said.contains(text), "{text}: {said}");
    }
    let status = |ty: &str, file: &str| {
        let path = format!("/providers/example.com/acme/{ty}/{file}");
        let answer = asked(&serving.host, &format!("GET {path}"));
        assert!(!answer.contains("secret"), "{answer}");
        answer.split(' ').nth(1).map(str::to_owned)
    };
    for ty in ["beside", "data", "gone"] {
        let archive = format!("terraform-provider-{ty}_1.0.0_{}.zip", platform());
        for file in ["index.json", "1.0.0.json", &archive] {
            assert_eq!(status(ty, file).as_deref(), Some("404"), "{ty} {file}");
        }
    }
    // The package is served after the directory is repaired.
    std::fs::remove_file(dir("beside").join("LICENSE.txt")).expect("removed");
    assert_eq!(status("beside", "1.0.0.json").as_deref(), Some("200"));
    serving.end();
}

#[test]
fn a_pack_is_served() {
    let a = machine();
    a.write("../home/.terraformrc", &support::only_from(&a.dir().join("mirror")));
    a.run_program(support::lean(), &["pack", "-no-color", "-out=site"]).ok();
    a.write("../home/.terraformrc", "");
    let serving = Serving::start(&a, &[TLS[0], TLS[1], "site"]);
    installs(&a, &serving.network_mirror(), "verified checksum");
    installs(&a, &registry(&serving.host), "self-signed");
    serving.end();
}

/// Sends a request as written, and returns the answer.
fn asked(host: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(host).expect("connected");
    write!(
        stream,
        "{request} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )
    .expect("sent");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn nothing_but_packages_is_served() {
    let a = machine();
    a.write("mirror/secret.json", "secret");
    a.write("secret.json", "secret");
    let serving = Serving::start(&a, &["mirror"]);
    let host = &serving.host;
    for (request, status) in [
        ("GET /providers/example.com/acme/null/index.json", 200),
        ("HEAD /providers/example.com/acme/null/index.json", 200),
        ("GET /.well-known/terraform.json", 200),
        ("GET /v1/providers/acme/null/versions", 404),
        ("GET /registry/example.com/v1/providers/acme/null/versions", 200),
        ("GET /providers/example.com/acme/null/3.2.3.json", 200),
        ("GET /providers/example.com/acme/null/9.9.9.json", 404),
        ("GET /providers/example.com/acme/../../../secret.json", 404),
        ("GET /providers/../mirror/secret.json", 404),
        ("GET /providers/example.com/acme/null/..%2F..%2Fsecret.json", 404),
        ("GET /../secret.json", 404),
        ("GET /secret.json", 404),
        ("GET /", 404),
        ("POST /providers/example.com/acme/null/index.json", 405),
        ("DELETE /providers/example.com/acme/null/3.2.3.json", 405),
    ] {
        let answer = asked(host, request);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{request}: {answer}"
        );
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        assert_eq!(body.is_empty(), request.starts_with("HEAD"), "{request}: {answer}");
        assert!(!answer.contains("secret"), "{request}: {answer}");
    }
    // A silent client prevents neither other clients from being served nor the server from ending.
    let silent: Vec<TcpStream> = (0..8).map(|_| TcpStream::connect(host).expect("connected")).collect();
    assert!(asked(host, "GET /.well-known/terraform.json").contains("providers.v1"));
    drop(silent);
    serving.end();
}

#[test]
fn readers_that_do_not_read_keep_nobody_out() {
    let a = machine();
    // The archive is too large for any buffer.
    let name = format!("terraform-provider-heavy_1.0.0_{}.zip", platform());
    let base = a.dir().join("mirror/example.com/acme/heavy");
    std::fs::create_dir_all(&base).expect("a directory");
    let content = vec![7; 32 << 20];
    let archive = zip(&[("terraform-provider-heavy_v1.0.0", &content)]);
    std::fs::write(base.join(&name), &archive).expect("written");
    let serving = Serving::start(&a, &["mirror"]);
    let host = &serving.host;
    let path = format!("/providers/example.com/acme/heavy/{name}");
    // Six clients take all available connections.
    let readers: Vec<TcpStream> = (10..16)
        .cycle()
        .take(320)
        .map(|last| {
            let mut stream = connect_from(last, host);
            write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").expect("sent");
            stream
        })
        .collect();
    // The server still serves one more connection of two of these clients, and one of a new client.
    for last in [10, 15, 1] {
        let mut stream = connect_from(last, host);
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        )
        .expect("sent");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("an answer");
        assert!(answer.starts_with(b"HTTP/1.1 200 ") && answer.ends_with(&archive[archive.len() - 100..]));
    }
    drop(readers);
    serving.end();
}

#[test]
fn servers_that_cannot_be_are_refused() {
    let a = machine();
    let run = |args: &[&str]| -> Ran { a.run(&[&["providers", "serve", "-no-color"], args].concat()) };
    run(&["-listen=nowhere", "mirror"]).fails_with(&["-listen", "127.0.0.1:8443"]);
    run(&["-tls-cert=cert.pem", "mirror"]).fails_with(&["-tls-cert and -tls-key need each other"]);
    run(&["-tls-cert=main.tf", "-tls-key=key.pem", "mirror"]).fails_with(&["main.tf has no certificate"]);
    run(&["-tls-cert=cert.pem", "-tls-key=main.tf", "mirror"]).fails_with(&["main.tf has no private key"]);
    run(&["missing"]).fails_with(&["missing cannot be read"]);
    run(&["main.tf"]).fails_with(&["carries no pack"]);
    run(&["mirror", "more"]).fails_with(&["only argument"]);
    let (_, other) = certificate();
    a.write("other.pem", &other);
    run(&["-tls-cert=cert.pem", "-tls-key=other.pem", "mirror"]).fails_with(&["cannot be used together"]);
}
