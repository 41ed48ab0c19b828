//! The command `fmt`, which formats files of configurations.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

use serde_json::{Value as Json, json};
use syntax::{Diagnostic, Diagnostics, SourceMap};
use views::json::{Object, diagnostics};
use views::unified_diff;

use crate::args::flags::{self, Flags, FromFlags};
use crate::commands::Command;
use crate::outcome::{Failure, Outcome, Status};
use crate::session::Session;

pub const COMMAND: Command = Command {
    path: "fmt",
    about: "Reformat your configuration in the standard style",
    positional: "[target...]",
    details: "Rewrites configuration files (.tf and .tofu), files of variable values (.tfvars), test files (.tftest.hcl and \
      .tofutest.hcl), mock files (.tfmock.hcl) and query files (.tfquery.hcl) in the canonical style. A target is a file, a \
      directory, or - for standard input; without one it is the working directory. Files in the JSON syntax are left alone.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    positional: Vec<String>,
    list: bool,
    write: bool,
    diff: bool,
    check: bool,
    recursive: bool,
    json: bool,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        Arguments {
            positional: flags.positional(),
            list: flags.switch(
                "list",
                true,
                "Do not list files whose formatting differs. Those of standard input are never listed.",
            ),
            write: flags.switch(
                "write",
                true,
                "Do not write to source files. With standard input and with -check they are never written.",
            ),
            diff: flags.switch("diff", false, "Display the differences."),
            check: flags.switch(
                "check",
                false,
                "Only check. The exit status is 0 if everything is formatted, and 3 if not.",
            ),
            recursive: flags.switch("recursive", false, "Also process files in subdirectories."),
            json: flags.switch(
                "json",
                false,
                "Output what was found of each file as JSON, formatted ones too, with the differences where -diff asks for \
                 them. The option -list has no effect then. With standard input only together with -check.",
            ),
        }
    }
}

const SUFFIXES: &[&str] = &[
    ".tf",
    ".tofu",
    ".tfvars",
    ".tftest.hcl",
    ".tofutest.hcl",
    ".tfmock.hcl",
    ".tfquery.hcl",
];

/// Name of standard input in messages.
const STDIN: &str = "<stdin>";

/// Status if something could not be read, parsed or written.
const FAILED: Status = 2;

/// Status of `-check` if something is not formatted.
const DIFFERS: Status = 3;

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    let targets = &arguments.positional;
    let from_stdin = targets.first().is_some_and(|t| t == "-");
    let check = arguments.check;
    if arguments.json && from_stdin && !check {
        return Err(Failure::usage(
            "Incompatible options",
            "The text of standard input is written to standard output once it is formatted, so -json is possible only with -check.",
        ));
    }
    let mut formatter = Formatter {
        list: arguments.list && !from_stdin && !arguments.json,
        write: arguments.write && !from_stdin && !check,
        diff: arguments.diff,
        silent: check && (from_stdin || !arguments.list) && !arguments.json,
        documents: arguments.json.then(Vec::new),
        check,
        recursive: arguments.recursive,
        session,
        differs: false,
        problems: Diagnostics::new(),
        sources: SourceMap::default(),
    };
    if from_stdin {
        let mut text = Vec::new();
        match io::stdin().lock().read_to_end(&mut text) {
            Ok(_) => formatter.text(STDIN, &text),
            Err(e) => formatter.problem(format!("Failed to read {STDIN}"), e.to_string()),
        }
    } else if targets.is_empty() {
        formatter.directory(Path::new("."));
    } else {
        formatter.targets(targets);
    }
    let outcome = match formatter.documents.take() {
        Some(files) => {
            let document = json!({
                "format_version": "1.0",
                "files": files,
                "diagnostics": diagnostics::list(&formatter.problems, &formatter.sources),
            });
            Outcome::document(&document)
        }
        None => Outcome::success().and_problems(formatter.problems.clone(), &formatter.sources),
    };
    Ok(
        // Errors have precedence over differences, as in Terraform.
        outcome.with_status(match (formatter.problems.has_errors(), check && formatter.differs) {
            (true, _) => FAILED,
            (false, true) => DIFFERS,
            (false, false) => 0,
        }),
    )
}

struct Formatter<'s> {
    session: &'s Session,
    list: bool,
    write: bool,
    diff: bool,
    /// True if only the exit status is required.
    silent: bool,
    /// Entry for each file in the JSON document; `None` without `-json`.
    documents: Option<Vec<Json>>,
    check: bool,
    recursive: bool,
    /// True if anything was not formatted.
    differs: bool,
    problems: Diagnostics,
    sources: SourceMap,
}

