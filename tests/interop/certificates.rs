//! Keys, requests and certificates of the built-in `tls` provider, checked by OpenSSL and OpenSSH.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use support::ports::ServerPort;
use support::server::{Reply, Server};
use support::{Ran, Workspace, lean};

const KEYS: &str = r#"
locals {
  keys = {
    rsa     = { algorithm = "RSA" }
    odd     = { algorithm = "RSA", rsa_bits = 1536 }
    p224    = { algorithm = "ECDSA" }
    p256    = { algorithm = "ECDSA", ecdsa_curve = "P256" }
    p384    = { algorithm = "ECDSA", ecdsa_curve = "P384" }
    p521    = { algorithm = "ECDSA", ecdsa_curve = "P521" }
    ed25519 = { algorithm = "ED25519" }
  }
}

resource "tls_private_key" "key" {
  for_each    = local.keys
  algorithm   = each.value.algorithm
  rsa_bits    = lookup(each.value, "rsa_bits", null)
  ecdsa_curve = lookup(each.value, "ecdsa_curve", null)
}

output "keys" {
  value     = tls_private_key.key
  sensitive = true
}
"#;

const CHAINS: &str = r#"
resource "tls_self_signed_cert" "root" {
  for_each              = local.keys
  private_key_pem       = tls_private_key.key[each.key].private_key_pem
  validity_period_hours = 24
  is_ca_certificate     = true
  max_path_length       = 1
  allowed_uses          = ["cert_signing", "crl_signing"]
  subject {
    common_name  = "Root ${each.key}"
    organization = "Örg & Co"
  }
}

resource "tls_cert_request" "middle" {
  for_each        = local.keys
  private_key_pem = tls_private_key.key["p384"].private_key_pem
  subject {
    common_name = "Middle"
  }
}

resource "tls_locally_signed_cert" "middle" {
  for_each              = local.keys
  ca_private_key_pem    = tls_private_key.key[each.key].private_key_pem_pkcs8
  ca_cert_pem           = tls_self_signed_cert.root[each.key].cert_pem
  cert_request_pem      = tls_cert_request.middle[each.key].cert_request_pem
  validity_period_hours = 23
  is_ca_certificate     = true
  max_path_length       = 0
  allowed_uses          = ["cert_signing"]
}

resource "tls_cert_request" "leaf" {
  for_each        = local.keys
  private_key_pem = tls_private_key.key[each.key].private_key_pem
  dns_names       = ["localhost", "*.example.com"]
  ip_addresses    = ["127.0.0.1", "2001:db8::1"]
  uris            = ["spiffe://example.org/leaf"]
  subject {
    common_name         = "leaf"
    organizational_unit = "Unit"
    street_address      = ["Second Street 2", "Alley 1"]
    country             = "DE"
    email_address       = "leaf@example.org"
  }
}

resource "tls_locally_signed_cert" "leaf" {
  for_each              = local.keys
  ca_private_key_pem    = tls_private_key.key["p384"].private_key_pem
  ca_cert_pem           = tls_locally_signed_cert.middle[each.key].cert_pem
  cert_request_pem      = tls_cert_request.leaf[each.key].cert_request_pem
  validity_period_hours = 2
  set_subject_key_id    = true
  allowed_uses          = ["digital_signature", "key_encipherment", "server_auth"]
}

output "chains" {
  value = {
    for name, _ in local.keys : name => {
      root    = tls_self_signed_cert.root[name].cert_pem
      middle  = tls_locally_signed_cert.middle[name].cert_pem
      leaf    = tls_locally_signed_cert.leaf[name].cert_pem
      request = tls_cert_request.leaf[name].cert_request_pem
    }
  }
}
"#;

fn applied(config: &str) -> (Workspace, Value) {
    let w = Workspace::with(&[("main.tf", config)]);
    w.run_program(lean(), &["apply", "-no-color", "-auto-approve"]).ok();
    w.run_program(lean(), &["plan", "-no-color", "-detailed-exitcode"]).ok();
    let outputs = w.run_program(lean(), &["output", "-json"]).ok().json();
    (w, outputs)
}

fn keys(w: &Value) -> impl Iterator<Item = (&String, &Value)> {
    w["keys"]["value"].as_object().expect("keys").iter()
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_else(|| panic!("{name} is no text"))
}

/// Writes a secret that only the owner can read, as OpenSSH requires.
fn write_secret(w: &Workspace, name: &str, content: &str) {
    use std::os::unix::fs::PermissionsExt;
    w.write(name, content);
    let path = w.dir().join(name);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).expect("permissions");
}

fn openssl(w: &Workspace, args: &[&str]) -> Ran {
    w.run_program("openssl", args).ok()
}

