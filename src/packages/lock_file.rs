//! The dependency lock file: which version of each installed provider was chosen, and its checksums.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io;
use std::path::Path;

use addrs::Provider;
use files::io_reason;
use hcl::{Body, Expression};
use syntax::{Diagnostic, Diagnostics};

use versions::{Constraints, Version};

/// The file's name, in the directory of the root module.
pub const FILE_NAME: &str = ".terraform.lock.hcl";

/// What every such file begins with: other tools, and diffs, expect exactly this.
const HEADER: &str = "# This file is maintained automatically by \"terraform init\".\n\
                      # Manual edits may be lost in future updates.\n";

/// The content of a lock file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LockFile {
    /// The choices, by provider.
    pub providers: BTreeMap<Provider, Locked>,
}

/// A choice.
#[derive(Clone, Debug, PartialEq)]
pub struct Locked {
    /// The version.
    pub version: Version,
    /// The constraints when it was chosen.
    pub constraints: Constraints,
    /// The checksums of packages that may be used.
    pub hashes: BTreeSet<String>,
}

impl LockFile {
    /// Whether it makes the same choices: of the same providers, in the same versions, with the same checksums. The constraints
    /// that led to them do not count.
    #[must_use]
    pub fn chooses_as(&self, other: &LockFile) -> bool {
        let choice = |locked: &Locked| (locked.version.clone(), locked.hashes.clone());
        let choices =
            |file: &LockFile| -> Vec<_> { file.providers.iter().map(|(p, l)| (p.clone(), choice(l))).collect() };
        choices(self) == choices(other)
    }

