//! The project of a new provider: the files in `project`, with its name in place of `sample`.
//!
//! The sources are compiled and their tests run as part of the tests of `monoform-sdk-testing`, so that they follow the SDK.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use files::{Policy, io_reason};

/// Licence of a new project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum License {
    Mpl,
    Mit,
    None,
}

impl License {
    /// Returns the licence that an option names; `None` if the name is unknown.
    #[must_use]
    pub fn parse(name: &str) -> Option<License> {
        match name {
            "mpl-2.0" => Some(License::Mpl),
            "mit" => Some(License::Mit),
            "none" => Some(License::None),
            _ => None,
        }
    }

    fn line(self) -> Option<&'static str> {
        match self {
            License::Mpl => Some("license = \"MPL-2.0\""),
            License::Mit => Some("license = \"MIT\""),
            License::None => None,
        }
    }

    fn text(self) -> Option<&'static str> {
        match self {
            License::Mpl => Some(include_str!("../../../LICENSE")),
            License::Mit => Some(include_str!("project/MIT.txt")),
            License::None => None,
        }
    }
}

#[derive(Debug)]
pub struct NewProject<'a> {
    /// Name of the provider.
    pub name: &'a str,
    pub license: License,
    /// Directory with the crates of the SDK. Without it, the project depends on published versions.
    pub sdk: Option<PathBuf>,
}

/// Reason why the project cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum NewError {
    #[error("\"{0}\" cannot be the name of a provider: use lower-case letters and digits, and begin with a letter")]
    Name(String),
    #[error("the directory {} has files already: name a new or an empty one", .0.display())]
    NotEmpty(PathBuf),
    #[error("there is no SDK in {}: name the directory that has {}", .0.display(), SDK.join(", "))]
    NoSdk(PathBuf),
    #[error("the file {} cannot be written: {}", path.display(), io_reason(source))]
    Write { path: PathBuf, source: io::Error },
}

/// Directories of the SDK's crates that a project depends on.
const SDK: [&str; 3] = ["sdk", "sdk-server", "sdk-testing"];

const MANIFEST: &str = include_str!("project/Cargo.toml.template");

/// Files in which only the name of the provider is replaced.
const FILES: &[(&str, &str)] = &[
    (".github/workflows/ci.yml", include_str!("project/ci.yml")),
    (".gitignore", include_str!("project/gitignore")),
    ("README.md", include_str!("project/README.md")),
    // The sources are formatted with the settings of this repository.
    ("rustfmt.toml", include_str!("../../../.rustfmt.toml")),
    (
        "examples/provider/provider.tf",
        include_str!("project/examples/provider.tf"),
    ),
    (
        "examples/resources/sample_note/resource.tf",
        include_str!("project/examples/resource.tf"),
    ),
    (
        "examples/resources/sample_note/import.sh",
        include_str!("project/examples/import.sh"),
    ),
    (
        "examples/data-sources/sample_note/data-source.tf",
        include_str!("project/examples/data-source.tf"),
    ),
    (
        "examples/functions/title/function.tf",
        include_str!("project/examples/function.tf"),
    ),
    ("src/files.rs", include_str!("project/src/files.rs")),
    ("src/functions.rs", include_str!("project/src/functions.rs")),
    ("src/lookup.rs", include_str!("project/src/lookup.rs")),
    ("src/main.rs", include_str!("project/src/main.rs")),
    ("src/note.rs", include_str!("project/src/note.rs")),
    ("src/provider.rs", include_str!("project/src/provider.rs")),
    ("tests/note.acctest.hcl", include_str!("project/tests/note.acctest.hcl")),
];

/// Returns true if a name can be both a prefix of types and a part of a file name.
fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
}

/// Puts the name of the provider in place of `sample`.
fn named(text: &str, name: &str) -> String {
    let mut capital = name.to_owned();
    if let Some(first) = capital.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    text.replace("sample", name).replace("Sample", &capital)
}

