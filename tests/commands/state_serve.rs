//! `state serve`: the states of a backend, for clients with the backend `http`.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use support::Workspace;
use support::serving::{Serving, certificate};

pub const TESTS: &[(&str, fn())] = &[
    (
        "a_client_applies_and_the_server_has_its_objects",
        a_client_applies_and_the_server_has_its_objects,
    ),
    (
        "a_lock_of_a_client_holds_for_everybody",
        a_lock_of_a_client_holds_for_everybody,
    ),
    (
        "locks_are_released_and_named_at_the_end",
        locks_are_released_and_named_at_the_end,
    ),
    (
        "settings_of_the_backend_can_be_variables",
        settings_of_the_backend_can_be_variables,
    ),
    ("clients_that_stall_hold_up_nobody", clients_that_stall_hold_up_nobody),
    ("clients_need_the_credentials", clients_need_the_credentials),
    ("servers_that_cannot_be_are_refused", servers_that_cannot_be_are_refused),
];

const RESOURCE: &str = "resource \"terraform_data\" \"a\" {\n  input = \"one\"\n}\n";
const RECORD: &str = "{\"ID\": \"1-2\", \"Operation\": \"OperationTypeApply\", \"Who\": \"ann@desk\"}";
const STATE: &str = "{\"version\": 4, \"terraform_version\": \"1.16.0\", \"serial\": 1, \"lineage\": \"l\", \"outputs\": {}, \"resources\": []}";

