//! The dependency lock file: the selected version of each installed provider, and the checksums of its packages.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io;
use std::path::Path;

use addrs::Provider;
use addrs::provider::{OPENTOFU_HOST, TERRAFORM_HOST};
use files::io_reason;
use hcl::edit::Span;
use hcl::edit::expr::Expression;
use hcl::edit::structure::{Attribute, Block, BlockLabel, Body};
use syntax::lexer::advance;
use syntax::source::{Pos, Range};
use syntax::{Diagnostic, Diagnostics};

use versions::{Constraints, Version};

/// File name, in the directory of the root module.
pub const FILE_NAME: &str = ".terraform.lock.hcl";

/// First lines of every lock file. Other tools, and diffs, expect exactly this text.
const HEADER: &str = "# This file is maintained automatically by \"terraform init\".\n\
                      # Manual edits may be lost in future updates.\n";

/// Parsed content of a lock file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LockFile {
    pub providers: BTreeMap<Provider, Locked>,
}

/// Selected version of a provider.
#[derive(Clone, Debug, PartialEq)]
pub struct Locked {
    pub version: Version,
    /// Constraints when the version was selected.
    pub constraints: Constraints,
    /// Checksums of the packages that may be used.
    pub hashes: BTreeSet<String>,
}

impl LockFile {
    /// Returns true if both files select the same versions of the same providers with the same checksums.
    /// Constraints are not compared.
    #[must_use]
    pub fn chooses_as(&self, other: &LockFile) -> bool {
        let choice = |locked: &Locked| (locked.version.clone(), locked.hashes.clone());
        let choices =
            |file: &LockFile| -> Vec<_> { file.providers.iter().map(|(p, l)| (p.clone(), choice(l))).collect() };
        choices(self) == choices(other)
    }

    /// Adds an entry with OpenTofu's registry for each provider that has one with Terraform's registry. The new entry has the same version
    /// and constraints, but no checksums, since the packages differ. Returns the old and the new addresses.
    pub fn take_over_from_terraform(&mut self) -> Vec<(Provider, Provider)> {
        let mut pairs = Vec::new();
        for (old, locked) in self.providers.clone() {
            // Only the providers of this namespace are the same on both registries.
            if &*old.host != TERRAFORM_HOST || &*old.namespace != "hashicorp" {
                continue;
            }
            let new = Provider {
                host: OPENTOFU_HOST.into(),
                ..old.clone()
            };
            if self.providers.contains_key(&new) {
                continue;
            }
            let hashes = BTreeSet::new();
            self.providers.insert(new.clone(), Locked { hashes, ..locked });
            pairs.push((old, new));
        }
        pairs
    }

