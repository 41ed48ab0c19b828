//! Executables of a release, built by cargo.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use files::{Environment, io_reason};
use serde_json::Value as Json;

use super::{Executables, ReleaseError, provider_of};

/// Separator in `CARGO_ENCODED_RUSTFLAGS`.
const UNIT: char = '\u{1f}';

/// A build of a provider's project.
#[derive(Clone, Copy, Debug)]
pub struct Build<'b> {
    /// Directory of the project.
    pub dir: &'b Path,
    /// Targets of rustc, such as `aarch64-unknown-linux-musl`. Without any, the host's.
    pub targets: &'b [String],
    /// Name of the provider, if the project builds several.
    pub name: Option<&'b str>,
    pub environment: &'b Environment,
}

/// Reason why the build failed.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error("the program {program} cannot be run: {}", io_reason(source))]
    NotRun { program: &'static str, source: io::Error },
    #[error("rustc knows no target \"{0}\". \"rustc --print target-list\" lists all")]
    UnknownTarget(String),
    #[error("the standard library of these targets is not installed. To install it, run: rustup target add {}", .0.join(" "))]
    NotInstalled(Vec<String>),
    #[error("cargo has failed to build {0}. It has printed the reason above")]
    Failed(String),
    #[error("the project in {} builds no executable terraform-provider-NAME", .0.display())]
    Nothing(PathBuf),
    #[error(transparent)]
    Release(#[from] ReleaseError),
}

impl Build<'_> {
    /// Builds the executables. The messages of cargo go to standard error.
    ///
    /// # Errors
    /// A target is unknown or not installed, rustc or cargo cannot be started, the project does not compile, or it has no or several
    /// executables of a provider.
    pub fn run(&self) -> Result<Executables, BuildError> {
        self.check_targets()?;
        let mut found = Executables::default();
        let targets: Vec<Option<&str>> = match self.targets {
            [] => vec![None],
            targets => targets.iter().map(|target| Some(target.as_str())).collect(),
        };
        for target in targets {
            let built = self.cargo(target)?;
            let of_name = |path: &PathBuf| {
                path.file_name()
                    .and_then(|file| provider_of(file.to_str()?))
                    .map(str::to_owned)
            };
            let providers = built.into_iter().filter_map(|path| Some((of_name(&path)?, path)));
            let mut wanted = providers.filter(|(name, _)| self.name.is_none_or(|wanted| wanted == name));
            let Some((name, path)) = wanted.next() else {
                return Err(BuildError::Nothing(self.dir.to_owned()));
            };
            if let Some((other, _)) = wanted.next() {
                return Err(ReleaseError::SeveralProviders(name, other).into());
            }
            found.name = name;
            found.add(&path, None)?;
        }
        Ok(found)
    }

    /// Checks that all targets are installed, before any is built.
    fn check_targets(&self) -> Result<(), BuildError> {
        let mut missing = Vec::new();
        for target in self.targets {
            let output = Command::new("rustc")
                .args(["--print", "target-libdir", "--target", target])
                .current_dir(self.dir)
                .stdin(Stdio::null())
                .output()
                .map_err(|source| BuildError::NotRun {
                    program: "rustc",
                    source,
                })?;
            let dir = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            if !output.status.success() {
                return Err(BuildError::UnknownTarget(target.clone()));
            }
            if !Path::new(&dir).is_dir() {
                missing.push(target.clone());
            }
        }
        match missing.is_empty() {
            true => Ok(()),
            false => Err(BuildError::NotInstalled(missing)),
        }
    }

    /// Builds for one target. Returns the executables.
    fn cargo(&self, target: Option<&str>) -> Result<Vec<PathBuf>, BuildError> {
        let mut command = Command::new("cargo");
        command
            .args(["build", "--release", "--message-format=json-render-diagnostics"])
            .args(target.map(|target| format!("--target={target}")))
            .current_dir(self.dir)
            // Incremental compilation can split and order code differently, so that the same sources would give other bytes.
            .env("CARGO_INCREMENTAL", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        if self.dir.join("Cargo.lock").is_file() {
            command.arg("--locked");
        }
        self.remap(&mut command);
        let not_run = |source| BuildError::NotRun {
            program: "cargo",
            source,
        };
        // Standard error is the user's, so that progress and mistakes are shown as they come.
        let output = command.stderr(Stdio::inherit()).output().map_err(not_run)?;
        if !output.status.success() {
            let what = target.map_or_else(|| "the provider".to_owned(), |target| format!("for {target}"));
            return Err(BuildError::Failed(what));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let messages = text.lines().filter_map(|line| serde_json::from_str::<Json>(line).ok());
        let executables = messages
            .filter(|message| message["reason"] == "compiler-artifact")
            .filter_map(|message| message["executable"].as_str().map(PathBuf::from));
        Ok(executables.collect())
    }

    /// Replaces the directories of this machine in the executable, so that the same sources give the same bytes elsewhere.
    fn remap(&self, command: &mut Command) {
        let project = std::path::absolute(self.dir).unwrap_or_else(|_| self.dir.to_owned());
        let cargo = self.environment.get("CARGO_HOME").map(PathBuf::from);
        let cargo = cargo.or_else(|| Some(self.environment.home()?.join(".cargo")));
        let mut flags = vec![format!("--remap-path-prefix={}=/provider", project.display())];
        flags.extend(cargo.map(|dir| format!("--remap-path-prefix={}=/cargo", dir.display())));
        // Flags in the environment take precedence over those of the configuration, so the new ones go to the same place.
        if let Some(own) = self.environment.get("CARGO_ENCODED_RUSTFLAGS") {
            flags.insert(0, own.to_owned());
        } else if let Some(own) = self.environment.get("RUSTFLAGS") {
            flags.splice(0..0, own.split_whitespace().map(str::to_owned));
        } else {
            let list = Json::from(flags).to_string();
            command.arg("--config").arg(format!("build.rustflags={list}"));
            return;
        }
        command.env("CARGO_ENCODED_RUSTFLAGS", OsString::from(flags.join(&UNIT.to_string())));
    }
}
