//! One provider in seven kinds, from all the official Go modules, and everything a host can be asked to do with it: every
//! request, both protocols, with TLS and without, over Unix sockets and TCP, from every place where plugins are found.
//!
//! Kinds and transports are tried in every combination; each takes the next place of the list, so that every place is used.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use crate::support::registry::{Registry, Release, zip};
use crate::support::server::Server;
use crate::support::{MONOFORM, Workspace, which};
use crate::{apply, install, nothing_to_do, platform, tamper, with_cli_config};

/// How the provider is made, and what it can do.
struct Kind {
    name: &'static str,
    /// Whether it has functions, ephemeral resources and the like, which the older SDK does not have.
    newer: bool,
    /// Whether its things can take over other types.
    moves: bool,
}

const KINDS: [Kind; 7] = [
    // What makes protocol 5 of it does not pass on what else it can.
    kind("raw5", true, false),
    kind("raw6", true, true),
    kind("frame5", true, true),
    kind("frame6", true, true),
    kind("sdk", false, false),
    kind("mux5", true, false),
    kind("mux6", true, false),
];

const fn kind(name: &'static str, newer: bool, moves: bool) -> Kind {
    Kind { name, newer, moves }
}

/// TLS or not, TCP or not.
const TRANSPORTS: [(bool, bool); 4] = [(true, false), (false, false), (true, true), (false, true)];

/// Where a plugin is found. A flat name says no namespace: it stands for `hashicorp/NAME`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    WorkingDirectory,
    BesideTheExecutable,
    LocalFlat,
    LocalFlatByPlatform,
    LocalMirror,
    DataDirectory,
    UserFlat,
    UserFlatByPlatform,
    UserMirror,
    UserMirrorPacked,
    XdgHome,
    XdgSystem,
    PluginDir,
    FilesystemMirror,
    NetworkMirror,
    Registry,
    RegistryAndCache,
    Development,
    Running,
}

const PLACES: [Place; 19] = [
    Place::WorkingDirectory,
    Place::BesideTheExecutable,
    Place::LocalFlat,
    Place::LocalFlatByPlatform,
    Place::LocalMirror,
    Place::DataDirectory,
    Place::UserFlat,
    Place::UserFlatByPlatform,
    Place::UserMirror,
    Place::UserMirrorPacked,
    Place::XdgHome,
    Place::XdgSystem,
    Place::PluginDir,
    Place::FilesystemMirror,
    Place::NetworkMirror,
    Place::Registry,
    Place::RegistryAndCache,
    Place::Development,
    Place::Running,
];

/// The executable of a kind: one program under seven names.
fn executable(kind: &str) -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let built = BUILT.get_or_init(|| crate::build("kinds", "kinds"));
    let named = built.with_file_name(format!("terraform-provider-{kind}"));
    // Of tests that do this at the same time, one succeeds.
    let temporary = tempfile::tempdir_in(built.parent().expect("a parent")).expect("a directory");
    let link = temporary.path().join("link");
    std::fs::hard_link(built, &link).expect("a link");
    std::fs::rename(&link, &named).expect("a name");
    named
}

/// A workspace where one kind of the provider is in one place.
struct Setting {
    w: Workspace,
    address: String,
    program: PathBuf,
    init: &'static [&'static str],
    // What must be there as long as the workspace is.
    _server: Option<Server>,
    _running: Option<Running>,
}

/// A provider that somebody started by hand.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Starts a provider in debug mode. Gives the value that makes others use it.
    fn start(w: &Workspace, executable: &Path) -> (Running, String) {
        let mut command = w.command(executable);
        let mut child = command.arg("-debug").stdout(Stdio::piped()).spawn().expect("it starts");
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().expect("a pipe")));
        let mut value = None;
        while let (None, Some(Ok(line))) = (&value, lines.next()) {
            let quoted = line.trim().strip_prefix("TF_REATTACH_PROVIDERS='");
            value = quoted.and_then(|rest| rest.strip_suffix('\'')).map(str::to_owned);
        }
        // It goes on printing to somebody.
        std::thread::spawn(move || lines.for_each(drop));
        (Running(child), value.expect("what a provider in debug mode prints"))
    }

    fn is_alive(&mut self) -> bool {
        self.0.try_wait().expect("a status").is_none()
    }
}

