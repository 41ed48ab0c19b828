//! Programs that plugins run for people: where they are.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Where the program of this name is, or why it cannot be run. A name with a slash is a path, tried as it is, from the
/// current directory; any other is looked up on `PATH`.
pub fn find(name: &str) -> Result<PathBuf, String> {
    if name.contains('/') {
        return runnable(Path::new(name)).map(|()| name.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut problem = "not found on PATH".to_owned();
    for dir in std::env::split_paths(&path) {
        let candidate = if dir.as_os_str().is_empty() {
            Path::new(".").join(name)
        } else {
            dir.join(name)
        };
        match runnable(&candidate) {
            Ok(()) if !name.is_empty() => return Ok(candidate),
            Err(e) if candidate.is_file() => problem = e,
            _ => {}
        }
    }
    Err(problem)
}

fn runnable(path: &Path) -> Result<(), String> {
    let found = path.metadata().map_err(|e| e.to_string())?;
    if found.is_dir() {
        return Err("is a directory".into());
    }
    if found.permissions().mode() & 0o111 == 0 {
        return Err("permission denied".into());
    }
    Ok(())
}
