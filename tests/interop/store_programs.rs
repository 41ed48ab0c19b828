//! State stores of third parties, by the source of their provider: a registry, whose provider a user approves; a running process; a
//! development override. Also states that do not fit into one message.

use serde_json::Value;

use crate::kinds::Running;
use crate::stores::{HEAD, OBJECT, STORE, keep, kept, record, workspace};
use crate::{apply, nothing_to_do, platform, with_cli_config};
use support::registry::{Registry, Release, zip};
use support::server::Server;
use support::terminal::Terminal;
use support::{Workspace, monoform};

const LOCK: &str = ".terraform.lock.hcl";

/// Returns a workspace whose provider is in a registry, and that registry.
fn with_registry() -> (Workspace, Server) {
    let program = std::fs::read(keep()).expect("the executable");
    let release = Release {
        archives: [(platform(), zip(&[("terraform-provider-keep_v1.0.0", &program)]))].into(),
        protocols: vec!["6.0"],
    };
    let mut registry = Registry::new();
    let releases = registry.releases.entry("test/keep".to_owned()).or_default();
    releases.insert("1.0.0".to_owned(), release);
    let server = Server::https(move |request| registry.answer(request));
    let text = format!("{HEAD}{STORE}{OBJECT}").replace("example.com/", &format!("{}/", server.host()));
    let w = Workspace::with(&[("main.tf", &text)]);
    let roots = w.home().join("roots.pem");
    std::fs::write(&roots, &server.certificate).expect("a file");
    (w.env("SSL_CERT_FILE", roots.display().to_string()), server)
}

/// Runs `init` on a terminal and answers the question; returns true for success, and the seen text.
fn answered(w: &Workspace, answer: &str) -> (bool, String) {
    let mut terminal = Terminal::start(w.command("setsid").args(["--ctty", monoform(), "init", "-no-color"]));
    let mut seen = terminal.sees("for state storage?");
    seen += &terminal.sees("Enter a value:");
    terminal.press(&format!("{answer}\n"));
    let (status, rest, _) = terminal.ends();
    (status.success(), seen + &rest)
}

pub fn the_first_use_is_approved() {
    let (w, server) = with_registry();
    // No user can be asked, so the provider is not approved.
    let missing = "Missing lock for state store provider";
    w.run(&["init", "-no-color", "-input=false"]).fails_with(&[missing]);
    let stream = w.run(&["init", "-json"]);
    assert_eq!(stream.status, 1, "{}", stream.all());
    stream.shows(&[missing]);
    for refusal in ["no", "y", ""] {
        let (agreed, seen) = answered(&w, refusal);
        assert!(!agreed && seen.contains("State store provider not approved"), "{seen}");
        assert!(!w.exists(LOCK) && !w.exists(".terraform/terraform.tfstate"), "{seen}");
    }
    let (agreed, seen) = answered(&w, "yes");
    assert!(
        agreed && seen.contains("The state store provider was approved by the user."),
        "{seen}"
    );
    // The question names the provider and its signer.
    for text in [&format!("{}/test/keep", server.host()), "v1.0.0", "self-signed"] {
        assert!(seen.contains(text), "{text}: {seen}");
    }
    assert_eq!(
        record(&w)["state_store"]["provider_supply_mode"],
        "managed_by_terraform"
    );
    apply(&w, "1 added");
    nothing_to_do(&w);
    // The lock file records the approval, so later runs do not ask again.
    std::fs::remove_dir_all(w.dir().join(".terraform")).expect("what is installed");
    w.run(&["init", "-no-color", "-input=false"]).ok();
    nothing_to_do(&w);
}

