//! Functions that read files at evaluation, and functions for paths.

#![expect(
    clippy::disallowed_methods,
    reason = "paths depend on the working directory and the home directory"
)]

use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cty::{Type, Value};
use system::{Os, paths};

use super::{CallError, CallResult, Function, FunctionEnvironment, Returns, any, glob, string, text};

/// Functions whose results depend on files only. Within a run, and in a plan and its apply, calls with equal arguments
/// must have equal results: otherwise the files have changed meanwhile. For `templatefile`, the text of the template is
/// compared.
pub(super) const READ_FILES: &[&str] = &[
    "file",
    "filebase64",
    "filebase64sha256",
    "filebase64sha512",
    "fileexists",
    "filemd5",
    "fileset",
    "filesha1",
    "filesha256",
    "filesha512",
];

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("abspath", &[string("path")], Returns::String, |a, _, _| {
        let path = Path::new(text(a, 0));
        let whole = if path.is_absolute() {
            path.to_owned()
        } else {
            std::env::current_dir()
                .map_err(|e| CallError::failed(e.to_string()))?
                .join(path)
        };
        Ok(Value::string(paths::to_slash(
            Os::CURRENT,
            &clean(&whole).to_string_lossy(),
        )))
    }),
    Function::new("basename", &[string("path")], Returns::String, |a, _, _| {
        Ok(Value::string(paths::base(Os::CURRENT, text(a, 0))))
    }),
    Function::new("dirname", &[string("path")], Returns::String, |a, _, _| {
        Ok(Value::string(paths::dir(Os::CURRENT, text(a, 0))))
    }),
    Function::new("file", &[string("path")], Returns::String, |a, _, s| {
        Ok(Value::string(read_text(text(a, 0), s)?))
    }),
    Function::new("filebase64", &[string("path")], Returns::String, |a, _, s| {
        Ok(Value::string(STANDARD.encode(read(text(a, 0), s)?)))
    }),
    Function::new("fileexists", &[string("path")], Returns::Bool, |a, _, s| {
        let path_text = text(a, 0);
        let place = resolve(path_text, s)?;
        // Directories in memory hide those of the disk at the same path.
        let in_memory = s.settings.mounts.as_ref().and_then(|mounts| mounts.is_dir(&place));
        match in_memory.unwrap_or_else(|| fs::metadata(&place).map(|found| found.is_dir())) {
            Ok(true) => Err(CallError::failed(format!("{place:?} is a directory, not a file"))),
            Ok(false) => Ok(Value::bool(true)),
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(Value::bool(false)),
            Err(e) => Err(CallError::failed(format!(
                "failed to stat {path_text:?}: {}",
                files::io_reason(&e)
            ))),
        }
    }),
    Function::new(
        "fileset",
        &[string("path"), string("pattern")],
        Returns::SetOfString,
        fileset,
    ),
    Function::new("pathexpand", &[string("path")], Returns::String, |a, _, _| {
        Ok(path_value(&expand_home(text(a, 0))?))
    }),
    Function::new(
        "templatefile",
        &[string("path"), any("vars").marked()],
        Returns::Any,
        templatefile,
    )
    .nullable(),
];

fn path_value(path: &Path) -> Value {
    Value::string(path.to_string_lossy())
}

/// Returns the shortest equivalent path, without access to the disk.
fn clean(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => match out.components().next_back() {
                Some(Component::Normal(_)) => {
                    out.pop();
                }
                Some(Component::RootDir) => {}
                _ => out.push(".."),
            },
            other => out.push(other),
        }
    }
    if out.as_os_str().is_empty() {
        PathBuf::from(".")
    } else {
        out
    }
}

/// Replaces a leading `~` by the home directory.
fn expand_home(path: &str) -> CallResult<PathBuf> {
    let Some(rest) = path.strip_prefix('~') else {
        return Ok(PathBuf::from(path));
    };
    let is_separator = |c| paths::is_separator(Os::CURRENT, c);
    if !rest.is_empty() && !rest.starts_with(is_separator) {
        return Err(CallError::failed("cannot expand user-specific home dir"));
    }
    let variable = Os::CURRENT.home_variable();
    let home = std::env::var_os(variable).filter(|h| !h.is_empty()).ok_or_else(|| {
        CallError::failed(format!(
            "failed to expand ~: the environment variable {variable} is not set"
        ))
    })?;
    Ok(clean(&PathBuf::from(home).join(rest.trim_start_matches(is_separator))))
}

