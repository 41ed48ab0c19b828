//! The executable under test, and Wine around it.

use std::path::{Path, PathBuf};
use std::process::Command;

use support::running::Running;
use support::{Ran, Workspace};

/// A workspace whose commands run under Wine.
pub struct Windows {
    pub files: Workspace,
    /// Directory with the executable and with Wine's drive C.
    dir: PathBuf,
}

impl Windows {
    /// Creates a workspace with files; `None` if there is nothing to test, which is reported under the name of the test.
    #[track_caller]
    pub fn with(files: &[(&str, &str)], test: &str) -> Option<Windows> {
        Windows::in_workspace(Workspace::with(files), test)
    }

    /// Creates a workspace with a copy of a directory of this repository.
    #[track_caller]
    pub fn copy_of(dir: &str, test: &str) -> Option<Windows> {
        Windows::in_workspace(Workspace::copy_of(dir), test)
    }

    #[track_caller]
    fn in_workspace(files: Workspace, test: &str) -> Option<Windows> {
        let Some(dir) = support::windows_dir() else {
            support::skip(
                test,
                "wine",
                "runs nothing here: MONOFORM_WINDOWS, which scripts/check-wine sets, is unset",
            );
            return None;
        };
        support::needs("wine", test)?;
        Some(Windows { files, dir })
    }

    /// Returns a command that runs a program for Windows in the workspace.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = self.files.command("wine");
        command
            .arg(program.as_ref())
            .env("WINEPREFIX", self.dir.join("prefix"))
            // Suppresses messages of Wine itself.
            .env("WINEDEBUG", "-all");
        command
    }

    /// Runs a program of the workspace, and waits for its end.
    pub fn run_program(&self, program: &str, args: &[&str]) -> Ran {
        self.ran(self.command(program).args(args))
    }

    /// Runs the executable under test, and waits for its end.
    pub fn run(&self, args: &[&str]) -> Ran {
        self.ran(self.command(self.executable()).args(args))
    }

    fn ran(&self, command: &mut Command) -> Ran {
        let mut ran = support::ran(command.output().expect("wine starts"));
        // Consoles of Windows end a line with a carriage return and a line feed.
        ran.stdout = ran.stdout.replace("\r\n", "\n");
        ran
    }

    /// Starts the executable under test.
    pub fn start(&self, args: &[&str]) -> Running {
        Running::start(self.command(self.executable()).args(args))
    }

    fn executable(&self) -> PathBuf {
        self.dir.join("monoform.exe")
    }

    /// Returns the path of a file of the workspace as programs for Windows see it, with backslashes.
    pub fn path(&self, name: &str) -> String {
        format!("Z:{}", self.files.dir().join(name).display()).replace('/', "\\")
    }
}

/// Returns a text as a string of the configuration language.
pub fn quoted(text: &str) -> String {
    format!("{text:?}")
}
