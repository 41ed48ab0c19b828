//! The managed types `local_file` and `local_sensitive_file`.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use monoform_sdk::schema::{Attribute, optional, required};
use monoform_sdk::{
    Attr, Check, Context, Diagnostic, Resource, Result, Schema, Validator, async_trait, blocking, model,
};
use system::files::{DirBuilderExt as _, OpenOptionsExt as _};

use crate::checksums::{Checksums, sha1};

const CONTENTS: &[&str] = &["content", "sensitive_content", "content_base64", "source"];
const SENSITIVE_CONTENTS: &[&str] = &["content", "content_base64", "source"];

model! {
    /// A file.
    pub struct FileModel {
        /// The content, as text.
        pub content: Attr<String> = content(CONTENTS),
        /// The content as text that is not shown.
        pub sensitive_content: Attr<String> = content(CONTENTS).sensitive()
            .deprecated("Use the resource local_sensitive_file instead."),
        /// The content in base64, for what is no text.
        pub content_base64: Attr<String> = content(CONTENTS),
        /// Path of a file to copy. Later changes of that file are not noticed.
        pub source: Attr<String> = content(CONTENTS),
        /// Path of the file. Missing directories are created.
        pub filename: Attr<String> = required().requires_replace(),
        /// Mode of the file in octal, before umask.
        pub file_permission: Attr<String> = permission("0777"),
        /// Mode of directories that are created, in octal, before umask.
        pub directory_permission: Attr<String> = permission("0777"),
        /// Checksums of the content.
        pub sums: Checksums = flatten,
    }
}

model! {
    /// A file whose content is not shown.
    pub struct SensitiveFileModel {
        /// The content, as text.
        pub content: Attr<String> = content(SENSITIVE_CONTENTS).sensitive(),
        /// The content in base64, for what is no text.
        pub content_base64: Attr<String> = content(SENSITIVE_CONTENTS).sensitive(),
        /// Path of a file to copy. Later changes of that file are not noticed.
        pub source: Attr<String> = content(SENSITIVE_CONTENTS),
        /// Path of the file. Missing directories are created.
        pub filename: Attr<String> = required().requires_replace(),
        /// Mode of the file in octal, before umask.
        pub file_permission: Attr<String> = permission("0700"),
        /// Mode of directories that are created, in octal, before umask.
        pub directory_permission: Attr<String> = permission("0700"),
        /// Checksums of the content.
        pub sums: Checksums = flatten,
    }
}

fn content(group: &'static [&'static str]) -> Attribute {
    optional().validate(Validator::ExactlyOneOf(group)).requires_replace()
}

fn permission(default: &str) -> Attribute {
    let rule = Validator::custom(|check: &Check<'_>| {
        let problem = mode(check.value.as_str()?).err()?;
        Some(Diagnostic::error("Invalid File Permission String Value", problem.to_string()).at(check.path.clone()))
    });
    optional()
        .computed()
        .default(default.to_owned())
        .validate(rule)
        .requires_replace()
}

/// Reason why a file cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    #[error("bad mode permission: string must be 3 or 4 octal digits: {0:?}")]
    ModeLength(String),
    #[error("bad mode permission: must be at most 0777: {0:?}")]
    ModeTooLarge(String),
    #[error("bad mode permission: string must be made of octal digits: {0:?}")]
    ModeDigits(String),
    #[error("The value of content_base64 is not base64: {0}.")]
    Base64(base64::DecodeError),
    #[error("Cannot read {0}: {1}.")]
    Read(String, io::Error),
    #[error("Cannot write {0}: {1}.")]
    Write(String, io::Error),
    #[error("Cannot create the directory {}: {source}.", path.display())]
    CreateDirectory { path: PathBuf, source: io::Error },
}

