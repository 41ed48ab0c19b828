//! Servers that die before, during and after the write of a state, and writes that are refused. In all cases the store has the old or the
//! new state, and `state push` restores a state that could not be written.

use std::collections::VecDeque;
use std::process::Stdio;
use std::sync::Mutex;
use std::time::Instant;

use serde_json::Value as Json;
use support::{Workspace, ran};

use crate::Labs;
use crate::cut::{Cut, Fault, LARGE};
use crate::lab::{Lab, Tool, run};
use crate::lost_locks::id_of_lock;
use crate::scenarios::{slow, wait_for};

/// Stores that are tested: one of each kind.
pub const STORES: &[&str] = &[
    "http",
    "pg",
    "s3",
    "gcs",
    "azurerm",
    "kubernetes",
    "cos",
    "oci",
    "oss",
    "consul",
];

/// Number of rows that run at the same time.
const THREADS: usize = 12;

/// Returns a configuration whose state is large even if it is compressed.
fn large() -> String {
    let mut seed = 1_u64;
    let noise: String = std::iter::repeat_with(|| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        format!("{:016x}", seed)
    })
    .take(LARGE / 4)
    .collect();
    format!("output \"noise\" {{\n  value = \"{noise}\"\n}}\n")
}

/// Returns the lab with a proxy in front of its server.
fn by_way_of(mut lab: Lab) -> (Lab, Cut) {
    let port = |text: &str| -> Option<u16> {
        let rest = text.split("127.0.0.1:").nth(1)?;
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    let file = lab
        .settings
        .split("config_path = \"")
        .nth(1)
        .and_then(|rest| rest.split('"').next());
    let file = file.map(|path| (path.to_owned(), std::fs::read_to_string(path).expect("a file")));
    let values = lab.environment.iter().map(|(_, value)| value.as_str());
    let texts = std::iter::once(lab.settings.as_str())
        .chain(values)
        .chain(file.iter().map(|(_, text)| text.as_str()));
    let to = texts.into_iter().find_map(port).expect("the port of a server");
    let cut = Cut::start(to);
    let (from, new) = (format!("127.0.0.1:{to}"), format!("127.0.0.1:{}", cut.port));
    lab.settings = lab.settings.replace(&from, &new);
    for (_, value) in &mut lab.environment {
        *value = value.replace(&from, &new);
    }
    if let Some((path, text)) = file {
        std::fs::write(path, text.replace(&from, &new)).expect("a file");
    }
    (lab, cut)
}

/// Returns settings with which a store gives up after few attempts; empty for stores without such settings.
fn impatient(ty: &str) -> &'static str {
    match ty {
        "http" => "retry_max = 0",
        "s3" => "max_retries = 1",
        _ => "",
    }
}

/// Returns true if the connection to a store is not encrypted, so that the proxy can read it.
fn is_plain(store: &str) -> bool {
    matches!(store, "http" | "s3_with_table" | "gcs" | "oci" | "oss")
}

fn pulled(w: &Workspace) -> Json {
    run(w, Tool::Monoform, &["state", "pull"]).ok().json()
}

/// Tests all faults of all these stores. Several rows run at the same time, because most of the time passes in pauses between attempts. A
/// row of oci waits for a minute, so all of its rows run only if `MONOFORM_ALL_FAULTS` is 1.
pub fn all(stores: &[(&'static str, Labs, Vec<&'static str>)]) {
    let all = support::crash::setting("MONOFORM_ALL_FAULTS", 0) == 1;
    let mut rows = VecDeque::new();
    for (store, lab, programs) in stores {
        let absent = programs.iter().find(|program| support::which(program).is_none());
        if let Some(program) = absent {
            support::skip(&format!("faults of {store}"), program, "is not installed");
            continue;
        }
        let refusals = [Fault::Refused(403), Fault::Refused(500)];
        let refusals = refusals.iter().filter(|_| is_plain(store));
        let faults = [Fault::Gone, Fault::WhileSent, Fault::BeforeAnswer];
        let rare = |fault: &&Fault| all || *store != "oci" || matches!(fault, Fault::WhileSent | Fault::Refused(403));
        let faults = faults.iter().chain(refusals).filter(rare);
        rows.extend(faults.map(|fault| (*store, *lab, *fault)));
    }
    let rows = Mutex::new(rows);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let row = rows.lock().expect("rows").pop_front();
                    let Some((store, lab, fault)) = row else { return };
                    let (name, began) = (format!("{store}: {fault:?}"), Instant::now());
                    one(lab(), fault, &name);
                    eprintln!("{name}: ok after {:?}", began.elapsed());
                }
            });
        }
    });
}

fn one(lab: Lab, fault: Fault, row: &str) {
    let (lab, cut) = by_way_of(lab);
    let w = &lab.without();
    w.write("backend.tf", &lab.block(impatient(lab.ty)));
    w.write("large.tf", &large());
    run(w, Tool::Monoform, &["init", "-input=false"]).ok();
    run(w, Tool::Monoform, &["apply", "-auto-approve"]).ok();
    slow(w);
    // A working directory without the journal shows the content of the store.
    let reader = lab.directory(Tool::Monoform);
    let before = pulled(&reader);
    let mut command = w.command(Tool::Monoform.path());
    let child = command
        .args(["apply", "-auto-approve", "-no-color", "-var=word=kept"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    wait_for("the apply", || w.exists("begun"));
    cut.set(fault);
    w.write("go", "");
    let failed = ran(child.wait_with_output().expect("its output"));
    let broken = cut.broken();
    cut.set(Fault::None);
    assert!(broken > 0, "{row}: nothing was broken: {}", failed.all());
    if fault == Fault::BeforeAnswer && failed.status == 0 {
        // The answer was lost, but the store verified that the state was written, so the apply succeeded.
        assert_eq!(pulled(&reader)["outputs"]["word"]["value"], "kept", "{row}");
        assert!(!w.exists("errored.tfstate"), "{row}");
        return;
    }
    failed.fails_with(&["Failed to save state", "errored.tfstate", "state push"]);
    let kept: Json = serde_json::from_str(&w.read("errored.tfstate")).expect("a state");
    assert_eq!(kept["outputs"]["word"]["value"], "kept", "{row}");
    // The store has the previous state or, if only the answer was lost, the new one, and nothing in between.
    let there = pulled(&reader);
    let is_written = there["serial"] == kept["serial"];
    assert!(
        is_written && there["resources"] == kept["resources"] || there == before,
        "{row}"
    );
    assert!(!is_written || fault == Fault::BeforeAnswer, "{row}: it was written");
    wait_for("the push", || {
        let pushed = run(w, Tool::Monoform, &["state", "push", "errored.tfstate"]);
        if pushed.status == 0 {
            return true;
        }
        // The connection broke before the lock was released, so the first push finds the lock.
        let id = id_of_lock(&pushed.fails_with(&["Error acquiring the state lock"]));
        run(w, Tool::Monoform, &["force-unlock", "-force", &id]);
        false
    });
    let home = pulled(&reader);
    for part in ["lineage", "resources", "outputs"] {
        assert!(home[part] == kept[part], "{row}: {part}");
    }
    assert!(
        crate::crashes::journals(w).is_empty(),
        "{row}: what was pushed has all of it"
    );
}
