//! Azure Storage, emulated by `azurite`, which verifies signatures. Both programs connect to the real name of the account's server, through
//! a proxy that forwards every connection to the emulator. Both trust only the emulator's own certificate.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use support::ports::ServerPort;

use crate::lab::{Lab, Tool, run};
use crate::server::{Server, Shared, proxy, shared};

pub const PROGRAMS: &[&str] = &["azurite-blob", "node"];

pub const TESTS: &[(&str, fn())] = &[
    ("blobs_have_the_names_and_properties_of_terraform", names),
    ("a_signed_address_is_enough", signed_address),
    ("errors_are_reported_with_a_remedy", advice),
];

const ACCOUNT: &str = "teststates";
/// Account key of the emulator: sixty-four bytes, no secret.
const KEY: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWYwMTIzNDU2Nzg5YWJjZGVmMDEyMzQ1Njc4OWFiY2RlZg==";

/// Script that sends a request with the account's key and prints the answer. Arguments: port, method, path with query.
const ASK: &str = r#"
const [port, method, target] = process.argv.slice(1);
const { createHmac } = require('crypto');
const [path, query] = target.split('?');
const headers = { 'x-ms-date': new Date().toUTCString(), 'x-ms-version': '2023-11-03' };
const parameters = (query || '').split('&').filter(Boolean).map((p) => p.replace('=', ':')).sort();
const own = Object.entries(headers).map(([k, v]) => k + ':' + v);
const text = [method, ...Array(11).fill(''), ...own, '/' + ACCOUNT + path, ...parameters].join('\n');
const sum = createHmac('sha256', Buffer.from(KEY, 'base64')).update(text).digest('base64');
headers.Authorization = 'SharedKey ' + ACCOUNT + ':' + sum;
headers.Host = ACCOUNT + '.blob.core.windows.net';
headers['Content-Length'] = 0;
require('https').request({ host: '127.0.0.1', port, method, path: target, headers, rejectUnauthorized: false }, (answer) => {
  console.log(answer.statusCode, JSON.stringify(answer.headers));
  answer.pipe(process.stdout);
}).end();
"#;

fn ask(server: &Server, method: &str, target: &str) -> String {
    let script = ASK
        .replace("ACCOUNT", &format!("'{ACCOUNT}'"))
        .replace("KEY", &format!("'{KEY}'"));
    let output = Command::new("node")
        .args(["-e", &script, "--", &server.port.to_string(), method, target])
        .output()
        .expect("node");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Writes a self-signed certificate and its key into a directory. The names in the certificate are those of Azure's
/// servers.
fn certificate(dir: &std::path::Path) {
    let key = rcgen::KeyPair::generate().expect("a key");
    let names = [
        "*.blob.core.windows.net",
        "login.microsoftonline.com",
        "management.azure.com",
    ];
    let names = names.map(str::to_owned).to_vec();
    let parameters = rcgen::CertificateParams::new(names).expect("names");
    let certificate = parameters.self_signed(&key).expect("a certificate");
    std::fs::write(dir.join("cert.pem"), certificate.pem()).expect("a file");
    std::fs::write(dir.join("key.pem"), key.serialize_pem()).expect("a file");
}

/// Returns the emulator and the path of its certificate.
fn server() -> (Arc<Server>, String) {
    static SERVER: Shared = Shared::new();
    static DIR: std::sync::OnceLock<tempfile::TempDir> = std::sync::OnceLock::new();
    let dir = DIR.get_or_init(|| {
        let dir = tempfile::tempdir().expect("a directory");
        certificate(dir.path());
        dir
    });
    let file = |name: &str| dir.path().join(name).display().to_string();
    let server = shared(&SERVER, || {
        let reserved = ServerPort::reserve();
        let mut command = Command::new(support::which("azurite-blob").expect("azurite-blob"));
        command
            .args([
                "--blobHost",
                "127.0.0.1",
                "--inMemoryPersistence",
                "--silent",
                "--skipApiVersionCheck",
            ])
            .args(["--disableTelemetry", "--blobPort", &reserved.number().to_string()])
            .args(["--cert", &file("cert.pem"), "--key", &file("key.pem")])
            .env("AZURITE_ACCOUNTS", format!("{ACCOUNT}:{KEY}"))
            .current_dir(dir.path());
        Server::start(reserved, &mut command, Vec::new())
    });
    (server, file("cert.pem"))
}

/// Returns the emulator, the name of a new container, and the settings and environment variables for it.
fn place() -> (Arc<Server>, String, String, Vec<(String, String)>) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let (server, certificate) = server();
    let name = format!("states-{}", COUNT.fetch_add(1, Ordering::SeqCst));
    let answer = ask(&server, "PUT", &format!("/{name}?restype=container"));
    assert!(answer.starts_with("201"), "{answer}");
    let settings =
        format!("storage_account_name = \"{ACCOUNT}\"\ncontainer_name = \"{name}\"\nkey = \"a dir/s.tfstate\"");
    let environment = [
        ("HTTPS_PROXY", format!("http://127.0.0.1:{}", proxy(server.port))),
        ("NO_PROXY", String::new()),
        ("SSL_CERT_FILE", certificate),
    ];
    let environment = environment.map(|(name, value)| (name.to_owned(), value)).to_vec();
    (server, name, settings, environment)
}

