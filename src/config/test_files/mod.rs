//! Test files (`*.tftest.hcl`, `*.tftest.json`, those of OpenTofu) and their mock data (`*.tfmock.hcl`, `*.tfmock.json`): decoded to typed
//! blocks.
//!
//! Test files are in the directory of the root module and in one test directory; subdirectories are not searched. They are decoded in this
//! crate, not in the one that runs them, for two reasons: they share the grammar of variables, providers and conditions with the
//! configuration, and commands that never run a test check them, too.

mod decode;
mod mocks;

use std::sync::Arc;

use addrs::program::Mode;
use files::io_reason;
use syntax::ast::Body;
use syntax::{Diagnostic, Diagnostics, Range, SourceMap};

use crate::files::{FileSource, is_ignored, join};
use crate::model::TestFile;
use crate::{file_names, loader, parse};

use decode::TestDecoder;

/// Default test directory, which is read besides the directory of the root module.
pub const DEFAULT_DIR: &str = "tests";

/// The test files of a configuration.
#[derive(Clone, Debug, Default)]
pub struct TestFiles {
    /// Files, in the order of their names.
    pub files: Vec<Arc<TestFile>>,
    /// Text of every test file and mock data file.
    pub sources: SourceMap,
    pub diagnostics: Diagnostics,
}

/// Returns the test directory that the user has named, or the default.
///
/// # Errors
/// The directory is not inside the working directory.
pub fn directory(given: Option<&str>) -> Result<&str, Diagnostic> {
    let dir = given.unwrap_or(DEFAULT_DIR);
    if std::path::Path::new(dir).is_absolute() || dir.split('/').any(|step| step == "..") {
        return Err(Diagnostic::error(
            "Invalid testing directory",
            format!("The directory of test files must be inside the working directory, and \"{dir}\" is not."),
        ));
    }
    Ok(dir)
}

/// Reads the test files of a root module. `tests` is the test directory; `explicit` is set if the user named it.
#[must_use]
pub fn read(files: &dyn FileSource, root: &str, tests: &str, explicit: bool) -> TestFiles {
    let mut out = TestFiles::default();
    let beside = names(files, root, root, false, &mut out.diagnostics);
    let mut paths: Vec<(String, bool)> = beside
        .into_iter()
        .filter(|path| !is_ignored(path.rsplit('/').next().unwrap_or(path)))
        .map(|path| (path, false))
        .collect();
    let dir = join(root, tests);
    // If both are the same directory, its files are in the list already.
    if dir != root {
        let inside = names(files, &dir, tests, explicit, &mut out.diagnostics);
        paths.extend(inside.into_iter().map(|path| (path, true)));
    }
    paths.sort();
    for (path, in_test_dir) in paths {
        let Some(body) = parsed(files, &path, "test file", &mut out.sources, &mut out.diagnostics) else {
            continue;
        };
        let sources = &mut out.sources;
        let mut mock_data = |dir: &str, at: &Range, diagnostics: &mut Diagnostics| {
            mock_data(files, &join(root, dir), at, sources, diagnostics)
        };
        let mut file = TestDecoder {
            diagnostics: &mut out.diagnostics,
            mock_data: &mut mock_data,
        }
        .file(body);
        file.name = path.into();
        file.in_test_dir = in_test_dir;
        out.files.push(Arc::new(file));
    }
    out
}

/// Parses a file. `None` if it cannot be read or has syntax errors, which are reported. A file with syntax errors is
/// not decoded, so that no missing arguments are reported.
fn parsed(
    files: &dyn FileSource,
    path: &str,
    what: &str,
    sources: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> Option<Body> {
    let bytes = match files.read(path) {
        Ok(bytes) => bytes,
        Err(error) => {
            diagnostics.push(Diagnostic::error(
                "Failed to read file",
                format!("The {what} {path} cannot be read: {}.", io_reason(&error)),
            ));
            return None;
        }
    };
    // The text is recorded before parsing, because diagnostics show the text.
    sources.insert(path, String::from_utf8_lossy(&bytes).as_ref());
    let (body, problems) = if path.ends_with(".json") {
        syntax::json::parse_file(path, &bytes)
    } else {
        parse::file(path, &bytes)
    };
    let broken = problems.has_errors();
    diagnostics.extend(problems);
    (!broken).then(|| Arc::unwrap_or_clone(body))
}

/// Parses the mock data files of a directory.
fn mock_data(
    files: &dyn FileSource,
    dir: &str,
    at: &Range,
    sources: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> Vec<Body> {
    let mut names = match files.list(dir) {
        Ok(names) => names,
        Err(error) => {
            diagnostics.push(
                Diagnostic::error(
                    "Failed to read mock data directory",
                    format!(
                        "The directory {dir} of mock data cannot be read: {}.",
                        io_reason(&error)
                    ),
                )
                .at(at),
            );
            return Vec::new();
        }
    };
    names.retain(|name| !is_ignored(name) && (name.ends_with(".tfmock.hcl") || name.ends_with(".tfmock.json")));
    names.sort();
    names
        .iter()
        .filter_map(|name| parsed(files, &join(dir, name), "file of mock data", sources, diagnostics))
        .collect()
}

/// Lists the test files of a directory, sorted. Hidden files and backup files of editors are among them; [`read`] leaves
/// these out for the directory of the root module.
fn names(files: &dyn FileSource, dir: &str, shown: &str, explicit: bool, diagnostics: &mut Diagnostics) -> Vec<String> {
    let mut names = match files.list(dir) {
        Ok(names) => names,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            if explicit {
                diagnostics.push(Diagnostic::warning(
                    "Test directory does not exist",
                    format!("The test directory {shown} does not exist, so no test files were found there."),
                ));
            }
            return Vec::new();
        }
        Err(error) => {
            diagnostics.push(Diagnostic::error(
                "Failed to read test directory",
                format!("The directory {shown} cannot be read: {}.", io_reason(&error)),
            ));
            return Vec::new();
        }
    };
    names.retain(|name| file_names::is_test(name));
    let left_out = file_names::select(&mut names, Mode::current());
    diagnostics.extend(loader::contradiction(
        &left_out.iter().map(|name| join(dir, name)).collect::<Vec<_>>(),
    ));
    names.sort();
    names.into_iter().map(|name| join(dir, &name)).collect()
}
