//! Archive formats by name and file extension.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Zip,
    TarGz,
    TarBz2,
    TarXz,
}

/// File extensions, longer ones first.
const EXTENSIONS: [(&str, Format); 8] = [
    ("tar.tbz2", Format::TarBz2),
    ("tar.bz2", Format::TarBz2),
    ("tar.gz", Format::TarGz),
    ("tar.xz", Format::TarXz),
    ("tbz2", Format::TarBz2),
    ("tgz", Format::TarGz),
    ("txz", Format::TarXz),
    ("zip", Format::Zip),
];

/// Extensions of unsupported formats, and of compressed single files.
const UNSUPPORTED: [&str; 6] = ["tar.zst", "tzst", "tar", "gz", "bz2", "xz"];

/// Error for a name or extension that is not a supported archive format. The text is a clause without a full
/// stop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{name}\" is not a supported archive format; there are {}", known())]
pub struct UnknownFormat {
    pub name: String,
}

fn known() -> String {
    let known: Vec<&str> = EXTENSIONS.iter().rev().map(|(extension, _)| *extension).collect();
    known.join(", ")
}

impl Format {
    /// Returns the format with this name, its file extension without the dot.
    ///
    /// # Errors
    ///
    /// Returns an error if no supported format has this name.
    pub fn named(name: &str) -> Result<Format, UnknownFormat> {
        let found = EXTENSIONS.iter().find(|(extension, _)| *extension == name);
        found
            .map(|(_, format)| *format)
            .ok_or_else(|| UnknownFormat { name: name.to_owned() })
    }

    /// Returns the format by the extension of a path; `None` if the extension is neither in [`EXTENSIONS`]
    /// nor in [`UNSUPPORTED`].
    ///
    /// # Errors
    ///
    /// Returns an error if the extension is that of an unsupported archive format or of a compressed single
    /// file.
    pub fn of_path(path: &str) -> Result<Option<Format>, UnknownFormat> {
        let ends = |extension: &str| path.strip_suffix(extension).is_some_and(|rest| rest.ends_with('.'));
        if let Some((_, format)) = EXTENSIONS.iter().find(|(extension, _)| ends(extension)) {
            return Ok(Some(*format));
        }
        // This is an error and not `None`, because the package would otherwise be taken for a directory or a
        // single file.
        match UNSUPPORTED.iter().find(|extension| ends(extension)) {
            Some(extension) => Format::named(extension).map(Some),
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extension_selects_format() {
        assert_eq!(Format::of_path("/x/a.tar.gz"), Ok(Some(Format::TarGz)));
        assert_eq!(Format::of_path("/x/a.tbz2"), Ok(Some(Format::TarBz2)));
        assert_eq!(Format::of_path("/x/zip"), Ok(None));
        let error = Format::of_path("/x/a.tar").unwrap_err().to_string();
        assert!(error.contains("tar.gz"), "{error}");
        assert!(Format::named("-").is_err());
    }
}
