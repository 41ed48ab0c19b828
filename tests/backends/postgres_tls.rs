//! PostgreSQL with TLS: servers that each `sslmode` accepts, and clients that identify themselves by certificates. Terraform must have the
//! same results for each row of the table.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use support::{Workspace, which};

use crate::lab::{RESOURCE, Tool, run};
use crate::postgres::Server;

pub const TESTS: &[(&str, fn())] = &[("connections_are_as_safe_as_sslmode_says", modes)];

/// Access rules of the server (`pg_hba.conf`).
const RULES: &str = "hostssl all by_certificate 127.0.0.1/32 cert\nhostssl all me 127.0.0.1/32 trust\n";

/// A certificate authority.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Authority {
    fn new(name: &str) -> Authority {
        let key = KeyPair::generate().expect("a key");
        let mut parameters = CertificateParams::new(Vec::new()).expect("names");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.distinguished_name.push(DnType::CommonName, name);
        let pem = parameters.self_signed(&key).expect("a certificate").pem();
        Authority {
            issuer: Issuer::new(parameters, key),
            pem,
        }
    }

    /// Issues a certificate with this common name, for a server with these names, and writes it and its key.
    fn issue(&self, dir: &Path, file: &str, name: &str, hosts: &[&str]) {
        let key = KeyPair::generate().expect("a key");
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let mut parameters = CertificateParams::new(hosts).expect("names");
        parameters.distinguished_name.push(DnType::CommonName, name);
        let certificate = parameters.signed_by(&key, &self.issuer).expect("a certificate");
        private(&dir.join(format!("{file}.crt")), &certificate.pem());
        private(&dir.join(format!("{file}.key")), &key.serialize_pem());
    }
}

fn private(path: &Path, text: &str) {
    std::fs::write(path, text).expect("a file");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).expect("its mode");
}

/// A row of the table: the end of the connection string, and the error's text, if an error is expected.
type Row = (&'static str, Option<&'static str>);

const ROWS: &[Row] = &[
    ("me@127.0.0.1:PORT/DB?sslmode=require", None),
    ("me@127.0.0.1:PORT/DB", None),
    ("me@127.0.0.1:PORT/DB?sslmode=disable", Some("no pg_hba.conf entry")),
    (
        "me@localhost:PORT/DB?sslmode=verify-full&sslrootcert=FILES/ca.crt",
        None,
    ),
    (
        "me@127.0.0.1:PORT/DB?sslmode=verify-full&sslrootcert=FILES/ca.crt",
        Some("certificate not valid for name"),
    ),
    ("me@127.0.0.1:PORT/DB?sslmode=verify-ca&sslrootcert=FILES/ca.crt", None),
    (
        "me@127.0.0.1:PORT/DB?sslmode=verify-ca&sslrootcert=FILES/other.crt",
        Some("certificate"),
    ),
    // If an authority is set, `require` verifies the server, too.
    (
        "me@127.0.0.1:PORT/DB?sslmode=require&sslrootcert=FILES/other.crt",
        Some("certificate"),
    ),
    // No authority that the machine trusts has issued the certificate.
    ("me@localhost:PORT/DB?sslmode=verify-full", Some("certificate")),
    (
        "me@localhost:PORT/DB?sslmode=verify-full&sslrootcert=FILES/none.crt",
        Some("none.crt"),
    ),
    (
        "by_certificate@localhost:PORT/DB?sslmode=verify-full&sslrootcert=FILES/ca.crt&sslcert=FILES/client.crt&sslkey=\
         FILES/client.key",
        None,
    ),
    (
        "by_certificate@127.0.0.1:PORT/DB?sslmode=require",
        Some("connection requires a valid client certificate"),
    ),
    (
        "by_certificate@127.0.0.1:PORT/DB?sslmode=require&sslcert=FILES/stranger.crt&sslkey=FILES/stranger.key",
        Some("PostgreSQL"),
    ),
    (
        "by_certificate@127.0.0.1:PORT/DB?sslmode=require&sslcert=FILES/another.crt&sslkey=FILES/another.key",
        Some("certificate authentication failed for user"),
    ),
    (
        "by_certificate@127.0.0.1:PORT/DB?sslmode=require&sslcert=FILES/client.crt&sslkey=FILES/open.key",
        Some("chmod 600"),
    ),
];

fn modes() {
    let files = tempfile::tempdir().expect("a directory");
    let (own, other) = (Authority::new("own"), Authority::new("other"));
    let path = files.path();
    private(&path.join("ca.crt"), &own.pem);
    private(&path.join("other.crt"), &other.pem);
    own.issue(path, "client", "by_certificate", &[]);
    own.issue(path, "another", "another", &[]);
    other.issue(path, "stranger", "by_certificate", &[]);
    std::fs::copy(path.join("client.key"), path.join("open.key")).expect("a copy");
    std::fs::set_permissions(path.join("open.key"), std::fs::Permissions::from_mode(0o644)).expect("its mode");
    let server = Server::start_with(
        |data| {
            own.issue(data, "server", "server", &["localhost"]);
            private(&data.join("root.crt"), &own.pem);
            private(&data.join("pg_hba.conf"), RULES);
        },
        &["-c", "ssl=on", "-c", "ssl_ca_file=root.crt"],
    );
    assert!(
        server.sql("postgres", "CREATE ROLE by_certificate SUPERUSER LOGIN"),
        "a role"
    );
    assert!(server.sql("postgres", "CREATE DATABASE states"), "a database");
    for (text, wrong) in ROWS {
        let connection = text
            .replace("PORT", &server.port.to_string())
            .replace("DB", "states")
            .replace("FILES", &path.display().to_string());
        let block =
            format!("terraform {{\n  backend \"pg\" {{\n    conn_str = \"postgres://{connection}\"\n  }}\n}}\n");
        let w = Workspace::with(&[("main.tf", RESOURCE), ("backend.tf", &block)]);
        let init = run(&w, Tool::Monoform, &["init", "-input=false"]);
        match wrong {
            Some(wrong) => drop(init.fails_with(&["Error", wrong])),
            None => {
                assert_eq!(init.status, 0, "{text}: {}", init.all());
                run(&w, Tool::Monoform, &["apply", "-auto-approve"]).ok();
            }
        }
        if which("terraform").is_some() {
            let w = Workspace::with(&[("main.tf", RESOURCE), ("backend.tf", &block)]);
            let theirs = run(&w, Tool::Terraform, &["init", "-input=false"]);
            assert_eq!(theirs.status != 0, wrong.is_some(), "{text}: {}", theirs.all());
        }
    }
}
