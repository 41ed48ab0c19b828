//! A web server with one state for each path, and tests of failed writes, which need this server.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use crate::lab::{Lab, Tool, run};

pub const TESTS: &[(&str, fn())] = &[
    ("a_state_that_cannot_be_written_is_kept_and_pushed", failing_writes),
    (
        "what_the_journal_has_makes_the_rescued_copy_needless",
        rescued_and_recovered,
    ),
    ("a_stolen_lock_overwrites_nothing", stolen_lock),
    (
        "a_second_init_asks_nothing_of_what_the_command_line_said",
        partial_configuration,
    ),
    ("a_user_is_told_which_server_is_waited_for", waited_for),
];

/// The server answers only after the program has reported that it waits.
fn waited_for() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}/state", listener.local_addr().expect("its address"));
    let (told, wait) = std::sync::mpsc::channel::<()>();
    std::thread::spawn(move || {
        let mut first = true;
        for mut stream in listener.incoming().flatten() {
            drop(stream.read(&mut [0; 4096]));
            if std::mem::take(&mut first) {
                let _ = wait.recv();
            }
            drop(stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"));
        }
    });
    let w = support::Workspace::with(&[(
        "main.tf",
        &format!("terraform {{\n  backend \"http\" {{\n    address = \"{address}\"\n  }}\n}}\n"),
    )]);
    let mut command = w.command(support::monoform());
    command.args(["init", "-input=false", "-no-color"]);
    command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut lines = BufReader::new(child.stderr.take().expect("its errors")).lines();
    let line = lines.find(|line| line.as_ref().is_ok_and(|line| line.contains("Waiting for")));
    assert_eq!(
        line.expect("a line").expect("text"),
        "- Waiting for 127.0.0.1 to answer..."
    );
    told.send(()).expect("the server waits");
    // Unread output must not block the program.
    lines.for_each(drop);
    let output = child.wait_with_output().expect("its end");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// States and locks of the server, the history of its states, and whether writes fail.
#[derive(Default)]
pub struct Kept {
    states: Mutex<BTreeMap<String, Vec<u8>>>,
    locks: Mutex<BTreeMap<String, Vec<u8>>>,
    broken: AtomicBool,
    /// All states that were written, with their times.
    history: Mutex<Vec<(SystemTime, Vec<u8>)>>,
}

impl Kept {
    /// Returns all states that were written, with their times.
    pub fn history(&self) -> Vec<(SystemTime, Vec<u8>)> {
        self.history.lock().expect("the history").clone()
    }

    /// Makes writes of states fail, or succeed again.
    pub fn fails(&self, broken: bool) {
        self.broken.store(broken, Ordering::SeqCst);
    }

    /// Removes all states and locks, and stores this state if there is one.
    pub fn restore(&self, state: Option<&[u8]>) {
        let mut states = self.states.lock().expect("states");
        states.clear();
        if let Some(state) = state {
            states.insert("/state".to_owned(), state.to_vec());
        }
        self.locks.lock().expect("locks").clear();
    }
}

fn id(lock: &[u8]) -> String {
    let json: serde_json::Value = serde_json::from_slice(lock).unwrap_or_default();
    json["ID"].as_str().unwrap_or_default().to_owned()
}

fn answer(kept: &Kept, method: &str, target: &str, body: Vec<u8>) -> (u16, Vec<u8>) {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let (mut states, mut locks) = (kept.states.lock().expect("states"), kept.locks.lock().expect("locks"));
    match method {
        "GET" => states.get(path).map_or((404, Vec::new()), |state| (200, state.clone())),
        "POST" if kept.broken.load(Ordering::SeqCst) => (500, b"the disk is full".to_vec()),
        "POST" => {
            if locks
                .get(path)
                .is_some_and(|lock| !query.contains(&format!("ID={}", id(lock))))
            {
                return (409, b"locked".to_vec());
            }
            kept.history
                .lock()
                .expect("the history")
                .push((SystemTime::now(), body.clone()));
            states.insert(path.to_owned(), body);
            (200, Vec::new())
        }
        "LOCK" => match locks.get(path) {
            Some(lock) => (423, lock.clone()),
            None => {
                locks.insert(path.to_owned(), body);
                (200, Vec::new())
            }
        },
        "UNLOCK"
            if locks
                .get(path)
                .is_some_and(|lock| !body.is_empty() && id(lock) != id(&body)) =>
        {
            (409, Vec::new())
        }
        "UNLOCK" => {
            locks.remove(path);
            (200, Vec::new())
        }
        _ => (405, Vec::new()),
    }
}

fn serve(kept: &Kept, stream: TcpStream) -> Option<()> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    let (status, body) = answer(kept, &method, &target, body);
    let head = format!(
        "HTTP/1.1 {status} x\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.get_mut().write_all(&[head.as_bytes(), &body].concat()).ok()
}

fn start() -> (String, Arc<Kept>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}/state", listener.local_addr().expect("an address"));
    let kept = Arc::new(Kept::default());
    let shared = kept.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let kept = shared.clone();
            std::thread::spawn(move || serve(&kept, stream));
        }
    });
    (address, kept)
}