pub fn openssl_reads_every_form_of_a_key() {
    let (w, outputs) = applied(KEYS);
    for (name, key) in keys(&outputs) {
        let public = text(key, "public_key_pem");
        for form in ["private_key_pem", "private_key_pem_pkcs8"] {
            write_secret(&w, "key.pem", text(key, form));
            openssl(&w, &["pkey", "-in", "key.pem", "-check", "-noout"]).shows(&["Key is valid"]);
            let derived = openssl(&w, &["pkey", "-in", "key.pem", "-pubout"]).stdout;
            assert_eq!(derived, public, "{name} {form}");
        }
        // OpenSSL writes each form exactly as the provider does.
        let rewritten = openssl(&w, &["pkcs8", "-topk8", "-nocrypt", "-in", "key.pem"]).stdout;
        assert_eq!(rewritten, text(key, "private_key_pem_pkcs8"), "{name}");
        let kind = match name.as_str() {
            "ed25519" => continue,
            "rsa" | "odd" => "rsa",
            _ => "ec",
        };
        let args = [
            &[kind, "-in", "key.pem"][..],
            if kind == "rsa" { &["-traditional"] } else { &[] },
        ]
        .concat();
        assert_eq!(openssl(&w, &args).stdout, text(key, "private_key_pem"), "{name}");
    }
}

pub fn ssh_keygen_reads_every_key_it_knows() {
    let (w, outputs) = applied(KEYS);
    for (name, key) in keys(&outputs) {
        if name == "p224" {
            for form in [
                "private_key_openssh",
                "public_key_openssh",
                "public_key_fingerprint_sha256",
            ] {
                assert_eq!(text(key, form), "", "{form}");
            }
            continue;
        }
        write_secret(&w, "key", text(key, "private_key_openssh"));
        w.write("key.pub", text(key, "public_key_openssh"));
        let keygen = |args: &[&str]| w.run_program("ssh-keygen", args).ok().stdout;
        assert_eq!(
            keygen(&["-y", "-f", "key"]).trim(),
            text(key, "public_key_openssh").trim(),
            "{name}"
        );
        let shown = keygen(&["-l", "-E", "sha256", "-f", "key.pub"]);
        assert_eq!(
            shown.split(' ').nth(1),
            Some(text(key, "public_key_fingerprint_sha256")),
            "{name}"
        );
        let shown = keygen(&["-l", "-E", "md5", "-f", "key.pub"]);
        let md5 = format!("MD5:{}", text(key, "public_key_fingerprint_md5"));
        assert_eq!(shown.split(' ').nth(1), Some(md5.as_str()), "{name}");
        // The private key is able to sign, too.
        w.write("message", "words");
        let _ = std::fs::remove_file(w.dir().join("message.sig"));
        keygen(&["-q", "-Y", "sign", "-f", "key", "-n", "test", "message"]);
        w.write("signers", &format!("me {}", text(key, "public_key_openssh")));
        let mut verify = w.command("ssh-keygen");
        verify.args([
            "-Y",
            "verify",
            "-f",
            "signers",
            "-I",
            "me",
            "-n",
            "test",
            "-s",
            "message.sig",
        ]);
        verify.stdin(std::fs::File::open(w.dir().join("message")).expect("the message"));
        support::ran(verify.output().expect("ssh-keygen runs")).ok();
    }
}

pub fn openssl_verifies_requests_and_chains() {
    let (w, outputs) = applied(&[KEYS, CHAINS].concat());
    for (name, chain) in outputs["chains"]["value"].as_object().expect("chains") {
        for part in ["root", "middle", "leaf", "request"] {
            w.write(&format!("{part}.pem"), text(chain, part));
        }
        openssl(&w, &["req", "-in", "request.pem", "-verify", "-noout"]);
        let strict = ["-x509_strict", "-CAfile", "root.pem", "-untrusted", "middle.pem"];
        let purpose = ["-purpose", "sslserver", "-verify_hostname", "a.example.com", "leaf.pem"];
        let verified = openssl(&w, &[&["verify"], &strict[..], &purpose].concat());
        assert_eq!(verified.stdout.trim(), "leaf.pem: OK", "{name}");
        // The intermediate authority may not sign other authorities: its path length is 0.
        openssl(&w, &["x509", "-in", "middle.pem", "-noout", "-text"]).shows(&["CA:TRUE, pathlen:0"]);

        let shown = openssl(
            &w,
            &["x509", "-in", "leaf.pem", "-noout", "-text", "-nameopt", "RFC2253"],
        );
        shown.shows(&[
            "Version: 3 (0x2)",
            "Issuer: CN=Middle\n",
            "Subject: CN=leaf,OU=Unit,street=Second Street 2+street=Alley 1,C=DE\n",
            "X509v3 Key Usage: critical\n                Digital Signature, Key Encipherment\n",
            "TLS Web Server Authentication",
            "X509v3 Basic Constraints: critical\n                CA:FALSE\n",
            "DNS:localhost, DNS:*.example.com, IP Address:127.0.0.1, IP Address:2001:DB8:0:0:0:0:0:1, \
             URI:spiffe://example.org/leaf",
        ]);
        let request = openssl(
            &w,
            &["req", "-in", "request.pem", "-noout", "-subject", "-nameopt", "RFC2253"],
        );
        request.shows(&["emailAddress=leaf@example.org"]);
    }
}

