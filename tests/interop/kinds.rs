//! One provider in seven variants, on all the official Go modules, and every request that a host sends: both protocols, with and without
//! TLS, over Unix sockets and TCP, from every place where plugins are found.
//!
//! Every variant is tested with every transport. Each combination uses the next place of the list, so that every place is tested.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::OnceLock;

use crate::{install, platform, tamper, with_cli_config};
use support::registry::{Registry, Release, zip};
use support::server::Server;
use support::{Workspace, monoform};

/// A variant of the provider, and its capabilities.
struct Kind {
    name: &'static str,
    /// True if the variant has functions, ephemeral resources and other features that the older SDK lacks.
    newer: bool,
    /// True if objects of other resource types can be moved to its types.
    moves: bool,
}

const KINDS: [Kind; 7] = [
    // The adapter to protocol 5 does not announce that moves are supported.
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

/// Pairs of flags: TLS, TCP.
const TRANSPORTS: [(bool, bool); 4] = [(true, false), (false, false), (true, true), (false, true)];

/// Place where a plugin is found. A flat file name has no namespace; the provider is then `hashicorp/NAME`.
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

/// Returns the executable of a variant: one program under seven names.
pub fn executable(kind: &str) -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let built = BUILT.get_or_init(|| crate::build("kinds", "kinds"));
    let named = built.with_file_name(format!("terraform-provider-{kind}"));
    // Several tests create the link at the same time, and only one of them has to succeed.
    let temporary = tempfile::tempdir_in(built.parent().expect("a parent")).expect("a directory");
    let link = temporary.path().join("link");
    std::fs::hard_link(built, &link).expect("a link");
    std::fs::rename(&link, &named).expect("a name");
    named
}

/// A workspace for which one variant of the provider is found in one [`Place`].
struct Setting {
    w: Workspace,
    address: String,
    program: PathBuf,
    init: &'static [&'static str],
    // The server, which lives as long as the workspace.
    _server: Option<Server>,
    _running: Option<Running>,
}

/// A provider that was started by hand.
pub struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Running {
    /// Starts a provider in debug mode. Also returns the value of `TF_REATTACH_PROVIDERS` with which programs attach
    /// to it.
    pub fn start(w: &Workspace, executable: &Path) -> (Running, String) {
        let mut command = w.command(executable);
        let mut child = command.arg("-debug").stdout(Stdio::piped()).spawn().expect("it starts");
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().expect("a pipe")));
        let mut value = None;
        while let (None, Some(Ok(line))) = (&value, lines.next()) {
            let quoted = line.trim().strip_prefix("TF_REATTACH_PROVIDERS='");
            value = quoted.and_then(|rest| rest.strip_suffix('\'')).map(str::to_owned);
        }
        // The output is read all the time, because the provider would block on a full pipe.
        std::thread::spawn(move || lines.for_each(drop));
        (Running(child), value.expect("what a provider in debug mode prints"))
    }

    pub fn is_alive(&mut self) -> bool {
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
        program: monoform().into(),
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
            s.program = install(Path::new(monoform()), &dir, "monoform");
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
                Server::https(move |request| match request.path().strip_prefix(&base) {
                    Some("/index.json") => support::server::Reply::json(r#"{"versions":{"1.2.3":{}}}"#),
                    Some("/1.2.3.json") => support::server::Reply::json(&described),
                    Some("/package.zip") => support::server::Reply::ok(archive.clone()),
                    _ => support::server::Reply::status(404),
                })
            } else {
                let release = Release {
                    archives: [(platform(), archive())].into(),
                    protocols: vec!["5.0", "6.0"],
                };
                let mut registry = Registry::new();
                let releases = registry.releases.entry(format!("test/{kind}")).or_default();
                releases.insert("1.2.3".to_owned(), release);
                Server::https(move |request| registry.answer(request))
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

/// Returns the configuration of a stage: the first creates objects, the second moves and imports some.
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

/// Returns the requests that a provider's log lists.
fn requests(log: &str) -> std::collections::BTreeSet<String> {
    log.split(" tf_rpc=")
        .skip(1)
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
    // A running provider, or one under development, needs no installation.
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

    // The plan changes the object with the new size, but not the moved and imported ones. Without the capability of moves, the old object
    // is destroyed.
    s.w.write("main.tf", &configuration(kind, &s.address, 2, 2));
    let gone = u32::from(!kind.moves);
    apply(&format!("Resources: 1 imported, 0 added, 1 changed, {gone} destroyed."));

    // The state is from an earlier release.
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
    // Each kind of request has been sent.
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

/// Makes the tests: every variant over every transport.
pub fn trials() -> Vec<libtest_mimic::Trial> {
    let mut out = Vec::new();
    for (k, kind) in KINDS.iter().enumerate() {
        for (t, transport) in TRANSPORTS.into_iter().enumerate() {
            let mut place = PLACES[(k * TRANSPORTS.len() + t) % PLACES.len()];
            // For a provider that is already running, the program that starts it determines the transport.
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
