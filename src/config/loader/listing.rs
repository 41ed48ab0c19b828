//! Lists the files of a directory that configurations are read from.

use addrs::program::Mode;
use syntax::Diagnostic;

use super::file_kind::FileKind;
use crate::file_names;
use crate::files::{FileSource, join};

/// Returns the warning about OpenTofu's files that are not read because Terraform has a file of the same name.
pub(crate) fn contradiction(left_out: &[String]) -> Option<Diagnostic> {
    let first = left_out.first()?;
    let more = match left_out.len() - 1 {
        0 => String::new(),
        count => format!(" (and {count} more)"),
    };
    Some(Diagnostic::warning(
        "File of OpenTofu is not read",
        format!(
            "Beside {first}{more} is a file of Terraform with the same name, and that one is read. For the other one, set \
             MONOFORM_MODE=opentofu; set MONOFORM_MODE=terraform if Terraform's is meant."
        ),
    ))
}

/// A file that is read: its kind and its name.
type Named = (FileKind, String);

/// Lists the files of a directory that the mode of the process reads, and the names of OpenTofu's files that it leaves
/// out because Terraform has a file of the same name.
pub(super) fn listed(files: &dyn FileSource, dir: &str) -> std::io::Result<(Vec<Named>, Vec<String>)> {
    let mut names = files.list(dir)?;
    let left_out = file_names::select(&mut names, Mode::current());
    let kinds = names
        .into_iter()
        .filter_map(|name| Some((FileKind::from_name(&name)?, name)));
    let left_out = left_out.into_iter().filter(|name| FileKind::from_name(name).is_some());
    Ok((kinds.collect(), left_out.collect()))
}

/// Lists the paths of the configuration files of a directory, with true for those in the JSON syntax.
pub(crate) fn configuration_files(files: &dyn FileSource, dir: &str) -> std::io::Result<Vec<(String, bool)>> {
    let (kinds, _) = listed(files, dir)?;
    let own = kinds.into_iter().filter(|(kind, _)| !kind.query);
    Ok(own.map(|(kind, name)| (join(dir, &name), kind.json)).collect())
}

/// Returns true if a directory has configuration files.
pub fn has_configuration(files: &dyn FileSource, dir: &str) -> std::io::Result<bool> {
    Ok(listed(files, dir)?.0.iter().any(|(kind, _)| !kind.query))
}

/// Returns true if a directory has query files.
pub fn has_queries(files: &dyn FileSource, dir: &str) -> std::io::Result<bool> {
    let is_query = |name: &String| FileKind::from_name(name).is_some_and(|kind| kind.query);
    Ok(files.list(dir)?.iter().any(is_query))
}