const OTHERS: &str = r#"
data "tls_public_key" "pem" {
  for_each        = fileset(path.module, "*.key")
  private_key_pem = file(each.key)
}

data "tls_public_key" "openssh" {
  for_each            = fileset(path.module, "*.ssh")
  private_key_openssh = file(each.key)
}

resource "tls_cert_request" "theirs" {
  for_each        = fileset(path.module, "*.key")
  private_key_pem = file(each.key)
}

resource "tls_locally_signed_cert" "theirs" {
  ca_private_key_pem    = file("rsa.key")
  ca_cert_pem           = file("ca.crt")
  cert_request_pem      = file("request.csr")
  validity_period_hours = 1
  allowed_uses          = ["server_auth"]
}

data "tls_certificate" "ca" {
  content = file("ca.crt")
}

output "all" {
  value = {
    pem     = { for name, key in data.tls_public_key.pem : name => key.public_key_pem }
    openssh = { for name, key in data.tls_public_key.openssh : name => key.public_key_openssh }
    request = { for name, request in tls_cert_request.theirs : name => request.cert_request_pem }
    leaf    = tls_locally_signed_cert.theirs.cert_pem
    ca      = data.tls_certificate.ca.certificates[0]
  }
  sensitive = true
}
"#;

pub fn keys_of_others_are_used() {
    let w = Workspace::with(&[("main.tf", OTHERS)]);
    openssl(&w, &["genrsa", "-traditional", "-out", "rsa.key", "2048"]);
    for curve in ["secp224r1", "prime256v1", "secp521r1"] {
        let file = format!("{curve}.key");
        openssl(&w, &["ecparam", "-name", curve, "-genkey", "-noout", "-out", &file]);
    }
    openssl(&w, &["genpkey", "-algorithm", "ED25519", "-out", "ed25519.key"]);
    for kind in ["rsa", "ecdsa", "ed25519"] {
        let file = format!("{kind}.ssh");
        let args = ["-q", "-t", kind, "-N", "", "-C", "a comment", "-f", &file];
        w.run_program("ssh-keygen", &args).ok();
    }
    let subject = ["-subj", "/O=Their #1/CN= Their CA, Inc./emailAddress=ca@example.org"];
    openssl(
        &w,
        &[
            &["req", "-x509", "-key", "rsa.key", "-days", "3", "-out", "ca.crt"],
            &subject[..],
        ]
        .concat(),
    );
    let names = [
        "-addext",
        "subjectAltName=DNS:theirs.example,email:a@example.org,IP:10.0.0.1",
    ];
    let request = [
        "req",
        "-new",
        "-key",
        "secp224r1.key",
        "-subj",
        "/CN=theirs",
        "-out",
        "request.csr",
    ];
    openssl(&w, &[&request[..], &names].concat());

    w.run_program(lean(), &["apply", "-no-color", "-auto-approve"]).ok();
    let outputs = w.run_program(lean(), &["output", "-json"]).ok().json();
    let all = &outputs["all"]["value"];
    let pem = all["pem"].as_object().expect("keys");
    assert_eq!(pem.len(), 5);
    for (file, public) in pem {
        assert_eq!(
            openssl(&w, &["pkey", "-in", file, "-pubout"]).stdout,
            public.as_str().expect("text"),
            "{file}"
        );
        w.write("theirs.csr", text(&all["request"], file));
        openssl(&w, &["req", "-in", "theirs.csr", "-verify", "-noout"]);
    }
    for (file, public) in all["openssh"].as_object().expect("keys") {
        let expected = w.read(&format!("{file}.pub"));
        let public = public.as_str().expect("text").trim();
        assert_eq!(expected.trim().strip_suffix(" a comment"), Some(public), "{file}");
    }
    w.write("leaf.pem", text(all, "leaf"));
    openssl(&w, &["verify", "-CAfile", "ca.crt", "leaf.pem"]);
    openssl(&w, &["x509", "-in", "leaf.pem", "-noout", "-text"]).shows(&[
        "DNS:theirs.example, IP Address:10.0.0.1\n",
        "X509v3 Authority Key Identifier",
    ]);
    assert_eq!(
        text(&all["ca"], "subject"),
        "CN=\\ Their CA\\, Inc.,O=Their #1,1.2.840.113549.1.9.1=#0c0e6361406578616d706c652e6f7267"
    );
    let shown = openssl(&w, &["x509", "-in", "ca.crt", "-noout", "-fingerprint", "-sha1"]).stdout;
    let shown = shown
        .trim()
        .rsplit('=')
        .next()
        .expect("a fingerprint")
        .replace(':', "")
        .to_lowercase();
    assert_eq!(text(&all["ca"], "sha1_fingerprint"), shown);
}

