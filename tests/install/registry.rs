//! Provider registries.

use std::io::Read;
use std::process::Stdio;
use std::sync::Mutex;
use std::time::Duration;

use crate::{package, requiring, serve, workspace};
use support::monoform;
use support::registry::{Registry, Release, platform, zip};
use support::server::{Reply, Server};

fn two() -> Registry {
    Registry::new()
        .with("acme/anvil", "1.0.0", "one")
        .with("acme/anvil", "1.2.0", "one-two")
        .with("acme/anvil", "2.0.0", "two")
        .with("acme/anvil", "3.0.0-beta1", "beta")
        .with("acme/rocket", "0.1.0", "rocket")
}

#[test]
fn from_nothing_to_an_upgrade() {
    let registry = two();
    let id = registry.key.id();
    let sums = registry.sums("acme/anvil", "1.2.0");
    let server = serve(registry);
    let host = server.host();
    let w = workspace(
        &server,
        &requiring(&server, &[("acme/anvil", "~> 1.0"), ("acme/rocket", "")]),
    );

    let init = w.run(&["init", "-no-color"]).ok();
    let lines = format!(
        "Initializing provider plugins...\n- Finding {host}/acme/anvil versions matching \"~> 1.0\"...\n- Finding latest version \
         of {host}/acme/rocket...\n- Installing {host}/acme/anvil v1.2.0...\n- Installed {host}/acme/anvil v1.2.0 (self-signed, \
         key ID {id})\n- Installing {host}/acme/rocket v0.1.0...\n- Installed {host}/acme/rocket v0.1.0 (self-signed, key ID \
         {id})\nThe packages of partners and of the community are signed with keys of their\nauthors."
    );
    assert!(init.stdout.contains(&lines), "{}", init.all());
    let dir = format!(".terraform/providers/{}", package(&server, "acme/anvil", "1.2.0"));
    let program = format!("{dir}/terraform-provider-anvil_v1.2.0");
    assert_eq!(w.read(&program), format!("one-two {}\n", platform()));
    assert_eq!(w.read(&format!("{dir}/LICENSE")), "none\n");
    let left: Vec<_> = std::fs::read_dir(w.dir().join(".terraform/providers"))
        .unwrap()
        .collect();
    assert_eq!(left.len(), 1, "nothing is left beside the packages: {left:?}");
    // The lock file has a checksum of the installed package, and all checksums that the registry has signed.
    let lock = w.read(".terraform.lock.hcl");
    assert_eq!(lock.matches("h1:").count(), 2, "{lock}");
    for line in sums.lines() {
        let (sum, _) = line.split_once(' ').unwrap();
        assert!(lock.contains(&format!("\"zh:{sum}\",")), "{lock}");
    }

    // An installed package is not requested again.
    server.requests();
    let again = w.run(&["init", "-no-color"]).ok();
    assert!(again.stdout.contains("Using previously-installed"), "{}", again.all());
    assert_eq!(server.requests(), [""; 0]);
    assert_eq!(w.read(".terraform.lock.hcl"), lock);

    // In another directory the locked version is installed without requesting the list of versions.
    std::fs::remove_dir_all(w.dir().join(".terraform")).unwrap();
    w.write(
        "main.tf",
        &requiring(&server, &[("acme/anvil", ">= 1.0"), ("acme/rocket", "")]),
    );
    let elsewhere = w.run(&["init", "-no-color"]).ok();
    assert!(
        elsewhere.stdout.contains("Reusing previous version of"),
        "{}",
        elsewhere.all()
    );
    assert!(
        elsewhere.stdout.contains("Installed") && w.exists(&program),
        "{}",
        elsewhere.all()
    );
    assert!(!server.requests().iter().any(|line| line.ends_with("/versions")));

    let upgrade = w.run(&["init", "-upgrade", "-no-color"]).ok();
    assert!(
        upgrade.stdout.contains("acme/anvil v2.0.0 (self-signed"),
        "{}",
        upgrade.all()
    );
    assert!(
        upgrade.stdout.contains("Using previously-installed"),
        "{}",
        upgrade.all()
    );
    let lock = w.read(".terraform.lock.hcl");
    assert!(lock.contains("\"2.0.0\"") && lock.contains(">= 1.0.0"), "{lock}");

    w.write(
        "main.tf",
        &requiring(&server, &[("acme/anvil", "3.0.0-beta1"), ("acme/rocket", "")]),
    );
    w.run(&["init"])
        .fails_with(&["has chosen version 2.0.0, which does not meet"]);
    w.run(&["init", "-upgrade", "-lockfile=readonly"])
        .fails_with(&["conflicts"]);
    w.run(&["init", "-upgrade"]).ok();
    assert!(w.read(".terraform.lock.hcl").contains("\"3.0.0-beta1\""));
}