pub fn lab() -> Lab {
    let (address, kept) = start();
    Lab {
        ty: "http",
        settings: format!("address = \"{address}\"\nlock_address = \"{address}\"\nunlock_address = \"{address}\""),
        environment: Vec::new(),
        workspaces: false,
        named_locks: true,
        peer: Tool::Terraform,
        recorder: Tool::Terraform,
        server: Box::new(kept),
    }
}

fn failing_writes() {
    let lab = lab();
    let kept = lab.server.downcast_ref::<Arc<Kept>>().expect("the server");
    let w = lab.without();
    w.write("backend.tf", &lab.block("retry_max = 0"));
    run(&w, Tool::Monoform, &["init"]).ok();
    run(&w, Tool::Monoform, &["apply", "-auto-approve"]).ok();
    kept.broken.store(true, Ordering::SeqCst);
    run(&w, Tool::Monoform, &["apply", "-auto-approve", "-var=word=saved"]).fails_with(&[
        "Failed to save state",
        "500",
        "Failed to persist state to backend",
        "state push errored.tfstate",
    ]);
    assert!(w.read("errored.tfstate").contains("saved"));
    run(&w, Tool::Monoform, &["state", "push", "errored.tfstate"]).fails_with(&["500"]);
    kept.broken.store(false, Ordering::SeqCst);
    run(&w, Tool::Monoform, &["state", "push", "errored.tfstate"]).ok();
    assert_eq!(
        run(&w, Tool::Monoform, &["output", "-raw", "word"]).ok().stdout,
        "saved"
    );
    assert!(kept.locks.lock().expect("locks").is_empty(), "nothing stays locked");
    assert!(crate::crashes::journals(&w).is_empty(), "what was pushed has all of it");
}

/// The rescue file and the journal have the same results. Whichever is used first, nothing is lost or recorded twice.
fn rescued_and_recovered() {
    let lab = lab();
    let kept = lab.server.downcast_ref::<Arc<Kept>>().expect("the server");
    let w = lab.without();
    w.write("backend.tf", &lab.block("retry_max = 0"));
    run(&w, Tool::Monoform, &["init"]).ok();
    run(&w, Tool::Monoform, &["apply", "-auto-approve"]).ok();
    kept.broken.store(true, Ordering::SeqCst);
    run(&w, Tool::Monoform, &["apply", "-auto-approve", "-var=word=saved"])
        .fails_with(&["Failed to persist state to backend"]);
    assert_eq!(crate::crashes::journals(&w).len(), 1, "the store does not have it");
    // The server still fails, so the journal must be kept.
    run(&w, Tool::Monoform, &["plan", "-var=word=saved"]).fails_with(&["500"]);
    assert_eq!(crate::crashes::journals(&w).len(), 1);
    kept.broken.store(false, Ordering::SeqCst);
    let plan = run(&w, Tool::Monoform, &["plan", "-var=word=saved"]).ok();
    for text in ["State recovered", "terraform_data.a", "errored.tfstate"] {
        assert!(plan.all().contains(text), "{text}: {}", plan.all());
    }
    assert!(!plan.stdout.contains("terraform_data.a will be"), "{}", plan.all());
    assert!(crate::crashes::journals(&w).is_empty());
    run(&w, Tool::Monoform, &["apply", "-auto-approve", "-var=word=saved"]).ok();
    // An old copy must not replace a newer state.
    run(&w, Tool::Monoform, &["state", "push", "errored.tfstate"]).fails_with(&["Failed to write state"]);
    assert!(kept.locks.lock().expect("locks").is_empty());
}