/// Checks the rules of a provider without a version: the state is kept, and the record has no version.
fn lives_without_a_version(w: &Workspace, mode: &str, warning: &str) {
    w.run(&["init", "-no-color"]).ok().shows(&[warning]);
    let recorded = &record(w)["state_store"];
    assert_eq!(recorded["provider_supply_mode"], mode);
    assert_eq!(recorded["provider"]["version"], Value::Null);
    w.run(&["plan", "-no-color", "-out=plan"]).ok();
    w.run(&["apply", "-no-color", "plan"]).ok().shows(&["1 added"]);
    assert_eq!(kept(w, "states/one/default.state")["serial"], 2);
    nothing_to_do(w);
    w.run(&["workspace", "new", "two"]).ok();
    apply(w, "1 added");
    w.run(&["workspace", "select", "default"]).ok();
    w.run(&["workspace", "delete", "-force", "two"]).ok();
    assert!(!w.exists("states/one/default.lock") && !w.exists("states/one/two.state"));
}

pub fn one_that_runs_already() {
    let w = Workspace::with(&[("main.tf", &format!("{HEAD}{STORE}{OBJECT}"))]);
    let (mut running, value) = Running::start(&w, keep());
    let w = w.env("TF_REATTACH_PROVIDERS", value);
    lives_without_a_version(&w, "reattached", "State store provider is not managed by Terraform");
    assert!(running.is_alive());
    drop(running);
    w.run(&["state", "list"])
        .fails_with(&["Another program started it, and it may have ended."]);
}

pub fn one_under_development() {
    let w = Workspace::with(&[("main.tf", &format!("{HEAD}{STORE}{OBJECT}"))]);
    let dir = keep().parent().expect("a parent").display();
    let text = format!(
        "provider_installation {{\n  dev_overrides {{\n    \"example.com/test/keep\" = \"{dir}\"\n  }}\n  direct {{}}\n}}\n"
    );
    let w = with_cli_config(w, &text);
    lives_without_a_version(&w, "dev_override", "State store is from a developer override provider");
    // An installed provider is not the same as a development override, so `init` is needed again.
    let w = workspace(STORE);
    w.run(&["init"]).ok();
    apply(&w, "1 added");
    let w = with_cli_config(w, &text);
    w.run(&["plan", "-no-color"])
        .fails_with(&["initialization required", "comes from another source than before"]);
    w.run(&["init", "-no-color", "-reconfigure"]).ok();
    nothing_to_do(&w);
}

/// The bytes of a state arrive unchanged, wherever the chunks of the transfer end.
pub fn states_of_several_chunks() {
    let w = workspace(STORE);
    // Characters of two bytes at even and odd positions, so that a chunk ends inside of one.
    let text: String = (0..500_000).map(|i| format!("{i} äöüäöüäöüäöüäöü\n")).collect();
    assert!(text.len() > 17 << 20, "more than two pieces of 8 MiB");
    let log = w.home().join("log");
    let w = w.env("KEEP_LOG", log.display().to_string());
    w.write("big.tf", "output \"big\" {\n  value = file(\"big.txt\")\n}\n");
    w.run(&["init"]).ok();
    w.write("big.txt", &text);
    w.run(&["apply", "-no-color", "-auto-approve"]).ok();
    let state = kept(&w, "states/one/default.state");
    assert_eq!(state["serial"], 2);
    assert!(state["outputs"]["big"]["value"] == text.as_str());
    assert!(w.run(&["output", "-raw", "big"]).ok().stdout == text);
    let pulled = w.run(&["state", "pull"]).ok().stdout;
    w.write("pulled", &pulled.replacen("\"serial\": 2", "\"serial\": 9", 1));
    w.run(&["state", "push", "pulled"]).ok();
    assert_eq!(kept(&w, "states/one/default.state")["serial"], 9);
    // Each write of the state is a single write of the store.
    let log = std::fs::read_to_string(&log).expect("a log");
    let large = |line: &&str| {
        line.strip_prefix("write default ")
            .is_some_and(|size| size.parse::<usize>().is_ok_and(|size| size > 17 << 20))
    };
    assert_eq!(log.lines().filter(large).count(), 2, "{log}");
}