fn mode(text: &str) -> std::result::Result<u32, FileError> {
    if !(3..=4).contains(&text.len()) {
        return Err(FileError::ModeLength(text.to_owned()));
    }
    match u32::from_str_radix(text, 8) {
        Ok(mode) if mode <= 0o777 => Ok(mode),
        Ok(_) => Err(FileError::ModeTooLarge(text.to_owned())),
        Err(_) => Err(FileError::ModeDigits(text.to_owned())),
    }
}

struct WriteRequest {
    filename: String,
    text: Option<String>,
    base64: Option<String>,
    source: Option<String>,
    file_permission: String,
    directory_permission: String,
}

impl WriteRequest {
    /// Writes the file, and returns its content.
    fn write(self) -> std::result::Result<Vec<u8>, FileError> {
        let content = match (self.text, self.base64, self.source) {
            (Some(text), ..) => text.into_bytes(),
            (_, Some(base64), _) => STANDARD.decode(base64).map_err(FileError::Base64)?,
            (_, _, Some(source)) => std::fs::read(&source).map_err(|e| FileError::Read(source, e))?,
            _ => Vec::new(),
        };
        let path = Path::new(&self.filename);
        if let Some(parent) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
            let mut builder = DirBuilder::new();
            builder.recursive(true).mode(mode(&self.directory_permission)?);
            builder.create(parent).map_err(|source| FileError::CreateDirectory {
                path: parent.to_owned(),
                source,
            })?;
        }
        // As in Go's library, the permissions are set only for a new file; an existing file keeps its own.
        let mut options = OpenOptions::new();
        options
            .write(true)
            .create(true)
            .truncate(true)
            .mode(mode(&self.file_permission)?);
        let written = options.open(path).and_then(|mut file| file.write_all(&content));
        written.map_err(|e| FileError::Write(self.filename, e))?;
        Ok(content)
    }
}

/// Returns true if the file exists with the content whose checksum is `id`.
fn is_unchanged(filename: &str, id: &str) -> std::result::Result<bool, FileError> {
    match std::fs::read(filename) {
        Ok(content) => Ok(sha1(&content) == id),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(FileError::Read(filename.to_owned(), error)),
    }
}

// The two resource types differ only in their attributes, and in the wording of descriptions and errors.
macro_rules! file_resource {
    ($resource:ident, $model:ident, $text:expr, $what:literal, $about:literal) => {
        pub(crate) struct $resource;

        #[async_trait]
        impl Resource for $resource {
            type Model = $model;
            type Client = ();

            fn schema(&self) -> Schema {
                Schema::of::<$model>().describe($about)
            }

            async fn create(&self, plan: $model, _cx: &mut Context<()>) -> Result<$model> {
                let text: fn(&$model) -> Option<String> = $text;
                let request = WriteRequest {
                    filename: plan.filename.text().to_owned(),
                    text: text(&plan),
                    base64: plan.content_base64.known().cloned(),
                    source: plan.source.known().cloned(),
                    file_permission: plan.file_permission.text().to_owned(),
                    directory_permission: plan.directory_permission.text().to_owned(),
                };
                blocking(move || match request.write() {
                    Ok(content) => Ok($model {
                        sums: Checksums::compute(&content),
                        ..plan
                    }),
                    Err(problem) => {
                        Err(Diagnostic::error(concat!("Create ", $what, " error"), problem.to_string()).into())
                    }
                })
                .await
            }

            async fn read(&self, state: $model, _cx: &mut Context<()>) -> Result<Option<$model>> {
                blocking(
                    move || match is_unchanged(state.filename.text(), state.sums.id.text()) {
                        // As in the official provider, a changed file counts as deleted, so that it is created again.
                        Ok(unchanged) => Ok(unchanged.then_some(state)),
                        Err(problem) => {
                            Err(Diagnostic::error(concat!("Read ", $what, " error"), problem.to_string()).into())
                        }
                    },
                )
                .await
            }

            async fn delete(&self, state: $model, _cx: &mut Context<()>) -> Result<()> {
                // As in the official provider, a failure to remove the file is ignored.
                drop(std::fs::remove_file(state.filename.text()));
                Ok(())
            }
        }
    };
}

