//! Fixtures shared by the tests of the workspace: a development dependency only.
//!
//! - [`Workspace`]: a fresh working directory in which the real executable is run, and [`Ran`], the result.
//! - [`server`]: an HTTP server that answers by a closure; [`registry`]: provider registries and mirrors on it.
//! - [`crash`]: applies that are killed at random times.
//! - [`disk`]: disk contents after a power cut.
//! - [`oci`]: artifacts of OCI registries on an HTTP server.
//! - [`ports`]: ports that refuse connections, and reserved ports for servers that take a number.
//! - [`kubernetes`]: the secrets and leases of a cluster on an HTTP server.
//! - [`running`]: a program that runs during a test.
//! - [`scenario`]: recorded scenarios, played and compared with Terraform's results.
//! - [`terminal`]: a program on a pseudo-terminal.
//! - [`example`]: builds an example of a crate. [`our_plugins`]: the built-in plugins, for Terraform.
//! - [`needs`], [`needing`], [`skip`]: tests that need a program which may not be installed.
//! - [`run_trials`]: runs a list of tests that is made at run time.

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
pub mod ending;
pub mod exchange;
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

/// Root directory of the repository.
pub(crate) const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Clears the environment of a command except for the search path, and sets its home directory. The developer's settings, home
/// directory and ignored signals then do not change the result.
pub fn isolated(command: &mut Command, home: &Path) {
    usual_signals();
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home)
        .env("CHECKPOINT_DISABLE", "1");
}

/// Restores the default action of SIGINT and SIGHUP in this process, and so in its children: `nohup`, or a background job of a
/// shell, leaves them ignored, which the tested program would inherit.
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

/// Returns the path of the executable under test: the one that Cargo has built beside the running test program.
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

/// A temporary working directory, its own home directory beside it, and environment variables for its commands.
pub struct Workspace {
    root: tempfile::TempDir,
    environment: Vec<(String, String)>,
}

/// Exit status and output of a finished command.
pub struct Ran {
    /// Exit status; -1 if a signal ended the command.
    pub status: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Ran {
    /// Returns the status and both streams, for messages.
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

    /// Fails the test unless the command failed with status 1 and its errors contain all `texts`. Line breaks and the frame around
    /// errors are ignored.
    #[track_caller]
    pub fn fails_with(self, texts: &[&str]) -> Ran {
        assert_eq!(self.status, 1, "{}", self.all());
        let plain = words(&self.stderr);
        for text in texts {
            assert!(plain.contains(&words(text)), "{text:?} is not in\n{}", self.all());
        }
        self
    }

    /// Fails the test unless the output contains all `texts`, line breaks included.
    #[track_caller]
    pub fn shows(self, texts: &[&str]) -> Ran {
        for text in texts {
            assert!(self.stdout.contains(text), "{text:?} is not in\n{}", self.all());
        }
        self
    }

    /// Parses the output as JSON.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("not JSON: {e}\n{}", self.all()))
    }
}

/// Returns the path of the executable without its symbols, or of the usual one if `strip` fails. Terraform computes the
/// checksum of every plugin in every command, and symbols are the largest part of a development build.
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