/// A process that is killed when this value is dropped.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn a_server_shows_its_chain() {
    let (w, outputs) = applied(&[KEYS, CHAINS].concat());
    let (chain, key) = (&outputs["chains"]["value"]["p256"], &outputs["keys"]["value"]["p256"]);
    w.write("root.pem", text(chain, "root"));
    w.write("leaf.pem", text(chain, "leaf"));
    w.write("middle.pem", text(chain, "middle"));
    w.write("other.pem", text(&outputs["chains"]["value"]["rsa"], "root"));
    write_secret(&w, "key.pem", text(key, "private_key_pem"));
    let reserved = ServerPort::reserve();
    let port = reserved.number();
    let mut server = w.command("openssl");
    server
        .args(["s_server", "-www", "-accept", &format!("127.0.0.1:{port}")])
        .args(["-cert", "leaf.pem", "-key", "key.pem", "-cert_chain", "middle.pem"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let _server = Program(server.spawn().expect("openssl starts"));
    let patience = Instant::now() + Duration::from_secs(10);
    while std::net::TcpStream::connect(format!("127.0.0.1:{port}")).is_err() {
        assert!(Instant::now() < patience, "the server does not answer");
        std::thread::sleep(Duration::from_millis(20));
    }

    // The root is trusted, and so is the server's own certificate.
    for (roots, verify, fine) in [
        ("root.pem", true, true),
        ("leaf.pem", true, true),
        ("other.pem", true, false),
        ("other.pem", false, true),
    ] {
        let fetched = fetched(&format!("tls://localhost:{port}"), verify, &w.read(roots));
        let Ok(fetched) = fetched else {
            assert!(!fine, "{roots} {verify}");
            continue;
        };
        assert_eq!(
            fetched,
            [text(chain, "middle"), text(chain, "leaf")],
            "{roots} {verify}"
        );
    }
}

/// Returns the certificates of a server, its own last, for a client with these roots. Returns an error if the client
/// does not trust the server.
fn fetched(url: &str, verify: bool, roots: &str) -> Result<Vec<String>, ()> {
    let config = format!(
        "data \"tls_certificate\" \"c\" {{\n  url = \"{url}\"\n  verify_chain = {verify}\n}}\n\
         output \"pem\" {{\n  value = data.tls_certificate.c.certificates[*].cert_pem\n}}\n"
    );
    let w = Workspace::with(&[("main.tf", config.as_str()), ("roots.pem", roots)]);
    let trusted = w.dir().join("roots.pem").display().to_string();
    let w = w.env("SSL_CERT_FILE", trusted);
    let ran = w.run_program(lean(), &["apply", "-no-color", "-auto-approve"]);
    if ran.status != 0 {
        ran.fails_with(&["Failed to identify fetch peer certificates", " is not signed "]);
        return Err(());
    }
    let shown = w.run_program(lean(), &["output", "-json", "pem"]).ok().json();
    let shown = shown.as_array().expect("a list").iter();
    Ok(shown.map(|pem| pem.as_str().expect("text").to_owned()).collect())
}

pub fn a_web_server_that_redirects() {
    let last = Server::https(|request| match request.line.starts_with("HEAD") {
        true => Reply::status(405),
        false => Reply::ok("words"),
    });
    let there = last.url("/there");
    let first = Server::https(move |_| Reply::redirect(&there));
    let both = format!("{}{}", first.certificate, last.certificate);
    let url = first.url("/here");
    // The certificate is that of the redirect's target, whatever its status is.
    assert_eq!(fetched(&url, true, &both), Ok(vec![last.certificate.clone()]));
    assert_eq!(last.requests(), ["HEAD /there"]);
    assert_eq!(
        fetched(&url, false, &first.certificate),
        Ok(vec![last.certificate.clone()])
    );
    // Every server in a chain of redirects must be trusted.
    assert_eq!(fetched(&url, true, &last.certificate), Err(()));
    assert_eq!(fetched(&url, true, &first.certificate), Err(()));
}