file_resource!(
    LocalFile,
    FileModel,
    |m| m.content.known().or(m.sensitive_content.known()).cloned(),
    "local file",
    "A file with given content."
);
file_resource!(
    LocalSensitiveFile,
    SensitiveFileModel,
    |m| m.content.known().cloned(),
    "local sensitive file",
    "A file with given content that is not shown."
);

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use monoform_sdk::cty::Value;
    use monoform_sdk_testing::Harness;

    use super::mode;

    fn path(dir: &tempfile::TempDir, name: &str) -> (std::path::PathBuf, Value) {
        let path = dir.path().join(name);
        let value = path.to_str().unwrap().into();
        (path, value)
    }

    #[tokio::test]
    async fn a_file_lives_and_dies() {
        let harness = Harness::new(crate::provider());
        let dir = tempfile::tempdir().unwrap();
        let (file, filename) = path(&dir, "a/b/c.txt");
        let config = [
            ("filename", filename),
            ("content", "hello".into()),
            ("file_permission", "0640".into()),
        ];
        let state = harness.create("local_file", &config).await.unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "hello");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        for (name, expected) in [
            ("id", "aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d"),
            ("content_md5", "5d41402abc4b2a76b9719d911017c592"),
            (
                "content_sha256",
                "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
            ),
            ("content_base64sha256", "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ="),
        ] {
            assert_eq!(state.get(name), Some(&expected.into()), "{name}");
        }
        assert_eq!(harness.read("local_file", &state).await.unwrap(), state);
        let again = harness.plan("local_file", Some(&state), &config).await.unwrap();
        assert_eq!((again.planned, again.replace), (state.clone(), vec![]));

        std::fs::write(&file, "other").unwrap();
        assert!(harness.read("local_file", &state).await.unwrap().is_null());
        harness.apply("local_file", Some(&state), None, &[]).await.unwrap();
        assert!(!file.exists() && file.parent().unwrap().exists());
        harness.apply("local_file", Some(&state), None, &[]).await.unwrap();
        assert!(harness.read("local_file", &state).await.unwrap().is_null());
    }

    #[tokio::test]
    async fn exactly_one_content_is_wanted() {
        let harness = Harness::new(crate::provider());
        let summaries = |name: &str, config: &[(&str, Value)]| harness.validate(name, config).0;
        let none = summaries("local_file", &[("filename", "x".into())]);
        assert_eq!(none.len(), 4);
        assert_eq!(
            none[0].detail,
            "No attribute specified when one (and only one) of [content,sensitive_content,content_base64,source] is required"
        );
        let two = [("filename", "x".into()), ("content", "".into()), ("source", "y".into())];
        assert!(
            summaries("local_sensitive_file", &two)[0]
                .detail
                .starts_with("2 attributes specified")
        );
    }

    #[tokio::test]
    async fn what_cannot_be_written_is_an_error() {
        let harness = Harness::new(crate::provider());
        let dir = tempfile::tempdir().unwrap();
        let (_, inside) = path(&dir, "x");
        let (_, directory) = path(&dir, "");
        for (config, word) in [
            ([("filename", inside.clone()), ("content_base64", "%".into())], "base64"),
            (
                [("filename", inside), ("source", "/nonexistent/x".into())],
                "/nonexistent/x",
            ),
            ([("filename", directory), ("content", "x".into())], "Cannot write"),
        ] {
            let errors = harness.create("local_file", &config).await.unwrap_err();
            assert_eq!(errors.0[0].summary, "Create local file error");
            assert!(errors.0[0].detail.contains(word), "{}", errors.0[0].detail);
        }
    }

    #[test]
    fn modes_are_octal() {
        for (text, expected) in [
            ("0777", Some(0o777)),
            ("600", Some(0o600)),
            ("99", None),
            ("0888", None),
            ("7777", None),
            ("07777", None),
        ] {
            assert_eq!(mode(text).ok(), expected, "{text}");
        }
    }
}
