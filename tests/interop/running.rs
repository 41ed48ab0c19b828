//! Provider processes that another program started, that print, end, crash or defer. However Monoform ends, no process may be left over.
//! Also messages of `init` on a terminal, and the lock files of both programs.

use std::process::{Command, Stdio};

use crate::kinds::{Running, executable};
use crate::{apply, install, nothing_to_do, platform};
use support::registry::{Registry, Release, zip};
use support::server::Server;
use support::{Workspace, monoform, which};

/// Returns a workspace with the raw provider, found by its file's name, and a resource of this name.
fn raw(name: &str) -> Workspace {
    let w = Workspace::new();
    install(
        &executable("raw6"),
        &w.home().join(".terraform.d/plugins"),
        "terraform-provider-raw6_v1.0.0",
    );
    w.write(
        "main.tf",
        &format!("resource \"raw6_thing\" \"a\" {{\n  name = \"{name}\"\n}}\n"),
    );
    w
}

/// Providers of both protocols that another program started are used, and left running.
pub fn by_another_program() {
    for kind in ["raw5", "raw6", "frame6", "sdk"] {
        let w = Workspace::with(&[(
            "main.tf",
            &format!(
                "terraform {{\n  required_providers {{\n    {kind} = {{\n      source = \"example.com/test/{kind}\"\n    }}\n  }}\n}}\n\n\
                 resource \"{kind}_thing\" \"a\" {{\n  name = \"x\"\n}}\n"
            ),
        )]);
        let (mut running, value) = Running::start(&w, &executable(kind));
        let w = w.env("TF_REATTACH_PROVIDERS", value);
        apply(&w, "Resources: 1 added, 0 changed, 0 destroyed.");
        nothing_to_do(&w);
        assert!(running.is_alive(), "{kind}");
        drop(running);
        w.run(&["plan", "-no-color"]).fails_with(&[
            "Plugin did not respond",
            "Another program started it, and it may have ended.",
        ]);
    }
}

/// Output of a provider's code is in the log. The provider is requested to end, and not killed.
pub fn its_output_and_its_end() {
    let w = raw("chatty");
    let (log, goodbye) = (w.home().join("log"), w.home().join("goodbye"));
    let w = w
        .env("TF_LOG_PROVIDER", "debug")
        .env("TF_LOG_PATH", log.display().to_string())
        .env("KINDS_GOODBYE", goodbye.display().to_string());
    apply(&w, "Resources: 1 added, 0 changed, 0 destroyed.");
    let text = std::fs::read_to_string(&log).expect("a log");
    for line in ["a line on standard output", "a line on standard error"] {
        let found = text
            .lines()
            .find(|l| l.contains(line))
            .unwrap_or_else(|| panic!("{line} is not in {text}"));
        // The text does not have the form of a log line, so it is logged as a warning.
        assert!(found.contains("[WARN]  provider.terraform-provider-raw6"), "{found}");
    }
    let warning = text.lines().find(|l| l.contains("a warning on standard error"));
    assert!(warning.is_some_and(|l| l.contains("WARN")), "{warning:?}");
    assert_eq!(std::fs::read_to_string(&goodbye).expect("its last word"), "raw6\n");
}

/// A plugin dies during an apply: its panic is shown, and the results of completed operations are saved.
pub fn a_crash() {
    let w = raw("crash");
    w.write("first.tf", "resource \"terraform_data\" \"first\" {}\n");
    let before = "resource \"raw6_thing\" \"a\" {\n  name = \"crash\"\n  depends_on = [terraform_data.first]\n}\n";
    w.write("main.tf", before);
    w.run(&["apply", "-no-color", "-auto-approve"]).fails_with(&[
        "Plugin did not respond",
        "did not answer the request ApplyResourceChange. Its process ended with exit status 2.",
        "panic: the thing broke",
    ]);
    assert_eq!(w.state()["resources"].as_array().map(Vec::len), Some(1));
}

/// A provider that defers a resource without permission causes an error with the reason.
pub fn put_off() {
    raw("later").run(&["plan", "-no-color"]).fails_with(&[
        "with raw6_thing.a, on main.tf line 1",
        // The Go module itself reports this, because the request does not allow a deferral.
        "Invalid Deferred Response",
        "RESOURCE_CONFIG_UNKNOWN",
    ]);
}