impl Formatter<'_> {
    fn targets(&mut self, targets: &[String]) {
        for target in targets {
            let path = self.relative(Path::new(target));
            let shown = path.display();
            match fs::metadata(&path) {
                Err(e) => {
                    // One wrong name may mean that all names are wrong, so nothing else is rewritten.
                    self.problem(
                        format!("No file or directory at {shown}"),
                        format!("It cannot be formatted: {}.", files::io_reason(&e)),
                    );
                    return;
                }
                Ok(found) if found.is_dir() => self.directory(&path),
                Ok(_) if is_handled(&path.to_string_lossy()) => self.file(&path),
                Ok(_) => self.problem(
                    format!(
                        "Only .tf, .tfvars, and .tftest.hcl files can be processed with {} fmt",
                        self.session.ui.program.command
                    ),
                    format!(
                        "The file {shown} has none of these endings, nor that of a mock file, .tfmock.hcl. Files in the JSON \
                         syntax have no canonical style."
                    ),
                ),
            }
        }
    }

    /// Formats the files of a directory in the order of their names.
    fn directory(&mut self, dir: &Path) {
        let entries = fs::read_dir(dir).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let mut entries = match entries {
            Ok(entries) => entries,
            Err(e) => {
                return self.problem(
                    format!("Cannot read directory {}", dir.display()),
                    format!("Its files cannot be listed: {}.", files::io_reason(&e)),
                );
            }
        };
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if config::files::is_ignored(&name) {
                continue;
            }
            let path = if dir == Path::new(".") {
                PathBuf::from(entry.file_name())
            } else {
                dir.join(entry.file_name())
            };
            // A link to a directory is not followed, since it could lead anywhere.
            if entry.file_type().is_ok_and(|t| t.is_dir()) {
                if self.recursive {
                    self.directory(&path);
                }
            } else if is_handled(&name) {
                self.file(&path);
            }
        }
    }

    fn file(&mut self, path: &Path) {
        let shown = path.display().to_string();
        let text = match fs::read(path) {
            Ok(text) => text,
            Err(e) => {
                return self.problem(
                    format!("Failed to read file {shown}"),
                    format!("It cannot be formatted: {}.", files::io_reason(&e)),
                );
            }
        };
        self.text(&shown, &text);
    }

    fn text(&mut self, path: &str, text: &[u8]) {
        let formatted = match syntax::format::format_file(path, text) {
            Ok(formatted) => formatted,
            Err(problems) => {
                // Diagnostics show source lines, so the text is kept only for files with problems.
                self.sources.insert(path, String::from_utf8_lossy(text).as_ref());
                return self.problems.extend(problems);
            }
        };
        let differs = formatted != text;
        self.differs |= differs;
        if self.silent {
            return;
        }
        if differs && self.list {
            self.session.ui.line(path);
        }
        if differs
            && self.write
            && let Err(e) = rewrite(path, &formatted)
        {
            return self.problem(
                format!("Failed to write {path}"),
                format!("{e}. The file is as it was."),
            );
        }
        if let Some(documents) = &mut self.documents {
            let difference = (differs && self.diff).then(|| unified_diff::of_file(path, text, &formatted));
            let file = Object::default()
                .with("path", path)
                .with("formatted", !differs)
                .with("written", differs && self.write)
                .with_some(
                    "diff",
                    difference.map(|text| String::from_utf8_lossy(&text).into_owned()),
                );
            documents.push(file.into());
            return;
        }
        if differs && self.diff {
            self.session
                .ui
                .out_bytes(&unified_diff::of_file(path, text, &formatted));
        }
        // With nothing else to do, the formatted text itself is the output, as in Terraform.
        if !(self.list || self.write || self.diff || self.check) {
            let line_break: &[u8] = if formatted.ends_with(b"\n") { b"" } else { b"\n" };
            self.session.ui.out_bytes(&[&formatted, line_break].concat());
        }
    }

    fn problem(&mut self, summary: String, detail: String) {
        self.problems.push(Diagnostic::error(summary, detail));
    }

    /// Returns a path relative to the working directory, for display.
    fn relative(&self, path: &Path) -> PathBuf {
        let base = &self.session.working_dir;
        let joined = base.join(path);
        let whole = steps(&joined);
        let base = steps(base);
        let common = whole.iter().zip(&base).take_while(|(a, b)| a == b).count();
        let up = std::iter::repeat_n(Component::ParentDir, base.len() - common);
        let relative: PathBuf = up.chain(whole[common..].iter().copied()).collect();
        if relative.as_os_str().is_empty() {
            PathBuf::from(".")
        } else {
            relative
        }
    }
}

/// Returns the components of an absolute path without `.` and `..`.
fn steps(path: &Path) -> Vec<Component<'_>> {
    let mut out = Vec::new();
    for step in path.components() {
        match step {
            Component::Normal(_) => out.push(step),
            Component::ParentDir => drop(out.pop()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    out
}

/// Replaces a file of the configuration. A read-only file is an error. Opening it for writing checks that: replacing by rename would need
/// only the directory's write permission.
pub(super) fn rewrite(path: &str, contents: &[u8]) -> io::Result<()> {
    OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|_| files::replace(Path::new(path), contents, files::Policy::SHARED))
}

fn is_handled(name: &str) -> bool {
    SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
}