    /// Reads the lock file of a directory; a missing file is empty. Returns the warnings beside the content.
    pub fn load(dir: &Path) -> Result<(LockFile, Diagnostics), Diagnostics> {
        let path = dir.join(FILE_NAME);
        match std::fs::read_to_string(&path) {
            Ok(text) => LockFile::parse(&text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok((LockFile::default(), Diagnostics::new())),
            Err(error) => Err(invalid(format!("It cannot be read: {}.", io_reason(&error))).into()),
        }
    }

    /// Parses the text of a lock file.
    ///
    /// # Errors
    /// The text is not that of a lock file. Each error has its source range.
    pub fn parse(text: &str) -> Result<(LockFile, Diagnostics), Diagnostics> {
        let body: Body = text.parse().map_err(|_| unreadable(text))?;
        let mut file = LockFile::default();
        let mut diagnostics = Diagnostics::new();
        for attribute in body.attributes() {
            let why = format!("An argument named \"{}\" is not expected here.", attribute.key.as_str());
            diagnostics.push(invalid(why).at(&range(text, attribute)));
        }
        for block in body.blocks() {
            match (block.ident.as_str(), block.labels.as_slice()) {
                ("provider", [label]) => file.add(text, block, label, &mut diagnostics),
                ("provider", _) => {
                    let problem = invalid("A provider block has one label: the provider's address.");
                    diagnostics.push(problem.at(&header(text, block)));
                }
                ("module", _) => {
                    let warning = Diagnostic::warning(
                        "Dependency locks for modules are not yet supported",
                        format!(
                            "The file {FILE_NAME} has a block for a module; it has no effect and is lost when the file is written."
                        ),
                    );
                    diagnostics.push(warning.at(&header(text, block)));
                }
                (other, _) => {
                    let problem = invalid(format!("Blocks of type \"{other}\" are not expected here."));
                    diagnostics.push(problem.at(&header(text, block)));
                }
            }
        }
        if diagnostics.has_errors() {
            Err(diagnostics)
        } else {
            Ok((file, diagnostics))
        }
    }

    fn add(&mut self, text: &str, block: &Block, label: &BlockLabel, diagnostics: &mut Diagnostics) {
        let name = label.as_str();
        match entry(text, block, label) {
            Ok((provider, locked)) => {
                if self.providers.insert(provider, locked).is_some() {
                    let problem = invalid(format!("There are two blocks for the provider \"{name}\"."));
                    diagnostics.push(problem.at(&header(text, block)));
                }
            }
            Err((why, at)) => {
                let problem = invalid(format!("The block for the provider \"{name}\" is wrong: {why}."));
                diagnostics.push(problem.at(&at));
            }
        }
    }

    /// Renders the text of the file, byte for byte as Terraform writes it.
    #[must_use]
    pub fn render(&self) -> String {
        let mut out = HEADER.to_owned();
        for (provider, locked) in &self.providers {
            let _ = write!(out, "\nprovider \"{provider}\" {{\n");
            if locked.constraints.is_any() {
                let _ = writeln!(out, "  version = \"{}\"", locked.version);
            } else {
                // Terraform's formatter aligns the equals signs of neighbouring lines.
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

    /// Writes the lock file of a directory, completely or not at all.
    pub fn save(&self, dir: &Path) -> Result<(), Diagnostics> {
        let written = files::replace(&dir.join(FILE_NAME), self.render().as_bytes(), files::Policy::SHARED);
        written.map_err(|error| {
            let detail = format!("The file {FILE_NAME} could not be written: {error}. It is as it was before.");
            Diagnostic::error("Failed to update dependency lock file", detail).into()
        })
    }
}

/// Conflict markers of version control systems, at the beginning of a line.
const MERGE_MARKS: [&str; 3] = ["<<<<<<<", "=======", ">>>>>>>"];

/// Returns the problems of a text that is not in the configuration language.
fn unreadable(text: &str) -> Diagnostics {
    let marks: Vec<String> = (1..)
        .zip(text.lines())
        .filter(|(_, line)| MERGE_MARKS.iter().any(|mark| line.starts_with(mark)))
        .map(|(number, _): (usize, _)| number.to_string())
        .collect();
    // A conflict marker is the most likely cause, and has its own message, because a syntax error at the marker
    // would not explain it.
    if !marks.is_empty() {
        let problem = invalid(format!(
            "A merge was not finished in it: the lines {} have its marks. Remove the marks and one version of each block between them, \
             or remove the file; then run init.",
            marks.join(", ")
        ));
        return problem.into();
    }
    // The parser of this program explains mistakes better than the library that is used here for its source ranges.
    let (_, problems) = syntax::parse_file(FILE_NAME, text.as_bytes());
    match problems.into_iter().find(Diagnostic::is_error) {
        Some(mut problem) => {
            problem.detail = format!("The file {FILE_NAME} is not valid. {}", problem.detail);
            problem.summary = "Invalid dependency lock file".to_owned();
            problem.into()
        }
        None => invalid("It is not written in the form that init writes.").into(),
    }
}

fn invalid(why: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::error(
        "Invalid dependency lock file",
        format!("The file {FILE_NAME} is not valid. {why}"),
    )
}

/// Returns the source range of a part of the file.
fn range(text: &str, part: &impl Span) -> Range {
    let span = part.span().unwrap_or_default();
    let start = advance(Pos::default(), text.get(..span.start).unwrap_or_default());
    Range {
        file: FILE_NAME.into(),
        start,
        end: advance(start, text.get(span).unwrap_or_default()),
    }
}

/// Returns the source range of a block's type and labels.
fn header(text: &str, block: &Block) -> Range {
    let ident = range(text, &block.ident);
    match block.labels.last() {
        Some(label) => ident.to(&range(text, label)),
        None => ident,
    }
}

/// Reason why a provider block of a lock file is invalid. The text is a clause without a full stop.
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

/// Parses a provider block. Errors have their source range.
fn entry(text: &str, block: &Block, label: &BlockLabel) -> Result<(Provider, Locked), (EntryError, Range)> {
    let at_label = |error: EntryError| (error, range(text, label));
    let name = label.as_str();
    let provider = Provider::parse(name).map_err(|error| at_label(EntryError::Provider(error.detail)))?;
    // As in Terraform, only the full form is valid: an abbreviated address would be a second spelling of an entry.
    if provider.to_string() != name {
        return Err(at_label(EntryError::Label(provider)));
    }
    if let Some(inner) = block.body.blocks().next() {
        let error = EntryError::Block(inner.ident.as_str().to_owned());
        return Err((error, header(text, inner)));
    }
    let mut version = None;
    let mut constraints = Constraints::any();
    let mut hashes = BTreeSet::new();
    for attribute in block.body.attributes() {
        let at_value = |error: EntryError| (error, range(text, &attribute.value));
        match attribute.key.as_str() {
            "version" => {
                let found = string(text, attribute, &attribute.value)?;
                let found = Version::parse(found).map_err(|error| at_value(EntryError::Version(error.to_string())))?;
                version = Some(found);
            }
            "constraints" => {
                let found = string(text, attribute, &attribute.value)?;
                constraints =
                    Constraints::parse(found).map_err(|error| at_value(EntryError::Version(error.to_string())))?;
                // As in Terraform, constraints must be in the canonical form.
                if constraints.to_string() != found {
                    return Err(at_value(EntryError::NotCanonical(constraints)));
                }
            }
            "hashes" => {
                let Expression::Array(items) = &attribute.value else {
                    return Err(at_value(EntryError::NotAList));
                };
                for item in items {
                    let hash = string(text, attribute, item)?.to_owned();
                    if hash
                        .split_once(':')
                        .is_none_or(|(scheme, rest)| scheme.is_empty() || rest.is_empty())
                    {
                        return Err((EntryError::Checksum(hash), range(text, item)));
                    }
                    hashes.insert(hash);
                }
            }
            other => return Err((EntryError::Argument(other.to_owned()), range(text, &attribute.key))),
        }
    }
    let version = version.ok_or_else(|| (EntryError::NoVersion, header(text, block)))?;
    Ok((
        provider,
        Locked {
            version,
            constraints,
            hashes,
        },
    ))
}

/// Returns the text of a value that must be a quoted string without templates.
fn string<'v>(text: &str, attribute: &Attribute, value: &'v Expression) -> Result<&'v str, (EntryError, Range)> {
    value.as_str().ok_or_else(|| {
        let error = EntryError::NotText(attribute.key.as_str().to_owned());
        (error, range(text, value))
    })
}

/// Returns the bytes of the lock file of a directory, for a saved plan; `None` if there is no such file.
///
/// # Errors
/// The file cannot be read.
pub fn contents(dir: &Path) -> Result<Option<Vec<u8>>, Diagnostic> {
    match std::fs::read(dir.join(FILE_NAME)) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(invalid(format!("It cannot be read: {}.", io_reason(&error)))),
    }
}

/// Checks that the lock file of a directory has the same entries as the one that a plan was made with.
///
/// # Errors
/// The entries differ, or one of the lock files cannot be read.
pub fn check_planned(planned: Option<&[u8]>, dir: &Path) -> Result<(), Diagnostics> {
    // A plan that was made without a lock file is compared with an empty one.
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
        for (text, expected, line, column) in [
            ("x = 1".to_owned(), "\"x\"", 1, 1),
            ("\nthing \"a\" {\n}".to_owned(), "\"thing\"", 2, 1),
            (
                "provider \"a/b\" {\n version = \"1.0.0\"\n}".to_owned(),
                "in full",
                1,
                10,
            ),
            (entry(""), "\"version\" is missing", 1, 1),
            (entry("version = \"1.0\""), "three numbers", 2, 11),
            (entry("version = 1"), "in quotes", 2, 11),
            (entry("version = \"1.0.0\"\nconstraints = \">=1\""), "canonical", 3, 15),
            (
                entry("version = \"1.0.0\"\nhashes = [\n \"h1:x\", \"abc\"]"),
                "checksum",
                4,
                10,
            ),
            (entry("version = \"1.0.0\"\nother = 1"), "\"other\"", 3, 1),
            (entry("version = \"1.0.0\"\nx \"y\" {}"), "type \"x\"", 3, 1),
            (entry("version = \"1.0.0\"").repeat(2), "two blocks", 4, 1),
            ("provider {".to_owned(), "not valid", 1, 10),
        ] {
            let error = LockFile::parse(&text).unwrap_err();
            assert!(error.0[0].detail.contains(expected), "{text}: {}", error.0[0].detail);
            let at = error.0[0]
                .subject
                .as_ref()
                .map(|range| (range.start.line, range.start.column));
            assert_eq!(at, Some((line, column)), "{text}");
        }
        let (_, warnings) = LockFile::parse("module \"x\" {\n}").unwrap();
        assert_eq!(warnings.len(), 1);
    }

    #[test]
    fn contents_of_a_lock_file_that_cannot_be_read_are_an_error() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(contents(dir.path()).unwrap(), None);
        std::fs::create_dir(dir.path().join(FILE_NAME)).unwrap();
        let problem = contents(dir.path()).unwrap_err();
        assert!(problem.detail.contains("cannot be read"), "{}", problem.detail);
    }
}