/// Returns the number of the provider's processes in a workspace.
fn alive(w: &Workspace) -> usize {
    let mark = format!("{}/.terraform.d/plugins", w.home().display());
    let entries = std::fs::read_dir("/proc").expect("processes").filter_map(Result::ok);
    let of = |e: std::fs::DirEntry| std::fs::read(e.path().join("cmdline")).ok();
    entries
        .filter_map(of)
        .filter(|line| String::from_utf8_lossy(line).starts_with(&mark))
        .count()
}

#[track_caller]
fn until(what: &str, mut done: impl FnMut() -> bool) {
    let began = std::time::Instant::now();
    while !done() {
        assert!(began.elapsed().as_secs() < 30, "{what}: not in time");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Third-party plugins end whenever Monoform ends, even if it is killed; an interrupt stops their operations.
pub fn however_we_end() {
    for signals in [&["KILL"][..], &["INT"], &["TERM"], &["INT", "INT"], &["ABRT"]] {
        let w = raw("hang");
        let started = w.home().join("started");
        let w = w.env("KINDS_STARTED", started.display().to_string());
        let mut command = w.command(monoform());
        command.args(["apply", "-no-color", "-auto-approve"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut core = command.spawn().expect("it starts");
        until("the provider works", || started.exists());
        assert_eq!(alive(&w), 1);
        for signal in signals {
            let sent = Command::new("kill")
                .args(["-s", signal, &core.id().to_string()])
                .status();
            assert!(sent.expect("kill").success());
        }
        until("the end", || core.try_wait().expect("a status").is_some());
        until("the provider's end", || alive(&w) == 0);
        let out = support::ran(core.wait_with_output().expect("its output"));
        if signals.len() == 1 && signals[0] != "KILL" && signals[0] != "ABRT" {
            assert_eq!(out.status, 1, "{}", out.all());
            assert!(out.stderr.contains("It was asked to stop."), "{}", out.all());
        }
    }
}

/// Lock files of either program are accepted by both, and unchanged if nothing has changed.
pub fn lock_files() {
    let kinds = ["raw6", "sdk", "frame5"];
    let release = |kind: &str, version: &str| {
        let program = format!("{kind} {version}\n");
        let name = format!("terraform-provider-{kind}_v{version}");
        let archives = [platform(), "plan9_mips".to_owned()];
        Release {
            archives: archives
                .map(|p| {
                    (
                        p.clone(),
                        zip(&[(&name, format!("{program}{p}").as_bytes()), ("LICENSE", b"none\n")]),
                    )
                })
                .into(),
            protocols: vec!["5.0", "6.0"],
        }
    };
    let mut registry = Registry::new();
    for kind in kinds {
        let releases = registry.releases.entry(format!("test/{kind}")).or_default();
        for version in ["1.2.3", "1.3.0", "2.0.0-rc1"] {
            releases.insert(version.to_owned(), release(kind, version));
        }
    }
    let server = Server::https(move |request| registry.answer(request));
    let constraints = [">= 1.0, ~> 1.2, != 1.2.9, < 2.0.0", "", "= 2.0.0-rc1"];
    let lines: String = kinds
        .iter()
        .zip(constraints)
        .map(|(kind, constraint)| {
            let version = if constraint.is_empty() {
                String::new()
            } else {
                format!("version = \"{constraint}\"")
            };
            format!(
                "    {kind} = {{\n      source = \"{}/test/{kind}\"\n      {version}\n    }}\n",
                server.host()
            )
        })
        .collect();
    let configuration = format!("terraform {{\n  required_providers {{\n{lines}  }}\n}}\n");
    let new = || {
        let w = Workspace::with(&[("main.tf", &configuration)]);
        let roots = w.home().join("roots.pem");
        std::fs::write(&roots, &server.certificate).expect("a file");
        w.env("SSL_CERT_FILE", roots.display().to_string())
    };
    let lock = ".terraform.lock.hcl";
    let (ours, theirs) = (new(), new());
    ours.run(&["init", "-no-color"]).ok();
    theirs.terraform(&["init", "-no-color"]).ok();
    let text = theirs.read(lock);
    assert_eq!(ours.read(lock), text);
    assert_eq!(
        (text.matches("zh:").count(), text.matches("h1:").count()),
        (6, 3),
        "{text}"
    );

    // Each program continues with the files of the other, with and without installed providers.
    for fresh in [false, true] {
        for w in [&ours, &theirs] {
            for ours in [true, false] {
                if fresh {
                    std::fs::remove_dir_all(w.dir().join(".terraform")).expect("what is installed");
                }
                for args in [&["init", "-no-color", "-lockfile=readonly"][..], &["init", "-no-color"]] {
                    let ran = if ours { w.run(args) } else { w.terraform(args) };
                    ran.ok();
                    assert_eq!(w.read(lock), text);
                }
            }
        }
    }

    // If nothing changes, a comment and the checksums for another platform are kept.
    let other = [
        "providers",
        "lock",
        "-no-color",
        "-platform=plan9_mips",
        &format!("-platform={}", platform()),
    ];
    ours.run(&other).ok();
    theirs.terraform(&other).ok();
    let text = theirs.read(lock);
    assert_eq!(ours.read(lock), text);
    let commented = text.replace("provider \"", "# Do not touch.\nprovider \"");
    for w in [&ours, &theirs] {
        w.write(lock, &commented);
    }
    ours.run(&["init", "-no-color"]).ok();
    theirs.terraform(&["init", "-no-color"]).ok();
    assert_eq!(theirs.read(lock), commented);
    assert_eq!(ours.read(lock), commented);

    // A first installation from the plugin cache records the same checksums as Terraform.
    let cached = |w: Workspace| {
        std::fs::create_dir(w.home().join("cache")).expect("a directory");
        let cache = w.home().join("cache").display().to_string();
        w.env("TF_PLUGIN_CACHE_DIR", cache)
    };
    let (ours, theirs) = (cached(new()), cached(new()));
    for round in 0..2 {
        for w in [&ours, &theirs] {
            let _ = std::fs::remove_dir_all(w.dir().join(".terraform"));
            let _ = std::fs::remove_file(w.dir().join(lock));
        }
        ours.run(&["init", "-no-color"]).ok();
        theirs.terraform(&["init", "-no-color"]).ok();
        assert_eq!(ours.read(lock), theirs.read(lock), "round {round}");
    }
}

/// A terminal shows the progress of downloads.
pub fn a_bar_on_a_terminal() {
    let release = Release {
        archives: [(platform(), zip(&[("terraform-provider-raw6", &vec![7; 400_000])]))].into(),
        protocols: vec!["6.0"],
    };
    let mut registry = Registry::new();
    registry
        .releases
        .entry("test/raw6".to_owned())
        .or_default()
        .insert("1.2.3".to_owned(), release);
    let times = std::sync::atomic::AtomicUsize::new(0);
    let server = Server::https(move |request| {
        let is_package = request.path().ends_with(".zip");
        if is_package && times.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0 {
            return support::server::Reply::status(503).with("Retry-After", "0");
        }
        let reply = registry.answer(request);
        match is_package {
            true => reply.drip(40_000, std::time::Duration::from_millis(60)),
            false => reply,
        }
    });
    let w = Workspace::with(&[(
        "main.tf",
        &format!(
            "terraform {{\n  required_providers {{\n    raw6 = {{\n      source = \"{}/test/raw6\"\n    }}\n  }}\n}}\n",
            server.host()
        ),
    )]);
    let roots = w.home().join("roots.pem");
    std::fs::write(&roots, &server.certificate).expect("a file");
    let w = w.env("SSL_CERT_FILE", roots.display().to_string()).env("TERM", "xterm");
    let on_terminal = |w: &Workspace, flags: &str| {
        let _ = std::fs::remove_dir_all(w.dir().join(".terraform"));
        let command = format!("{} init {flags}", monoform());
        w.run_program(which("script").expect("script"), &["-qec", &command, "/dev/null"])
            .ok()
            .stdout
    };
    let text = on_terminal(&w, "");
    assert!(
        text.contains("status 503 Service Unavailable; trying again in 0.0 s (1 of 4)"),
        "{text}"
    );
    assert!(text.contains("Downloading 1 package: "), "{text}");
    let bar = format!("] {}/test/raw6 v1.2.3 (", server.host());
    assert!(text.contains("  [#") && text.contains(&bar), "{text}");
    assert!(text.contains("\r\u{1b}[J"), "the bar makes room: {text:?}");
    let suggested = format!("{}/test/raw6: version = \"~> 1.2\"", server.host());
    assert!(text.contains(&suggested), "{text}");
    assert!(!on_terminal(&w, "-no-color").contains("Downloading"));
    std::fs::remove_dir_all(w.dir().join(".terraform")).expect("what is installed");
    assert!(!w.run(&["init"]).ok().stdout.contains("Downloading"), "nobody watches");
}