/// Builds an example of a crate of the workspace and returns its path.
pub fn example(name: &str) -> PathBuf {
    // The whole workspace is selected, as for the tests: a smaller selection would unify other features, and build many crates a
    // second time.
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

/// Returns the text of a CLI configuration file that takes every provider from a mirror in a directory.
pub fn only_from(mirror: &Path) -> String {
    format!(
        "provider_installation {{\n  filesystem_mirror {{\n    path = \"{}\"\n  }}\n}}\n",
        mirror.display()
    )
}

/// Makes a mirror of the built-in plugins in a directory, and a CLI configuration file that takes every provider from it; returns
/// the path of the file.
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

/// Returns the text without line breaks, frames and repeated blanks.
pub fn words(text: &str) -> String {
    let plain: String = text.chars().map(|c| if "╷│╵".contains(c) { ' ' } else { c }).collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Workspace {
    /// Creates an empty workspace.
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

    pub fn with(files: &[(&str, &str)]) -> Workspace {
        let workspace = Workspace::new();
        for (name, text) in files {
            workspace.write(name, text);
        }
        workspace
    }

    /// Creates a workspace with a copy of a directory of this repository.
    pub fn copy_of(dir: &str) -> Workspace {
        let workspace = Workspace::new();
        copy(&Path::new(REPOSITORY).join(dir), &workspace.dir());
        workspace
    }

    /// Adds a variable to the environment of every command.
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Workspace {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Makes the built-in plugins the only ones that Terraform finds.
    pub fn with_our_plugins(self) -> Workspace {
        let file = our_plugins(&self.home());
        self.env("TF_CLI_CONFIG_FILE", file.display().to_string())
    }

    /// Returns the working directory.
    pub fn dir(&self) -> PathBuf {
        self.root.path().join("work")
    }

    /// Returns the home directory.
    pub fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// Writes a file, with its directories, below the working directory.
    pub fn write(&self, name: &str, text: &str) {
        let path = self.dir().join(name);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(&path, text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }

    /// Reads a file of the working directory.
    #[track_caller]
    pub fn read(&self, name: &str) -> String {
        let path = self.dir().join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    /// Returns true if the working directory has such a file.
    pub fn exists(&self, name: &str) -> bool {
        self.dir().join(name).exists()
    }

    /// Returns a command that runs a program in the working directory. Only the search path is taken over from
    /// this process's environment.
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

    /// Runs a program in the working directory and waits for its end.
    pub fn run_program(&self, program: impl AsRef<OsStr>, args: &[&str]) -> Ran {
        let mut command = self.command(program);
        command.args(args);
        // Another thread that is starting a program has a forked child, which holds all open files until it executes that program.
        // Until then, an executable that this thread has just written cannot be run.
        for _ in 0..500 {
            match ending::output(&mut command) {
                Err(e) if e.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                    std::thread::sleep(std::time::Duration::from_millis(10));
                }
                output => return ran(output.expect("the program starts")),
            }
        }
        ran(ending::output(&mut command).expect("the program starts"))
    }

    /// Runs the executable under test in the working directory.
    pub fn run(&self, args: &[&str]) -> Ran {
        self.run_program(monoform(), args)
    }

    /// Runs the Terraform of the search path in the working directory.
    pub fn terraform(&self, args: &[&str]) -> Ran {
        self.run_program("terraform", args)
    }

    /// Returns the attributes of a resource's only instance in the state.
    #[track_caller]
    pub fn attributes(&self, ty: &str, name: &str) -> serde_json::Value {
        let state = self.state();
        let resources = state["resources"].as_array().expect("resources");
        let found = resources
            .iter()
            .find(|r| r["type"] == ty && r["name"] == name && r["mode"] == "managed");
        found.unwrap_or_else(|| panic!("no {ty}.{name} in {state:#}"))["instances"][0]["attributes"].clone()
    }

    /// Parses the file `terraform.tfstate`.
    #[track_caller]
    pub fn state(&self) -> serde_json::Value {
        serde_json::from_str(&self.read("terraform.tfstate")).expect("the state is JSON")
    }
}

/// Converts the output of a finished command. The status is -1 if a signal has ended the command.
pub fn ran(output: Output) -> Ran {
    Ran {
        status: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Copies a directory without the leftovers of manual runs.
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

/// Returns the path of the static executable, which `MONOFORM_STATIC` in the environment gives.
#[must_use]
pub fn static_monoform() -> Option<PathBuf> {
    std::env::var_os("MONOFORM_STATIC").map(PathBuf::from)
}

/// Returns the directory with the executable for Windows and the drives of Wine, which `MONOFORM_WINDOWS` gives.
#[must_use]
pub fn windows_dir() -> Option<PathBuf> {
    std::env::var_os("MONOFORM_WINDOWS").map(PathBuf::from)
}

/// Returns the path of an executable for another processor, which `MONOFORM_PROCESSOR` gives.
#[must_use]
pub fn other_processor() -> Option<PathBuf> {
    std::env::var_os("MONOFORM_PROCESSOR").map(PathBuf::from)
}

/// Returns the path of a program, if it is installed.
pub fn which(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        // Servers such as sshd are in a directory that is not in the PATH of most users.
        .chain([PathBuf::from("/usr/sbin")])
        .map(|dir| dir.join(program))
        .find(|p| p.is_file())
}

/// A test: its name, the programs that it needs, and its function.
#[allow(dead_code, reason = "a test program uses what it needs")]
pub type Test = (&'static str, &'static [&'static str], fn());

/// Marks a test as ignored, with the reason, if a program that it needs is not installed. Panics if `MONOFORM_REQUIRE` names that
/// program.
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

/// Runs tests by the arguments of the test program. `RUST_TEST_THREADS` limits the number of tests that run at the same time;
/// the default is the number of processors and two more.
pub fn run_trials(trials: Vec<libtest_mimic::Trial>) -> ExitCode {
    let mut arguments = libtest_mimic::Arguments::from_args();
    let said = || std::env::var("RUST_TEST_THREADS").ok()?.parse().ok();
    // These tests mostly wait for programs and servers, so more of them run than there are processors.
    let usual = || std::thread::available_parallelism().map_or(1, usize::from) + 2;
    arguments.test_threads = arguments.test_threads.or_else(said).or_else(|| Some(usual()));
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Returns the path of a program that a test needs. If it is not installed, the test is skipped by [`skip`].
#[track_caller]
pub fn needs(program: &str, test: &str) -> Option<PathBuf> {
    if let Some(path) = which(program) {
        return Some(path);
    }
    skip(test, program, "is not installed");
    None
}

/// Reports by name that a test is skipped because something that it needs is missing. Fails the test if `MONOFORM_REQUIRE` in the
/// environment names that need.
#[track_caller]
pub fn skip(test: &str, need: &str, reason: &str) {
    assert!(!is_required(need), "{test}: {need} is required here, but {reason}");
    eprintln!("SKIPPED {test}: {need} {reason}");
}

/// Returns true if the comma-separated list in `MONOFORM_REQUIRE` has this need. It is set on machines that must run all tests.
fn is_required(need: &str) -> bool {
    let required = std::env::var("MONOFORM_REQUIRE").unwrap_or_default();
    required.split(',').any(|r| r == need)
}