impl NewProject<'_> {
    /// Writes the project into a directory, which must be empty or absent. Returns the paths of its files below it.
    ///
    /// # Errors
    /// The name is not valid, the directory has files, or a file cannot be written.
    pub fn write(&self, dir: &Path) -> Result<Vec<String>, NewError> {
        if !is_name(self.name) {
            return Err(NewError::Name(self.name.to_owned()));
        }
        if fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(NewError::NotEmpty(dir.to_owned()));
        }
        let mut files = vec![("Cargo.toml".to_owned(), self.manifest()?)];
        files.extend(
            FILES
                .iter()
                .map(|(path, text)| (named(path, self.name), named(text, self.name))),
        );
        files.extend(self.license.text().map(|text| ("LICENSE".to_owned(), text.to_owned())));
        for (path, text) in &files {
            let path = dir.join(path);
            let failed = |source| NewError::Write {
                path: path.clone(),
                source,
            };
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).map_err(failed)?;
            }
            files::replace(&path, text.as_bytes(), Policy::SHARED).map_err(failed)?;
        }
        let mut paths: Vec<String> = files.into_iter().map(|(path, _)| path).collect();
        paths.sort();
        Ok(paths)
    }

    fn manifest(&self) -> Result<String, NewError> {
        if let Some(dir) = &self.sdk
            && SDK.iter().any(|name| !dir.join(name).join("Cargo.toml").is_file())
        {
            return Err(NewError::NoSdk(dir.clone()));
        }
        let dependency = |name: &str| match &self.sdk {
            // Rust's `Debug` quoting gives a valid basic string of TOML.
            Some(dir) => format!("monoform-{name} = {{ path = {:?} }}", dir.join(name)),
            None => format!("monoform-{name} = \"{}\"", env!("CARGO_PKG_VERSION")),
        };
        let mut out = String::new();
        for line in named(MANIFEST, self.name).lines() {
            let line = match line {
                "LICENSE_LINE" => match self.license.line() {
                    Some(license) => license.to_owned(),
                    None => continue,
                },
                "SDK" => dependency("sdk"),
                "SDK_SERVER" => dependency("sdk-server"),
                "SDK_TESTING" => dependency("sdk-testing"),
                line => line.to_owned(),
            };
            out.push_str(&line);
            out.push('\n');
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_stands_in_every_file_and_no_placeholder_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let to = dir.path().join("zoo");
        let project = NewProject {
            name: "zoo2",
            license: License::Mit,
            sdk: None,
        };
        let files = project.write(&to).unwrap();
        assert!(
            files.contains(&"examples/resources/zoo2_note/resource.tf".to_owned()),
            "{files:?}"
        );
        for path in &files {
            let text = fs::read_to_string(to.join(path)).unwrap();
            assert!(
                !text.to_lowercase().contains("sample") && !text.contains("SDK_"),
                "{path}\n{text}"
            );
        }
        let manifest = fs::read_to_string(to.join("Cargo.toml")).unwrap();
        for line in [
            "name = \"terraform-provider-zoo2\"",
            "license = \"MIT\"",
            &format!("monoform-sdk = \"{}\"", env!("CARGO_PKG_VERSION")),
        ] {
            assert!(manifest.lines().any(|own| own == line), "{manifest}");
        }
        assert!(
            fs::read_to_string(to.join("src/provider.rs"))
                .unwrap()
                .contains("pub struct Zoo2Provider;")
        );
        assert!(matches!(project.write(&to), Err(NewError::NotEmpty(_))));
    }

    #[test]
    fn names_that_are_no_prefix_of_types_are_refused() {
        for name in ["", "1a", "Zoo", "my-zoo", "my_zoo", "a/b"] {
            let project = NewProject {
                name,
                license: License::None,
                sdk: None,
            };
            let dir = tempfile::tempdir().unwrap();
            assert!(
                matches!(project.write(&dir.path().join("x")), Err(NewError::Name(_))),
                "{name}"
            );
        }
        let dir = tempfile::tempdir().unwrap();
        let project = NewProject {
            name: "zoo",
            license: License::None,
            sdk: Some(dir.path().to_owned()),
        };
        assert!(matches!(project.write(&dir.path().join("x")), Err(NewError::NoSdk(_))));
    }
}