fn setting(kind: &str, place: Place, (tls, tcp): (bool, bool)) -> Setting {
    let executable = executable(kind);
    let mut w = Workspace::new();
    if !tls {
        w = w.env("TF_DISABLE_PLUGIN_TLS", "1");
    }
    if tcp {
        w = w.env("KINDS_NETWORK", "tcp");
    }
    let mut setting = Setting {
        address: format!("example.com/test/{kind}"),
        program: MONOFORM.into(),
        init: &["init", "-no-color"],
        w,
        _server: None,
        _running: None,
    };
    let s = &mut setting;
    let (work, home) = (s.w.dir(), s.w.home());
    let flat = format!("terraform-provider-{kind}_v1.2.3");
    let in_mirror = format!("{}/1.2.3/{}/{flat}_x5", s.address, platform());
    let put = |dir: PathBuf, path: &str| drop(install(&executable, &dir, path));
    let put_flat = |s: &mut Setting, dir: PathBuf| {
        put(dir, &flat);
        s.address = format!("hashicorp/{kind}");
    };
    let archive = || {
        let program = std::fs::read(&executable).expect("the executable");
        zip(&[(&flat, &program)])
    };
    let config = |s: &mut Setting, text: String| {
        let w = std::mem::replace(&mut s.w, Workspace::new());
        s.w = with_cli_config(w, &text);
    };
    match place {
        Place::WorkingDirectory => put_flat(s, work),
        Place::BesideTheExecutable => {
            let dir = home.join("bin");
            s.program = install(Path::new(MONOFORM), &dir, "monoform");
            put_flat(s, dir);
        }
        Place::LocalFlat => put_flat(s, work.join("terraform.d/plugins")),
        Place::LocalFlatByPlatform => put_flat(s, work.join("terraform.d/plugins").join(platform())),
        Place::LocalMirror => put(work.join("terraform.d/plugins"), &in_mirror),
        Place::DataDirectory => put_flat(s, work.join(".terraform/plugins").join(platform())),
        Place::UserFlat => put_flat(s, home.join(".terraform.d/plugins")),
        Place::UserFlatByPlatform => put_flat(s, home.join(".terraform.d/plugins").join(platform())),
        Place::UserMirror => put(home.join(".terraform.d/plugins"), &in_mirror),
        Place::UserMirrorPacked => {
            let dir = home.join(".terraform.d/plugins").join(&s.address);
            std::fs::create_dir_all(&dir).expect("a directory");
            let name = format!("terraform-provider-{kind}_1.2.3_{}.zip", platform());
            std::fs::write(dir.join(name), archive()).expect("an archive");
        }
        Place::XdgHome => put(home.join(".local/share/terraform/plugins"), &in_mirror),
        Place::XdgSystem => {
            let dir = home.join("shared");
            put(dir.join("terraform/plugins"), &in_mirror);
            let w = std::mem::replace(&mut s.w, Workspace::new());
            s.w = w.env("XDG_DATA_DIRS", format!("/nowhere:{}", dir.display()));
        }
        Place::PluginDir => {
            put(work.join("given"), &in_mirror);
            s.init = &["init", "-no-color", "-plugin-dir=given"];
        }
        Place::FilesystemMirror => {
            let dir = home.join("mirror");
            put(dir.clone(), &in_mirror);
            let method = format!("filesystem_mirror {{\n path = \"{}\"\n }}", dir.display());
            config(s, format!("provider_installation {{\n {method}\n}}\n"));
        }
        Place::NetworkMirror | Place::Registry | Place::RegistryAndCache => {
            let server = if place == Place::NetworkMirror {
                let (archive, base) = (archive(), format!("/m/{}", s.address));
                let described = format!(r#"{{"archives":{{"{}":{{"url":"package.zip"}}}}}}"#, platform());
                Server::https(move |asked| match asked.path().strip_prefix(&base) {
                    Some("/index.json") => crate::support::server::Reply::json(r#"{"versions":{"1.2.3":{}}}"#),
                    Some("/1.2.3.json") => crate::support::server::Reply::json(&described),
                    Some("/package.zip") => crate::support::server::Reply::ok(archive.clone()),
                    _ => crate::support::server::Reply::status(404),
                })
            } else {
                let release = Release {
                    archives: [(platform(), archive())].into(),
                    protocols: vec!["5.0", "6.0"],
                };
                let mut registry = Registry::new();
                let releases = registry.releases.entry(format!("test/{kind}")).or_default();
                releases.insert("1.2.3".to_owned(), release);
                Server::https(move |asked| registry.answer(asked))
            };
            std::fs::write(home.join("roots.pem"), &server.certificate).expect("a file");
            let w = std::mem::replace(&mut s.w, Workspace::new());
            s.w = w.env("SSL_CERT_FILE", home.join("roots.pem").display().to_string());
            match place {
                Place::NetworkMirror => {
                    let method = format!("network_mirror {{\n url = \"{}\"\n }}", server.url("/m/"));
                    config(s, format!("provider_installation {{\n {method}\n}}\n"));
                }
                Place::RegistryAndCache => {
                    std::fs::create_dir(home.join("cache")).expect("a directory");
                    config(s, format!("plugin_cache_dir = \"{}\"\n", home.join("cache").display()));
                }
                _ => {}
            }
            if place != Place::NetworkMirror {
                s.address = format!("{}/test/{kind}", server.host());
            }
            s._server = Some(server);
        }
        Place::Development => {
            let dir = home.join("development");
            put(dir.clone(), &format!("terraform-provider-{kind}"));
            let overrides = format!("dev_overrides {{\n \"{}\" = \"{}\"\n }}", s.address, dir.display());
            config(s, format!("provider_installation {{\n {overrides}\n direct {{}}\n}}\n"));
        }
        Place::Running => {
            let (running, value) = Running::start(&s.w, &executable);
            let w = std::mem::replace(&mut s.w, Workspace::new());
            s.w = w.env("TF_REATTACH_PROVIDERS", value);
            s._running = Some(running);
        }
    }
    setting
}

impl Setting {
    #[track_caller]
    fn run(&self, args: &[&str]) -> crate::Ran {
        self.w.run_program(&self.program, args)
    }
}

/// The configuration at its first and at later stages.
fn configuration(kind: &Kind, address: &str, size: u32, stage: u32) -> String {
    let k = kind.name;
    let mut out = format!(
        "terraform {{\n  required_providers {{\n    {k} = {{\n      source = \"{address}\"\n    }}\n  }}\n}}\n\nprovider \"{k}\" {{\n  \
         greeting = \"hello\"\n}}\n\nresource \"{k}_thing\" \"a\" {{\n  name = \"slow one\"\n  size = {size}\n}}\n\ndata \"{k}_lookup\" \"a\" \
         {{\n  name = {k}_thing.a.id\n}}\n\noutput \"found\" {{\n  value = data.{k}_lookup.a.result\n}}\n"
    );
    if kind.newer {
        out.push_str(&format!(
            "\nephemeral \"{k}_token\" \"t\" {{\n  name = \"t\"\n}}\n\nprovider \"{k}\" {{\n  alias    = \"second\"\n  greeting = \
             ephemeral.{k}_token.t.value\n}}\n\nresource \"{k}_thing\" \"b\" {{\n  provider = {k}.second\n  name     = \"slow two\"\n}}\n\n\
             output \"together\" {{\n  value = provider::{k}::together(\"-\", \"a\", \"b\", \"c\")\n}}\n"
        ));
    }
    match stage {
        1 => out.push_str(&format!("\nresource \"{k}_old\" \"o\" {{\n  name = \"gray\"\n}}\n")),
        _ if kind.moves => out.push_str(&format!(
            "\nresource \"{k}_thing\" \"o\" {{\n  name = \"gray\"\n}}\n\nmoved {{\n  from = {k}_old.o\n  to   = {k}_thing.o\n}}\n"
        )),
        _ => {}
    }
    if stage == 2 {
        out.push_str(&format!(
            "\nimport {{\n  to = {k}_thing.i\n  id = \"found\"\n}}\n\nresource \"{k}_thing\" \"i\" {{\n  name = \"imported\"\n}}\n"
        ));
    }
    out
}

/// The requests that a log says were received by a provider.
fn requests(log: &str) -> std::collections::BTreeSet<String> {
    let marks = log
        .split("\"tf_rpc\":\"")
        .skip(1)
        .chain(log.split("tf_rpc\\\":\\\"").skip(1));
    marks
        .map(|rest| rest.chars().take_while(char::is_ascii_alphanumeric).collect())
        .collect()
}

fn life(kind: &Kind, place: Place, transport: (bool, bool)) {
    let mut setting = setting(kind.name, place, transport);
    let log = setting.w.home().join("log");
    let w = std::mem::replace(&mut setting.w, Workspace::new());
    setting.w = w.env("TF_LOG", "trace").env("TF_LOG_PATH", log.display().to_string());
    let s = &setting;
    let apply = |summary: &str| {
        let applied = s.run(&["apply", "-no-color", "-auto-approve"]);
        assert_eq!(applied.status, 0, "{} in {place:?}: {}", kind.name, applied.all());
        assert!(
            applied.stdout.contains(summary),
            "{} in {place:?}: {}",
            kind.name,
            applied.all()
        );
        applied
    };
    let nothing = |when: &str| {
        let plan = s.run(&["plan", "-no-color", "-detailed-exitcode"]);
        assert_eq!(plan.status, 0, "{} in {place:?} {when}: {}", kind.name, plan.all());
    };
    s.w.write("main.tf", &configuration(kind, &s.address, 1, 1));
    // What runs already, or is under development, needs no installation.
    if !matches!(place, Place::Running | Place::Development) {
        let init = s.run(s.init);
        assert_eq!(init.status, 0, "{} in {place:?}: {}", kind.name, init.all());
    }
    let made = if kind.newer { 3 } else { 2 };
    let applied = apply(&format!("Resources: {made} added, 0 changed, 0 destroyed."));
    assert!(
        applied.stdout.contains("found = \"result of id-of-slow one\""),
        "{}",
        applied.all()
    );
    if kind.newer {
        assert!(applied.stdout.contains("together = \"a-b-c\""), "{}", applied.all());
    }
    nothing("after the first apply");

    // Another size is a change; taking over and importing are none. Without the capability, the old one goes.
    s.w.write("main.tf", &configuration(kind, &s.address, 2, 2));
    let gone = u32::from(!kind.moves);
    apply(&format!("Resources: 1 imported, 0 added, 1 changed, {gone} destroyed."));

    // What an earlier release has written.
    tamper(&s.w.dir().join("terraform.tfstate"), |state| {
        for resource in state["resources"].as_array_mut().expect("resources") {
            if resource["type"] == format!("{}_thing", kind.name) {
                let instance = &mut resource["instances"][0];
                instance["schema_version"] = 0.into();
                let attributes = instance["attributes"].as_object_mut().expect("attributes");
                let name = attributes.remove("name").expect("a name");
                attributes.insert("title".to_owned(), name);
            }
        }
    });
    s.w.write("main.tf", &configuration(kind, &s.address, 2, 3));
    let left = if kind.moves { 3 } else { 2 } - u32::from(!kind.newer);
    apply("Resources: 0 added, 0 changed, 1 destroyed.");
    let state = s.w.state();
    let stored = state["resources"].as_array().expect("resources");
    let things = stored.iter().filter(|r| r["type"] == format!("{}_thing", kind.name));
    let things: Vec<_> = things.map(|r| &r["instances"][0]).collect();
    assert_eq!(things.len() as u32, left, "{state:#}");
    for thing in things {
        assert_eq!(thing["schema_version"], 1);
        assert!(
            thing["attributes"]["name"].is_string() && thing["attributes"]["title"].is_null(),
            "{thing:#}"
        );
    }
    s.run(&["validate", "-no-color"]).ok();
    let destroyed = s.run(&["destroy", "-no-color", "-auto-approve"]).ok();
    assert!(
        destroyed.stdout.contains(&format!("{left} destroyed")),
        "{}",
        destroyed.all()
    );

    if let Some(running) = &mut setting._running {
        assert!(running.is_alive(), "somebody else's process is not ours to end");
        return;
    }
    // Everything was asked that there is to ask.
    let asked = requests(&std::fs::read_to_string(&log).expect("a log"));
    let mut expected = vec![
        "GetProviderSchema",
        "ValidateResourceConfig",
        "UpgradeResourceState",
        "ReadResource",
        "PlanResourceChange",
        "ApplyResourceChange",
        "ImportResourceState",
        "ReadDataSource",
    ];
    if kind.newer {
        expected.extend([
            "ValidateEphemeralResourceConfig",
            "OpenEphemeralResource",
            "RenewEphemeralResource",
            "CloseEphemeralResource",
            "CallFunction",
        ]);
    }
    if kind.moves {
        expected.push("MoveResourceState");
    }
    let protocol5 = kind.name.ends_with('5') || kind.name == "sdk";
    expected.extend(match protocol5 {
        true => ["PrepareProviderConfig", "Configure", "ValidateDataSourceConfig"],
        false => [
            "ValidateProviderConfig",
            "ConfigureProvider",
            "ValidateDataResourceConfig",
        ],
    });
    let renamed = |name: &&str| match (protocol5, *name) {
        (true, "ValidateResourceConfig") => "ValidateResourceTypeConfig".to_owned(),
        (_, name) => name.to_owned(),
    };
    let missing: Vec<String> = expected
        .iter()
        .map(renamed)
        .filter(|name| !asked.contains(name))
        .collect();
    assert!(
        missing.is_empty(),
        "{} in {place:?}: nobody asked for {missing:?}, but for {asked:?}",
        kind.name
    );
}

/// The tests: every kind over every transport.
pub fn trials() -> Vec<libtest_mimic::Trial> {
    let mut out = Vec::new();
    for (k, kind) in KINDS.iter().enumerate() {
        for (t, transport) in TRANSPORTS.into_iter().enumerate() {
            let mut place = PLACES[(k * TRANSPORTS.len() + t) % PLACES.len()];
            // Who started it says how it is reached.
            if place == Place::Running && transport != (true, false) {
                place = Place::UserMirror;
            }
            let (tls, tcp) = transport;
            let name = format!(
                "kinds::{}::{}::{}::{place:?}",
                kind.name,
                if tls { "tls" } else { "plain" },
                if tcp { "tcp" } else { "unix" }
            );
            out.push(libtest_mimic::Trial::test(name, move || {
                life(kind, place, transport);
                Ok(())
            }));
        }
    }
    out
}

/// A workspace with the raw provider, found by its file's name, and a thing of this name.
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

/// Both protocols, started by somebody else: used, and left running.
pub fn running_ones() {
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
            "It was started by somebody else and may have ended.",
        ]);
    }
}

