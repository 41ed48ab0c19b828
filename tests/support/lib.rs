//! What the tests of the workspace share. Used as a development dependency only.
//!
//! - [`Workspace`]: a fresh working directory in which the real executable is run, and [`Ran`], the result.
//! - [`server`]: an HTTP server that answers by a closure; [`registry`]: registries and mirrors of providers on it.
//! - [`crash`]: applies that are killed at random moments, and what is known after them.
//! - [`disk`]: what a disk may have after a power cut.
//! - [`oci`]: artifacts of OCI registries on it.
//! - [`ports`]: ports that refuse, and ports for servers that are told which to use.
//! - [`kubernetes`]: the secrets and leases of a cluster, on that server.
//! - [`running`]: a program that runs while the test goes on.
//! - [`scenario`]: recorded scenarios, played and compared with Terraform's results.
//! - [`terminal`]: a program on a pseudo-terminal.
//! - [`example`]: an example of a crate, built. [`our_plugins`]: our plugins, for Terraform.
//! - [`needs`], [`needing`], [`skip`]: tests that need a program which may not be installed.
//! - [`run_trials`]: a test program whose tests are known when it runs.

#![allow(
    clippy::disallowed_methods,
    reason = "tests read their settings from the environment, and need the time"
)]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking"
)]
#![allow(
    clippy::new_without_default,
    reason = "a new workspace is a directory on disk, a new registry has a key of its own: no defaults"
)]

pub mod crash;
pub mod disk;
pub mod kubernetes;
pub mod oci;
pub mod ports;
pub mod registry;
pub mod running;
pub mod scenario;
pub mod server;
pub mod serving;
pub mod terminal;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};
use std::sync::OnceLock;

/// The root of the repository.
pub(crate) const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Leaves a command nothing of the developer's environment but the search path: no settings, no files of the home directory, no
/// ignored signals.
pub fn isolated(command: &mut Command, home: &Path) {
    usual_signals();
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home)
        .env("CHECKPOINT_DISABLE", "1");
}

/// Gives SIGINT and SIGHUP their usual effect in this process, and so in those that it starts: a test run by `nohup`, or in the
/// background of a shell, has them ignored, and then so do programs whose reaction is tested.
pub fn usual_signals() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        use nix::sys::signal::{SigHandler, Signal, signal};
        for ignored in [Signal::SIGINT, Signal::SIGHUP] {
            // SAFETY: the default action replaces "ignore"; no handler of ours is installed that could run.
            #[allow(unsafe_code, reason = "there is no other way to change what children inherit")]
            unsafe { signal(ignored, SigHandler::SigDfl) }.expect("a signal");
        }
    });
}

/// The path of the executable under test: the one that Cargo has built beside the running test program.
pub fn monoform() -> &'static str {
    static MONOFORM: OnceLock<String> = OnceLock::new();
    MONOFORM.get_or_init(|| {
        std::env::var("CARGO_BIN_EXE_monoform").unwrap_or_else(|_| {
            let test = std::env::current_exe().expect("the path of the test program");
            let profile = test
                .parent()
                .and_then(Path::parent)
                .expect("the directory of the profile");
            let path = profile.join(format!("monoform{}", std::env::consts::EXE_SUFFIX));
            path.into_os_string().into_string().expect("a path in UTF-8")
        })
    })
}

/// A working directory of its own, with a home directory of its own beside it.
pub struct Workspace {
    root: tempfile::TempDir,
    environment: Vec<(String, String)>,
}

/// The result of a command.
pub struct Ran {
    /// Its exit status; -1 if a signal ended it.
    pub status: i32,
    /// What it printed.
    pub stdout: String,
    /// What it printed as errors.
    pub stderr: String,
}

impl Ran {
    /// Both streams, for messages.
    pub fn all(&self) -> String {
        format!(
            "status {}\n--- stdout\n{}\n--- stderr\n{}",
            self.status, self.stdout, self.stderr
        )
    }

    /// Fails the test unless the command succeeded.
    #[track_caller]
    pub fn ok(self) -> Ran {
        assert_eq!(self.status, 0, "{}", self.all());
        self
    }

    /// Fails the test unless the command failed with status 1 and every one of these texts in its errors. Line breaks and
    /// the frame around errors do not count.
    #[track_caller]
    pub fn fails_with(self, texts: &[&str]) -> Ran {
        assert_eq!(self.status, 1, "{}", self.all());
        let plain = words(&self.stderr);
        for text in texts {
            assert!(plain.contains(&words(text)), "{text:?} is not in\n{}", self.all());
        }
        self
    }

    /// Fails the test unless all these are in the output, line breaks included.
    #[track_caller]
    pub fn shows(self, texts: &[&str]) -> Ran {
        for text in texts {
            assert!(self.stdout.contains(text), "{text:?} is not in\n{}", self.all());
        }
        self
    }