    /// Reads the file in this directory; a missing one is empty. Warnings come with the content.
    pub fn load(dir: &Path) -> Result<(LockFile, Diagnostics), Diagnostics> {
        let path = dir.join(FILE_NAME);
        match std::fs::read_to_string(&path) {
            Ok(text) => LockFile::parse(&text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok((LockFile::default(), Diagnostics::new())),
            Err(error) => Err(invalid(format!("It cannot be read: {}.", io_reason(&error)))),
        }
    }

    /// Reads a file's text.
    pub fn parse(text: &str) -> Result<(LockFile, Diagnostics), Diagnostics> {
        let body: Body = hcl::from_str(text).map_err(|_| unreadable(text))?;
        let mut file = LockFile::default();
        let mut diagnostics = Diagnostics::new();
        for attribute in body.attributes() {
            diagnostics.extend(invalid(format!(
                "An argument named \"{}\" is not expected here.",
                attribute.key.as_str()
            )));
        }
        for block in body.blocks() {
            let labels: Vec<&str> = block.labels.iter().map(hcl::BlockLabel::as_str).collect();
            match (block.identifier.as_str(), labels.as_slice()) {
                ("provider", [label]) => match entry(label, &block.body) {
                    Ok((provider, locked)) => {
                        if file.providers.insert(provider, locked).is_some() {
                            diagnostics.extend(invalid(format!("There are two blocks for the provider \"{label}\".")));
                        }
                    }
                    Err(why) => diagnostics.extend(invalid(format!("The block for the provider \"{label}\" is wrong: {why}."))),
                },
                ("provider", _) => diagnostics.extend(invalid("A provider block has one label: the provider's address.".into())),
                ("module", _) => diagnostics.push(Diagnostic::warning(
                    "Dependency locks for modules are not yet supported",
                    format!("The file {FILE_NAME} has a block for a module; it has no effect and is lost when the file is written."),
                )),
                (other, _) => {
                    diagnostics.extend(invalid(format!("Blocks of type \"{other}\" are not expected here.")));
                }
            }
        }
        if diagnostics.has_errors() {
            Err(diagnostics)
        } else {
            Ok((file, diagnostics))
        }
    }

    /// The text of the file.
    #[must_use]
    pub fn render(&self) -> String {
        let mut out = HEADER.to_owned();
        for (provider, locked) in &self.providers {
            let _ = write!(out, "\nprovider \"{provider}\" {{\n");
            if locked.constraints.is_any() {
                let _ = writeln!(out, "  version = \"{}\"", locked.version);
            } else {
                let _ = writeln!(out, "  version     = \"{}\"", locked.version);
                let _ = writeln!(out, "  constraints = \"{}\"", locked.constraints);
            }
            if !locked.hashes.is_empty() {
                out.push_str("  hashes = [\n");
                for hash in &locked.hashes {
                    let _ = writeln!(out, "    \"{hash}\",");
                }
                out.push_str("  ]\n");
            }
            out.push_str("}\n");
        }
        out
    }

    /// Writes the file in this directory, as a whole or not at all.
    pub fn save(&self, dir: &Path) -> Result<(), Diagnostics> {
        let written = files::replace(&dir.join(FILE_NAME), self.render().as_bytes(), files::Policy::SHARED);
        written.map_err(|error| {
            let detail = format!("The file {FILE_NAME} could not be written: {error}. It is as it was before.");
            Diagnostic::error("Failed to update dependency lock file", detail).into()
        })
    }
}

/// The marks that a merge leaves at the beginnings of lines where two versions of a file differ.
const MERGE_MARKS: [&str; 3] = ["<<<<<<<", "=======", ">>>>>>>"];

/// The problem of a text that is not in the configuration language.
fn unreadable(text: &str) -> Diagnostics {
    let marks: Vec<String> = (1..)
        .zip(text.lines())
        .filter(|(_, line)| MERGE_MARKS.iter().any(|mark| line.starts_with(mark)))
        .map(|(number, _): (usize, _)| number.to_string())
        .collect();
    if !marks.is_empty() {
        return invalid(format!(
            "A merge was not finished in it: the lines {} have its marks. Remove the marks and one version of each block between them, \
             or remove the file; then run init.",
            marks.join(", ")
        ));
    }
    // The parser of the language says more about a mistake than that of the library.
    let (_, problems) = syntax::parse_file(FILE_NAME, text.as_bytes());
    match problems.into_iter().find(Diagnostic::is_error) {
        Some(mut problem) => {
            problem.detail = format!("The file {FILE_NAME} is not valid. {}", problem.detail);
            problem.summary = "Invalid dependency lock file".to_owned();
            problem.into()
        }
        None => invalid("It is not written in the form that init writes.".to_owned()),
    }
}

fn invalid(why: String) -> Diagnostics {
    Diagnostic::error(
        "Invalid dependency lock file",
        format!("The file {FILE_NAME} is not valid. {why}"),
    )
    .into()
}

/// Why a provider block of a lock file is invalid. The text is a clause without a full stop.
#[derive(Debug, thiserror::Error)]
enum EntryError {
    #[error("{0}")]
    Provider(String),
    #[error("its label must be written in full, as \"{0}\"")]
    Label(Provider),
    #[error("a block of type \"{0}\" is not expected inside")]
    Block(String),
    #[error("\"{0}\" must be text in quotes")]
    NotText(String),
    #[error("{0}")]
    Version(String),
    #[error("the constraints must be written in canonical form: \"{0}\"")]
    NotCanonical(Constraints),
    #[error("\"hashes\" must be a list")]
    NotAList,
    #[error("\"{0}\" is not a checksum: it must begin with a scheme, like \"h1:\"")]
    Checksum(String),
    #[error("an argument named \"{0}\" is not expected")]
    Argument(String),
    #[error("\"version\" is missing")]
    NoVersion,
}

fn entry(label: &str, body: &Body) -> Result<(Provider, Locked), EntryError> {
    let provider = Provider::parse(label).map_err(|error| EntryError::Provider(error.detail))?;
    if provider.to_string() != label {
        return Err(EntryError::Label(provider));
    }
    let mut version = None;
    let mut constraints = Constraints::any();
    let mut hashes = BTreeSet::new();
    if let Some(block) = body.blocks().next() {
        return Err(EntryError::Block(block.identifier.as_str().to_owned()));
    }
    for attribute in body.attributes() {
        let text = |expression: &Expression| match expression {
            Expression::String(text) => Ok(text.clone()),
            _ => Err(EntryError::NotText(attribute.key.as_str().to_owned())),
        };
        match attribute.key.as_str() {
            "version" => {
                let text = text(&attribute.expr)?;
                version = Some(Version::parse(&text).map_err(|error| EntryError::Version(error.to_string()))?);
            }
            "constraints" => {
                let text = text(&attribute.expr)?;
                constraints = Constraints::parse(&text).map_err(|error| EntryError::Version(error.to_string()))?;
                if constraints.to_string() != text {
                    return Err(EntryError::NotCanonical(constraints));
                }
            }
            "hashes" => {
                let Expression::Array(items) = &attribute.expr else {
                    return Err(EntryError::NotAList);
                };
                for item in items {
                    let hash = text(item)?;
                    if hash
                        .split_once(':')
                        .is_none_or(|(scheme, rest)| scheme.is_empty() || rest.is_empty())
                    {
                        return Err(EntryError::Checksum(hash));
                    }
                    hashes.insert(hash);
                }
            }
            other => return Err(EntryError::Argument(other.to_owned())),
        }
    }
    let version = version.ok_or(EntryError::NoVersion)?;
    Ok((
        provider,
        Locked {
            version,
            constraints,
            hashes,
        },
    ))
}

/// Refuses a saved plan if the lock file in a directory names other versions or packages of providers than the plan was made with.
///
/// # Errors
/// They are others, or one of the lock files cannot be read.
pub fn check_planned(planned: Option<&[u8]>, dir: &Path) -> Result<(), Diagnostics> {
    let planned = LockFile::parse(&String::from_utf8_lossy(planned.unwrap_or_default()))?.0;
    let current = LockFile::load(dir)?.0;
    if planned == current {
        return Ok(());
    }
    let (before, now) = (&planned.providers, &current.providers);
    let names: BTreeSet<_> = before.keys().chain(now.keys()).collect();
    let version = |locked: Option<&Locked>| locked.map_or("none".to_owned(), |l| l.version.to_string());
    let differences: Vec<String> = names
        .into_iter()
        .filter(|name| before.get(*name) != now.get(*name))
        .map(|name| {
            let (was, is) = (version(before.get(name)), version(now.get(name)));
            if was == is {
                format!("  - {name} {is}, with other checksums or constraints")
            } else {
                format!("  - {name}: {was} when the plan was made, {is} now")
            }
        })
        .collect();
    Err(Diagnostic::error(
        "Inconsistent dependency lock file",
        format!(
            "The plan was made with other providers than the dependency lock file {} names now:\n{}\n\nA saved plan can only \
             be applied with the providers that made it. Put the lock file back, or make a new plan.",
            FILE_NAME,
            differences.join("\n")
        ),
    )
    .into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written by Terraform 1.11.4.
    const TEXT: &str = r#"# This file is maintained automatically by "terraform init".
# Manual edits may be lost in future updates.

provider "example.com/acme/demo" {
  version = "2.3.1"
  hashes = [
    "h1:HjQrdQkcyU/G2Tnaxf3TWWQQCacIKfjFwpdrCKgLncg=",
  ]
}

provider "registry.terraform.io/hashicorp/demo" {
  version     = "2.3.1"
  constraints = ">= 2.0.0, ~> 2.0, != 2.0.0, <= 2.5.0"
  hashes = [
    "h1:HjQrdQkcyU/G2Tnaxf3TWWQQCacIKfjFwpdrCKgLncg=",
    "zh:00",
  ]
}
"#;

    #[test]
    fn reading_and_writing_gives_the_same_bytes() {
        let (file, diagnostics) = LockFile::parse(TEXT).unwrap();
        assert!(diagnostics.is_empty());
        assert_eq!(file.providers.len(), 2);
        assert_eq!(file.render(), TEXT);
        let dir = tempfile::tempdir().unwrap();
        file.save(dir.path()).unwrap();
        assert_eq!(std::fs::read_to_string(dir.path().join(FILE_NAME)).unwrap(), TEXT);
        assert_eq!(LockFile::load(dir.path()).unwrap().0, file);
        assert_eq!(
            std::fs::read_dir(dir.path()).unwrap().count(),
            1,
            "no temporary file is left"
        );
    }

    #[test]
    fn a_missing_file_is_empty() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(LockFile::load(dir.path()).unwrap().0, LockFile::default());
    }

    #[test]
    fn everything_unexpected_is_an_error() {
        let entry = |inner: &str| format!("provider \"registry.terraform.io/a/b\" {{\n{inner}\n}}\n");
        for (text, expected) in [
            ("x = 1".to_owned(), "\"x\""),
            ("thing \"a\" {\n}".to_owned(), "\"thing\""),
            ("provider \"a/b\" {\n version = \"1.0.0\"\n}".to_owned(), "in full"),
            (entry(""), "\"version\" is missing"),
            (entry("version = \"1.0\""), "three numbers"),
            (entry("version = 1"), "in quotes"),
            (entry("version = \"1.0.0\"\nconstraints = \">=1\""), "canonical"),
            (entry("version = \"1.0.0\"\nhashes = [\"abc\"]"), "checksum"),
            (entry("version = \"1.0.0\"\nother = 1"), "\"other\""),
            ("provider {".to_owned(), "not valid"),
        ] {
            let error = LockFile::parse(&text).unwrap_err();
            assert!(error.0[0].detail.contains(expected), "{text}: {}", error.0[0].detail);
        }
        let (_, warnings) = LockFile::parse("module \"x\" {\n}").unwrap();
        assert_eq!(warnings.len(), 1);
    }
}
