//! `state serve` on states in PostgreSQL: requests that wait for the database.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use support::serving::Serving;

use crate::lab::Tool;
use crate::postgres::{self, query};
use crate::scenarios::wait_for;

pub const TESTS: &[(&str, fn())] = &[(
    "a_write_that_waits_holds_up_neither_reads_nor_other_states",
    waiting_write,
)];

/// Text of a state with this serial.
fn state(serial: u32) -> String {
    format!(
        "{{\"version\": 4, \"terraform_version\": \"1.16.0\", \"serial\": {serial}, \"lineage\": \"l\", \"outputs\": {{}}, \"resources\": []}}"
    )
}

/// Sends a request and returns the status with the body.
fn request(host: &str, password: &str, method: &str, workspace: &str, body: &str) -> (u16, String) {
    use base64::Engine as _;
    let login = base64::engine::general_purpose::STANDARD.encode(format!("monoform:{password}"));
    let mut stream = TcpStream::connect(host).expect("connected");
    let head = format!(
        "{method} /states/{workspace} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Basic {login}\r\nContent-Length: {}\r\nConnection: \
         close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("read");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).expect("a status").parse().expect("a number");
    (status, body.to_owned())
}

fn waiting_write() {
    let lab = postgres::lab_with_objects();
    let w = lab.directory(Tool::Monoform);
    let (serving, password) = Serving::states(&w, &[]);
    let host = serving.host.clone();
    assert_eq!(request(&host, &password, "POST", "default", &state(1)).0, 200);
    // Another session keeps the row of the state until its input ends.
    let server = lab.settings.split('"').nth(1).expect("a URL").to_owned();
    let mut session = Command::new("psql")
        .args(["-qtA", &server])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("psql starts");
    let mut input = session.stdin.take().expect("its input");
    let lock = "BEGIN; SELECT id FROM monoform_state.states WHERE name = 'default' FOR UPDATE;\n";
    input.write_all(lock.as_bytes()).expect("sent");
    let mut line = [0];
    session
        .stdout
        .take()
        .expect("its output")
        .read_exact(&mut line)
        .expect("the row");
    let writing = {
        let (host, password) = (host.clone(), password.clone());
        std::thread::spawn(move || request(&host, &password, "POST", "default", &state(2)).0)
    };
    wait_for("the write", || {
        query(
            &lab,
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()",
        ) == "1"
    });
    let (status, read) = request(&host, &password, "GET", "default", "");
    assert_eq!((status, read.contains("\"serial\": 1")), (200, true), "{read}");
    let record = "{\"ID\": \"1-2\", \"Operation\": \"OperationTypeApply\", \"Who\": \"ann@desk\"}";
    assert_eq!(request(&host, &password, "LOCK", "other", record).0, 200);
    assert_eq!(request(&host, &password, "POST", "other?ID=1-2", &state(1)).0, 200);
    assert_eq!(request(&host, &password, "UNLOCK", "other", record).0, 200);
    assert!(!writing.is_finished(), "the row is locked");
    drop(input);
    session.wait().expect("its end");
    assert_eq!(writing.join().expect("an answer"), 200);
    assert!(
        request(&host, &password, "GET", "default", "")
            .1
            .contains("\"serial\": 2")
    );
    serving.end();
}