/// What code of a provider prints while it works arrives in the log; and it is asked to end, not killed.
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
        assert!(found.contains("DEBUG") && found.contains("raw6"), "{found}");
    }
    let warning = text.lines().find(|l| l.contains("a warning on standard error"));
    assert!(warning.is_some_and(|l| l.contains("WARN")), "{warning:?}");
    assert_eq!(std::fs::read_to_string(&goodbye).expect("its last word"), "raw6\n");
}

/// A plugin that dies in the middle: its panic is shown, and what was done before is kept.
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

/// Put off without leave: an error that gives the reason.
pub fn put_off() {
    raw("later").run(&["plan", "-no-color"]).fails_with(&[
        "with raw6_thing.a, on main.tf line 1",
        "put off the answer to a later run, which was not allowed (RESOURCE_CONFIG_UNKNOWN)",
    ]);
}

/// The processes of a workspace's provider.
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

/// However we end, other people's plugins end with us; an interrupt stops what they do.
pub fn however_we_end() {
    for signals in [&["KILL"][..], &["INT"], &["TERM"], &["INT", "INT"], &["ABRT"]] {
        let w = raw("hang");
        let started = w.home().join("started");
        let w = w.env("KINDS_STARTED", started.display().to_string());
        let mut command = w.command(MONOFORM);
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
        let out = crate::support::ran(core.wait_with_output().expect("its output"));
        if signals.len() == 1 && signals[0] != "KILL" && signals[0] != "ABRT" {
            assert_eq!(out.status, 1, "{}", out.all());
            assert!(out.stderr.contains("It was asked to stop."), "{}", out.all());
        }
    }
}

