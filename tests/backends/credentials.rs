//! Selection of credentials by the stores, in tables. A row has an environment, files and arguments. It also has the expected requests,
//! which a fake cloud records, or the text of the expected error.
//!
//! Every row has its own cloud on this machine, and runs `init` once. Repeated requests are compared as one, because the number of
//! repetitions is not the subject of these tests.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der};
use aws_lc_rs::rsa::{KeyPair, KeySize};
use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD as BASE64, URL_SAFE_NO_PAD};
use libtest_mimic::Trial;
use serde_json::Value as Json;
use sha1::{Digest as _, Sha1};
use support::server::{Reply, Request, Server};
use support::{Workspace, needing, words};

use crate::lab::{Tool, run};
use crate::server::proxy;

/// Rows that share the store, its arguments and its cloud.
pub struct Table {
    /// Type of the backend.
    pub store: &'static str,
    /// Subject of the table, which is part of the tests' names.
    pub subject: &'static str,
    /// Arguments of every row.
    pub settings: &'static str,
    /// Variables of every row. A row can override their values.
    pub environment: Pairs,
    /// Names of the servers that are reached by name, with TLS, through a proxy.
    pub names: &'static [&'static str],
    /// Answers a request, and returns the line to record of it, if any.
    pub answer: fn(&Request) -> (Option<String>, Reply),
    /// Converts a recorded line of Terraform into the line that Monoform sends in its place.
    pub as_ours: fn(String) -> String,
    /// Rows of the table.
    pub rows: &'static [Row],
}

/// Names with values. Values, arguments and expected lines can contain these placeholders:
///
/// - `{url}`: the cloud's URL; `{host}`: its name and port.
/// - `{dir}`: the working directory; `{home}`: the home directory.
/// - `{pem}`: a private key; `{key}`: the same key, escaped as in JSON.
/// - `{sha1:TEXT}`: the checksum of a text.
pub type Pairs = &'static [(&'static str, &'static str)];

/// One case: the sources of credentials, and the expected requests or error.
pub struct Row {
    /// Name of the case.
    pub name: &'static str,
    /// Environment variables of the row.
    pub environment: Pairs,
    /// Files by path: below the home directory if the path begins with `~/`, else below the working directory. A file whose text begins
    /// with `#!` is executable.
    pub files: Pairs,
    /// Arguments in the block.
    pub block: &'static str,
    /// Recorded lines, in order.
    pub seen: &'static [&'static str],
    /// Texts in the error, if an error is expected.
    pub fails: &'static [&'static str],
    /// Expectation for Terraform.
    pub terraform: Terraform,
}