    /// The output as JSON.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("not JSON: {e}\n{}", self.all()))
    }
}

/// The executable without what is there for debuggers: Terraform computes the checksum of every plugin in every command,
/// and that is most of a build for development.
pub fn lean() -> &'static Path {
    static LEAN: OnceLock<PathBuf> = OnceLock::new();
    LEAN.get_or_init(|| {
        let dir = Path::new(monoform()).with_file_name("lean");
        std::fs::create_dir_all(&dir).expect("a directory");
        let lean = dir.join("monoform");
        let stripped = Command::new("strip").arg("-o").arg(&lean).arg(monoform()).status();
        if stripped.is_ok_and(|status| status.success()) {
            lean
        } else {
            monoform().into()
        }
    })
}

/// Builds an example of a crate of the workspace; returns its path. The whole workspace is selected, as it is for the tests: another
/// selection means other features, for which many crates would be built a second time.
pub fn example(name: &str) -> PathBuf {
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--workspace", "--example", name])
        .arg("--message-format=json-render-diagnostics")
        .current_dir(REPOSITORY)
        .output();
    let built = ran(built.expect("cargo starts")).ok();
    let messages = built
        .stdout
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let mut executables = messages.filter_map(|message| Some(PathBuf::from(message["executable"].as_str()?)));
    executables.next_back().expect("an executable")
}

/// The text of a CLI configuration file with which every provider comes from a mirror in a directory.
pub fn only_from(mirror: &Path) -> String {
    format!(
        "provider_installation {{\n  filesystem_mirror {{\n    path = \"{}\"\n  }}\n}}\n",
        mirror.display()
    )
}

/// Makes a mirror of our plugins in a directory, and a CLI configuration file with which every provider comes from there; returns
/// the path of that file.
pub fn our_plugins(dir: &Path) -> PathBuf {
    let mirror = dir.join("mirror");
    std::fs::create_dir_all(&mirror).expect("a directory");
    Workspace::new()
        .run_program(lean(), &["internal-plugin", "link", &mirror.display().to_string()])
        .ok();
    let file = dir.join("mirror.tfrc");
    std::fs::write(&file, only_from(&mirror)).expect("a file");
    file
}

/// Text without line breaks, frames and repeated blanks.
pub fn words(text: &str) -> String {
    let plain: String = text.chars().map(|c| if "╷│╵".contains(c) { ' ' } else { c }).collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Workspace {
    /// An empty one.
    pub fn new() -> Workspace {
        let root = tempfile::tempdir().expect("a temporary directory");
        for dir in ["work", "home"] {
            std::fs::create_dir(root.path().join(dir)).expect("a directory");
        }
        Workspace {
            root,
            environment: Vec::new(),
        }
    }

    /// One with these files.
    pub fn with(files: &[(&str, &str)]) -> Workspace {
        let workspace = Workspace::new();
        for (name, text) in files {
            workspace.write(name, text);
        }
        workspace
    }

    /// One with a copy of a directory of this repository.
    pub fn copy_of(dir: &str) -> Workspace {
        let workspace = Workspace::new();
        copy(&Path::new(REPOSITORY).join(dir), &workspace.dir());
        workspace
    }

    /// With a variable in the environment of every command.
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Workspace {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// With our plugins as the only ones that Terraform finds.
    pub fn with_our_plugins(self) -> Workspace {
        let file = our_plugins(&self.home());
        self.env("TF_CLI_CONFIG_FILE", file.display().to_string())
    }

    /// The working directory.
    pub fn dir(&self) -> PathBuf {
        self.root.path().join("work")
    }

    /// The home directory.
    pub fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// Writes a file.
    pub fn write(&self, name: &str, text: &str) {
        let path = self.dir().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(&path, text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }

    /// Reads a file.
    #[track_caller]
    pub fn read(&self, name: &str) -> String {
        let path = self.dir().join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    /// Whether there is such a file.
    pub fn exists(&self, name: &str) -> bool {
        self.dir().join(name).exists()
    }

    /// A program, to be run here with nothing of the surrounding environment but the search path.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        isolated(&mut command, &self.home());
        command
            .current_dir(self.dir())
            .env("TMPDIR", self.root.path())
            .stdin(Stdio::null());
        for (name, value) in &self.environment {
            command.env(name, value);
        }
        command
    }

    /// Runs a program here.
    pub fn run_program(&self, program: impl AsRef<OsStr>, args: &[&str]) -> Ran {
        let mut command = self.command(program);
        command.args(args);
        // Another thread of the test that is about to start a program has, for a moment, everything open that was open when it
        // forked: also an executable that this thread has just written, which cannot be run until then.
        for _ in 0..500 {
            match command.output() {
                Err(e) if e.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                    std::thread::sleep(std::time::Duration::from_millis(10));
                }
                output => return ran(output.expect("the program starts")),
            }
        }
        ran(command.output().expect("the program starts"))
    }

    /// Runs monoform here.
    pub fn run(&self, args: &[&str]) -> Ran {
        self.run_program(monoform(), args)
    }

    /// Runs Terraform here.
    pub fn terraform(&self, args: &[&str]) -> Ran {
        self.run_program("terraform", args)
    }

    /// The attributes of a resource's only instance in the state.
    #[track_caller]
    pub fn attributes(&self, ty: &str, name: &str) -> serde_json::Value {
        let state = self.state();
        let resources = state["resources"].as_array().expect("resources");
        let found = resources
            .iter()
            .find(|r| r["type"] == ty && r["name"] == name && r["mode"] == "managed");
        found.unwrap_or_else(|| panic!("no {ty}.{name} in {state:#}"))["instances"][0]["attributes"].clone()
    }

    /// The state as JSON.
    #[track_caller]
    pub fn state(&self) -> serde_json::Value {
        serde_json::from_str(&self.read("terraform.tfstate")).expect("the state is JSON")
    }
}

/// The result of a finished command.
pub fn ran(output: Output) -> Ran {
    Ran {
        status: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Copies a directory, without what an earlier run by hand left in it.
pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory");
    let leftover = |name: &str| name == "out" || name.contains(".tfstate") || name.starts_with(".terraform");
    for entry in std::fs::read_dir(from).unwrap_or_else(|e| panic!("{}: {e}", from.display())) {
        let entry = entry.expect("an entry");
        if leftover(&entry.file_name().to_string_lossy()) {
            continue;
        }
        let target = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), &target).expect("a copy");
        }
    }
}

