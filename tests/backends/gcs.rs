//! Google Cloud Storage, emulated by `fake-gcs-server`, which honours conditions on generations and checks no
//! credentials.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use support::ports::ServerPort;

use crate::lab::{Lab, Tool, run};
use crate::server::{Server, Shared, shared};

pub const PROGRAMS: &[&str] = &["fake-gcs-server"];

pub const TESTS: &[(&str, fn())] = &[
    ("objects_have_the_names_of_terraform", names),
    ("errors_are_reported_with_a_remedy", advice),
];

fn server() -> Arc<Server> {
    static SERVER: Shared = Shared::new();
    shared(&SERVER, || {
        let reserved = ServerPort::reserve();
        let port = reserved.number();
        let own = format!("127.0.0.1:{port}");
        let mut command = Command::new(support::which("fake-gcs-server").expect("fake-gcs-server"));
        command.args(["-scheme", "http", "-host", "127.0.0.1", "-backend", "memory", "-port"]);
        command.args([
            &port.to_string(),
            "-public-host",
            &own,
            "-external-url",
            &format!("http://{own}"),
        ]);
        Server::start(reserved, &mut command, Vec::new())
    })
}

/// Sends a request and returns the whole answer.
fn ask(server: &Server, line: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).expect("a connection");
    let request = format!(
        "{line} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: \
         {}\r\n\r\n{body}",
        server.port,
        body.len()
    );
    stream.write_all(request.as_bytes()).expect("it is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

/// Returns the server, the name of a new bucket, and the settings for it.
fn place() -> (Arc<Server>, String, String) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let server = server();
    let name = format!("states-{}", COUNT.fetch_add(1, Ordering::SeqCst));
    let answer = ask(
        &server,
        "POST /storage/v1/b?project=p",
        &format!("{{\"name\":\"{name}\"}}"),
    );
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let settings = format!(
        "bucket = \"{name}\"\nprefix = \"a dir/b\"\naccess_token = \"somebody\"\nstorage_custom_endpoint = \
         \"http://127.0.0.1:{}/storage/v1/\"",
        server.port
    );
    (server, name, settings)
}

fn made(server: Arc<Server>, settings: String) -> Lab {
    Lab {
        ty: "gcs",
        settings,
        environment: Vec::new(),
        workspaces: true,
        named_locks: true,
        peer: Tool::Terraform,
        recorder: Tool::Terraform,
        server: Box::new(server),
    }
}

pub fn lab() -> Lab {
    let (server, _, settings) = place();
    made(server, settings)
}

fn names() {
    let (server, name, settings) = place();
    let lab = made(server.clone(), settings);
    let w = lab.directory(Tool::Monoform);
    run(&w, Tool::Monoform, &["apply", "-auto-approve"]).ok();
    run(&w, Tool::Monoform, &["workspace", "new", "dev"]).ok();
    let list = ask(&server, &format!("GET /storage/v1/b/{name}/o"), "");
    let mut names: Vec<&str> = list
        .split("\"name\":\"")
        .skip(1)
        .filter_map(|part| part.split('"').next())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["a dir/b/default.tfstate", "a dir/b/dev.tfstate"], "{list}");
}

fn advice() {
    let (server, name, settings) = place();
    for (settings, texts) in [
        (
            format!("{settings}\nencryption_key = \"AAAA\""),
            &["encryption key", "32 bytes"][..],
        ),
        (
            format!("{settings}\nencryption_key = \"\"\nkms_encryption_key = \"\""),
            &["can't set both encryption_key and kms_encryption_key"],
        ),
        (settings.replace("http://", "ftp://"), &["storage_custom_endpoint"]),
        (
            settings.replace("access_token = \"somebody\"", "credentials = \"{}\""),
            &["No valid credentials", "gcloud"],
        ),
        // Unless the bucket is listed, the emulator answers the same for a missing bucket as for a missing
        // object.
        (settings.replace(&name, "UPPER"), &["gs://UPPER"]),
    ] {
        let lab = made(server.clone(), settings);
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
