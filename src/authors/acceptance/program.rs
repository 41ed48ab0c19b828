//! Programs that carry out the steps, and the directories that they work in.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use addrs::platform::Platform;
use engine::stop::Stop;
use files::temporary::PrivateDirectory;
use files::{Environment, io_reason};
use process::program::{Running, find};
use serde_json::Value as Json;
use syntax::{Diagnostic, Diagnostics, Range};
use tokio::process::Command;

/// Time that a command has to end after a second interrupt.
const GRACE: Duration = Duration::from_secs(10);

/// Version under which `init` finds the provider. It satisfies constraints that only have a lower limit.
const VERSION: &str = "99.0.0";

/// Environment variables that programs are started without, because they would change the meaning of a step.
const FOREIGN: &[&str] = &["TF_CLI_ARGS", "TF_WORKSPACE", "TF_DATA_DIR"];

/// A program that carries out steps: Monoform, Terraform or OpenTofu.
#[derive(Clone, Debug)]
pub struct Program {
    pub path: PathBuf,
    /// Name and version, such as "Terraform v1.11.4".
    pub label: String,
}

impl Program {
    /// Finds a program by its path or in PATH, and reads its version from its output.
    ///
    /// # Errors
    /// There is no such program, it fails, or it prints no version.
    pub async fn find(name: &str) -> Result<Program, Diagnostic> {
        let failed =
            |why: String| Diagnostic::error("No such program", format!("The program {name} cannot be used: {why}."));
        let path = find(name).map_err(|error| failed(error.to_string()))?;
        let path = std::path::absolute(&path).unwrap_or(path);
        let output = Command::new(&path)
            .arg("version")
            .stdin(Stdio::null())
            .output()
            .await
            .map_err(|error| failed(io_reason(&error)))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        match text.lines().next() {
            Some(label) if output.status.success() && label.contains(" v") => Ok(Program {
                path,
                label: label.trim().to_owned(),
            }),
            _ => Err(failed(
                "it does not print a version when called with \"version\"".to_owned(),
            )),
        }
    }
}

/// The provider under test.
#[derive(Clone, Copy, Debug)]
pub struct Tested<'t> {
    pub executable: &'t Path,
    /// Name of the provider, the prefix of its types.
    pub name: &'t str,
}

/// Result of a command.
#[derive(Debug)]
pub struct Ran {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

/// Reason why a command has no result.
#[derive(Debug)]
pub enum NotRun {
    /// A second interrupt has ended it.
    Stopped,
    Failed(Diagnostic),
}

/// Directory in which one program works on one test file, with the CLI configuration for the provider.
#[derive(Debug)]
pub struct Workspace<'w> {
    /// `None` after the directory was left to the user.
    dir: Option<PrivateDirectory>,
    root: PathBuf,
    program: &'w Program,
    environment: &'w Environment,
    stop: &'w Stop,
    /// Value of the variable `unique`.
    unique: String,
}

