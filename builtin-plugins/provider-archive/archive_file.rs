//! `archive_file`, as a data source and as a managed resource.

use std::fs::DirBuilder;
use std::path::Path;

use monoform_sdk::schema::{Attribute, block, computed, optional, required};
use monoform_sdk::{
    Attr, Context, DataSource, Diagnostic, Resource, Result, Schema, Set, Validator, async_trait, blocking, model,
};
use system::files::DirBuilderExt as _;

use crate::error::ArchiveError;
use crate::select::{self, Selection};
use crate::write::{self, Format};

model! {
    /// A text that becomes a file of the archive.
    pub struct Source {
        /// The text.
        pub content: Attr<String> = required().requires_replace(),
        /// The name of the file in the archive.
        pub filename: Attr<String> = required().requires_replace(),
    }
}

model! {
    /// An archive.
    pub struct Model {
        /// Format of the archive: `zip` or `tar.gz`.
        pub r#type: Attr<String> = required().requires_replace(),
        /// A text that becomes a file of the archive.
        pub source: Attr<Set<Source>> = block().validate(Validator::ConflictsWith(&[
            "source_file", "source_dir", "source_content", "source_content_filename",
        ])).requires_replace(),
        /// A text that becomes the only file of the archive, together with `source_content_filename`.
        pub source_content: Attr<String> = alone(&["source_file", "source_dir"]),
        /// The name in the archive of the file that `source_content` becomes.
        pub source_content_filename: Attr<String> = alone(&["source_file", "source_dir"]),
        /// Path of the file that becomes the only file of the archive.
        pub source_file: Attr<String> = alone(&["source_dir", "source_content", "source_content_filename"]),
        /// Path of a directory; the archive gets every file below it.
        pub source_dir: Attr<String> = alone(&["source_file", "source_content", "source_content_filename"]),
        /// Files of `source_dir` to leave out: paths relative to it, with the wildcards `*`, `?`, `[a-z]`, `{a,b}` and `**`. A
        /// directory that matches is left out with all its content.
        pub excludes: Attr<Set<Attr<String>>> =
            alone(&["source_file", "source_content", "source_content_filename"]),
        /// True to leave out symbolic links to directories, which are followed by default.
        pub exclude_symlink_directories: Attr<bool> = optional().requires_replace(),
        /// Path of the archive. Missing directories are created.
        pub output_path: Attr<String> = required().requires_replace(),
        /// The mode of every file in the archive, in octal with a leading 0, as in `"0644"`. The default is the mode of each file.
        pub output_file_mode: Attr<String> = optional().requires_replace(),
        /// The size of the archive in bytes.
        pub output_size: Attr<i64> = computed(),
        /// The MD5 checksum of the archive in hexadecimal.
        pub output_md5: Attr<String> = computed(),
        /// The SHA-1 checksum of the archive in hexadecimal.
        pub output_sha: Attr<String> = computed(),
        /// The SHA-256 checksum of the archive in hexadecimal.
        pub output_sha256: Attr<String> = computed(),
        /// The SHA-256 checksum of the archive in base64.
        pub output_base64sha256: Attr<String> = computed(),
        /// The SHA-512 checksum of the archive in hexadecimal.
        pub output_sha512: Attr<String> = computed(),
        /// The SHA-512 checksum of the archive in base64.
        pub output_base64sha512: Attr<String> = computed(),
        /// The SHA-1 checksum of the archive in hexadecimal.
        pub id: Attr<String> = computed(),
    }
}

fn alone(others: &'static [&'static str]) -> Attribute {
    optional().validate(Validator::ConflictsWith(others)).requires_replace()
}

fn schema() -> Schema {
    Schema::of::<Model>().at_least_one_of(&["source", "source_content_filename", "source_file", "source_dir"])
}

/// Selects the content of the archive. Validation refuses several sources, unless their values became known only afterwards.
fn selection(model: &Model) -> Selection {
    if let Some(dir) = model.source_dir.as_str() {
        return Selection::Directory {
            root: dir.into(),
            excludes: model
                .excludes
                .known()
                .map(|set| set.0.iter().filter_map(Attr::as_str).map(str::to_owned).collect())
                .unwrap_or_default(),
            follow: !model.exclude_symlink_directories.clone().or(false),
            output: model.output_path.text().into(),
        };
    }
    if let Some(file) = model.source_file.as_str() {
        return Selection::File(file.into());
    }
    let mut texts = Vec::new();
    if let Some(name) = model.source_content_filename.as_str() {
        texts.push((name.to_owned(), model.source_content.text().to_owned()));
    } else if let Some(sources) = model.source.known() {
        texts.extend(
            sources
                .0
                .iter()
                .map(|s| (s.filename.text().to_owned(), s.content.text().to_owned())),
        );
    }
    Selection::Texts(texts)
}

/// Creates the archive, and returns the model with its size and checksums.
fn build(model: Model) -> Result<Model> {
    let failed = |problem: ArchiveError| {
        Diagnostic::error("Archive creation error", format!("error creating archive: {problem}"))
    };
    let path = Path::new(model.output_path.text());
    if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty() && !dir.exists()) {
        DirBuilder::new().recursive(true).mode(0o755).create(dir).map_err(|e| {
            Diagnostic::error(
                "Output path error",
                format!("error creating output path: {}: {e}", dir.display()),
            )
        })?;
    }
    let format = match model.r#type.text() {
        "zip" => Format::Zip,
        "tar.gz" => Format::TarGz,
        other => {
            return Err(failed(ArchiveError::Type(other.to_owned())).into());
        }
    };
    let entries = select::entries(selection(&model)).map_err(&failed)?;
    let mode = model.output_file_mode.as_str().filter(|mode| !mode.is_empty());
    let archive = write::archive(format, &entries, mode).map_err(&failed)?;
    let written = archive.store(path).map_err(|source| {
        failed(ArchiveError::Store {
            path: path.to_owned(),
            source,
        })
    })?;
    Ok(Model {
        output_size: written.size.into(),
        output_md5: written.md5.into(),
        // As in the official provider, the ID is the SHA-1 checksum.
        id: written.sha1.clone().into(),
        output_sha: written.sha1.into(),
        output_sha256: written.sha256.into(),
        output_base64sha256: written.base64sha256.into(),
        output_sha512: written.sha512.into(),
        output_base64sha512: written.base64sha512.into(),
        ..model
    })
}

pub(crate) struct ArchiveFile;

#[async_trait]
impl DataSource for ArchiveFile {
    type Model = Model;
    type Client = ();

    fn schema(&self) -> Schema {
        schema().describe("Makes an archive of files or texts, whenever this is read.")
    }

    async fn read(&self, config: Model, _cx: &mut Context<()>) -> Result<Model> {
        // On a separate thread, since reading and compressing would block a thread of the runtime.
        blocking(move || build(config)).await
    }
}

#[async_trait]
impl Resource for ArchiveFile {
    type Model = Model;
    type Client = ();

    fn schema(&self) -> Schema {
        schema().describe(
            "Makes an archive of files or texts when it is created, and again with each refresh. The archive stays when this \
             is destroyed.",
        )
    }

    async fn create(&self, plan: Model, _cx: &mut Context<()>) -> Result<Model> {
        blocking(move || build(plan)).await
    }

    async fn read(&self, state: Model, _cx: &mut Context<()>) -> Result<Option<Model>> {
        // A refresh creates the archive again, so that changed files show as changed checksums.
        blocking(move || build(state)).await.map(Some)
    }

    async fn update(&self, _prior: Model, plan: Model, _cx: &mut Context<()>) -> Result<Model> {
        blocking(move || build(plan)).await
    }
}
