//! Names of configuration files.

use crate::files::is_ignored;

/// The kind of a configuration file, by its name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct FileKind {
    pub json: bool,
    pub overriding: bool,
    pub query: bool,
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
        };
        if name.ends_with(".tfquery.hcl") {
            return Some(query(false));
        }
        if name.ends_with(".tfquery.json") {
            return Some(query(true));
        }
        let (stem, json) = match name.strip_suffix(".tf.json") {
            Some(stem) => (stem, true),
            None => (name.strip_suffix(".tf")?, false),
        };
        Some(FileKind {
            json,
            overriding: stem == "override" || stem.ends_with("_override"),
            query: false,
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
        for name in [".main.tf", "main.tf~", "#main.tf#", "main.tfvars", "main.txt"] {
            assert_eq!(kind(name), None, "{name}");
        }
    }
}