/// Lock files: written by either, accepted by both, and as they were when nothing has changed.
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
    let server = Server::https(move |asked| registry.answer(asked));
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

    // Each goes on where the other left off, with what is installed and without.
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

    // With checksums for another platform, and a comment, which nobody touches if nothing has changed.
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

    // The first installation with a warm plugin cache records what Terraform would.
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

/// On a terminal, downloads are seen to go on.
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
    let server = Server::https(move |asked| {
        let is_package = asked.path().ends_with(".zip");
        if is_package && times.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0 {
            return crate::support::server::Reply::status(503).with("Retry-After", "0");
        }
        let reply = registry.answer(asked);
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
        let command = format!("{MONOFORM} init {flags}");
        w.run_program(which("script").expect("script"), &["-qec", &command, "/dev/null"])
            .ok()
            .stdout
    };
    let text = on_terminal(&w, "");
    assert!(
        text.contains("status 503 Service Unavailable; trying again in 0.0 s (1 of 4)"),
        "{text}"
    );
    assert!(
        text.contains("  Downloading 1 package: [") && text.contains(" % of 0.4 MB"),
        "{text}"
    );
    assert!(text.contains("\r\u{1b}[K"), "the bar makes room: {text:?}");
    let suggested = format!("{}/test/raw6: version = \"~> 1.2\"", server.host());
    assert!(text.contains(&suggested), "{text}");
    assert!(!on_terminal(&w, "-no-color").contains("Downloading"));
    std::fs::remove_dir_all(w.dir().join(".terraform")).expect("what is installed");
    assert!(!w.run(&["init"]).ok().stdout.contains("Downloading"), "nobody watches");
}