fn resolve(path: &str, environment: &FunctionEnvironment<'_>) -> CallResult<PathBuf> {
    let path = expand_home(path)?;
    Ok(if path.is_absolute() {
        path
    } else {
        clean(&environment.settings.base_dir.join(path))
    })
}

/// Reads a file, from the mounted directories or the disk.
fn bytes(place: &Path, environment: &FunctionEnvironment<'_>) -> std::io::Result<Vec<u8>> {
    let in_memory = environment
        .settings
        .mounts
        .as_ref()
        .and_then(|mounts| mounts.read(place));
    in_memory.map_or_else(|| fs::read(place), |content| content.map(|bytes| bytes.to_vec()))
}

/// Returns true if a function would read a file that does not exist.
pub(super) fn is_missing(function: &str, args: &[Value], environment: &FunctionEnvironment<'_>) -> bool {
    let reads = READ_FILES.contains(&function) || function == "templatefile";
    // `fileexists` and `fileset` return a result for a missing file.
    if !reads || matches!(function, "fileexists" | "fileset") {
        return false;
    }
    let place = resolve(text(args, 0), environment).ok();
    place.is_some_and(|place| bytes(&place, environment).is_err_and(|e| e.kind() == ErrorKind::NotFound))
}

pub(super) fn read(path: &str, environment: &FunctionEnvironment<'_>) -> CallResult<Vec<u8>> {
    let place = resolve(path, environment)?;
    bytes(&place, environment).map_err(|e| match e.kind() {
        ErrorKind::NotFound => CallError::argument(
            0,
            format!(
                "there is no file {:?}; functions read files that are there before the run, so use an attribute of \
                 the resource for a file that a resource creates",
                path
            ),
        ),
        _ => CallError::argument(
            0,
            format!("failed to read file: read {}: {}", place.display(), os_message(&e)),
        ),
    })
}

/// Reads a file to be hashed. The messages differ from those of [`read`], as in Terraform.
pub(super) fn read_to_hash(path: &str, environment: &FunctionEnvironment<'_>) -> CallResult<Vec<u8>> {
    let place = resolve(path, environment)?;
    bytes(&place, environment).map_err(|e| match e.kind() {
        ErrorKind::NotFound => CallError::failed(format!("open {}: no such file or directory", place.display())),
        _ => CallError::failed(format!("read {}: {}", place.display(), os_message(&e))),
    })
}

/// Returns the operating system's message without the error number, in Go's wording.
fn os_message(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::IsADirectory => "is a directory".into(),
        ErrorKind::PermissionDenied => "permission denied".into(),
        _ => files::io_reason(error),
    }
}

fn read_text(path: &str, environment: &FunctionEnvironment<'_>) -> CallResult<String> {
    String::from_utf8(read(path, environment)?).map_err(|_| {
        CallError::failed(format!(
            "the file {path:?} is not valid UTF-8; filebase64 reads any bytes, and filesha256 and its kind hash them"
        ))
    })
}

fn fileset(args: &[Value], _: &Type, environment: &FunctionEnvironment<'_>) -> CallResult {
    let root = resolve(text(args, 0), environment)?;
    // A backslash separates steps on Windows; elsewhere it escapes the character behind it.
    let pattern = paths::clean(Os::CURRENT, text(args, 1));
    let found = glob::files(&root, &pattern, environment.settings.mounts.as_deref()).map_err(|error| {
        let path = root.join(&pattern);
        CallError::failed(format!(
            "failed to glob pattern {path:?}: syntax error in pattern: {error}"
        ))
    })?;
    Ok(Value::set(Type::String, found.into_iter().map(Value::from).collect()))
}

fn templatefile(args: &[Value], _: &Type, environment: &FunctionEnvironment<'_>) -> CallResult {
    // Templates that render templates could recur for ever.
    if environment.in_template {
        return Err(CallError::failed(
            "a template that templatefile or templatestring renders cannot call templatefile",
        ));
    }
    let path = text(args, 0);
    let template = read_text(path, environment)?;
    let content = Value::string(&*template);
    // The content of the file is compared, not the result, which may depend on variables that differ between
    // plan and apply.
    environment.scope().check_result("templatefile", &args[..1], &content)?;
    match crate::eval::render(path, &template, &args[1], environment) {
        Err(CallError::Argument(0, message)) => Err(CallError::Failed(message)),
        Ok(value) if value.is_null() => {
            let start = syntax::Pos::default();
            let whole = syntax::Range {
                file: path.into(),
                start,
                end: syntax::lexer::advance(start, &template),
            };
            Err(CallError::failed(format!(
                "{whole}: Template result is null; A template must have a value, and this one is a single \
                 interpolation that is null"
            )))
        }
        other => other,
    }
}
