//! Finds the example files of a provider project that its documentation pages include.

use std::path::Path;

/// Returns the files of a directory named `NAME.EXT`, then those whose names begin with `NAME_`, as paths below the project's
/// directory.
pub fn files(root: &Path, dir: &str, name: &str, extensions: &[&str]) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(root.join(dir)) else {
        return Vec::new();
    };
    let names = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok());
    let mut found: Vec<(bool, String)> = names
        .filter_map(|file| {
            let stem = extensions.iter().find_map(|extension| file.strip_suffix(extension))?;
            let is_further = stem.strip_prefix(name).is_some_and(|rest| rest.starts_with('_'));
            (stem == name || is_further).then(|| (is_further, file.clone()))
        })
        .collect();
    found.sort();
    found.into_iter().map(|(_, file)| format!("{dir}/{file}")).collect()
}

/// Returns the path of a file below the project's directory if it exists.
pub fn file(root: &Path, path: String) -> Option<String> {
    root.join(&path).is_file().then_some(path)
}