/// Expected behaviour of Terraform on the same row.
pub enum Terraform {
    /// The requests are the same as Terraform's, or both programs report an error.
    Same,
    /// Different behaviour: the reason, the recorded lines, and true if it succeeds.
    Differs(&'static str, &'static [&'static str], bool),
    /// Terraform is not run, for this reason.
    NotAsked(&'static str),
}

/// Default values of a row.
pub const ROW: Row = Row {
    name: "",
    environment: &[],
    files: &[],
    block: "",
    seen: &[],
    fails: &[],
    terraform: Terraform::Same,
};

/// Number of rows of a table that run at the same time: programs wait more than they compute.
const AT_ONCE: usize = 8;

/// Makes the tests of each table: one with this program and, if Terraform is asked in any row, one with Terraform.
pub fn trials(tables: &[&'static Table]) -> Vec<Trial> {
    let mut trials = Vec::new();
    for table in tables.iter().copied() {
        let trial = |name: String, tool: Tool| {
            Trial::test(name, move || {
                all(table, tool);
                Ok(())
            })
        };
        let name = format!("{}::credentials_of_{}", table.store, table.subject);
        let theirs = trial(format!("{name}_with_terraform"), Tool::Terraform);
        trials.push(trial(name, Tool::Monoform));
        if table
            .rows
            .iter()
            .any(|row| !matches!(row.terraform, Terraform::NotAsked(_)))
        {
            trials.push(needing(theirs, &["terraform"]));
        }
    }
    trials
}

/// Runs all rows of a table; fails with the names of those that differ from their expectation.
fn all(table: &'static Table, tool: Tool) {
    let asked = |row: &&Row| tool == Tool::Monoform || !matches!(row.terraform, Terraform::NotAsked(_));
    let rows: Vec<&'static Row> = table.rows.iter().filter(asked).collect();
    let next = AtomicUsize::new(0);
    let failed: Mutex<Vec<&str>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(row) = rows.get(next.fetch_add(1, Ordering::SeqCst)) {
                    if std::panic::catch_unwind(|| check(table, row, tool)).is_err() {
                        failed.lock().expect("no panic").push(row.name);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("no panic");
    assert!(failed.is_empty(), "rows that fail, as told above: {failed:?}");
}

/// A recording cloud for one row, and the working directory of the row.
struct Scene {
    server: Server,
    /// TLS server that requests for the real names of the cloud's servers reach through a proxy.
    _named: Option<Server>,
    seen: Arc<Mutex<Vec<String>>>,
    workspace: Workspace,
}

impl Scene {
    fn new(table: &'static Table, row: &Row) -> Scene {
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let record = |seen: Arc<Mutex<Vec<String>>>| {
            move |request: &Request| {
                let (line, reply) = (table.answer)(request);
                let mut seen = seen.lock().expect("no panic");
                if let Some(line) = line.filter(|line| !seen.contains(line)) {
                    seen.push(line);
                }
                reply
            }
        };
        let mut environment: Vec<(String, String)> = Vec::new();
        let workspace = Workspace::new();
        let named = (!table.names.is_empty()).then(|| Server::https_as(table.names, record(seen.clone())));
        if let Some(server) = &named {
            let port = server.host().rsplit(':').next().and_then(|port| port.parse().ok());
            let proxy = proxy(port.expect("a port"));
            workspace.write("cloud.pem", &server.certificate);
            let certificate = workspace.dir().join("cloud.pem").display().to_string();
            environment.push(("HTTPS_PROXY".to_owned(), format!("http://127.0.0.1:{proxy}")));
            environment.push(("SSL_CERT_FILE".to_owned(), certificate));
        }
        let mut scene = Scene {
            server: Server::http(record(seen.clone())),
            _named: named,
            seen,
            workspace,
        };
        for (name, value) in table.environment.iter().chain(row.environment) {
            environment.push(((*name).to_owned(), scene.expand(value)));
        }
        for (path, text) in row.files {
            scene.file(path, text);
        }
        let block = format!(
            "terraform {{\n  backend \"{}\" {{\n{}\n{}\n  }}\n}}\n",
            table.store,
            scene.expand(table.settings),
            scene.expand(row.block)
        );
        scene.workspace.write("main.tf", &block);
        for (name, value) in environment {
            scene.workspace = scene.workspace.env(&name, value);
        }
        scene
    }

    fn file(&self, path: &str, text: &str) {
        let path = match path.strip_prefix("~/") {
            Some(rest) => self.workspace.home().join(self.expand(rest)),
            None => self.workspace.dir().join(path),
        };
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, self.expand(text)).expect("a file");
        #[cfg(unix)]
        if text.starts_with("#!") {
            use std::os::unix::fs::PermissionsExt as _;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("permissions");
        }
    }

    fn expand(&self, text: &str) -> String {
        let mut text = text
            .replace("{url}", &self.server.url(""))
            .replace("{host}", &self.server.host())
            .replace("{dir}", &self.workspace.dir().display().to_string())
            .replace("{home}", &self.workspace.home().display().to_string());
        if text.contains("{pem}") {
            text = text.replace("{pem}", &key().0);
        }
        if text.contains("{key}") {
            text = text.replace("{key}", &key().0.replace('\n', "\\n"));
        }
        while let Some((before, rest)) = text.split_once("{sha1:") {
            let (inner, after) = rest.split_once('}').expect("an end of {sha1:");
            let sum: String = Sha1::digest(inner.as_bytes())
                .iter()
                .map(|b| format!("{b:02x}"))
                .collect();
            text = format!("{before}{sum}{after}");
        }
        text
    }
}

fn check(table: &'static Table, row: &Row, tool: Tool) {
    let scene = Scene::new(table, row);
    let ran = run(&scene.workspace, tool, &["init", "-input=false"]);
    let seen: Vec<String> = std::mem::take(&mut *scene.seen.lock().expect("no panic"));
    let name = row.name;
    let (expected, succeeds, difference) = match (&row.terraform, tool) {
        (Terraform::NotAsked(reason), Tool::Terraform) => panic!("{name} is not asked of it: {reason}"),
        (Terraform::Differs(reason, seen, succeeds), Tool::Terraform) => (*seen, *succeeds, *reason),
        _ => (row.seen, row.fails.is_empty(), ""),
    };
    let seen: Vec<String> = match tool {
        Tool::Monoform => seen,
        _ => seen.into_iter().map(table.as_ours).collect(),
    };
    let expected: Vec<String> = expected.iter().map(|line| scene.expand(line)).collect();
    assert_eq!(
        seen,
        expected,
        "{name}: what the cloud sees ({difference}). The program says:\n{}",
        ran.all()
    );
    if tool == Tool::Monoform && !row.fails.is_empty() {
        let texts: Vec<String> = row.fails.iter().map(|text| scene.expand(text)).collect();
        let all = words(&ran.all());
        assert_eq!(ran.status, 1, "{name}: {all}");
        for text in &texts {
            assert!(all.contains(&words(text)), "{name}: {text:?} is not in:\n{all}");
        }
        return;
    }
    assert_eq!(ran.status == 0, succeeds, "{name}: {difference}\n{}", ran.all());
}

/// An empty state.
pub const STATE: &str =
    "{\"version\":4,\"terraform_version\":\"1.11.4\",\"serial\":1,\"lineage\":\"l\",\"outputs\":{},\"resources\":[]}";

/// Returns the line unchanged: for tables in which both programs send the same.
pub fn same(line: String) -> String {
    line
}

/// Returns a private RSA key in PEM, and its public key.
pub fn key() -> &'static (String, Vec<u8>) {
    static KEY: OnceLock<(String, Vec<u8>)> = OnceLock::new();
    KEY.get_or_init(|| {
        let pair = KeyPair::generate(KeySize::Rsa2048).expect("a key");
        let private = AsDer::<Pkcs8V1Der<'_>>::as_der(&pair).expect("its bytes");
        let lines = BASE64.encode(private.as_ref());
        let pem = format!("-----BEGIN PRIVATE KEY-----\n{lines}\n-----END PRIVATE KEY-----\n");
        (pem, pair.public_key().as_ref().to_vec())
    })
}

/// Returns the header and the claims of a JWT if the key of [`key`] has signed it.
pub fn statement(text: &str) -> Option<(Json, Json)> {
    let (signed, signature) = text.rsplit_once('.')?;
    let (header, claims) = signed.split_once('.')?;
    let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, &key().1);
    public.verify(signed.as_bytes(), &signature).ok()?;
    let json = |part: &str| serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok();
    Some((json(header)?, json(claims)?))
}

/// Decodes the fields of a form, in their order.
pub fn form(body: &[u8]) -> Vec<(String, String)> {
    let text = String::from_utf8_lossy(body).replace('+', " ");
    let pairs = text.split('&').filter(|part| !part.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (support::server::decoded(name), support::server::decoded(value))
        })
        .collect()
}