/// The static executable that `MONOFORM_STATIC` in the environment names.
#[must_use]
pub fn static_monoform() -> Option<PathBuf> {
    std::env::var_os("MONOFORM_STATIC").map(PathBuf::from)
}

/// The path of a program, if it is installed. Servers are in a directory that the PATH of most users lacks.
pub fn which(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .chain([PathBuf::from("/usr/sbin")])
        .map(|dir| dir.join(program))
        .find(|p| p.is_file())
}

/// A test: its name, the programs it needs, and what runs.
#[allow(dead_code, reason = "a test program uses what it needs")]
pub type Test = (&'static str, &'static [&'static str], fn());

/// A test that needs programs: reported as ignored, and why, where one is not installed. Fails where that is required by name in
/// `MONOFORM_REQUIRE`.
pub fn needing(trial: libtest_mimic::Trial, programs: &[&str]) -> libtest_mimic::Trial {
    let absent: Vec<&str> = programs.iter().copied().filter(|p| which(p).is_none()).collect();
    for program in &absent {
        assert!(!is_required(program), "{program} is required here, but not installed");
    }
    let kind = match absent.as_slice() {
        [] => String::new(),
        absent => format!("needs {}", absent.join(" and ")),
    };
    trial.with_kind(kind).with_ignored_flag(!absent.is_empty())
}

/// Runs tests as the arguments of the test program say: as many at the same time as `RUST_TEST_THREADS` says, as everywhere else.
/// Where nothing says it, there are two more than processors, since these tests wait for programs and servers more than they
/// compute.
pub fn run_trials(trials: Vec<libtest_mimic::Trial>) -> ExitCode {
    let mut arguments = libtest_mimic::Arguments::from_args();
    let said = || std::env::var("RUST_TEST_THREADS").ok()?.parse().ok();
    let usual = || std::thread::available_parallelism().map_or(1, usize::from) + 2;
    arguments.test_threads = arguments.test_threads.or_else(said).or_else(|| Some(usual()));
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// The path of a program that a test needs. Where it is not installed, the test is skipped by [`skip`].
#[track_caller]
pub fn needs(program: &str, test: &str) -> Option<PathBuf> {
    if let Some(path) = which(program) {
        return Some(path);
    }
    skip(test, program, "is not installed");
    None
}

/// Reports by name that a test is skipped since something that it needs is missing. Fails the test where `MONOFORM_REQUIRE` in
/// the environment names what it needs.
#[track_caller]
pub fn skip(test: &str, need: &str, reason: &str) {
    assert!(!is_required(need), "{test}: {need} is required here, but {reason}");
    eprintln!("SKIPPED {test}: {need} {reason}");
}

/// Whether `MONOFORM_REQUIRE` names this, among others that commas separate.
fn is_required(need: &str) -> bool {
    let required = std::env::var("MONOFORM_REQUIRE").unwrap_or_default();
    required.split(',').any(|r| r == need)
}