/// Another program breaks the lock of a running apply and takes it. The server refuses the later write of the apply,
/// whose state is saved in a file.
fn stolen_lock() {
    let lab = lab();
    let kept = lab.server.downcast_ref::<Arc<Kept>>().expect("the server");
    let w = lab.directory(Tool::Monoform);
    w.write(
        "slow.tf",
        "resource \"terraform_data\" \"slow\" {\n  provisioner \"local-exec\" {\n    command = \"touch begun; while [ ! -e go ]; do \
         sleep 0.05; done\"\n  }\n}\n",
    );
    let mut command = w.command(Tool::Monoform.path());
    let apply = command
        .args(["apply", "-auto-approve", "-no-color"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("it starts");
    crate::scenarios::wait_for("the apply", || w.exists("begun"));
    let other = br#"{"ID":"11111111-1111-4111-8111-111111111111","Operation":"OperationTypeApply","Who":"somebody"}"#;
    for lock in kept.locks.lock().expect("locks").values_mut() {
        *lock = other.to_vec();
    }
    let before = kept.states.lock().expect("states").clone();
    w.write("go", "");
    let ran = support::ran(apply.wait_with_output().expect("its output"));
    ran.fails_with(&["Failed to save state", "errored.tfstate"]);
    assert_eq!(*kept.states.lock().expect("states"), before, "nothing was overwritten");
    assert!(w.read("errored.tfstate").contains("terraform_data"));
    let locks = kept.locks.lock().expect("locks");
    assert!(locks.values().all(|lock| lock == other), "the other's lock stays");
}

fn partial_configuration() {
    let lab = lab();
    let w = lab.without();
    w.write(
        "backend.tf",
        "terraform {\n  backend \"http\" {\n    retry_max = 1\n  }\n}\n",
    );
    run(&w, Tool::Monoform, &["init", "-input=false"]).fails_with(&["TF_HTTP_ADDRESS"]);
    w.write("settings.hcl", &lab.settings);
    run(
        &w,
        Tool::Monoform,
        &["init", "-backend-config=settings.hcl", "-backend-config=retry_max=0"],
    )
    .ok();
    let record = w.read(".terraform/terraform.tfstate");
    assert!(record.contains("\"retry_max\": 0"), "{record}");
    run(&w, Tool::Monoform, &["apply", "-auto-approve"]).ok();
    run(&w, Tool::Monoform, &["init"]).ok();
    assert_eq!(w.read(".terraform/terraform.tfstate"), record);
    run(&w, Tool::Monoform, &["init", "-backend-config=retry_max=0"]).fails_with(&["Backend configuration changed"]);
    run(
        &w,
        Tool::Monoform,
        &["init", "-backend-config=settings.hcl", "-backend-config=retry_max=0"],
    )
    .ok();
    run(&w, Tool::Monoform, &["plan"]).ok();
    // The setting differs, but state and lock are the same: the state is locked only once, and no question is asked.
    let migrate = [
        "init",
        "-input=false",
        "-migrate-state",
        "-backend-config=settings.hcl",
        "-backend-config=retry_max=3",
    ];
    run(&w, Tool::Monoform, &migrate).ok();
    run(&w, Tool::Monoform, &["plan"]).ok();
}
