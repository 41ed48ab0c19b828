//! Kinds of configuration files, read from their names.

use crate::file_names::is_of_opentofu;
use crate::files::is_ignored;

/// The kind of a configuration file, by its name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FileKind {
    pub json: bool,
    pub overriding: bool,
    pub query: bool,
    /// True if only OpenTofu reads files of this kind.
    pub opentofu: bool,
}

impl FileKind {
    /// Reads the kind from a file's name. `None` for files that are not read.
    pub fn from_name(name: &str) -> Option<FileKind> {
        if is_ignored(name) {
            return None;
        }
        let query = |json| FileKind {
            json,
            overriding: false,
            query: true,
            opentofu: false,
        };
        if name.ends_with(".tfquery.hcl") {
            return Some(query(false));
        }
        if name.ends_with(".tfquery.json") {
            return Some(query(true));
        }
        let endings = [".tf.json", ".tofu.json", ".tf", ".tofu"];
        let (stem, ending) = endings
            .iter()
            .find_map(|ending| Some((name.strip_suffix(ending)?, ending)))?;
        let json = ending.ends_with(".json");
        Some(FileKind {
            json,
            overriding: stem == "override" || stem.ends_with("_override"),
            query: false,
            opentofu: is_of_opentofu(name),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_files_are_not_read() {
        let kind = |name| FileKind::from_name(name).map(|k| (k.json, k.overriding));
        assert_eq!(kind("main.tf"), Some((false, false)));
        assert_eq!(kind("override.tf"), Some((false, true)));
        assert_eq!(kind("x_override.tf.json"), Some((true, true)));
        assert_eq!(kind("myoverride.tf"), Some((false, false)));
        assert_eq!(kind("x_override.tofu.json"), Some((true, true)));
        assert_eq!(kind("main.tofu"), Some((false, false)));
        for name in [".main.tf", "main.tf~", "#main.tf#", "main.tfvars", "main.txt"] {
            assert_eq!(kind(name), None, "{name}");
        }
    }
}