fn made(server: Arc<Server>, settings: String, environment: Vec<(String, String)>) -> Lab {
    Lab {
        ty: "azurerm",
        settings,
        environment,
        workspaces: true,
        named_locks: true,
        peer: Tool::Terraform,
        recorder: Tool::Terraform,
        server: Box::new(server),
    }
}

pub fn lab() -> Lab {
    let (server, _, settings, environment) = place();
    made(server, format!("{settings}\naccess_key = \"{KEY}\""), environment)
}

fn names() {
    let (server, name, settings, environment) = place();
    let settings = format!("{settings}\naccess_key = \"{KEY}\"\nsnapshot = true");
    let lab = made(server.clone(), settings, environment);
    let w = lab.directory(Tool::Monoform);
    run(&w, Tool::Monoform, &["apply", "-auto-approve"]).ok();
    run(&w, Tool::Monoform, &["workspace", "new", "dev"]).ok();
    let list = ask(&server, "GET", &format!("/{name}?comp=list&restype=container"));
    let names: Vec<&str> = list
        .split("<Name>")
        .skip(1)
        .filter_map(|part| part.split("</Name>").next())
        .collect();
    assert_eq!(names, ["a dir/s.tfstate", "a dir/s.tfstateenv:dev"]);
    let list = ask(
        &server,
        "GET",
        &format!("/{name}?comp=list&include=snapshots&restype=container"),
    );
    assert!(list.contains("<Snapshot>"), "{list}");
    let head = ask(&server, "HEAD", &format!("/{name}/a%20dir/s.tfstate"));
    for part in [
        "\"content-type\":\"application/json\"",
        "\"x-ms-lease-status\":\"unlocked\"",
    ] {
        assert!(head.contains(part), "{head}");
    }
    assert!(!head.contains("x-ms-meta-terraformlockid"), "{head}");
}

/// Returns a shared access signature of the account with all permissions, as the emulator verifies it.
fn signature() -> String {
    const SCRIPT: &str = r#"
const { createHmac } = require('crypto');
const parts = { sv: '2021-12-02', ss: 'b', srt: 'sco', sp: 'rwdlac', st: '', se: '2099-01-01T00:00:00Z', sip: '', spr: '' };
const text = [ACCOUNT, parts.sp, parts.ss, parts.srt, parts.st, parts.se, parts.sip, parts.spr, parts.sv, '', ''].join('\n');
const sig = createHmac('sha256', Buffer.from(KEY, 'base64')).update(text).digest('base64');
const all = Object.entries({ ...parts, sig }).filter(([, value]) => value);
process.stdout.write(all.map(([name, value]) => name + '=' + encodeURIComponent(value)).join('&'));
"#;
    let script = SCRIPT
        .replace("ACCOUNT", &format!("'{ACCOUNT}'"))
        .replace("KEY", &format!("'{KEY}'"));
    let output = Command::new("node").args(["-e", &script]).output().expect("node");
    String::from_utf8(output.stdout).expect("text")
}

fn signed_address() {
    let (server, _, settings, environment) = place();
    let lab = made(
        server,
        format!("{settings}\nsas_token = \"?{}\"", signature()),
        environment,
    );
    let w = lab.directory(Tool::Monoform);
    run(&w, Tool::Monoform, &["apply", "-auto-approve"]).ok();
    run(&w, Tool::Monoform, &["workspace", "new", "dev"]).ok();
    run(&w, Tool::Monoform, &["workspace", "select", "default"]).ok();
    run(&w, Tool::Monoform, &["workspace", "delete", "dev"]).ok();
}

fn advice() {
    let (server, name, settings, environment) = place();
    let keyed = format!("{settings}\naccess_key = \"{KEY}\"");
    let other_key = keyed.replace(KEY, &KEY.replace("MDEy", "MDEx"));
    for (settings, texts) in [
        (
            keyed.replace(&name, "there-is-none"),
            &["az storage container create --name there-is-none"][..],
        ),
        (other_key, &["AuthorizationFailure", "ARM_ACCESS_KEY"]),
        (settings.clone(), &["One of `access_key`", "ARM_USE_AZUREAD"]),
        (
            format!("{keyed}\nlookup_blob_endpoint = true"),
            &["`resource_group_name` is required"],
        ),
        (
            format!("{keyed}\nenvironment = \"german\""),
            &["no environment was found"],
        ),
        (keyed.replace(ACCOUNT, "Test_States"), &["3 to 24"]),
        (
            format!("{settings}\nuse_azuread_auth = true\nuse_cli = false"),
            &["no Authorizer could be configured", "ARM_CLIENT_SECRET"],
        ),
    ] {
        let lab = made(server.clone(), settings, environment.clone());
        let w = lab.without();
        w.write("backend.tf", &lab.block(""));
        let init = run(&w, Tool::Monoform, &["init"]);
        let ran = if init.status == 0 {
            run(&w, Tool::Monoform, &["plan"])
        } else {
            init
        };
        ran.fails_with(texts);
    }
}