impl<'w> Workspace<'w> {
    /// Creates the directory, with the CLI configuration.
    ///
    /// # Errors
    /// The directory cannot be created or written.
    pub fn create(
        program: &'w Program,
        tested: Tested<'_>,
        source: Option<&str>,
        environment: &'w Environment,
        stop: &'w Stop,
    ) -> io::Result<Workspace<'w>> {
        let dir = PrivateDirectory::create_in(&std::env::temp_dir())?;
        let root = dir.path().to_owned();
        let unique = uuid::Uuid::new_v4().simple().to_string();
        let workspace = Workspace {
            dir: Some(dir),
            root,
            program,
            environment,
            stop,
            unique: unique.get(..8).unwrap_or_default().to_owned(),
        };
        for part in ["work", "override"] {
            fs::create_dir(workspace.root.join(part))?;
        }
        workspace.configure(tested, source)?;
        Ok(workspace)
    }

    /// Writes the CLI configuration: a development override, and a mirror from which `init` takes the provider.
    fn configure(&self, tested: Tested<'_>, source: Option<&str>) -> io::Result<()> {
        let platform = Platform::current();
        let extension = if platform.os == "windows" { ".exe" } else { "" };
        let file = format!("terraform-provider-{}", tested.name);
        let overrides = self.root.join("override");
        system::files::link_program(tested.executable, &overrides.join(format!("{file}{extension}")))?;
        let mut sources = vec![format!("hashicorp/{}", tested.name)];
        sources.extend(source.map(str::to_owned).filter(|source| *source != sources[0]));
        let mirror = self.root.join("mirror");
        for source in &sources {
            for host in hosts(source) {
                let dir = mirror.join(host).join(VERSION).join(platform.to_string());
                fs::create_dir_all(&dir)?;
                system::files::link_program(tested.executable, &dir.join(format!("{file}_v{VERSION}{extension}")))?;
            }
        }
        let quoted = |path: &Path| Json::from(path.to_string_lossy().replace('\\', "/")).to_string();
        let (overrides, mirror) = (quoted(&overrides), quoted(&mirror));
        let listed = Json::from(sources.clone()).to_string();
        let lines: String = sources
            .iter()
            .map(|source| format!("    {} = {overrides}\n", Json::from(source.as_str())))
            .collect();
        let text = format!(
            "provider_installation {{\n  dev_overrides {{\n{lines}  }}\n  filesystem_mirror {{\n    path    = {mirror}\n    include = \
             {listed}\n  }}\n  direct {{\n    exclude = {listed}\n  }}\n}}\n"
        );
        fs::write(self.root.join("cli.tfrc"), text)
    }

    /// Returns the working directory of the program.
    #[must_use]
    pub fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    /// Leaves the directory to the user, and returns the command that destroys its objects.
    pub fn keep(&mut self) -> String {
        let kept = std::env::temp_dir().join(format!("acceptance-{}", self.unique));
        // Other processes remove private directories whose process has ended, so the directory is renamed.
        if fs::rename(&self.root, &kept).is_ok() {
            let file = kept.join("cli.tfrc");
            let text = fs::read_to_string(&file).unwrap_or_default();
            let moved = text.replace(&*self.root.to_string_lossy(), &kept.to_string_lossy());
            // The file only configures the provider under development. Without it, the user still has the state.
            let _: io::Result<()> = fs::write(&file, moved);
            self.root = kept;
        }
        std::mem::forget(self.dir.take());
        format!(
            "TF_CLI_CONFIG_FILE={} {} -chdir={} destroy",
            self.root.join("cli.tfrc").display(),
            self.program.path.display(),
            self.work().display()
        )
    }

    /// Runs the program with arguments.
    ///
    /// # Errors
    /// The program cannot be started, or a second interrupt has ended it.
    pub async fn program(&self, arguments: &[&str]) -> Result<Ran, NotRun> {
        let mut command = Command::new(&self.program.path);
        command
            .args(arguments)
            .env("TF_CLI_CONFIG_FILE", self.root.join("cli.tfrc"))
            .env("TF_IN_AUTOMATION", "1")
            .env("TF_INPUT", "0")
            .env("CHECKPOINT_DISABLE", "1")
            .env("TF_VAR_unique", &self.unique);
        for name in self.environment.all().keys() {
            if FOREIGN.contains(&name.as_str()) || name.starts_with("TF_CLI_ARGS_") {
                command.env_remove(name);
            }
        }
        self.run(command, &self.program.label).await
    }

    /// Runs a command of the test in the working directory.
    ///
    /// # Errors
    /// The command cannot be started, or a second interrupt has ended it.
    pub async fn command(&self, words: &[String]) -> Result<Ran, NotRun> {
        let (name, arguments) = words
            .split_first()
            .map_or(("", words), |(name, rest)| (name.as_str(), rest));
        let mut command = Command::new(name);
        command.args(arguments).env("TF_VAR_unique", &self.unique);
        self.run(command, name).await
    }

    async fn run(&self, command: Command, name: &str) -> Result<Ran, NotRun> {
        run_in(command, name, &self.work(), &self.root, self.stop).await
    }
}

/// Returns the directories of a source address in a mirror. An address without a host gets one for Terraform's registry and one for
/// OpenTofu's.
fn hosts(source: &str) -> Vec<PathBuf> {
    if source.split('/').count() > 2 {
        return vec![PathBuf::from(source)];
    }
    ["registry.terraform.io", "registry.opentofu.org"]
        .map(|host| Path::new(host).join(source))
        .to_vec()
}