/// Starts a registry. `change` gets the path of a request, the number of requests for this path so far, and the
/// answer, which it may change.
fn changing(change: impl Fn(&str, usize, Reply) -> Reply + Send + Sync + 'static) -> Server {
    let registry = Registry::new().with("acme/anvil", "1.0.0", &"long ".repeat(40_000));
    let seen = Mutex::new(std::collections::BTreeMap::<String, usize>::new());
    Server::https(move |request| {
        let times = {
            let mut seen = seen.lock().expect("no panic");
            let times = seen.entry(request.path().to_owned()).or_default();
            *times += 1;
            *times
        };
        let range = request
            .header("range")
            .strip_prefix("bytes=")
            .and_then(|r| r.strip_suffix('-')?.parse().ok());
        let reply = registry.answer(request);
        let reply = match range {
            Some(from) if request.path().ends_with("amd64.zip") => reply.partial(from),
            _ => reply,
        };
        change(request.path(), times, reply)
    })
}

#[test]
fn an_answer_of_another_form_is_explained_in_words() {
    let server = changing(|path, _, reply| match path.ends_with("/versions") {
        true => Reply::json(r#"{"versions": 3}"#),
        false => reply,
    });
    let w = workspace(&server, &requiring(&server, &[("acme/anvil", "")]));
    w.run(&["init", "-no-color"])
        .fails_with(&["line 1, column 14: a list is expected here, and not the number 3"]);
}

#[test]
fn networks_that_are_not_perfect() {
    let zip = |path: &str| path.ends_with(".zip");
    // The server is unavailable twice, and then sends the package.
    let unavailable = changing(move |path, times, reply| match (zip(path), times) {
        (true, 1 | 2) => Reply::status(503).with("Retry-After", "0"),
        _ => reply,
    });
    // The request for the package is redirected.
    let elsewhere = changing(move |path, times, reply| match (zip(path), times) {
        (true, 1) => Reply::redirect(path),
        _ => reply,
    });
    // The connection breaks twice in the middle.
    let broken = changing(move |path, times, reply| match (zip(path), times) {
        (true, 1) => reply.cut(50_000),
        (true, 2) => reply.cut(30_000),
        _ => reply,
    });
    let slow = changing(move |path, _, reply| match zip(path) {
        true => reply.drip(8192, Duration::from_millis(20)),
        false => reply,
    });
    for (name, server) in [
        ("503", unavailable),
        ("redirect", elsewhere),
        ("broken", broken),
        ("slow", slow),
    ] {
        let w = workspace(&server, &requiring(&server, &[("acme/anvil", "")]));
        let init = w.run(&["init", "-no-color"]);
        assert_eq!(init.status, 0, "{name}: {}", init.all());
        let program = format!(
            ".terraform/providers/{}/terraform-provider-anvil_v1.0.0",
            package(&server, "acme/anvil", "1.0.0")
        );
        assert_eq!(w.read(&program).len(), 200_002 + platform().len(), "{name}");
    }
}

/// The package is larger than the memory that installing it may take.
#[cfg(target_os = "linux")]
#[test]
fn memory_does_not_grow_with_the_package() {
    const SIZE: usize = 192 << 20;
    let mut registry = Registry::new();
    let archive = zip(&[("terraform-provider-anvil", &vec![7; SIZE])]);
    let release = Release {
        archives: [(platform(), archive)].into(),
        protocols: vec!["6.0"],
    };
    registry
        .releases
        .entry("acme/anvil".to_owned())
        .or_default()
        .insert("1.0.0".to_owned(), release);
    let server = serve(registry);
    let w = workspace(&server, &requiring(&server, &[("acme/anvil", "")]));
    let mut child = w
        .command(monoform())
        .args(["init", "-no-color"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut peak = 0;
    let status = loop {
        let text = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = text.lines().find_map(|l| l.strip_prefix("VmHWM:"));
        let kib = line.and_then(|l| l.trim().trim_end_matches(" kB").parse::<usize>().ok());
        peak = peak.max(kib.unwrap_or(0));
        match child.try_wait().expect("a status") {
            Some(status) => break status,
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let mut out = String::new();
    child
        .stdout
        .take()
        .expect("a pipe")
        .read_to_string(&mut out)
        .expect("text");
    assert!(status.success(), "{out}");
    eprintln!("peak: {peak} KiB");
    assert!(peak < 100 << 10, "a package of {} KiB took {peak} KiB", SIZE >> 10);
}