/// Sends a request and returns the status with the body.
fn request(host: &str, method: &str, path: &str, headers: &[&str], body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(host).expect("connected");
    let mut lines = vec![format!("{method} {path} HTTP/1.1"), format!("Host: {host}")];
    lines.extend(headers.iter().map(ToString::to_string));
    lines.push(format!(
        "Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    ));
    stream.write_all(lines.join("\r\n").as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("read");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).expect("a status").parse().expect("a number");
    (status, body.to_owned())
}

/// Returns the header for basic authentication with a user name and a password, `NAME:PASSWORD`.
fn basic(text: &str) -> String {
    use base64::Engine as _;
    let encoded = base64::engine::general_purpose::STANDARD.encode(text);
    format!("Authorization: Basic {encoded}")
}

/// Returns a working directory whose state is on the server.
fn client(serving: &Serving, password: &str, workspace: &str) -> Workspace {
    let url = format!("http://{}/states/{workspace}", serving.host);
    let main = format!(
        "terraform {{\n  backend \"http\" {{\n    address        = \"{url}\"\n    lock_address   = \"{url}\"\n    \
         unlock_address = \"{url}\"\n  }}\n}}\n\n{RESOURCE}"
    );
    Workspace::with(&[("main.tf", &main)])
        .env("TF_HTTP_USERNAME", "monoform")
        .env("TF_HTTP_PASSWORD", password)
}

fn a_client_applies_and_the_server_has_its_objects() {
    let server = Workspace::with(&[("main.tf", RESOURCE)]);
    let (serving, password) = Serving::states(&server, &[]);
    let w = client(&serving, &password, "default");
    w.run(&["init", "-no-color"]).ok();
    w.run(&["apply", "-auto-approve", "-no-color"]).ok().shows(&["1 added"]);
    // The server finds the same objects when it uses the backend directly.
    server
        .run(&["plan", "-no-color", "-detailed-exitcode"])
        .ok()
        .shows(&["No changes"]);
    let other = client(&serving, &password, "other");
    other.run(&["init", "-no-color"]).ok();
    other.run(&["apply", "-auto-approve", "-no-color"]).ok();
    server.run(&["workspace", "list", "-no-color"]).ok().shows(&["other"]);
    if support::needs("terraform", "states_are_served_to_terraform").is_some() {
        let w = client(&serving, &password, "default");
        w.terraform(&["init", "-no-color"]).ok();
        w.terraform(&["plan", "-no-color"]).ok().shows(&["No changes"]);
        w.terraform(&["destroy", "-auto-approve", "-no-color"])
            .ok()
            .shows(&["1 destroyed"]);
        assert_eq!(server.run(&["state", "list"]).ok().stdout, "");
    }
    let log = serving.end();
    assert!(log.contains("LOCK /states/default 200"), "{log}");
    assert!(!log.contains(&password), "{log}");
}

fn a_lock_of_a_client_holds_for_everybody() {
    let server = Workspace::with(&[("main.tf", RESOURCE)]);
    let (serving, password) = Serving::states(&server, &[]);
    let login = basic(&format!("monoform:{password}"));
    let send = |method: &str, path: &str, body: &str| request(&serving.host, method, path, &[&login], body);
    let state = "/states/default";
    assert_eq!(send("GET", state, "").0, 204);
    assert_eq!(send("LOCK", state, RECORD).0, 200);
    assert_eq!(send("LOCK", state, RECORD).0, 200, "the answer was lost");
    // The lock excludes another client, a client without a lock, and a command on the server.
    let (status, holder) = send("LOCK", state, &RECORD.replace("1-2", "2-1"));
    assert_eq!(status, 423);
    assert!(holder.contains("ann@desk"), "{holder}");
    assert_eq!(send("POST", state, STATE).0, 423);
    assert_eq!(send("POST", "/states/default?ID=2-1", STATE).0, 423);
    server
        .run(&["plan", "-no-color"])
        .fails_with(&["Error acquiring the state lock", "ann@desk"]);
    assert_eq!(send("POST", "/states/default?ID=1-2", STATE).0, 200);
    assert_eq!(send("UNLOCK", state, &RECORD.replace("1-2", "2-1")).0, 423);
    assert_eq!(send("UNLOCK", state, RECORD).0, 200);
    assert_eq!(send("UNLOCK", state, RECORD).0, 409);
    // A client that sends an ID without holding a lock may not write, and does not lock out others.
    assert_eq!(send("POST", "/states/default?ID=1-2", STATE).0, 409);
    server.run(&["plan", "-no-color"]).ok();
    let (status, read) = send("GET", state, "");
    assert_eq!(status, 200);
    assert!(read.contains("\"lineage\": \"l\""), "{read}");
    assert_eq!(send("POST", state, "{}").0, 400);
    assert_eq!(send("DELETE", state, "").0, 405);
    assert_eq!(send("GET", "/states/..", "").0, 400);
    assert_eq!(send("GET", "/", "").0, 400);
}

fn clients_that_stall_hold_up_nobody() {
    let server = Workspace::with(&[("main.tf", RESOURCE)]);
    let (serving, password) = Serving::states(&server, &[]);
    let login = basic(&format!("monoform:{password}"));
    let host = &serving.host;
    let send = |method: &str, path: &str, body: &str| request(host, method, path, &[&login], body);
    let state = "/states/default";
    // Larger than the buffers of a connection.
    let value = "x".repeat(8 << 20);
    let outputs = format!("\"outputs\": {{\"a\": {{\"value\": \"{value}\", \"type\": \"string\"}}}}");
    assert_eq!(send("POST", state, &STATE.replace("\"outputs\": {}", &outputs)).0, 200);
    let stalled = |method: &str, part: &str| {
        let mut stream = TcpStream::connect(host).expect("connected");
        let head = format!(
            "{method} {state} HTTP/1.1\r\nHost: {host}\r\n{login}\r\nContent-Length: {}\r\n\r\n",
            2 * part.len()
        );
        stream.write_all(head.as_bytes()).expect("sent");
        stream.write_all(part.as_bytes()).expect("sent");
        stream
    };
    let mut clients: Vec<TcpStream> = (0..12).map(|_| stalled("POST", STATE)).collect();
    for _ in 0..4 {
        let mut client = stalled("GET", "");
        let mut byte = [0];
        client.read_exact(&mut byte).expect("the beginning of the state");
        clients.push(client);
    }
    assert_eq!(send("LOCK", state, RECORD).0, 200);
    let (status, read) = send("GET", state, "");
    assert_eq!((status, read.len() > value.len()), (200, true));
    let next = STATE.replace("\"serial\": 1", "\"serial\": 2");
    assert_eq!(send("POST", "/states/default?ID=1-2", &next).0, 200);
    assert!(send("GET", state, "").1.contains("\"serial\": 2"));
    assert_eq!(send("POST", "/states/other", STATE).0, 200);
    assert_eq!(send("UNLOCK", state, RECORD).0, 200);
    drop(clients);
    serving.end();
}

fn locks_are_released_and_named_at_the_end() {
    let server = Workspace::with(&[("main.tf", RESOURCE)]);
    let (serving, password) = Serving::states(&server, &[]);
    let login = basic(&format!("monoform:{password}"));
    let host = serving.host.clone();
    assert_eq!(request(&host, "LOCK", "/states/default", &[&login], RECORD).0, 200);
    let log = serving.end();
    assert!(log.contains("A client had a lock"), "{log}");
    assert!(log.contains("ann@desk"), "{log}");
    server.run(&["plan", "-no-color"]).ok();
}

fn settings_of_the_backend_can_be_variables() {
    let main = "terraform {\n  backend \"local\" {\n    path = var.place\n  }\n}\n\nvariable \"place\" {\n  type = string\n}\n";
    for flag in ["-var=place=there.tfstate", "-var-file=place.tfvars"] {
        let server = Workspace::with(&[("main.tf", main), ("place.tfvars", "place = \"there.tfstate\"\n")]);
        server.run(&["init", "-no-color", flag]).ok();
        let (serving, password) = Serving::states(&server, &[flag]);
        let login = basic(&format!("monoform:{password}"));
        assert_eq!(
            request(&serving.host, "POST", "/states/default", &[&login], STATE).0,
            200
        );
        assert!(server.read("there.tfstate").contains("\"lineage\": \"l\""));
    }
}

fn clients_need_the_credentials() {
    let server = Workspace::with(&[("main.tf", RESOURCE), ("login", "ann:secret\n"), ("wrong", "ann\n")]);
    let (serving, _) = Serving::states(&server, &["-credentials=login"]);
    let get = |headers: &[&str]| request(&serving.host, "GET", "/states/default", headers, "").0;
    assert_eq!(get(&[&basic("ann:secret")]), 204);
    assert_eq!(get(&[&basic("ann:other")]), 401);
    assert_eq!(get(&[]), 401);
    assert_eq!(get(&[&basic("ann:secret"), "Origin: http://example.com"]), 403);
    assert!(!serving.said.contains("secret"), "{}", serving.said);
    server
        .run(&["state", "serve", "-credentials=wrong"])
        .fails_with(&["wrong must have one line"]);
    server
        .run(&["state", "serve", "-credentials=none"])
        .fails_with(&["none cannot be read"]);
}

fn servers_that_cannot_be_are_refused() {
    let (certificate, key) = certificate();
    let w = Workspace::with(&[("cert.pem", &certificate), ("key.pem", &key), ("login", "ann:secret\n")]);
    let refused = |args: &[&str], why: &str| {
        w.run(&[&["state", "serve", "-no-color"], args].concat())
            .fails_with(&[why]);
    };
    refused(&["-listen=here"], "invalid value \"here\" for flag -listen");
    refused(&["-listen=0.0.0.0:0"], "Other machines can reach 0.0.0.0:0");
    refused(&["-listen=0.0.0.0:0", "-credentials=login"], "Other machines can reach");
    let tls = ["-tls-cert=cert.pem", "-tls-key=key.pem"];
    refused(&["-listen=0.0.0.0:0", tls[0], tls[1]], "Other machines can reach");
    refused(&[tls[0]], "-tls-cert and -tls-key need each other");
    refused(&["-tls-cert=key.pem", "-tls-key=key.pem"], "has no certificate");
    refused(&["here"], "Too many command line arguments");
}