/// Runs a command. Its output goes to files, because a descendant that outlives the command could hold a pipe open.
pub(super) async fn run_in(
    mut command: Command,
    name: &str,
    dir: &Path,
    logs: &Path,
    stop: &Stop,
) -> Result<Ran, NotRun> {
    let failed = |error: &io::Error| {
        NotRun::Failed(Diagnostic::error(
            "Failed to run command",
            format!("\"{name}\" cannot be run: {}.", io_reason(error)),
        ))
    };
    let paths = [logs.join("stdout"), logs.join("stderr")];
    let open = |path: &PathBuf| File::create(path).map_err(|error| failed(&error));
    command
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(open(&paths[0])?)
        .stderr(open(&paths[1])?);
    let mut running = Running::start(&mut command).map_err(|error| failed(&error))?;
    let status = tokio::select! {
        status = running.wait() => status.map_err(|error| failed(&error))?,
        () = stop.cancelled() => {
            let _: io::Result<ExitStatus> = running.end(GRACE).await;
            return Err(NotRun::Stopped);
        }
    };
    let [stdout, stderr] = paths.map(|path| {
        let bytes = fs::read(path).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    });
    Ok(Ran { status, stdout, stderr })
}

impl Ran {
    /// Returns the diagnostics of a command with `-json`, with the lines of `stderr` if there is no error among them and
    /// the command has failed. `place` returns the name of a configuration file in messages.
    #[must_use]
    pub fn diagnostics(&self, place: impl Fn(&str) -> Option<String>) -> Diagnostics {
        let documents = self
            .stdout
            .lines()
            .filter_map(|line| serde_json::from_str::<Json>(line).ok());
        let mut found: Diagnostics = documents
            .filter(|document| document["type"] == "diagnostic")
            .map(|document| diagnostic(&document["diagnostic"], &place))
            .collect();
        if !self.status.success() && !found.has_errors() {
            found.push(self.failure("The program has failed"));
        }
        found
    }

    /// Returns an error with the end of standard error, or of standard output if nothing was written to standard error.
    #[must_use]
    pub fn failure(&self, summary: &str) -> Diagnostic {
        let text = if self.stderr.trim().is_empty() {
            &self.stdout
        } else {
            &self.stderr
        };
        Diagnostic::error(summary, plain(text))
    }
}

/// Returns the last 30 lines of a text that are not empty, without the frames around diagnostics.
fn plain(text: &str) -> String {
    let lines = text
        .lines()
        .map(|line| line.trim_start_matches(['│', '╷', '╵', ' ']).trim_end());
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    // The end names the reason, and a log may be before it.
    let from = lines.len().saturating_sub(30);
    lines.get(from..).unwrap_or_default().join("\n")
}

fn diagnostic(document: &Json, place: impl Fn(&str) -> Option<String>) -> Diagnostic {
    let text = |name: &str| document[name].as_str().unwrap_or_default();
    let mut found = match text("severity") {
        "warning" => Diagnostic::warning(text("summary"), text("detail")),
        _ => Diagnostic::error(text("summary"), text("detail")),
    };
    if let Some(address) = document["address"].as_str() {
        found = found.about(address);
    }
    let range = &document["range"];
    let Some(file) = range["filename"].as_str().and_then(place) else {
        return found;
    };
    let position = |of: &Json| {
        let number = |name: &str| of[name].as_u64().and_then(|n| u32::try_from(n).ok());
        Some(syntax::Pos {
            line: number("line")?,
            column: number("column")?,
            byte: number("byte")?,
        })
    };
    match (position(&range["start"]), position(&range["end"])) {
        (Some(start), Some(end)) => found.at(&Range {
            file: file.into(),
            start,
            end,
        }),
        _ => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mirrors_serve_every_registry_that_a_bare_name_means() {
        assert_eq!(hosts("example.com/me/zoo"), [PathBuf::from("example.com/me/zoo")]);
        let both = hosts("me/zoo");
        assert_eq!(both.len(), 2);
        assert!(both.contains(&PathBuf::from("registry.opentofu.org/me/zoo")));
    }

    #[test]
    fn frames_are_removed_from_texts() {
        assert_eq!(plain("╷\n│ Error: No\n│ \n│   reason\n╵\n"), "Error: No\nreason");
    }
}
